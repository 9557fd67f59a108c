//! Ratings: written by the transaction that finishes a rated game, read as histories and leaderboards.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::games::{ruleset, word};
use super::players::player;
use super::{Store, StoreError};
use crate::game::rating::{Rating, ranks, rate};
use crate::game::{Game, Player, PlayerKind, RatedSeat, RecordedRating, Status};
use crate::rulesets::Seat;
use crate::rulesets::registry::RulesetId;

/// What a player has in one ruleset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurrentRating {
    pub ruleset: RulesetId,
    pub pool: PlayerKind,
    pub rating: Rating,
    pub games_count: u32,
}

/// One player's part in what a rated game did.
#[derive(Clone, Debug, PartialEq)]
pub struct RatedPlayer {
    pub seat: Seat,
    pub player: Player,
    pub rank: u8,
    pub before: Rating,
    pub after: Rating,
}

/// What a rated game did to the ratings of its players.
#[derive(Clone, Debug, PartialEq)]
pub struct RatingChange {
    pub game_id: Uuid,
    pub ruleset: RulesetId,
    pub pool: PlayerKind,
    /// The place in the order in which games were counted.
    pub number: i64,
    pub at: OffsetDateTime,
    /// In order of seat.
    pub players: Vec<RatedPlayer>,
}

/// A line of a leaderboard.
#[derive(Clone, Debug, PartialEq)]
pub struct Leader {
    /// From 1; equals share it.
    pub rank: u32,
    pub player: Player,
    pub rating: Rating,
    pub games_count: u32,
}

/// A place in a leaderboard: after which line, and how the lines are counted from there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeaderPlace {
    pub ordinal: f64,
    pub player: Uuid,
    /// How many lines there are to here.
    pub lines: u32,
    /// The rank of the last of them.
    pub rank: u32,
}

impl LeaderPlace {
    /// Before everybody.
    pub const TOP: LeaderPlace = LeaderPlace { ordinal: f64::INFINITY, player: Uuid::max(), lines: 0, rank: 0 };
}

/// A part of a leaderboard.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderPage {
    pub items: Vec<Leader>,
    /// Where the next page begins; none when there is no more.
    pub next: Option<LeaderPlace>,
}

struct LeaderRow {
    player_id: Uuid,
    name: String,
    kind: String,
    rating: f64,
    deviation: f64,
    games_count: i32,
}

/// Whether a game counts, now that it is as it is.
pub(super) fn counts(game: &Game) -> bool {
    game.rated && game.status == Status::Finished
}

/// Counts a game that the transaction has just finished, from the values of this moment. The caller holds the row of `positions`,
/// whose version guards that this happens once.
///
/// # Errors
/// The database fails.
pub(super) async fn count(connection: &mut PgConnection, game: &Game, at: OffsetDateTime) -> Result<(), sqlx::Error> {
    let Some(ranking) = game.outcome.as_ref().map(|outcome| &outcome.ranking).filter(|_| counts(game)) else {
        return Ok(());
    };
    let (players, seats): (Vec<Uuid>, Vec<i16>) =
        game.seats.iter().map(|taken| (taken.player.id, i16::from(taken.seat))).unzip();
    let (slug, pool) = (game.ruleset.meta().slug, game.seats.first().map_or("", |taken| taken.player.kind.as_str()));
    // Row by row in order of player, and all games do it so: nobody waits for one who waits for them. The update, which changes
    // nothing but the count, locks what is there and reads what it is now, whoever has changed it meanwhile.
    let rows = sqlx::query!(
        "insert into ratings as r (player_id, ruleset, pool, rating, deviation, games_count, listed)
         select id, $2, $3, $4, $5, 1, deleted_at is null from players where id = any($1) order by id
         on conflict (player_id, ruleset, pool) do update set games_count = r.games_count + 1
         returning player_id, rating, deviation",
        &players,
        slug,
        pool,
        Rating::NEW.rating,
        Rating::NEW.deviation,
    )
    .fetch_all(&mut *connection)
    .await?;
    let of = |player: &Uuid| rows.iter().find(|row| row.player_id == *player);
    let before: Vec<Rating> =
        players.iter().filter_map(of).map(|row| Rating { rating: row.rating, deviation: row.deviation }).collect();
    let (Some(ranks), Some(after)) = (ranks(before.len(), ranking), rate(&before, ranking)) else {
        return Err(sqlx::Error::Protocol(format!("the ranking of game {} is not that of its players", game.id)));
    };
    let ranks: Vec<i16> = ranks.into_iter().map(i16::from).collect();
    let column = |of: fn(&Rating) -> f64, ratings: &[Rating]| ratings.iter().map(of).collect::<Vec<f64>>();
    // The number is taken while the rows are locked: of two games with a player in common the later one has the greater.
    sqlx::query!(
        "with number as materialized (
            select nextval('rating_numbers') as number
         ), changed as (
            select * from unnest($4::smallint[], $5::uuid[], $6::smallint[], $7::double precision[], $8::double precision[],
                                 $9::double precision[], $10::double precision[])
                as c (seat, player_id, rank, rating_before, deviation_before, rating_after, deviation_after)
         ), kept as (
            insert into rating_changes (game_id, seat, player_id, ruleset, pool, number, rank, rating_before, deviation_before,
                                        rating_after, deviation_after, at)
            select $1, c.seat, c.player_id, $2, $3, n.number, c.rank, c.rating_before, c.deviation_before, c.rating_after,
                   c.deviation_after, $11
            from changed c cross join number n
         )
         update ratings r set rating = c.rating_after, deviation = c.deviation_after
         from changed c
         where r.player_id = c.player_id and r.ruleset = $2 and r.pool = $3",
        game.id,
        slug,
        pool,
        &seats,
        &players,
        &ranks,
        &column(|rating| rating.rating, &before),
        &column(|rating| rating.deviation, &before),
        &column(|rating| rating.rating, &after),
        &column(|rating| rating.deviation, &after),
        at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// What games did to ratings, for their records. Games that were not rated are missing.
    ///
    /// # Errors
    /// The database fails.
    pub async fn rating_of_games(&self, games: &[Uuid]) -> Result<BTreeMap<Uuid, RecordedRating>, StoreError> {
        let rows = sqlx::query!(
            "select game_id, seat, pool, number, rating_before, deviation_before, rating_after, deviation_after
             from rating_changes where game_id = any($1) order by game_id, seat",
            games,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut ratings: BTreeMap<Uuid, RecordedRating> = BTreeMap::new();
        for row in rows {
            let pool = word("a pool", &row.pool, PlayerKind::parse)?;
            let of_game = ratings.entry(row.game_id).or_insert_with(|| RecordedRating {
                pool,
                number: row.number as u64,
                seats: Vec::new(),
            });
            of_game.seats.push(RatedSeat {
                seat: row.seat as Seat,
                before: Rating { rating: row.rating_before, deviation: row.deviation_before },
                after: Rating { rating: row.rating_after, deviation: row.deviation_after },
            });
        }
        Ok(ratings)
    }

    /// What a player has, in order of ruleset; only those they have played.
    ///
    /// # Errors
    /// The database fails.
    pub async fn current_ratings(&self, player: Uuid, of: Option<RulesetId>) -> Result<Vec<CurrentRating>, StoreError> {
        let rows = sqlx::query!(
            "select ruleset, pool, rating, deviation, games_count from ratings
             where player_id = $1 and ruleset = coalesce($2, ruleset) order by ruleset, pool",
            player,
            of.map(|ruleset| ruleset.meta().slug),
        )
        .fetch_all(&self.pool)
        .await?;
        let current = rows.into_iter().map(|row| {
            Ok(CurrentRating {
                ruleset: ruleset(&row.ruleset)?,
                pool: word("a pool", &row.pool, PlayerKind::parse)?,
                rating: Rating { rating: row.rating, deviation: row.deviation },
                games_count: row.games_count as u32,
            })
        });
        current.collect()
    }

    /// The rated games of a player that were counted before `before`, the latest first; the number with which the next page goes
    /// on, if there is more.
    ///
    /// # Errors
    /// The database fails.
    pub async fn rating_changes(
        &self,
        player_id: Uuid,
        of: Option<RulesetId>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<(Vec<RatingChange>, Option<i64>), StoreError> {
        let before = before.unwrap_or(i64::MAX);
        let rows = i64::from(limit) + 1;
        // Two statements, since each has an index of its own.
        let mut numbers = match of {
            None => sqlx::query_scalar!(
                "select number from rating_changes where player_id = $1 and number < $2 order by number desc limit $3",
                player_id,
                before,
                rows,
            )
            .fetch_all(&self.pool)
            .await?,
            Some(ruleset) => {
                sqlx::query_scalar!(
                    "select number from rating_changes
                     where player_id = $1 and ruleset = $2 and number < $3 order by number desc limit $4",
                    player_id,
                    ruleset.meta().slug,
                    before,
                    rows,
                )
                .fetch_all(&self.pool)
                .await?
            }
        };
        let more = numbers.len() > limit as usize;
        numbers.truncate(limit as usize);
        let next = numbers.last().copied().filter(|_| more);
        let rows = sqlx::query!(
            "select c.game_id, c.seat, c.player_id, p.name, p.kind, c.ruleset, c.pool, c.number, c.rank, c.rating_before,
                    c.deviation_before, c.rating_after, c.deviation_after, c.at
             from rating_changes c join players p on p.id = c.player_id
             where c.number = any($1) order by c.number desc, c.seat",
            &numbers,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut changes: Vec<RatingChange> = Vec::with_capacity(numbers.len());
        for row in rows {
            if changes.last().is_none_or(|last| last.number != row.number) {
                changes.push(RatingChange {
                    game_id: row.game_id,
                    ruleset: ruleset(&row.ruleset)?,
                    pool: word("a pool", &row.pool, PlayerKind::parse)?,
                    number: row.number,
                    at: row.at,
                    players: Vec::new(),
                });
            }
            let rated = RatedPlayer {
                seat: row.seat as Seat,
                player: player(row.player_id, row.name, &row.kind)?,
                rank: row.rank as u8,
                before: Rating { rating: row.rating_before, deviation: row.deviation_before },
                after: Rating { rating: row.rating_after, deviation: row.deviation_after },
            };
            if let Some(change) = changes.last_mut() {
                change.players.push(rated);
            }
        }
        Ok((changes, next))
    }

    /// A page of a leaderboard. Ranks are counted on from `after`: who overtakes others while somebody turns pages can be missing or
    /// be there twice, as in every list whose order changes.
    ///
    /// # Errors
    /// The database fails.
    pub async fn leaders(
        &self,
        ruleset: RulesetId,
        pool: PlayerKind,
        after: LeaderPlace,
        limit: u32,
    ) -> Result<LeaderPage, StoreError> {
        let rows = self.rows_below(ruleset, pool, after, i64::from(limit) + 1).await?;
        ranked(rows, after, limit)
    }

    /// The part of a leaderboard in whose middle a player stands; none if they do not stand in it.
    ///
    /// # Errors
    /// The database fails.
    pub async fn leaders_around(
        &self,
        ruleset: RulesetId,
        pool: PlayerKind,
        player: Uuid,
        limit: u32,
    ) -> Result<Option<LeaderPage>, StoreError> {
        let (slug, of_pool) = (ruleset.meta().slug, pool.as_str());
        let own = sqlx::query_scalar!(
            r#"select ordinal as "ordinal!" from ratings
               where player_id = $1 and ruleset = $2 and pool = $3 and listed"#,
            player,
            slug,
            of_pool,
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(ordinal) = own else { return Ok(None) };
        // The line just before the part, if any: the part is what comes after it.
        let before = sqlx::query!(
            r#"select ordinal as "ordinal!", player_id from ratings
               where ruleset = $1 and pool = $2 and listed and (ordinal, player_id) > ($3, $4)
               order by ordinal, player_id offset $5 limit 1"#,
            slug,
            of_pool,
            ordinal,
            player,
            i64::from((limit - 1) / 2),
        )
        .fetch_optional(&self.pool)
        .await?;
        let after = match before {
            None => LeaderPlace::TOP,
            Some(before) => {
                // Counted from the top, by the index alone: as much work as there are players above, with nothing kept that every
                // finished game would have to change.
                let counted = sqlx::query!(
                    r#"select count(*) as "lines!", count(*) filter (where ordinal > $3) as "above!" from ratings
                       where ruleset = $1 and pool = $2 and listed and (ordinal, player_id) >= ($3, $4)"#,
                    slug,
                    of_pool,
                    before.ordinal,
                    before.player_id,
                )
                .fetch_one(&self.pool)
                .await?;
                LeaderPlace {
                    ordinal: before.ordinal,
                    player: before.player_id,
                    lines: counted.lines as u32,
                    rank: counted.above as u32 + 1,
                }
            }
        };
        let rows = self.rows_below(ruleset, pool, after, i64::from(limit) + 1).await?;
        ranked(rows, after, limit).map(Some)
    }

    async fn rows_below(
        &self,
        ruleset: RulesetId,
        pool: PlayerKind,
        after: LeaderPlace,
        rows: i64,
    ) -> Result<Vec<LeaderRow>, sqlx::Error> {
        sqlx::query_as!(
            LeaderRow,
            "select r.player_id, p.name, p.kind, r.rating, r.deviation, r.games_count
             from ratings r join players p on p.id = r.player_id
             where r.ruleset = $1 and r.pool = $2 and r.listed and (r.ordinal, r.player_id) < ($3, $4)
             order by r.ordinal desc, r.player_id desc limit $5",
            ruleset.meta().slug,
            pool.as_str(),
            after.ordinal,
            after.player,
            rows,
        )
        .fetch_all(&self.pool)
        .await
    }
}

/// Numbers the lines that come after a place; one more than `limit` tells that there are others.
fn ranked(rows: Vec<LeaderRow>, after: LeaderPlace, limit: u32) -> Result<LeaderPage, StoreError> {
    let more = rows.len() > limit as usize;
    let mut place = after;
    let mut items = Vec::with_capacity(rows.len());
    for row in rows.into_iter().take(limit as usize) {
        let rating = Rating { rating: row.rating, deviation: row.deviation };
        let lines = place.lines.saturating_add(1);
        let rank = if rating.ordinal() == place.ordinal { place.rank } else { lines };
        place = LeaderPlace { ordinal: rating.ordinal(), player: row.player_id, lines, rank };
        items.push(Leader {
            rank,
            player: player(row.player_id, row.name, &row.kind)?,
            rating,
            games_count: row.games_count as u32,
        });
    }
    Ok(LeaderPage { items, next: Some(place).filter(|_| more) })
}
