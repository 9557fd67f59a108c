//! The operations, one file per resource.

mod games;
mod history;
mod moves;
mod operations;
mod players;
mod rulesets;
mod seats;

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpResponse, HttpResponseBuilder};
use utoipa_actix_web::service_config::ServiceConfig;

use super::dto::{GameOut, MoveAnswerOut, MoveOut};
use super::problem::Problem;
use super::request::etag;
use crate::game::{Command, Entry, Game, Player};
use crate::store::{Answer, Headers, IdempotencyKey, Repeat, Store, TokenHash, Updated};

/// Registers every operation; what is registered here is what the OpenAPI document tells of.
pub fn configure(config: &mut ServiceConfig) {
    config
        .service(players::register_player)
        .service(players::get_me)
        .service(players::update_me)
        .service(players::get_player)
        .service(rulesets::list_rulesets)
        .service(rulesets::get_ruleset)
        .service(games::create_game)
        .service(games::list_games)
        .service(games::get_game)
        .service(seats::take_seat)
        .service(seats::leave_seat)
        .service(seats::start_game)
        .service(seats::resign)
        .service(moves::list_legal_moves)
        .service(moves::play_move)
        .service(moves::list_moves)
        .service(moves::get_move)
        .service(history::get_state)
        .service(history::get_fairness)
        .service(history::get_record)
        .service(operations::healthz)
        .service(operations::readyz)
        .service(operations::get_openapi)
        .service(operations::get_problem);
}

/// An answer with a JSON body.
fn json(status: StatusCode, headers: Headers, body: &impl serde::Serialize) -> Answer {
    // Wire types are plain data: writing them cannot fail.
    Answer { status: status.as_u16(), headers, body: serde_json::to_vec(body).unwrap_or_default() }
}

/// The answer that shows a game to a player.
fn game_answer(status: StatusCode, game: &Game, player: &Player) -> Answer {
    let created = status == StatusCode::CREATED && game.version == 0;
    let headers = Headers { location: created.then(|| location(game)), etag: Some(etag(game.version)) };
    json(status, headers, &GameOut::new(game, Some(player.id)))
}

/// The answer to the player of a move.
fn move_answer(game: &Game, entry: &Entry, player: &Player) -> Answer {
    let headers = Headers {
        location: Some(format!("{}/moves/{}", location(game), entry.number)),
        etag: Some(etag(game.version)),
    };
    let answer = MoveAnswerOut {
        r#move: MoveOut::new(entry, game.viewer(Some(player.id))),
        game: GameOut::new(game, Some(player.id)),
    };
    json(StatusCode::CREATED, headers, &answer)
}

fn location(game: &Game) -> String {
    format!("/v1/games/{}", game.id)
}

/// The beginning of an answer about a game's past. What is over never changes again; if it looks the same to everybody too, it
/// may be kept for ever.
fn past(game: &Game, same_to_all: bool) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    if game.is_over() && same_to_all {
        response.insert_header((header::CACHE_CONTROL, "public, max-age=31536000, immutable"));
    } else {
        response.insert_header((header::CACHE_CONTROL, "no-cache")).insert_header((header::VARY, "Authorization"));
    }
    response
}

/// Sends an answer, marked if it is that to an earlier request.
fn send(answer: Answer, repeated: bool) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = HttpResponse::build(status);
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    if let Some(location) = answer.headers.location {
        response.insert_header((header::LOCATION, location));
    }
    if let Some(etag) = answer.headers.etag {
        response.insert_header((header::ETAG, etag));
    }
    if repeated {
        response.insert_header(("idempotent-replayed", "true"));
    }
    response.content_type("application/json").body(answer.body)
}

/// Gives a game a command and answers with the game, or with what an equal request was answered before.
async fn command(
    store: &Store,
    id: uuid::Uuid,
    token: &TokenHash,
    expected: Option<u32>,
    key: Option<&IdempotencyKey>,
    command: Command<'_>,
    status: StatusCode,
) -> Result<HttpResponse, Problem> {
    let answer = |game: &Game, player: &Player| game_answer(status, game, player);
    match store.update_game(id, Some(token), expected, key, &command, answer).await? {
        Updated::Done { caller, game, entry: Some(entry), .. } => Ok(send(move_answer(&game, &entry, &caller), false)),
        Updated::Done { caller, game, entry: None, answer } => {
            Ok(send(answer.unwrap_or_else(|| game_answer(status, &game, &caller)), false))
        }
        Updated::Repeated { repeat: Repeat::Answer(answer), .. } => Ok(send(answer, true)),
        // What the first answer said follows from the log.
        Updated::Repeated { caller, repeat: Repeat::Move { game_id, number } } => {
            let game = store.load_game(game_id, None, None).await?.game;
            let entry = store.entry(&game, number).await?;
            let state = store.state_after(&game, number).await?;
            Ok(send(move_answer(&game.as_of(&entry, state), &entry, &caller), true))
        }
    }
}
