//! Lists of games, newest first, page by page (keyset).

use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder};
use time::OffsetDateTime;
use uuid::Uuid;

use super::games::{INVITED, SeatColumns, SummaryRow};
use super::{Store, StoreError};
use crate::game::{Clock, Status, Summary};
use crate::rulesets::Outcome;
use crate::rulesets::registry::RulesetId;

/// Which games a list has; all conditions must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub status: Option<Status>,
    pub ruleset: Option<RulesetId>,
    /// Has a seat in it.
    pub player: Option<Uuid>,
    /// It is this player's turn.
    pub to_move: Option<Uuid>,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    pub items: Vec<Summary>,
    /// Where the next page begins: after this game. None when there is no more.
    pub next: Option<Uuid>,
}

#[derive(FromRow)]
pub(super) struct Row {
    id: Uuid,
    ruleset: String,
    rules_version: i32,
    options: Json<Map<String, Value>>,
    seat_count: i16,
    status: String,
    visibility: String,
    spectators: String,
    clock: Option<Json<Clock>>,
    creator_id: Uuid,
    outcome: Option<Json<Outcome>>,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    finished_at: Option<OffsetDateTime>,
    rematch_id: Option<Uuid>,
    version: i32,
    moves_count: i32,
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
            creator_id: self.creator_id,
            outcome: self.outcome.map(|outcome| outcome.0),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            rematch_id: self.rematch_id,
            version: self.version,
            moves_count: self.moves_count,
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
    g.spectators, g.clock, g.creator_id, g.outcome, g.created_at, g.started_at, g.finished_at, g.rematch_id, p.version, \
    p.moves_count, p.to_move_seat, p.to_move_since, p.due_at, p.remaining_ms, s.seats, s.player_ids, s.names, s.kinds, \
    s.entropies, s.statuses, s.left_at_versions, s.want_aborts, s.expire_ats";

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

/// The statement of a list. The ids are found first, by the index that fits the filters best: a player's seats, the
/// positions that wait for somebody, or the games; only those of the page are then read whole.
fn statement(filter: &Filter, caller: Option<Uuid>, after: Option<Uuid>, rows: i64) -> QueryBuilder<Postgres> {
    let (from, id) = match filter {
        Filter { to_move: Some(_), .. } => (" from positions p join games g on g.id = p.game_id", "p.game_id"),
        Filter { player: Some(_), .. } => (" from seats s join games g on g.id = s.game_id", "s.game_id"),
        _ => (" from games g", "g.id"),
    };
    let mut sql = QueryBuilder::new(COLUMNS);
    sql.push(" from (select ").push(id).push(" as id").push(from);
    // Private games are for those who belong to them.
    sql.push(" where (g.visibility = 'public'");
    if let Some(caller) = caller {
        sql.push(" or exists (select from seats o where o.game_id = g.id and o.player_id = ")
            .push_bind(caller)
            .push(")");
    }
    sql.push(")");
    if let Some(player) = filter.to_move {
        sql.push(" and p.to_move_player_id = ").push_bind(player);
        if let Some(player) = filter.player {
            sql.push(" and exists (select from seats s where s.game_id = p.game_id and s.player_id = ");
            sql.push_bind(player).push(")");
        }
    } else if let Some(player) = filter.player {
        sql.push(" and s.player_id = ").push_bind(player).push(" and s.status <> ").push_bind(INVITED);
    }
    if let Some(status) = filter.status {
        sql.push(" and g.status = ").push_bind(status.as_str());
    }
    if let Some(ruleset) = filter.ruleset {
        sql.push(" and g.ruleset = ").push_bind(ruleset.meta().slug);
    }
    if let Some(after) = after {
        sql.push(" and ").push(id).push(" < ").push_bind(after);
    }
    sql.push(" order by ").push(id).push(" desc limit ").push_bind(rows);
    sql.push(") as page").push(JOINS).push(" order by page.id desc");
    sql
}

impl Store {
    /// The games of a filter that `caller`, or somebody without an account, may know of, newest first, that come after the
    /// game `after`; at most `limit`.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_games(
        &self,
        filter: &Filter,
        caller: Option<Uuid>,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page, StoreError> {
        // One more than asked for tells whether there is another page.
        let rows: Vec<Row> =
            statement(filter, caller, after, i64::from(limit) + 1).build_query_as().fetch_all(&self.pool).await?;
        let more = rows.len() > limit as usize;
        let items = rows.into_iter().take(limit as usize).map(Row::into_summary).collect::<Result<Vec<_>, _>>()?;
        let next = items.last().filter(|_| more).map(|game| game.id);
        Ok(Page { items, next })
    }
}
