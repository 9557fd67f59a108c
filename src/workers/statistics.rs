//! Counts finished games for the statistics. Every server does it; of two at once each takes other games.

use std::time::Duration;

use crate::store::{Store, StoreError};

/// How often there may be games to count. Statistics lag behind by that much, or a little more.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// How many games one transaction counts, so that none takes long.
const BATCH: u32 = 1_000;

/// Counts all games that have finished and are not in the statistics yet, batch by batch; answers how many.
///
/// # Errors
/// The database fails; what was counted until then stays counted.
pub async fn run_once(store: &Store) -> Result<u64, StoreError> {
    let mut all = 0;
    loop {
        let counted = store.count_finished(BATCH).await?;
        all += counted;
        if counted < u64::from(BATCH) {
            return Ok(all);
        }
    }
}
