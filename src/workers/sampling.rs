//! Looks up for the metrics what is only to be had from the database.

use std::time::{Duration, Instant};

use crate::store::{Store, StoreError};

/// How often, at most.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// The part of the time for which a connection may be busy with it: one in so many.
const SHARE: u32 = 50;

/// Takes a sample; answers how long to wait before the next one.
///
/// # Errors
/// The database fails; the metrics say so too.
pub async fn run_once(store: &Store) -> Result<Duration, StoreError> {
    let begun = Instant::now();
    let sample = store.sample().await;
    store.metrics().sampled(sample.as_ref().ok());
    sample?;
    // Where so many games go on that they take long to be counted, they are counted less often.
    Ok(INTERVAL.max(begun.elapsed() * SHARE))
}
