//! Settles deleted accounts: what a request that was under way, or a server that has failed, left of them in games.

use std::time::Duration;

use crate::store::{Store, StoreError};

/// How often to look for what is left.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// Settles all deleted accounts that are to be settled; answers how many.
///
/// # Errors
/// The database fails; what was done until then stays done.
pub async fn run_once(store: &Store) -> Result<u64, StoreError> {
    let accounts = store.unsettled_accounts().await?;
    for id in &accounts {
        match store.settle_account(*id).await {
            Err(error @ StoreError::Unavailable(_)) => return Err(error),
            // One account must not keep the others waiting.
            Err(error) => tracing::error!(player = %id, %error, "a deleted account cannot be settled"),
            Ok(()) => {}
        }
    }
    Ok(accounts.len() as u64)
}
