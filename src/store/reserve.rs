//! Connections that are used again at once.
//!
//! The pool asks each connection that it gets back whether it is still there, which is a round trip more for every use of one: it
//! cannot know whether a request was given up in the middle of a statement. What loads a game and what plays a move know that
//! theirs has answered everything, and put it here instead.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use super::{IDLE, Store};

/// Connections that have just answered, the last one on top.
#[derive(Debug)]
pub(super) struct Reserve {
    connections: Mutex<Vec<(PoolConnection<Postgres>, Instant)>>,
    /// Half of the pool: whoever waits for the pool itself always gets the other half.
    most: usize,
}

impl Reserve {
    /// An empty one for a pool of so many.
    pub(super) fn new(connections: u32) -> Self {
        Self { connections: Mutex::default(), most: connections as usize / 2 }
    }

    /// How many wait here.
    pub(super) fn len(&self) -> usize {
        self.connections().len()
    }

    fn connections(&self) -> MutexGuard<'_, Vec<(PoolConnection<Postgres>, Instant)>> {
        // Nothing that is done under the lock leaves it half done.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// A connection for what gives it back by [`Store::keep`] when all went well. Dropped it goes back to the pool.
    ///
    /// # Errors
    /// The database cannot be reached, or all connections are in use for too long.
    pub(super) async fn connection(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        let kept = self.reserve.connections().pop();
        match kept {
            // One that has idled may have been lost: the pool finds out.
            Some((connection, since)) if since.elapsed() <= IDLE => Ok(connection),
            _ => self.pool.acquire().await,
        }
    }

    /// Keeps a connection on which nothing is under way any more.
    pub(super) fn keep(&self, connection: PoolConnection<Postgres>) {
        let mut connections = self.reserve.connections();
        if connections.len() < self.reserve.most && !self.pool.is_closed() {
            connections.push((connection, Instant::now()));
        }
    }

    /// Gives the pool everything back.
    pub(super) fn empty_reserve(&self) {
        self.reserve.connections().clear();
    }
}
