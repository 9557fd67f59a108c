//! Commands: creating a game and changing it, each in one atomic step that is guarded by the version.

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::violated;
use super::games::Loaded;
use super::idempotency::{self, Answer, KEY_CONSTRAINT, Repeat};
use super::{IdempotencyKey, Store, StoreError, TokenHash};
use crate::game::{Change, Command, Entry, Game, GameError, Player};

/// How often a command is judged anew when other changes of the game come first.
const ATTEMPTS: u32 = 64;

/// What became of a command.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one lives at a time: a box would only cost")]
pub enum Updated {
    /// It was carried out; the game is as it is now.
    Done { caller: Player, game: Game, entry: Option<Entry>, answer: Option<Answer> },
    /// It had been carried out before, under the same key.
    Repeated { caller: Player, repeat: Repeat },
}

/// The answer to whoever created a game, and whether it is that to an earlier request under the same key.
#[derive(Clone, Debug)]
pub struct Created {
    pub answer: Answer,
    pub repeated: bool,
}

impl Store {
    /// Keeps a new game. `answer` makes the answer to whoever created it, which a key keeps.
    ///
    /// # Errors
    /// The key was used for another request; the database fails.
    pub async fn create_game(
        &self,
        make: impl Fn(OffsetDateTime) -> Result<(Game, Change), GameError>,
        creator: &Player,
        key: Option<&IdempotencyKey>,
        answer: impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Created, StoreError> {
        for _ in 0..2 {
            if let Some(key) = key
                && let Some(Repeat::Answer(answer)) = idempotency::find(&self.pool, creator.id, key).await?
            {
                return Ok(Created { answer, repeated: true });
            }
            match self.try_create_game(&make, creator, key, &answer).await {
                Err(StoreError::Database(error)) if violated(&error) == Some(KEY_CONSTRAINT) => {
                    if let Some(key) = key {
                        idempotency::forget_expired(&self.pool, creator.id, key).await?;
                    }
                }
                done => return done.map(|answer| Created { answer, repeated: false }),
            }
        }
        Err(StoreError::Contended)
    }

    async fn try_create_game(
        &self,
        make: &impl Fn(OffsetDateTime) -> Result<(Game, Change), GameError>,
        creator: &Player,
        key: Option<&IdempotencyKey>,
        answer: &impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Answer, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let now = sqlx::query_scalar!(r#"select now() as "now!""#).fetch_one(&mut *transaction).await?;
        let (mut game, change) = make(now)?;
        game.stamp(&change, now);
        sqlx::query!(
            "insert into games (id, ruleset, rules_version, options, seat_count, status, creator_id, server_seed, outcome,
                                created_at, started_at, finished_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            game.id,
            game.ruleset.meta().slug,
            game.rules_version as i32,
            Json(&game.options) as _,
            i16::from(game.seat_count),
            game.status.as_str(),
            game.creator,
            &game.server_seed.0[..],
            game.outcome.as_ref().map(Json) as _,
            game.created_at,
            game.started_at,
            game.finished_at,
        )
        .execute(&mut *transaction)
        .await?;
        sqlx::query!(
            "insert into positions (game_id, version, moves_count, to_move_seat, to_move_player_id, changed_at, snapshot)
             values ($1, $2, $3, $4, $5, $6, $7)",
            game.id,
            game.version as i32,
            game.moves_count as i32,
            game.to_move().map(i16::from),
            game.player_to_move().map(|player| player.id),
            now,
            game.state.as_ref().map(|state| state.snapshot()),
        )
        .execute(&mut *transaction)
        .await?;
        insert_seats(&mut transaction, &game).await?;
        let answer = answer(&game, creator);
        if let Some(key) = key {
            idempotency::keep(&mut transaction, creator.id, key, &answer).await?;
        }
        transaction.commit().await?;
        Ok(answer)
    }

    /// Has a game handle a command and writes what changed, all or nothing. A command that loses the race against another
    /// change is judged anew on the new state; with `expected` it is refused unless the game has that version.
    ///
    /// # Errors
    /// An unknown token or none, an unknown game, another version, the game's refusal, a key that was used for another
    /// request; the database fails.
    pub async fn update_game(
        &self,
        id: Uuid,
        token: Option<&TokenHash>,
        expected: Option<u32>,
        key: Option<&IdempotencyKey>,
        command: &Command<'_>,
        answer: impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Updated, StoreError> {
        for _ in 0..ATTEMPTS {
            let Loaded { caller, mut game, repeat } = self.load_game(id, token, key).await?;
            let caller = caller.ok_or(StoreError::Unauthenticated)?;
            if let Some(repeat) = repeat {
                return Ok(Updated::Repeated { caller, repeat });
            }
            let version = game.version;
            if expected.is_some_and(|expected| expected != version) {
                return Err(StoreError::Stale { current: version });
            }
            let mut change = game.handle(command.clone(), &caller)?;
            let key = key.map(|key| (caller.id, key));
            let written = match change.entry.as_mut() {
                Some(entry) => self.write_move(&mut game, version, entry, key).await.map(|done| done.then_some(None)),
                None => self.write_change(&mut game, version, &change, key, &caller, &answer).await,
            };
            match written {
                Ok(Some(answer)) => return Ok(Updated::Done { caller, game, entry: change.entry, answer }),
                // Another change came first.
                Ok(None) => {}
                Err(error) if violated(&error) == Some(KEY_CONSTRAINT) => {
                    if let Some((player, key)) = key {
                        idempotency::forget_expired(&self.pool, player, key).await?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Contended)
    }

    /// The one statement that writes a move: position, log, outcome and key, or nothing (false) if the version has moved on.
    async fn write_move(
        &self,
        game: &mut Game,
        version: u32,
        entry: &mut Entry,
        key: Option<(Uuid, &IdempotencyKey)>,
    ) -> Result<bool, sqlx::Error> {
        let at = sqlx::query_scalar!(
            r#"with written as (
                update positions
                set version = $3, moves_count = $4, to_move_seat = $5, to_move_player_id = $6, changed_at = greatest(now(), changed_at),
                    snapshot = $7
                where game_id = $1 and version = $2
                returning game_id, changed_at
            ), ended as (
                update games set status = 'finished', outcome = $8, finished_at = changed_at
                from written
                where $8::jsonb is not null and id = game_id
            ), logged as (
                insert into moves (game_id, number, version, seat, move, events, at)
                select game_id, $4, $3, $9, $10, $11, changed_at from written
            ), kept as (
                insert into idempotency_keys (player_id, key_hash, request_hash, game_id, move_number)
                select $12, $13, $14, game_id, $4 from written where $13::bytea is not null
            )
            select changed_at from written"#,
            game.id,
            version as i32,
            game.version as i32,
            game.moves_count as i32,
            game.to_move().map(i16::from),
            game.player_to_move().map(|player| player.id),
            game.state.as_ref().map(|state| state.snapshot()),
            game.outcome.as_ref().map(Json) as _,
            i16::from(entry.seat),
            Json(&entry.mv) as _,
            Json(&entry.events) as _,
            key.map(|(player, _)| player),
            key.map(|(_, key)| &key.hash[..]),
            key.map(|(_, key)| &key.request_hash[..]),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(at) = at else { return Ok(false) };
        entry.at = at;
        let change = Change { started: false, ended: game.outcome.is_some(), entry: Some(entry.clone()) };
        game.stamp(&change, at);
        Ok(true)
    }

    /// Writes any other change in one transaction; none if the version has moved on.
    async fn write_change(
        &self,
        game: &mut Game,
        version: u32,
        change: &Change,
        key: Option<(Uuid, &IdempotencyKey)>,
        caller: &Player,
        answer: &impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Option<Option<Answer>>, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        let changed_at = sqlx::query_scalar!(
            "update positions
             set version = $3, to_move_seat = $4, to_move_player_id = $5, changed_at = greatest(now(), changed_at), snapshot = $6
             where game_id = $1 and version = $2
             returning changed_at",
            game.id,
            version as i32,
            game.version as i32,
            game.to_move().map(i16::from),
            game.player_to_move().map(|player| player.id),
            game.state.as_ref().map(|state| state.snapshot()),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(changed_at) = changed_at else { return Ok(None) };
        game.stamp(change, changed_at);
        sqlx::query!(
            "update games
             set options = $2, seat_count = $3, status = $4, creator_id = $5, outcome = $6, started_at = $7, finished_at = $8
             where id = $1",
            game.id,
            Json(&game.options) as _,
            i16::from(game.seat_count),
            game.status.as_str(),
            game.creator,
            game.outcome.as_ref().map(Json) as _,
            game.started_at,
            game.finished_at,
        )
        .execute(&mut *transaction)
        .await?;
        // The few seats are written anew: a start can renumber them.
        sqlx::query!("delete from seats where game_id = $1", game.id).execute(&mut *transaction).await?;
        insert_seats(&mut transaction, game).await?;
        let answer = answer(game, caller);
        if let Some((player, key)) = key {
            idempotency::keep(&mut transaction, player, key, &answer).await?;
        }
        transaction.commit().await?;
        Ok(Some(Some(answer)))
    }
}

async fn insert_seats(transaction: &mut sqlx::PgConnection, game: &Game) -> Result<(), sqlx::Error> {
    let seats: Vec<i16> = game.seats.iter().map(|taken| i16::from(taken.seat)).collect();
    let players: Vec<Uuid> = game.seats.iter().map(|taken| taken.player.id).collect();
    let entropies: Vec<&str> = game.seats.iter().map(|taken| taken.entropy.as_str()).collect();
    let statuses: Vec<&str> = game.seats.iter().map(|taken| taken.status.as_str()).collect();
    sqlx::query!(
        "insert into seats (game_id, seat, player_id, entropy, status)
         select $1, seat, player_id, entropy, status
         from unnest($2::smallint[], $3::uuid[], $4::text[], $5::text[]) as rows (seat, player_id, entropy, status)",
        game.id,
        &seats,
        &players,
        &entropies as _,
        &statuses as _,
    )
    .execute(transaction)
    .await?;
    Ok(())
}
