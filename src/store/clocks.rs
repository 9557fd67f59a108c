//! Clocks and everything else that servers do of themselves: who is late is timed out, bots move for those who have left,
//! invitations expire. Whatever server comes by does it, once: the claim skips what another one is at, and the version guards.

use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::games::{Loaded, load_known};
use super::writing::write_change;
use super::{Store, StoreError};
use crate::game::{Change, Game};

impl Store {
    /// The database's time.
    ///
    /// # Errors
    /// The database fails.
    pub async fn now(&self) -> Result<OffsetDateTime, StoreError> {
        Ok(sqlx::query_scalar!(r#"select now() as "now!""#).fetch_one(&self.pool).await?)
    }

    /// Notes that a server runs. If none did for more than ten seconds, all deadlines that had not passed then are put off by
    /// as long; answers how long that was.
    ///
    /// # Errors
    /// The database fails.
    pub async fn beat(&self) -> Result<Option<Duration>, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let silence = sqlx::query_scalar!(
            r#"select extract(epoch from now() - at)::double precision as "silence!" from heartbeats
               where at < now() - interval '10 seconds' for update skip locked"#
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if silence.is_some() {
            // Locked before anything else is read, or who has left meanwhile could still be given time, as if they had not.
            let games = sqlx::query_scalar!(
                "select game_id from positions p cross join heartbeats h
                 where check_at is not null and due_at > h.at and changed_at < now() for update of p"
            )
            .fetch_all(&mut *transaction)
            .await?;
            // A turn gets back what it has had of the silence: that may have begun after the last sign of life, or when the first
            // server was there again.
            sqlx::query!(
                r#"with credit as (
                    select at from heartbeats
                ), put_off as (
                    update positions p
                    set version = version + 1, due_at = due_at + (now() - greatest(at, changed_at)), changed_at = greatest(now(), changed_at),
                        xid = pg_current_xact_id()
                    from credit
                    where p.game_id = any($1) and due_at > at and changed_at < now() and exists (
                        select from seats s where s.game_id = p.game_id and s.seat = p.to_move_seat and s.status = 'playing')
                    returning p.game_id, p.version, p.moves_count, p.last_move_at, p.to_move_seat, p.to_move_since, p.due_at, p.remaining_ms,
                              p.changed_at
                )
                insert into game_events (game_id, version, index, type, seat, facts, at)
                select d.game_id, d.version, 0, 'clock_credited', d.to_move_seat,
                       last.facts || jsonb_build_object(
                           'moves_count', d.moves_count,
                           'last_move_at', to_char(d.last_move_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                           'to_move', d.to_move_seat,
                           'to_move_since', to_char(d.to_move_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                           'due_at', to_char(d.due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                           'remaining_ms', to_jsonb(d.remaining_ms)),
                       d.changed_at
                from put_off d
                cross join lateral (
                    select facts from game_events e where e.game_id = d.game_id order by version desc, index desc limit 1
                ) as last"#,
                &games
            )
            .execute(&mut *transaction)
            .await?;
        }
        sqlx::query!("update heartbeats set at = now() where at < now()").execute(&mut *transaction).await?;
        transaction.commit().await?;
        if silence.is_some() {
            self.wake_all();
        }
        Ok(silence.map(Duration::seconds_f64))
    }

    /// Puts off when some games are looked at in which a move has put off the deadline since that was set; answers whether there may
    /// be more. Games in which something happens at the moment are left alone.
    ///
    /// # Errors
    /// The database fails.
    pub async fn delay_checks(&self) -> Result<bool, StoreError> {
        const MOST: i64 = 1_000;
        let delayed = sqlx::query!(
            "update positions set check_at = due_at where game_id = any(array(
                 select game_id from positions
                 where check_at <= clock_time() and due_at > (select clock_time())
                 order by check_at limit $1 for update skip locked
             ))",
            MOST,
        )
        .execute(&self.pool)
        .await?;
        Ok(delayed.rows_affected() == MOST as u64)
    }

    /// Claims one game in which the server has to act and does so; answers whether there was one. `choice` is any number,
    /// which picks the move of a bot.
    ///
    /// # Errors
    /// The database fails.
    pub async fn attend_next(&self, choice: u64) -> Result<bool, StoreError> {
        let mut claim = self.pool.begin().await?;
        let id = sqlx::query_scalar!(
            "select game_id from positions where check_at <= clock_time() and due_at <= (select clock_time())
             order by check_at limit 1 for update skip locked"
        )
        .fetch_optional(&mut *claim)
        .await?;
        let Some(id) = id else { return Ok(false) };
        match self.attend_known(&mut claim, id, choice).await {
            Ok(attended) => {
                claim.commit().await?;
                if let Some((game, change)) = attended {
                    self.announce(&game, &change);
                }
                Ok(true)
            }
            Err(error @ StoreError::Unavailable(_)) => Err(error),
            // One game that cannot be read must not keep the others waiting.
            Err(error) => {
                tracing::error!(game = %id, %error, "a game cannot be attended to");
                claim.rollback().await?;
                // Unless somebody could after all, meanwhile.
                sqlx::query!(
                    "update positions set check_at = now() + interval '1 minute' where game_id = $1 and due_at <= now()",
                    id
                )
                .execute(&self.pool)
                .await?;
                Ok(true)
            }
        }
    }

    async fn attend_known(
        &self,
        claim: &mut PgConnection,
        id: Uuid,
        choice: u64,
    ) -> Result<Option<(Game, Change)>, StoreError> {
        let loaded = load_known(claim, id).await?;
        self.attend(claim, loaded, choice).await
    }

    /// Drops the invitations of one game whose time is over; answers whether there was one.
    ///
    /// # Errors
    /// The database fails.
    pub async fn expire_next(&self) -> Result<bool, StoreError> {
        let mut claim = self.pool.begin().await?;
        // Claimed as every change claims a game: who locked its seats first could wait for a player who waits for them.
        let id = sqlx::query_scalar!(
            "select p.game_id from seats s join positions p on p.game_id = s.game_id
             where s.expires_at <= now() order by s.expires_at limit 1 for update of p skip locked"
        )
        .fetch_optional(&mut *claim)
        .await?;
        let Some(id) = id else { return Ok(false) };
        let loaded = match load_known(&mut claim, id).await {
            Err(error) if !matches!(error, StoreError::Unavailable(_)) => {
                tracing::error!(game = %id, %error, "invitations cannot be dropped");
                sqlx::query!("update seats set expires_at = now() + interval '1 minute' where game_id = $1 and expires_at <= now()", id)
                    .execute(&mut *claim)
                    .await?;
                claim.commit().await?;
                return Ok(true);
            }
            loaded => loaded?,
        };
        let Loaded { mut game, now, .. } = loaded;
        let version = game.version;
        let Some(change) = game.expire_invitations(now) else { return Ok(false) };
        let written = write_change(&mut claim, &game, version, &change, None, || None).await?;
        claim.commit().await?;
        if written.is_some() {
            self.announce(&game, &change);
        }
        Ok(true)
    }
}
