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
        store.settle_account(*id).await?;
    }
    Ok(accounts.len() as u64)
}
