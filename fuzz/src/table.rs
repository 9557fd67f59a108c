//! A table at which something can be tried.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use tavola::rulesets::random::Random;
use tavola::rulesets::registry::{AnyMove, AnyState, RulesetId};
use tavola::rulesets::{Seat, Viewer};

use super::input::Input;
use super::options;

/// A ruleset with options and a number of seats.
#[derive(Clone)]
pub struct Kind {
    pub ruleset: RulesetId,
    /// As a client sends them.
    pub options: Map<String, Value>,
    pub seats: u8,
}

/// By ruleset all kinds of tables that the laws of the rulesets are tested with.
static KINDS: LazyLock<Vec<Vec<Kind>>> = LazyLock::new(|| {
    let of = |ruleset: RulesetId| {
        let kinds = options::combinations(ruleset).into_iter().map(|(options, seats)| Kind {
            ruleset,
            options: serde_json::from_str(&options).expect("options are a JSON object"),
            seats,
        });
        kinds.collect()
    };
    RulesetId::ALL.iter().copied().map(of).collect()
});

impl Kind {
    /// The kind of table that two bytes choose.
    pub fn chosen(input: &mut Input<'_>) -> Self {
        let of_ruleset = &KINDS[usize::from(input.byte()) % KINDS.len()];
        of_ruleset[usize::from(input.byte()) % of_ruleset.len()].clone()
    }

    /// A game of this kind as it is dealt with that chance.
    pub fn deal(&self, random: &Random) -> AnyState {
        self.ruleset.options(&self.options, self.seats).expect("the options are valid").deal(self.seats, random)
    }
}

/// Has a seat make a move on a copy of the state; answers the state after it, none if it is refused. A refused move changes
/// nothing, and exactly those are accepted that are listed or do what a listed one does.
pub fn attempt(state: &AnyState, seat: Seat, mv: &AnyMove, random: &Random) -> Option<AnyState> {
    let moves = state.legal_moves(seat);
    let after = |mv: &AnyMove| {
        let mut after = state.clone();
        match after.apply(seat, mv, random) {
            Ok(events) => Some((after, events)),
            Err(_) => {
                assert!(
                    after == *state && after.snapshot() == state.snapshot(),
                    "a refused move has changed the state"
                );
                None
            }
        }
    };
    let reached = after(mv);
    match &reached {
        Some(_) => assert!(
            moves.contains(mv) || moves.iter().any(|other| after(other) == reached),
            "the move {mv:?} is accepted and not listed"
        ),
        None => assert!(!moves.contains(mv), "the listed move {mv:?} is refused"),
    }
    reached.map(|(state, _)| state)
}

/// Everybody who can look at a table of so many seats.
pub fn viewers(seats: u8) -> impl Iterator<Item = Viewer> {
    (0..seats).map(Viewer::Seat).chain([Viewer::Spectator, Viewer::Everything])
}

/// Shows the state to everybody.
pub fn show(state: &AnyState, seats: u8) {
    for viewer in viewers(seats) {
        serde_json::to_vec(&state.view(viewer)).expect("a view is JSON");
    }
}

/// The state is the same after it has been written and read.
pub fn survives_snapshot(state: &AnyState) {
    let snapshot = state.snapshot();
    let read = state.ruleset().read_snapshot(&snapshot).expect("a snapshot is read");
    assert!(read == *state, "a snapshot gives another state");
    assert!(read.snapshot() == snapshot, "a snapshot is written in two ways");
}
