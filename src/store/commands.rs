//! Commands: creating a game and changing it, each in one atomic step that is guarded by the version.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::violated;
use super::games::{Access, Loaded, load_game};
use super::idempotency::{self, Answer, KEY_CONSTRAINT, Repeat};
use super::writing::{insert_game, write_change, write_entry, write_happenings, write_position};
use super::{IdempotencyKey, Scope, Store, StoreError};
use crate::game::{Change, Command, Entry, Game, GameError, NewGame, Player};

/// How often a command is judged anew when other changes of the game come first.
pub(super) const ATTEMPTS: u32 = 64;

/// What became of a command.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one lives at a time: a box would only cost")]
pub enum Updated {
    /// It was carried out; the game is as it is now.
    Done { caller: Player, game: Game, entry: Option<Entry>, answer: Option<Answer> },
    /// It had been carried out before, under the same key.
    Repeated { caller: Player, repeat: Repeat },
}

/// The answer to whoever created a game, and whether it is that to an earlier request under the same key.
#[derive(Clone, Debug)]
pub struct Created {
    pub answer: Answer,
    pub repeated: bool,
}

/// What became of the wish for a rematch.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one lives at a time: a box would only cost")]
pub enum Rematch {
    /// It was created, or had been under the same key.
    Created(Created),
    /// Another player has created it: this is its id.
    Exists(Uuid),
}

impl Store {
    /// Keeps a new game. `answer` makes the answer to whoever created it, which a key keeps.
    ///
    /// # Errors
    /// The key was used for another request; the database fails.
    pub async fn create_game(
        &self,
        make: impl Fn(OffsetDateTime) -> Result<(Game, Change), GameError>,
        creator: &Player,
        key: Option<&IdempotencyKey>,
        answer: impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Created, StoreError> {
        for _ in 0..2 {
            if let Some(key) = key
                && let Some(Repeat::Answer(answer)) = idempotency::find(&self.pool, creator.id, key).await?
            {
                return Ok(Created { answer, repeated: true });
            }
            match self.try_create_game(&make, creator, key, &answer).await {
                Err(StoreError::Database(error)) if violated(&error) == Some(KEY_CONSTRAINT) => {
                    if let Some(key) = key {
                        idempotency::forget_expired(&self.pool, creator.id, key).await?;
                    }
                }
                done => return done.map(|answer| Created { answer, repeated: false }),
            }
        }
        Err(StoreError::Contended)
    }

    async fn try_create_game(
        &self,
        make: &impl Fn(OffsetDateTime) -> Result<(Game, Change), GameError>,
        creator: &Player,
        key: Option<&IdempotencyKey>,
        answer: &impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Answer, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let now = sqlx::query_scalar!(r#"select now() as "now!""#).fetch_one(&mut *transaction).await?;
        let (game, change) = make(now)?;
        insert_game(&mut transaction, &game, &change).await?;
        let answer = answer(&game, creator);
        if let Some(key) = key {
            idempotency::keep(&mut transaction, creator.id, key, &answer).await?;
        }
        transaction.commit().await?;
        self.announce(&game, &change);
        Ok(answer)
    }

    /// Creates the game that follows another, once: whoever comes second is told of it. `new` makes it, given the time.
    ///
    /// # Errors
    /// As for [`Store::update_game`].
    pub async fn create_rematch(
        &self,
        id: Uuid,
        access: &Access,
        key: Option<&IdempotencyKey>,
        new: impl Fn(OffsetDateTime) -> (NewGame, OffsetDateTime),
        answer: impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Rematch, StoreError> {
        for _ in 0..ATTEMPTS {
            let Loaded { caller, mut game, repeat, now, .. } = self.load_game(id, access, Scope::Play, key).await?;
            let caller = caller.ok_or(StoreError::Unauthenticated)?;
            match repeat {
                Some(Repeat::Answer(answer)) => return Ok(Rematch::Created(Created { answer, repeated: true })),
                Some(Repeat::Move { .. }) => return Err(StoreError::KeyReused),
                None => {}
            }
            if game.seat_of(caller.id).is_none() {
                return Err(GameError::NotSeated.into());
            }
            if let Some(next) = game.rematch {
                return Ok(Rematch::Exists(next));
            }
            let version = game.version;
            let (new, expires_at) = new(now);
            let (next, of_next, of_old) = game.create_rematch(new, &caller, expires_at)?;
            let mut transaction = self.pool.begin().await?;
            if !write_position(&mut transaction, &game, version, &of_old).await? {
                continue;
            }
            sqlx::query!("update games set rematch_id = $2 where id = $1", game.id, game.rematch)
                .execute(&mut *transaction)
                .await?;
            sqlx::query!("update seats set over_at = $2 where game_id = $1", game.id, now)
                .execute(&mut *transaction)
                .await?;
            write_happenings(&mut transaction, &game, &of_old).await?;
            insert_game(&mut transaction, &next, &of_next).await?;
            let answer = answer(&next, &caller);
            if let Some(key) = key
                && let Err(error) = idempotency::keep(&mut transaction, caller.id, key, &answer).await
            {
                // What follows asks for a connection of its own.
                transaction.rollback().await?;
                self.after_failure(error, Some((caller.id, key))).await?;
                continue;
            }
            transaction.commit().await?;
            self.announce(&game, &of_old);
            self.announce(&next, &of_next);
            return Ok(Rematch::Created(Created { answer, repeated: false }));
        }
        Err(StoreError::Contended)
    }

    /// Has a game handle a command and writes what changed, all or nothing. A command that loses the race against another
    /// change is judged anew on the new state; with `expected` it is refused unless the game has that version.
    ///
    /// # Errors
    /// An unknown token or none, one without the scope `play`, an unknown game, another version, the game's refusal, a key that was used for another
    /// request; the database fails.
    pub async fn update_game(
        &self,
        id: Uuid,
        access: &Access,
        expected: Option<u32>,
        key: Option<&IdempotencyKey>,
        command: &Command<'_>,
        answer: impl Fn(&Game, &Player) -> Answer,
    ) -> Result<Updated, StoreError> {
        // What is seldom needed waits behind a pointer: with all of it in place every command would take four times the room.
        for _ in 0..ATTEMPTS {
            // One for both statements: each command waits for its turn but once.
            let mut connection = self.games().get().await?;
            let loaded = load_game(&mut connection, id, access, Scope::Play, key).await;
            let Loaded { caller, mut game, repeat, now, clock_time } = connection.settled(loaded)?;
            let caller = caller.ok_or(StoreError::Unauthenticated)?;
            if let Some(repeat) = repeat {
                return Ok(Updated::Repeated { caller, repeat });
            }
            // A deadline that has passed counts, also if no sweeper has come by yet.
            if game.player_to_move().is_some() && game.due_at.is_some_and(|due| due <= clock_time) {
                let loaded = Loaded { caller: None, game, repeat: None, now, clock_time };
                let attended = Box::pin(self.attend(&mut connection, loaded, 0)).await;
                if let Some((game, change)) = connection.settled(attended)? {
                    self.announce(&game, &change);
                }
                continue;
            }
            let version = game.version;
            if expected.is_some_and(|expected| expected != version) {
                return Err(StoreError::Stale { current: version });
            }
            let change = game.handle(command.clone(), &caller, now)?;
            if change.is_empty() {
                return Ok(Updated::Done { caller, game, entry: None, answer: None });
            }
            let key = key.map(|key| (caller.id, key));
            let written = match &change.entry {
                Some(entry) => {
                    let done = write_entry(&mut connection, &game, version, entry, &change, key).await;
                    done.map(|done| done.then_some(None))
                }
                None => {
                    let answer = || Some(answer(&game, &caller));
                    Box::pin(write_change(&mut connection, &game, version, &change, key, answer)).await
                }
            };
            if written.is_ok() {
                connection.settle();
            }
            drop(connection);
            match written {
                Ok(Some(answer)) => {
                    self.announce(&game, &change);
                    return Ok(Updated::Done { caller, game, entry: change.entry, answer });
                }
                // Another change came first.
                Ok(None) => {}
                Err(error) => Box::pin(self.after_failure(error, key)).await?,
            }
        }
        Err(StoreError::Contended)
    }

    /// What to do about a statement that failed: a command is judged anew if its key was just used, or long ago.
    async fn after_failure(&self, error: sqlx::Error, key: Option<(Uuid, &IdempotencyKey)>) -> Result<(), StoreError> {
        match key {
            Some((player, key)) if violated(&error) == Some(KEY_CONSTRAINT) => {
                Ok(idempotency::forget_expired(&self.pool, player, key).await?)
            }
            // A webhook that was to be told has just been deleted, with its account.
            _ if violated(&error) == Some("webhook_deliveries_webhook_fkey") => Ok(()),
            _ => Err(error.into()),
        }
    }

    /// Does what the server has to do of itself in a game, if that is due; answers the game and what changed, which is to be
    /// announced once it is committed. `choice` is any number, which picks the move of a bot.
    ///
    /// # Errors
    /// The database fails.
    pub(super) async fn attend(
        &self,
        connection: &mut PgConnection,
        loaded: Loaded,
        choice: u64,
    ) -> Result<Option<(Game, Change)>, StoreError> {
        let Loaded { mut game, now, clock_time, .. } = loaded;
        let version = game.version;
        if game.due_at.is_none_or(|due| due > clock_time) {
            return Ok(None);
        }
        let Some(change) = game.attend(now, choice)? else { return Ok(None) };
        let written = match &change.entry {
            Some(entry) => write_entry(connection, &game, version, entry, &change, None).await?,
            None => write_change(connection, &game, version, &change, None, || None).await?.is_some(),
        };
        Ok(written.then_some((game, change)))
    }
}
