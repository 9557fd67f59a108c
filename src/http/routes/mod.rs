//! The operations, one file per resource.

pub mod cursors;
mod events;
mod exports;
mod games;
mod history;
mod invitations;
mod listing;
mod moves;
mod operations;
mod players;
mod ratings;
mod rulesets;
mod seats;
mod statistics;
mod tokens;
mod turns;
mod webhooks;

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpResponse, HttpResponseBuilder};
use utoipa_actix_web::service_config::ServiceConfig;

use super::dto::{GameOut, MoveAnswerOut, MoveOut};
use super::problem::{Code, Problem};
use super::request::etag;
use crate::game::{Command, Entry, Game, Place, Player, Visibility};
use crate::rulesets::Viewer;
use crate::store::{Access, Answer, Headers, IdempotencyKey, Loaded, Repeat, Scope, Store, Updated};
pub use exports::{TrailerOut, table};
pub use operations::page;
pub use players::TOKEN_KEY_LENGTH;

/// Registers every operation; what is registered here is what the OpenAPI document tells of. The framework tries one path after the
/// other: what is asked most stands first.
pub fn configure(config: &mut ServiceConfig) {
    config
        .service(moves::play_move)
        .service(moves::list_legal_moves)
        // Before the path of one game, which would fit too.
        .service(exports::export_games)
        .service(games::get_game)
        .service(events::list_events)
        .service(events::list_my_events)
        .service(turns::list_turns)
        .service(players::register_player)
        .service(players::get_me)
        .service(players::update_me)
        .service(players::delete_me)
        .service(players::find_players)
        .service(players::get_player)
        .service(ratings::list_ratings)
        .service(ratings::get_leaderboard)
        .service(turns::list_invitations)
        .service(tokens::get_token)
        .service(tokens::list_tokens)
        .service(tokens::create_token)
        .service(tokens::delete_token)
        .service(rulesets::list_rulesets)
        .service(rulesets::get_ruleset)
        .service(games::create_game)
        .service(games::list_games)
        .service(seats::take_seat)
        .service(seats::leave_seat)
        .service(seats::start_game)
        .service(seats::resign)
        .service(seats::abort_game)
        .service(seats::withdraw_abort)
        .service(invitations::invite_player)
        .service(invitations::decline_invitation)
        .service(invitations::withdraw_invitation)
        .service(invitations::change_invite)
        .service(invitations::revoke_invite)
        .service(invitations::get_invite)
        .service(invitations::create_rematch)
        .service(moves::list_moves)
        .service(moves::get_move)
        .service(history::get_state)
        .service(history::get_fairness)
        .service(history::get_record)
        .service(statistics::get_player_stats)
        .service(statistics::get_ruleset_stats)
        .service(webhooks::create_webhook)
        .service(webhooks::list_webhooks)
        .service(webhooks::get_webhook)
        .service(webhooks::update_webhook)
        .service(webhooks::delete_webhook)
        .service(webhooks::rotate_webhook_secret)
        .service(webhooks::ping_webhook)
        .service(webhooks::list_deliveries)
        .service(webhooks::redeliver)
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
        r#move: MoveOut::new(entry, game.viewer(Some(player.id)).unwrap_or(Viewer::Spectator)),
        game: GameOut::new(game, Some(player.id)),
    };
    json(StatusCode::CREATED, headers, &answer)
}

fn location(game: &Game) -> String {
    format!("/v1/games/{}", game.id)
}

/// The beginning of an answer about a game's past. What is over never changes again; if everybody may see it, and it looks the
/// same to everybody, it may be kept for ever.
fn past(game: &Game, same_to_all: bool) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    if game.is_over() && same_to_all && game.visibility == Visibility::Public {
        response.insert_header((header::CACHE_CONTROL, "public, max-age=31536000, immutable"));
    } else {
        response.insert_header((header::CACHE_CONTROL, "no-cache")).insert_header((header::VARY, "Authorization"));
    }
    response
}

/// As whom the caller sees the table.
fn table_viewer(loaded: &Loaded) -> Result<Viewer, Problem> {
    let viewer = loaded.game.viewer(loaded.caller.as_ref().map(|player| player.id));
    viewer.ok_or_else(|| Problem::new(Code::NotSeated, "until the game is over only its players see the table"))
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
    access: &Access,
    expected: Option<u32>,
    key: Option<&IdempotencyKey>,
    command: Command<'_>,
    status: StatusCode,
) -> Result<HttpResponse, Problem> {
    let answer = |game: &Game, player: &Player| game_answer(status, game, player);
    command_answered(store, id, access, expected, key, command, answer).await
}

/// Gives a game a command and answers as `answer` says, with the move if it is one, or with what an equal request was answered
/// before.
async fn command_answered(
    store: &Store,
    id: uuid::Uuid,
    access: &Access,
    expected: Option<u32>,
    key: Option<&IdempotencyKey>,
    command: Command<'_>,
    answer: impl Fn(&Game, &Player) -> Answer,
) -> Result<HttpResponse, Problem> {
    match store.update_game(id, access, expected, key, &command, &answer).await? {
        Updated::Done { caller, game, entry: Some(entry), .. } => Ok(send(move_answer(&game, &entry, &caller), false)),
        Updated::Done { caller, game, entry: None, answer: kept } => {
            Ok(send(kept.unwrap_or_else(|| answer(&game, &caller)), false))
        }
        Updated::Repeated { repeat: Repeat::Answer(answer), .. } => Ok(send(answer, true)),
        // What the first answer said follows from the log.
        Updated::Repeated { caller, repeat: Repeat::Move { game_id, number } } => {
            let game = store.load_game(game_id, access, Scope::Read, None).await?.game;
            let entry = store.entry(&game, number).await?;
            // With all that the move did, its end of the game for instance.
            let then = store.game_at(&game, Place::after(entry.version)).await?.ok_or_else(Problem::not_found)?;
            Ok(send(move_answer(&then, &entry, &caller), true))
        }
    }
}
