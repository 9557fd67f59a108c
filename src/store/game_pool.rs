//! The connections for single games: for moves and other commands, and for reading a game, which are most of what is asked.
//!
//! Each thread that serves requests has its own few, for the system wakes the thread that made a connection, and waking another one
//! takes longer than a statement. sqlx's pool asks each connection that comes back whether it is still there, since it
//! cannot know in the middle of what a request was given up; that would be one more round trip for each use. Here whoever is
//! done says so ([`GameConnection::settle`]), and a connection of which nobody has said it is not used again. Who waits is
//! served in turn.

use std::fmt;
use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool::managed::{Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleError, RecycleResult};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

use super::{IDLE, PATIENCE, StoreError, settle_session};

/// How long a connection is used. One that stays for ever may stay with a server that is not the primary any more.
const LIFETIME: Duration = Duration::from_secs(1800);

/// The connections of one thread, or of a few.
#[derive(Debug)]
pub(super) struct GamePool {
    pool: Pool<Connector>,
    /// Who reads for a stream needs one of these first: many streams keep no move waiting, and take the room of few readings.
    turns: Semaphore,
}

/// How many connections there are, and how many requests wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub open: usize,
    pub idle: usize,
    pub waiting: usize,
}

/// Makes connections.
struct Connector(PgConnectOptions);

impl Connector {
    /// As sqlx's pool does: a database that is being restarted, or has no room just now, is asked again until whoever waits is
    /// tired of it.
    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut pause = Duration::from_millis(10);
        loop {
            match self.0.connect().await {
                Ok(mut connection) => {
                    settle_session(&mut connection).await?;
                    return Ok(connection);
                }
                Err(error) if !passes_soon(&error) => return Err(error),
                Err(_) => sleep(pause).await,
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

/// Without the options, which have a password.
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Manager for Connector {
    type Type = PgConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<PgConnection, sqlx::Error> {
        // Behind a pointer: otherwise every request had the room for it, ten times as much as it needs of itself.
        Box::pin(self.connect()).await
    }

    async fn recycle(&self, connection: &mut PgConnection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if metrics.age() > LIFETIME {
            return Err(RecycleError::message("it is old"));
        }
        if metrics.last_used() > IDLE {
            connection.ping().await?;
        }
        Ok(())
    }
}

impl GamePool {
    /// At most so many connections, which are made when they are needed.
    pub fn new(options: PgConnectOptions, connections: usize) -> Self {
        // The one that was used last: fewer processes of the database are kept busy, and know by heart what they do.
        let pool = Pool::builder(Connector(options)).max_size(connections).queue_mode(QueueMode::Lifo).build();
        let pool = pool.expect("only a pool with time limits of its own needs more to be made");
        Self { pool, turns: Semaphore::new(connections) }
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
    pub async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// How many there may be.
    pub fn most(&self) -> usize {
        self.pool.status().max_size
    }

    /// How many there are.
    pub fn counts(&self) -> Counts {
        let status = self.pool.status();
        Counts { open: status.size, idle: status.available, waiting: status.waiting }
    }

    /// Ends those that are not in use, and the others once they are not.
    pub fn close(&self) {
        self.pool.close();
    }
}

/// Whether a connection may be made in a moment: nobody listens (yet), PostgreSQL starts or stops, or all its places are taken.
fn passes_soon(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionAborted
                | ErrorKind::ConnectionReset
                | ErrorKind::NotFound
        ),
        sqlx::Error::Database(error) => error.code().is_some_and(|code| matches!(&*code, "53300" | "57P03")),
        _ => false,
    }
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
