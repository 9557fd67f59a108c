//! What servers tell each other: which games have changed, and whom that concerns. `NOTIFY` inside the transaction of a move
//! would serialise all commits of the database, so it is sent afterwards, many changes at once.

use sqlx::postgres::{PgListener, PgPoolOptions};
use uuid::Uuid;

use super::{Store, StoreError};

/// The channel. A payload is a list of ids, 32 hexadecimal digits each: of the server that tells, and of a game and players that
/// may be waited for.
const CHANNEL: &str = "tavola_changes";

/// Hears what other servers tell.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Store {
    /// Waits until this server has something to tell.
    pub async fn outgoing(&self) {
        self.hub.outgoing_woken.notified().await;
    }

    /// Tells the other servers of all changes since the last time; answers of how many.
    ///
    /// # Errors
    /// The database fails: the others find out by looking.
    pub async fn tell_others(&self) -> Result<usize, StoreError> {
        let outgoing = self.hub.take_outgoing();
        if outgoing.is_empty() {
            return Ok(0);
        }
        sqlx::query!("select pg_notify($1, payload) from unnest($2::text[]) as rows (payload)", CHANNEL, &outgoing)
            .execute(&self.pool)
            .await?;
        Ok(outgoing.len())
    }

    /// Begins to listen, on a connection of its own.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn listen(&self) -> Result<Listener, StoreError> {
        // A pool of its own, so that listening takes none of the connections that requests wait for.
        let options = (*self.pool.connect_options()).clone();
        let pool =
            PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None).connect_lazy_with(options);
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Listener(listener))
    }

    /// Everybody who waits looks by themselves: something may have been missed.
    pub fn wake_all(&self) {
        self.hub.wake_all();
    }

    /// Waits until a game has to be attended to at once.
    pub async fn something_due(&self) {
        self.hub.due_woken.notified().await;
    }

    /// Waits until a webhook may have something to deliver.
    pub async fn something_to_deliver(&self) {
        self.hub.webhooks_woken.notified().await;
    }
}

impl Listener {
    /// Waits for the next message and wakes whom it concerns.
    ///
    /// # Errors
    /// The connection is lost: messages may be too.
    pub async fn run_once(&mut self, store: &Store) -> Result<(), StoreError> {
        match self.0.try_recv().await? {
            Some(message) => {
                let mut ids = message.payload().split(' ').filter_map(|id| Uuid::try_parse(id).ok());
                // Who waits here for changes that were made here knows already.
                if ids.next() != Some(store.hub.name) {
                    ids.for_each(|id| store.hub.wake(id));
                }
            }
            // It has connected anew.
            None => store.wake_all(),
        }
        Ok(())
    }
}
