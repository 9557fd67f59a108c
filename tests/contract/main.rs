//! The universal laws: what holds in every ruleset, played over every registered one, every number of seats, several
//! option sets and many seeds.
//!
//! No ruleset is named but in `options`, the table of option sets. `TAVOLA_LAW_GAMES` sets the number of random games of
//! each ruleset (default [`GAMES`]). A broken law is shrunk to a short list of moves; put the line that it prints into
//! `kept.jsonl`, and it is played first ever after.

mod case;
mod facts;
mod laws;
mod options;
mod refusals;
mod secrecy;
mod snapshots;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tavola::rulesets::registry::RulesetId;
use tavola::with_ruleset;

use case::Case;
use laws::Seen;

/// Random games of each ruleset where `TAVOLA_LAW_GAMES` does not say otherwise: enough for every combination of seats
/// and options, and few enough for the everyday run.
const GAMES: u64 = 24;

fn games() -> u64 {
    std::env::var("TAVOLA_LAW_GAMES").map_or(GAMES, |n| n.parse().expect("TAVOLA_LAW_GAMES is a number"))
}

/// Plays games `0..games` of a ruleset on all cores. Game `i` takes the `i`-th combination of options and seats, round
/// and round.
fn play_many(id: RulesetId, games: u64) -> Seen {
    let combinations = options::combinations(id);
    let (next, seen) = (AtomicU64::new(0), Mutex::new(Seen::default()));
    let worker = || {
        let mut own = Seen::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= games {
                break;
            }
            let (options, seats) = combinations[number as usize % combinations.len()].clone();
            let case = Case { ruleset: id, options, seats, seed: number, choices: None };
            case.must_hold(&mut own);
        }
        seen.lock().unwrap().add(own);
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    seen.into_inner().unwrap()
}

#[test]
fn no_random_game_breaks_a_law() {
    for &id in RulesetId::ALL {
        let combinations = options::combinations(id).len() as u64;
        let seen = play_many(id, games().max(combinations));
        println!("{}: {seen}", id.meta().slug);
        seen.check(id.meta());
    }
}

#[test]
fn kept_failures_hold() {
    for line in include_str!("kept.jsonl").lines() {
        Case::from_line(line).must_hold(&mut Seen::default());
    }
}

/// The shrinker must work before it is needed.
#[test]
fn a_broken_law_is_shrunk_to_a_short_list_of_moves() {
    let &id = RulesetId::ALL.first().expect("there is a ruleset");
    let case = Case { ruleset: id, options: "{}".into(), seats: *id.meta().seats.end(), seed: 1, choices: None };
    // A law that breaks as soon as five moves have been made, three of them not the first in their list.
    let breaks = |choices: &[u32]| choices.len() >= 5 && choices.iter().filter(|choice| **choice > 0).count() >= 3;
    let long: Vec<u32> = (0..60).collect();
    assert_eq!(case::shrink(long, breaks).len(), 5);
    with_ruleset!(id, R => assert!(!case.told::<R>(&[0, 1]).is_empty()));
}
