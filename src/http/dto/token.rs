//! Tokens on the wire.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::{Issued, Scope, Token};

/// A new token.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewToken)]
pub struct TokenIn {
    /// What you know it by: 1–64 characters after trimming (normalised to NFC), none of them invisible.
    #[schema(min_length = 1, example = "my bot on the old laptop")]
    pub name: String,
    /// What it may be used for: at least one, and none that the present token lacks. Twice is once.
    #[schema(value_type = Vec<Scope>, min_items = 1)]
    pub scopes: BTreeSet<Scope>,
    /// After how many seconds it expires, at most ten years; left out, it never does. No token outlives the one that made it.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, minimum = 1, maximum = 315_360_000, example = 2_592_000)]
    pub expires_in: Option<u32>,
}

/// A token, without the text that is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenOut {
    pub id: Uuid,
    /// `registration` for the one that registering answered with.
    #[schema(example = "my bot on the old laptop")]
    pub name: String,
    /// What it may be used for; `play` includes `read`.
    pub scopes: BTreeSet<Scope>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// From then on it is refused; null: never.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub expires_at: Option<OffsetDateTime>,
}

impl From<Token> for TokenOut {
    fn from(token: Token) -> Self {
        let Token { id, name, scopes, created_at, expires_at } = token;
        Self { id, name, scopes: scopes.0, created_at, expires_at }
    }
}

/// All tokens of an account that have not expired, newest first; at most 50.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TokenList)]
pub struct TokenListOut {
    pub items: Vec<TokenOut>,
}

/// A new token with the text that is sent.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = IssuedToken)]
pub struct IssuedOut {
    pub id: Uuid,
    #[schema(example = "my bot on the old laptop")]
    pub name: String,
    /// As asked for.
    pub scopes: BTreeSet<Scope>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// From then on it is refused; null: never.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub expires_at: Option<OffsetDateTime>,
    /// Send it as `Authorization: Bearer <token>`. It is shown this once; the server keeps only a hash of it.
    #[schema(example = "tavola_0e9d3d5f9b1c2a3e4d5f60718293a4b5c6d7e8f90a1b2c3d4e5f0c6f4b7a1f4f")]
    pub token: String,
}

impl From<Issued> for IssuedOut {
    fn from(issued: Issued) -> Self {
        let Token { id, name, scopes, created_at, expires_at } = issued.token;
        Self { id, name, scopes: scopes.0, created_at, expires_at, token: issued.secret }
    }
}
