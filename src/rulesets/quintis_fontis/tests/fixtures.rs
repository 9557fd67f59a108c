//! The fixtures: deals to the bit (fairness 3–9), and a complete game of an independent implementation.

use serde_json::{Value, json};

use super::super::*;
use super::{Q, moves_of};
use crate::rulesets::cards::Card;
use crate::rulesets::random;

/// A file under `tests/`, read when this is compiled: the layer of rules reads none.
macro_rules! fixture {
    ($path:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/", $path))).unwrap()
    };
}

/// The seed of the game that a fixture describes.
fn seeded(fixture: &Value, entropies: &Value) -> Random {
    let hex = fixture["server_seed"].as_str().unwrap();
    let seed = std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap());
    let entropies = entropies.as_array().unwrap().iter().map(|entropy| entropy.as_str().unwrap());
    Random::new(random::game_seed(&seed, fixture["game_id"].as_str().unwrap(), Q::META.slug, entropies))
}

/// The value with every list whose order means nothing sorted.
fn orderless(mut value: Value) -> Value {
    fn sort(list: &mut Value) {
        if let Value::Array(items) = list {
            items.sort_by_key(Value::to_string);
        }
    }
    sort(&mut value["field"]);
    for seat in value["seats"].as_array_mut().unwrap() {
        sort(&mut seat["hand"]);
        sort(&mut seat["keys"]);
    }
    value
}

#[test]
fn fairness_vectors_are_dealt_to_the_card() {
    let vectors = fixture!("fairness-vectors.json");
    let own = vectors.as_array().unwrap().iter().filter(|vector| vector["ruleset"] == Q::META.slug);
    let mut count = 0;
    for vector in own {
        let seats = vector["seats"].as_u64().unwrap() as u8;
        let random = seeded(vector, &vector["entropy"]);
        let state = Q::setup(&Q::resolve(&Options::default(), seats).unwrap(), seats, &random);
        assert_eq!(json!(state.turn), vector["lot"]);
        assert_eq!(json!(state.deck.iter().rev().collect::<Vec<_>>()), vector["deck"]);
        for (player, dealt) in state.players.iter().zip(vector["seats_dealt"].as_array().unwrap()) {
            let mut dealt: Vec<Card> = serde_json::from_value(dealt["hand"].clone()).unwrap();
            dealt.sort();
            assert_eq!(player.hand.cards().collect::<Vec<_>>(), dealt);
        }
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn the_playthrough_is_replayed_to_the_end() {
    let game = fixture!("playthroughs/quintis-fontis/completed.json");
    let seats = game["seats"].as_u64().unwrap() as u8;
    let options = serde_json::from_value::<Options>(game["options"].clone()).unwrap();
    assert_eq!(Q::resolve(&Options::default(), seats).unwrap(), options);
    let random = seeded(&game, &game["entropies"]);
    let mut state = Q::setup(&options, seats, &random);
    assert_eq!(json!(state.turn), game["lot"]);

    let moves = game["moves"].as_array().unwrap();
    let mut checkpoints = game["checkpoints"].as_array().unwrap().iter().peekable();
    for played in 0..=moves.len() {
        if let Some(checkpoint) = checkpoints.next_if(|checkpoint| checkpoint["after"] == played) {
            let shown = |viewer| {
                let mut shown = serde_json::to_value(Q::view(&state, viewer)).unwrap();
                shown["ruleset"] = Q::META.slug.into();
                orderless(shown)
            };
            assert_eq!(json!(state.to_act()), checkpoint["to_move"]);
            assert_eq!(shown(Viewer::Everything), orderless(checkpoint["state"].clone()), "after {played}");
            assert_eq!(shown(Viewer::Spectator), orderless(checkpoint["spectator_state"].clone()), "after {played}");
            let mut listed: Vec<Move> = serde_json::from_value(checkpoint["legal_moves"].clone()).unwrap();
            listed.sort();
            assert_eq!(state.to_act().map_or(Vec::new(), |seat| moves_of(&state, seat)), listed);
        }
        let Some(entry) = moves.get(played) else { break };
        let seat = entry["seat"].as_u64().unwrap() as u8;
        assert_eq!(json!(moves_of(&state, seat).len()), entry["legal_moves"], "move {}", entry["number"]);
        let mv = serde_json::from_value(entry["move"].clone()).unwrap();
        Q::apply(&mut state, seat, &mv, &random, &mut Vec::new()).unwrap();
    }
    assert!(checkpoints.next().is_none());
    assert_eq!(json!(state.end()), game["outcome"]["reason"]);
    assert_eq!(json!(Q::ranking(&state)), game["outcome"]["ranking"]);
}
