//! Tokens: whose they are, what they may do, making and revoking them. Of the token itself only a hash is kept.

use std::collections::BTreeSet;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::violated;
use super::idempotency::{Answer, KEY_CONSTRAINT, find, forget_expired, keep};
use super::players::player;
use super::{IdempotencyKey, Repeat, Store, StoreError};
use crate::game::{Player, is_visible};

/// SHA-256 of a token: all that the server keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The name of a token: trimmed, NFC, 1–64 visible characters. It need not be unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenName(String);

impl TokenName {
    const LONGEST: usize = 64;

    /// Reads a name; none if it is empty or too long, or has characters that do not show.
    pub fn parse(text: &str) -> Option<Self> {
        let text: String = text.trim().nfc().collect();
        let fits = (1..=Self::LONGEST).contains(&text.chars().count()) && text.chars().all(is_visible);
        fits.then_some(Self(text))
    }

    /// As it is shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a token's player may know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: Uuid,
    pub name: String,
    pub scopes: Scopes,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// None: never.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
}

/// A token as it was presented, and whose it is.
#[derive(Clone, Debug)]
pub struct Bearer {
    pub player: Player,
    pub token: Token,
}

/// A token that is to be made.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub id: Uuid,
    pub name: TokenName,
    pub scopes: Scopes,
    /// In seconds from now; none: never.
    pub expires_in: Option<u32>,
}

/// A new token with the text that clients send, which is kept nowhere.
#[derive(Clone, Debug)]
pub struct Issued {
    pub token: Token,
    pub secret: String,
    /// Whether an earlier request under the same key made it.
    pub repeated: bool,
}

/// How many tokens a player has at most, those that have expired not counted.
pub const MOST_TOKENS: i64 = 50;

/// A row of `tokens`.
struct Row {
    id: Uuid,
    name: String,
    scopes: Vec<String>,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
}

impl Row {
    fn into_token(self) -> Result<Token, StoreError> {
        let Self { id, name, scopes, created_at, expires_at } = self;
        Ok(Token { id, name, scopes: Scopes::of_row(&scopes)?, created_at, expires_at })
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
        let bearer = self.bearer(token).await?;
        bearer.token.scopes.require(scope)?;
        Ok(bearer.player)
    }

    /// Whose token it is, and what it may do.
    ///
    /// # Errors
    /// The token is nobody's or has expired; the database fails.
    pub async fn bearer(&self, token: &TokenHash) -> Result<Bearer, StoreError> {
        let row = sqlx::query!(
            r#"select p.id as player_id, p.name as player_name, p.kind, t.id, t.name, t.scopes, t.created_at, t.expires_at
               from tokens t join players p on p.id = t.player_id
               where t.hash = $1 and (t.expires_at is null or t.expires_at > now())"#,
            &token.0[..],
        )
        .fetch_optional(&self.pool)
        .await?
        .ok_or(StoreError::Unauthenticated)?;
        let token = Row {
            id: row.id,
            name: row.name,
            scopes: row.scopes,
            created_at: row.created_at,
            expires_at: row.expires_at,
        };
        Ok(Bearer { player: player(row.player_id, row.player_name, &row.kind)?, token: token.into_token()? })
    }

    /// A player's tokens that have not expired, newest first; at most [`MOST_TOKENS`].
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_tokens(&self, player: Uuid) -> Result<Vec<Token>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "select id, name, scopes, created_at, expires_at from tokens
             where player_id = $1 and (expires_at is null or expires_at > now())
             order by created_at desc, id desc",
            player,
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(Row::into_token).collect()
    }

    /// Makes another token for whoever has the token `giver`, which must have the scope `manage` and all that it gives. The
    /// new one expires no later than it. `salt` are 32 fresh random bytes. `key` is the client's key itself and what makes
    /// it one of this request.
    ///
    /// # Errors
    /// The giver is nobody's or has expired, or lacks a scope; the player has [`MOST_TOKENS`] already; the key was used for
    /// another request; the database fails.
    pub async fn create_token(
        &self,
        giver: &TokenHash,
        new: &NewToken,
        salt: [u8; 32],
        key: Option<(&str, &IdempotencyKey)>,
    ) -> Result<Issued, StoreError> {
        let bearer = self.bearer(giver).await?;
        let (player, own) = (bearer.player.id, &bearer.token.scopes);
        // Asked before anything is given again, so that a repeat by another token gains it nothing.
        own.require(Scope::Manage)?;
        new.scopes.0.iter().try_for_each(|scope| own.require(*scope))?;
        let secret = make_token(&salt, key.map_or("", |(text, _)| text));
        // Twice at most: of two equal requests at once the second fails on the key and then finds the first.
        for _ in 0..2 {
            if let Some(issued) = self.issued_before(player, key).await? {
                return Ok(issued);
            }
            let inserted = self.insert_token(giver, &bearer, new, &secret, salt, key.map(|(_, key)| key)).await;
            match (inserted, key) {
                (Ok(token), _) => return Ok(Issued { token, secret, repeated: false }),
                (Err(StoreError::Database(error)), Some((_, key))) if violated(&error) == Some(KEY_CONSTRAINT) => {
                    forget_expired(&self.pool, player, key).await?;
                }
                (Err(error), _) => return Err(error),
            }
        }
        Err(StoreError::Contended)
    }

    async fn issued_before(
        &self,
        player: Uuid,
        key: Option<(&str, &IdempotencyKey)>,
    ) -> Result<Option<Issued>, StoreError> {
        let Some((text, key)) = key else { return Ok(None) };
        let Some(Repeat::Answer(answer)) = find(&self.pool, player, key).await? else { return Ok(None) };
        let unreadable = || StoreError::Corrupt("a kept token that cannot be read".into());
        let (salt, token) = answer.body.split_first_chunk().ok_or_else(unreadable)?;
        let token = serde_json::from_slice(token).map_err(|_| unreadable())?;
        Ok(Some(Issued { token, secret: make_token(salt, text), repeated: true }))
    }

    /// Writes the token and, under the key, all that the answer follows from but the client's key itself.
    async fn insert_token(
        &self,
        giver: &TokenHash,
        bearer: &Bearer,
        new: &NewToken,
        secret: &str,
        salt: [u8; 32],
        key: Option<&IdempotencyKey>,
    ) -> Result<Token, StoreError> {
        let player = bearer.player.id;
        let mut transaction = self.pool.begin().await?;
        let now = sqlx::query_scalar!(r#"select now() as "now!""#).fetch_one(&mut *transaction).await?;
        let wanted = new.expires_in.map(|seconds| now + Duration::seconds(seconds.into()));
        let token = Token {
            id: new.id,
            name: new.name.as_str().to_owned(),
            scopes: new.scopes.clone(),
            created_at: now,
            expires_at: wanted.into_iter().chain(bearer.token.expires_at).min(),
        };
        if let Some(key) = key {
            // First, so that of two equal requests the second waits here, and not for its turn to be one token too many.
            let body = [salt.to_vec(), serde_json::to_vec(&token).unwrap_or_default()].concat();
            let answer = Answer { status: 201, headers: Default::default(), body };
            keep(&mut transaction, player, key, &answer).await?;
        }
        // One after the other, or each would count without the others.
        sqlx::query!("select id from players where id = $1 for no key update", player)
            .fetch_one(&mut *transaction)
            .await?;
        let count = sqlx::query_scalar!(
            r#"select count(*) as "count!" from tokens
               where player_id = $1 and (expires_at is null or expires_at > now())"#,
            player,
        )
        .fetch_one(&mut *transaction)
        .await?;
        if count >= MOST_TOKENS {
            return Err(StoreError::TooManyTokens);
        }
        let words: Vec<&str> = token.scopes.0.iter().map(|scope| scope.as_str()).collect();
        // From the giver's row: if it has been revoked meanwhile it gives nothing.
        let inserted = sqlx::query!(
            "insert into tokens (hash, player_id, id, name, scopes, created_at, expires_at)
             select $1, player_id, $2, $3, $4, $5, $6 from tokens where hash = $7",
            &TokenHash::of(secret).0[..],
            token.id,
            token.name,
            &words as _,
            token.created_at,
            token.expires_at,
            &giver.0[..],
        )
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() == 0 {
            return Err(StoreError::Unauthenticated);
        }
        transaction.commit().await?;
        Ok(token)
    }

    /// Deletes a token of a player's, so that it is valid no more.
    ///
    /// # Errors
    /// The player has no such token; the database fails.
    pub async fn delete_token(&self, player: Uuid, id: Uuid) -> Result<(), StoreError> {
        let done =
            sqlx::query!("delete from tokens where player_id = $1 and id = $2", player, id).execute(&self.pool).await?;
        if done.rows_affected() == 0 { Err(StoreError::NotFound) } else { Ok(()) }
    }

    /// Deletes up to `limit` tokens that expired more than a day ago; answers how many.
    ///
    /// # Errors
    /// The database fails.
    pub async fn prune_tokens(&self, limit: u32) -> Result<u64, StoreError> {
        let done = sqlx::query!(
            "delete from tokens
             where hash in (
                 select hash from tokens
                 where expires_at <= now() - interval '24 hours'
                 order by expires_at limit $1 for update skip locked)",
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected())
    }
}
