//! Writing a past in bulk (`copy`), for trials with a long history.

use serde::Serialize;
use sqlx::PgConnection;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Store, StoreError};
use crate::game::{Game, GameResult, LogRow, Player};

/// A game that is over, as it was played.
#[derive(Clone, Debug)]
pub struct Past {
    pub game: Game,
    /// All of its log, in order.
    pub log: Vec<LogRow>,
    /// Whether its moves are written; all else is in any case.
    pub has_moves: bool,
}

/// Rows of one table, as `copy` reads them (CSV).
struct Table {
    statement: &'static str,
    rows: csv::Writer<Vec<u8>>,
}

impl Table {
    fn new(statement: &'static str) -> Self {
        Self { statement, rows: csv::Writer::from_writer(Vec::new()) }
    }

    fn push<const N: usize>(&mut self, row: [String; N]) -> Result<(), StoreError> {
        self.rows.write_record(row).map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    async fn write(self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let rows = self.rows.into_inner().map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let mut copy = connection.copy_in_raw(self.statement).await?;
        copy.send(rows).await?;
        copy.finish().await?;
        Ok(())
    }
}

/// A value, or null, which is nothing.
fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn time(at: Option<OffsetDateTime>) -> String {
    at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}

fn json(value: &impl Serialize) -> String {
    // Our own types are plain data: writing them cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn bytes(bytes: &[u8]) -> String {
    format!("\\x{}", hex::encode(bytes))
}

impl Store {
    /// Makes these players, without tokens.
    ///
    /// # Errors
    /// One of the names or ids is taken; the database fails.
    pub async fn insert_players(&self, players: &[Player], at: OffsetDateTime) -> Result<(), StoreError> {
        let mut table = Table::new("copy players (id, name, name_key, kind, created_at) from stdin (format csv)");
        for player in players {
            let Player { id, name, kind } = player;
            table.push([id.to_string(), name.clone(), name.clone(), kind.as_str().into(), time(Some(at))])?;
        }
        table.write(&mut *self.pool.acquire().await?).await
    }

    /// Writes these games in one transaction.
    ///
    /// # Errors
    /// The database fails; nothing is written then.
    pub async fn insert_past(&self, games: &[Past]) -> Result<(), StoreError> {
        let mut of_games = Table::new(
            "copy games (id, ruleset, rules_version, options, seat_count, status, visibility, spectators, clock, rated, creator_id,
                         server_seed, outcome, created_at, started_at, finished_at, first_seat, end_reason, moves_count, last_move_at)
             from stdin (format csv)",
        );
        let mut of_positions = Table::new(
            "copy positions (game_id, version, moves_count, last_move_at, changed_at, snapshot) from stdin (format csv)",
        );
        let mut of_seats = Table::new(
            "copy seats (game_id, seat, player_id, entropy, status, left_at_version, wants_abort, result, over_at, finished_at, last_move_at)
             from stdin (format csv, force_not_null (entropy))",
        );
        let mut of_moves = Table::new(
            "copy moves (game_id, number, version, seat, move, events, at, to_move_seat, due_at) from stdin (format csv)",
        );
        let mut of_events = Table::new(
            "copy game_events (game_id, version, index, type, seat, player_id, facts, at) from stdin (format csv)",
        );
        for Past { game, log, has_moves } in games {
            let id = game.id.to_string();
            // In a log every move comes after the start, and the first is by who was to move then.
            let first_seat =
                log.iter().find_map(|row| if let LogRow::Move(entry) = row { Some(entry.seat) } else { None });
            of_games.push([
                id.clone(),
                game.ruleset.meta().slug.into(),
                game.rules_version.to_string(),
                json(&game.options),
                game.seat_count.to_string(),
                game.status.as_str().into(),
                game.visibility.as_str().into(),
                game.spectators.as_str().into(),
                text(game.clock.as_ref().map(json)),
                game.rated.to_string(),
                game.creator.to_string(),
                bytes(&game.server_seed.0),
                text(game.outcome.as_ref().map(json)),
                time(Some(game.created_at)),
                time(game.started_at),
                time(game.finished_at),
                text(first_seat.filter(|_| game.started_at.is_some())),
                text(game.outcome.as_ref().map(|outcome| outcome.reason.as_str())),
                game.moves_count.to_string(),
                time(game.last_move_at),
            ])?;
            of_positions.push([
                id.clone(),
                game.version.to_string(),
                game.moves_count.to_string(),
                time(game.last_move_at),
                time(game.finished_at),
                text(game.state.as_ref().map(|state| bytes(&state.snapshot()))),
            ])?;
            for taken in &game.seats {
                of_seats.push([
                    id.clone(),
                    taken.seat.to_string(),
                    taken.player.id.to_string(),
                    taken.entropy.as_str().into(),
                    taken.status.as_str().into(),
                    text(taken.left_at_version),
                    taken.wants_abort.to_string(),
                    text(game.result_of(taken.seat).map(GameResult::as_str)),
                    time(game.finished_at),
                    time(game.finished_at),
                    time(game.last_move_at),
                ])?;
            }
            for row in log {
                match row {
                    LogRow::Move(entry) if *has_moves => of_moves.push([
                        id.clone(),
                        entry.number.to_string(),
                        entry.version.to_string(),
                        entry.seat.to_string(),
                        json(&entry.mv),
                        json(&entry.events),
                        time(Some(entry.at)),
                        text(entry.to_move),
                        time(entry.due_at),
                    ])?,
                    LogRow::Move(_) => {}
                    LogRow::Occurrence(row) => of_events.push([
                        id.clone(),
                        row.version.to_string(),
                        row.index.to_string(),
                        row.happening.kind.as_str().into(),
                        text(row.happening.seat),
                        text(row.happening.player),
                        json(&row.facts),
                        time(Some(row.at)),
                    ])?,
                }
            }
        }
        let mut transaction = self.pool.begin().await?;
        for table in [of_games, of_positions, of_seats, of_moves, of_events] {
            table.write(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Has the database take stock of what tables hold, as it does by itself after a while.
    ///
    /// # Errors
    /// The database fails.
    pub async fn analyze(&self) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        // It may take longer than a request may.
        for statement in [
            "set statement_timeout = 0",
            "vacuum (analyze) games, seats, positions, moves, game_events, players, ratings, rating_changes, player_statistics, \
             opponent_statistics",
            "set statement_timeout = '20s'",
        ] {
            sqlx::raw_sql(statement).execute(&mut *connection).await?;
        }
        Ok(())
    }
}
