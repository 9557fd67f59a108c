//! Games: creating, listing, looking at one.

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;
use uuid::Uuid;

use super::players::entropy;
use crate::game::{Entropy, Game, Invite, NewGame, ServerSeed, Status};
use crate::http::auth::{Asking, MaybeToken, Token};
use crate::http::dto::{GameIn, GameOut, GamePageOut};
use crate::http::problem::{Code, Problem};
use crate::http::request::{Body, Id, Limit, Params, etag, id, none_match};
use crate::rulesets::registry::RulesetId;
use crate::store::{Filter, Loaded, Scope, Store};

/// Create a game
///
/// You take seat 0. The game starts by itself as soon as all seats are taken, a game of one at once; you may start it
/// earlier with those who are there. A `private` game has an `invite` code, which you alone are shown. With a `clock` whoever is
/// late leaves the game.
#[utoipa::path(
    operation_id = "create_game", tag = "games", security(("token" = ["play"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = GameIn,
    responses((status = 201, description = "The game", body = GameOut,
               headers(("Location" = String, description = "The game"), ("ETag" = String, description = "Its version"))))
)]
#[post("/v1/games")]
pub(super) async fn create_game(
    store: web::Data<Store>,
    token: Token,
    body: Body<GameIn>,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Play).await?;
    let entropy_of_player = Entropy::parse(body.value.entropy.clone()).map_err(|e| Problem::text("/entropy", e))?;
    let (id, server_seed, code) = (Uuid::now_v7(), ServerSeed(entropy()?), invite_code()?);
    let make = |created_at| {
        let new = NewGame {
            id,
            ruleset: body.value.ruleset,
            options: body.value.options.clone(),
            seats: body.value.seats,
            visibility: body.value.visibility,
            spectators: body.value.spectators,
            clock: body.value.clock,
            invite: code.clone(),
            entropy: entropy_of_player.clone(),
            server_seed: server_seed.clone(),
            created_at,
        };
        Game::create(new, player.clone())
    };
    let answer = |game: &Game, player: &_| super::game_answer(StatusCode::CREATED, game, player);
    let created = store.create_game(make, &player, body.idempotency_key(), answer).await?;
    Ok(super::send(created.answer, created.repeated))
}

/// A code that nobody guesses: 96 random bits, for URLs.
pub(super) fn invite_code() -> Result<Invite, Problem> {
    Ok(Invite(hex::encode(&entropy()?[..12])))
}

/// Filters of a list of games.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Only games of this status.
    status: Option<Status>,
    /// Only games of this ruleset.
    ruleset: Option<RulesetId>,
    /// Only games in which this player has a seat: an id, or `me`.
    #[param(example = "me")]
    player: Option<String>,
    /// Only games in which it is this player's turn: an id, or `me`.
    #[param(example = "me")]
    to_move: Option<String>,
    /// How many games a page has.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// `next_cursor` of the page before; it goes with the same filters.
    cursor: Option<String>,
}

/// List games
///
/// Newest first, page by page. Combine filters at will; `me` needs a token.
#[utoipa::path(
    operation_id = "list_games", tag = "games", security((), ("token" = ["read"])),
    params(ListParams),
    responses((status = 200, description = "A page of games", body = GamePageOut))
)]
#[get("/v1/games")]
pub(super) async fn list_games(
    store: web::Data<Store>,
    token: MaybeToken,
    params: Params<ListParams>,
) -> Result<web::Json<GamePageOut>, Problem> {
    let params = params.0;
    let me = match &token.0 {
        Some(token) => Some(store.authenticate(token, Scope::Read).await?.id),
        None => None,
    };
    let player = |name: &str, text: &Option<String>| match text.as_deref() {
        None => Ok(None),
        Some("me") => me.map(Some).ok_or_else(|| Problem::new(Code::Unauthenticated, "`me` needs a token")),
        Some(text) => {
            id(text).map(Some).ok_or_else(|| Problem::parameter(name, "a player's id, which is a UUID, or `me`"))
        }
    };
    let filter = Filter {
        status: params.status,
        ruleset: params.ruleset,
        player: player("player", &params.player)?,
        to_move: player("to_move", &params.to_move)?,
    };
    let after = params.cursor.as_deref().map(|cursor| read_cursor(cursor, &filter)).transpose()?;
    let page = store.list_games(&filter, me, after, params.limit.0).await?;
    Ok(web::Json(GamePageOut {
        items: page.items.into_iter().map(Into::into).collect(),
        next_cursor: page.next.map(|id| write_cursor(id, &filter)),
    }))
}

/// What tells a list from others, in eight bytes: a cursor of another list is refused.
fn fingerprint(filter: &Filter) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(format!("{filter:?}")).into();
    std::array::from_fn(|i| digest[i])
}

fn write_cursor(after: Uuid, filter: &Filter) -> String {
    hex::encode([after.as_bytes().as_slice(), &fingerprint(filter)].concat())
}

fn read_cursor(cursor: &str, filter: &Filter) -> Result<Uuid, Problem> {
    let refused = |detail| Problem::parameter("cursor", detail);
    let bytes: [u8; 24] = hex::decode(cursor)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| refused("this is no cursor of this server"))?;
    let (after, list) = bytes.split_at(16);
    if list != fingerprint(filter) {
        return Err(refused("the cursor belongs to a list with other filters"));
    }
    Uuid::from_slice(after).map_err(|_| refused("this is no cursor of this server"))
}

/// Get a game
///
/// The game as you may see it: with a token of one of its players that player's hand too, once it is over everything.
/// `ETag` is the version; with `If-None-Match` an unchanged game costs no body.
#[utoipa::path(
    operation_id = "get_game", tag = "games", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id"),
           ("invite" = Option<String>, Query, description = "The code of a private game"),
           ("If-None-Match" = Option<String>, Header, description = "The ETag of the version that you have")),
    responses((status = 200, description = "The game", body = GameOut,
               headers(("ETag" = String, description = "Its version"))),
              (status = 304, description = "You have this version"))
)]
#[get("/v1/games/{id}")]
pub(super) async fn get_game(
    store: web::Data<Store>,
    request: HttpRequest,
    asking: Asking,
    id: Id,
) -> Result<HttpResponse, Problem> {
    let loaded = store.load_game(id.0, &asking.0, Scope::Read, None).await?;
    let mut response =
        if none_match(&request, loaded.game.version) { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response
        .insert_header((header::ETAG, etag(loaded.game.version)))
        .insert_header((header::VARY, "Authorization"))
        .insert_header((header::CACHE_CONTROL, "no-cache"));
    if none_match(&request, loaded.game.version) {
        return Ok(response.finish());
    }
    Ok(response.json(GameOut::new(&loaded.game, loaded.caller.map(|player| player.id))))
}

/// The answer that shows a game to whoever loaded it.
pub(super) fn show(loaded: &Loaded) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::ETAG, etag(loaded.game.version)))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(GameOut::new(&loaded.game, loaded.caller.as_ref().map(|player| player.id)))
}
