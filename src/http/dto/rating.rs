//! Ratings on the wire.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::PlayerOut;
use crate::game::{PlayerKind, Rating};
use crate::rulesets::Seat;
use crate::rulesets::registry::RulesetId;
use crate::store::{CurrentRating, Leader, RatedPlayer, RatingChange};

/// What a player has now in a ruleset.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CurrentRating)]
pub struct CurrentRatingOut {
    pub ruleset: RulesetId,
    /// Humans and bots are rated apart.
    pub pool: PlayerKind,
    /// The mean of what the player's strength is thought to be.
    pub rating: f64,
    /// How uncertain that is: the standard deviation.
    pub deviation: f64,
    /// `rating` less three times `deviation`: what the player is worth almost certainly. Leaderboards are in its order.
    pub ordinal: f64,
    /// How many rated games it is from.
    pub games_count: u32,
    /// Whether it says little yet: fewer than 10 games, or a `deviation` above 7.
    pub provisional: bool,
}

impl From<CurrentRating> for CurrentRatingOut {
    fn from(current: CurrentRating) -> Self {
        let CurrentRating { ruleset, pool, rating, games_count } = current;
        Self {
            ruleset,
            pool,
            rating: rating.rating,
            deviation: rating.deviation,
            ordinal: rating.ordinal(),
            games_count,
            provisional: rating.is_provisional(games_count),
        }
    }
}

/// Somebody else in a rated game.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RatedOpponent)]
pub struct RatedOpponentOut {
    pub seat: Seat,
    pub player: PlayerOut,
    pub rank: u8,
    pub before: Rating,
    pub after: Rating,
}

impl From<RatedPlayer> for RatedOpponentOut {
    fn from(rated: RatedPlayer) -> Self {
        let RatedPlayer { seat, player, rank, before, after } = rated;
        Self { seat, player: player.into(), rank, before, after }
    }
}

/// What a rated game did to a player's rating.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RatingChange)]
pub struct RatingChangeOut {
    pub game_id: Uuid,
    pub ruleset: RulesetId,
    pub pool: PlayerKind,
    /// When the game was finished.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The player's seat.
    pub seat: Seat,
    /// From 1; equals share it, and who left ranks last.
    pub rank: u8,
    /// At the end of the game, when it was counted.
    pub before: Rating,
    pub after: Rating,
    /// The others, in order of seat.
    pub opponents: Vec<RatedOpponentOut>,
}

impl RatingChangeOut {
    /// As the player sees it; none if they were not in it.
    pub fn new(change: RatingChange, player: Uuid) -> Option<Self> {
        let (own, others): (Vec<_>, Vec<_>) = change.players.into_iter().partition(|rated| rated.player.id == player);
        let RatedPlayer { seat, rank, before, after, .. } = own.into_iter().next()?;
        Some(Self {
            game_id: change.game_id,
            ruleset: change.ruleset,
            pool: change.pool,
            at: change.at,
            seat,
            rank,
            before,
            after,
            opponents: others.into_iter().map(Into::into).collect(),
        })
    }
}

/// A player's ratings and how they came about.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RatingPage)]
pub struct RatingPageOut {
    /// What the player has now, one for each ruleset of which they have finished a rated game.
    pub current: Vec<CurrentRatingOut>,
    /// The rated games, the last counted first.
    pub items: Vec<RatingChangeOut>,
    /// Send it as `cursor`, with the same filters, for the next page; null on the last.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// A line of a leaderboard.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Leader)]
pub struct LeaderOut {
    /// From 1; equals share it.
    pub rank: u32,
    pub player: PlayerOut,
    /// The mean of what the player's strength is thought to be.
    pub rating: f64,
    /// How uncertain that is: the standard deviation.
    pub deviation: f64,
    /// `rating` less three times `deviation`, by which the leaderboard is in order.
    pub ordinal: f64,
    /// How many rated games it is from.
    pub games_count: u32,
    /// Whether it says little yet: fewer than 10 games, or a `deviation` above 7.
    pub provisional: bool,
}

impl From<Leader> for LeaderOut {
    fn from(leader: Leader) -> Self {
        let Leader { rank, player, rating, games_count } = leader;
        Self {
            rank,
            player: player.into(),
            rating: rating.rating,
            deviation: rating.deviation,
            ordinal: rating.ordinal(),
            games_count,
            provisional: rating.is_provisional(games_count),
        }
    }
}

/// A page of a leaderboard, the best first.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Leaderboard)]
pub struct LeaderboardOut {
    pub ruleset: RulesetId,
    pub pool: PlayerKind,
    pub items: Vec<LeaderOut>,
    /// Send it as `cursor`, with the same `pool`, for the next page; null on the last.
    #[schema(required)]
    pub next_cursor: Option<String>,
}
