//! Games: loading them with who asks.

use serde::Deserialize;
use serde_json::{Map, Value};
use sqlx::PgConnection;
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::idempotency::{Headers, Repeat, Row as KeyRow};
use super::moves::replayed;
use super::players::player;
use super::{IdempotencyKey, Scope, Scopes, Store, StoreError, TokenHash};
use crate::game::{
    Clock, Entropy, Game, Invitation, Invite, Player, SeatStatus, SeatedPlayer, ServerSeed, Spectators, Status,
    Summary, Visibility,
};
use crate::rulesets::registry::RulesetId;
use crate::rulesets::{Outcome, Seat};

/// With what somebody asks for a game.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub token: Option<TokenHash>,
    /// The invite code of a private game.
    pub invite: Option<String>,
}

impl Access {
    /// With a token and no code.
    pub fn of(token: TokenHash) -> Self {
        Self { token: Some(token), invite: None }
    }
}

/// What one statement reads: who asks, the game, and what they asked before under the same key.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// None without a token.
    pub caller: Option<Player>,
    pub game: Game,
    pub repeat: Option<Repeat>,
    /// The database's time; never before the game's last change, also if its clock has been set back.
    pub now: OffsetDateTime,
    /// The time that clocks have come to: earlier than `now` while no server ran for a time that is not given back yet.
    pub clock_time: OffsetDateTime,
}

/// A row of the loading statement: everything may be missing but what its `as` says.
struct Row {
    caller_id: Option<Uuid>,
    caller_name: Option<String>,
    caller_kind: Option<String>,
    caller_scopes: Option<Vec<String>>,
    game: Option<GameRow>,
    key: Option<KeyRow>,
    now: OffsetDateTime,
    changed_at: Option<OffsetDateTime>,
    clock_time: OffsetDateTime,
}

/// A game as its tables hold it.
struct GameRow {
    summary: SummaryRow,
    server_seed: Vec<u8>,
    invite: Option<String>,
    snapshot: Option<Vec<u8>>,
}

/// What everybody may know of a game, as its tables hold it.
pub(super) struct SummaryRow {
    pub id: Uuid,
    pub ruleset: String,
    pub rules_version: i32,
    pub options: Map<String, Value>,
    pub seat_count: i16,
    pub status: String,
    pub visibility: String,
    pub spectators: String,
    pub clock: Option<Clock>,
    pub rated: bool,
    pub creator_id: Uuid,
    pub outcome: Option<Outcome>,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    pub rematch_id: Option<Uuid>,
    pub version: i32,
    pub moves_count: i32,
    pub last_move_at: Option<OffsetDateTime>,
    pub to_move_seat: Option<i16>,
    pub to_move_since: Option<OffsetDateTime>,
    pub due_at: Option<OffsetDateTime>,
    pub remaining_ms: Option<Vec<i64>>,
    pub seats: SeatColumns,
}

/// The rows of `seats` of a game, each column an array in order of seat.
#[derive(Default)]
pub(super) struct SeatColumns {
    pub seats: Vec<i16>,
    pub player_ids: Vec<Uuid>,
    pub names: Vec<String>,
    pub kinds: Vec<String>,
    pub entropies: Vec<String>,
    pub statuses: Vec<String>,
    pub left_at_versions: Vec<Option<i32>>,
    pub want_aborts: Vec<bool>,
    pub expire_ats: Vec<Option<OffsetDateTime>>,
}

/// A row of `seats` as one value: that is read and written faster than nine arrays.
#[derive(Debug, Deserialize)]
struct SeatRow(
    i16,
    Uuid,
    String,
    String,
    String,
    String,
    Option<i32>,
    bool,
    #[serde(with = "time::serde::rfc3339::option")] Option<OffsetDateTime>,
);

impl FromIterator<SeatRow> for SeatColumns {
    fn from_iter<I: IntoIterator<Item = SeatRow>>(rows: I) -> Self {
        let mut rows: Vec<SeatRow> = rows.into_iter().collect();
        // The database would do it by a sort of its own.
        rows.sort_unstable_by_key(|row| row.0);
        let mut columns = Self::default();
        for SeatRow(seat, player_id, name, kind, entropy, status, left_at_version, wants_abort, expires_at) in rows {
            columns.seats.push(seat);
            columns.player_ids.push(player_id);
            columns.names.push(name);
            columns.kinds.push(kind);
            columns.entropies.push(entropy);
            columns.statuses.push(status);
            columns.left_at_versions.push(left_at_version);
            columns.want_aborts.push(wants_abort);
            columns.expire_ats.push(expires_at);
        }
        columns
    }
}

impl SeatColumns {
    /// Who sits, and for whom seats are kept.
    fn into_seats(self) -> Result<(Vec<SeatedPlayer>, Vec<Invitation>), StoreError> {
        let (mut seated, mut invitations) = (Vec::with_capacity(self.seats.len()), Vec::new());
        let players = self.player_ids.into_iter().zip(self.names).zip(self.kinds);
        let rest = self.entropies.into_iter().zip(self.statuses).zip(self.left_at_versions);
        let rest = rest.zip(self.want_aborts).zip(self.expire_ats);
        for ((seat, ((id, name), kind)), ((((entropy, status), left), wants_abort), expires_at)) in
            self.seats.into_iter().zip(players).zip(rest)
        {
            let (seat, player) = (seat as Seat, player(id, name, &kind)?);
            if let (INVITED, Some(expires_at)) = (status.as_str(), expires_at) {
                invitations.push(Invitation { seat, player, expires_at });
                continue;
            }
            seated.push(SeatedPlayer {
                seat,
                player,
                entropy: Entropy::parse(entropy).map_err(|error| StoreError::Corrupt(error.to_string()))?,
                status: word("a seat", &status, SeatStatus::parse)?,
                left_at_version: left.map(|version| version as u32),
                wants_abort,
            });
        }
        Ok((seated, invitations))
    }
}

/// The status of a seat that is kept for somebody.
pub(super) const INVITED: &str = "invited";

impl SummaryRow {
    pub(super) fn into_summary(self) -> Result<Summary, StoreError> {
        let (seats, invitations) = self.seats.into_seats()?;
        Ok(Summary {
            id: self.id,
            ruleset: ruleset(&self.ruleset)?,
            rules_version: self.rules_version as u32,
            options: self.options,
            seat_count: self.seat_count as u8,
            status: word("a game", &self.status, Status::parse)?,
            visibility: word("a visibility", &self.visibility, Visibility::parse)?,
            spectators: word("spectators", &self.spectators, Spectators::parse)?,
            clock: self.clock,
            rated: self.rated,
            version: self.version as u32,
            creator: self.creator_id,
            seats,
            invitations,
            moves_count: self.moves_count as u32,
            last_move_at: self.last_move_at,
            to_move: self.to_move_seat.map(|seat| seat as Seat),
            to_move_since: self.to_move_since,
            due_at: self.due_at,
            remaining_ms: self.remaining_ms,
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            outcome: self.outcome,
            rematch: self.rematch_id,
        })
    }
}

/// What a word of a row stands for.
pub(super) fn word<T>(what: &str, word: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
    parse(word).ok_or_else(|| StoreError::Corrupt(format!("{what} of {word}")))
}

/// The ruleset of a row.
pub(super) fn ruleset(slug: &str) -> Result<RulesetId, StoreError> {
    RulesetId::from_slug(slug).ok_or_else(|| StoreError::Corrupt(format!("a game of ruleset {slug}")))
}

impl Store {
    /// Loads a game with who asks, whose token must have the scope; without a token for nobody in particular.
    ///
    /// # Errors
    /// An unknown token or one without the scope, an unknown game or one that the caller may not know of, a key that was used for another request; the
    /// database fails.
    pub async fn load_game(
        &self,
        id: Uuid,
        access: &Access,
        scope: Scope,
        key: Option<&IdempotencyKey>,
    ) -> Result<Loaded, StoreError> {
        let mut connection = self.games().get().await?;
        let loaded = load_game(&mut connection, id, access, scope, key).await;
        connection.settled(loaded)
    }

    /// The version of a game, for whoever may still have it: this reads much less than all of it. None if it takes all of it to
    /// say whether the caller may know of the game.
    ///
    /// # Errors
    /// An unknown token or one without the scope; the database fails.
    pub async fn version(&self, id: Uuid, access: &Access, scope: Scope) -> Result<Option<u32>, StoreError> {
        let mut connection = self.games().get().await?;
        let row = sqlx::query!(
            r#"select p.version as "version?", t.scopes as "scopes?",
                      g.visibility = 'public' or exists (
                          select from seats s where s.game_id = $1 and s.player_id = t.player_id
                      ) as is_known
               from (select 1) as one
               left join tokens t on t.hash = $2 and (t.expires_at is null or t.expires_at > now())
               left join positions p on p.game_id = $1
               left join games g on g.id = $1"#,
            id,
            access.token.as_ref().map(|token| &token.0[..]),
        )
        .fetch_one(&mut *connection)
        .await?;
        connection.settle();
        match &row.scopes {
            Some(words) => Scopes::of_row(words)?.require(scope)?,
            None if access.token.is_some() => return Err(StoreError::Unauthenticated),
            None => {}
        }
        Ok(row.version.filter(|_| row.is_known == Some(true)).map(|version| version as u32))
    }

    /// A game whoever asks. What is made of it has to ask [`Game::is_known_to`] and [`Game::viewer`].
    ///
    /// # Errors
    /// There is no such game; the database fails.
    pub async fn game_unchecked(&self, id: Uuid) -> Result<Game, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let row = load_row(&mut connection, id, None, None).await?;
        game_of(&mut connection, row.game.ok_or(StoreError::NotFound)?).await
    }

    /// The private game that a code opens.
    ///
    /// # Errors
    /// There is none, or none any more; the database fails.
    pub async fn game_of_invite(&self, code: &str) -> Result<Uuid, StoreError> {
        let id = sqlx::query_scalar!("select id from games where invite = $1", code).fetch_optional(&self.pool).await?;
        id.ok_or(StoreError::NotFound)
    }
}

/// As [`Store::load_game`], on a connection that the caller goes on to use.
pub(super) async fn load_game(
    connection: &mut PgConnection,
    id: Uuid,
    access: &Access,
    scope: Scope,
    key: Option<&IdempotencyKey>,
) -> Result<Loaded, StoreError> {
    let row = load_row(connection, id, access.token.as_ref(), key).await?;
    let caller = match (row.caller_id, row.caller_name, row.caller_kind) {
        (Some(id), Some(name), Some(kind)) => Some(player(id, name, &kind)?),
        _ if access.token.is_some() => return Err(StoreError::Unauthenticated),
        _ => None,
    };
    if let Some(words) = &row.caller_scopes {
        Scopes::of_row(words)?.require(scope)?;
    }
    let repeat = match (row.key, key) {
        (Some(row), Some(key)) => Some(row.into_repeat(key)?),
        _ => None,
    };
    let mut game = game_of(connection, row.game.ok_or(StoreError::NotFound)?).await?;
    if !game.is_known_to(caller.as_ref().map(|player| player.id), access.invite.as_deref()) {
        return Err(StoreError::NotFound);
    }
    credit(&mut game, row.changed_at, row.now, row.clock_time);
    let now = row.changed_at.map_or(row.now, |changed| changed.max(row.now));
    Ok(Loaded { caller, game, repeat, now, clock_time: row.clock_time })
}

/// Loads a game for the server itself.
pub(super) async fn load_known(connection: &mut PgConnection, id: Uuid) -> Result<Loaded, StoreError> {
    let row = load_row(connection, id, None, None).await?;
    let mut game = game_of(connection, row.game.ok_or(StoreError::NotFound)?).await?;
    credit(&mut game, row.changed_at, row.now, row.clock_time);
    let now = row.changed_at.map_or(row.now, |changed| changed.max(row.now));
    Ok(Loaded { caller: None, game, repeat: None, now, clock_time: row.clock_time })
}

async fn game_of(connection: &mut PgConnection, row: GameRow) -> Result<Game, StoreError> {
    let seed = row.server_seed.try_into().map_err(|_| StoreError::Corrupt("a seed that is not 32 bytes".into()))?;
    let mut game = Game {
        summary: row.summary.into_summary()?,
        invite: row.invite.map(Invite),
        server_seed: ServerSeed(seed),
        state: None,
    };
    if let Some(snapshot) = row.snapshot {
        game.state = Some(match game.ruleset.read_snapshot(&snapshot) {
            Ok(state) => state,
            // The snapshot is a cache: the log has the truth.
            Err(error) => {
                tracing::warn!(game = %game.id, %error, "snapshot rebuilt from the log");
                Box::pin(replayed(connection, &game, game.moves_count)).await?
            }
        });
    }
    Ok(game)
}

/// Gives the player to move the time back in which no server ran, as far as it was of this turn, before that is written.
fn credit(game: &mut Game, changed_at: Option<OffsetDateTime>, now: OffsetDateTime, clock_time: OffsetDateTime) {
    let since = changed_at.map_or(clock_time, |changed| changed.max(clock_time));
    if let Some(due) = game.due_at.filter(|due| *due > clock_time && now > since) {
        game.due_at = Some(due + (now - since));
    }
}

async fn load_row(
    connection: &mut PgConnection,
    id: Uuid,
    token: Option<&TokenHash>,
    key: Option<&IdempotencyKey>,
) -> Result<Row, StoreError> {
    let row = sqlx::query!(
        r#"select
            c.id as "caller_id?", c.name as "caller_name?", c.kind as "caller_kind?", t.scopes as "caller_scopes?",
            g.id as "id?", g.ruleset as "ruleset?", g.rules_version as "rules_version?",
            g.options as "options?: Json<Map<String, Value>>", g.seat_count as "seat_count?", g.status as "game_status?",
            g.visibility as "visibility?", g.spectators as "spectators?", g.clock as "clock?: Json<Clock>", g.rated as "rated?", g.invite,
            g.creator_id as "creator_id?", g.server_seed as "server_seed?", g.outcome as "outcome?: Json<Outcome>",
            g.created_at as "created_at?", g.started_at, g.finished_at, g.rematch_id,
            p.version as "version?", p.moves_count as "moves_count?", p.last_move_at, p.to_move_seat, p.to_move_since, p.due_at,
            p.remaining_ms, p.snapshot,
            s.seats as "seats?: Json<Vec<SeatRow>>",
            k.request_hash as "request_hash?", k.move_number, k.status as key_status,
            k.headers as "headers: Json<Headers>", k.body,
            p.changed_at as "changed_at?", now() as "now!", 
            (select case when at < now() - interval '10 seconds' then at else now() end from heartbeats) as "clock_time!"
        from (select 1) as one
        left join tokens t on t.hash = $2 and (t.expires_at is null or t.expires_at > now())
        left join players c on c.id = t.player_id
        left join games g on g.id = $1
        left join positions p on p.game_id = $1
        left join lateral (
            select json_agg(json_build_array(s.seat, s.player_id, sp.name, sp.kind, s.entropy, s.status, s.left_at_version,
                                             s.wants_abort, s.expires_at)) as seats
            from seats s join players sp on sp.id = s.player_id
            where s.game_id = $1
        ) as s on true
        left join idempotency_keys k
            on k.id = encode(substring(sha256(uuid_send(t.player_id) || uuid_send($3::uuid)) for 16), 'hex')::uuid
            and k.created_at > now() - interval '24 hours'"#,
        id,
        token.map(|token| &token.0[..]),
        key.map(|key| key.hash),
    )
    .fetch_one(connection)
    .await?;
    let seats = row.seats.map(|seats| seats.0.into_iter().collect()).unwrap_or_default();
    let game = || {
        let summary = SummaryRow {
            id: row.id?,
            ruleset: row.ruleset?,
            rules_version: row.rules_version?,
            options: row.options?.0,
            seat_count: row.seat_count?,
            status: row.game_status?,
            visibility: row.visibility?,
            spectators: row.spectators?,
            clock: row.clock.map(|clock| clock.0),
            rated: row.rated?,
            creator_id: row.creator_id?,
            outcome: row.outcome.map(|outcome| outcome.0),
            created_at: row.created_at?,
            started_at: row.started_at,
            finished_at: row.finished_at,
            rematch_id: row.rematch_id,
            version: row.version?,
            moves_count: row.moves_count?,
            last_move_at: row.last_move_at,
            to_move_seat: row.to_move_seat,
            to_move_since: row.to_move_since,
            due_at: row.due_at,
            remaining_ms: row.remaining_ms,
            seats,
        };
        Some(GameRow { summary, server_seed: row.server_seed?, invite: row.invite, snapshot: row.snapshot })
    };
    Ok(Row {
        caller_id: row.caller_id,
        caller_name: row.caller_name,
        caller_kind: row.caller_kind,
        caller_scopes: row.caller_scopes,
        game: game(),
        key: row.request_hash.map(|request_hash| KeyRow {
            request_hash,
            move_number: row.move_number,
            status: row.key_status,
            headers: row.headers,
            body: row.body,
        }),
        now: row.now,
        changed_at: row.changed_at,
        clock_time: row.clock_time,
    })
}
