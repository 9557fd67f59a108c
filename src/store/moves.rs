//! The log of moves: append-only, the truth about every past state.

use serde_json::value::RawValue;
use sqlx::PgConnection;
use sqlx::types::Json;
use time::OffsetDateTime;

use super::{Store, StoreError};
use crate::game::{Entry, Game, replay};
use crate::rulesets::Seat;
use crate::rulesets::registry::{AnyMove, AnyState, RulesetId};

struct Row {
    number: i32,
    version: i32,
    seat: i16,
    mv: Json<Box<RawValue>>,
    events: Json<Box<RawValue>>,
    at: OffsetDateTime,
    to_move_seat: Option<i16>,
    due_at: Option<OffsetDateTime>,
    remaining_ms: Option<Vec<i64>>,
}

impl Row {
    fn into_entry(self, ruleset: RulesetId) -> Result<Entry, StoreError> {
        Ok(Entry {
            number: self.number as u32,
            version: self.version as u32,
            seat: self.seat as Seat,
            mv: read_move(ruleset, &self.mv)?,
            events: ruleset.read_events(self.events.get()).map_err(unreadable)?,
            at: self.at,
            to_move: self.to_move_seat.map(|seat| seat as Seat),
            due_at: self.due_at,
            remaining_ms: self.remaining_ms,
        })
    }
}

pub(super) fn read_move(ruleset: RulesetId, json: &RawValue) -> Result<AnyMove, StoreError> {
    ruleset.read_move(json.get().as_bytes()).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("a log entry: {error}"))
}

impl Store {
    /// Up to `limit` entries of a game's log after the one numbered `after`, in order.
    ///
    /// # Errors
    /// The database fails, or an entry cannot be read.
    pub async fn entries(&self, game: &Game, after: u32, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            r#"select number, version, seat, move as "mv: Json<Box<RawValue>>", events as "events: Json<Box<RawValue>>", at,
                      to_move_seat, due_at, remaining_ms
               from moves where game_id = $1 and number > $2 order by number limit $3"#,
            game.id,
            i32::try_from(after).unwrap_or(i32::MAX),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(|row| row.into_entry(game.ruleset)).collect()
    }

    /// One entry of a game's log.
    ///
    /// # Errors
    /// There is none of that number; the database fails; it cannot be read.
    pub async fn entry(&self, game: &Game, number: u32) -> Result<Entry, StoreError> {
        let Some(before) = number.checked_sub(1) else { return Err(StoreError::NotFound) };
        let entry = self.entries(game, before, 1).await?.into_iter().next();
        entry.filter(|entry| entry.number == number).ok_or(StoreError::NotFound)
    }

    /// The state after so many moves, replayed from the deal.
    ///
    /// # Errors
    /// The database fails, or the log cannot be replayed.
    pub async fn state_after(&self, game: &Game, number: u32) -> Result<AnyState, StoreError> {
        let mut connection = self.pool.acquire().await?;
        replayed(&mut connection, game, number).await
    }
}

/// As [`Store::state_after`], on a connection that the caller holds: one that waits for another could wait for itself.
pub(super) async fn replayed(connection: &mut PgConnection, game: &Game, number: u32) -> Result<AnyState, StoreError> {
    let rows = sqlx::query!(
        r#"select seat, move as "mv: Json<Box<RawValue>>" from moves
           where game_id = $1 and number <= $2 order by number"#,
        game.id,
        i32::try_from(number).unwrap_or(i32::MAX),
    )
    .fetch_all(connection)
    .await?;
    if rows.len() != number as usize {
        return Err(StoreError::Corrupt(format!("game {} has not all of its moves", game.id)));
    }
    let moves = rows.into_iter().map(|row| Ok((row.seat as Seat, read_move(game.ruleset, &row.mv)?)));
    let moves = moves.collect::<Result<Vec<(Seat, AnyMove)>, StoreError>>()?;
    replay(game, moves.iter().map(|(seat, mv)| (*seat, mv)))
        .map_err(|error| StoreError::Corrupt(format!("game {} does not replay: {error}", game.id)))
}
