//! What happens to a player anywhere, in one order: the events of all their games, and of their account.
//!
//! Transactions of different games commit in any order, so no number or time tells what a reader has seen. A snapshot of
//! transactions does, exactly: a place in the feed is the snapshot of the statement that read up to there, and what a reader
//! has not seen yet is what that snapshot does not (`docs/decisions/0008-cursors-are-snapshots.md`).

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::summaries::{COLUMNS, JOINS, Row};
use super::{Store, StoreError};
use crate::game::{EventKind, Summary};

/// How long ago a reader may have stopped reading.
const OLDEST: Duration = Duration::days(7);

/// By how much the time of a change can be earlier than that of a snapshot that has not seen it: a transaction lasts no longer.
const SLACK: Duration = Duration::minutes(5);

/// A place in a player's feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedCursor {
    /// When it was taken.
    pub taken_at: OffsetDateTime,
    /// The transactions whose events have been read, as PostgreSQL writes a `pg_snapshot`.
    pub seen: String,
    /// In the middle of what came next: up to which snapshot that goes, and the last event that has been read.
    pub part: Option<(String, FeedKey)>,
}

/// The place of an event among those that are new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedKey {
    pub at: OffsetDateTime,
    /// All zeros for an event of the account.
    pub game_id: Uuid,
    /// Of the game; for an event of the account its number.
    pub version: i64,
    pub index: i16,
}

impl FeedKey {
    const FIRST: Self = Self { at: OffsetDateTime::UNIX_EPOCH, game_id: Uuid::nil(), version: -1, index: -1 };
}

/// What is new in a feed.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// In order.
    pub keys: Vec<FeedKey>,
    /// Where the reader is after the whole page.
    pub next: FeedCursor,
    /// Up to which snapshot the page goes, for cursors within it.
    pub upto: String,
    /// Whether there is more at once.
    pub more: bool,
}

/// An event of an account.
#[derive(Clone, Debug)]
pub struct AccountEvent {
    pub kind: EventKind,
    pub webhook_id: Option<Uuid>,
}

impl Store {
    /// Where a reader is who knows everything that has happened until now.
    ///
    /// # Errors
    /// The database fails.
    pub async fn feed_now(&self) -> Result<FeedCursor, StoreError> {
        let row = sqlx::query!(r#"select pg_current_snapshot()::text as "seen!", now() as "now!""#)
            .fetch_one(&self.pool)
            .await?;
        Ok(FeedCursor { taken_at: row.now, seen: row.seen, part: None })
    }

    /// What has happened to a player since a place of their feed, at most `limit` events. None if the place is too old, or not
    /// one of this database.
    ///
    /// # Errors
    /// The database fails.
    pub async fn feed_after(
        &self,
        player: Uuid,
        cursor: &FeedCursor,
        limit: u32,
    ) -> Result<Option<FeedPage>, StoreError> {
        let since = cursor.taken_at.checked_sub(SLACK).unwrap_or(cursor.taken_at);
        let upto = cursor.part.as_ref().map(|(upto, _)| upto.as_str());
        let changed = sqlx::query!(
            r#"with horizon as (
                select coalesce($4::text::pg_snapshot, pg_current_snapshot())::text as upto
            ), mine as (
                select game_id, bool_or(member) as member from (
                    select game_id, true as member from seats
                    where player_id = $1 and (over_at is null or over_at > $3)
                    union all
                    select game_id, false from game_events where player_id = $1 and at > $3
                ) as parts group by game_id
            ), changed as (
                select mine.game_id, mine.member,
                       coalesce(greatest(m.version, e.version), -1) as seen_version, coalesce(m.number, 0) as seen_number,
                       case when $4::text is null then p.version
                            else coalesce(greatest(um.version, ue.version), -1) end as upto_version
                from mine
                cross join horizon
                join positions p on p.game_id = mine.game_id
                left join lateral (
                    select version, number from moves
                    where game_id = mine.game_id and pg_visible_in_snapshot(xid, $2::text::pg_snapshot)
                    order by number desc limit 1
                ) as m on true
                left join lateral (
                    select version from game_events
                    where game_id = mine.game_id and pg_visible_in_snapshot(xid, $2::text::pg_snapshot)
                    order by version desc, index desc limit 1
                ) as e on true
                left join lateral (
                    select version from moves
                    where $4::text is not null and game_id = mine.game_id and pg_visible_in_snapshot(xid, upto::pg_snapshot)
                    order by number desc limit 1
                ) as um on true
                left join lateral (
                    select version from game_events
                    where $4::text is not null and game_id = mine.game_id and pg_visible_in_snapshot(xid, upto::pg_snapshot)
                    order by version desc, index desc limit 1
                ) as ue on true
                where not pg_visible_in_snapshot(p.xid, $2::text::pg_snapshot)
            )
            select upto as "upto!", now() as "now!",
                   $2::text::pg_snapshot is not null
                       and pg_snapshot_xmax($2::text::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()) as "known!",
                   coalesce(array_agg(game_id) filter (where game_id is not null), '{}') as "games!: Vec<Uuid>",
                   coalesce(array_agg(member) filter (where game_id is not null), '{}') as "members!: Vec<bool>",
                   coalesce(array_agg(seen_version) filter (where game_id is not null), '{}') as "seen_versions!: Vec<i32>",
                   coalesce(array_agg(seen_number) filter (where game_id is not null), '{}') as "seen_numbers!: Vec<i32>",
                   coalesce(array_agg(upto_version) filter (where game_id is not null), '{}') as "upto_versions!: Vec<i32>"
            from horizon left join changed on true
            group by upto"#,
            player,
            cursor.seen,
            since,
            upto,
        )
        .fetch_one(&self.pool)
        .await;
        let changed = match changed {
            // What looks like a snapshot and is none.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("22P02") => return Ok(None),
            changed => changed?,
        };
        if !changed.known || cursor.taken_at > changed.now + SLACK || changed.now - cursor.taken_at > OLDEST {
            return Ok(None);
        }
        let after = cursor.part.as_ref().map_or(FeedKey::FIRST, |(_, key)| *key);
        let rows = sqlx::query!(
            r#"with games as (
                select * from unnest($1::uuid[], $2::boolean[], $3::integer[], $4::integer[], $5::integer[])
                    as rows (game_id, member, seen_version, seen_number, upto_version)
            )
            select at as "at!", game_id as "game_id!", version as "version!", index as "index!" from (
                select m.at, m.game_id, m.version::bigint as version, 0::smallint as index
                from games g join moves m on m.game_id = g.game_id and m.number > g.seen_number
                where g.member and m.version <= g.upto_version
                union all
                select e.at, e.game_id, e.version, e.index
                from games g join game_events e on e.game_id = g.game_id and e.version > g.seen_version
                where e.version <= g.upto_version and (g.member or e.player_id = $6)
                union all
                select a.at, '00000000-0000-0000-0000-000000000000', a.id, 0::smallint
                from account_events a
                where a.player_id = $6 and a.at > $7 and not pg_visible_in_snapshot(a.xid, $8::text::pg_snapshot)
                    and pg_visible_in_snapshot(a.xid, $9::text::pg_snapshot)
            ) as events
            where (at, game_id, version, index) > ($10, $11, $12, $13)
            order by at, game_id, version, index limit $14"#,
            &changed.games,
            &changed.members,
            &changed.seen_versions,
            &changed.seen_numbers,
            &changed.upto_versions,
            player,
            since,
            cursor.seen,
            changed.upto,
            after.at,
            after.game_id,
            after.version,
            after.index,
            i64::from(limit) + 1,
        )
        .fetch_all(&self.pool)
        .await?;
        let more = rows.len() > limit as usize;
        let keys: Vec<FeedKey> = rows
            .into_iter()
            .take(limit as usize)
            .map(|row| FeedKey { at: row.at, game_id: row.game_id, version: row.version, index: row.index })
            .collect();
        let next = match keys.last().filter(|_| more) {
            Some(last) => FeedCursor { part: Some((changed.upto.clone(), *last)), ..cursor.clone() },
            // A part of the past that is read to its end was taken before now.
            None if cursor.part.is_some() => FeedCursor { seen: changed.upto.clone(), part: None, ..cursor.clone() },
            None => FeedCursor { taken_at: changed.now, seen: changed.upto.clone(), part: None },
        };
        // After the end of a part the present follows.
        let more = more || cursor.part.is_some();
        Ok(Some(FeedPage { keys, next, upto: changed.upto, more }))
    }

    /// An event of a player's account by its number; none if there is no such.
    ///
    /// # Errors
    /// The database fails, or it cannot be read.
    pub async fn account_event(&self, player: Uuid, id: i64) -> Result<Option<AccountEvent>, StoreError> {
        let row =
            sqlx::query!("select type, webhook_id from account_events where player_id = $1 and id = $2", player, id)
                .fetch_optional(&self.pool)
                .await?;
        row.map(|row| {
            let kind = super::games::word("an event", &row.r#type, EventKind::parse)?;
            Ok(AccountEvent { kind, webhook_id: row.webhook_id })
        })
        .transpose()
    }

    /// The games of a player, or to which they are invited, in which something can still happen: those that changed last first,
    /// at most `limit`.
    ///
    /// # Errors
    /// The database fails.
    pub async fn live_games(&self, player: Uuid, limit: u32) -> Result<Vec<Summary>, StoreError> {
        let mut sql = sqlx::QueryBuilder::new(COLUMNS);
        sql.push(
            " from (select p.game_id as id, p.changed_at from seats s join positions p on p.game_id = s.game_id
                    where s.over_at is null and s.player_id = ",
        );
        sql.push_bind(player).push(" order by p.changed_at desc, p.game_id limit ").push_bind(i64::from(limit));
        sql.push(") as page").push(JOINS).push(" order by page.changed_at desc, page.id");
        let rows: Vec<Row> = sql.build_query_as().fetch_all(&self.pool).await?;
        rows.into_iter().map(Row::into_summary).collect()
    }
}
