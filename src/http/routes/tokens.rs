//! Tokens of an account: the one that was sent, all of them, making and revoking them.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, delete, get, post, web};
use uuid::Uuid;

use super::players::{entropy, key_of_a_token};
use crate::http::auth::Token;
use crate::http::dto::{IssuedOut, TokenIn, TokenListOut, TokenOut};
use crate::http::problem::Problem;
use crate::http::request::{Body, Id};
use crate::store::{Headers, NewToken, Scope, Scopes, Store, TokenName};

/// The longest time that one can say until a token expires: ten years, in seconds.
const LONGEST: u32 = 10 * 365 * 24 * 60 * 60;

/// Get your present token
///
/// What the token that you send may do, and until when.
#[utoipa::path(
    operation_id = "get_token", tag = "tokens", security(("token" = [])),
    responses((status = 200, description = "The token that you sent", body = TokenOut))
)]
#[get("/v1/me/token")]
pub(super) async fn get_token(store: web::Data<Store>, token: Token) -> Result<web::Json<TokenOut>, Problem> {
    Ok(web::Json(store.bearer(&token.0).await?.token.into()))
}

/// List your tokens
///
/// All that have not expired, newest first. The tokens themselves are not shown: nobody has them but you.
#[utoipa::path(
    operation_id = "list_tokens", tag = "tokens", security(("token" = ["manage"])),
    responses((status = 200, description = "Your tokens", body = TokenListOut))
)]
#[get("/v1/me/tokens")]
pub(super) async fn list_tokens(store: web::Data<Store>, token: Token) -> Result<web::Json<TokenListOut>, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    let tokens = store.list_tokens(player.id).await?;
    Ok(web::Json(TokenListOut { items: tokens.into_iter().map(Into::into).collect() }))
}

/// Create a token
///
/// Another token for your account, for a program say that shall do no more than it must. It is shown this once. It can be given
/// only scopes that the present token has, and expires no later than it. With an `Idempotency-Key` (here at least 20 characters:
/// a random UUID for instance) a lost answer can be asked for again.
#[utoipa::path(
    operation_id = "create_token", tag = "tokens", security(("token" = ["manage"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeat within 24 hours harmless")),
    request_body = TokenIn,
    responses((status = 201, description = "The token", body = IssuedOut))
)]
#[post("/v1/me/tokens")]
pub(super) async fn create_token(
    store: web::Data<Store>,
    token: Token,
    body: Body<TokenIn>,
) -> Result<HttpResponse, Problem> {
    let key = key_of_a_token(&body)?;
    let TokenIn { name, scopes, expires_in } = &body.value;
    let name = TokenName::parse(name)
        .ok_or_else(|| Problem::field("/name", "a token's name has 1 to 64 characters, none of them invisible"))?;
    if scopes.is_empty() {
        return Err(Problem::field("/scopes", "a token has at least one scope"));
    }
    if expires_in.is_some_and(|seconds| !(1..=LONGEST).contains(&seconds)) {
        return Err(Problem::field("/expires_in", format!("a token expires after 1 to {LONGEST} seconds")));
    }
    let new = NewToken { id: Uuid::now_v7(), name, scopes: Scopes(scopes.clone()), expires_in: *expires_in };
    let issued = store.create_token(&token.0, &new, entropy()?, key).await?;
    let repeated = issued.repeated;
    let answer = super::json(StatusCode::CREATED, Headers::default(), &IssuedOut::from(issued));
    Ok(super::send(answer, repeated))
}

/// Revoke a token
///
/// It is refused from then on. The present one can be revoked too; whoever has none left has no way back into the account.
#[utoipa::path(
    operation_id = "delete_token", tag = "tokens", security(("token" = ["manage"])),
    params(("id" = Uuid, Path, description = "The token's id")),
    responses((status = 204, description = "It is revoked"))
)]
#[delete("/v1/me/tokens/{id}")]
pub(super) async fn delete_token(store: web::Data<Store>, token: Token, id: Id) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Manage).await?;
    store.delete_token(player.id, id.0).await?;
    Ok(HttpResponse::NoContent().insert_header((header::CACHE_CONTROL, "no-store")).finish())
}
