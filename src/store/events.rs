//! The one log of everything visible that happens to a game: its moves and its other events, put together by version.

use std::collections::BTreeMap;

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::games::word;
use super::players::player;
use super::{Store, StoreError};
use crate::game::{EventKind, Facts, Game, Happening, LogRow, Occurrence, Place, Player, Summary};
use crate::rulesets::Seat;

/// Players by their ids.
pub type Names = BTreeMap<Uuid, Player>;

struct Row {
    version: i32,
    index: i16,
    r#type: String,
    seat: Option<i16>,
    player_id: Option<Uuid>,
    facts: Json<Facts>,
    at: OffsetDateTime,
}

impl Row {
    fn into_occurrence(self) -> Result<Occurrence, StoreError> {
        Ok(Occurrence {
            version: self.version as u32,
            index: self.index as u16,
            happening: Happening {
                kind: word("an event", &self.r#type, EventKind::parse)?,
                seat: self.seat.map(|seat| seat as Seat),
                player: self.player_id,
            },
            at: self.at,
            facts: self.facts.0,
        })
    }
}

impl Store {
    /// Up to `limit` rows of a game's log after a place, in order; from the first one on without a place. Nothing that is newer
    /// than the game as it is given: what of it the viewer may see was decided by that.
    ///
    /// # Errors
    /// The database fails, or a row cannot be read.
    pub async fn log_after(&self, game: &Game, place: Option<Place>, limit: u32) -> Result<Vec<LogRow>, StoreError> {
        let (version, index) = place.map_or((-1, i16::MAX), columns);
        let occurrences = sqlx::query_as!(
            Row,
            r#"select version, index, type, seat, player_id, facts as "facts: Json<Facts>", at
               from game_events
               where game_id = $1 and (version, index) > ($2, $3) and version <= $4
               order by version, index limit $5"#,
            game.id,
            version,
            index,
            game.version as i32,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let after = match place {
            Some(place) => self.moves_until_place(game, place).await?,
            None => 0,
        };
        let entries = self.entries(game, after, limit).await?;
        let mut rows: Vec<LogRow> = entries.into_iter().map(LogRow::Move).collect();
        for row in occurrences {
            rows.push(LogRow::Occurrence(row.into_occurrence()?));
        }
        rows.retain(|row| row.place().version <= game.version);
        rows.sort_by_key(LogRow::place);
        rows.truncate(limit as usize);
        Ok(rows)
    }

    /// How many moves had been played at a place of the log.
    async fn moves_until_place(&self, game: &Game, place: Place) -> Result<u32, StoreError> {
        // Every version since the last row that is no move is a move.
        Ok(self
            .facts_at(game.id, place)
            .await?
            .map_or(place.version, |(version, facts)| facts.moves_count() + place.version.saturating_sub(version)))
    }

    /// What was known of a game at a place of its log, with the version at which that was written.
    async fn facts_at(&self, game: Uuid, place: Place) -> Result<Option<(u32, Facts)>, StoreError> {
        let (version, index) = columns(place);
        let row = sqlx::query!(
            r#"select version, facts as "facts: Json<Facts>" from game_events
               where game_id = $1 and (version, index) <= ($2, $3)
               order by version desc, index desc limit 1"#,
            game,
            version,
            index,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| (row.version as u32, row.facts.0)))
    }

    /// What everybody knew of a game at a place of its log; none if the log does not go back so far.
    ///
    /// # Errors
    /// The database fails, or a row cannot be read.
    pub async fn summary_at(&self, game: &Game, place: Place) -> Result<Option<Summary>, StoreError> {
        let Some((version, facts)) = self.facts_at(game.id, place).await? else { return Ok(None) };
        let names = self.names(game, [&facts], []).await?;
        let moves = facts.moves_count() + place.version.saturating_sub(version);
        let summary = game.as_of_facts(facts, version, |id| names.get(&id).cloned());
        if place.version <= version || moves == 0 {
            return Ok(Some(summary));
        }
        let entry = self.entry(game, moves).await?;
        Ok(Some(summary.as_of_move(&entry)))
    }

    /// A game as it was at a place of its log, table included; none if the log does not go back so far.
    ///
    /// # Errors
    /// The database fails, or the log cannot be read or replayed.
    pub async fn game_at(&self, game: &Game, place: Place) -> Result<Option<Game>, StoreError> {
        if place.version > game.version {
            return Ok(None);
        }
        if place >= Place::after(game.version) {
            return Ok(Some(game.clone()));
        }
        let Some(summary) = self.summary_at(game, place).await? else { return Ok(None) };
        let state = match summary.started_at {
            Some(_) => Some(self.state_after(game, summary.moves_count).await?),
            None => None,
        };
        Ok(Some(game.as_of(summary, state)))
    }

    /// Who is named in rows of a game's log, in their facts and besides: most sit there still, the rest are looked up.
    ///
    /// # Errors
    /// The database fails.
    pub async fn names<'a>(
        &self,
        game: &Game,
        facts: impl IntoIterator<Item = &'a Facts>,
        others: impl IntoIterator<Item = Uuid>,
    ) -> Result<Names, StoreError> {
        let seated = game.seats.iter().map(|taken| &taken.player);
        let invited = game.invitations.iter().map(|kept| &kept.player);
        let mut names: Names = seated.chain(invited).map(|player| (player.id, player.clone())).collect();
        let mut missing: Vec<Uuid> = facts.into_iter().flat_map(Facts::players).chain(others).collect();
        missing.retain(|id| !names.contains_key(id));
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let rows = sqlx::query!("select id, name, kind from players where id = any($1)", &missing)
                .fetch_all(&self.pool)
                .await?;
            for row in rows {
                names.insert(row.id, player(row.id, row.name, &row.kind)?);
            }
        }
        Ok(names)
    }
}

fn columns(place: Place) -> (i32, i16) {
    (i32::try_from(place.version).unwrap_or(i32::MAX), i16::try_from(place.index).unwrap_or(i16::MAX))
}
