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
use actix_web::{HttpResponse, HttpResponseBuilder, web};
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

/// Names every operation once: for the server and for the OpenAPI document, which each thread would otherwise make again.
macro_rules! operations {
    ($($operation:path),+ $(,)?) => {
        /// Registers every operation.
        pub fn configure(config: &mut web::ServiceConfig) {
            $(config.service($operation);)+
        }

        /// Tells the OpenAPI document of every operation.
        pub fn describe(config: &mut ServiceConfig) {
            $(config.service($operation);)+
        }
    };
}

// The framework tries one path after the other: what is asked most stands first.
operations![
    moves::play_move,
    moves::list_legal_moves,
    // Before the path of one game, which would fit too.
    exports::export_games,
    games::get_game,
    events::list_events,
    events::list_my_events,
    turns::list_turns,
    players::register_player,
    players::get_me,
    players::update_me,
    players::delete_me,
    players::find_players,
    players::get_player,
    ratings::list_ratings,
    ratings::get_leaderboard,
    turns::list_invitations,
    tokens::get_token,
    tokens::list_tokens,
    tokens::create_token,
    tokens::delete_token,
    rulesets::list_rulesets,
    rulesets::get_ruleset,
    games::create_game,
    games::list_games,
    seats::take_seat,
    seats::leave_seat,
    seats::start_game,
    seats::resign,
    seats::abort_game,
    seats::withdraw_abort,
    invitations::invite_player,
    invitations::decline_invitation,
    invitations::withdraw_invitation,
    invitations::change_invite,
    invitations::revoke_invite,
    invitations::get_invite,
    invitations::create_rematch,
    moves::list_moves,
    moves::get_move,
    history::get_state,
    history::get_fairness,
    history::get_record,
    statistics::get_player_stats,
    statistics::get_ruleset_stats,
    webhooks::create_webhook,
    webhooks::list_webhooks,
    webhooks::get_webhook,
    webhooks::update_webhook,
    webhooks::delete_webhook,
    webhooks::rotate_webhook_secret,
    webhooks::ping_webhook,
    webhooks::list_deliveries,
    webhooks::redeliver,
    operations::healthz,
    operations::readyz,
    operations::get_openapi,
    operations::get_problem,
];

/// An answer with a JSON body.
fn json(status: StatusCode, headers: Headers, body: &impl serde::Serialize) -> Answer {
    // A game and a move take one to two thousand bytes.
    let mut text = Vec::with_capacity(2048);
    // Wire types are plain data: writing them cannot fail.
    let _ = serde_json::to_writer(&mut text, body);
    Answer { status: status.as_u16(), headers, body: text }
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
    // Behind a pointer, as it is large, and the framework hands what it is part of from layer to layer.
    match Box::pin(store.update_game(id, access, expected, key, &command, &answer)).await? {
        Updated::Done { caller, game, entry: Some(entry), .. } => Ok(send(move_answer(&game, &entry, &caller), false)),
        Updated::Done { caller, game, entry: None, answer: kept } => {
            Ok(send(kept.unwrap_or_else(|| answer(&game, &caller)), false))
        }
        Updated::Repeated { repeat: Repeat::Answer(answer), .. } => Ok(send(answer, true)),
        Updated::Repeated { caller, repeat: Repeat::Move { number } } => {
            Box::pin(answer_again(store, id, access, &caller, number)).await
        }
    }
}

/// Answers a move as it was answered when it was played: what that said follows from the log.
async fn answer_again(
    store: &Store,
    id: uuid::Uuid,
    access: &Access,
    caller: &Player,
    number: u32,
) -> Result<HttpResponse, Problem> {
    let game = store.load_game(id, access, Scope::Read, None).await?.game;
    let entry = store.entry(&game, number).await?;
    // With all that the move did, its end of the game for instance.
    let then = store.game_at(&game, Place::after(entry.version)).await?.ok_or_else(Problem::not_found)?;
    Ok(send(move_answer(&then, &entry, caller), true))
}
