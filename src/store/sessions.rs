//! Whether a connection is a session. The store's statements are prepared on one, its settings hold for one, listening and the
//! lock of migrations belong to one. A pooler that gives each transaction, or each statement, whatever connection is free
//! keeps none of that: statements are then answered with the results of others.

use sqlx::{Connection, PgConnection, Row};

use super::Store;

/// How often two connections are compared: traffic of others may stand in the way of one comparison.
const ROUNDS: u32 = 3;

/// `protocol_violation`: what PgBouncer answers to a transaction in a pool for statements.
const NO_TRANSACTIONS: &str = "08P01";

/// Why the server cannot work with a database.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// Connections change processes.
    #[error(
        "the database is behind a pooler that does not keep sessions, as PgBouncer with pool_mode = transaction or statement: \
         it would mix up prepared statements and their results. Use pool_mode = session, or connect to PostgreSQL itself"
    )]
    Mixed,
    /// It cannot be reached.
    #[error("the database cannot be reached")]
    Unreachable(#[from] sqlx::Error),
}

impl Store {
    /// Checks that each connection keeps a process of the database to itself, which is what a session is.
    ///
    /// One connection alone does not tell: an idle pooler gives it the same process time and again. But while a second connection is in
    /// a transaction it has its process for itself, and that is the one that was used last, or the first has to make do with another one.
    ///
    /// # Errors
    /// It does not; the database cannot be reached.
    pub async fn check_sessions(&self) -> Result<(), SessionsError> {
        let options = self.pool.connect_options();
        let connect = || PgConnection::connect_with(&options);
        let (mut one, mut other) = tokio::try_join!(connect(), connect())?;
        let apart = are_apart(&mut one, &mut other).await;
        // They are of no use any more, whatever becomes of them.
        let _ = tokio::join!(one.close(), other.close());
        if apart? { Ok(()) } else { Err(SessionsError::Mixed) }
    }
}

async fn are_apart(one: &mut PgConnection, other: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let first = process(one).await?;
    for _ in 0..ROUNDS {
        if process(one).await? != first {
            return Ok(false);
        }
        match sqlx::raw_sql("begin").execute(&mut *other).await {
            Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| code == NO_TRANSACTIONS) => {
                return Ok(false);
            }
            begun => begun?,
        };
        // Asked in this order: if there is but one process, the first connection would wait for it for ever.
        if process(other).await? == first || process(one).await? != first {
            return Ok(false);
        }
        sqlx::raw_sql("rollback").execute(&mut *other).await?;
    }
    Ok(true)
}

/// The database's process that a connection talks to. Not by a prepared statement, which may be the very thing that is lost.
async fn process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql("select pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}
