//! Moves: which are legal, playing one, the log.

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpResponse, get, post, web};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{command, past, table_viewer};
use crate::game::{Command, GameError};
use crate::http::auth::{Asking, Token};
use crate::http::dto::{LegalMovesOut, MoveAnswerOut, MoveOut, MovePageOut};
use crate::http::problem::{Code, Problem};
use crate::http::request::{After, Id, IfMatch, Limit, Number, Params, RawBody, etag, object};
use crate::rulesets::registry::AnyMove;
use crate::store::{Access, Scope, Store};

/// List your legal moves
///
/// Every legal move of yours, each ready to be posted as it is; none when it is not your turn, or when you have left. Only for
/// the game's players.
#[utoipa::path(
    operation_id = "list_legal_moves", tag = "moves", security(("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id")),
    responses((status = 200, description = "Your legal moves", body = LegalMovesOut,
               headers(("ETag" = String, description = "The version to which they belong"))))
)]
#[get("/v1/games/{id}/legal-moves")]
pub(super) async fn list_legal_moves(store: web::Data<Store>, token: Token, id: Id) -> Result<HttpResponse, Problem> {
    let loaded = store.load_game(id.0, &Access::of(token.0), Scope::Read, None).await?;
    let (game, caller) = (loaded.game, loaded.caller);
    let seat = caller.and_then(|player| game.seat_of(player.id)).ok_or(GameError::NotSeated)?;
    let to_move = game.to_move;
    let moves = match &game.state {
        Some(state) if to_move == Some(seat) && game.is_playing(seat) => state.legal_moves(seat),
        _ => Vec::new(),
    };
    Ok(HttpResponse::Ok()
        .insert_header((header::ETAG, etag(game.version)))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(LegalMovesOut { seat, to_move, version: game.version, moves }))
}

/// Play a move
///
/// The body is the move itself, as `legal-moves` lists it. With `If-Match` it is played only on the version that you saw;
/// with `Idempotency-Key` a repeat (after a lost answer, say) is answered as the first was and plays nothing.
#[utoipa::path(
    operation_id = "play_move", tag = "moves", security(("token" = ["play"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("If-Match" = Option<String>, Header, description = "Only if the game has this version"),
           ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = AnyMove,
    responses((status = 201, description = "The move as it was logged, and the game after it", body = MoveAnswerOut,
               headers(("Location" = String, description = "The move in the log"),
                       ("ETag" = String, description = "The game's version"),
                       ("Idempotent-Replayed" = String, description = "`true` if this is the answer to an earlier request"))))
)]
#[post("/v1/games/{id}/moves")]
pub(super) async fn play_move(
    store: web::Data<Store>,
    token: Token,
    id: Id,
    expected: IfMatch,
    body: RawBody,
) -> Result<HttpResponse, Problem> {
    body.check()?;
    object(&body.bytes)?;
    let play = Command::Play { body: &body.bytes };
    command(&store, id.0, &Access::of(token.0), expected.0, body.idempotency_key(), play, StatusCode::CREATED).await
}

/// Which part of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LogParams {
    /// Only moves after the one with this number.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 0, maximum = 2147483647, default = 0)]
    after: After,
    /// How many moves a page has.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// The code of a private game.
    #[serde(default)]
    #[allow(dead_code, reason = "it is read with the token")]
    invite: Option<String>,
}

/// List the moves of a game
///
/// The log from the first move on, as you may see it; once the game is over, everything.
#[utoipa::path(
    operation_id = "list_moves", tag = "moves", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id"), LogParams),
    responses((status = 200, description = "A page of the log", body = MovePageOut))
)]
#[get("/v1/games/{id}/moves")]
pub(super) async fn list_moves(
    store: web::Data<Store>,
    asking: Asking,
    id: Id,
    params: Params<LogParams>,
) -> Result<HttpResponse, Problem> {
    let loaded = store.load_game(id.0, &asking.0, Scope::Read, None).await?;
    let viewer = table_viewer(&loaded)?;
    let Limit(limit) = params.0.limit;
    let mut entries = store.entries(&loaded.game, params.0.after.0, limit + 1).await?;
    // A move that was played since the game was loaded, perhaps its last, is not of the state that the viewer is for.
    entries.retain(|entry| entry.number <= loaded.game.moves_count);
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next_after = entries.last().filter(|_| more).map(|entry| entry.number);
    let items = entries.iter().map(|entry| MoveOut::new(entry, viewer)).collect();
    Ok(past(&loaded.game, true).json(MovePageOut { items, next_after }))
}

/// Get a move of a game
///
/// One entry of the log, as you may see it.
#[utoipa::path(
    operation_id = "get_move", tag = "moves", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("number" = u32, Path, description = "The move's number, from 1"),
           ("invite" = Option<String>, Query, description = "The code of a private game")),
    responses((status = 200, description = "The move", body = MoveOut))
)]
#[get("/v1/games/{id}/moves/{number}")]
pub(super) async fn get_move(
    store: web::Data<Store>,
    asking: Asking,
    id: Id,
    number: Number,
) -> Result<HttpResponse, Problem> {
    let loaded = store.load_game(id.0, &asking.0, Scope::Read, None).await?;
    let viewer = table_viewer(&loaded)?;
    if number.0 > loaded.game.moves_count {
        return Err(Problem::new(Code::NotFound, "the game has no move of that number"));
    }
    let entry = store.entry(&loaded.game, number.0).await?;
    Ok(past(&loaded.game, true).json(MoveOut::new(&entry, viewer)))
}
