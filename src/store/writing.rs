//! What commands write: statements of whole games and of single moves, all guarded by the version that was read.

use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{Connection, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use super::games::INVITED;
use super::idempotency::{self, Answer};
use super::{IdempotencyKey, ratings};
use crate::game::{Change, Entry, EventKind, Game, GameResult, Notice, Status, Summary};

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

/// Writes any other change in one transaction; none if the version has moved on.
pub(super) async fn write_change(
    connection: &mut PgConnection,
    game: &Game,
    version: u32,
    change: &Change,
    key: Option<(Uuid, &IdempotencyKey)>,
    answer: impl FnOnce() -> Option<Answer>,
) -> Result<Option<Option<Answer>>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    if !write_position(&mut transaction, game, version, change).await? {
        transaction.rollback().await?;
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

/// Writes a move; with it, if it ends the game, what that means. All other moves are one statement, and commit by themselves.
pub(super) async fn write_entry(
    connection: &mut PgConnection,
    game: &Game,
    version: u32,
    entry: &Entry,
    change: &Change,
    key: Option<(Uuid, &IdempotencyKey)>,
) -> Result<bool, sqlx::Error> {
    if game.outcome.is_none() {
        write_move(connection, game, version, entry, change, key).await
    } else {
        let last = async move {
            let mut transaction = connection.begin().await?;
            if !write_move(&mut transaction, game, version, entry, change, key).await? {
                transaction.rollback().await?;
                return Ok(false);
            }
            write_end(&mut transaction, game, entry.at).await?;
            if ratings::counts(game) {
                ratings::count(&mut transaction, game, change.at).await?;
            }
            transaction.commit().await?;
            Ok(true)
        };
        // Behind a pointer: other moves are without room for it.
        Box::pin(last).await
    }
}

/// The one statement that writes a move: position, log, key and what is to be told, or nothing (false) if the version has
/// moved on.
async fn write_move(
    connection: &mut PgConnection,
    game: &Game,
    version: u32,
    entry: &Entry,
    change: &Change,
    key: Option<(Uuid, &IdempotencyKey)>,
) -> Result<bool, sqlx::Error> {
    let notices = Notices::of(game, change);
    let written = sqlx::query_scalar!(
        r#"with written as (
            update positions
            set version = $3, moves_count = $4, last_move_at = $6, to_move_seat = $5, changed_at = $6, to_move_since = $7, due_at = $8,
                check_at = case when $8::timestamptz is not null and check_at > $6 then least(check_at, $8) else $8 end, remaining_ms = $9,
                snapshot = $10, xid = pg_current_xact_id()
            where game_id = $1 and version = $2
            returning game_id
        ), logged as (
            insert into moves (game_id, number, version, seat, move, events, at, to_move_seat, due_at, remaining_ms)
            select game_id, $4, $3, $11, $12::text::json, $13::text::json, $6, $5, $8, $9 from written
        ), queued as (
            insert into webhook_deliveries (webhook_id, type, game_id, version, seat, deadline)
            select w.id, n.type, game_id, $3, n.seat, case when n.type = 'your_turn' then $17::timestamptz end
            from written
            cross join unnest($14::uuid[], $15::text[], $16::smallint[]) as n (player_id, type, seat)
            join webhooks w on w.player_id = n.player_id and w.disabled_at is null
        ), kept as (
            insert into idempotency_keys (id, request_hash, move_number)
            select $18, $19, $4 from written where $18::uuid is not null
        )
        select game_id from written"#,
        game.id,
        version as i32,
        game.version as i32,
        game.moves_count as i32,
        game.to_move.map(i16::from),
        entry.at,
        game.to_move_since,
        game.due_at,
        game.remaining_ms.as_deref(),
        game.state.as_ref().map(|state| state.snapshot()),
        i16::from(entry.seat),
        text(&entry.mv)?,
        text(&entry.events)?,
        &notices.players,
        &notices.kinds as _,
        &notices.seats as _,
        game.deadline(),
        key.map(|(player, key)| key.id(player)),
        key.map(|(_, key)| key.request_hash),
    )
    .fetch_optional(connection)
    .await?;
    Ok(written.is_some())
}

/// What the log keeps, as text: as `Json` the driver would send `jsonb`, which the database would take apart and write in its own,
/// longer way.
fn text(value: &impl Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// Writes that a move has ended its game: the outcome, what lists find it by, the last event, and that it is to be counted.
async fn write_end(transaction: &mut PgConnection, game: &Game, at: OffsetDateTime) -> Result<(), sqlx::Error> {
    let seats: Vec<i16> = game.seats.iter().map(|taken| i16::from(taken.seat)).collect();
    let results = results(game);
    sqlx::query!(
        "with ended as (
            update games
            set status = 'finished', outcome = $2, finished_at = $3, end_reason = $4, moves_count = $5, last_move_at = $3
            where id = $1
         ), closed as (
            update seats s set over_at = $3, finished_at = $3, last_move_at = $3, result = r.result
            from unnest($6::smallint[], $7::text[]) as r (seat, result)
            where s.game_id = $1 and s.seat = r.seat
         ), uncounted as (
            insert into uncounted_games (game_id) values ($1)
         )
         insert into game_events (game_id, version, index, type, facts, at) values ($1, $8, 1, 'game_finished', $9, $3)",
        game.id,
        game.outcome.as_ref().map(Json) as _,
        at,
        game.outcome.as_ref().map(|outcome| outcome.reason.as_str()),
        game.moves_count as i32,
        &seats,
        &results as _,
        game.version as i32,
        Json(game.facts()) as _,
    )
    .execute(transaction)
    .await?;
    Ok(())
}

/// Writes where a game stands, unless its version is another than before the change.
pub(super) async fn write_position(
    transaction: &mut PgConnection,
    game: &Game,
    version: u32,
    change: &Change,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        "update positions
         set version = $3, to_move_seat = $4, changed_at = $5, to_move_since = $6, due_at = $7,
             check_at = case when $7::timestamptz is not null and check_at > $5 then least(check_at, $7) else $7 end, remaining_ms = $8,
             snapshot = $9, xid = pg_current_xact_id()
         where game_id = $1 and version = $2",
        game.id,
        version as i32,
        game.version as i32,
        game.to_move.map(i16::from),
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
pub(super) async fn write_happenings(
    transaction: &mut PgConnection,
    game: &Game,
    change: &Change,
) -> Result<(), sqlx::Error> {
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

pub(super) async fn insert_game(
    transaction: &mut PgConnection,
    game: &Game,
    change: &Change,
) -> Result<(), sqlx::Error> {
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
        "insert into positions (game_id, version, moves_count, to_move_seat, changed_at, to_move_since, due_at, check_at,
                                remaining_ms, snapshot)
         values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9)",
        game.id,
        game.version as i32,
        game.moves_count as i32,
        game.to_move.map(i16::from),
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
