//! What the store does when the database makes it wait.

use std::path::PathBuf;
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tavola::embedded::{self, Durability, Embedded};
use tavola::game::{PlayerKind, PlayerName};
use tavola::store::{Store, StoreError};
use uuid::Uuid;

/// A directory for a cluster, deleted at the end with all that runs in it.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = embedded::remove(&self.0);
    }
}

#[actix_web::test]
async fn a_database_that_lets_nobody_in_is_not_available() {
    let scratch = Scratch(std::env::temp_dir().join(format!("tavola-refuses-{}", std::process::id())));
    let cluster = Embedded::start(&scratch.0, None, Durability::None).expect("the cluster starts");
    // As while it is made anew from a back-up.
    let store = Store::open(cluster.url("restored").parse().unwrap(), 2);
    let ready = store.is_ready().await;
    assert!(matches!(ready, Err(StoreError::Unavailable(_))), "{ready:?}");
    cluster.ensure_database("restored").await.unwrap();
    store.migrate().await.unwrap();
    assert!(store.is_ready().await.unwrap());

    store.close().await;
    cluster.stop().unwrap();
}

#[actix_web::test]
async fn a_row_that_stays_locked_holds_no_connection_for_long() {
    let scratch = Scratch(std::env::temp_dir().join(format!("tavola-waits-{}", std::process::id())));
    let cluster = Embedded::start(&scratch.0, None, Durability::None).expect("the cluster starts");
    cluster.ensure_database("tavola").await.unwrap();
    let url = cluster.url("tavola");
    let store = Store::open(url.parse().unwrap(), 2);
    store.migrate().await.unwrap();
    let name = |text| PlayerName::parse(text).unwrap();
    let id = Uuid::now_v7();
    store.register(id, &name("Ada"), PlayerKind::Human, [7; 32], None).await.unwrap();

    let mut other = PgConnection::connect(&url).await.unwrap();
    let mut held = other.begin().await.unwrap();
    sqlx::query("select from players where id = $1 for update").bind(id).execute(&mut *held).await.unwrap();
    let renamed = tokio::time::timeout(Duration::from_secs(15), store.rename(id, &name("Ida"))).await;
    assert!(matches!(renamed, Ok(Err(StoreError::Unavailable(_)))), "{renamed:?}");
    held.rollback().await.unwrap();
    store.rename(id, &name("Ida")).await.unwrap();

    store.close().await;
    cluster.stop().unwrap();
}
