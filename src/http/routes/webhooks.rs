//! Webhooks: making them, the log of what was sent, sending again. The sending itself is a worker's.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, delete, get, patch, post, web};
use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::IntoParams;
use uuid::Uuid;

use super::players::entropy;
use crate::http::auth::Token;
use crate::http::dto::{DeliveryOut, DeliveryPageOut, WebhookChangesIn, WebhookIn, WebhookListOut, WebhookOut};
use crate::http::problem::Problem;
use crate::http::request::{Body, DeliveryId, Id, Limit, Params, RawBody};
use crate::store::{Delivery, DeliveryPlace, Headers, Scope, Store, Webhook};
use crate::webhook::{Secret, Targets};

/// Create a webhook
///
/// From now on messages about your games are sent to this address, signed by the Standard Webhooks specification. The answer has
/// the secret to verify them with, which is not shown again. Send an `Idempotency-Key`, so that you can ask for a lost answer.
#[utoipa::path(
    operation_id = "create_webhook", tag = "webhooks", security(("token" = ["manage"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = WebhookIn,
    responses((status = 201, description = "The webhook and its secret", body = WebhookOut,
               headers(("Location" = String, description = "The webhook"))))
)]
#[post("/v1/me/webhooks")]
pub(super) async fn create_webhook(
    store: web::Data<Store>,
    targets: web::Data<Targets>,
    token: Token,
    body: Body<WebhookIn>,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    // Before the address is looked at, which may mean something else by now.
    if let Some(answer) = store.answered(player.id, body.idempotency_key()).await? {
        return Ok(super::send(answer, true));
    }
    let url = targets.parse(&body.value.url)?;
    targets.check(&url).await?;
    let secret = Secret(entropy()?);
    let answer = |webhook: &Webhook| {
        let headers = Headers { location: Some(format!("/v1/me/webhooks/{}", webhook.id)), etag: None };
        super::json(StatusCode::CREATED, headers, &WebhookOut::with_secret(webhook.clone(), &secret))
    };
    let created = store.create_webhook(player.id, url.as_str(), &secret, body.idempotency_key(), answer).await?;
    Ok(super::send(created.answer, created.repeated))
}

/// List your webhooks
///
/// All of them, the oldest first.
#[utoipa::path(
    operation_id = "list_webhooks", tag = "webhooks", security(("token" = ["manage"])),
    responses((status = 200, description = "Your webhooks", body = WebhookListOut))
)]
#[get("/v1/me/webhooks")]
pub(super) async fn list_webhooks(store: web::Data<Store>, token: Token) -> Result<web::Json<WebhookListOut>, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    let items = store.webhooks(player.id).await?.into_iter().map(Into::into).collect();
    Ok(web::Json(WebhookListOut { items }))
}

/// Get a webhook
///
/// How it is doing: whether it is enabled, since when it fails.
#[utoipa::path(
    operation_id = "get_webhook", tag = "webhooks", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 200, description = "The webhook", body = WebhookOut))
)]
#[get("/v1/me/webhooks/{id}")]
pub(super) async fn get_webhook(
    store: web::Data<Store>,
    token: Token,
    id: Id,
) -> Result<web::Json<WebhookOut>, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    Ok(web::Json(store.webhook(player.id, id.0).await?.into()))
}

/// Enable or disable a webhook
///
/// Enable one that was disabled because its receiver failed for 5 days or answered 410. What happened meanwhile is not sent.
#[utoipa::path(
    operation_id = "update_webhook", tag = "webhooks", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The webhook's id")),
    request_body = WebhookChangesIn,
    responses((status = 200, description = "The webhook", body = WebhookOut))
)]
#[patch("/v1/me/webhooks/{id}")]
pub(super) async fn update_webhook(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    body: Body<WebhookChangesIn>,
) -> Result<web::Json<WebhookOut>, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    let webhook = match body.value.enabled {
        Some(enabled) => store.enable_webhook(player.id, id.0, enabled).await?,
        None => store.webhook(player.id, id.0).await?,
    };
    Ok(web::Json(webhook.into()))
}

/// Delete a webhook
///
/// Nothing more is sent to it, and the log of what was sent is gone too.
#[utoipa::path(
    operation_id = "delete_webhook", tag = "webhooks", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 204, description = "It is deleted"))
)]
#[delete("/v1/me/webhooks/{id}")]
pub(super) async fn delete_webhook(store: web::Data<Store>, token: Token, id: Id) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    store.delete_webhook(player.id, id.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Rotate a webhook's secret
///
/// The answer has the new secret, which is not shown again. For 24 hours messages are signed with the one before it too, so that
/// you can change your receiver without losing any. Send an `Idempotency-Key`: a repeat without one rotates once more.
#[utoipa::path(
    operation_id = "rotate_webhook_secret", tag = "webhooks", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The webhook's id"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 200, description = "The webhook and its new secret", body = WebhookOut))
)]
#[post("/v1/me/webhooks/{id}/secret")]
pub(super) async fn rotate_webhook_secret(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    body.check()?;
    let secret = Secret(entropy()?);
    let answer = |webhook: &Webhook| {
        super::json(StatusCode::OK, Headers::default(), &WebhookOut::with_secret(webhook.clone(), &secret))
    };
    let rotated = store.rotate_secret(player.id, id.0, &secret, body.idempotency_key(), answer).await?;
    Ok(super::send(rotated.answer, rotated.repeated))
}

fn queued(delivery: &Delivery) -> crate::store::Answer {
    super::json(StatusCode::ACCEPTED, Headers::default(), &DeliveryOut::from(delivery.clone()))
}

/// Ping a webhook
///
/// Sends a message of the type `ping`, to try your receiver. One that still waits is sent at once instead of another one.
#[utoipa::path(
    operation_id = "ping_webhook", tag = "webhooks", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The webhook's id"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 202, description = "The message, about to be sent", body = DeliveryOut))
)]
#[post("/v1/me/webhooks/{id}/ping")]
pub(super) async fn ping_webhook(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    body.check()?;
    let ping = store.ping_webhook(player.id, id.0, body.idempotency_key(), queued).await?;
    Ok(super::send(ping.answer, ping.repeated))
}

/// Which part of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LogParams {
    /// How many deliveries a page has.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// List a webhook's deliveries
///
/// What was sent or is to be sent, the newest first, each with the status and time of every attempt. The log goes back 30 days.
#[utoipa::path(
    operation_id = "list_deliveries", tag = "webhooks", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The webhook's id"), LogParams),
    responses((status = 200, description = "A page of deliveries", body = DeliveryPageOut))
)]
#[get("/v1/me/webhooks/{id}/deliveries")]
pub(super) async fn list_deliveries(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    params: Params<LogParams>,
) -> Result<web::Json<DeliveryPageOut>, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    let after = params.0.cursor.as_deref().map(read_cursor).transpose()?;
    let (deliveries, more) = store.deliveries(player.id, id.0, after, params.0.limit.0).await?;
    let next_cursor =
        deliveries.last().filter(|_| more).map(|last| write_cursor(last.message.created_at, last.message.id));
    Ok(web::Json(DeliveryPageOut { items: deliveries.into_iter().map(Into::into).collect(), next_cursor }))
}

pub(super) fn write_cursor(created_at: OffsetDateTime, id: Uuid) -> String {
    let micros = (created_at.unix_timestamp_nanos() / 1_000) as i64;
    hex::encode([micros.to_be_bytes().as_slice(), id.as_bytes()].concat())
}

/// The place that a cursor means.
///
/// # Errors
/// It is none that [`write_cursor`] writes.
pub(super) fn read_cursor(cursor: &str) -> Result<DeliveryPlace, Problem> {
    let place = || {
        let bytes: [u8; 24] = hex::decode(cursor).ok()?.try_into().ok()?;
        let (micros, id) = bytes.split_first_chunk::<8>()?;
        let micros = i64::from_be_bytes(*micros);
        // What lies further back the database may not be able to write.
        let created_at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).ok()?;
        if created_at < OffsetDateTime::UNIX_EPOCH {
            return None;
        }
        let id = Uuid::from_slice(id).ok()?;
        (write_cursor(created_at, id) == cursor).then_some(DeliveryPlace { created_at, id })
    };
    place().ok_or_else(|| Problem::parameter("cursor", "this is no cursor of this server"))
}

/// Send a delivery again
///
/// Sends a message once more, with the same `webhook-id`, whatever has become of it. Within 24 hours of the message it is then
/// retried as any other; after that it is tried this once.
#[utoipa::path(
    operation_id = "redeliver", tag = "webhooks", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The webhook's id"),
           ("delivery" = Uuid, Path, description = "The delivery's id"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 202, description = "The message, about to be sent", body = DeliveryOut))
)]
#[post("/v1/me/webhooks/{id}/deliveries/{delivery}/redelivery")]
pub(super) async fn redeliver(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    delivery: DeliveryId,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    body.check()?;
    let redelivery = store.redeliver(player.id, id.0, delivery.0, body.idempotency_key(), queued).await?;
    Ok(super::send(redelivery.answer, redelivery.repeated))
}
