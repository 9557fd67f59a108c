//! How many sequences of n moves a game has from a fixed deal, and how many different positions they lead to.
//!
//! `counts/<slug>.txt`: one line for each number of seats, then `n:sequences/positions`. A move too many or too
//! few anywhere in the first plies changes a number. A missing file or line fails the run; `TAVOLA_GOLDENS=write` writes
//! the files anew.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use common::{goldens_wanted, tests_path};
use tavola::rulesets::random::Random;
use tavola::rulesets::registry::{AnyState, RulesetId};

/// A ply more is counted while about so many sequences are to be expected: for the smallest number of seats.
const SEQUENCES: u64 = 20_000;
/// And for every other one.
const FEWER_SEQUENCES: u64 = 2_000;
/// Most plies.
const PLIES: usize = 4;

/// Sequences and positions after each number of plies. Positions are kept by snapshot, with the number of sequences
/// that lead there.
fn counts(state: AnyState, random: &Random, most: u64) -> String {
    let mut positions = BTreeMap::from([(state.snapshot(), (state, 1u64))]);
    let (mut line, mut fewer) = (String::new(), 1);
    for ply in 0..=PLIES {
        let sequences: u64 = positions.values().map(|(_, ways)| ways).sum();
        write!(line, " {ply}:{sequences}/{}", positions.len()).expect("a string takes everything");
        // As if each sequence went on in as many ways as the last ply had.
        if sequences * sequences.div_ceil(fewer) > most {
            break;
        }
        fewer = sequences.max(1);
        let mut next = BTreeMap::new();
        for (state, ways) in positions.values() {
            let Some(seat) = state.to_act() else { continue };
            for mv in state.legal_moves(seat) {
                let mut after = state.clone();
                after.apply(seat, &mv, random).expect("a listed move is accepted");
                next.entry(after.snapshot()).or_insert((after, 0)).1 += ways;
            }
        }
        positions = next;
    }
    line
}

/// All lines of a ruleset: a deal for every number of seats, with default options; the seed is that number, repeated.
fn lines(id: RulesetId) -> String {
    let mut lines = String::new();
    for seats in id.meta().seats.clone() {
        let random = Random::new([seats; 32]);
        let options = id.options(&serde_json::Map::new(), seats).expect("the default options are valid");
        let most = if seats == *id.meta().seats.start() { SEQUENCES } else { FEWER_SEQUENCES };
        let counted = counts(options.deal(seats, &random), &random, most);
        writeln!(lines, "seats={seats}{counted}").expect("a string takes everything");
    }
    lines
}

#[test]
fn as_many_positions_as_ever() {
    for &id in RulesetId::ALL {
        let path = tests_path("counts").join(id.meta().slug).with_extension("txt");
        let found = lines(id);
        if goldens_wanted() {
            fs::create_dir_all(tests_path("counts")).expect("a folder can be made");
            fs::write(&path, &found).expect("a golden can be written");
        }
        let expected = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}: review what `make goldens` writes", path.display()));
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{}", id.meta().slug);
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{}", id.meta().slug);
    }
}
