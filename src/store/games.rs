//! Games: loading them with who asks.

use serde_json::{Map, Value};
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::idempotency::{Headers, Repeat, Row as KeyRow};
use super::players::player;
use super::{IdempotencyKey, Store, StoreError, TokenHash};
use crate::game::{Entropy, Game, Player, SeatStatus, SeatedPlayer, ServerSeed, Status};
use crate::rulesets::Outcome;
use crate::rulesets::registry::RulesetId;

/// What one statement reads: who asks, the game, and what they asked before under the same key.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// None without a token.
    pub caller: Option<Player>,
    pub game: Game,
    pub repeat: Option<Repeat>,
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
}
