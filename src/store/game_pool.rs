//! The connections for single games: for moves and other commands, and for reading a game, which are most of what is asked.
//!
//! Each thread that serves requests has its own few, for a connection wakes the thread that made it, and waking another one
//! takes longer than a statement. sqlx's pool asks each connection that comes back whether it is still there, since it
//! cannot know in the middle of what a request was given up; that would be one more round trip for each use. Here whoever is
//! done says so ([`GameConnection::settle`]), and a connection of which nobody has said it is not used again. Who waits is
//! served in turn.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use deadpool::managed::{Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleResult};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{IDLE, PATIENCE, StoreError, settle_session};

/// The connections of one thread.
#[derive(Clone, Debug)]
pub(super) struct GamePool {
    pool: Pool<Connector>,
    /// Who reads for a stream needs one of these first, so that many streams keep no move waiting.
    turns: Arc<Semaphore>,
    /// Those of all threads that serve requests.
    threads: Arc<Mutex<Vec<Pool<Connector>>>>,
}

/// How many connections there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub open: usize,
    pub idle: usize,
    pub most: usize,
}

/// Makes connections.
#[derive(Debug)]
struct Connector(PgConnectOptions);

impl Manager for Connector {
    type Type = PgConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.0.connect().await?;
        settle_session(&mut connection).await?;
        Ok(connection)
    }

    async fn recycle(&self, connection: &mut PgConnection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if metrics.last_used() > IDLE {
            connection.ping().await?;
        }
        Ok(())
    }
}

impl GamePool {
    /// At most so many connections, which are made when they are needed.
    pub fn new(options: PgConnectOptions, connections: usize) -> Self {
        Self { pool: pool(options, connections), turns: turns(connections), threads: Arc::default() }
    }

    /// How many connections this thread may have.
    pub fn most(&self) -> usize {
        self.pool.status().max_size
    }

    /// The same for another thread.
    pub fn for_thread(&self, options: PgConnectOptions, connections: usize) -> Self {
        let pool = pool(options, connections);
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(pool.clone());
        Self { pool, turns: turns(connections), threads: self.threads.clone() }
    }

    /// A connection, as soon as there is one.
    ///
    /// # Errors
    /// The database cannot be reached, or there was none in time.
    pub async fn get(&self) -> Result<GameConnection, StoreError> {
        let error = match timeout(PATIENCE, self.pool.get()).await {
            Ok(Ok(connection)) => return Ok(GameConnection { connection: Some(connection), settled: true }),
            Ok(Err(PoolError::Backend(error))) => error,
            Ok(Err(_)) => sqlx::Error::PoolClosed,
            Err(_) => sqlx::Error::PoolTimedOut,
        };
        Err(error.into())
    }

    /// Waits until few enough read for streams.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.turns.clone().acquire_owned().await.ok()
    }

    /// How many connections there are in all threads that serve requests.
    pub fn counts(&self) -> Counts {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().map(Pool::status).fold(Counts::default(), |counts, status| Counts {
            open: counts.open + status.size,
            idle: counts.idle + status.available,
            most: counts.most + status.max_size,
        })
    }

    /// Ends the connections of all threads, those that are in use once they come back.
    pub fn close(&self) {
        self.pool.close();
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Pool::close);
    }
}

fn turns(connections: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(connections.div_ceil(2)))
}

fn pool(options: PgConnectOptions, connections: usize) -> Pool<Connector> {
    // The one that was used last: fewer processes of the database are kept busy, and know by heart what they do.
    let pool = Pool::builder(Connector(options)).max_size(connections).queue_mode(QueueMode::Lifo).build();
    pool.expect("only a pool with time limits of its own needs more to be made")
}

/// A connection in use. It goes back to the others if it is settled when it is dropped, and ends otherwise: what it has left open
/// in the database ends with it.
pub(super) struct GameConnection {
    /// There until it is dropped.
    connection: Option<Object<Connector>>,
    settled: bool,
}

impl GameConnection {
    /// Says that what was asked has been answered to the end, and that no transaction is open.
    pub fn settle(&mut self) {
        self.settled = true;
    }

    /// Settles it unless the database failed.
    pub fn settled<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if !matches!(result, Err(StoreError::Database(_) | StoreError::Unavailable(_))) {
            self.settle();
        }
        result
    }
}

impl Deref for GameConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for GameConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.settled = false;
        self.connection.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for GameConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.settled
        {
            drop(Object::take(connection));
        }
    }
}
