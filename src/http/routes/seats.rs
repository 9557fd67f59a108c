//! Seats: taking one, leaving it, starting with those that are taken, giving up.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, delete, post, web};

use super::command;
use crate::game::{Command, Entropy};
use crate::http::auth::Token;
use crate::http::dto::{GameOut, SeatIn};
use crate::http::problem::Problem;
use crate::http::request::{Body, Id, IfMatch, RawBody};
use crate::store::{Access, Store};

/// Take a seat
///
/// The one that is kept for you if you are invited, else the lowest free one, unless you name another. When all seats are
/// taken the game starts. A private game wants its `invite` code of who is not invited. `entropy` is your share in the game's
/// chance: with it you need not trust the server's seed.
#[utoipa::path(
    operation_id = "take_seat", tag = "seats", security(("token" = ["play"])),
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
    let access = Access { token: Some(token.0), invite: body.value.invite };
    let take = Command::TakeSeat { seat: body.value.seat, entropy, invite: access.invite.as_deref() };
    command(&store, id.0, &access, expected.0, key.as_ref(), take, StatusCode::CREATED).await
}

/// Leave your seat
///
/// Before the start. A creator who leaves hands the game over to the lowest seat; when the last player leaves it is called
/// off.
#[utoipa::path(
    operation_id = "leave_seat", tag = "seats", security(("token" = ["play"])),
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
    command(&store, id.0, &Access::of(token.0), expected.0, None, Command::LeaveSeat, StatusCode::OK).await
}

/// Start a game early
///
/// By its creator, with those who have taken a seat, if the ruleset has enough with them. They are numbered anew from 0, in
/// their order.
#[utoipa::path(
    operation_id = "start_game", tag = "seats", security(("token" = ["play"])),
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
    command(&store, id.0, &Access::of(token.0), expected.0, body.idempotency_key(), Command::Start, StatusCode::OK)
        .await
}

/// Resign
///
/// Of two players the other wins at once. Of more the game goes on, a bot plays for you, and you will rank last, behind you
/// only those who have left before. When nobody is left the game is over.
#[utoipa::path(
    operation_id = "resign", tag = "seats", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 200, description = "The game, over or going on without you", body = GameOut,
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
    command(&store, id.0, &Access::of(token.0), expected.0, body.idempotency_key(), Command::Resign, StatusCode::OK)
        .await
}

/// Call a game off
///
/// Before the start its creator can. After it all players have to ask for it who have not left: with the last of them the game is
/// over, and nobody has won.
#[utoipa::path(
    operation_id = "abort_game", tag = "seats", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    responses((status = 200, description = "The game, called off or with your wish noted", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games/{id}/abort")]
pub(super) async fn abort_game(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    body.check()?;
    let access = Access::of(token.0);
    command(&store, id.0, &access, expected.0, body.idempotency_key(), Command::Abort, StatusCode::OK).await
}

/// Withdraw the wish to call a game off
///
/// You do not ask for it any more.
#[utoipa::path(
    operation_id = "withdraw_abort", tag = "seats", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version")),
    responses((status = 200, description = "The game, your wish gone", body = GameOut,
               headers(("ETag" = String, description = "Its version"))))
)]
#[delete("/v1/games/{id}/abort")]
pub(super) async fn withdraw_abort(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
) -> Result<HttpResponse, Problem> {
    command(&store, id.0, &Access::of(token.0), expected.0, None, Command::WithdrawAbort, StatusCode::OK).await
}
