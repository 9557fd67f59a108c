//! Commands: creating a game and changing it, each in one atomic step that is guarded by the version.

use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{Connection, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::violated;
use super::games::{Access, INVITED, Loaded};
use super::idempotency::{self, Answer, KEY_CONSTRAINT, Repeat};
use super::{IdempotencyKey, Scope, Store, StoreError, ratings};
use crate::game::{
    Change, Command, Entry, EventKind, Game, GameError, GameResult, NewGame, Notice, Player, Status, Summary,
};

/// How often a command is judged anew when other changes of the game come first.
pub(super) const ATTEMPTS: u32 = 64;

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

/// What became of the wish for a rematch.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one lives at a time: a box would only cost")]
pub enum Rematch {
    /// It was created, or had been under the same key.
    Created(Created),
    /// Another player has created it: this is its id.
    Exists(Uuid),
}

/// Whom to tell, as columns.
struct Notices {
    players: Vec<Uuid>,
    kinds: Vec<&'static str>,
    seats: Vec<Option<i16>>,
}

impl Notices {
    fn of(game: &Game, change: &Change) -> Self {
        let mut columns = Self { players: Vec::new(), kinds: Vec::new(), seats: Vec::new() };
        for Notice { player, kind, seat } in game.notices(change) {
            columns.players.push(player);
            columns.kinds.push(kind.as_str());
            columns.seats.push(seat.map(i16::from));
        }
        columns
    }
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
        let (game, change) = make(now)?;
        insert_game(&mut transaction, &game, &change).await?;
        let answer = answer(&game, creator);
        if let Some(key) = key {
            idempotency::keep(&mut transaction, creator.id, key, &answer).await?;
        }
        transaction.commit().await?;
        self.announce(&game, &change);
        Ok(answer)
    }

    /// Creates the game that follows another, once: whoever comes second is told of it. `new` makes it, given the time.
    ///
    /// # Errors
    /// As for [`Store::update_game`].
    pub async fn create_rematch(
        &self,
        id: Uuid,
        access: &Access,
        key: Option<&IdempotencyKey>,
        new: impl Fn(OffsetDateTime) -> (NewGame, OffsetDateTime),
        answer: impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Rematch, StoreError> {
        for _ in 0..ATTEMPTS {
            let Loaded { caller, mut game, repeat, now, .. } = self.load_game(id, access, Scope::Play, key).await?;
            let caller = caller.ok_or(StoreError::Unauthenticated)?;
            match repeat {
                Some(Repeat::Answer(answer)) => return Ok(Rematch::Created(Created { answer, repeated: true })),
                Some(Repeat::Move { .. }) => return Err(StoreError::KeyReused),
                None => {}
            }
            if game.seat_of(caller.id).is_none() {
                return Err(GameError::NotSeated.into());
            }
            if let Some(next) = game.rematch {
                return Ok(Rematch::Exists(next));
            }
            let version = game.version;
            let (new, expires_at) = new(now);
            let (next, of_next, of_old) = game.create_rematch(new, &caller, expires_at)?;
            let mut transaction = self.pool.begin().await?;
            if !write_position(&mut transaction, &game, version, &of_old).await? {
                continue;
            }
            sqlx::query!("update games set rematch_id = $2 where id = $1", game.id, game.rematch)
                .execute(&mut *transaction)
                .await?;
            sqlx::query!("update seats set over_at = $2 where game_id = $1", game.id, now)
                .execute(&mut *transaction)
                .await?;
            write_happenings(&mut transaction, &game, &of_old).await?;
            insert_game(&mut transaction, &next, &of_next).await?;
            let answer = answer(&next, &caller);
            if let Some(key) = key
                && let Err(error) = idempotency::keep(&mut transaction, caller.id, key, &answer).await
            {
                // What follows asks for a connection of its own.
                transaction.rollback().await?;
                self.after_failure(error, Some((caller.id, key))).await?;
                continue;
            }
            transaction.commit().await?;
            self.announce(&game, &of_old);
            self.announce(&next, &of_next);
            return Ok(Rematch::Created(Created { answer, repeated: false }));
        }
        Err(StoreError::Contended)
    }

    /// Has a game handle a command and writes what changed, all or nothing. A command that loses the race against another
    /// change is judged anew on the new state; with `expected` it is refused unless the game has that version.
    ///
    /// # Errors
    /// An unknown token or none, one without the scope `play`, an unknown game, another version, the game's refusal, a key that was used for another
    /// request; the database fails.
    pub async fn update_game(
        &self,
        id: Uuid,
        access: &Access,
        expected: Option<u32>,
        key: Option<&IdempotencyKey>,
        command: &Command<'_>,
        answer: impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Updated, StoreError> {
        for _ in 0..ATTEMPTS {
            let Loaded { caller, mut game, repeat, now, clock_time } =
                self.load_game(id, access, Scope::Play, key).await?;
            let caller = caller.ok_or(StoreError::Unauthenticated)?;
            if let Some(repeat) = repeat {
                return Ok(Updated::Repeated { caller, repeat });
            }
            // A deadline that has passed counts, also if no sweeper has come by yet.
            if game.player_to_move().is_some() && game.due_at.is_some_and(|due| due <= clock_time) {
                let mut connection = self.pool.acquire().await?;
                let loaded = Loaded { caller: None, game, repeat: None, now, clock_time };
                if let Some((game, change)) = self.attend(&mut connection, loaded, 0).await? {
                    self.announce(&game, &change);
                }
                continue;
            }
            let version = game.version;
            if expected.is_some_and(|expected| expected != version) {
                return Err(StoreError::Stale { current: version });
            }
            let change = game.handle(command.clone(), &caller, now)?;
            if change.is_empty() {
                return Ok(Updated::Done { caller, game, entry: None, answer: None });
            }
            let key = key.map(|key| (caller.id, key));
            let mut connection = self.pool.acquire().await?;
            let written = match &change.entry {
                Some(entry) => {
                    let done = write_entry(&mut connection, &game, version, entry, &change, key).await;
                    done.map(|done| done.then_some(None))
                }
                None => {
                    let answer = || Some(answer(&game, &caller));
                    self.write_change(&mut connection, &game, version, &change, key, answer).await
                }
            };
            drop(connection);
            match written {
                Ok(Some(answer)) => {
                    self.announce(&game, &change);
                    return Ok(Updated::Done { caller, game, entry: change.entry, answer });
                }
                // Another change came first.
                Ok(None) => {}
                Err(error) => self.after_failure(error, key).await?,
            }
        }
        Err(StoreError::Contended)
    }

    /// What to do about a statement that failed: a command is judged anew if its key was just used, or long ago.
    async fn after_failure(&self, error: sqlx::Error, key: Option<(Uuid, &IdempotencyKey)>) -> Result<(), StoreError> {
        match key {
            Some((player, key)) if violated(&error) == Some(KEY_CONSTRAINT) => {
                Ok(idempotency::forget_expired(&self.pool, player, key).await?)
            }
            // A webhook that was to be told has just been deleted, with its account.
            _ if violated(&error) == Some("webhook_deliveries_webhook_fkey") => Ok(()),
            _ => Err(error.into()),
        }
    }

    /// Does what the server has to do of itself in a game, if that is due; answers the game and what changed, which is to be
    /// announced once it is committed. `choice` is any number, which picks the move of a bot.
    ///
    /// # Errors
    /// The database fails.
    pub(super) async fn attend(
        &self,
        connection: &mut PgConnection,
        loaded: Loaded,
        choice: u64,
    ) -> Result<Option<(Game, Change)>, StoreError> {
        let Loaded { mut game, now, clock_time, .. } = loaded;
        let version = game.version;
        if game.due_at.is_none_or(|due| due > clock_time) {
            return Ok(None);
        }
        let Some(change) = game.attend(now, choice)? else { return Ok(None) };
        let written = match &change.entry {
            Some(entry) => write_entry(connection, &game, version, entry, &change, None).await?,
            None => self.write_change(connection, &game, version, &change, None, || None).await?.is_some(),
        };
        Ok(written.then_some((game, change)))
    }

    /// Writes any other change in one transaction; none if the version has moved on.
    pub(super) async fn write_change(
        &self,
        connection: &mut PgConnection,
        game: &Game,
        version: u32,
        change: &Change,
        key: Option<(Uuid, &IdempotencyKey)>,
        answer: impl FnOnce() -> Option<Answer>,
    ) -> Result<Option<Option<Answer>>, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        if !write_position(&mut transaction, game, version, change).await? {
            return Ok(None);
        }
        if game.status == Status::Finished {
            // If it finishes now: its invite code, say, can change later.
            sqlx::query!(
                "insert into uncounted_games (game_id) select id from games where id = $1 and status <> 'finished'",
                game.id,
            )
            .execute(&mut *transaction)
            .await?;
        }
        sqlx::query!(
            "update games
             set options = $2, seat_count = $3, status = $4, creator_id = $5, outcome = $6, started_at = $7, finished_at = $8,
                 invite = $9, open_options = $10, first_seat = coalesce(first_seat, $11), end_reason = $12, moves_count = $13,
                 last_move_at = $14
             where id = $1",
            game.id,
            Json(&game.options) as _,
            i16::from(game.seat_count),
            game.status.as_str(),
            game.creator,
            game.outcome.as_ref().map(Json) as _,
            game.started_at,
            game.finished_at,
            game.invite.as_ref().map(|invite| &invite.0),
            open_options(game).map(Json) as _,
            first_seat(game),
            game.outcome.as_ref().map(|outcome| outcome.reason.as_str()),
            game.is_over().then_some(game.moves_count as i32),
            game.last_move_at.filter(|_| game.is_over()),
        )
        .execute(&mut *transaction)
        .await?;
        // The few seats are written anew: a start can renumber them.
        sqlx::query!("delete from seats where game_id = $1", game.id).execute(&mut *transaction).await?;
        insert_seats(&mut transaction, game, change).await?;
        write_happenings(&mut transaction, game, change).await?;
        // Not whatever may come after the end.
        if change.happenings.iter().any(|happening| happening.kind == EventKind::GameFinished) {
            ratings::count(&mut transaction, game, change.at).await?;
        }
        let answer = answer();
        if let (Some((player, key)), Some(answer)) = (key, &answer) {
            idempotency::keep(&mut transaction, player, key, answer).await?;
        }
        transaction.commit().await?;
        Ok(Some(answer))
    }
}

/// Writes a move; with it, if it ends a rated game, what that does to ratings. All other moves are one statement and no more.
async fn write_entry(
    connection: &mut PgConnection,
    game: &Game,
    version: u32,
    entry: &Entry,
    change: &Change,
    key: Option<(Uuid, &IdempotencyKey)>,
) -> Result<bool, sqlx::Error> {
    if !ratings::counts(game) {
        return write_move(connection, game, version, entry, change, key).await;
    }
    let mut transaction = connection.begin().await?;
    let written = write_move(&mut transaction, game, version, entry, change, key).await?;
    if written {
        ratings::count(&mut transaction, game, change.at).await?;
    }
    transaction.commit().await?;
    Ok(written)
}

/// The one statement that writes a move: position, log, outcome, key and what is to be told, or nothing (false) if the
/// version has moved on.
async fn write_move(
    connection: &mut PgConnection,
    game: &Game,
    version: u32,
    entry: &Entry,
    change: &Change,
    key: Option<(Uuid, &IdempotencyKey)>,
) -> Result<bool, sqlx::Error> {
    let notices = Notices::of(game, change);
    let seats: Vec<i16> = game.seats.iter().map(|taken| i16::from(taken.seat)).collect();
    let results = results(game);
    let written = sqlx::query_scalar!(
        r#"with written as (
            update positions
            set version = $3, moves_count = $4, last_move_at = $7, to_move_seat = $5, to_move_player_id = $6, changed_at = $7,
                to_move_since = $8, due_at = $9, remaining_ms = $10, snapshot = $11, xid = pg_current_xact_id()
            where game_id = $1 and version = $2
            returning game_id
        ), ended as (
            update games
            set status = 'finished', outcome = $12, finished_at = $7, end_reason = $24, moves_count = $4, last_move_at = $7
            from written
            where $12::jsonb is not null and id = game_id
        ), uncounted as (
            insert into uncounted_games (game_id) select game_id from written where $12::jsonb is not null
        ), closed as (
            update seats s set over_at = $7, finished_at = $7, last_move_at = $7, result = r.result
            from written, unnest($25::smallint[], $26::text[]) as r (seat, result)
            where $12::jsonb is not null and s.game_id = written.game_id and s.seat = r.seat
        ), told as (
            insert into game_events (game_id, version, index, type, facts, at)
            select game_id, $3, 1, 'game_finished', $13, $7 from written where $12::jsonb is not null
        ), logged as (
            insert into moves (game_id, number, version, seat, move, events, at, to_move_seat, due_at, remaining_ms)
            select game_id, $4, $3, $14, $15, $16, $7, $5, $9, $10 from written
        ), queued as (
            insert into webhook_deliveries (webhook_id, type, game_id, version, seat, deadline)
            select w.id, n.type, game_id, $3, n.seat, case when n.type = 'your_turn' then $20::timestamptz end
            from written
            cross join unnest($17::uuid[], $18::text[], $19::smallint[]) as n (player_id, type, seat)
            join webhooks w on w.player_id = n.player_id and w.disabled_at is null
        ), kept as (
            insert into idempotency_keys (player_id, key_hash, request_hash, game_id, move_number)
            select $21, $22, $23, game_id, $4 from written where $22::bytea is not null
        )
        select game_id from written"#,
        game.id,
        version as i32,
        game.version as i32,
        game.moves_count as i32,
        game.to_move.map(i16::from),
        game.player_to_move().map(|player| player.id),
        entry.at,
        game.to_move_since,
        game.due_at,
        game.remaining_ms.as_deref(),
        game.state.as_ref().map(|state| state.snapshot()),
        game.outcome.as_ref().map(Json) as _,
        game.outcome.is_some().then(|| Json(game.facts())) as _,
        i16::from(entry.seat),
        Json(&entry.mv) as _,
        Json(&entry.events) as _,
        &notices.players,
        &notices.kinds as _,
        &notices.seats as _,
        game.deadline(),
        key.map(|(player, _)| player),
        key.map(|(_, key)| &key.hash[..]),
        key.map(|(_, key)| &key.request_hash[..]),
        game.outcome.as_ref().map(|outcome| outcome.reason.as_str()),
        &seats,
        &results as _,
    )
    .fetch_optional(connection)
    .await?;
    Ok(written.is_some())
}

/// Writes where a game stands, unless its version is another than before the change.
async fn write_position(
    transaction: &mut PgConnection,
    game: &Game,
    version: u32,
    change: &Change,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        "update positions
         set version = $3, to_move_seat = $4, to_move_player_id = $5, changed_at = $6, to_move_since = $7, due_at = $8,
             remaining_ms = $9, snapshot = $10, xid = pg_current_xact_id()
         where game_id = $1 and version = $2",
        game.id,
        version as i32,
        game.version as i32,
        game.to_move.map(i16::from),
        game.player_to_move().map(|player| player.id),
        change.at,
        game.to_move_since,
        game.due_at,
        game.remaining_ms.as_deref(),
        game.state.as_ref().map(|state| state.snapshot()),
    )
    .execute(transaction)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Writes what happened into the log, and what is to be told into the queue of the webhooks.
async fn write_happenings(transaction: &mut PgConnection, game: &Game, change: &Change) -> Result<(), sqlx::Error> {
    let kinds: Vec<&str> = change.happenings.iter().map(|happening| happening.kind.as_str()).collect();
    let seats: Vec<Option<i16>> = change.happenings.iter().map(|happening| happening.seat.map(i16::from)).collect();
    let players: Vec<Option<Uuid>> = change.happenings.iter().map(|happening| happening.player).collect();
    let notices = Notices::of(game, change);
    sqlx::query!(
        "with told as (
            insert into game_events (game_id, version, index, type, seat, player_id, facts, at)
            select $1, $2, (place - 1)::smallint, type, seat, player_id, $6, $7
            from unnest($3::text[], $4::smallint[], $5::uuid[]) with ordinality as n (type, seat, player_id, place)
         )
         insert into webhook_deliveries (webhook_id, type, game_id, version, seat, deadline)
         select w.id, n.type, $1, $2, n.seat, case when n.type = 'your_turn' then $11::timestamptz end
         from unnest($8::uuid[], $9::text[], $10::smallint[]) as n (player_id, type, seat)
         join webhooks w on w.player_id = n.player_id and w.disabled_at is null",
        game.id,
        game.version as i32,
        &kinds as _,
        &seats as _,
        &players as _,
        Json(game.facts()) as _,
        change.at,
        &notices.players,
        &notices.kinds as _,
        &notices.seats as _,
        game.deadline(),
    )
    .execute(transaction)
    .await?;
    Ok(())
}

/// How a finished game went for each of its taken seats, in their order.
fn results(game: &Summary) -> Vec<Option<&'static str>> {
    game.seats.iter().map(|taken| game.result_of(taken.seat).map(GameResult::as_str)).collect()
}

/// The options of a game that has not started as they would be in force, by which lists find it.
fn open_options(game: &Summary) -> Option<Map<String, Value>> {
    let options = game.ruleset.options(&game.options, game.seat_count).ok();
    options.filter(|_| game.started_at.is_none()).map(|options| options.to_json())
}

/// Who moves first, in a game that was just dealt.
fn first_seat(game: &Summary) -> Option<i16> {
    game.to_move.filter(|_| game.moves_count == 0).map(i16::from)
}

async fn insert_game(transaction: &mut PgConnection, game: &Game, change: &Change) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into games (id, ruleset, rules_version, options, seat_count, status, visibility, spectators, clock, invite,
                            creator_id, server_seed, outcome, created_at, started_at, finished_at, rated, open_options, first_seat)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
        game.id,
        game.ruleset.meta().slug,
        game.rules_version as i32,
        Json(&game.options) as _,
        i16::from(game.seat_count),
        game.status.as_str(),
        game.visibility.as_str(),
        game.spectators.as_str(),
        game.clock.map(Json) as _,
        game.invite.as_ref().map(|invite| &invite.0),
        game.creator,
        &game.server_seed.0[..],
        game.outcome.as_ref().map(Json) as _,
        game.created_at,
        game.started_at,
        game.finished_at,
        game.rated,
        open_options(game).map(Json) as _,
        first_seat(game),
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "insert into positions (game_id, version, moves_count, to_move_seat, to_move_player_id, changed_at, to_move_since,
                                due_at, remaining_ms, snapshot)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        game.id,
        game.version as i32,
        game.moves_count as i32,
        game.to_move.map(i16::from),
        game.player_to_move().map(|player| player.id),
        change.at,
        game.to_move_since,
        game.due_at,
        game.remaining_ms.as_deref(),
        game.state.as_ref().map(|state| state.snapshot()),
    )
    .execute(&mut *transaction)
    .await?;
    insert_seats(transaction, game, change).await?;
    write_happenings(transaction, game, change).await
}

/// A row of `seats` for everybody who sits, and for everybody for whom a seat is kept.
async fn insert_seats(transaction: &mut PgConnection, game: &Summary, change: &Change) -> Result<(), sqlx::Error> {
    let (taken, kept) = (&game.seats, &game.invitations);
    let seats = taken.iter().map(|taken| taken.seat).chain(kept.iter().map(|kept| kept.seat));
    let seats: Vec<i16> = seats.map(i16::from).collect();
    let players = taken.iter().map(|taken| taken.player.id).chain(kept.iter().map(|kept| kept.player.id));
    let players: Vec<Uuid> = players.collect();
    let entropies: Vec<&str> =
        taken.iter().map(|taken| taken.entropy.as_str()).chain(kept.iter().map(|_| "")).collect();
    let statuses: Vec<&str> =
        taken.iter().map(|taken| taken.status.as_str()).chain(kept.iter().map(|_| INVITED)).collect();
    let left = taken.iter().map(|taken| taken.left_at_version.map(|version| version as i32));
    let left: Vec<Option<i32>> = left.chain(kept.iter().map(|_| None)).collect();
    let want_aborts: Vec<bool> =
        taken.iter().map(|taken| taken.wants_abort).chain(kept.iter().map(|_| false)).collect();
    let expire_ats = taken.iter().map(|_| None).chain(kept.iter().map(|kept| Some(kept.expires_at)));
    let expire_ats: Vec<Option<OffsetDateTime>> = expire_ats.collect();
    let mut results = results(game);
    results.resize(seats.len(), None);
    sqlx::query!(
        "insert into seats (game_id, seat, player_id, entropy, status, left_at_version, wants_abort, expires_at, result, over_at,
                            finished_at, last_move_at)
         select $1, seat, player_id, entropy, status, left_at_version, wants_abort, expires_at, result, $10, $12, $11
         from unnest($2::smallint[], $3::uuid[], $4::text[], $5::text[], $6::integer[], $7::boolean[], $8::timestamptz[], $9::text[])
             as rows (seat, player_id, entropy, status, left_at_version, wants_abort, expires_at, result)",
        game.id,
        &seats,
        &players,
        &entropies as _,
        &statuses as _,
        &left as _,
        &want_aborts,
        &expire_ats as _,
        &results as _,
        game.is_over().then_some(change.at),
        game.last_move_at.filter(|_| game.is_over()),
        // Not the time of the change: there can be one after the end.
        game.finished_at,
    )
    .execute(transaction)
    .await?;
    Ok(())
}
