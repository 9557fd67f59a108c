//! Players: registering, one's own account, others.

use actix_web::http::header;
use actix_web::{HttpResponse, delete, get, patch, post, web};
use rand::TryRng;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::game::PlayerName;
use crate::http::auth::Token;
use crate::http::dto::{PlayerIn, ProfileIn, ProfileListOut, ProfileOut, RegistrationOut};
use crate::http::problem::{Code, Problem};
use crate::http::request::{Body, Id, Params};
use crate::store::{Headers, IdempotencyKey, Scope, Store};

/// Random bytes from the operating system.
pub(super) fn entropy() -> Result<[u8; 32], Problem> {
    let mut bytes = [0; 32];
    rand::rngs::SysRng.try_fill_bytes(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the operating system gives no entropy");
        Problem::new(Code::Unavailable, "no entropy is available")
    })?;
    Ok(bytes)
}

/// How many characters the key of a request that is answered with a token has at least.
pub const TOKEN_KEY_LENGTH: usize = 20;

/// The key of a request that is answered with a token, as text and for the store. The token follows from it, so it must not
/// be easy to guess.
///
/// # Errors
/// The key is too short.
pub(super) fn key_of_a_token<T>(body: &Body<T>) -> Result<Option<(&str, &IdempotencyKey)>, Problem> {
    let key = body.key.as_ref().map(|(text, key)| (text.as_str(), key));
    if key.is_some_and(|(text, _)| text.len() < TOKEN_KEY_LENGTH) {
        return Err(Problem::parameter(
            "Idempotency-Key",
            format!("a key for a new token has at least {TOKEN_KEY_LENGTH} characters"),
        ));
    }
    Ok(key)
}

/// Register a player
///
/// Makes an account and its token, which is shown this once. With an `Idempotency-Key` (here at least 20 characters, since
/// whoever knows it can have the token again: a random UUID for instance) a lost answer can be asked for again.
#[utoipa::path(
    operation_id = "register_player", tag = "players",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = PlayerIn,
    responses((status = 201, description = "The account and its token", body = RegistrationOut,
               headers(("Location" = String, description = "The account"))))
)]
#[post("/v1/players")]
pub(super) async fn register_player(store: web::Data<Store>, body: Body<PlayerIn>) -> Result<HttpResponse, Problem> {
    let name = PlayerName::parse(&body.value.name).map_err(|error| Problem::text("/name", error))?;
    let key = key_of_a_token(&body)?;
    let registered = store.register(Uuid::now_v7(), &name, body.value.kind, entropy()?, key).await?;
    let location = format!("/v1/players/{}", registered.profile.player.id);
    let headers = Headers { location: Some(location), etag: None };
    let answer = RegistrationOut { player: registered.profile.into(), token: registered.token };
    Ok(super::send(super::json(actix_web::http::StatusCode::CREATED, headers, &answer), registered.repeated))
}

/// Get your account
///
/// The account to which the token belongs.
#[utoipa::path(
    operation_id = "get_me", tag = "players", security(("token" = [])),
    responses((status = 200, description = "Your account", body = ProfileOut))
)]
#[get("/v1/me")]
pub(super) async fn get_me(store: web::Data<Store>, token: Token) -> Result<web::Json<ProfileOut>, Problem> {
    let player = store.bearer(&token.0).await?.player;
    let profile = store.profile(player.id).await?.ok_or_else(Problem::not_found)?;
    Ok(web::Json(profile.into()))
}

/// Change your account
///
/// Gives your account another name; it is shown everywhere from then on, in games of the past too.
#[utoipa::path(
    operation_id = "update_me", tag = "players", security(("token" = ["manage"])),
    request_body = ProfileIn,
    responses((status = 200, description = "Your account", body = ProfileOut))
)]
#[patch("/v1/me")]
pub(super) async fn update_me(
    store: web::Data<Store>,
    token: Token,
    body: Body<ProfileIn>,
) -> Result<web::Json<ProfileOut>, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    let profile = match &body.value.name {
        Some(name) => {
            let name = PlayerName::parse(name).map_err(|error| Problem::text("/name", error))?;
            store.rename(player.id, &name).await?
        }
        None => store.profile(player.id).await?.ok_or_else(Problem::not_found)?,
    };
    Ok(web::Json(profile.into()))
}

/// Delete your account
///
/// For good. Your name becomes one that tells nobody's, everywhere and at once, and is free for others; all your tokens and
/// webhooks are gone. You resign your running games, leave the open ones and decline invitations. What others have a part in stays,
/// under the new name: games, their moves, ratings.
#[utoipa::path(
    operation_id = "delete_me", tag = "players", security(("token" = ["manage"])),
    responses((status = 204, description = "It is deleted"))
)]
#[delete("/v1/me")]
pub(super) async fn delete_me(store: web::Data<Store>, token: Token) -> Result<HttpResponse, Problem> {
    let id = store.delete_account(&token.0).await?;
    // It is deleted whatever becomes of this; a server comes back to what is left undone.
    if let Err(error) = store.settle_account(id).await {
        tracing::warn!(player = %id, %error, "a deleted account could not be settled at once");
    }
    Ok(HttpResponse::NoContent().insert_header((header::CACHE_CONTROL, "no-store")).finish())
}

/// Which player.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FindParams {
    /// The name; case, width and the like make no difference.
    #[param(min_length = 1, example = "Ada")]
    name: String,
}

/// Find a player by name
///
/// Whoever has this name, to invite them for instance: one account, or none.
#[utoipa::path(
    operation_id = "find_players", tag = "players",
    params(FindParams),
    responses((status = 200, description = "The account, if there is one", body = ProfileListOut))
)]
#[get("/v1/players")]
pub(super) async fn find_players(
    store: web::Data<Store>,
    params: Params<FindParams>,
) -> Result<web::Json<ProfileListOut>, Problem> {
    let name = PlayerName::parse(&params.0.name).map_err(|error| Problem::parameter("name", error.to_string()))?;
    let found = store.find_player(&name).await?;
    Ok(web::Json(ProfileListOut { items: found.into_iter().map(ProfileOut::from).collect() }))
}

/// Get a player
///
/// What everybody may know of an account.
#[utoipa::path(
    operation_id = "get_player", tag = "players",
    params(("id" = Uuid, Path, description = "The player's id")),
    responses((status = 200, description = "The account", body = ProfileOut))
)]
#[get("/v1/players/{id}")]
pub(super) async fn get_player(store: web::Data<Store>, id: Id) -> Result<web::Json<ProfileOut>, Problem> {
    let profile = store.profile(id.0).await?.ok_or_else(Problem::not_found)?;
    Ok(web::Json(profile.into()))
}
