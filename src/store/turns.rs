//! What waits for a player: games in which it is their turn, and invitations.

use sqlx::{FromRow, Postgres, QueryBuilder};
use time::OffsetDateTime;
use uuid::Uuid;

use super::summaries::{COLUMNS, JOINS, Row};
use super::{Store, StoreError};
use crate::game::Summary;

/// A place in a list that is in order of time, then of game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeKey {
    /// None: after all times.
    pub at: Option<OffsetDateTime>,
    pub game_id: Uuid,
}

/// A page of games in order of time.
#[derive(Clone, Debug)]
pub struct TimePage {
    pub items: Vec<Summary>,
    /// Where the next page begins: after this. None when there is no more.
    pub next: Option<TimeKey>,
}

/// A game with the time by which it is in order.
#[derive(FromRow)]
struct TimedRow {
    at: Option<OffsetDateTime>,
    #[sqlx(flatten)]
    game: Row,
}

/// Writes the tables `s` and `p` of the games in which it is a player's turn. They are found among those of the player that are not
/// over: into an index of whose turn it is every move would write. Game by game (`offset`): the planner expects more of them where a
/// player has a long history, and would read all that there are, or all of that player's.
pub(super) fn push_to_move(sql: &mut QueryBuilder<Postgres>, player: Uuid) {
    sql.push("(select * from seats where over_at is null and status = 'playing' and player_id = ").push_bind(player);
    sql.push(" offset 0) as s cross join lateral");
    sql.push(" (select * from positions where game_id = s.game_id and to_move_seat = s.seat offset 0) as p");
}

impl Store {
    /// The games that wait for a player's move, the nearest deadline first, those without one last.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_turns(&self, player: Uuid, after: Option<TimeKey>, limit: u32) -> Result<TimePage, StoreError> {
        let mut sql = QueryBuilder::new(COLUMNS);
        let key = "coalesce(p.due_at, 'infinity'::timestamptz)";
        sql.push(", page.at from (select p.game_id as id, p.due_at as at from ");
        push_to_move(&mut sql, player);
        if let Some(TimeKey { at, game_id }) = after {
            sql.push(" where (").push(key).push(", p.game_id) > (coalesce(");
            sql.push_bind(at).push(", 'infinity'::timestamptz), ").push_bind(game_id).push(")");
        }
        sql.push(" order by ").push(key).push(", p.game_id limit ").push_bind(i64::from(limit) + 1);
        sql.push(") as page").push(JOINS).push(" order by page.at nulls last, page.id");
        self.timed_page(sql, limit).await
    }

    /// The open games in which a seat is kept for a player, those whose time is over first.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_invitations(
        &self,
        player: Uuid,
        after: Option<TimeKey>,
        limit: u32,
    ) -> Result<TimePage, StoreError> {
        let mut sql = QueryBuilder::new(COLUMNS);
        sql.push(", page.at from (select game_id as id, expires_at as at from seats where status = 'invited' and player_id = ");
        sql.push_bind(player).push(" and expires_at > now()");
        if let Some(TimeKey { at, game_id }) = after {
            sql.push(" and (expires_at, game_id) > (").push_bind(at).push(", ").push_bind(game_id).push(")");
        }
        sql.push(" order by expires_at, game_id limit ").push_bind(i64::from(limit) + 1);
        sql.push(") as page").push(JOINS).push(" order by page.at, page.id");
        self.timed_page(sql, limit).await
    }

    async fn timed_page(&self, mut sql: QueryBuilder<Postgres>, limit: u32) -> Result<TimePage, StoreError> {
        let rows: Vec<TimedRow> = sql.build_query_as().fetch_all(&self.pool).await?;
        let more = rows.len() > limit as usize;
        let mut next = None;
        let mut items = Vec::with_capacity(rows.len());
        for row in rows.into_iter().take(limit as usize) {
            let game = row.game.into_summary()?;
            next = Some(TimeKey { at: row.at, game_id: game.id });
            items.push(game);
        }
        Ok(TimePage { items, next: next.filter(|_| more) })
    }
}
