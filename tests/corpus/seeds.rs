//! The seeds of the corpus: a few good inputs of every kind, from which the rest is made by change.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tavola::game::Record;
use tavola::rulesets::random::Random;
use tavola::rulesets::registry::RulesetId;
use tavola::store::{Filter, Sort, SortKey};

use crate::targets::input::Input;
use crate::targets::table::Kind;
use crate::targets::{moves, replay};

/// Records longer than this are no seeds.
const LONGEST_RECORD: usize = 6_000;

/// The seeds of a target.
pub fn of(name: &str) -> Vec<Vec<u8>> {
    match name {
        "moves" => moves_of_positions(),
        "records" => records(),
        "names" => NAMES.iter().map(|name| name.as_bytes().to_vec()).collect(),
        "cursors" => cursors(),
        "replay" => games(),
        "snapshots" => snapshots(),
        _ => unreachable!("there is no target {name}"),
    }
}

/// Writes the seeds into a folder, in the place of those that are there.
pub fn write(folder: &Path, seeds: &[Vec<u8>]) {
    fs::create_dir_all(folder).expect("a folder for the corpus");
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        if entry.file_name().to_string_lossy().starts_with("seed-") {
            fs::remove_file(entry.path()).expect("a seed is removed");
        }
    }
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:02}")), seed).expect("a seed is written");
    }
}

/// Of some positions the first move of every type.
fn moves_of_positions() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (ruleset, tables) in moves::TABLES.iter().enumerate() {
        for (number, (state, _)) in tables.iter().enumerate().step_by(3) {
            let mut types = BTreeSet::new();
            for mv in state.to_act().map(|seat| state.legal_moves(seat)).unwrap_or_default() {
                let json = serde_json::to_value(&mv).expect("a move is JSON");
                let fields = json.as_object().map_or(0, serde_json::Map::len);
                if types.insert((json["type"].to_string(), fields)) {
                    let choice = (number * moves::TABLES.len() + ruleset) as u8;
                    seeds.push([&[choice], json.to_string().as_bytes()].concat());
                }
            }
        }
    }
    seeds
}

/// How many kinds of tables a ruleset has.
fn kinds(ruleset: u8) -> u8 {
    // They come round again.
    let kind = |number: u8| Kind::chosen(&mut Input(&[ruleset, number]));
    let first = kind(0);
    let again = |kind: Kind| kind.options == first.options && kind.seats == first.seats;
    (1..255).find(|number| again(kind(*number))).unwrap_or(1)
}

/// A game of a kind of table: which chance, and bytes that choose, mostly legal moves.
fn game(ruleset: u8, kind: u8, length: usize) -> Vec<u8> {
    let mut choices = Random::new([ruleset; 32]).stream(kind.into());
    let mut bytes = vec![ruleset, kind, 0, kind];
    bytes.extend((0..length).map(|place| match choices.below(256) as u8 {
        // Every other byte says in which way something is tried.
        way if place % 2 == 0 && choices.below(8) != 0 => way | 8,
        byte => byte,
    }));
    bytes
}

/// A game of every kind of table, most of them short.
fn games() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for ruleset in 0..RulesetId::ALL.len() as u8 {
        seeds.extend((0..kinds(ruleset)).step_by(3).map(|kind| game(ruleset, kind, 120)));
        seeds.push(game(ruleset, 1, 900));
    }
    seeds
}

/// Short games to their end.
fn records() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for ruleset in 0..RulesetId::ALL.len() as u8 {
        for kind in 0..kinds(ruleset) {
            // Played on, or given up by the first to move after a while.
            let given_up = |moves: usize| {
                let moves = [15, 1].repeat(moves);
                let resign: Vec<u8> = (0..8).flat_map(|seat| [seat << 4 | 4, 0]).collect();
                [&[ruleset, kind, 0, kind], moves.as_slice(), resign.as_slice()].concat()
            };
            let games = [game(ruleset, kind, 1_200), given_up(4)];
            let records = games.iter().filter_map(|game| replay::play(game));
            let texts = records.map(|record| serde_json::to_vec(&record).expect("a record is JSON"));
            seeds.extend(texts.filter(|text| text.len() <= LONGEST_RECORD).take(1));
        }
    }
    let rated = seeds.first().map(|text| rated(text));
    seeds.extend(rated);
    seeds
}

/// The record as one of a rated game; the ratings after it are not those that follow, so it does not verify.
fn rated(text: &[u8]) -> Vec<u8> {
    let mut json: Value = serde_json::from_slice(text).expect("a record is JSON");
    let seats = json["seats"].as_array().map_or(0, Vec::len);
    let rating = serde_json::json!({ "rating": 25.0, "deviation": 25.0 / 3.0 });
    let seat = |seat: usize| serde_json::json!({ "seat": seat, "before": rating, "after": rating });
    json["rated"] = true.into();
    json["rating"] =
        serde_json::json!({ "pool": "human", "number": 1, "seats": (0..seats).map(seat).collect::<Vec<_>>() });
    let mut record = Record::read(json.to_string().as_bytes()).expect("a record");
    record.digest = record.compute_digest();
    serde_json::to_vec(&record).expect("a record is JSON")
}

/// Texts of places, each after the number of its kind.
fn cursors() -> Vec<Vec<u8>> {
    let print = |list: &str| {
        let digest: [u8; 32] = Sha256::digest(list).into();
        hex::encode(&digest[..8])
    };
    let games = print(&format!("{:?} {:?}", Filter::default(), Sort { key: SortKey::LastMove, descending: true }));
    let ratings = print("ratings 00000000-0000-0000-0000-000000000000 None");
    let (id, micros) = ("0190c0de000070008000000000000000", "0006000000000000");
    let never = "7fffffffffffffff";
    let texts: [(u8, String); 14] = [
        (0, format!("{games}{micros}{id}")),
        (0, format!("{games}{never}{id}")),
        (1, format!("{id}{micros}")),
        (1, format!("{id}{never}")),
        (2, format!("{micros}{id}")),
        (3, format!("{ratings}0000000000000007")),
        (4, format!("{ratings}4039000000000000{id}0000000700000003")),
        (5, "17".to_owned()),
        (5, "17.0".to_owned()),
        (5, "2147483647.32767".to_owned()),
        (6, "000000000000.1700000000000000.750:750:".to_owned()),
        (6, "000000000000.1700000000000000.750:760:751,755".to_owned()),
        (6, format!("000000000000.1700000000000000.750:750:.760:760:.1700000000000001.{id}.17.0")),
        (6, format!("000000000000.1700000000000000.750:750:.760:760:.1700000000000001.{}.-1.-1", "0".repeat(32))),
    ];
    texts.into_iter().map(|(kind, text)| [&[kind], text.as_bytes()].concat()).collect()
}

/// Snapshots with a few bytes damaged, and snapshots as they are.
fn snapshots() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for ruleset in 0..RulesetId::ALL.len() as u8 {
        for kind in (0..kinds(ruleset)).step_by(4) {
            let plies = 5 * kind;
            seeds.push(vec![0, ruleset, kind, kind, plies, 0, 20, 1, 0, kind, 0xFF]);
        }
        for kind in [0, 1] {
            let random = Random::new([kind; 32]);
            let state = Kind::chosen(&mut Input(&[ruleset, kind])).deal(&random);
            seeds.push([&[1, ruleset, kind, kind], state.snapshot().as_slice()].concat());
        }
    }
    seeds
}

const NAMES: [&str; 24] = [
    "Ada",
    "  Ame\u{301}lie ",
    "Ａda",
    "Ada\u{a0}B",
    "ЁЖИК в тумане",
    "abcdefghijklmnopqrstuvwxyz 012345",
    "deleted-1",
    "Deleted-0190c0de",
    "\u{130}stanbul",
    "\u{df}tra\u{df}e",
    "\u{1e9e}",
    "\u{3a3}\u{3c2}",
    "\u{fdfa}",
    "\u{b4}",
    "\u{2126}\u{212a}\u{212b}",
    "\u{1f600}",
    "a\u{200b}b",
    "a\u{fe0f}",
    "\u{3164}",
    "\u{e9}\u{300}\u{301}\u{302}",
    "\u{ac00}\u{1100}\u{1161}",
    "resigned",
    "manage",
    "bot",
];
