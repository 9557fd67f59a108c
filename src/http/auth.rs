//! Who asks, and with what: extractors for the bearer token and the invite code. What it is worth is found out by the statement that loads what is asked for.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::{FromRequest, HttpMessage, HttpRequest};

use super::problem::{Code, Problem};
use crate::store::{Access, TokenHash};

/// The token of a request that may come without one.
pub struct MaybeToken(pub Option<TokenHash>);

/// The token of a request that needs one.
pub struct Token(pub TokenHash);

/// With what somebody asks for a game: a token, if they have one, and the code of a private game (`?invite=`), if they have
/// that.
pub struct Asking(pub Access);

impl FromRequest for Asking {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let invite = || {
            let pairs = serde_urlencoded::from_str::<Vec<(String, String)>>(request.query_string()).ok()?;
            pairs.into_iter().find(|(name, _)| name == "invite").map(|(_, code)| code)
        };
        ready(token(request).map(|token| Asking(Access { token, invite: invite() })))
    }
}

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

/// The token that a request came with.
///
/// # Errors
/// It has the header, but not in the form of one with a bearer token.
pub fn token(request: &HttpRequest) -> Result<Option<TokenHash>, Problem> {
    // The budgets look first, and then what is asked: it is hashed but once.
    if let Some(token) = request.extensions().get::<TokenHash>() {
        return Ok(Some(*token));
    }
    let Some(value) = request.headers().get(AUTHORIZATION) else { return Ok(None) };
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    match token {
        Some(token) if !token.is_empty() => {
            let token = TokenHash::of(token);
            request.extensions_mut().insert(token);
            Ok(Some(token))
        }
        _ => Err(Problem::new(Code::Unauthenticated, "send Authorization: Bearer <token>")),
    }
}
