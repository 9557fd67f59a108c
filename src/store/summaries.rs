//! Reading summaries of games, whichever ids a statement has found.

use serde_json::{Map, Value};
use sqlx::FromRow;
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::StoreError;
use super::games::{SeatColumns, SummaryRow};
use crate::game::{Clock, Summary};
use crate::rulesets::Outcome;

/// A game as such a statement answers it.
#[derive(FromRow)]
pub(super) struct Row {
    pub(super) id: Uuid,
    ruleset: String,
    rules_version: i32,
    options: Json<Map<String, Value>>,
    seat_count: i16,
    status: String,
    visibility: String,
    spectators: String,
    clock: Option<Json<Clock>>,
    rated: bool,
    creator_id: Uuid,
    outcome: Option<Json<Outcome>>,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    finished_at: Option<OffsetDateTime>,
    rematch_id: Option<Uuid>,
    version: i32,
    moves_count: i32,
    last_move_at: Option<OffsetDateTime>,
    to_move_seat: Option<i16>,
    to_move_since: Option<OffsetDateTime>,
    due_at: Option<OffsetDateTime>,
    remaining_ms: Option<Vec<i64>>,
    seats: Option<Vec<i16>>,
    player_ids: Option<Vec<Uuid>>,
    names: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
    entropies: Option<Vec<String>>,
    statuses: Option<Vec<String>>,
    left_at_versions: Option<Vec<Option<i32>>>,
    want_aborts: Option<Vec<bool>>,
    expire_ats: Option<Vec<Option<OffsetDateTime>>>,
}

impl Row {
    pub(super) fn into_summary(self) -> Result<Summary, StoreError> {
        let seats = SeatColumns {
            seats: self.seats.unwrap_or_default(),
            player_ids: self.player_ids.unwrap_or_default(),
            names: self.names.unwrap_or_default(),
            kinds: self.kinds.unwrap_or_default(),
            entropies: self.entropies.unwrap_or_default(),
            statuses: self.statuses.unwrap_or_default(),
            left_at_versions: self.left_at_versions.unwrap_or_default(),
            want_aborts: self.want_aborts.unwrap_or_default(),
            expire_ats: self.expire_ats.unwrap_or_default(),
        };
        let row = SummaryRow {
            id: self.id,
            ruleset: self.ruleset,
            rules_version: self.rules_version,
            options: self.options.0,
            seat_count: self.seat_count,
            status: self.status,
            visibility: self.visibility,
            spectators: self.spectators,
            clock: self.clock.map(|clock| clock.0),
            rated: self.rated,
            creator_id: self.creator_id,
            outcome: self.outcome.map(|outcome| outcome.0),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            rematch_id: self.rematch_id,
            version: self.version,
            moves_count: self.moves_count,
            last_move_at: self.last_move_at,
            to_move_seat: self.to_move_seat,
            to_move_since: self.to_move_since,
            due_at: self.due_at,
            remaining_ms: self.remaining_ms,
            seats,
        };
        row.into_summary()
    }
}

/// The beginning of a statement that reads summaries; what follows gives the ids as the table `page`.
pub(super) const COLUMNS: &str = "select g.id, g.ruleset, g.rules_version, g.options, g.seat_count, g.status, g.visibility, \
    g.spectators, g.clock, g.rated, g.creator_id, g.outcome, g.created_at, g.started_at, g.finished_at, g.rematch_id, \
    p.version, p.moves_count, p.last_move_at, p.to_move_seat, p.to_move_since, p.due_at, p.remaining_ms, s.seats, \
    s.player_ids, s.names, s.kinds, s.entropies, s.statuses, s.left_at_versions, s.want_aborts, s.expire_ats";

/// What such a statement goes on with once `page` is there.
pub(super) const JOINS: &str = " join games g on g.id = page.id
     join positions p on p.game_id = page.id
     left join lateral (
         select array_agg(o.seat) as seats, array_agg(o.player_id) as player_ids, array_agg(o.name) as names,
                array_agg(o.kind) as kinds, array_agg(o.entropy) as entropies, array_agg(o.status) as statuses,
                array_agg(o.left_at_version) as left_at_versions, array_agg(o.wants_abort) as want_aborts,
                array_agg(o.expires_at) as expire_ats
         from (select s.*, sp.name, sp.kind
               from seats s join players sp on sp.id = s.player_id
               where s.game_id = page.id order by s.seat) as o
     ) as s on true";
