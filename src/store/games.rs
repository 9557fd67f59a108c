//! Games: loading them with who asks, and changing them.

use serde_json::{Map, Value};
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::violated;
use super::idempotency::{self, Answer, Headers, KEY_CONSTRAINT, Repeat, Row as KeyRow};
use super::players::player;
use super::{IdempotencyKey, Store, StoreError, TokenHash};
use crate::game::{Change, Command, Entropy, Entry, Game, Player, SeatStatus, SeatedPlayer, ServerSeed, Status};
use crate::rulesets::Outcome;
use crate::rulesets::registry::RulesetId;

/// How often a command is judged anew when other changes of the game come first.
const ATTEMPTS: u32 = 64;

/// What one statement reads: who asks, the game, and what they asked before under the same key.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// None without a token.
    pub caller: Option<Player>,
    pub game: Game,
    pub repeat: Option<Repeat>,
}

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

/// A row of the loading statement: everything may be missing but what its `as` says.
struct Row {
    caller_id: Option<Uuid>,
    caller_name: Option<String>,
    caller_kind: Option<String>,
    game: Option<GameRow>,
    key: Option<KeyRow>,
}

/// A game as its tables hold it.
struct GameRow {
    id: Uuid,
    ruleset: String,
    rules_version: i32,
    options: Map<String, Value>,
    seat_count: i16,
    status: String,
    creator_id: Uuid,
    server_seed: Vec<u8>,
    outcome: Option<Outcome>,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    finished_at: Option<OffsetDateTime>,
    version: i32,
    moves_count: i32,
    changed_at: OffsetDateTime,
    snapshot: Option<Vec<u8>>,
    seats: SeatColumns,
}

/// The seats of a game, each column an array in order of seat.
pub(super) struct SeatColumns {
    pub seats: Vec<i16>,
    pub player_ids: Vec<Uuid>,
    pub names: Vec<String>,
    pub kinds: Vec<String>,
    pub entropies: Vec<String>,
    pub statuses: Vec<String>,
}

impl SeatColumns {
    pub(super) fn into_seats(self) -> Result<Vec<SeatedPlayer>, StoreError> {
        let Self { seats, player_ids, names, kinds, entropies, statuses } = self;
        let players = player_ids.into_iter().zip(names).zip(kinds);
        let rest = entropies.into_iter().zip(statuses);
        seats
            .into_iter()
            .zip(players)
            .zip(rest)
            .map(|((seat, ((id, name), kind)), (entropy, status))| {
                Ok(SeatedPlayer {
                    seat: seat as u8,
                    player: player(id, name, &kind)?,
                    entropy: Entropy::parse(entropy).map_err(|error| StoreError::Corrupt(error.to_string()))?,
                    status: SeatStatus::parse(&status)
                        .ok_or_else(|| StoreError::Corrupt(format!("a seat of status {status}")))?,
                })
            })
            .collect()
    }
}

/// The ruleset of a row.
pub(super) fn ruleset(slug: &str) -> Result<RulesetId, StoreError> {
    RulesetId::from_slug(slug).ok_or_else(|| StoreError::Corrupt(format!("a game of ruleset {slug}")))
}

/// The status of a row.
pub(super) fn status(word: &str) -> Result<Status, StoreError> {
    Status::parse(word).ok_or_else(|| StoreError::Corrupt(format!("a game of status {word}")))
}

impl Store {
    /// Loads a game with who asks; without a token for nobody in particular.
    ///
    /// # Errors
    /// An unknown token, an unknown game, a key that was used for another request; the database fails.
    pub async fn load_game(
        &self,
        id: Uuid,
        token: Option<&TokenHash>,
        key: Option<&IdempotencyKey>,
    ) -> Result<Loaded, StoreError> {
        let row = self.load_row(id, token, key).await?;
        let caller = match (row.caller_id, row.caller_name, row.caller_kind) {
            (Some(id), Some(name), Some(kind)) => Some(player(id, name, &kind)?),
            _ if token.is_some() => return Err(StoreError::Unauthenticated),
            _ => None,
        };
        let repeat = match (row.key, key) {
            (Some(row), Some(key)) => Some(row.into_repeat(key)?),
            _ => None,
        };
        let game = self.game_of(row.game.ok_or(StoreError::NotFound)?).await?;
        Ok(Loaded { caller, game, repeat })
    }

    async fn load_row(
        &self,
        id: Uuid,
        token: Option<&TokenHash>,
        key: Option<&IdempotencyKey>,
    ) -> Result<Row, StoreError> {
        let row = sqlx::query!(
            r#"select
                c.id as "caller_id?", c.name as "caller_name?", c.kind as "caller_kind?",
                g.id as "id?", g.ruleset as "ruleset?", g.rules_version as "rules_version?",
                g.options as "options?: Json<Map<String, Value>>", g.seat_count as "seat_count?", g.status as "game_status?",
                g.creator_id as "creator_id?", g.server_seed as "server_seed?", g.outcome as "outcome?: Json<Outcome>",
                g.created_at as "created_at?", g.started_at, g.finished_at,
                p.version as "version?", p.moves_count as "moves_count?", p.changed_at as "changed_at?", p.snapshot,
                s.seats as "seats?: Vec<i16>", s.player_ids as "player_ids?: Vec<Uuid>", s.names as "names?: Vec<String>",
                s.kinds as "kinds?: Vec<String>", s.entropies as "entropies?: Vec<String>",
                s.statuses as "statuses?: Vec<String>",
                k.request_hash as "request_hash?", k.game_id as key_game_id, k.move_number, k.status as key_status,
                k.headers as "headers: Json<Headers>", k.body
            from (select 1) as one
            left join tokens t on t.hash = $2
            left join players c on c.id = t.player_id
            left join games g on g.id = $1
            left join positions p on p.game_id = $1
            left join lateral (
                select array_agg(o.seat) as seats, array_agg(o.player_id) as player_ids, array_agg(o.name) as names,
                       array_agg(o.kind) as kinds, array_agg(o.entropy) as entropies, array_agg(o.status) as statuses
                from (select s.seat, s.player_id, s.entropy, s.status, sp.name, sp.kind
                      from seats s join players sp on sp.id = s.player_id
                      where s.game_id = $1 order by s.seat) as o
            ) as s on true
            left join idempotency_keys k on k.player_id = t.player_id and k.key_hash = $3
                and k.created_at > now() - interval '24 hours'"#,
            id,
            token.map(|token| &token.0[..]),
            key.map(|key| &key.hash[..]),
        )
        .fetch_one(&self.pool)
        .await?;
        let seats = SeatColumns {
            seats: row.seats.unwrap_or_default(),
            player_ids: row.player_ids.unwrap_or_default(),
            names: row.names.unwrap_or_default(),
            kinds: row.kinds.unwrap_or_default(),
            entropies: row.entropies.unwrap_or_default(),
            statuses: row.statuses.unwrap_or_default(),
        };
        let game = || {
            Some(GameRow {
                id: row.id?,
                ruleset: row.ruleset?,
                rules_version: row.rules_version?,
                options: row.options?.0,
                seat_count: row.seat_count?,
                status: row.game_status?,
                creator_id: row.creator_id?,
                server_seed: row.server_seed?,
                outcome: row.outcome.map(|outcome| outcome.0),
                created_at: row.created_at?,
                started_at: row.started_at,
                finished_at: row.finished_at,
                version: row.version?,
                moves_count: row.moves_count?,
                changed_at: row.changed_at?,
                snapshot: row.snapshot,
                seats,
            })
        };
        Ok(Row {
            caller_id: row.caller_id,
            caller_name: row.caller_name,
            caller_kind: row.caller_kind,
            game: game(),
            key: row.request_hash.map(|request_hash| KeyRow {
                request_hash,
                game_id: row.key_game_id,
                move_number: row.move_number,
                status: row.key_status,
                headers: row.headers,
                body: row.body,
            }),
        })
    }

    async fn game_of(&self, row: GameRow) -> Result<Game, StoreError> {
        let seed = row.server_seed.try_into().map_err(|_| StoreError::Corrupt("a seed that is not 32 bytes".into()))?;
        let mut game = Game {
            id: row.id,
            ruleset: ruleset(&row.ruleset)?,
            rules_version: row.rules_version as u32,
            options: row.options,
            seat_count: row.seat_count as u8,
            status: status(&row.status)?,
            version: row.version as u32,
            creator: row.creator_id,
            seats: row.seats.into_seats()?,
            server_seed: ServerSeed(seed),
            moves_count: row.moves_count as u32,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            to_move_since: None,
            outcome: row.outcome,
            state: None,
        };
        if let Some(snapshot) = row.snapshot {
            game.state = Some(match game.ruleset.read_snapshot(&snapshot) {
                Ok(state) => state,
                // The snapshot is a cache: the log has the truth.
                Err(error) => {
                    tracing::warn!(game = %game.id, %error, "snapshot rebuilt from the log");
                    self.state_after(&game, game.moves_count).await?
                }
            });
        }
        // Every change of an active game is the beginning of a turn.
        game.to_move_since = game.to_move().map(|_| row.changed_at);
        Ok(game)
    }

    /// Keeps a new game. `answer` makes the answer to whoever created it, which a key keeps.
    ///
    /// # Errors
    /// The key was used for another request; the database fails.
    pub async fn create_game(
        &self,
        make: impl Fn(OffsetDateTime) -> Result<(Game, Change), crate::game::GameError>,
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
        make: &impl Fn(OffsetDateTime) -> Result<(Game, Change), crate::game::GameError>,
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
