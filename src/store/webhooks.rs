//! Webhooks: to which addresses a player's events go. What is sent and what became of it is in `deliveries.rs`.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::violated;
use super::idempotency::Answer;
use super::{Created, IdempotencyKey, Store, StoreError};
use crate::webhook::Secret;

/// Most webhooks that a player has.
pub const MOST_WEBHOOKS: usize = 10;

/// A webhook, but for its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub id: Uuid,
    pub url: String,
    pub created_at: OffsetDateTime,
    /// Since when nothing has been delivered although it was tried.
    pub failing_since: Option<OffsetDateTime>,
    /// Since when nothing is sent.
    pub disabled_at: Option<OffsetDateTime>,
    /// Until when deliveries are signed with the secret before the last rotation too.
    pub old_secret_until: Option<OffsetDateTime>,
}

impl Store {
    /// Makes a webhook for a player. `answer` makes the answer, which a key keeps.
    ///
    /// # Errors
    /// The player has one with this address, or as many as one may have; the key was used for another request; the database
    /// fails.
    pub async fn create_webhook(
        &self,
        player: Uuid,
        url: &str,
        secret: &Secret,
        key: Option<&IdempotencyKey>,
        answer: impl Fn(&Webhook) -> Answer,
    ) -> Result<Created, StoreError> {
        let id = Uuid::now_v7();
        self.once(player, key, async |transaction: &mut PgConnection| {
            // One after the other, so that two at once are not both the last one.
            sqlx::query!("select from players where id = $1 for no key update", player)
                .execute(&mut *transaction)
                .await?;
            let count =
                sqlx::query_scalar!(r#"select count(*) as "count!" from webhooks where player_id = $1"#, player)
                    .fetch_one(&mut *transaction)
                    .await?;
            let created = sqlx::query_as!(
                Webhook,
                "insert into webhooks (id, player_id, url, secret) values ($1, $2, $3, $4)
                 returning id, url, created_at, failing_since, disabled_at, old_secret_until",
                id,
                player,
                url,
                &secret.0[..],
            )
            .fetch_one(&mut *transaction)
            .await
            .map_err(|error| match violated(&error) {
                Some("webhooks_player_url_key") => StoreError::WebhookExists,
                _ => error.into(),
            })?;
            if count >= MOST_WEBHOOKS as i64 {
                return Err(StoreError::TooManyWebhooks);
            }
            Ok(answer(&created))
        })
        .await
    }

    /// A player's webhooks, the oldest first.
    ///
    /// # Errors
    /// The database fails.
    pub async fn webhooks(&self, player: Uuid) -> Result<Vec<Webhook>, StoreError> {
        let webhooks = sqlx::query_as!(
            Webhook,
            "select id, url, created_at, failing_since, disabled_at,
                    case when old_secret_until > now() then old_secret_until end as old_secret_until
             from webhooks where player_id = $1 order by id",
            player,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(webhooks)
    }

    /// One of a player's webhooks.
    ///
    /// # Errors
    /// The player has no such webhook; the database fails.
    pub async fn webhook(&self, player: Uuid, id: Uuid) -> Result<Webhook, StoreError> {
        let webhook = sqlx::query_as!(
            Webhook,
            "select id, url, created_at, failing_since, disabled_at,
                    case when old_secret_until > now() then old_secret_until end as old_secret_until
             from webhooks where id = $1 and player_id = $2",
            id,
            player,
        )
        .fetch_optional(&self.pool)
        .await?;
        webhook.ok_or(StoreError::NotFound)
    }

    /// Has a webhook sent to again, or no more. What was waiting to be sent is given up when it is disabled; when it is
    /// enabled it begins with a clean record.
    ///
    /// # Errors
    /// The player has no such webhook; the database fails.
    pub async fn enable_webhook(&self, player: Uuid, id: Uuid, enabled: bool) -> Result<Webhook, StoreError> {
        let mut transaction = self.pool.begin().await?;
        // Also when it is enabled: somebody may have queued a message without having seen that it was disabled.
        if !lock(&mut transaction, player, id).await? || !enabled {
            give_up(&mut transaction, id).await?;
        }
        let webhook = sqlx::query_as!(
            Webhook,
            "update webhooks
             set disabled_at = case when $3 then null else coalesce(disabled_at, now()) end,
                 failing_since = case when $3 and disabled_at is not null then null else failing_since end
             where id = $1 and player_id = $2
             returning id, url, created_at, failing_since, disabled_at,
                       case when old_secret_until > now() then old_secret_until end as old_secret_until",
            id,
            player,
            enabled,
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(webhook)
    }

    /// Deletes a webhook with the log of its deliveries.
    ///
    /// # Errors
    /// The player has no such webhook; the database fails.
    pub async fn delete_webhook(&self, player: Uuid, id: Uuid) -> Result<(), StoreError> {
        let done = sqlx::query!("delete from webhooks where id = $1 and player_id = $2", id, player)
            .execute(&self.pool)
            .await?;
        if done.rows_affected() == 0 { Err(StoreError::NotFound) } else { Ok(()) }
    }

    /// Gives a webhook another secret. The one before stays valid for a day, so that the receiver has time to learn the new
    /// one; the one before that is valid no more.
    ///
    /// # Errors
    /// The player has no such webhook; the key was used for another request; the database fails.
    pub async fn rotate_secret(
        &self,
        player: Uuid,
        id: Uuid,
        secret: &Secret,
        key: Option<&IdempotencyKey>,
        answer: impl Fn(&Webhook) -> Answer,
    ) -> Result<Created, StoreError> {
        self.once(player, key, async |transaction: &mut PgConnection| {
            let webhook = sqlx::query_as!(
                Webhook,
                "update webhooks
                 set secret = $3, old_secret = secret, old_secret_until = now() + interval '24 hours'
                 where id = $1 and player_id = $2
                 returning id, url, created_at, failing_since, disabled_at, old_secret_until",
                id,
                player,
                &secret.0[..],
            )
            .fetch_optional(transaction)
            .await?
            .ok_or(StoreError::NotFound)?;
            Ok(answer(&webhook))
        })
        .await
    }
}

/// Keeps a player's webhook from changing until the transaction ends; answers whether it is enabled.
pub(super) async fn lock(transaction: &mut PgConnection, player: Uuid, webhook: Uuid) -> Result<bool, StoreError> {
    let row = sqlx::query!(
        "select disabled_at from webhooks where id = $1 and player_id = $2 for no key update",
        webhook,
        player,
    )
    .fetch_optional(transaction)
    .await?;
    row.map(|row| row.disabled_at.is_none()).ok_or(StoreError::NotFound)
}

/// Ends the waiting of all that a webhook has not delivered.
pub(super) async fn give_up(connection: &mut PgConnection, webhook: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update webhook_deliveries set next_attempt_at = null where webhook_id = $1 and next_attempt_at is not null",
        webhook,
    )
    .execute(connection)
    .await?;
    Ok(())
}
