//! Lists of games, newest first, page by page (keyset).

use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder};
use time::OffsetDateTime;
use uuid::Uuid;

use super::games::{SeatColumns, ruleset, status};
use super::{Store, StoreError};
use crate::game::{Status, Summary};
use crate::rulesets::registry::RulesetId;
use crate::rulesets::{Outcome, Seat};

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
struct Row {
    id: Uuid,
    ruleset: String,
    rules_version: i32,
    options: Json<Map<String, Value>>,
    seat_count: i16,
    status: String,
    creator_id: Uuid,
    outcome: Option<Json<Outcome>>,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    finished_at: Option<OffsetDateTime>,
    version: i32,
    moves_count: i32,
    to_move_seat: Option<i16>,
    changed_at: OffsetDateTime,
    seats: Option<Vec<i16>>,
    player_ids: Option<Vec<Uuid>>,
    names: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
    entropies: Option<Vec<String>>,
    statuses: Option<Vec<String>>,
}

impl Row {
    fn into_summary(self) -> Result<Summary, StoreError> {
        let seats = SeatColumns {
            seats: self.seats.unwrap_or_default(),
            player_ids: self.player_ids.unwrap_or_default(),
            names: self.names.unwrap_or_default(),
            kinds: self.kinds.unwrap_or_default(),
            entropies: self.entropies.unwrap_or_default(),
            statuses: self.statuses.unwrap_or_default(),
        };
        Ok(Summary {
            id: self.id,
            ruleset: ruleset(&self.ruleset)?,
            rules_version: self.rules_version as u32,
            options: self.options.0,
            seat_count: self.seat_count as u8,
            status: status(&self.status)?,
            version: self.version as u32,
            creator: self.creator_id,
            seats: seats.into_seats()?,
            moves_count: self.moves_count as u32,
            to_move: self.to_move_seat.map(|seat| seat as Seat),
            to_move_since: self.to_move_seat.map(|_| self.changed_at),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            outcome: self.outcome.map(|outcome| outcome.0),
        })
    }
}

/// The statement of a list. The ids are found first, by the index that fits the filters best: a player's seats, the
/// positions that wait for somebody, or the games; only those of the page are then read whole.
fn statement(filter: &Filter, after: Option<Uuid>, rows: i64) -> QueryBuilder<Postgres> {
    let (from, id) = match filter {
        Filter { to_move: Some(_), .. } => (" from positions p join games g on g.id = p.game_id", "p.game_id"),
        Filter { player: Some(_), .. } => (" from seats s join games g on g.id = s.game_id", "s.game_id"),
        _ => (" from games g", "g.id"),
    };
    let mut sql = QueryBuilder::new(
        "select g.id, g.ruleset, g.rules_version, g.options, g.seat_count, g.status, g.creator_id, g.outcome, g.created_at,
                g.started_at, g.finished_at, p.version, p.moves_count, p.to_move_seat, p.changed_at,
                s.seats, s.player_ids, s.names, s.kinds, s.entropies, s.statuses
         from (select ",
    );
    sql.push(id).push(" as id").push(from).push(" where true");
    if let Some(player) = filter.to_move {
        sql.push(" and p.to_move_player_id = ").push_bind(player);
        if let Some(player) = filter.player {
            sql.push(" and exists (select from seats s where s.game_id = p.game_id and s.player_id = ");
            sql.push_bind(player).push(")");
        }
    } else if let Some(player) = filter.player {
        sql.push(" and s.player_id = ").push_bind(player);
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
    sql.push(
        ") as page
         join games g on g.id = page.id
         join positions p on p.game_id = page.id
         left join lateral (
             select array_agg(o.seat) as seats, array_agg(o.player_id) as player_ids, array_agg(o.name) as names,
                    array_agg(o.kind) as kinds, array_agg(o.entropy) as entropies, array_agg(o.status) as statuses
             from (select s.seat, s.player_id, s.entropy, s.status, sp.name, sp.kind
                   from seats s join players sp on sp.id = s.player_id
                   where s.game_id = page.id order by s.seat) as o
         ) as s on true
         order by page.id desc",
    );
    sql
}

impl Store {
    /// The games of a filter, newest first, that come after the game `after`; at most `limit`.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_games(&self, filter: &Filter, after: Option<Uuid>, limit: u32) -> Result<Page, StoreError> {
        // One more than asked for tells whether there is another page.
        let rows: Vec<Row> =
            statement(filter, after, i64::from(limit) + 1).build_query_as().fetch_all(&self.pool).await?;
        let more = rows.len() > limit as usize;
        let items = rows.into_iter().take(limit as usize).map(Row::into_summary).collect::<Result<Vec<_>, _>>()?;
        let next = items.last().filter(|_| more).map(|game| game.id);
        Ok(Page { items, next })
    }
}
