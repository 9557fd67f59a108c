//! Complete games, one at least for every way in which a ruleset's games end, replayed and compared at their checkpoints.
//!
//! `playthroughs/<slug>/<end reason>.json`; `completed.json` comes from an independent implementation of the rules. A
//! missing file fails the run; with `TAVOLA_GOLDENS=write` it is written, from the first random game that ends so.

mod common;

use std::fs;

use common::{goldens_wanted, hex, tests_path, unhex};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tavola::rulesets::random::{Random, commitment, game_seed};
use tavola::rulesets::registry::{AnyState, RulesetId};
use tavola::rulesets::{EndReason, Seat, Viewer};

const FORMAT: &str = "tavola-playthrough/1";

/// Lists whose order means nothing.
const UNORDERED: [&str; 10] =
    ["hand", "keys", "available", "free_spirits", "escaped", "spirits", "cards", "field", "sigil", "legal_moves"];

/// A whole game.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Playthrough {
    format: String,
    ruleset: RulesetId,
    seats: u8,
    /// Those in force, defaults written out.
    options: Map<String, Value>,
    server_seed: String,
    commitment: String,
    game_id: String,
    /// By seat.
    entropies: Vec<String>,
    lot: Seat,
    moves: Vec<Played>,
    checkpoints: Vec<Checkpoint>,
    outcome: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Played {
    number: usize,
    seat: Seat,
    /// How many the seat had to choose from.
    legal_moves: usize,
    r#move: Value,
}

/// The game after so many moves.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checkpoint {
    after: usize,
    to_move: Option<Seat>,
    state: Value,
    spectator_state: Value,
    legal_moves: Vec<Value>,
}

impl Playthrough {
    fn random(&self) -> Random {
        let entropies = self.entropies.iter().map(String::as_str);
        Random::new(game_seed(&unhex(&self.server_seed), &self.game_id, self.ruleset.meta().slug, entropies))
    }

    /// Plays it all again.
    fn replay(&self) {
        assert_eq!(self.format, FORMAT);
        assert_eq!(self.entropies.len(), usize::from(self.seats));
        assert_eq!(hex(&commitment(&unhex(&self.server_seed))), self.commitment);
        let random = self.random();
        assert_eq!(random.lot(self.seats), self.lot);
        let options = self.ruleset.options(&self.options, self.seats).expect("the options are valid");
        assert_eq!(value(&options), Value::Object(self.options.clone()), "the options in force");

        let mut state = options.deal(self.seats, &random);
        let mut checkpoints = self.checkpoints.iter().peekable();
        for done in 0..=self.moves.len() {
            if let Some(expected) = checkpoints.next_if(|checkpoint| checkpoint.after == done) {
                compare(&value(&Checkpoint::of(&state, done)), &value(expected), &format!("after {done} moves"));
            }
            let Some(next) = self.moves.get(done) else { break };
            let what = format!("move {}", next.number);
            assert_eq!(next.number, done + 1);
            assert_eq!(state.to_act(), Some(next.seat), "{what}");
            let listed = state.legal_moves(next.seat);
            assert_eq!(listed.len(), next.legal_moves, "legal moves before {what}");
            let mv = self.ruleset.read_move(next.r#move.to_string().as_bytes()).expect("a move");
            assert!(listed.contains(&mv), "{what} is not listed");
            state.apply(next.seat, &mv, &random).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
        }
        assert!(checkpoints.next().is_none(), "checkpoints in order, none after the end");
        assert_eq!(state.to_act(), None, "the game is over");
        compare(&value(&state.outcome()), &self.outcome, "outcome");
    }

    /// The first random game that ends so.
    fn find(ruleset: RulesetId, reason: EndReason) -> Playthrough {
        (0..=255).find_map(|number| Playthrough::random_game(ruleset, reason, number)).expect("games can end so")
    }

    /// A random game, if it ends for that reason.
    fn random_game(ruleset: RulesetId, reason: EndReason, number: u8) -> Option<Playthrough> {
        let server_seed = commitment(&[number; 32]);
        let seats = *ruleset.meta().seats.end();
        let given = if reason == EndReason::TurnLimit { json!({ "turn_limit": 24 }) } else { json!({}) };
        let given = serde_json::from_value(given).expect("an object");
        let options = ruleset.options(&given, seats).expect("the options are valid");
        let mut game = Playthrough {
            format: FORMAT.into(),
            ruleset,
            seats,
            options: serde_json::from_value(value(&options)).expect("options are an object"),
            server_seed: hex(&server_seed),
            commitment: hex(&commitment(&server_seed)),
            game_id: format!("0190c0de-0000-7000-8000-0000000000{number:02x}"),
            entropies: (0..seats).map(|seat| if seat == 0 { String::new() } else { format!("место {seat}") }).collect(),
            lot: 0,
            moves: Vec::new(),
            checkpoints: Vec::new(),
            outcome: Value::Null,
        };
        let random = game.random();
        game.lot = random.lot(seats);

        let mut choices = random.stream(u64::MAX);
        let mut states = vec![options.deal(seats, &random)];
        while let Some(seat) = states[states.len() - 1].to_act() {
            let mut state = states[states.len() - 1].clone();
            let listed = state.legal_moves(seat);
            let mv = &listed[choices.below(listed.len() as u32) as usize];
            state.apply(seat, mv, &random).expect("a listed move is accepted");
            states.push(state);
            game.moves.push(Played { number: states.len() - 1, seat, legal_moves: listed.len(), r#move: value(mv) });
        }
        let outcome = states[states.len() - 1].outcome().expect("the game is over");
        game.outcome = value(&outcome);
        let last = game.moves.len();
        let mut places = vec![0, last / 4, last / 2, 3 * last / 4, last.saturating_sub(1), last];
        places.dedup();
        game.checkpoints = places.into_iter().map(|after| Checkpoint::of(&states[after], after)).collect();
        (outcome.reason == reason).then_some(game)
    }

    /// JSON with a line for each field, move and checkpoint.
    fn text(&self) -> String {
        let lines = |items: Vec<String>| format!("[\n  {}\n ]", items.join(",\n  "));
        let fields = [
            ("format", json_text(&self.format)),
            ("ruleset", json_text(&self.ruleset)),
            ("seats", json_text(&self.seats)),
            ("options", json_text(&self.options)),
            ("server_seed", json_text(&self.server_seed)),
            ("commitment", json_text(&self.commitment)),
            ("game_id", json_text(&self.game_id)),
            ("entropies", json_text(&self.entropies)),
            ("lot", json_text(&self.lot)),
            ("moves", lines(self.moves.iter().map(json_text).collect())),
            ("checkpoints", lines(self.checkpoints.iter().map(json_text).collect())),
            ("outcome", json_text(&self.outcome)),
        ];
        let fields: Vec<String> = fields.iter().map(|(name, text)| format!(" \"{name}\": {text}")).collect();
        format!("{{\n{}\n}}\n", fields.join(",\n"))
    }
}

impl Checkpoint {
    fn of(state: &AnyState, after: usize) -> Checkpoint {
        let to_move = state.to_act();
        Checkpoint {
            after,
            to_move,
            state: value(&state.view(Viewer::Everything)),
            spectator_state: value(&state.view(Viewer::Spectator)),
            legal_moves: to_move.map_or(Vec::new(), |seat| state.legal_moves(seat).iter().map(value).collect()),
        }
    }
}

fn value(wire: &impl Serialize) -> Value {
    serde_json::to_value(wire).expect("wire types are JSON")
}

fn json_text(wire: &impl Serialize) -> String {
    serde_json::to_string(wire).expect("wire types are JSON")
}

/// Sorts the lists whose order means nothing.
fn put_in_order(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                put_in_order(field);
                if let (true, Value::Array(items)) = (UNORDERED.contains(&name.as_str()), field) {
                    items.sort_by_cached_key(sort_key);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(put_in_order),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The same for objects that only differ in the order of their fields.
fn sort_key(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name}:{}", sort_key(field))).collect();
            fields.sort();
            fields.join(",")
        }
        Value::Array(items) => items.iter().map(sort_key).collect::<Vec<_>>().join(","),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Fails at the first field that differs.
fn compare(found: &Value, expected: &Value, place: &str) {
    let (mut found, mut expected) = (found.clone(), expected.clone());
    put_in_order(&mut found);
    put_in_order(&mut expected);
    compare_in_order(&found, &expected, place);
}

fn compare_in_order(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) if a.keys().all(|name| b.contains_key(name)) && a.len() == b.len() => {
            a.iter().for_each(|(name, field)| compare_in_order(field, &b[name], &format!("{place}/{name}")));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            (0..)
                .zip(a.iter().zip(b))
                .for_each(|(i, (a, b)): (usize, _)| compare_in_order(a, b, &format!("{place}/{i}")));
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}

#[test]
fn every_end_reason_has_a_playthrough_and_all_replay() {
    for &ruleset in RulesetId::ALL {
        let folder = tests_path("playthroughs").join(ruleset.meta().slug);
        for &reason in ruleset.meta().end_reasons {
            let name = value(&reason).as_str().expect("a word").to_owned();
            let path = folder.join(format!("{name}.json"));
            if !path.exists() && goldens_wanted() {
                fs::create_dir_all(&folder).expect("a folder can be made");
                fs::write(&path, Playthrough::find(ruleset, reason).text()).expect("a golden can be written");
            }
            assert!(path.exists(), "{} is missing: review what `make goldens` writes", path.display());
        }
        for entry in fs::read_dir(&folder).expect("the folder of playthroughs") {
            let path = entry.expect("a folder entry").path();
            println!("{}", path.display());
            let text = fs::read_to_string(&path).expect("a playthrough can be read");
            let game: Playthrough = serde_json::from_str(&text).expect("a playthrough is JSON");
            assert_eq!(game.ruleset, ruleset);
            // A file may tell one story of several: `completed-by-cascade.json`.
            let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            let reason = game.outcome["reason"].as_str().expect("a reason");
            assert!(stem == reason || stem.starts_with(&format!("{reason}-")), "{stem}: the game ended by {reason}");
            game.replay();
        }
    }
}

#[test]
fn a_difference_is_found() {
    let one = json!({ "hand": ["b", "a"], "discard": ["x", "y"] });
    compare(&one, &json!({ "discard": ["x", "y"], "hand": ["a", "b"] }), "in another order");
    let other = json!({ "hand": ["a", "b"], "discard": ["y", "x"] });
    assert!(std::panic::catch_unwind(|| compare(&one, &other, "")).is_err());
}
