//! Tokens: whose they are, and what they may do.

use std::collections::BTreeSet;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::players::player;
use super::{Store, StoreError};
use crate::game::Player;

/// SHA-256 of a token: all that the server keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// Of a token as clients send it.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Seeing what its player may see.
    Read,
    /// Creating games, taking seats, moving; includes `read`.
    Play,
    /// The account itself: its name, its tokens, its webhooks. Includes neither of the others.
    Manage,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Play, Scope::Manage];

    /// The word for it, as stored and as clients see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Play => "play",
            Scope::Manage => "manage",
        }
    }

    /// The scope of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a token may be used for, all in all; never empty for one that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(pub BTreeSet<Scope>);

impl Scopes {
    /// Whether something that needs this scope may be done.
    pub fn allow(&self, scope: Scope) -> bool {
        // Whoever may move may see the hand to move from.
        self.0.contains(&scope) || scope == Scope::Read && self.0.contains(&Scope::Play)
    }

    /// Refuses what these scopes do not allow.
    ///
    /// # Errors
    /// The scope is missing.
    pub fn require(&self, scope: Scope) -> Result<(), StoreError> {
        if self.allow(scope) { Ok(()) } else { Err(StoreError::MissingScope(scope)) }
    }

    /// As a row has them.
    pub(super) fn of_row(words: &[String]) -> Result<Self, StoreError> {
        let scope =
            |word: &String| Scope::parse(word).ok_or_else(|| StoreError::Corrupt(format!("a token of scope {word}")));
        words.iter().map(scope).collect::<Result<_, _>>().map(Self)
    }
}

/// A token that follows from random bytes and, if there is one, the client's key: with the same key the same token can be
/// given again although neither it nor the key is stored.
pub(super) fn make_token(salt: &[u8; 32], key: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(salt).expect("HMAC takes keys of any length");
    mac.update(key.as_bytes());
    format!("tavola_{}", hex::encode(mac.finalize().into_bytes()))
}

impl Store {
    /// Whose token it is, if it has this scope.
    ///
    /// # Errors
    /// The token is nobody's or has expired, or lacks the scope; the database fails.
    pub async fn authenticate(&self, token: &TokenHash, scope: Scope) -> Result<Player, StoreError> {
        let (player, scopes) = self.bearer(token).await?;
        scopes.require(scope)?;
        Ok(player)
    }

    /// Whose token it is, and what it may do.
    ///
    /// # Errors
    /// The token is nobody's or has expired; the database fails.
    pub async fn bearer(&self, token: &TokenHash) -> Result<(Player, Scopes), StoreError> {
        let row = sqlx::query!(
            "select p.id, p.name, p.kind, t.scopes from tokens t join players p on p.id = t.player_id
             where t.hash = $1 and (t.expires_at is null or t.expires_at > now())",
            &token.0[..],
        )
        .fetch_optional(&self.pool)
        .await?
        .ok_or(StoreError::Unauthenticated)?;
        Ok((player(row.id, row.name, &row.kind)?, Scopes::of_row(&row.scopes)?))
    }
}
