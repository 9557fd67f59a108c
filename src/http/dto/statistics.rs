//! Statistics on the wire, and the figures that are made of counts.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::PlayerOut;
use crate::game::Player;
use crate::rulesets::EndReason;
use crate::rulesets::registry::RulesetId;
use crate::simulate::statistics::{Counts, Share};
use crate::store::{PlayerStatistics, Results, RulesetStatistics};

/// A type with counts of a player's games, after what the games have in common. They are members of each, not of a part that
/// all include: generators of clients make little of that.
macro_rules! with_results {
    ($(#[$about:meta])* $name:ident { $($(#[$told:meta])* $field:ident: $kind:ty,)* }) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
        $(#[$about])*
        pub struct $name {
            $($(#[$told])* pub $field: $kind,)*
            /// Finished games: `won`, `lost` and `shared` together.
            pub games: u64,
            /// Won alone; alone at the table: the game's own goal reached.
            pub won: u64,
            pub lost: u64,
            /// Won together with others.
            pub shared: u64,
            /// In which the player resigned or was timed out; they are among the others too.
            pub left: u64,
            /// Moves of all seats in these games.
            pub moves: u64,
        }

        impl $name {
            fn new($($field: $kind,)* results: Results) -> Self {
                let Results { games, won, lost, shared, left, moves } = results;
                let [games, won, lost, shared, left, moves] =
                    [games, won, lost, shared, left, moves].map(i64::cast_unsigned);
                Self { $($field,)* games, won, lost, shared, left, moves }
            }
        }
    };
}

with_results! {
    /// How a player's games went.
    #[schema(as = Results)]
    ResultsOut {}
}

with_results! {
    /// How a player's games of a ruleset went.
    #[schema(as = RulesetResults)]
    RulesetResultsOut {
        ruleset: RulesetId,
    }
}

with_results! {
    /// How a player's games with so many seats went.
    #[schema(as = SeatsResults)]
    SeatsResultsOut {
        /// How many played.
        #[schema(example = 2)]
        seats: u8,
    }
}

with_results! {
    /// How a player's games with an opponent went. What is counted is the player's, not the opponent's.
    #[schema(as = OpponentResults)]
    OpponentResultsOut {
        /// The opponent.
        player: PlayerOut,
    }
}

with_results! {
    /// How a player's games of a month went.
    #[schema(as = MonthResults)]
    MonthResultsOut {
        /// Year and month (UTC) in which the games finished.
        #[schema(example = "2026-11")]
        month: String,
    }
}

/// The statistics of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PlayerStats)]
pub struct PlayerStatsOut {
    pub player: PlayerOut,
    pub total: ResultsOut,
    /// Rulesets of which there are games, in the order of their slugs.
    pub by_ruleset: Vec<RulesetResultsOut>,
    /// By how many played, fewest first.
    pub by_seats: Vec<SeatsResultsOut>,
    /// The 100 most frequent opponents, most games first.
    #[schema(max_items = 100)]
    pub by_opponent: Vec<OpponentResultsOut>,
    /// The latest 120 months in which games finished, in order of time.
    #[schema(max_items = 120)]
    pub by_month: Vec<MonthResultsOut>,
}

impl PlayerStatsOut {
    /// The statistics of this player.
    pub fn new(player: Player, statistics: PlayerStatistics) -> Self {
        let PlayerStatistics { total, by_ruleset, by_seats, by_opponent, by_month } = statistics;
        Self {
            player: player.into(),
            total: ResultsOut::new(total),
            by_ruleset: by_ruleset.into_iter().map(|(ruleset, own)| RulesetResultsOut::new(ruleset, own)).collect(),
            by_seats: by_seats.into_iter().map(|(seats, own)| SeatsResultsOut::new(seats, own)).collect(),
            by_opponent: by_opponent.into_iter().map(|(who, own)| OpponentResultsOut::new(who.into(), own)).collect(),
            by_month: by_month.into_iter().map(|(month, own)| MonthResultsOut::new(month, own)).collect(),
        }
    }
}

/// The statistics of a ruleset.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = RulesetStats)]
pub struct RulesetStatsOut {
    pub ruleset: RulesetId,
    /// Public finished games.
    pub games: u64,
    /// By how many played, fewest first.
    pub by_seats: Vec<SeatsGamesOut>,
    /// How games ended, the most frequent first.
    pub end_reasons: Vec<EndGamesOut>,
    pub length: LengthOut,
    /// What it is worth to move first, by how many played; nothing where no game was won by one seat alone.
    pub first_seat: Vec<FirstSeatOut>,
    /// Scores that seats came to, lowest first.
    pub scores: Vec<ScoreOut>,
}

/// How many games had so many seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SeatsGames)]
pub struct SeatsGamesOut {
    /// How many played.
    #[schema(example = 2)]
    pub seats: u8,
    pub games: u64,
}

/// How many games ended so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = EndGames)]
pub struct EndGamesOut {
    pub reason: EndReason,
    pub games: u64,
}

/// How long games were, in moves of all seats; all but `count` are null if there are no games.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Length)]
pub struct LengthOut {
    /// How many games.
    pub count: u64,
    #[schema(required)]
    pub min: Option<i64>,
    #[schema(required)]
    pub max: Option<i64>,
    /// The arithmetic mean, to two decimals.
    #[schema(required, example = 21.33)]
    pub mean: Option<f64>,
    /// The middle one, or the mean of the two in the middle.
    #[schema(required, example = 20.5)]
    pub median: Option<f64>,
    /// The least length that nine games in ten do not exceed.
    #[schema(required)]
    pub p90: Option<i64>,
}

/// How often the seat that moved first has won, among games of at least two that one seat alone has won. Shares are from 0 to 1,
/// to four decimals.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = FirstSeat)]
pub struct FirstSeatOut {
    /// How many played.
    #[schema(example = 2)]
    pub seats: u8,
    /// Games that one seat alone has won.
    pub games: u64,
    /// Of those: games that the seat that moved first has won.
    pub won: u64,
    /// `won` of `games`.
    #[schema(example = 0.5231)]
    pub share: f64,
    /// What it would be if moving first were worth nothing: one of `seats`.
    #[schema(example = 0.5)]
    pub expected: f64,
    /// The lower end of the 95 % interval of `share` (Wilson's).
    #[schema(example = 0.4712)]
    pub low: f64,
    /// Its upper end.
    #[schema(example = 0.5744)]
    pub high: f64,
}

/// How many seats came to a score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ScoreSeats)]
pub struct ScoreOut {
    /// Keys, points or spirits, by ruleset.
    pub score: i64,
    /// How many seats.
    pub count: u64,
}

impl RulesetStatsOut {
    /// The statistics of this ruleset.
    pub fn new(ruleset: RulesetId, statistics: &RulesetStatistics) -> Self {
        let (mut by_seats, mut by_reason) = (BTreeMap::<u8, [u64; 3]>::new(), BTreeMap::<EndReason, u64>::new());
        for end in &statistics.ends {
            let counts = [end.games, end.decided, end.first_won].map(i64::cast_unsigned);
            let sums = by_seats.entry(end.seats).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            *by_reason.entry(end.reason).or_default() += counts[0];
        }
        let first_seat = by_seats.iter().filter(|(_, [_, decided, _])| *decided > 0);
        let first_seat = first_seat.map(|(seats, [_, decided, won])| FirstSeatOut::new(*seats, *decided, *won));
        let mut end_reasons: Vec<EndGamesOut> =
            by_reason.into_iter().map(|(reason, games)| EndGamesOut { reason, games }).collect();
        // Equal ones stay in the order of reasons.
        end_reasons.sort_by_key(|end| std::cmp::Reverse(end.games));
        Self {
            ruleset,
            games: by_seats.values().map(|[games, ..]| games).sum(),
            first_seat: first_seat.collect(),
            by_seats: by_seats
                .iter()
                .map(|(seats, [games, ..])| SeatsGamesOut { seats: *seats, games: *games })
                .collect(),
            end_reasons,
            length: LengthOut::of(&Counts(statistics.moves.iter().copied().collect())),
            scores: statistics.scores.iter().map(|(score, count)| ScoreOut { score: *score, count: *count }).collect(),
        }
    }
}

impl LengthOut {
    fn of(lengths: &Counts) -> Self {
        let count = lengths.len();
        let some = count > 0;
        Self {
            count,
            min: some.then(|| lengths.min()),
            max: some.then(|| lengths.max()),
            mean: some.then(|| rounded(lengths.mean(), 100.0)),
            median: some.then(|| lengths.median()),
            p90: some.then(|| lengths.percentile(90)),
        }
    }
}

impl FirstSeatOut {
    fn new(seats: u8, games: u64, won: u64) -> Self {
        let Share { share, interval: [low, high] } = Share::of(&[0, won], games);
        let four = |share| rounded(share, 10_000.0);
        Self {
            seats,
            games,
            won,
            share: four(share),
            expected: four(1.0 / f64::from(seats)),
            low: four(low),
            high: four(high),
        }
    }
}

/// The nearest multiple of a unit's `parts`th.
fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::EndCount;

    #[test]
    fn the_interval_of_the_first_seat_is_wilsons() {
        // Of the literature: 8 of 10 gives 49.0 % to 94.3 %.
        let first = FirstSeatOut::new(4, 10, 8);
        assert_eq!((first.share, first.expected, first.low, first.high), (0.8, 0.25, 0.4902, 0.9433));
        let (none, all) = (FirstSeatOut::new(3, 10, 0), FirstSeatOut::new(3, 10, 10));
        assert_eq!((none.low, none.high, none.expected), (0.0, 0.2775, 0.3333));
        assert_eq!((all.low, all.high), (0.7225, 1.0));
    }

    #[test]
    fn wide_numbers_are_exact_where_they_are_whole() {
        let wide = 1_i64 << 52;
        let end = |reason| EndCount { seats: 2, reason, games: wide / 2, decided: wide / 2, first_won: wide / 4 };
        let statistics = RulesetStatistics {
            ends: vec![end(EndReason::Completed), end(EndReason::Resignation)],
            moves: vec![(i64::from(i32::MAX), wide.cast_unsigned())],
            scores: vec![(i64::from(i32::MIN), wide.cast_unsigned())],
        };
        let out = RulesetStatsOut::new(RulesetId::Leopard, &statistics);
        assert_eq!((out.games, out.length.count, out.length.p90), (1 << 52, 1 << 52, Some(2_147_483_647)));
        assert_eq!((out.length.mean, out.length.median), (Some(2_147_483_647.0), Some(2_147_483_647.0)));
        assert_eq!((out.first_seat[0].games, out.first_seat[0].won), (1 << 52, 1 << 51));
        assert_eq!((out.first_seat[0].share, out.first_seat[0].low, out.first_seat[0].high), (0.5, 0.5, 0.5));
    }

    #[test]
    fn of_nothing_there_are_zeros_and_nulls() {
        let out = RulesetStatsOut::new(RulesetId::Leopard, &RulesetStatistics::default());
        assert_eq!(
            serde_json::to_value(out).unwrap(),
            serde_json::json!({
                "ruleset": "leopard", "games": 0, "by_seats": [], "end_reasons": [], "first_seat": [], "scores": [],
                "length": {"count": 0, "min": null, "max": null, "mean": null, "median": null, "p90": null},
            })
        );
    }
}
