//! Who asks: extractors for the bearer token. What it is worth is found out by the statement that loads what is asked for.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::{FromRequest, HttpRequest};

use super::problem::{Code, Problem};
use crate::store::TokenHash;

/// The token of a request that may come without one.
pub struct MaybeToken(pub Option<TokenHash>);

/// The token of a request that needs one.
pub struct Token(pub TokenHash);

impl FromRequest for MaybeToken {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(token(request).map(MaybeToken))
    }
}

impl FromRequest for Token {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let missing = || Problem::new(Code::Unauthenticated, "send Authorization: Bearer <token>");
        ready(token(request).and_then(|token| token.map(Token).ok_or_else(missing)))
    }
}

fn token(request: &HttpRequest) -> Result<Option<TokenHash>, Problem> {
    let Some(value) = request.headers().get(AUTHORIZATION) else { return Ok(None) };
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    match token {
        Some(token) if !token.is_empty() => Ok(Some(TokenHash::of(token))),
        _ => Err(Problem::new(Code::Unauthenticated, "send Authorization: Bearer <token>")),
    }
}
