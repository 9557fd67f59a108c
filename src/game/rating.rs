//! Ratings: what the outcome of a game says about the strength of its players. The only floats of the layer.
//!
//! The method is the Bayesian one of Weng and Lin (the one of OpenSkill, Bradley-Terry, full pairing), each player a team of
//! their own: it knows games of two to four with shared ranks, which Elo and Glicko do not. All operations but `exp` are exact
//! to the last digit on every platform; `exp` is that of the platform's mathematical library. Who recomputes on a platform whose
//! `exp` rounds otherwise can find other last digits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skillratings::MultiTeamOutcome;
use skillratings::weng_lin::{WengLinConfig, WengLinRating, weng_lin_multi_team};
use utoipa::ToSchema;
use uuid::Uuid;

use super::PlayerKind;
use crate::rulesets::registry::RulesetId;
use crate::rulesets::{Ranked, Seat};

/// A player who has finished fewer rated games than this is rated provisionally.
pub const SETTLED_GAMES: u32 = 10;

/// A rating that is less certain than this is provisional.
pub const SETTLED_DEVIATION: f64 = 7.0;

/// How strong a player is thought to be, as a normal distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Rating)]
pub struct Rating {
    /// The mean; everybody begins with 25.
    #[schema(example = 27.5)]
    pub rating: f64,
    /// The standard deviation; everybody begins with 25/3, and it shrinks with every game that tells something.
    #[schema(example = 7.9)]
    pub deviation: f64,
}

impl Rating {
    /// What everybody begins with.
    pub const NEW: Rating = Rating { rating: 25.0, deviation: 25.0 / 3.0 };

    /// What the player is worth almost certainly: three deviations below the mean. Leaderboards are in its order, so that nobody
    /// comes to their top by a few lucky games.
    pub fn ordinal(self) -> f64 {
        // Not fused: the database computes the same.
        self.rating - 3.0 * self.deviation
    }

    /// Whether it says little yet: after fewer than [`SETTLED_GAMES`] games, or with a deviation above [`SETTLED_DEVIATION`].
    pub fn is_provisional(self, games_count: u32) -> bool {
        games_count < SETTLED_GAMES || self.deviation > SETTLED_DEVIATION
    }
}

/// The ratings after a finished game, in order of seat, from those before it. None unless the ranking has each seat once and
/// there are two or more.
pub fn rate(before: &[Rating], ranking: &[Ranked]) -> Option<Vec<Rating>> {
    let ranks = ranks(before.len(), ranking)?;
    let teams: Vec<[WengLinRating; 1]> =
        before.iter().map(|before| [WengLinRating { rating: before.rating, uncertainty: before.deviation }]).collect();
    let teams: Vec<(&[WengLinRating], MultiTeamOutcome)> =
        teams.iter().zip(ranks).map(|(team, rank)| (&team[..], MultiTeamOutcome::new(rank.into()))).collect();
    // The parameters are the crate's and must stay: with others all ratings would have to be recomputed.
    let after = weng_lin_multi_team(&teams, &WengLinConfig { beta: 25.0 / 6.0, uncertainty_tolerance: 0.000_001 });
    let after = after.into_iter().flatten();
    Some(after.map(|after| Rating { rating: after.rating, deviation: after.uncertainty }).collect())
}

/// The rank of each seat from 0.
pub fn ranks(seats: usize, ranking: &[Ranked]) -> Option<Vec<u8>> {
    if seats < 2 || ranking.len() != seats {
        return None;
    }
    let rank = |seat: Seat| ranking.iter().find(|line| line.seat == seat).map(|line| line.rank);
    (0..seats).map(|seat| rank(seat as Seat)).collect()
}

/// The ratings of everybody, computed game by game from nothing but the games.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    ratings: BTreeMap<(RulesetId, PlayerKind, Uuid), (Rating, u32)>,
}

impl Ledger {
    /// Counts a finished game of these players, in order of seat; answers what each had before and has after it. None, and
    /// nothing is counted, unless the ranking is theirs.
    pub fn count(
        &mut self,
        ruleset: RulesetId,
        pool: PlayerKind,
        players: &[Uuid],
        ranking: &[Ranked],
    ) -> Option<Vec<(Rating, Rating)>> {
        let of = |player: &Uuid| self.ratings.get(&(ruleset, pool, *player)).copied().unwrap_or((Rating::NEW, 0));
        let (before, counts): (Vec<Rating>, Vec<u32>) = players.iter().map(of).unzip();
        let after = rate(&before, ranking)?;
        for ((player, after), count) in players.iter().zip(&after).zip(counts) {
            self.ratings.insert((ruleset, pool, *player), (*after, count + 1));
        }
        Some(before.into_iter().zip(after).collect())
    }

    /// What everybody has now: ruleset, pool, player, rating and how many games it is from; in that order.
    pub fn iter(&self) -> impl Iterator<Item = (RulesetId, PlayerKind, Uuid, Rating, u32)> + '_ {
        self.ratings
            .iter()
            .map(|((ruleset, pool, player), (rating, count))| (*ruleset, *pool, *player, *rating, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seat: Seat, rank: u8) -> Ranked {
        Ranked { seat, rank, score: 0, won: rank == 1 }
    }

    #[test]
    fn who_wins_gains_and_who_loses_loses() {
        let after = rate(&[Rating::NEW; 2], &[line(1, 1), line(0, 2)]).unwrap();
        assert!(after[1].rating > 25.0 && after[0].rating < 25.0);
        assert!(after.iter().all(|after| after.deviation < Rating::NEW.deviation));
        assert_eq!(after[1].rating - 25.0, 25.0 - after[0].rating, "equals gain what the others lose");
    }

    #[test]
    fn equals_who_share_a_rank_stay_what_they_are() {
        let after = rate(&[Rating::NEW; 2], &[line(0, 1), line(1, 1)]).unwrap();
        assert!(after.iter().all(|after| after.rating == 25.0 && after.deviation < Rating::NEW.deviation));
    }

    #[test]
    fn shared_ranks_of_three_and_four_are_ties() {
        let after = rate(&[Rating::NEW; 3], &[line(0, 1), line(2, 1), line(1, 3)]).unwrap();
        assert_eq!(after[0], after[2]);
        assert!(after[0].rating > 25.0 && after[1].rating < 25.0);
        let after = rate(&[Rating::NEW; 4], &[line(3, 1), line(0, 2), line(1, 2), line(2, 4)]).unwrap();
        assert_eq!(after[0], after[1]);
        assert!(after[3].rating > after[0].rating && after[0].rating > after[2].rating);
        assert!((after[0].rating - 25.0).abs() < 1e-9, "who stands in the middle of equals stays there");
    }

    #[test]
    fn to_beat_the_strong_is_worth_more() {
        let strong = Rating { rating: 35.0, deviation: 3.0 };
        let gain = |other: Rating| rate(&[Rating::NEW, other], &[line(0, 1), line(1, 2)]).unwrap()[0].rating - 25.0;
        assert!(gain(strong) > gain(Rating { rating: 15.0, ..strong }));
        // Who is known well changes little.
        let after = rate(&[strong, Rating::NEW], &[line(1, 1), line(0, 2)]).unwrap();
        assert!(35.0 - after[0].rating < after[1].rating - 25.0);
    }

    #[test]
    fn a_ranking_of_others_rates_nobody() {
        assert_eq!(rate(&[Rating::NEW], &[line(0, 1)]), None);
        assert_eq!(rate(&[Rating::NEW; 2], &[line(0, 1)]), None);
        assert_eq!(rate(&[Rating::NEW; 2], &[line(0, 1), line(0, 2)]), None);
        assert_eq!(rate(&[Rating::NEW; 2], &[line(0, 1), line(7, 2)]), None);
    }

    #[test]
    fn the_numbers_stay_what_they_are() {
        // As published for Bradley-Terry with full pairing and the usual parameters.
        let after = rate(&[Rating::NEW; 2], &[line(0, 1), line(1, 2)]).unwrap();
        assert!((after[0].rating - 27.635_231_383_473_65).abs() < 1e-9, "{after:?}");
        assert!((after[0].deviation - 8.065_506_316_323_548).abs() < 1e-9, "{after:?}");
    }

    #[test]
    fn a_ledger_goes_on_from_what_it_has() {
        let (ada, bob) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut ledger = Ledger::default();
        let mut count = |ruleset, ranking: &[Ranked]| ledger.count(ruleset, PlayerKind::Human, &[ada, bob], ranking);
        let first = count(RulesetId::Leopard, &[line(0, 1), line(1, 2)]).unwrap();
        let second = count(RulesetId::Leopard, &[line(1, 1), line(0, 2)]).unwrap();
        assert_eq!(second[0].0, first[0].1);
        assert_eq!(count(RulesetId::Leonardo, &[line(0, 1), line(1, 2)]).unwrap(), first, "each ruleset by itself");
        assert_eq!(count(RulesetId::Leopard, &[line(0, 1)]), None);
        let counts: Vec<u32> = ledger.iter().map(|(.., count)| count).collect();
        assert_eq!(counts, [1, 1, 2, 2]);
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let mut rating = Rating::NEW;
        for _ in 0..200 {
            rating = rate(&[rating, Rating::NEW], &[line(1, 1), line(0, 2)]).unwrap()[0];
            let text = serde_json::to_string(&rating).unwrap();
            assert_eq!(serde_json::from_str::<Rating>(&text).unwrap(), rating, "{text}");
        }
    }

    #[test]
    fn few_games_or_much_doubt_are_provisional() {
        let sure = Rating { rating: 25.0, deviation: SETTLED_DEVIATION };
        assert!(sure.is_provisional(SETTLED_GAMES - 1) && !sure.is_provisional(SETTLED_GAMES));
        assert!(Rating { deviation: 7.1, ..sure }.is_provisional(1_000));
        assert_eq!(Rating { rating: 25.0, deviation: 5.0 }.ordinal(), 10.0);
    }
}
