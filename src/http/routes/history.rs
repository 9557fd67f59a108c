//! A game's past: any state it has been in, its fairness, its record.

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::past;
use crate::game::{Game, Record, Spectators};
use crate::http::auth::Asking;
use crate::http::dto::{FairnessOut, PastStateOut};
use crate::http::problem::{Code, Problem};
use crate::http::request::{Id, Number, Params};
use crate::rulesets::Viewer;
use crate::store::{Scope, Store};

/// As whom a past state is seen.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StateParams {
    /// `me` (the default while the game is played; without a seat that is a spectator), `spectator`, or, once the game is
    /// over, a seat's number or `all` (the default then).
    #[param(example = "all")]
    perspective: Option<String>,
    /// The code of a private game.
    #[serde(default)]
    #[allow(dead_code, reason = "it is read with the token")]
    invite: Option<String>,
}

/// The viewer that a perspective means, if the caller may have it.
fn viewer(game: &Game, caller: Option<Uuid>, perspective: Option<&str>) -> Result<(Viewer, String), Problem> {
    let own = caller.and_then(|id| game.seat_of(id)).map_or(Viewer::Spectator, Viewer::Seat);
    let (viewer, name) = match perspective {
        None if game.is_over() => (Viewer::Everything, "all".to_owned()),
        None if own == Viewer::Spectator => (own, "spectator".to_owned()),
        None => (own, "me".to_owned()),
        Some("me") if own == Viewer::Spectator => {
            return Err(Problem::new(Code::NotSeated, "you have no seat in this game: ask for `spectator`"));
        }
        Some("me") => (own, "me".to_owned()),
        Some("spectator") => (Viewer::Spectator, "spectator".to_owned()),
        Some("all") => (Viewer::Everything, "all".to_owned()),
        Some(text) => match text.parse() {
            Ok(seat) if seat < game.seat_count && text.len() == 1 => (Viewer::Seat(seat), text.to_owned()),
            _ => {
                let known = "`me`, `spectator`, `all`, or the number of a seat";
                return Err(Problem::parameter("perspective", known));
            }
        },
    };
    let allowed = game.is_over() || viewer == own || viewer == Viewer::Spectator;
    let waits = viewer == Viewer::Spectator && !game.is_over() && game.spectators == Spectators::AfterEnd;
    if waits && own == Viewer::Spectator {
        return Err(Problem::new(Code::NotSeated, "until the game is over only its players see the table"));
    }
    if !allowed {
        return Err(Problem::new(
            Code::NotSeated,
            "until the game is over you see it from your own seat or as a spectator",
        ));
    }
    Ok((viewer, name))
}

/// Get a past state
///
/// The table after so many moves, 0 being the deal: while the game is played as you could see it then, once it is over from any
/// seat or open altogether.
#[utoipa::path(
    operation_id = "get_state", tag = "history", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("number" = u32, Path, description = "After so many moves; 0 is the deal"), StateParams),
    responses((status = 200, description = "The state", body = PastStateOut))
)]
#[get("/v1/games/{id}/states/{number}")]
pub(super) async fn get_state(
    store: web::Data<Store>,
    asking: Asking,
    id: Id,
    number: Number,
    params: Params<StateParams>,
) -> Result<HttpResponse, Problem> {
    let loaded = store.load_game(id.0, &asking.0, Scope::Read, None).await?;
    let (game, number) = (loaded.game, number.0);
    let caller = loaded.caller.map(|player| player.id);
    let (viewer, perspective) = viewer(&game, caller, params.0.perspective.as_deref())?;
    if game.started_at.is_none() || number > game.moves_count {
        return Err(Problem::new(Code::NotFound, "the game has not come to that state"));
    }
    let state = store.state_after(&game, number).await?;
    let last = number == game.moves_count;
    let body = PastStateOut {
        game_id: game.id,
        number,
        to_move: if last { game.to_move } else { state.to_act() },
        outcome: game.outcome.clone().filter(|_| last),
        state: state.view(viewer),
        // `me` is not the same for everybody.
        perspective: perspective.clone(),
    };
    Ok(past(&game, perspective != "me").json(body))
}

/// Get a game's fairness
///
/// What anyone needs to check that the server neither chose the deal nor changed it. The seeds are null until the game is over.
#[utoipa::path(
    operation_id = "get_fairness", tag = "history", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("invite" = Option<String>, Query, description = "The code of a private game")),
    responses((status = 200, description = "Commitment, seeds, entropies, lot", body = FairnessOut))
)]
#[get("/v1/games/{id}/fairness")]
pub(super) async fn get_fairness(store: web::Data<Store>, asking: Asking, id: Id) -> Result<HttpResponse, Problem> {
    let game = store.load_game(id.0, &asking.0, Scope::Read, None).await?.game;
    Ok(past(&game, true).json(FairnessOut::from(&game)))
}

/// Get a game's record
///
/// A finished game as one self-contained document with everything that is needed to replay and verify it, offline and without
/// this server: `tavola verify` does.
#[utoipa::path(
    operation_id = "get_record", tag = "history", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("invite" = Option<String>, Query, description = "The code of a private game")),
    responses((status = 200, description = "The record", body = Record))
)]
#[get("/v1/games/{id}/record")]
pub(super) async fn get_record(store: web::Data<Store>, asking: Asking, id: Id) -> Result<HttpResponse, Problem> {
    let game = store.load_game(id.0, &asking.0, Scope::Read, None).await?.game;
    let moves = store.recorded_moves(&[game.id]).await?.remove(&game.id).unwrap_or_default();
    let rating = store.rating_of_games(&[game.id]).await?.remove(&game.id);
    let record = Record::new(&game, moves, rating)
        .ok_or_else(|| Problem::new(Code::GameNotFinished, "a game has a record once it is finished"))?;
    // Names in it are those of today, so it is not kept for ever.
    Ok(HttpResponse::Ok().insert_header(("cache-control", "no-cache")).json(record))
}
