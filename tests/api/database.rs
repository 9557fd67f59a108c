//! A database for each test: a copy of a template that is migrated once for all test processes of a run.

use std::sync::LazyLock;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tavola::store::Store;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use uuid::Uuid;

const TEMPLATE: &str = "tavola_api_template";
/// Whoever holds this advisory lock may make the template. The number means nothing.
const LOCK: i64 = 0x7461_766f_6c61;

/// Where servers and what outlives a test run: a test's own runtime ends with the test.
pub static BACKGROUND: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads can be started")
});

fn admin() -> PgConnectOptions {
    let url = std::env::var("TEST_ADMIN_URL").unwrap_or_default();
    assert!(!url.is_empty(), "TEST_ADMIN_URL is not set: these tests need a PostgreSQL to waste; run `make test`");
    url.parse().expect("TEST_ADMIN_URL is a PostgreSQL URL")
}

async fn connect() -> PgConnection {
    PgConnection::connect_with(&admin()).await.expect("the PostgreSQL of TEST_ADMIN_URL answers")
}

/// Makes the template unless this process or another one has.
async fn ensure_template() {
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_init(|| async {
        let mut connection = connect().await;
        sqlx::query("select pg_advisory_lock($1)").bind(LOCK).execute(&mut connection).await.unwrap();
        let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(TEMPLATE)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        if !exists {
            // Under another name until it is complete: a run that was killed must not leave half a template.
            let unfinished = format!("{TEMPLATE}_{}", Uuid::new_v4().simple());
            execute(&mut connection, format!(r#"create database "{unfinished}""#)).await;
            let store = Store::open(admin().database(&unfinished), 1);
            store.migrate().await.expect("the migrations apply");
            store.close().await;
            // Its connection may take a moment to end, and nobody else's is there.
            execute(
                &mut connection,
                format!("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{unfinished}'"),
            )
            .await;
            execute(&mut connection, format!(r#"alter database "{unfinished}" rename to {TEMPLATE}"#)).await;
        }
        // Ending the connection gives the lock back.
        connection.close().await.unwrap();
    })
    .await;
}

async fn execute(connection: &mut PgConnection, sql: String) {
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// Makes a fresh database; answers how to connect to it.
pub async fn create() -> PgConnectOptions {
    ensure_template().await;
    let name = format!("tavola_api_{}", Uuid::new_v4().simple());
    let mut connection = connect().await;
    execute(&mut connection, format!(r#"create database "{name}" template {TEMPLATE} strategy file_copy"#)).await;
    connection.close().await.unwrap();
    admin().database(&name)
}

/// Drops a test's database. What is left when the process ends goes with the cluster.
pub async fn drop(options: &PgConnectOptions) {
    let name = options.get_database().expect("a test's database has a name");
    if let Ok(mut connection) = PgConnection::connect_with(&admin()).await {
        let _ = connection.execute(AssertSqlSafe(format!(r#"drop database if exists "{name}" with (force)"#))).await;
    }
}
