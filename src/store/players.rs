//! Accounts.

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::violated;
use super::idempotency::{Answer, KEY_CONSTRAINT, find, forget_expired, keep};
use super::tokens::make_token;
use super::{IdempotencyKey, Repeat, Store, StoreError, TokenHash};
use crate::game::{Player, PlayerKind, PlayerName};

/// An account with what its page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub player: Player,
    pub created_at: OffsetDateTime,
}

/// A new account and its token, which is kept nowhere else.
#[derive(Clone, Debug)]
pub struct Registered {
    pub profile: Profile,
    pub token: String,
    /// Whether an earlier request under the same key made it.
    pub repeated: bool,
}

/// Whose keys those of registrations are: nobody's.
const NOBODY: Uuid = Uuid::nil();

impl Store {
    /// Makes an account with a first token. `salt` are 32 fresh random bytes. `key` is the client's key itself and what
    /// makes it one of this request.
    ///
    /// # Errors
    /// The name is taken; the key was used for another request; the database fails.
    pub async fn register(
        &self,
        id: Uuid,
        name: &PlayerName,
        kind: PlayerKind,
        salt: [u8; 32],
        key: Option<(&str, &IdempotencyKey)>,
    ) -> Result<Registered, StoreError> {
        let token = make_token(&salt, key.map_or("", |(text, _)| text));
        // Twice at most: of two equal requests at once the second fails on the key and then finds the first.
        for _ in 0..2 {
            if let Some(registered) = self.registered_before(key).await? {
                return Ok(registered);
            }
            match self.insert_player(id, name, kind, &token, salt, key.map(|(_, key)| key)).await {
                Ok(profile) => return Ok(Registered { profile, token, repeated: false }),
                Err(error) => match (violated(&error), key) {
                    (Some("players_name_key"), _) => return Err(StoreError::NameTaken),
                    (Some(KEY_CONSTRAINT), Some((_, key))) => forget_expired(&self.pool, NOBODY, key).await?,
                    _ => return Err(error.into()),
                },
            }
        }
        Err(StoreError::Contended)
    }

    async fn registered_before(&self, key: Option<(&str, &IdempotencyKey)>) -> Result<Option<Registered>, StoreError> {
        let Some((text, key)) = key else { return Ok(None) };
        let Some(Repeat::Answer(answer)) = find(&self.pool, NOBODY, key).await? else { return Ok(None) };
        let (salt, id) = answer
            .body
            .split_first_chunk()
            .ok_or_else(|| StoreError::Corrupt("a registration without its salt".into()))?;
        let token = make_token(salt, text);
        let id = match Uuid::from_slice(id) {
            Ok(id) => id,
            // The release before kept the salt alone, and its tokens could not be revoked.
            Err(_) => self.bearer(&TokenHash::of(&token)).await?.player.id,
        };
        let profile = self.profile(id).await?.ok_or(StoreError::NotFound)?;
        Ok(Some(Registered { profile, token, repeated: true }))
    }

    async fn insert_player(
        &self,
        id: Uuid,
        name: &PlayerName,
        kind: PlayerKind,
        token: &str,
        salt: [u8; 32],
        key: Option<&IdempotencyKey>,
    ) -> Result<Profile, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        if let Some(key) = key {
            // The id too, since the token may have been revoked when the same request comes again.
            let body = [salt.as_slice(), id.as_bytes()].concat();
            let answer = Answer { status: 201, headers: Default::default(), body };
            keep(&mut transaction, NOBODY, key, &answer).await?;
        }
        let created_at = sqlx::query_scalar!(
            "insert into players (id, name, name_key, kind) values ($1, $2, $3, $4) returning created_at",
            id,
            name.as_str(),
            name.key(),
            kind.as_str(),
        )
        .fetch_one(&mut *transaction)
        .await?;
        sqlx::query!("insert into tokens (hash, player_id) values ($1, $2)", &TokenHash::of(token).0[..], id,)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(Profile { player: Player { id, name: name.as_str().to_owned(), kind }, created_at })
    }

    /// An account; none if there is no such.
    ///
    /// # Errors
    /// The database fails.
    pub async fn profile(&self, id: Uuid) -> Result<Option<Profile>, StoreError> {
        let row = sqlx::query!("select id, name, kind, created_at from players where id = $1", id)
            .fetch_optional(&self.pool)
            .await?;
        row.map(|row| Ok(Profile { player: player(row.id, row.name, &row.kind)?, created_at: row.created_at }))
            .transpose()
    }

    /// The account with a name, or one that looks like it; none if there is no such.
    ///
    /// # Errors
    /// The database fails.
    pub async fn find_player(&self, name: &PlayerName) -> Result<Option<Profile>, StoreError> {
        let row = sqlx::query!("select id, name, kind, created_at from players where name_key = $1", name.key())
            .fetch_optional(&self.pool)
            .await?;
        row.map(|row| Ok(Profile { player: player(row.id, row.name, &row.kind)?, created_at: row.created_at }))
            .transpose()
    }

    /// Gives an account another name.
    ///
    /// # Errors
    /// The name is taken by another account; the account has been deleted; the database fails.
    pub async fn rename(&self, id: Uuid, name: &PlayerName) -> Result<Profile, StoreError> {
        let row = sqlx::query!(
            "update players set name = $2, name_key = $3 where id = $1 and deleted_at is null returning kind, created_at",
            id,
            name.as_str(),
            name.key(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| match violated(&error) {
            Some("players_name_key") => StoreError::NameTaken,
            _ => error.into(),
        })?
        .ok_or(StoreError::Unauthenticated)?;
        Ok(Profile { player: player(id, name.as_str().to_owned(), &row.kind)?, created_at: row.created_at })
    }
}

/// A player as rows tell of them.
pub(super) fn player(id: Uuid, name: String, kind: &str) -> Result<Player, StoreError> {
    let kind = PlayerKind::parse(kind).ok_or_else(|| StoreError::Corrupt(format!("a player of kind {kind}")))?;
    Ok(Player { id, name, kind })
}
