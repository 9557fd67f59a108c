//! What waits for a player: their turns, their invitations.

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::http::auth::Token;
use crate::http::dto::GamePageOut;
use crate::http::problem::Problem;
use crate::http::request::{Limit, Params};
use crate::store::{Scope, Store, TimeKey, TimePage};

/// Which part of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PageParams {
    /// How many games a page has.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// What a cursor says of a time that is none: later than every other.
const NEVER: i64 = i64::MAX;

pub(super) fn write_cursor(key: TimeKey) -> String {
    let micros = key.at.map_or(NEVER, |at| (at.unix_timestamp_nanos() / 1_000) as i64);
    hex::encode([key.game_id.as_bytes().as_slice(), &micros.to_be_bytes()].concat())
}

/// The place that a cursor means.
///
/// # Errors
/// It is none that [`write_cursor`] writes.
pub(super) fn read_cursor(cursor: &str) -> Result<TimeKey, Problem> {
    let read = || {
        let bytes: [u8; 24] = hex::decode(cursor).ok()?.try_into().ok()?;
        let (id, micros) = bytes.split_at(16);
        let micros = i64::from_be_bytes(micros.try_into().ok()?);
        let at = match micros {
            NEVER => None,
            // PostgreSQL's times end before Rust's do; no deadline goes beyond the year 2200.
            0..7_258_118_400_000_000 => {
                Some(OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).ok()?)
            }
            _ => return None,
        };
        let key = TimeKey { at, game_id: Uuid::from_slice(id).ok()? };
        Some(key).filter(|key| write_cursor(*key) == cursor)
    };
    read().ok_or_else(|| Problem::parameter("cursor", "this is no cursor of this list"))
}

fn page(page: TimePage) -> HttpResponse {
    HttpResponse::Ok().json(GamePageOut {
        items: page.items.into_iter().map(Into::into).collect(),
        next_cursor: page.next.map(write_cursor),
    })
}

/// List your turns
///
/// The games that wait for your move, the nearest deadline first, those without a clock last.
#[utoipa::path(
    operation_id = "list_turns", tag = "players", security(("token" = ["read"])),
    params(PageParams),
    responses((status = 200, description = "A page of games", body = GamePageOut))
)]
#[get("/v1/me/turns")]
pub(super) async fn list_turns(
    store: web::Data<Store>,
    token: Token,
    params: Params<PageParams>,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Read).await?;
    let after = params.0.cursor.as_deref().map(read_cursor).transpose()?;
    Ok(page(store.list_turns(player.id, after, params.0.limit.0).await?))
}

/// List your invitations
///
/// The open games in which a seat is kept for you, those that expire first at the head. `invitations` of a game tells which seat
/// and until when.
#[utoipa::path(
    operation_id = "list_invitations", tag = "invitations", security(("token" = ["read"])),
    params(PageParams),
    responses((status = 200, description = "A page of games", body = GamePageOut))
)]
#[get("/v1/me/invitations")]
pub(super) async fn list_invitations(
    store: web::Data<Store>,
    token: Token,
    params: Params<PageParams>,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Read).await?;
    let after = params.0.cursor.as_deref().map(read_cursor).transpose()?;
    Ok(page(store.list_invitations(player.id, after, params.0.limit.0).await?))
}
