//! How the result looks, for people and as JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::statistics::{Counts, Share, Tally};
use crate::config::Simulation;
use crate::rulesets::registry::RulesetId;
use crate::rulesets::{EndReason, Seat};

/// Most lines in which people are shown how often each score occurred; more scores are put together.
const LINES: i64 = 16;

/// What many games have shown. Follows from the settings alone.
#[derive(Debug, Serialize)]
pub struct Report {
    ruleset: RulesetId,
    rules_version: u32,
    seat_count: u8,
    /// In force.
    options: Map<String, Value>,
    seed: u64,
    games: u64,
    /// Moves made in all games together.
    decisions: u64,
    /// Moves made in a game.
    length: Summary,
    /// Games by the reason of their end, most frequent first.
    end_reasons: Map<String, Value>,
    starting_seat: StartingSeat,
    /// By seat.
    seats: Vec<SeatReport>,
}

/// Mean and range.
#[derive(Debug, Serialize)]
struct Summary {
    mean: f64,
    median: f64,
    min: i64,
    max: i64,
}

/// How the seat that makes the first move fares.
#[derive(Debug, Serialize)]
struct StartingSeat {
    /// Shared wins count fractionally. Alone at the table: how often the game's own goal is reached.
    #[serde(flatten)]
    wins: Share,
    confidence: f64,
    method: &'static str,
    /// What each seat would win if all were alike; null for one who sits alone.
    fair_share: Option<f64>,
}

/// How a seat fares.
#[derive(Debug, Serialize)]
struct SeatReport {
    seat: Seat,
    /// Games in which it made the first move.
    started: u64,
    wins: Share,
    score: Score,
}

/// Scores of a seat.
#[derive(Debug, Serialize)]
struct Score {
    #[serde(flatten)]
    summary: Summary,
    /// Games by score.
    distribution: Counts,
}

impl Summary {
    fn of(counts: &Counts) -> Self {
        Self { mean: counts.mean(), median: counts.median(), min: counts.min(), max: counts.max() }
    }
}

impl Report {
    /// Makes all figures. `options` are those in force.
    pub fn new(settings: &Simulation, seats: u8, options: Map<String, Value>, tally: &Tally) -> Self {
        let mut ends: Vec<(EndReason, u64)> = tally.ends.iter().map(|(end, games)| (*end, *games)).collect();
        ends.sort_by_key(|(end, games)| (std::cmp::Reverse(*games), *end));
        let name = |end| match serde_json::to_value(end) {
            Ok(Value::String(name)) => name,
            other => unreachable!("an end reason is written as its name: {other:?}"),
        };
        let seat_report = |(seat, own): (Seat, &super::statistics::SeatTally)| SeatReport {
            seat,
            started: own.started,
            wins: Share::of(&own.wins, settings.games),
            score: Score { summary: Summary::of(&own.scores), distribution: own.scores.clone() },
        };
        Self {
            ruleset: settings.ruleset,
            rules_version: settings.ruleset.meta().rules_version,
            seat_count: seats,
            options,
            seed: settings.seed,
            games: settings.games,
            decisions: tally.decisions(),
            length: Summary::of(&tally.lengths),
            end_reasons: ends.into_iter().map(|(end, games)| (name(end), games.into())).collect(),
            starting_seat: StartingSeat {
                wins: Share::of(&tally.starting_seat_wins, settings.games),
                confidence: 0.95,
                method: "wilson",
                fair_share: (seats > 1).then(|| 1.0 / f64::from(seats)),
            },
            seats: (0..).zip(&tally.seats).map(seat_report).collect(),
        }
    }

    /// How often each score occurred, a column for each seat, neighbouring scores together if there are many.
    fn write_distribution(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scores = || self.seats.iter().map(|seat| &seat.score);
        let least = scores().map(|score| score.summary.min).min().unwrap_or_default();
        let most = scores().map(|score| score.summary.max).max().unwrap_or_default();
        let width = (most - least) / LINES + 1;
        for from in (least..=most).step_by(usize::try_from(width).unwrap_or(1)) {
            let to = most.min(from + width - 1);
            let label = if from == to { from.to_string() } else { format!("{from} to {to}") };
            write!(f, "  {label:<12}")?;
            for score in scores() {
                let games: u64 = score.distribution.0.range(from..=to).map(|(_, games)| games).sum();
                write!(f, "{:>10}", percent(games as f64 / self.games as f64))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    /// A line of the table by seats.
    fn write_row<T: ToString>(
        &self,
        f: &mut fmt::Formatter<'_>,
        label: &str,
        cell: impl Fn(&SeatReport) -> T,
    ) -> fmt::Result {
        write!(f, "{label:<14}")?;
        self.seats.iter().try_for_each(|seat| write!(f, "{:>10}", cell(seat).to_string()))?;
        writeln!(f)
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seat_count, seed, games, length, .. } = self;
        let slug = self.ruleset.meta().slug;
        writeln!(f, "{slug}: {games} games, {seat_count} random players, seed {seed}")?;
        writeln!(f, "{:<14}{}", "options", Value::from(self.options.clone()))?;
        write!(f, "{:<14}mean {:.1}, median {:.1}, ", "moves a game", length.mean, length.median)?;
        writeln!(f, "{} to {}, {} in all", length.min, length.max, self.decisions)?;
        let ends = self.end_reasons.iter().map(|(name, count)| {
            let share = count.as_f64().unwrap_or_default() / *games as f64;
            format!("{name} {}", percent(share))
        });
        writeln!(f, "{:<14}{}", "ended", ends.collect::<Vec<_>>().join(", "))?;
        let StartingSeat { wins: Share { share, interval: [low, high] }, fair_share, .. } = &self.starting_seat;
        let subject = if fair_share.is_some() { "first to move" } else { "goal reached" };
        write!(f, "{subject:<14}wins {}; 95 % interval {} to {}", percent(*share), percent(*low), percent(*high))?;
        match fair_share {
            Some(fair) => writeln!(f, " (Wilson); an equal share is {}", percent(*fair))?,
            None => writeln!(f, " (Wilson)")?,
        }
        writeln!(f)?;
        self.write_row(f, "", |seat| format!("seat {}", seat.seat))?;
        self.write_row(f, "started", |seat| seat.started)?;
        self.write_row(f, "won", |seat| percent(seat.wins.share))?;
        self.write_row(f, "score, mean", |seat| format!("{:.2}", seat.score.summary.mean))?;
        self.write_row(f, "score, least", |seat| seat.score.summary.min)?;
        self.write_row(f, "score, most", |seat| seat.score.summary.max)?;
        self.write_distribution(f)
    }
}

/// How long it took: what another run will not repeat.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    threads: usize,
    seconds: f64,
    decisions_per_second: f64,
}

impl Speed {
    /// Of so many decisions, on all threads together.
    pub fn new(taken: Duration, decisions: u64, threads: usize) -> Self {
        let seconds = taken.as_secs_f64();
        Self { threads, seconds, decisions_per_second: (decisions as f64 / seconds.max(1e-9)).round() }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, seconds, decisions_per_second } = self;
        let threads = if *threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        write!(f, "{decisions_per_second:.0} decisions a second, {seconds:.2} s on {threads}")
    }
}

/// A report with the time it took, the only part that two runs differ in.
#[derive(Debug, Serialize)]
pub struct Timed<'a> {
    #[serde(flatten)]
    pub report: &'a Report,
    pub speed: Speed,
}
