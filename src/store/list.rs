//! Lists of games, page by page (keyset): filters, orders, and the statement for each of their combinations.
//!
//! A list is put together from two parts, since running games and those that are over keep what is asked for in different
//! places: a game that is over has everything in `games` and `seats`, where indexes have it in every order; of a running
//! game, what each move changes is in `positions`, where it touches no index. Each part comes in order and no longer than a page.
//!
//! A little long for one file: filters, orders and parts make one statement together, and a change of one is a change of all.

use serde_json::{Map, Value};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::games::INVITED;
use super::summaries::{COLUMNS, JOINS, Row};
use super::turns::{TimeKey, push_to_move};
use super::{Store, StoreError};
use crate::game::{GameResult, Status, Summary};
use crate::rulesets::EndReason;
use crate::rulesets::registry::RulesetId;

/// A stretch of time: from an instant, itself included, until before another; open where there is none. Both are whole microseconds, which
/// is what the database knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub from: Option<OffsetDateTime>,
    pub until: Option<OffsetDateTime>,
}

impl Span {
    fn is_open(self) -> bool {
        self == Self::default()
    }
}

/// Which games a list has; all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub status: Option<Status>,
    pub ruleset: Option<RulesetId>,
    /// Has a seat in it.
    pub player: Option<Uuid>,
    /// Has a seat in it too.
    pub opponent: Option<Uuid>,
    /// How it went for `player`.
    pub result: Option<GameResult>,
    /// It is this player's turn.
    pub to_move: Option<Uuid>,
    pub rated: Option<bool>,
    pub end_reason: Option<EndReason>,
    /// The options in force have all of these.
    pub options: Map<String, Value>,
    pub moves_min: Option<u32>,
    pub moves_max: Option<u32>,
    pub created: Span,
    pub finished: Span,
    pub last_move: Span,
}

/// By what a list is in order. Games that have no such time come last, either way; equal times are in order of id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    #[default]
    Created,
    Finished,
    LastMove,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub key: SortKey,
    /// The latest first.
    pub descending: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self { key: SortKey::Created, descending: true }
    }
}

impl Sort {
    /// The place of a game in a list of this order.
    pub fn place(self, game: &Summary) -> TimeKey {
        let at = match self.key {
            SortKey::Created => None,
            SortKey::Finished => game.finished_at,
            SortKey::LastMove => game.last_move_at,
        };
        TimeKey { at, game_id: game.id }
    }
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins: after this. None when there is no more.
    pub next: Option<TimeKey>,
}

/// Which of the two parts of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Games that are over.
    Over,
    /// Games that are open or active.
    Live,
}

/// Which games of a list, as to the time by which it is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    /// Those that have it.
    Dated,
    /// Those that do not, which come after them.
    Undated,
}

/// Which side of an instant, in the time by which a list is in order. Of what ended since the instant, or was last moved in since,
/// almost all began since then too; the few that did not are found by themselves, or a walk in the order of beginnings would go through
/// all that ended before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Any,
    /// Before it, of games that were going on at the instant.
    Before(OffsetDateTime),
    Since(OffsetDateTime),
}

/// The first id of the millisecond that begins at this instant, or of the next.
fn first_id(at: OffsetDateTime) -> Uuid {
    let millis = (at.unix_timestamp_nanos().clamp(0, i128::from(u64::MAX)) + 999_999) / 1_000_000;
    Uuid::from_u128((millis as u128).min((1 << 48) - 1) << 80)
}

/// The ten minutes of an instant, as `positions.last_move_bucket` has them.
fn bucket(at: OffsetDateTime) -> OffsetDateTime {
    let into = Duration::seconds(at.unix_timestamp().rem_euclid(600)) + Duration::nanoseconds(at.nanosecond().into());
    at.checked_sub(into).unwrap_or(at)
}

/// The statuses that a part can have with this filter, as a list for SQL; none if there are none.
fn statuses(filter: &Filter, part: Part) -> Option<&'static str> {
    let possible = |status: Status| {
        let of_status = filter.status.is_none_or(|wanted| wanted == status);
        let by_reason = filter.end_reason.is_none_or(|reason| match status {
            Status::Finished => reason != EndReason::Aborted,
            Status::Aborted => reason == EndReason::Aborted,
            Status::Open | Status::Active => false,
        });
        let by_result = filter.result.is_none() || status == Status::Finished;
        let by_turn = filter.to_move.is_none() || status == Status::Active;
        let by_end = filter.finished.is_open() || matches!(status, Status::Finished | Status::Aborted);
        // Nobody moves before the start.
        let moved = filter.moves_min.is_some_and(|least| least > 0) || !filter.last_move.is_open();
        of_status && by_reason && by_result && by_turn && by_end && !(moved && status == Status::Open)
    };
    let (first, second, both) = match part {
        Part::Over => (Status::Finished, Status::Aborted, "('finished', 'aborted')"),
        Part::Live => (Status::Open, Status::Active, "('open', 'active')"),
    };
    match (possible(first), possible(second)) {
        (true, true) => Some(both),
        (true, false) => Some(if part == Part::Over { "('finished')" } else { "('open')" }),
        (false, true) => Some(if part == Part::Over { "('aborted')" } else { "('active')" }),
        (false, false) => None,
    }
}

/// From which tables a part is read.
fn tables(part: Part, of_player: bool, from_positions: bool) -> &'static str {
    match (part, of_player) {
        (Part::Live, true) if from_positions => {
            "seats s join games g on g.id = s.game_id join positions p on p.game_id = s.game_id"
        }
        (_, true) => "seats s join games g on g.id = s.game_id",
        (Part::Live, false) if from_positions => "positions p join games g on g.id = p.game_id",
        (_, false) => "games g",
    }
}

/// Writes one part of a list, in order and no longer than `rows`; answers whether it can have anything. Words of ours stand in
/// it as they are, so that the planner knows what to expect of them and which partial index fits.
fn push_part(
    sql: &mut QueryBuilder<Postgres>,
    before: &str,
    list: &List<'_>,
    (part, segment, side): (Part, Segment, Side),
    after: Option<TimeKey>,
    rows: i64,
) -> bool {
    let List { filter, sort, caller, .. } = *list;
    let Some(statuses) = statuses(filter, part) else { return false };
    // Whose turn it is, is found among that player's games.
    let of_player = filter.to_move.or(filter.player);
    let opponent = filter.opponent.filter(|_| filter.to_move.is_none() && of_player.is_some());
    // Where what is over has its times and its id, for an index to have them together.
    let over = if of_player.is_some() { "s." } else { "g." };
    let finished_at = format!("{over}finished_at");
    // Of a running game what each move changes is asked for one game at a time, unless the list is read from there: a join
    // would let the planner read the positions of all games.
    let from_positions = filter.to_move.is_some() || (sort.key == SortKey::LastMove && segment == Segment::Dated);
    let (last_move_at, moves_count) = match part {
        Part::Over => (format!("{over}last_move_at"), "g.moves_count"),
        Part::Live if from_positions => ("p.last_move_at".into(), "p.moves_count"),
        Part::Live => (
            "(select p.last_move_at from positions p where p.game_id = g.id)".into(),
            "(select p.moves_count from positions p where p.game_id = g.id)",
        ),
    };
    let id = match (part, of_player) {
        (_, Some(_)) if opponent.is_some() => "c.game_id",
        (_, Some(_)) => "s.game_id",
        (Part::Live, None) if from_positions => "p.game_id",
        _ => "g.id",
    };
    let at = match (sort.key, part, segment) {
        (SortKey::Created, _, Segment::Dated) => None,
        (SortKey::Finished, Part::Over, Segment::Dated) => Some(finished_at.as_str()),
        (SortKey::Finished, Part::Live, Segment::Undated) => None,
        (SortKey::LastMove, _, Segment::Dated) => Some(last_move_at.as_str()),
        (SortKey::LastMove, _, Segment::Undated) if filter.last_move.is_open() => None,
        _ => return false,
    };
    // All running games by their last moves: by index in the order of the ten minutes in which these were.
    let in_buckets = part == Part::Live && from_positions && of_player.is_none();
    sql.push(before)
        .push("(select ")
        .push(id)
        .push(" as id, ")
        .push(at.unwrap_or("null::timestamptz"))
        .push(" as at from ");
    if let (Some(player), Some(opponent)) = (of_player, opponent) {
        // First what they have in common, by the index alone (`offset` has it done first); only that is looked at.
        sql.push("(select a.game_id from seats a join seats b on b.game_id = a.game_id where a.player_id = ");
        sql.push_bind(player).push(" and b.player_id = ").push_bind(opponent);
        sql.push(" offset 0) as c join seats o on o.game_id = c.game_id and o.player_id = ").push_bind(opponent);
        sql.push(" and o.status <> ").push_bind(INVITED).push(" cross join ");
    }
    if let Some(player) = filter.to_move {
        push_to_move(sql, player);
        sql.push(" cross join lateral (select * from games where id = p.game_id offset 0) as g");
    } else if let Side::Before(instant) = side {
        // Done first too: the planner does not know how few they are.
        sql.push("(select * from games where finished_at is not null");
        sql.push(" and tstzrange(least(created_at, finished_at), finished_at, '[]') @> ").push_bind(instant);
        sql.push(" offset 0) as g");
    } else {
        sql.push(tables(part, of_player.is_some(), from_positions));
    }
    sql.push(" where g.status in ").push(statuses);
    // Private games are for those who belong to them.
    sql.push(" and (g.visibility = 'public'");
    if let Some(caller) = caller {
        sql.push(" or exists (select from seats o where o.game_id = g.id and o.player_id = ")
            .push_bind(caller)
            .push(")");
    }
    sql.push(")");
    if let Some(player) = of_player.filter(|_| filter.to_move.is_none()) {
        sql.push(" and s.player_id = ").push_bind(player).push(" and s.status <> ").push_bind(INVITED);
        sql.push(if part == Part::Over { " and s.over_at is not null" } else { " and s.over_at is null" });
    }
    if let Some(result) = filter.result {
        sql.push(" and s.result = '").push(result.as_str()).push("'");
    }
    if opponent.is_some() {
        sql.push(" and s.game_id = c.game_id");
    }
    let others = filter.opponent.into_iter().chain(filter.player).filter(|_| filter.to_move.is_some());
    for other in others {
        sql.push(" and exists (select from seats o where o.game_id = ").push(id).push(" and o.player_id = ");
        sql.push_bind(other).push(" and o.status <> ").push_bind(INVITED).push(")");
    }
    if let Some(ruleset) = filter.ruleset {
        sql.push(" and g.ruleset = '").push(ruleset.meta().slug).push("'");
    }
    if let Some(rated) = filter.rated {
        sql.push(if rated { " and g.rated" } else { " and not g.rated" });
    }
    if let Some(reason) = filter.end_reason {
        sql.push(" and g.end_reason = '").push(reason.as_str()).push("'");
    }
    if !filter.options.is_empty() {
        sql.push(" and coalesce(g.open_options, g.options) @> ").push_bind(Json(filter.options.clone()));
    }
    for (bound, is) in [(filter.moves_min, " >= "), (filter.moves_max, " <= ")] {
        if let Some(bound) = bound {
            sql.push(" and ").push(moves_count).push(is).push_bind(i32::try_from(bound).unwrap_or(i32::MAX));
        }
    }
    for (time, span) in [(&finished_at, filter.finished), (&last_move_at, filter.last_move)] {
        for (bound, is) in [(span.from, " >= "), (span.until, " < ")] {
            if let Some(bound) = bound {
                sql.push(" and ").push(time).push(is).push_bind(bound);
            }
        }
    }
    // What follows from the order of things: no game is over, or moved in, before it is there. It spares walks through the
    // part of an index in which nothing can be.
    // In buckets the time of the last move itself says where to look; the planner would take both for more than that.
    let moved_until = filter.last_move.until.filter(|_| !in_buckets);
    let born_until = [filter.created.until, filter.finished.until, moved_until].into_iter().flatten().min();
    for (bound, is) in [(filter.created.from, " >= "), (born_until, " < ")] {
        if let Some(bound) = bound {
            sql.push(" and ").push(id).push(is).push_bind(first_id(bound));
        }
    }
    let moved_from = filter.last_move.from.filter(|_| sort.key == SortKey::Finished);
    let at_from = filter.created.from.max(moved_from);
    if let (Some(at), Some(from)) = (at, at_from) {
        sql.push(" and ").push(at).push(" >= ").push_bind(from);
    }
    if let Side::Before(instant) | Side::Since(instant) = side {
        let is = if side == Side::Since(instant) { " >= " } else { " < " };
        match at {
            Some(at) => sql.push(" and ").push(at).push(is).push_bind(instant),
            None => sql.push(" and ").push(id).push(is).push_bind(first_id(instant)),
        };
    }
    if let Some(at) = at {
        sql.push(" and ").push(at).push(" is not null");
    }
    if sort.key == SortKey::LastMove && segment == Segment::Undated {
        sql.push(" and ").push(&last_move_at).push(" is null");
    }
    let (beyond, direction) = if sort.descending { (" < ", " desc") } else { (" > ", "") };
    if in_buckets {
        sql.push(" and p.last_move_bucket is not null");
        // What the conditions on the time itself mean for where it is looked for.
        let reached = after.and_then(|after| after.at);
        let (from, until) = if sort.descending { (None, reached) } else { (reached, None) };
        let from = from.max(filter.last_move.from).max(at_from);
        let until = until.into_iter().chain(filter.last_move.until).min();
        for (bound, is) in [(from, " >= "), (until, " <= ")] {
            if let Some(bound) = bound {
                sql.push(" and p.last_move_bucket").push(is).push_bind(bucket(bound));
            }
        }
    }
    match (after, at) {
        (Some(TimeKey { at: Some(time), game_id }), Some(at)) => {
            sql.push(" and (").push(at).push(", ").push(id).push(")").push(beyond).push("(");
            sql.push_bind(time).push(", ").push_bind(game_id).push(")");
        }
        (Some(TimeKey { at: None, game_id }), None) => {
            sql.push(" and ").push(id).push(beyond).push_bind(game_id);
            if of_player.is_some() {
                // The same, of the other side of the join, which could be read from its end otherwise.
                sql.push(" and g.id").push(beyond).push_bind(game_id);
            }
        }
        _ => {}
    }
    sql.push(" order by ");
    if in_buckets {
        sql.push("p.last_move_bucket").push(direction).push(", ");
    }
    if let Some(at) = at {
        sql.push(at).push(direction).push(", ");
    }
    sql.push(id).push(direction).push(" limit ").push_bind(rows).push(")");
    true
}

/// A list as somebody asks for it.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    pub filter: &'a Filter,
    pub sort: Sort,
    /// Who asks; none without an account.
    pub caller: Option<Uuid>,
}

impl List<'_> {
    /// Writes the ids of a page, as the table `page`; answers whether there can be any.
    fn push_page(&self, sql: &mut QueryBuilder<Postgres>, segment: Segment, after: Option<TimeKey>, rows: i64) -> bool {
        sql.push(" from (select id, at from (");
        let mut any = false;
        let over = match self.divide(segment) {
            None => vec![(Part::Over, segment, Side::Any)],
            Some(at) => vec![(Part::Over, segment, Side::Before(at)), (Part::Over, segment, Side::Since(at))],
        };
        for part in over.into_iter().chain([(Part::Live, segment, Side::Any)]) {
            let before = if any { " union all " } else { "" };
            any |= push_part(sql, before, self, part, after, rows);
        }
        sql.push(") as parts");
        self.push_order(sql, "");
        sql.push(" limit ").push_bind(rows).push(") as page");
        any
    }

    fn push_order(&self, sql: &mut QueryBuilder<Postgres>, of: &str) {
        let direction = if self.sort.descending { " desc" } else { "" };
        sql.push(" order by ").push(of).push("at").push(direction).push(", ").push(of).push("id").push(direction);
    }

    /// The instant at which games that are over are divided (see [`Side`]), if that is of use.
    fn divide(&self, segment: Segment) -> Option<OffsetDateTime> {
        let Filter { player, to_move, finished, last_move, .. } = self.filter;
        let from = match self.sort.key {
            SortKey::Created => finished.from.max(last_move.from),
            SortKey::LastMove => finished.from,
            SortKey::Finished => None,
        };
        from.filter(|_| player.is_none() && to_move.is_none() && segment == Segment::Dated)
    }

    /// Whether a place is in a segment.
    fn is_in(&self, segment: Segment, place: &TimeKey) -> bool {
        self.sort.key == SortKey::Created || place.at.is_some() == (segment == Segment::Dated)
    }

    /// The segments that are left after a place, in order.
    fn segments(&self, after: Option<TimeKey>) -> &'static [Segment] {
        match (self.sort.key, after) {
            (SortKey::Created, _) => &[Segment::Dated],
            (_, Some(TimeKey { at: None, .. })) => &[Segment::Undated],
            _ => &[Segment::Dated, Segment::Undated],
        }
    }
}

/// An id with the time by which it is in order.
#[derive(FromRow)]
struct KeyRow {
    id: Uuid,
    at: Option<OffsetDateTime>,
}

/// A game with the time by which it is in order.
#[derive(FromRow)]
struct TimedRow {
    at: Option<OffsetDateTime>,
    #[sqlx(flatten)]
    game: Row,
}

impl Store {
    /// The games of a list that its caller may know of, that come after a place; at most `limit`.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_games(
        &self,
        list: &List<'_>,
        after: Option<TimeKey>,
        limit: u32,
    ) -> Result<Page<Summary>, StoreError> {
        let columns = format!("{COLUMNS}, page.at");
        let key = |row: &TimedRow| TimeKey { at: row.at, game_id: row.game.id };
        let (rows, next) = self.page(list, after, limit, (&columns, JOINS), key).await?;
        let items = rows.into_iter().map(|row| row.game.into_summary()).collect::<Result<Vec<_>, _>>()?;
        Ok(Page { items, next })
    }

    /// The ids alone of such a list.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_game_ids(
        &self,
        list: &List<'_>,
        after: Option<TimeKey>,
        limit: u32,
    ) -> Result<Page<Uuid>, StoreError> {
        let key = |row: &KeyRow| TimeKey { at: row.at, game_id: row.id };
        let (rows, next) = self.page(list, after, limit, ("select page.id, page.at", ""), key).await?;
        Ok(Page { items: rows.into_iter().map(|row| row.id).collect(), next })
    }

    /// How the database would find the ids of a page: the plans of its statements, as `explain` tells them.
    ///
    /// # Errors
    /// The database fails.
    pub async fn explain_games(
        &self,
        list: &List<'_>,
        after: Option<TimeKey>,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError> {
        let mut plans = Vec::new();
        for segment in list.segments(after) {
            let mut sql = QueryBuilder::new("explain (format json) select page.id, page.at");
            let after = after.filter(|after| list.is_in(*segment, after));
            if list.push_page(&mut sql, *segment, after, i64::from(limit) + 1) {
                let plan: Json<Value> = sql.build_query_scalar().persistent(false).fetch_one(&self.pool).await?;
                plans.push(plan.0);
            }
        }
        Ok(plans)
    }

    /// The rows of a page, made by what stands before and after the ids, and where the next page begins.
    async fn page<R>(
        &self,
        list: &List<'_>,
        after: Option<TimeKey>,
        limit: u32,
        (columns, joins): (&str, &str),
        key: impl Fn(&R) -> TimeKey,
    ) -> Result<(Vec<R>, Option<TimeKey>), StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut rows: Vec<R> = Vec::new();
        // One more than asked for tells whether there is another page.
        let wanted = limit as usize + 1;
        for segment in list.segments(after) {
            let mut sql = QueryBuilder::new(columns);
            let left = (wanted - rows.len()) as i64;
            // The second segment is read from its beginning where the first ends within the page.
            let after = after.filter(|after| list.is_in(*segment, after));
            if !list.push_page(&mut sql, *segment, after, left) {
                continue;
            }
            sql.push(joins);
            list.push_order(&mut sql, "page.");
            // Planned for these values: a player of 20,000 games is another matter than one of ten.
            rows.extend(sql.build_query_as().persistent(false).fetch_all(&self.pool).await?);
            if rows.len() >= wanted {
                break;
            }
        }
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().map(key).filter(|_| more);
        Ok((rows, next))
    }
}
