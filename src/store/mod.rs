//! Layer 3: the only SQL. Loads games, lets them handle commands, writes what changed in one atomic step.
//!
//! Statements are sqlx's checked macros, but for lists, whose filters vary. A move costs two round trips: one statement
//! that reads everything (who asks, the game, an earlier answer under the same key) and one that writes everything,
//! guarded by the version; a write that loses the race is judged again on the new state.

mod accounts;
mod bulk;
mod clocks;
mod commands;
mod deliveries;
mod error;
mod events;
mod exports;
mod feed;
mod game_pool;
mod games;
mod hub;
mod idempotency;
mod list;
mod moves;
mod player_feed;
mod players;
mod ratings;
mod recompute;
mod sampling;
mod sessions;
mod statistics;
mod summaries;
mod tokens;
mod turns;
mod webhooks;
mod writing;

use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};

use game_pool::GamePool;
use hub::Hub;

use crate::metrics::Metrics;

pub use bulk::Past;
pub use commands::{Created, Rematch, Updated};
pub use deliveries::{Attempt, Delivery, DeliveryPlace, Due, Outcome, Verdict};
pub use error::StoreError;
pub use events::Names;
pub use feed::Listener;
pub use games::{Access, Loaded};
pub use hub::Watch;
pub use idempotency::{Answer, Headers, IdempotencyKey, Repeat};
pub use list::{Filter, List, Page, Sort, SortKey, Span};
pub use player_feed::{AccountEvent, FeedCursor, FeedKey, FeedPage};
pub use players::{Profile, Registered};
pub use ratings::{CurrentRating, Leader, LeaderPage, LeaderPlace, RatedPlayer, RatingChange};
pub use recompute::Difference;
pub use sessions::SessionsError;
pub use statistics::{EndCount, MOST_MONTHS, MOST_OPPONENTS, PlayerStatistics, Results, RulesetStatistics};
pub use tokens::{Bearer, Issued, MOST_TOKENS, NewToken, Scope, Scopes, Token, TokenHash, TokenName};
pub use turns::{TimeKey, TimePage};
pub use webhooks::{MOST_WEBHOOKS, Webhook};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// After how long without use a connection is asked whether it is still there.
const IDLE: Duration = Duration::from_secs(1);

/// How long whoever needs a connection waits for one.
const PATIENCE: Duration = Duration::from_secs(5);

/// The database of one server.
#[derive(Clone, Debug)]
pub struct Store {
    /// For everything but single games.
    pool: PgPool,
    /// For single games: those of all threads, and the place of this one's.
    games: (Arc<[GamePool]>, usize),
    hub: Arc<Hub>,
    metrics: Arc<Metrics>,
}

impl Store {
    /// At most so many connections, or two: half of them are for single games, by moves and whoever reads one, the others for
    /// everything else. They are made when they are needed, so this succeeds while the database is away.
    pub fn open(options: PgConnectOptions, connections: u32) -> Self {
        let games = GamePool::new(options.clone(), (connections / 2).max(1) as usize);
        let pool = open_pool(options, connections.div_ceil(2));
        Self { pool, games: (Arc::new([games]), 0), hub: Arc::default(), metrics: Arc::default() }
    }

    /// Shares the connections for games out among so many threads, each of which is to have [`Store::for_thread`]. Two of them stay
    /// together at least, so that one that waits for a row does not keep all games of a thread waiting: threads may have to share.
    pub fn spread(self, threads: usize) -> Self {
        let most: usize = self.games.0.iter().map(GamePool::most).sum();
        let pools = threads.min(most / 2).max(1);
        let options = self.pool.connect_options();
        let share = |place| most / pools + usize::from(place < most % pools);
        let games = (0..pools).map(|place| GamePool::new(PgConnectOptions::clone(&options), share(place))).collect();
        Self { games: (games, 0), ..self }
    }

    /// The same for the thread of this number, from 0.
    pub fn for_thread(&self, number: usize) -> Self {
        let games = self.games.0.clone();
        let place = number % games.len();
        Self { games: (games, place), ..self.clone() }
    }

    /// The same database by connections of its own, at most so many, for everything but single games. A connection lives on the runtime
    /// that made it: those of requests end with the threads that serve them, and what goes on a little longer needs others.
    pub fn apart(&self, connections: u32) -> Self {
        let options = PgConnectOptions::clone(&self.pool.connect_options());
        Self { pool: open_pool(options, connections), ..self.clone() }
    }

    fn games(&self) -> &GamePool {
        let (pools, place) = &self.games;
        &pools[*place]
    }

    /// Brings the schema up to date.
    ///
    /// # Errors
    /// The database cannot be reached, or has migrations that this server does not know.
    pub async fn migrate(&self) -> Result<(), sqlx::migrate::MigrateError> {
        // On a connection of its own, which may wait: for another server that is migrating, or for a large table.
        let mut connection = PgConnection::connect_with(&self.pool.connect_options()).await?;
        MIGRATIONS.run(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Whether the database answers, by one of the connections for games, and has all migrations of this server.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn is_ready(&self) -> Result<bool, StoreError> {
        let newest = MIGRATIONS.iter().map(|migration| migration.version).max();
        let mut connection = self.games().get().await?;
        let applied: Option<i64> = sqlx::query_scalar("select max(version) from _sqlx_migrations where success")
            .fetch_one(&mut *connection)
            .await?;
        connection.settle();
        Ok(applied >= newest)
    }

    /// Says that something has been queued for webhooks, once it is committed: this server's worker then looks at once. Others
    /// find it when they look next.
    pub fn wake_webhooks(&self) {
        self.hub.webhooks_woken.notify_one();
    }

    /// Ends all connections, those for everything but games once what they are doing is done.
    pub async fn close(&self) {
        self.games.0.iter().for_each(GamePool::close);
        self.pool.close().await;
    }
}

/// A pool of at most so many connections, which are made when they are needed.
fn open_pool(options: PgConnectOptions, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        // A connection that is in use is alive; one that has idled may have been lost, with a restart of the database say.
        // Asking each time would be a round trip more for every statement.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .after_connect(|connection, _| Box::pin(async move { settle_session(connection).await }))
        .connect_lazy_with(options)
}

/// Ends what waits too long. Without this one row that stays locked, by a server whose machine has failed in the middle of a
/// transaction, say, keeps every connection that asks for it, and soon all of them; and a statement whose request was given
/// up may still be carried out much later. Statements are not compiled to machine code either: that takes a second or more, which
/// none of ours takes, and PostgreSQL begins it where its estimate of the cost is wrong.
async fn settle_session(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(
        "set lock_timeout = '3s'; set statement_timeout = '20s'; set idle_in_transaction_session_timeout = '20s'; set jit = off",
    )
    .execute(connection)
    .await?;
    Ok(())
}
