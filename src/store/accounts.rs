//! The end of accounts. What others have a part in stays, under a name that tells nobody's: games, moves, ratings.
//!
//! First, in one transaction, the account is deleted; then it is settled: it leaves its games, one after another, by the commands
//! that anybody gives. What a server that fails leaves unsettled, and what a request that was under way brings back, another one
//! settles.

use uuid::Uuid;

use super::commands::ATTEMPTS;
use super::games::{INVITED, Loaded, load_known};
use super::writing::write_change;
use super::{Scope, Store, StoreError, TokenHash};
use crate::game::{Command, Player, Status};

impl Store {
    /// Deletes the account to which a token belongs; answers which that was. It is to be settled then.
    ///
    /// # Errors
    /// The token is nobody's or lacks the scope `manage`; the database fails.
    pub async fn delete_account(&self, token: &TokenHash) -> Result<Uuid, StoreError> {
        let player = self.authenticate(token, Scope::Manage).await?.id;
        let mut transaction = self.pool.begin().await?;
        // 62 random bits: no two are alike, and none tells anything of the name before.
        let done = sqlx::query!(
            "with new as materialized (
                select 'deleted-' || encode(substring(uuid_send(gen_random_uuid()) from 9), 'hex') as name
             )
             update players set name = new.name, name_key = new.name, deleted_at = now()
             from new where id = $1 and deleted_at is null",
            player,
        )
        .execute(&mut *transaction)
        .await?;
        if done.rows_affected() == 0 {
            // Another request has done it meanwhile, with all tokens.
            return Err(StoreError::Unauthenticated);
        }
        sqlx::query!(
            "with revoked as (
                delete from tokens where player_id = $1
             ), silenced as (
                delete from webhooks where player_id = $1
             )
             delete from idempotency_keys where player_id = $1",
            player,
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        self.wake_all();
        Ok(player)
    }

    /// The deleted accounts that are still to be settled: all those of the last minute, since a request that was under way may
    /// have brought something back.
    ///
    /// # Errors
    /// The database fails.
    pub async fn unsettled_accounts(&self) -> Result<Vec<Uuid>, StoreError> {
        let ids = sqlx::query_scalar!(
            "select id from players where deleted_at is not null and settled_at is null order by deleted_at limit 100"
        );
        Ok(ids.fetch_all(&self.pool).await?)
    }

    /// Takes a deleted account out of all that is not over: gives up its running games, leaves its open ones, declines its
    /// invitations, takes it from leaderboards. Doing it again, or at several servers at once, is harmless.
    ///
    /// # Errors
    /// The account is not deleted; the database fails; what was done until then stays done.
    pub async fn settle_account(&self, id: Uuid) -> Result<(), StoreError> {
        let deleted =
            sqlx::query_scalar!(r#"select deleted_at is not null as "deleted!" from players where id = $1"#, id);
        if deleted.fetch_optional(&self.pool).await? != Some(true) {
            return Err(StoreError::NotFound);
        }
        let player = self.profile(id).await?.ok_or(StoreError::NotFound)?.player;
        sqlx::query!(
            "with revoked as (
                delete from tokens where player_id = $1
             ), silenced as (
                delete from webhooks where player_id = $1
             ), forgotten as (
                delete from idempotency_keys where player_id = $1
             )
             update ratings set listed = false where player_id = $1 and listed",
            id,
        )
        .execute(&self.pool)
        .await?;
        let games = sqlx::query_scalar!(
            "select s.game_id from seats s join games g on g.id = s.game_id
             where s.player_id = $1 and s.over_at is null and g.status in ('open', 'active')
                   and s.status in ('playing', $2)
             order by s.game_id",
            id,
            INVITED,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut all = true;
        for game in games {
            match self.leave_game(game, &player).await {
                Ok(()) => {}
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                // One game that cannot be read must not keep the account in the others.
                Err(error) => {
                    tracing::error!(%game, %error, "a deleted account cannot leave a game");
                    all = false;
                }
            }
        }
        if all {
            sqlx::query!(
                "update players set settled_at = now()
                 where id = $1 and settled_at is null and deleted_at < now() - interval '1 minute'",
                id,
            )
            .execute(&self.pool)
            .await?;
        }
        Ok(())
    }

    /// Has a player leave a game, in whatever way the game is to be left now.
    async fn leave_game(&self, id: Uuid, player: &Player) -> Result<(), StoreError> {
        for _ in 0..ATTEMPTS {
            let mut connection = self.pool.acquire().await?;
            let Loaded { mut game, now, clock_time, .. } = load_known(&mut connection, id).await?;
            if game.player_to_move().is_some() && game.due_at.is_some_and(|due| due <= clock_time) {
                // Who is late, they or another, is timed out first.
                let loaded = Loaded { caller: None, game, repeat: None, now, clock_time };
                if let Some((game, change)) = self.attend(&mut connection, loaded, 0).await? {
                    self.announce(&game, &change);
                }
                continue;
            }
            let command = match (game.status, game.seat_of(player.id)) {
                (Status::Active, Some(seat)) if game.is_playing(seat) => Command::Resign,
                (Status::Open, Some(_)) => Command::LeaveSeat,
                (Status::Open, None) if game.invitation_of(player.id).is_some() => Command::Decline,
                // It is over, or left already.
                _ => return Ok(()),
            };
            let version = game.version;
            let change = game.handle(command, player, now)?;
            if write_change(&mut connection, &game, version, &change, None, || None).await?.is_some() {
                drop(connection);
                self.announce(&game, &change);
                return Ok(());
            }
        }
        Err(StoreError::Contended)
    }
}
