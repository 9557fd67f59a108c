//! What webhooks are made of, apart from the database and the API: where they may go, what they say, how it is signed, when it
//! is tried again.

mod address;
mod message;
mod schedule;
mod signature;
mod target;

pub use address::is_public;
pub use message::{GameRef, Message};
pub use schedule::{delay, retry_after};
pub use signature::{Secret, sign};
pub use target::{Lookup, Refusal, Targets};
