//! What operators want to know of the whole database, looked up now and then and never for a request.

use std::time::Instant;

use super::game_pool::Counts;
use super::{Store, StoreError};
use crate::metrics::{Metrics, Pool, Sample};
use crate::rulesets::registry::RulesetId;

impl Store {
    /// What this server counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The connections of all threads as they are now.
    pub fn connections(&self) -> Pool {
        let (size, idle) = (self.pool.size() as usize, self.pool.num_idle());
        let most = self.pool.options().get_max_connections() as usize;
        self.games.0.iter().fold(Pool { idle, in_use: size.saturating_sub(idle), waiting: 0, most }, |all, games| {
            let Counts { open, idle, waiting } = games.counts();
            Pool {
                idle: all.idle + idle,
                in_use: all.in_use + open.saturating_sub(idle),
                waiting: all.waiting + waiting,
                most: all.most + games.most(),
            }
        })
    }

    /// Looks up what a sample has. Live games are counted by an index of which only their part is read: this takes as long as
    /// there are games going on, however many have ended.
    ///
    /// # Errors
    /// The database fails.
    pub async fn sample(&self) -> Result<Sample, StoreError> {
        let begun = Instant::now();
        let mut connection = self.pool.acquire().await?;
        let acquired = begun.elapsed();
        let slugs: Vec<&str> = RulesetId::ALL.iter().map(|ruleset| ruleset.meta().slug).collect();
        let counts: Vec<(String, String, i64)> = sqlx::query_as(
            "select r.ruleset, s.status, n.count
             from unnest($1::text[]) as r (ruleset) cross join (values ('open'), ('active')) as s (status)
             cross join lateral (select count(*) from games g where g.ruleset = r.ruleset and g.status = s.status) as n",
        )
        .bind(&slugs)
        .fetch_all(&mut *connection)
        .await?;
        // By an index each: of what the sweeper has not come to yet, and by the first entry. A game that cannot be read is late since it
        // was to be looked at again.
        let (clock_delay, webhook_delay): (f64, f64) = sqlx::query_as(
            "select coalesce(greatest(extract(epoch from clock_time() - (select min(greatest(due_at, check_at)) from positions
                                                                          where check_at <= clock_time())), 0), 0)::float8,
                    coalesce(greatest(extract(epoch from now() - (select min(next_attempt_at) from webhook_deliveries)), 0), 0)::float8",
        )
        .fetch_one(&mut *connection)
        .await?;
        let games =
            counts.into_iter().filter_map(|(slug, status, count)| Some((RulesetId::from_slug(&slug)?, status, count)));
        Ok(Sample { acquired, games: games.collect(), clock_delay, webhook_delay })
    }
}
