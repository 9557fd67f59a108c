//! Webhooks and their deliveries on the wire.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::rulesets::Seat;
use crate::store::{Attempt, Delivery, Webhook};
use crate::webhook::Secret;

/// A new webhook.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhook)]
pub struct WebhookIn {
    /// Where messages are sent: an `https` URL, without user, password and fragment, whose host is on the public internet.
    #[schema(format = "uri", max_length = 2048, example = "https://example.com/tavola")]
    pub url: String,
}

/// Changes of a webhook.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WebhookChanges)]
pub struct WebhookChangesIn {
    /// Whether messages are sent; left out, it stays. What waits when a webhook is disabled is not sent any more.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, example = true)]
    pub enabled: Option<bool>,
}

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookOut {
    pub id: Uuid,
    /// Where messages are sent, in the form that equal addresses have.
    #[schema(format = "uri", example = "https://example.com/tavola")]
    pub url: String,
    /// The secret with which messages are signed. Shown only when it is made: by creating the webhook and by rotating its secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")]
    pub secret: Option<String>,
    /// Until when messages are signed with the secret before the last rotation too; null if they are not.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub old_secret_until: Option<OffsetDateTime>,
    /// Whether messages are sent.
    pub enabled: bool,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Since when every attempt has failed; null if the last one did not. After 5 days the webhook is disabled.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub failing_since: Option<OffsetDateTime>,
    /// Since when it is disabled.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub disabled_at: Option<OffsetDateTime>,
}

impl WebhookOut {
    /// A webhook whose secret has just been made.
    pub fn with_secret(webhook: Webhook, secret: &Secret) -> Self {
        Self { secret: Some(secret.to_text()), ..webhook.into() }
    }
}

impl From<Webhook> for WebhookOut {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url,
            secret: None,
            old_secret_until: webhook.old_secret_until,
            enabled: webhook.disabled_at.is_none(),
            created_at: webhook.created_at,
            failing_since: webhook.failing_since,
            disabled_at: webhook.disabled_at,
        }
    }
}

/// All webhooks of a player.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = WebhookList)]
pub struct WebhookListOut {
    /// The oldest first; at most ten.
    pub items: Vec<WebhookOut>,
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// It is still tried.
    Pending,
    /// The receiver has it.
    Delivered,
    /// It has been given up.
    Failed,
}

/// A message to a webhook and what has become of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryOut {
    /// The message's `webhook-id`, the same at every attempt.
    pub id: Uuid,
    /// `your_turn`, `game_started`, `game_finished`, `game_aborted`, `player_invited` or `ping`; there may be others in future.
    #[schema(example = "your_turn")]
    pub r#type: String,
    /// The game; null for a ping, as all about it.
    #[schema(required)]
    pub game_id: Option<Uuid>,
    /// The version of the game at which it happened.
    #[schema(required)]
    pub version: Option<u32>,
    /// Your seat.
    #[schema(required)]
    pub seat: Option<Seat>,
    /// When your time is over.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub deadline: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    pub status: DeliveryStatus,
    /// When it is tried next; null if it is not.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub next_attempt_at: Option<OffsetDateTime>,
    /// When the receiver got it.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub delivered_at: Option<OffsetDateTime>,
    /// The first first.
    pub attempts: Vec<AttemptOut>,
}

impl From<Delivery> for DeliveryOut {
    fn from(delivery: Delivery) -> Self {
        let status = match (delivery.delivered_at, delivery.next_attempt_at) {
            (Some(_), _) => DeliveryStatus::Delivered,
            (None, Some(_)) => DeliveryStatus::Pending,
            (None, None) => DeliveryStatus::Failed,
        };
        let game = delivery.message.game.as_ref();
        Self {
            id: delivery.message.id,
            r#type: delivery.message.kind.clone(),
            game_id: game.map(|game| game.id),
            version: game.map(|game| game.version),
            seat: game.and_then(|game| game.seat),
            deadline: game.and_then(|game| game.deadline),
            created_at: delivery.message.created_at,
            status,
            next_attempt_at: delivery.next_attempt_at,
            delivered_at: delivery.delivered_at,
            attempts: delivery.attempts.into_iter().map(Into::into).collect(),
        }
    }
}

/// One attempt to deliver a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DeliveryAttempt)]
pub struct AttemptOut {
    /// From 1. A number is left out if the server was stopped during that attempt.
    #[schema(minimum = 1)]
    pub number: u32,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The status of the answer; null if there was none.
    #[schema(required, example = 204)]
    pub status: Option<u16>,
    /// Why there was no answer.
    #[schema(required, example = "timed out")]
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
}

impl From<Attempt> for AttemptOut {
    fn from(attempt: Attempt) -> Self {
        let Attempt { number, at, status, error, duration_ms } = attempt;
        Self { number, at, status, error, duration_ms }
    }
}

/// A page of a log of deliveries.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = DeliveryPage)]
pub struct DeliveryPageOut {
    /// The newest first.
    pub items: Vec<DeliveryOut>,
    /// The `cursor` of the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
}
