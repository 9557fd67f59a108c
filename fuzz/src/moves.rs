//! Moves as JSON: the first byte chooses a position, the rest is the text of a move.

use std::sync::LazyLock;

use tavola::rulesets::random::Random;
use tavola::rulesets::registry::{AnyState, RulesetId};

use super::input::Input;
use super::table::{Kind, attempt};

/// How many positions there are of each ruleset.
const POSITIONS: usize = 16;

/// By ruleset: deals, of all kinds in turn, played on at random for a while; the first one is fresh.
pub static TABLES: LazyLock<Vec<Vec<(AnyState, Random)>>> = LazyLock::new(|| {
    let position = |ruleset: usize, number: usize| {
        let random = Random::new([number as u8; 32]);
        let mut state = Kind::chosen(&mut Input(&[ruleset as u8, number as u8])).deal(&random);
        let mut choices = random.stream(1 << 40);
        for _ in 0..3 * number {
            let Some(seat) = state.to_act() else { break };
            let moves = state.legal_moves(seat);
            let mv = &moves[choices.below(moves.len() as u32) as usize];
            state.apply(seat, mv, &random).expect("a listed move is legal");
        }
        (state, random)
    };
    (0..RulesetId::ALL.len()).map(|ruleset| (0..POSITIONS).map(|number| position(ruleset, number)).collect()).collect()
});

/// What is read as a move is written and read again to the same, and is accepted exactly if it is listed.
pub fn run(input: &[u8]) {
    let Some((choice, json)) = input.split_first() else { return };
    let tables = &TABLES[usize::from(*choice) % TABLES.len()];
    let (state, random) = &tables[usize::from(*choice) / TABLES.len() % POSITIONS];
    let ruleset = state.ruleset();
    let Ok(mv) = ruleset.read_move(json) else { return };
    let written = serde_json::to_vec(&mv).expect("a move is JSON");
    let again = ruleset.read_move(&written).expect("a move that was written is read");
    assert_eq!(again, mv, "written and read again");
    assert_eq!(serde_json::to_vec(&again).expect("a move is JSON"), written, "written twice");
    for seat in [0, 1, 4, 255] {
        if attempt(state, seat, &mv, random).is_some() {
            assert_eq!(state.to_act(), Some(seat), "the seat waits");
        }
    }
    if let Some(seat) = state.to_act() {
        attempt(state, seat, &mv, random);
    }
}
