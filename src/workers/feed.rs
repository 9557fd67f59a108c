//! Changes from server to server, so that streams at one tell of what happens at another. What is lost on the way delays: the
//! streams also look by themselves.

use std::time::Duration;

use crate::store::{Store, StoreError};

/// How long changes are gathered before the other servers are told of them together.
const GATHER: Duration = Duration::from_millis(10);

/// How long to wait before listening again after it failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits until there is something to tell, and tells it; answers how many changes.
///
/// # Errors
/// The database fails; the others find out by looking.
pub async fn tell_once(store: &Store) -> Result<usize, StoreError> {
    store.outgoing().await;
    tokio::time::sleep(GATHER).await;
    store.tell_others().await
}

/// Listens to what others tell until that fails.
///
/// # Errors
/// The connection is lost, or cannot be made.
pub async fn listen_until_lost(store: &Store) -> Result<std::convert::Infallible, StoreError> {
    let mut listener = store.listen().await?;
    // What was told before it listened.
    store.wake_all();
    loop {
        listener.run_once(store).await?;
    }
}

/// Tells and listens for ever.
pub async fn run(store: &Store) {
    let tell = async {
        loop {
            if let Err(error) = tell_once(store).await {
                tracing::warn!(%error, "other servers could not be told of changes");
            }
        }
    };
    let listen = async {
        loop {
            let Err(error) = listen_until_lost(store).await;
            tracing::warn!(%error, "changes at other servers cannot be heard of");
            // Streams look by themselves meanwhile.
            store.wake_all();
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::join!(tell, listen);
}
