//! Forgets what is kept for a time only.

use std::time::Duration;

use crate::store::{Store, StoreError};

/// How often there is something to forget.
pub const INTERVAL: Duration = Duration::from_secs(600);

/// How many rows one statement deletes, so that none takes long.
const BATCH: u32 = 1_000;

/// How many pages of the table of keys one statement looks through: a mebibyte, which has ten thousand keys.
const PAGES: i64 = 128;

/// Deletes all idempotency keys that are older than a day, all tokens that expired more than a day ago, and all deliveries to
/// webhooks that are older than 30 days; answers how many rows.
///
/// # Errors
/// The database fails; what was deleted until then stays deleted.
pub async fn run_once(store: &Store) -> Result<u64, StoreError> {
    let (mut keys, mut page) = (0, 0);
    while let Some(pruned) = store.prune_idempotency_keys(page, PAGES).await? {
        keys += pruned;
        page += PAGES;
    }
    let tokens = in_batches(|| store.prune_tokens(BATCH)).await?;
    let deliveries = in_batches(|| store.prune_deliveries(BATCH)).await?;
    Ok(keys + tokens + deliveries)
}

/// Deletes batch by batch until one is not full; answers how many all in all.
async fn in_batches<F: Future<Output = Result<u64, StoreError>>>(prune: impl Fn() -> F) -> Result<u64, StoreError> {
    let mut all = 0;
    loop {
        let pruned = prune().await?;
        all += pruned;
        if pruned < u64::from(BATCH) {
            return Ok(all);
        }
    }
}
