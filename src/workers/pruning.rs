//! Forgets what is kept for a time only.

use std::time::Duration;

use crate::store::{Store, StoreError};

/// How often there is something to forget.
pub const INTERVAL: Duration = Duration::from_secs(600);

/// How many rows one statement deletes, so that none takes long.
const BATCH: u32 = 1_000;

/// Deletes all idempotency keys that are older than a day; answers how many.
///
/// # Errors
/// The database fails; what was deleted until then stays deleted.
pub async fn run_once(store: &Store) -> Result<u64, StoreError> {
    let mut all = 0;
    loop {
        let pruned = store.prune_idempotency_keys(BATCH).await?;
        all += pruned;
        if pruned < u64::from(BATCH) {
            return Ok(all);
        }
    }
}
