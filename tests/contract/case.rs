//! One game of the laws: where it starts, which moves are chosen, and how a failing one is made short.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use tavola::rulesets::Ruleset;
use tavola::rulesets::random::Random;
use tavola::rulesets::registry::RulesetId;
use tavola::with_ruleset;

use crate::laws::{Seen, Table};

/// No game may be longer, whatever its options.
const ENDLESS: usize = 50_000;

/// A game of the laws.
#[derive(Clone)]
pub struct Case {
    pub ruleset: RulesetId,
    /// As a client sends them.
    pub options: String,
    pub seats: u8,
    /// Decides the deal and, unless `choices` does, the moves.
    pub seed: u64,
    /// Which of the legal moves is made at every ply (modulo their number), and then no more; none: random ones to the end.
    pub choices: Option<Vec<u32>>,
}

impl Case {
    /// The chance of the game itself.
    pub fn random(&self) -> Random {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        Random::new(seed)
    }

    /// The chance of the tester at a ply, far from the streams that games use.
    pub fn tester(&self) -> Random {
        let mut seed = [0xA5; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        Random::new(seed)
    }

    /// Plays the game and fails the test if a law breaks, telling the shortest list of moves that breaks one.
    pub fn must_hold(&self, seen: &mut Seen) {
        with_ruleset!(self.ruleset, R => self.must_hold_in::<R>(seen));
    }

    fn must_hold_in<R: Ruleset>(&self, seen: &mut Seen) {
        let mut made = Vec::new();
        let Err(law) = self.play::<R>(&mut made, seen) else { return };
        let breaks = |choices: &[u32]| {
            let shorter = Case { choices: Some(choices.to_vec()), ..self.clone() };
            shorter.play::<R>(&mut Vec::new(), &mut Seen::default()).is_err()
        };
        let short = if breaks(&made) { shrink(made, breaks) } else { made };
        let shortest = Case { choices: Some(short.clone()), ..self.clone() };
        let law = shortest.play::<R>(&mut Vec::new(), &mut Seen::default()).err().unwrap_or(law);
        panic!(
            "{}, {} seats, options {}, seed {}: {law}\nafter the moves\n{}\nkeep: {}",
            R::META.slug,
            self.seats,
            self.options,
            self.seed,
            self.told::<R>(&short),
            shortest.line(),
        );
    }

    /// Plays; `made` receives the choice of every ply, also of the one at which a law broke.
    fn play<R: Ruleset>(&self, made: &mut Vec<u32>, seen: &mut Seen) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(|| {
            let mut table = Table::<R>::deal(self)?;
            loop {
                let count = table.check(seen)?;
                let Some(choice) = self.choice(made.len(), count, || table.rare_move(made.len())) else {
                    return Ok(());
                };
                if made.len() >= ENDLESS {
                    return Err("the game does not end".into());
                }
                made.push(choice);
                table.play(choice as usize % count, seen)?;
            }
        }))
        .unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", text.unwrap_or("?")))
        })
    }

    /// Which of `count` moves is made at a ply; none: the game is over, or the case stops here. In every other game
    /// `rare` chooses.
    fn choice(&self, ply: usize, count: usize, rare: impl FnOnce() -> usize) -> Option<u32> {
        if count == 0 {
            return None;
        }
        match &self.choices {
            Some(choices) => choices.get(ply).copied(),
            None if self.tester().stream(u64::MAX).below(2) == 0 => Some(rare() as u32),
            None => Some(self.tester().stream(2 * ply as u64).below(count as u32)),
        }
    }

    /// The moves that the choices stand for, one a line, as far as they can be played.
    pub fn told<R: Ruleset>(&self, choices: &[u32]) -> String {
        let random = self.random();
        let options = serde_json::from_str(&self.options).expect("options are JSON");
        let options = R::resolve(&options, self.seats).expect("options are valid");
        let mut state = R::setup(&options, self.seats, &random);
        let mut lines = Vec::new();
        for choice in choices {
            let Some(seat) = R::to_act(&state) else { break };
            let mut moves = Vec::new();
            R::legal_moves(&state, seat, &mut moves);
            if moves.is_empty() {
                break;
            }
            let mv = &moves[*choice as usize % moves.len()];
            lines.push(format!("  seat {seat} {}", serde_json::to_string(mv).expect("a move is JSON")));
            if catch_unwind(AssertUnwindSafe(|| R::apply(&mut state, seat, mv, &random, &mut Vec::new()))).is_err() {
                break;
            }
        }
        lines.join("\n")
    }

    fn line(&self) -> String {
        let options: Value = serde_json::from_str(&self.options).expect("options are JSON");
        json!({ "ruleset": self.ruleset, "options": options, "seats": self.seats, "seed": self.seed,
                "choices": self.choices })
        .to_string()
    }

    /// Reads a line of `kept.jsonl`.
    pub fn from_line(line: &str) -> Case {
        let value: Value = serde_json::from_str(line).expect("a kept case is JSON");
        Case {
            ruleset: serde_json::from_value(value["ruleset"].clone()).expect("a slug"),
            options: value["options"].to_string(),
            seats: serde_json::from_value(value["seats"].clone()).expect("a number of seats"),
            seed: value["seed"].as_u64().expect("a seed"),
            choices: serde_json::from_value(value["choices"].clone()).expect("choices"),
        }
    }
}

/// Makes a list for which `breaks` holds shorter and simpler while it still does: leaves out ever smaller parts, then
/// takes first moves.
pub fn shrink(mut choices: Vec<u32>, breaks: impl Fn(&[u32]) -> bool) -> Vec<u32> {
    let mut part = choices.len().div_ceil(2);
    while part > 0 {
        let mut start = 0;
        while start < choices.len() {
            let mut without = choices.clone();
            without.drain(start..choices.len().min(start + part));
            if breaks(&without) {
                choices = without;
            } else {
                start += part;
            }
        }
        part /= 2;
    }
    for place in 0..choices.len() {
        let simpler = std::mem::take(&mut choices[place]);
        if !breaks(&choices) {
            choices[place] = simpler;
        }
    }
    choices
}
