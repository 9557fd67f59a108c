//! What is counted of the games, and the figures made of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::rulesets::{EndReason, Ranked, Seat};

/// 0.975 quantile of the normal distribution: intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A finished game.
pub struct Game {
    /// The seat that made the first move.
    pub starting_seat: Seat,
    /// Moves made.
    pub length: u32,
    pub end: EndReason,
    pub ranking: Vec<Ranked>,
}

/// Counts over many games: whole numbers only, so that the order of adding does not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    pub lengths: Counts,
    pub ends: BTreeMap<EndReason, u64>,
    /// Games that the starting seat won, by the number of seats that won it together.
    pub starting_seat_wins: Vec<u64>,
    pub seats: Vec<SeatTally>,
}

/// Counts for one seat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeatTally {
    /// Games in which it made the first move.
    pub started: u64,
    /// Games won, by the number of seats that won it together.
    pub wins: Vec<u64>,
    pub scores: Counts,
}

impl Tally {
    /// Of no games yet.
    pub fn new(seats: u8) -> Self {
        let wins = vec![0; usize::from(seats) + 1];
        let seat = SeatTally { wins: wins.clone(), ..SeatTally::default() };
        Self {
            lengths: Counts::default(),
            ends: BTreeMap::new(),
            starting_seat_wins: wins,
            seats: vec![seat; usize::from(seats)],
        }
    }

    /// Counts a game.
    pub fn add(&mut self, game: &Game) {
        self.lengths.add(i64::from(game.length), 1);
        *self.ends.entry(game.end).or_default() += 1;
        self.seats[usize::from(game.starting_seat)].started += 1;
        let winners = game.ranking.iter().filter(|line| line.won).count();
        for line in &game.ranking {
            let seat = &mut self.seats[usize::from(line.seat)];
            seat.scores.add(i64::from(line.score), 1);
            if line.won {
                seat.wins[winners] += 1;
                if line.seat == game.starting_seat {
                    self.starting_seat_wins[winners] += 1;
                }
            }
        }
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: Tally) {
        self.lengths.merge(other.lengths);
        other.ends.into_iter().for_each(|(end, games)| *self.ends.entry(end).or_default() += games);
        add_up(&mut self.starting_seat_wins, &other.starting_seat_wins);
        for (seat, other) in self.seats.iter_mut().zip(other.seats) {
            seat.started += other.started;
            add_up(&mut seat.wins, &other.wins);
            seat.scores.merge(other.scores);
        }
    }

    /// Moves made in all games.
    pub fn decisions(&self) -> u64 {
        self.lengths.0.iter().map(|(length, games)| length.cast_unsigned() * games).sum()
    }
}

fn add_up(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// How often each value occurred.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Counts(pub BTreeMap<i64, u64>);

impl Counts {
    fn add(&mut self, value: i64, times: u64) {
        *self.0.entry(value).or_default() += times;
    }

    fn merge(&mut self, other: Counts) {
        other.0.into_iter().for_each(|(value, times)| self.add(value, times));
    }

    /// How many values.
    pub fn len(&self) -> u64 {
        self.0.values().sum()
    }

    /// The arithmetic mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        let sum: i128 = self.0.iter().map(|(value, times)| i128::from(*value) * i128::from(*times)).sum();
        sum as f64 / self.len().max(1) as f64
    }

    /// The middle value, or the mean of the two; 0 of nothing.
    pub fn median(&self) -> f64 {
        let len = self.len();
        let middle = |place: u64| {
            let mut before = 0;
            let found = self.0.iter().find(|(_, times)| {
                before += **times;
                before > place
            });
            found.map_or(0.0, |(value, _)| *value as f64)
        };
        (middle(len.saturating_sub(1) / 2) + middle(len / 2)) / 2.0
    }

    /// The least value that so many per cent of the values, or more, do not exceed; 0 of nothing.
    pub fn percentile(&self, percent: u64) -> i64 {
        let rank = (u128::from(self.len()) * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        let found = self.0.iter().find(|(_, times)| {
            below += u128::from(**times);
            below >= rank
        });
        found.map_or(0, |(value, _)| *value)
    }

    /// The least value; 0 of nothing.
    pub fn min(&self) -> i64 {
        self.0.first_key_value().map_or(0, |(value, _)| *value)
    }

    /// The greatest value; 0 of nothing.
    pub fn max(&self) -> i64 {
        self.0.last_key_value().map_or(0, |(value, _)| *value)
    }
}

/// A share of games with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// 0 to 1.
    pub share: f64,
    /// The 95 % interval.
    pub interval: [f64; 2],
}

impl Share {
    /// The share of `games` that was won, if `wins[k]` of them were won by `k` seats together, each counting 1/k.
    ///
    /// The interval is Wilson's. Shared wins make the outcomes vary less than won and lost games would; the number of
    /// games then counts for more by that ratio, so that without shared wins it is exactly Wilson's.
    pub fn of(wins: &[u64], games: u64) -> Self {
        let games = games.max(1) as f64;
        let moment = |power: i32| {
            let parts = (1..).zip(wins.iter().skip(1));
            parts.map(|(winners, wins)| *wins as f64 / f64::from(winners).powi(power)).sum::<f64>() / games
        };
        let (share, square) = (moment(1), moment(2));
        let two_valued = share * (1.0 - share);
        // Zero when every game is the same: then nothing is known of the variance but that of won and lost games.
        let ratio = if two_valued > 0.0 { (square - share * share).max(0.0) / two_valued } else { 1.0 };
        let z2 = Z * Z * ratio / games;
        let centre = (share + z2 / 2.0) / (1.0 + z2);
        let half = (z2 * (two_valued + z2 / 4.0)).sqrt() / (1.0 + z2);
        Self { share, interval: [(centre - half).max(0.0), (centre + half).min(1.0)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(values: &[i64]) -> Counts {
        let mut counts = Counts::default();
        values.iter().for_each(|value| counts.add(*value, 1));
        counts
    }

    #[test]
    fn mean_and_median_are_those_of_the_values() {
        let even = counts(&[-3, 5, 5, 9]);
        assert_eq!((even.len(), even.mean(), even.median(), even.min(), even.max()), (4, 4.0, 5.0, -3, 9));
        assert_eq!((counts(&[1, 2]).median(), counts(&[2, 1, 9]).median(), counts(&[]).median()), (1.5, 2.0, 0.0));
    }

    #[test]
    fn percentiles_are_values_by_the_nearest_rank() {
        let ten = counts(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!([50, 89, 90, 91, 100].map(|percent| ten.percentile(percent)), [5, 9, 9, 10, 10]);
        assert_eq!((counts(&[7]).percentile(90), counts(&[]).percentile(90)), (7, 0));
        let wide = Counts([(1, 9 << 50), (2, 1 << 50)].into_iter().collect());
        assert_eq!((wide.percentile(90), wide.percentile(91)), (1, 2));
    }

    #[test]
    fn the_interval_is_wilsons() {
        // Wilson's interval for 8 of 10, to be found in the literature: 49.0 % to 94.3 %.
        let Share { share, interval: [low, high] } = Share::of(&[0, 8, 0], 10);
        assert_eq!(share, 0.8);
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4, "{low} {high}");
        // And for 15 of 50: 19.1 % to 43.8 %.
        let Share { interval: [low, high], .. } = Share::of(&[0, 15], 50);
        assert!((low - 0.1910).abs() < 1e-4 && (high - 0.4375).abs() < 1e-4, "{low} {high}");
        let none = Share::of(&[0, 0], 10);
        assert!(none.interval[0] == 0.0 && (none.interval[1] - 0.2775).abs() < 1e-4, "{none:?}");
    }

    #[test]
    fn shared_wins_count_fractionally_and_narrow_the_interval() {
        let shared = Share::of(&[0, 40, 20], 100);
        let unshared = Share::of(&[0, 50, 0], 100);
        assert_eq!((shared.share, unshared.share), (0.5, 0.5));
        assert!(shared.interval[0] > unshared.interval[0] && shared.interval[1] < unshared.interval[1]);
        assert_eq!(Share::of(&[0, 0, 7], 7).interval, [0.5, 0.5]);
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let ranked = |seat, rank, score| Ranked { seat, rank, score, won: rank == 1 };
        let game = |starting_seat, length, ranking: [Ranked; 2]| Game {
            starting_seat,
            length,
            end: EndReason::Completed,
            ranking: ranking.into(),
        };
        let games = [
            game(0, 7, [ranked(0, 1, 3), ranked(1, 2, 1)]),
            game(1, 9, [ranked(0, 1, 2), ranked(1, 1, 2)]),
            game(1, 4, [ranked(1, 1, 5), ranked(0, 2, 0)]),
        ];
        let tally = |order: &[usize]| {
            let mut tally = Tally::new(2);
            for place in order {
                let mut one = Tally::new(2);
                one.add(&games[*place]);
                tally.merge(one);
            }
            tally
        };
        let all = tally(&[0, 1, 2]);
        assert_eq!(all, tally(&[2, 0, 1]));
        assert_eq!((all.decisions(), &all.starting_seat_wins), (20, &vec![0, 2, 1]));
        assert_eq!((all.seats[0].started, all.seats[0].wins.clone()), (1, vec![0, 1, 1]));
    }
}
