//! Delivers what is queued for webhooks.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use uuid::Uuid;

use super::sending::Sender;
use crate::store::{Store, StoreError};

/// How often to look for what is due, if nobody says that there is something.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// How many deliveries are under way at once.
const ROOM: usize = 64;

/// How many of one webhook. Those whose deliveries are under way get no more: a slow receiver holds up nobody but itself.
const EACH: usize = 4;

/// For how long a claimed delivery is nobody else's: longer than any attempt takes.
const LEASE: Duration = Duration::from_secs(120);

/// The worker of one server. Any number of servers can have one each.
pub struct Worker {
    store: Store,
    sender: Sender,
    tasks: JoinSet<()>,
    /// The webhooks to which something is under way.
    busy: HashMap<Id, Uuid>,
}

impl Worker {
    /// A worker with nothing under way.
    pub fn new(store: Store, sender: Sender) -> Self {
        Self { store, sender, tasks: JoinSet::new(), busy: HashMap::new() }
    }

    /// Begins to deliver what is due, as far as there is room; answers how many messages that are.
    ///
    /// # Errors
    /// The database fails.
    pub async fn run_once(&mut self) -> Result<usize, StoreError> {
        while let Some(done) = self.tasks.try_join_next_with_id() {
            self.finish(done);
        }
        let room = ROOM - self.tasks.len();
        if room == 0 {
            return Ok(0);
        }
        let busy: Vec<Uuid> = self.busy.values().copied().collect();
        let claimed = self.store.claim_deliveries(room, EACH, &busy, LEASE).await?;
        let count = claimed.len();
        for due in claimed {
            let (store, sender, webhook) = (self.store.clone(), self.sender.clone(), due.message.webhook_id);
            let task = self.tasks.spawn(async move {
                let outcome = sender.send(&due).await;
                if let Err(error) = store.record_attempt(&due, &outcome).await {
                    // It is tried again when the lease is over.
                    tracing::warn!(%error, delivery = %due.message.id, "what came of a delivery could not be written down");
                }
            });
            self.busy.insert(task.id(), webhook);
        }
        Ok(count)
    }

    /// Waits until a delivery that is under way is done; for ever if none is.
    pub async fn one_done(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(done) => self.finish(done),
            None => std::future::pending().await,
        }
    }

    /// Waits until all deliveries that are under way are done.
    pub async fn settle(&mut self) {
        while let Some(done) = self.tasks.join_next_with_id().await {
            self.finish(done);
        }
    }

    fn finish(&mut self, done: Result<(Id, ()), JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a delivery was broken off");
                error.id()
            }
        };
        self.busy.remove(&id);
    }
}
