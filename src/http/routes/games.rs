//! Games: creating, listing, looking at one.

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, get, post, web};
use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::listing::{FilterParams, Query, SortParam, read_cursor, write_cursor};
use super::players::entropy;
use crate::game::{Entropy, Game, Invite, NewGame, ServerSeed};
use crate::http::auth::{Asking, MaybeToken, Token};
use crate::http::dto::{AnyGamePage, GameIdOut, GameIdPageOut, GameIn, GameOut, GamePageOut};
use crate::http::problem::Problem;
use crate::http::request::{Body, Id, Limit, etag, none_match};
use crate::store::{List, Loaded, Scope, Store, TimeKey};

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
    let (random, server_seed, code) = (entropy()?, ServerSeed(entropy()?), invite_code()?);
    let make = |now| {
        let (id, created_at) = new_id(now, &random);
        let new = NewGame {
            id,
            ruleset: body.value.ruleset,
            options: body.value.options.clone(),
            seats: body.value.seats,
            visibility: body.value.visibility,
            spectators: body.value.spectators,
            clock: body.value.clock,
            rated: body.value.rated,
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

/// The id of a game that is created now, and the time of its creation as the id has it (UUIDv7, RFC 9562): the next
/// millisecond, so that the order of ids is the order of these times.
pub(super) fn new_id(now: OffsetDateTime, random: &[u8; 32]) -> (Uuid, OffsetDateTime) {
    let millis = (now.unix_timestamp_nanos() + 999_999) / 1_000_000;
    let created_at = OffsetDateTime::from_unix_timestamp_nanos(millis * 1_000_000).unwrap_or(now);
    let random = std::array::from_fn(|i| random[i]);
    (uuid::Builder::from_unix_timestamp_millis(millis as u64, &random).into_uuid(), created_at)
}

/// A code that nobody guesses: 96 random bits, for URLs.
pub(super) fn invite_code() -> Result<Invite, Problem> {
    Ok(Invite(hex::encode(&entropy()?[..12])))
}

/// Which members of the games a list has.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = GameFields)]
enum Fields {
    /// The id alone.
    Id,
}

/// Order and length of a list of games.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// The order: `-` in front for the latest first. Games that have no such time come last, either way; equal times are in
    /// order of id.
    #[serde(default)]
    #[param(inline, value_type = Option<SortParam>)]
    sort: SortParam,
    /// `id`: only the ids of the games.
    #[param(inline)]
    fields: Option<Fields>,
    /// How many games a page has.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// `next_cursor` of the page before; it goes with the same filters and the same order.
    cursor: Option<String>,
}

/// List games
///
/// Page by page, newest first unless `sort` says otherwise. Combine filters at will; `me` needs a token. An option of the
/// ruleset is a filter too: `option.hands=2`. A walk from page to page meets every game once that fits from its beginning to its
/// end; one whose place in the order changes meanwhile can be missed or met twice.
#[utoipa::path(
    operation_id = "list_games", tag = "games", security((), ("token" = ["read"])),
    params(FilterParams, ListParams),
    responses((status = 200, description = "A page of games, or of their ids", body = AnyGamePage))
)]
#[get("/v1/games")]
pub(super) async fn list_games(
    store: web::Data<Store>,
    token: MaybeToken,
    query: Query<ListParams>,
) -> Result<HttpResponse, Problem> {
    let me = match &token.0 {
        Some(token) => Some(store.authenticate(token, Scope::Read).await?.id),
        None => None,
    };
    let (filter, params) = (query.filter(me)?, query.rest);
    let sort = params.sort.into();
    let after = params.cursor.as_deref().map(|cursor| read_cursor(cursor, &filter, sort)).transpose()?;
    let list = List { filter: &filter, sort, caller: me };
    let next_cursor = |next: Option<TimeKey>| next.map(|next| write_cursor(next, &filter, sort));
    Ok(match params.fields {
        None => {
            let page = store.list_games(&list, after, params.limit.0).await?;
            let items = page.items.into_iter().map(Into::into).collect();
            HttpResponse::Ok().json(GamePageOut { items, next_cursor: next_cursor(page.next) })
        }
        Some(Fields::Id) => {
            let page = store.list_game_ids(&list, after, params.limit.0).await?;
            let items = page.items.into_iter().map(|id| GameIdOut { id }).collect();
            HttpResponse::Ok().json(GameIdPageOut { items, next_cursor: next_cursor(page.next) })
        }
    })
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
              (status = 304, description = "You have this version", headers(("ETag" = String, description = "Its version"))))
)]
#[get("/v1/games/{id}")]
pub(super) async fn get_game(
    store: web::Data<Store>,
    request: HttpRequest,
    asking: Asking,
    id: Id,
) -> Result<HttpResponse, Problem> {
    // Most who ask have it already.
    let known = request.headers().contains_key(header::IF_NONE_MATCH);
    if known
        && let Some(version) = store.version(id.0, &asking.0, Scope::Read).await?
        && none_match(&request, version)
    {
        return Ok(of_version(HttpResponse::NotModified(), version).finish());
    }
    let loaded = store.load_game(id.0, &asking.0, Scope::Read, None).await?;
    let version = loaded.game.version;
    if none_match(&request, version) {
        return Ok(of_version(HttpResponse::NotModified(), version).finish());
    }
    let game = GameOut::new(&loaded.game, loaded.caller.map(|player| player.id));
    Ok(of_version(HttpResponse::Ok(), version).json(game))
}

/// The headers of a game of that version, as somebody may see it.
fn of_version(mut response: HttpResponseBuilder, version: u32) -> HttpResponseBuilder {
    response
        .insert_header((header::ETAG, etag(version)))
        .insert_header((header::VARY, "Authorization"))
        .insert_header((header::CACHE_CONTROL, "no-cache"));
    response
}

/// The answer that shows a game to whoever loaded it.
pub(super) fn show(loaded: &Loaded) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::ETAG, etag(loaded.game.version)))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(GameOut::new(&loaded.game, loaded.caller.as_ref().map(|player| player.id)))
}
