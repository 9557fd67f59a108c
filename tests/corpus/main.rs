//! The fuzz targets on their corpus, and on cheap mutations of it that are the same in every run: what `cargo fuzz` has found
//! stays found, and CI needs no second build with instrumentation for it.
//!
//! The corpus in `fuzz/corpus/` has seeds, `seed-*`, which `TAVOLA_GOLDENS=write` writes anew, and whatever was added since.

#[path = "../common/mod.rs"]
mod common;
mod seeds;
#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tavola::game::Record;
use tavola::http::cursors;
use tavola::rulesets::random::{Random, Stream};
use tavola::rulesets::registry::RulesetId;

/// Inputs longer than this are not mutated: `cargo fuzz` is for them.
const LONGEST: usize = 16_000;

/// Texts that are seldom hit by chance.
const WORDS: [&[u8]; 16] = [
    b"null",
    b"-1",
    b"0",
    b"255",
    b"65536",
    b"18446744073709551616",
    b"1e308",
    b"\"",
    b"{}",
    b"[]",
    b",",
    b"\\u0000",
    b"\xc2\xa0",
    b"\xe2\x80\x8b",
    b"\xff",
    b".",
];

/// An input with one to four changes.
fn mutated(input: &[u8], others: &[&[u8]], choices: &mut Stream) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=choices.below(4) {
        let at = choices.below(bytes.len() as u32 + 1) as usize;
        let length = (choices.below(8) as usize + 1).min(bytes.len() - at);
        match choices.below(8) {
            0..=2 if length > 0 => bytes[at] ^= 1 << choices.below(8),
            3 if length > 0 => bytes[at] = choices.below(256) as u8,
            4 => drop(bytes.drain(at..at + length)),
            5 => drop(bytes.splice(at..at, WORDS[choices.below(WORDS.len() as u32) as usize].to_vec())),
            6 => {
                let again = bytes[at..at + length].to_vec();
                drop(bytes.splice(at..at, again));
            }
            _ => {
                // The end of another input.
                let other = others[choices.below(others.len() as u32) as usize];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[choices.below(other.len() as u32 + 1) as usize..]);
            }
        }
    }
    bytes
}

/// The inputs in a target's corpus, and their files.
fn corpus(name: &str) -> Vec<(Vec<u8>, String)> {
    let folder = common::tests_path("../fuzz/corpus").join(name);
    let entries = fs::read_dir(folder).expect("a corpus; TAVOLA_GOLDENS=write makes one");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus of {name} is empty");
    paths.iter().map(|path| (fs::read(path).expect("a file"), path.display().to_string())).collect()
}

fn run(name: &str, target: fn(&[u8]), mutations: u32) {
    if common::goldens_wanted() {
        seeds::write(&common::tests_path("../fuzz/corpus").join(name), &seeds::of(name));
    }
    let corpus = corpus(name);
    let holds = |input: &[u8], whence: &str| {
        if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
            panic!("{name} fails on {whence}:\nb\"{}\"", input.escape_ascii());
        }
    };
    for (input, path) in &corpus {
        holds(input, path);
    }
    let inputs: Vec<&[u8]> =
        corpus.iter().map(|(input, _)| input.as_slice()).filter(|input| input.len() <= LONGEST).collect();
    let mut choices = Random::new([7; 32]).stream(0);
    for number in 0..mutations {
        let input = inputs[choices.below(inputs.len() as u32) as usize];
        holds(&mutated(input, &inputs, &mut choices), &format!("mutation {number}"));
    }
}

#[test]
fn moves() {
    run("moves", targets::moves::run, 10_000);
}

#[test]
fn records() {
    run("records", targets::records::run, 150);
}

#[test]
fn names() {
    run("names", targets::names::run, 10_000);
}

#[test]
fn places() {
    run("cursors", targets::cursors::run, 10_000);
}

#[test]
fn replay() {
    run("replay", targets::replay::run, 25);
}

#[test]
fn snapshots() {
    run("snapshots", targets::snapshots::run, 300);
}

/// Seeds grow stale when forms change: then nothing behind the first check would be reached any more.
#[test]
fn the_seeds_are_still_read() {
    if common::goldens_wanted() {
        // Others write them at this moment.
        return;
    }
    for (kind, name) in cursors::KINDS.iter().enumerate() {
        let reads = |input: &[u8]| {
            usize::from(input[0]) == kind
                && std::str::from_utf8(&input[1..]).is_ok_and(|text| cursors::rewritten(name, text).is_some())
        };
        assert!(corpus("cursors").iter().any(|(input, _)| reads(input)), "no cursor of {name} is read");
    }
    for ruleset in RulesetId::ALL {
        let verifies = |input: &[u8]| {
            Record::read(input).is_ok_and(|record| record.ruleset == *ruleset && record.verify().is_ok())
        };
        assert!(corpus("records").iter().any(|(input, _)| verifies(input)), "no record of {ruleset:?} verifies");
        let is_move = |input: &[u8]| ruleset.read_move(&input[1..]).is_ok();
        assert!(corpus("moves").iter().any(|(input, _)| is_move(input)), "nothing is a move of {ruleset:?}");
        let is_state = |input: &[u8]| input[0] == 1 && ruleset.read_snapshot(&input[4..]).is_ok();
        assert!(corpus("snapshots").iter().any(|(input, _)| is_state(input)), "nothing is a state of {ruleset:?}");
    }
}
