//! Why the store could not do what it was asked, and what the database's errors mean.

use super::{MOST_TOKENS, Scope};
use crate::game::GameError;

/// Why the store could not do what it was asked. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The token is unknown or has expired.
    #[error("the token is not valid")]
    Unauthenticated,
    /// The token may not be used for this.
    #[error("the token lacks the scope {0}")]
    MissingScope(Scope),
    /// There is no such thing, or it is not the caller's to know.
    #[error("there is no such thing")]
    NotFound,
    /// The game has another version than the caller expected.
    #[error("the game is at version {current}")]
    Stale { current: u32 },
    /// The game refused.
    #[error(transparent)]
    Game(#[from] GameError),
    /// Another account has the name, or one that looks like it.
    #[error("the name is taken")]
    NameTaken,
    /// The player has as many tokens as one can have.
    #[error("there are {MOST_TOKENS} tokens already")]
    TooManyTokens,
    /// The player has a webhook with this address.
    #[error("there is a webhook with this address")]
    WebhookExists,
    /// The player has as many webhooks as one may have.
    #[error("there are as many webhooks as one may have")]
    TooManyWebhooks,
    /// Nothing is sent to the webhook.
    #[error("the webhook is disabled")]
    WebhookDisabled,
    /// The Idempotency-Key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Every attempt lost against another change of the same game.
    #[error("the game is being changed by too many requests at once")]
    Contended,
    /// The database cannot be reached, or not now.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// The database refused a statement.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
    /// What is stored cannot be read.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
}

/// SQLSTATE classes that pass by themselves: connection (08), resources (53), operator intervention (57), serialisation (40);
/// and that tell of a database which lets nobody in, as while it is restored or its password is changed (28, 3D).
const PASSING: [&str; 6] = ["08", "28", "3D", "40", "53", "57"];

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let passes = match &error {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => true,
            sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
            // 25006: the server has become a read-only standby. 55P03: a lock was not to be had in time. 25P03: the session
            // was ended because its transaction idled. 58030: a disk could not be read or written.
            sqlx::Error::Database(db) => db.code().is_some_and(|code| {
                ["25006", "25P03", "55P03", "58030"].contains(&&*code)
                    || PASSING.iter().any(|class| code.starts_with(class))
            }),
            _ => false,
        };
        if passes { StoreError::Unavailable(error) } else { StoreError::Database(error) }
    }
}

/// The name of the constraint that a statement violated.
pub(super) fn violated(error: &sqlx::Error) -> Option<&str> {
    error.as_database_error()?.constraint()
}
