//! Statistics: counting finished games, each exactly once, and reading what has been counted.
//!
//! A game is queued by the statement that finishes it. A worker takes a batch off the queue and adds it to the statistics in one
//! transaction, so a crash leaves it queued. Rows are written in the same order everywhere: servers that count at once wait for
//! each other and never in a circle.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::players::player;
use super::{Store, StoreError};
use crate::game::Player;
use crate::rulesets::EndReason;
use crate::rulesets::registry::RulesetId;

/// How many opponents are told of.
pub const MOST_OPPONENTS: i64 = 100;

/// How many months are told of, the latest.
pub const MOST_MONTHS: usize = 120;

/// Whoever counts holds this advisory lock with others, whoever counts anew has it alone. The number means nothing.
const LOCK: i64 = 0x7461_766f_7374;

/// Finished games as they went for one player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// `won`, `lost` and `shared` together.
    pub games: i64,
    /// Won alone; alone at the table: the game's own goal reached.
    pub won: i64,
    pub lost: i64,
    /// Won together with others.
    pub shared: i64,
    /// In which the player resigned or was timed out.
    pub left: i64,
    /// Moves of all seats in these games.
    pub moves: i64,
}

/// The statistics of a player; no list has a line without games.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerStatistics {
    pub total: Results,
    /// In the order of slugs.
    pub by_ruleset: Vec<(RulesetId, Results)>,
    /// By how many played, fewest first.
    pub by_seats: Vec<(u8, Results)>,
    /// The at most [`MOST_OPPONENTS`] most frequent, most games first, then in the order of ids.
    pub by_opponent: Vec<(Player, Results)>,
    /// By the month in which they finished (UTC, as in `2026-11`), the latest [`MOST_MONTHS`] in order of time.
    pub by_month: Vec<(String, Results)>,
}

/// The public finished games of a ruleset with one number of seats and one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndCount {
    pub seats: u8,
    pub reason: EndReason,
    pub games: i64,
    /// Those of two or more that one seat alone has won.
    pub decided: i64,
    /// Of those: that the seat that moved first has won.
    pub first_won: i64,
}

/// The statistics of a ruleset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulesetStatistics {
    /// In order of seats, then of reasons.
    pub ends: Vec<EndCount>,
    /// How many games had so many moves, in order of moves.
    pub moves: Vec<(i64, u64)>,
    /// How many seats had such a score, in order of scores.
    pub scores: Vec<(i64, u64)>,
}

impl Store {
    /// Counts at most `most` of the finished games that are not in the statistics yet; answers how many. None while everything
    /// is counted anew.
    ///
    /// # Errors
    /// The database fails; nothing was counted then.
    pub async fn count_finished(&self, most: u32) -> Result<u64, StoreError> {
        // Mostly there is nothing to do, and this is all that it costs.
        let waiting = sqlx::query_scalar!(r#"select exists (select from uncounted_games) as "waiting!""#);
        if !waiting.fetch_one(&self.pool).await? {
            return Ok(0);
        }
        let mut transaction = self.pool.begin().await?;
        let allowed = sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock_shared($1) as "allowed!""#, LOCK);
        if !allowed.fetch_one(&mut *transaction).await? {
            return Ok(0);
        }
        let claimed = sqlx::query_scalar!(
            "delete from uncounted_games
             where game_id in (select game_id from uncounted_games order by game_id limit $1 for update skip locked)
             returning game_id",
            i64::from(most),
        )
        .fetch_all(&mut *transaction)
        .await?;
        if !claimed.is_empty() {
            add(&mut transaction, Some(&claimed)).await?;
        }
        transaction.commit().await?;
        Ok(claimed.len() as u64)
    }

    /// Empties the statistics and counts all finished games anew; answers how many. Until it is done the old statistics are
    /// read. Games go on and finish meanwhile, and those that do are counted afterwards.
    ///
    /// # Errors
    /// The database fails; the statistics are as they were then.
    pub async fn rebuild_statistics(&self) -> Result<u64, StoreError> {
        // On a connection of its own, which may wait and take long. The lock ends with it.
        let mut connection = PgConnection::connect_with(&self.pool.connect_options()).await?;
        // Before the transaction has its snapshot: that has to contain what others count until then.
        sqlx::query!("select pg_advisory_lock($1)", LOCK).execute(&mut connection).await?;
        // One snapshot for everything: a game that it shows as finished it also shows in the queue, unless it was counted; one that
        // finishes later is in neither, and stays queued.
        let mut transaction = connection.begin_with("begin isolation level repeatable read").await?;
        // Most of the work is sorting, and grouping, what there is much of.
        sqlx::query!("set local work_mem = '256MB'").execute(&mut *transaction).await?;
        sqlx::query!("delete from uncounted_games").execute(&mut *transaction).await?;
        sqlx::query!("delete from player_statistics").execute(&mut *transaction).await?;
        sqlx::query!("delete from opponent_statistics").execute(&mut *transaction).await?;
        sqlx::query!("delete from ruleset_statistics").execute(&mut *transaction).await?;
        sqlx::query!("delete from ruleset_histograms").execute(&mut *transaction).await?;
        add(&mut transaction, None).await?;
        let counted = sqlx::query_scalar!(r#"select count(*) as "count!" from games where status = 'finished'"#)
            .fetch_one(&mut *transaction)
            .await?;
        transaction.commit().await?;
        connection.close().await?;
        Ok(counted.cast_unsigned())
    }

    /// The statistics of a player, of all rulesets or of one; `with_private`: of private games too.
    ///
    /// # Errors
    /// The database fails.
    pub async fn player_statistics(
        &self,
        id: Uuid,
        with_private: bool,
        ruleset: Option<RulesetId>,
    ) -> Result<PlayerStatistics, StoreError> {
        let slug = ruleset.map(|ruleset| ruleset.meta().slug);
        // Opponents are of the same moment as the rest.
        let mut transaction = self.pool.begin_with("begin isolation level repeatable read read only").await?;
        let rows = sqlx::query!(
            r#"select ruleset as "ruleset?", seat_count as "seat_count?", to_char(month, 'YYYY-MM') as "month?",
                      coalesce(sum(games), 0)::bigint as "games!", coalesce(sum(won), 0)::bigint as "won!",
                      coalesce(sum(lost), 0)::bigint as "lost!", coalesce(sum(shared), 0)::bigint as "shared!",
                      coalesce(sum(times_left), 0)::bigint as "left!", coalesce(sum(moves), 0)::bigint as "moves!"
               from player_statistics
               where player_id = $1 and (visibility = 'public' or $2) and ($3::text is null or ruleset = $3)
               group by grouping sets ((), (ruleset), (seat_count), (month))
               order by ruleset, seat_count, month"#,
            id,
            with_private,
            slug,
        )
        .fetch_all(&mut *transaction)
        .await?;
        let opponents = sqlx::query!(
            r#"select p.id, p.name, p.kind, o.games as "games!", o.won as "won!", o.lost as "lost!", o.shared as "shared!",
                      o.times_left as "left!", o.moves as "moves!"
               from (
                   select opponent_id, sum(games)::bigint as games, sum(won)::bigint as won, sum(lost)::bigint as lost,
                          sum(shared)::bigint as shared, sum(times_left)::bigint as times_left, sum(moves)::bigint as moves
                   from opponent_statistics
                   where player_id = $1 and (visibility = 'public' or $2) and ($3::text is null or ruleset = $3)
                   group by opponent_id order by games desc, opponent_id limit $4
               ) as o
               join players p on p.id = o.opponent_id
               order by o.games desc, o.opponent_id"#,
            id,
            with_private,
            slug,
            MOST_OPPONENTS,
        )
        .fetch_all(&mut *transaction)
        .await?;
        transaction.commit().await?;

        let (mut total, mut by_ruleset) = (Results::default(), Vec::new());
        let (mut by_seats, mut by_month) = (Vec::new(), Vec::new());
        for row in rows {
            let results = Results {
                games: row.games,
                won: row.won,
                lost: row.lost,
                shared: row.shared,
                left: row.left,
                moves: row.moves,
            };
            match (row.ruleset, row.seat_count, row.month) {
                (Some(slug), ..) => by_ruleset.push((ruleset_of(&slug)?, results)),
                (_, Some(seats), _) => by_seats.push((seats_of(seats)?, results)),
                (.., Some(month)) => by_month.push((month, results)),
                (None, None, None) => total = results,
            }
        }
        by_month.drain(..by_month.len().saturating_sub(MOST_MONTHS));
        let by_opponent = opponents.into_iter().map(|row| {
            let results = Results {
                games: row.games,
                won: row.won,
                lost: row.lost,
                shared: row.shared,
                left: row.left,
                moves: row.moves,
            };
            Ok((player(row.id, row.name, &row.kind)?, results))
        });
        let by_opponent = by_opponent.collect::<Result<_, StoreError>>()?;
        Ok(PlayerStatistics { total, by_ruleset, by_seats, by_opponent, by_month })
    }

    /// The statistics of a ruleset, with all numbers of seats or with one.
    ///
    /// # Errors
    /// The database fails.
    pub async fn ruleset_statistics(
        &self,
        ruleset: RulesetId,
        seats: Option<u8>,
    ) -> Result<RulesetStatistics, StoreError> {
        let (slug, seats) = (ruleset.meta().slug, seats.map(i16::from));
        let mut transaction = self.pool.begin_with("begin isolation level repeatable read read only").await?;
        let rows = sqlx::query!(
            "select seat_count, end_reason, games, decided, first_won from ruleset_statistics
             where ruleset = $1 and ($2::smallint is null or seat_count = $2)",
            slug,
            seats,
        )
        .fetch_all(&mut *transaction)
        .await?;
        let histograms = sqlx::query!(
            r#"select kind, value, sum(count)::bigint as "count!" from ruleset_histograms
               where ruleset = $1 and ($2::smallint is null or seat_count = $2)
               group by kind, value order by kind, value"#,
            slug,
            seats,
        )
        .fetch_all(&mut *transaction)
        .await?;
        transaction.commit().await?;

        let mut statistics = RulesetStatistics::default();
        for row in rows {
            statistics.ends.push(EndCount {
                seats: seats_of(row.seat_count)?,
                reason: reason_of(&row.end_reason)?,
                games: row.games,
                decided: row.decided,
                first_won: row.first_won,
            });
        }
        statistics.ends.sort_by_key(|end| (end.seats, end.reason));
        for row in histograms {
            let histogram = if row.kind == "moves" { &mut statistics.moves } else { &mut statistics.scores };
            histogram.push((i64::from(row.value), row.count.cast_unsigned()));
        }
        Ok(statistics)
    }
}

/// Adds finished games to the statistics: these, or all.
async fn add(transaction: &mut PgConnection, games: Option<&[Uuid]>) -> Result<(), sqlx::Error> {
    // The same statements serve for some games and for all, and must be planned for what they are asked.
    sqlx::query!("set local plan_cache_mode = force_custom_plan").execute(&mut *transaction).await?;
    sqlx::query!(
        "insert into player_statistics as t (player_id, visibility, ruleset, seat_count, month, games, won, lost, shared,
                                             times_left, moves)
         select s.player_id, g.visibility, g.ruleset, g.seat_count,
                date_trunc('month', g.finished_at at time zone 'UTC')::date as month,
                count(*), count(*) filter (where s.result = 'won'), count(*) filter (where s.result = 'lost'),
                count(*) filter (where s.result = 'shared'), count(*) filter (where s.status in ('resigned', 'timed_out')),
                sum(g.moves_count)
         from games g join seats s on s.game_id = g.id and s.result is not null
         where g.status = 'finished' and ($1::uuid[] is null or g.id = any ($1))
         group by s.player_id, g.visibility, g.ruleset, g.seat_count, month
         order by s.player_id, g.visibility, g.ruleset, g.seat_count, month
         on conflict on constraint player_statistics_pkey do update
         set games = t.games + excluded.games, won = t.won + excluded.won, lost = t.lost + excluded.lost,
             shared = t.shared + excluded.shared, times_left = t.times_left + excluded.times_left,
             moves = t.moves + excluded.moves",
        games,
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "insert into opponent_statistics as t (player_id, opponent_id, visibility, ruleset, games, won, lost, shared, times_left,
                                               moves)
         select s.player_id, o.player_id as opponent_id, g.visibility, g.ruleset,
                count(*), count(*) filter (where s.result = 'won'), count(*) filter (where s.result = 'lost'),
                count(*) filter (where s.result = 'shared'), count(*) filter (where s.status in ('resigned', 'timed_out')),
                sum(g.moves_count)
         from games g
         join seats s on s.game_id = g.id and s.result is not null
         join seats o on o.game_id = g.id and o.result is not null and o.seat <> s.seat
         where g.status = 'finished' and ($1::uuid[] is null or g.id = any ($1))
         group by s.player_id, o.player_id, g.visibility, g.ruleset
         order by s.player_id, o.player_id, g.visibility, g.ruleset
         on conflict on constraint opponent_statistics_pkey do update
         set games = t.games + excluded.games, won = t.won + excluded.won, lost = t.lost + excluded.lost,
             shared = t.shared + excluded.shared, times_left = t.times_left + excluded.times_left,
             moves = t.moves + excluded.moves",
        games,
    )
    .execute(&mut *transaction)
    .await?;
    // A seat has won alone or none has: at most one row of `seats` joins.
    sqlx::query!(
        "insert into ruleset_statistics as t (ruleset, seat_count, end_reason, games, decided, first_won)
         select g.ruleset, g.seat_count, g.end_reason, count(*),
                count(*) filter (where g.seat_count > 1 and g.first_seat is not null and w.seat is not null),
                count(*) filter (where g.seat_count > 1 and w.seat = g.first_seat)
         from games g left join seats w on w.game_id = g.id and w.result = 'won'
         where g.status = 'finished' and g.visibility = 'public' and ($1::uuid[] is null or g.id = any ($1))
         group by g.ruleset, g.seat_count, g.end_reason
         order by g.ruleset, g.seat_count, g.end_reason
         on conflict on constraint ruleset_statistics_pkey do update
         set games = t.games + excluded.games, decided = t.decided + excluded.decided,
             first_won = t.first_won + excluded.first_won",
        games,
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "insert into ruleset_histograms as t (ruleset, seat_count, kind, value, count)
         select g.ruleset, g.seat_count, v.kind, v.value, count(*)
         from games g
         cross join lateral (
             select 'moves' as kind, g.moves_count as value
             union all
             select 'score', (line ->> 'score')::integer from jsonb_array_elements(g.outcome -> 'ranking') as line
         ) as v
         where g.status = 'finished' and g.visibility = 'public' and ($1::uuid[] is null or g.id = any ($1))
         group by g.ruleset, g.seat_count, v.kind, v.value
         order by g.ruleset, g.seat_count, v.kind, v.value
         on conflict on constraint ruleset_histograms_pkey do update set count = t.count + excluded.count",
        games,
    )
    .execute(&mut *transaction)
    .await?;
    Ok(())
}

fn ruleset_of(slug: &str) -> Result<RulesetId, StoreError> {
    RulesetId::from_slug(slug).ok_or_else(|| StoreError::Corrupt(format!("statistics of the ruleset {slug}")))
}

fn seats_of(seats: i16) -> Result<u8, StoreError> {
    u8::try_from(seats).map_err(|_| StoreError::Corrupt(format!("statistics of {seats} seats")))
}

fn reason_of(word: &str) -> Result<EndReason, StoreError> {
    let known = [EndReason::Completed, EndReason::TurnLimit, EndReason::Resignation, EndReason::Timeout];
    let reason = known.into_iter().find(|reason| reason.as_str() == word);
    reason.ok_or_else(|| StoreError::Corrupt(format!("statistics of the end {word}")))
}
