//! Idempotency keys: a repeated request is answered as the first was, and changes nothing.
//!
//! The key's row is written by the very statement or transaction that does what was asked, so there is no moment at which
//! one is done and the other not. Of two at once the second waits for the first, fails on the key, and reads its answer.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::error::violated;
use super::{Created, StoreError};

/// The constraint that a second request under the same key violates.
pub(super) const KEY_CONSTRAINT: &str = "idempotency_keys_pkey";

/// A client's key for a request, with what tells the request from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub(super) hash: Uuid,
    pub(super) request_hash: Uuid,
}

impl IdempotencyKey {
    /// The key of a request to `method` `path` with `body`.
    pub fn new(key: &str, method: &str, path: &str, body: &[u8]) -> Self {
        let mut request = Sha256::new();
        request.update(method);
        request.update([0]);
        request.update(path);
        request.update([0]);
        request.update(body);
        Self { hash: half(Sha256::digest(key).into()), request_hash: half(request.finalize().into()) }
    }

    /// What it is kept under: the same of two players is two keys. `load_row` in `games.rs` has it computed by the database, which
    /// finds out who asks in the same statement.
    pub(super) fn id(&self, player: Uuid) -> Uuid {
        half(Sha256::new().chain_update(player).chain_update(self.hash).finalize().into())
    }
}

/// The first half of a SHA-256, as the database keeps it. 128 bits are too many to find the key of somebody else's registration by
/// them, and who finds two keys of their own that are alike has deceived but themselves.
fn half(hash: [u8; 32]) -> Uuid {
    Uuid::from_bytes(std::array::from_fn(|place| hash[place]))
}

/// An answer as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// The headers of an answer that are its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// What an earlier request under the same key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It played this move of the game in its path; the answer follows from the log.
    Move { number: u32 },
    /// It was answered so.
    Answer(Answer),
}

/// A row of `idempotency_keys`, as other statements join it.
pub(super) struct Row {
    pub request_hash: Uuid,
    pub move_number: Option<i32>,
    pub status: Option<i16>,
    pub headers: Option<Json<Headers>>,
    pub body: Option<Vec<u8>>,
}

impl Row {
    /// What the earlier request did, if it was the same one.
    pub(super) fn into_repeat(self, key: &IdempotencyKey) -> Result<Repeat, StoreError> {
        if self.request_hash != key.request_hash {
            return Err(StoreError::KeyReused);
        }
        match (self.move_number, self.status, self.body) {
            (Some(number), ..) => Ok(Repeat::Move { number: number as u32 }),
            (_, Some(status), Some(body)) => {
                let headers = self.headers.map(|headers| headers.0).unwrap_or_default();
                Ok(Repeat::Answer(Answer { status: status as u16, headers, body }))
            }
            _ => Err(StoreError::Corrupt("an idempotency key without an answer".into())),
        }
    }
}

/// What an earlier request of the player under this key did, if there was one within a day.
pub(super) async fn find(pool: &PgPool, player: Uuid, key: &IdempotencyKey) -> Result<Option<Repeat>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select request_hash, move_number, status, headers as "headers: Json<Headers>", body
           from idempotency_keys
           where id = $1 and created_at > now() - interval '24 hours'"#,
        key.id(player),
    )
    .fetch_optional(pool)
    .await?;
    row.map(|row| row.into_repeat(key)).transpose()
}

/// Keeps an answer, in the transaction that makes it true.
pub(super) async fn keep(
    transaction: &mut PgConnection,
    player: Uuid,
    key: &IdempotencyKey,
    answer: &Answer,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into idempotency_keys (id, request_hash, player_id, status, headers, body)
         values ($1, $2, $3, $4, $5, $6)",
        key.id(player),
        key.request_hash,
        player,
        answer.status as i16,
        Json(&answer.headers) as _,
        answer.body,
    )
    .execute(transaction)
    .await?;
    Ok(())
}

/// Makes room for a key whose old use is more than a day ago and has not been pruned yet.
pub(super) async fn forget_expired(pool: &PgPool, player: Uuid, key: &IdempotencyKey) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "delete from idempotency_keys where id = $1 and created_at <= now() - interval '24 hours'",
        key.id(player),
    )
    .execute(pool)
    .await?;
    Ok(())
}

impl super::Store {
    /// What an earlier request of a player under this key was answered, if it was one of those whose answers are kept.
    ///
    /// # Errors
    /// The key was used for another request; the database fails.
    pub async fn answered(&self, player: Uuid, key: Option<&IdempotencyKey>) -> Result<Option<Answer>, StoreError> {
        let Some(key) = key else { return Ok(None) };
        match find(&self.pool, player, key).await? {
            Some(Repeat::Answer(answer)) => Ok(Some(answer)),
            _ => Ok(None),
        }
    }

    /// Does something for a player once under a key. `work` does it in a transaction and makes the answer, which the key then
    /// keeps.
    ///
    /// # Errors
    /// Those of `work`; the key was used for another request; the database fails.
    pub(super) async fn once(
        &self,
        player: Uuid,
        key: Option<&IdempotencyKey>,
        work: impl AsyncFn(&mut PgConnection) -> Result<Answer, StoreError>,
    ) -> Result<Created, StoreError> {
        let mut last = false;
        loop {
            if let Some(answer) = self.answered(player, key).await? {
                return Ok(Created { answer, repeated: true });
            }
            let error = match self.once_unless_done(player, key, &work).await {
                Ok(answer) => return Ok(Created { answer, repeated: false }),
                Err(error) => error,
            };
            let taken = matches!(&error, StoreError::Database(error) if violated(error) == Some(KEY_CONSTRAINT));
            match key {
                // Of two equal requests at once the second fails on the key, or on what the first has done: is it there now?
                Some(key) if !last && !matches!(error, StoreError::Unavailable(_)) => {
                    last = true;
                    if taken {
                        forget_expired(&self.pool, player, key).await?;
                    }
                }
                _ if taken => return Err(StoreError::Contended),
                _ => return Err(error),
            }
        }
    }

    async fn once_unless_done(
        &self,
        player: Uuid,
        key: Option<&IdempotencyKey>,
        work: &impl AsyncFn(&mut PgConnection) -> Result<Answer, StoreError>,
    ) -> Result<Answer, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let answer = work(&mut transaction).await?;
        if let Some(key) = key {
            keep(&mut transaction, player, key, &answer).await?;
        }
        transaction.commit().await?;
        Ok(answer)
    }

    /// Deletes the keys that are older than a day from so many pages of their table, from the one numbered `first` on; answers how
    /// many keys, or none if the table has no such page. What somebody else is about to delete is left to them.
    ///
    /// # Errors
    /// The database fails.
    pub async fn prune_idempotency_keys(&self, first: i64, pages: i64) -> Result<Option<u64>, StoreError> {
        let row = sqlx::query!(
            r#"with pruned as (
                delete from idempotency_keys
                where ctid = any(array(
                    select ctid from idempotency_keys
                    where ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $1::bigint + $2::bigint)::tid
                          and created_at <= now() - interval '24 hours'
                    for update skip locked))
                returning 1
             )
             select count(*) as "pruned!",
                    $1 < pg_relation_size('idempotency_keys') / current_setting('block_size')::bigint as "is_there!"
             from pruned"#,
            first,
            pages,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(row.is_there.then_some(row.pruned as u64))
    }
}
