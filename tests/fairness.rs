//! Commitment, game seed and lot of every fairness vector. The deals are checked in each ruleset's own tests.

mod common;

use common::{hex, tests_path, unhex};
use serde::Deserialize;
use tavola::rulesets::random::{Random, commitment, game_seed};
use tavola::rulesets::registry::RulesetId;

#[derive(Deserialize)]
struct Vector {
    server_seed: String,
    game_id: String,
    ruleset: String,
    entropy: Vec<String>,
    seats: u8,
    commitment: String,
    game_seed: String,
    lot: u8,
}

#[test]
fn every_vector_holds() {
    let text = std::fs::read_to_string(tests_path("fairness-vectors.json")).expect("the vectors are there");
    let vectors: Vec<Vector> = serde_json::from_str(&text).expect("the vectors are JSON");
    for vector in &vectors {
        let server_seed = unhex(&vector.server_seed);
        assert_eq!(hex(&commitment(&server_seed)), vector.commitment);
        let entropies = vector.entropy.iter().map(String::as_str);
        let seed = game_seed(&server_seed, &vector.game_id, &vector.ruleset, entropies);
        assert_eq!(hex(&seed), vector.game_seed, "{} {:?}", vector.ruleset, vector.entropy);
        assert_eq!(Random::new(seed).lot(vector.seats), vector.lot, "{}", vector.ruleset);
    }
    for id in RulesetId::ALL {
        assert!(vectors.iter().any(|vector| vector.ruleset == id.meta().slug), "{} has no vector", id.meta().slug);
    }
}
