//! Clocks and what else servers do of themselves: who is late leaves their game, bots move for those who have left,
//! invitations expire. Every server does it; of two at once one does.

use std::time::Duration;

use crate::store::{Store, StoreError};

/// How often there may be something to do. A deadline is enforced that much later at most.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Notes that a server runs, and does everything that is due; answers how much that was.
///
/// # Errors
/// The database fails; what was done until then stays done.
pub async fn run_once(store: &Store) -> Result<u64, StoreError> {
    if let Some(silence) = store.beat().await? {
        store.metrics().credited.inc_by(silence.as_seconds_f64());
        tracing::warn!(
            seconds = silence.whole_seconds(),
            "no server ran for a while: deadlines are put off by as long"
        );
    }
    let mut done = attend_all(store).await?;
    while store.expire_next().await? {
        done += 1;
    }
    Ok(done)
}

/// Attends to every game in which that is due; answers to how many.
///
/// # Errors
/// As [`run_once`].
pub async fn attend_all(store: &Store) -> Result<u64, StoreError> {
    while store.delay_checks().await? {}
    let mut done = 0;
    // Which of the legal moves a bot plays is nobody's secret.
    while store.attend_next(rand::random()).await? {
        done += 1;
    }
    Ok(done)
}
