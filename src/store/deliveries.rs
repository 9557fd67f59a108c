//! What webhooks send: the log of deliveries, and the queue from which the workers of all servers take them.
//!
//! A worker *claims* a delivery: one statement counts the attempt and sets the next one to after the lease. No transaction is open
//! while the receiver is waited for, and what a server had claimed when it died is tried again, by any server, when the lease is over.

use std::time::Duration;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::idempotency::Answer;
use super::webhooks::{give_up, lock};
use super::{Created, IdempotencyKey, Store, StoreError};
use crate::rulesets::Seat;
use crate::webhook::{GameRef, Message, Secret};

/// A message to a webhook and what has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub message: Message,
    /// When it is tried next, if it is; while an attempt is under way when that is given up.
    pub next_attempt_at: Option<OffsetDateTime>,
    pub delivered_at: Option<OffsetDateTime>,
    /// The first first.
    pub attempts: Vec<Attempt>,
}

/// One attempt to deliver a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From 1. One is missing if the server died during it.
    pub number: u32,
    /// When it began.
    pub at: OffsetDateTime,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why there was none.
    pub error: Option<String>,
    pub duration_ms: u32,
}

/// Where a page of a log of deliveries begins: after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryPlace {
    pub created_at: OffsetDateTime,
    pub id: Uuid,
}

/// A delivery that is to be tried now.
#[derive(Clone, Debug)]
pub struct Due {
    pub message: Message,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    pub url: String,
    /// One, or after a rotation two, the newer first.
    pub secrets: Vec<Secret>,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why there was none.
    pub error: Option<&'static str>,
    pub duration: Duration,
    pub verdict: Verdict,
}

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver has it.
    Delivered,
    /// It is to be tried again after so long, unless its day is over.
    Failed { retry: Duration },
    /// The receiver wants nothing more at this address.
    Gone,
}

impl Verdict {
    /// The word in metrics.
    fn as_str(self) -> &'static str {
        match self {
            Verdict::Delivered => "delivered",
            Verdict::Failed { .. } => "failed",
            Verdict::Gone => "gone",
        }
    }
}

/// A row of `webhook_deliveries`.
struct Row {
    id: Uuid,
    webhook_id: Uuid,
    r#type: String,
    game_id: Option<Uuid>,
    version: Option<i32>,
    seat: Option<i16>,
    deadline: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
    next_attempt_at: Option<OffsetDateTime>,
    delivered_at: Option<OffsetDateTime>,
}

impl Row {
    fn into_delivery(self) -> Delivery {
        let game = self.game_id.map(|id| GameRef {
            id,
            version: self.version.unwrap_or_default() as u32,
            seat: self.seat.map(|seat| seat as Seat),
            deadline: self.deadline,
        });
        let message =
            Message { id: self.id, webhook_id: self.webhook_id, kind: self.r#type, game, created_at: self.created_at };
        let (next_attempt_at, delivered_at) = (self.next_attempt_at, self.delivered_at);
        Delivery { message, next_attempt_at, delivered_at, attempts: Vec::new() }
    }
}

impl Store {
    /// Queues a ping. One that waits already is sent at once instead: there is never more than one to come.
    ///
    /// # Errors
    /// The player has no such webhook, or it is disabled; the key was used for another request; the database fails.
    pub async fn ping_webhook(
        &self,
        player: Uuid,
        webhook: Uuid,
        key: Option<&IdempotencyKey>,
        answer: impl Fn(&Delivery) -> Answer,
    ) -> Result<Created, StoreError> {
        let queued = self.once(player, key, async |transaction: &mut PgConnection| {
            lock_enabled(transaction, player, webhook).await?;
            let waiting = sqlx::query_scalar!(
                "update webhook_deliveries set next_attempt_at = now()
                 where webhook_id = $1 and type = 'ping' and next_attempt_at is not null returning id",
                webhook,
            )
            .fetch_optional(&mut *transaction)
            .await?;
            let id = match waiting {
                Some(id) => id,
                None => {
                    sqlx::query_scalar!(
                        "insert into webhook_deliveries (webhook_id, type) values ($1, 'ping') returning id",
                        webhook,
                    )
                    .fetch_one(&mut *transaction)
                    .await?
                }
            };
            Ok(answer(&delivery(transaction, webhook, id).await?))
        });
        let queued = queued.await?;
        self.wake_webhooks();
        Ok(queued)
    }

    /// Queues a delivery once more, whatever has become of it.
    ///
    /// # Errors
    /// The player has no such webhook, or it has no such delivery, or it is disabled; the key was used for another request; the
    /// database fails.
    pub async fn redeliver(
        &self,
        player: Uuid,
        webhook: Uuid,
        id: Uuid,
        key: Option<&IdempotencyKey>,
        answer: impl Fn(&Delivery) -> Answer,
    ) -> Result<Created, StoreError> {
        let queued = self.once(player, key, async |transaction: &mut PgConnection| {
            lock_enabled(transaction, player, webhook).await?;
            sqlx::query!(
                "update webhook_deliveries set next_attempt_at = now(), delivered_at = null
                 where id = $1 and webhook_id = $2",
                id,
                webhook,
            )
            .execute(&mut *transaction)
            .await?;
            Ok(answer(&delivery(transaction, webhook, id).await?))
        });
        let queued = queued.await?;
        self.wake_webhooks();
        Ok(queued)
    }

    /// The log of a webhook's deliveries, the newest first, after a place in it; at most `limit`. Says too whether there are
    /// more.
    ///
    /// # Errors
    /// The player has no such webhook; the database fails.
    pub async fn deliveries(
        &self,
        player: Uuid,
        webhook: Uuid,
        after: Option<DeliveryPlace>,
        limit: u32,
    ) -> Result<(Vec<Delivery>, bool), StoreError> {
        self.webhook(player, webhook).await?;
        let rows = sqlx::query_as!(
            Row,
            "select id, webhook_id, type, game_id, version, seat, deadline, created_at, next_attempt_at, delivered_at
             from webhook_deliveries
             where webhook_id = $1
                 and (created_at, id) < (coalesce($2, 'infinity'::timestamptz),
                                         coalesce($3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid))
             order by created_at desc, id desc limit $4",
            webhook,
            after.map(|place| place.created_at),
            after.map(|place| place.id),
            // One more than asked for tells whether there is another page.
            i64::from(limit) + 1,
        )
        .fetch_all(&self.pool)
        .await?;
        let more = rows.len() > limit as usize;
        let mut deliveries: Vec<Delivery> = rows.into_iter().take(limit as usize).map(Row::into_delivery).collect();
        let mut connection = self.pool.acquire().await?;
        add_attempts(&mut connection, &mut deliveries).await?;
        Ok((deliveries, more))
    }

    /// Takes up to `limit` deliveries that are due, the longest due first and at most `each` of a webhook; none of the webhooks
    /// in `busy`. Each counts as an attempt and is nobody else's for `lease`.
    ///
    /// # Errors
    /// The database fails; a secret cannot be read.
    pub async fn claim_deliveries(
        &self,
        limit: usize,
        each: usize,
        busy: &[Uuid],
        lease: Duration,
    ) -> Result<Vec<Due>, StoreError> {
        let rows = sqlx::query!(
            r#"with due as (
                   select d.id, d.next_attempt_at,
                          row_number() over (partition by d.webhook_id order by d.next_attempt_at) as place
                   from webhook_deliveries d join webhooks w on w.id = d.webhook_id
                   where d.next_attempt_at <= now() and w.disabled_at is null and d.webhook_id <> all ($3)
               ), claimed as (
                   select d.id from webhook_deliveries d
                   where d.id in (select id from due where place <= $2 order by next_attempt_at limit $1)
                       and d.next_attempt_at <= now()
                   for update skip locked
               )
               update webhook_deliveries d
               set next_attempt_at = now() + $4::double precision * interval '1 second', attempts_count = attempts_count + 1
               from claimed c, webhooks w
               where d.id = c.id and w.id = d.webhook_id
               returning d.id, d.webhook_id, d.type, d.game_id, d.version, d.seat, d.deadline, d.created_at, d.attempts_count,
                         w.url, w.secret,
                         case when w.old_secret_until > now() then w.old_secret end as old_secret"#,
            limit as i64,
            each as i64,
            busy,
            lease.as_secs_f64(),
        )
        .fetch_all(&self.pool)
        .await?;
        let due = rows.into_iter().map(|row| {
            let secrets = std::iter::once(row.secret).chain(row.old_secret).map(secret);
            let (secrets, url) = (secrets.collect::<Result<_, _>>()?, row.url);
            let attempt = row.attempts_count as u32;
            let row = Row {
                id: row.id,
                webhook_id: row.webhook_id,
                r#type: row.r#type,
                game_id: row.game_id,
                version: row.version,
                seat: row.seat,
                deadline: row.deadline,
                created_at: row.created_at,
                next_attempt_at: None,
                delivered_at: None,
            };
            Ok(Due { message: row.into_delivery().message, attempt, url, secrets })
        });
        due.collect()
    }

    /// Writes down what came of an attempt, and what follows: whether the message is tried again, and whether the webhook is
    /// disabled, of which its player is told by an event. If the webhook has been deleted meanwhile there is nothing to write.
    ///
    /// # Errors
    /// The database fails.
    pub async fn record_attempt(&self, due: &Due, outcome: &Outcome) -> Result<(), StoreError> {
        let written = self.write_attempt(due, outcome).await;
        // Whoever sees it counted sees also what came of it.
        self.metrics.attempts.with_label_values(&[outcome.verdict.as_str()]).inc();
        written
    }

    async fn write_attempt(&self, due: &Due, outcome: &Outcome) -> Result<(), StoreError> {
        let (id, webhook) = (due.message.id, due.message.webhook_id);
        let mut transaction = self.pool.begin().await?;
        // First of all, as whoever deletes a webhook does: otherwise each could wait for the other.
        let found = sqlx::query!("select player_id from webhooks where id = $1 for no key update", webhook)
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(found) = found else { return Ok(()) };
        sqlx::query!(
            "insert into webhook_attempts (delivery_id, number, at, status, error, duration_ms)
             values ($1, $2, now() - $6::double precision * interval '1 second', $3, $4, $5)",
            id,
            due.attempt as i32,
            outcome.status.map(|status| status as i16),
            outcome.error,
            i32::try_from(outcome.duration.as_millis()).unwrap_or(i32::MAX),
            outcome.duration.as_secs_f64(),
        )
        .execute(&mut *transaction)
        .await?;
        let gone = match outcome.verdict {
            Verdict::Delivered => {
                delivered(&mut transaction, id, webhook).await?;
                transaction.commit().await?;
                return Ok(());
            }
            Verdict::Failed { retry } => {
                failed(&mut transaction, id, due.attempt, retry).await?;
                false
            }
            Verdict::Gone => true,
        };
        let disabled = sqlx::query_scalar!(
            r#"update webhooks
               set failing_since = coalesce(failing_since, now()),
                   disabled_at = case when $2 or failing_since <= now() - interval '5 days' then now() end
               where id = $1 and disabled_at is null
               returning disabled_at is not null as "disabled!""#,
            webhook,
            gone,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if disabled == Some(true) {
            sqlx::query!(
                "insert into account_events (player_id, type, webhook_id) values ($1, 'webhook_disabled', $2)",
                found.player_id,
                webhook,
            )
            .execute(&mut *transaction)
            .await?;
        }
        // None: it had been disabled before.
        if disabled != Some(false) {
            give_up(&mut transaction, webhook).await?;
        }
        transaction.commit().await?;
        if disabled == Some(true) {
            self.metrics.disabled.inc();
        }
        Ok(())
    }

    /// Deletes up to `limit` deliveries that are older than 30 days and wait for nothing; answers how many.
    ///
    /// # Errors
    /// The database fails.
    pub async fn prune_deliveries(&self, limit: u32) -> Result<u64, StoreError> {
        // Webhook by webhook, by the index of their logs.
        let done = sqlx::query!(
            "delete from webhook_deliveries
             where id in (
                 select d.id from webhooks w cross join lateral (
                     select id from webhook_deliveries
                     where webhook_id = w.id and created_at < now() - interval '30 days' and next_attempt_at is null
                     order by created_at limit $1
                 ) d limit $1)",
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected())
    }
}

/// Keeps a player's webhook, which must be enabled, from changing until the transaction ends.
async fn lock_enabled(transaction: &mut PgConnection, player: Uuid, webhook: Uuid) -> Result<(), StoreError> {
    if lock(transaction, player, webhook).await? { Ok(()) } else { Err(StoreError::WebhookDisabled) }
}

/// One delivery of a webhook.
async fn delivery(connection: &mut PgConnection, webhook: Uuid, id: Uuid) -> Result<Delivery, StoreError> {
    let row = sqlx::query_as!(
        Row,
        "select id, webhook_id, type, game_id, version, seat, deadline, created_at, next_attempt_at, delivered_at
         from webhook_deliveries where id = $1 and webhook_id = $2",
        id,
        webhook,
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(StoreError::NotFound)?;
    let mut delivery = row.into_delivery();
    add_attempts(connection, std::slice::from_mut(&mut delivery)).await?;
    Ok(delivery)
}

/// Adds to deliveries the attempts that have been made.
async fn add_attempts(connection: &mut PgConnection, deliveries: &mut [Delivery]) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = deliveries.iter().map(|delivery| delivery.message.id).collect();
    let rows = sqlx::query!(
        "select delivery_id, number, at, status, error, duration_ms from webhook_attempts
         where delivery_id = any ($1) order by delivery_id, number",
        &ids,
    )
    .fetch_all(connection)
    .await?;
    for row in rows {
        let attempt = Attempt {
            number: row.number as u32,
            at: row.at,
            status: row.status.map(|status| status as u16),
            error: row.error,
            duration_ms: row.duration_ms as u32,
        };
        let delivery = deliveries.iter_mut().find(|delivery| delivery.message.id == row.delivery_id);
        delivery.into_iter().for_each(|delivery| delivery.attempts.push(attempt.clone()));
    }
    Ok(())
}

/// A message has arrived.
async fn delivered(transaction: &mut PgConnection, id: Uuid, webhook: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query!("update webhook_deliveries set delivered_at = now(), next_attempt_at = null where id = $1", id)
        .execute(&mut *transaction)
        .await?;
    sqlx::query!("update webhooks set failing_since = null where id = $1 and failing_since is not null", webhook)
        .execute(transaction)
        .await?;
    Ok(())
}

/// A message has not arrived: it waits again, for a day from its beginning in all. An attempt that was thought to be lost, so
/// that another one followed it, decides nothing.
async fn failed(transaction: &mut PgConnection, id: Uuid, attempt: u32, retry: Duration) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update webhook_deliveries
         set next_attempt_at = case
             when now() < created_at + interval '24 hours'
             then least(now() + $3::double precision * interval '1 second', created_at + interval '24 hours')
         end
         where id = $1 and attempts_count = $2 and delivered_at is null",
        id,
        attempt as i32,
        retry.as_secs_f64(),
    )
    .execute(transaction)
    .await?;
    Ok(())
}

fn secret(bytes: Vec<u8>) -> Result<Secret, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError::Corrupt("a webhook's secret has not 32 bytes".into()))?;
    Ok(Secret(bytes))
}
