//! Seats: taking one, leaving it, starting with those that are taken, giving up.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, delete, post, web};

use super::command;
use crate::game::{Command, Entropy};
use crate::http::auth::Token;
use crate::http::dto::{GameOut, SeatIn};
use crate::http::problem::Problem;
use crate::http::request::{Body, Id, IfMatch, RawBody};
use crate::store::Store;

/// Take a seat
///
/// The lowest free one, unless you name another. When all seats are taken the game starts. `entropy` is your share in its
/// chance: with it you need not trust the server's seed.
#[utoipa::path(
    operation_id = "take_seat", tag = "seats", security(("token" = [])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = SeatIn,
    responses((status = 201, description = "The game, you in it", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games/{id}/seats")]
pub(super) async fn take_seat(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
    body: Body<SeatIn>,
) -> Result<HttpResponse, Problem> {
    let key = body.idempotency_key().cloned();
    let entropy = Entropy::parse(body.value.entropy).map_err(|error| Problem::text("/entropy", error))?;
    let take = Command::TakeSeat { seat: body.value.seat, entropy };
    command(&store, id.0, &token.0, expected.0, key.as_ref(), take, StatusCode::CREATED).await
}

/// Leave your seat
///
/// Before the start. A creator who leaves hands the game over to the lowest seat; when the last player leaves it is called
/// off.
#[utoipa::path(
    operation_id = "leave_seat", tag = "seats", security(("token" = [])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version")),
    responses((status = 200, description = "The game, without you", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[delete("/v1/games/{id}/seats/me")]
pub(super) async fn leave_seat(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
) -> Result<HttpResponse, Problem> {
    command(&store, id.0, &token.0, expected.0, None, Command::LeaveSeat, StatusCode::OK).await
}

/// Start a game early
///
/// By its creator, with those who have taken a seat, if the ruleset has enough with them. They are numbered anew from 0, in
/// their order.
#[utoipa::path(
    operation_id = "start_game", tag = "seats", security(("token" = [])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 200, description = "The game, dealt", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games/{id}/start")]
pub(super) async fn start_game(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    body.check()?;
    command(&store, id.0, &token.0, expected.0, body.idempotency_key(), Command::Start, StatusCode::OK).await
}

/// Resign
///
/// Of two players the other wins at once. Of more the game ends, you last and the others ranked by the score they have.
#[utoipa::path(
    operation_id = "resign", tag = "seats", security(("token" = [])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 200, description = "The game, over", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games/{id}/resignation")]
pub(super) async fn resign(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    body.check()?;
    command(&store, id.0, &token.0, expected.0, body.idempotency_key(), Command::Resign, StatusCode::OK).await
}
