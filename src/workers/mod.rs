//! Layer 4, beside `http`: work that no request waits for. Each worker has a `run_once` that the loops in `app` call.

pub mod accounts;
pub mod clocks;
pub mod feed;
pub mod pruning;
pub mod sampling;
pub mod sending;
pub mod statistics;
pub mod webhooks;
