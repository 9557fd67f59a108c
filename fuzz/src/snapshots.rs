//! Snapshots of games.
//!
//! They come from the server's own database, guarded by nothing but its checksums: what is read may be anything, but whoever can
//! write there could also write other moves. So it has to be refused, or be a state on which nothing panics and which is written
//! and read as itself; it need not be one that can be reached.

use tavola::rulesets::random::Random;
use tavola::rulesets::registry::{AnyState, RulesetId};

use super::input::Input;
use super::table::{Kind, show, survives_snapshot};

/// Damages the snapshot of a game and uses what is read; or takes the bytes themselves for a snapshot.
pub fn run(input: &[u8]) {
    let mut input = Input(input);
    let raw = input.byte() & 1 == 1;
    let kind = Kind::chosen(&mut input);
    let random = Random::new([input.byte(); 32]);
    if raw {
        read(kind.ruleset, input.0, &random);
        return;
    }
    let mut state = kind.deal(&random);
    let mut choices = random.stream(1 << 40);
    for _ in 0..input.byte() {
        let Some(seat) = state.to_act() else { break };
        let moves = state.legal_moves(seat);
        let mv = &moves[choices.below(moves.len() as u32) as usize];
        state.apply(seat, mv, &random).expect("a listed move is legal");
    }
    let mut snapshot = state.snapshot();
    while !input.is_empty() {
        let place = input.number() % snapshot.len();
        snapshot[place] = input.byte();
    }
    read(kind.ruleset, &snapshot, &random);
}

fn read(ruleset: RulesetId, snapshot: &[u8], random: &Random) {
    if let Ok(state) = ruleset.read_snapshot(snapshot) {
        survives_snapshot(&state);
        use_up(&state, random);
    }
}

/// Does with a state whatever can be done with it.
fn use_up(state: &AnyState, random: &Random) {
    let seats = state.ranking().len() as u8;
    show(state, seats);
    let (_, _) = (state.end(), state.outcome());
    for seat in 0..seats {
        for mv in state.legal_moves(seat) {
            let mut after = state.clone();
            if after.apply(seat, &mv, random).is_ok() {
                show(&after, seats);
                after.snapshot();
            }
        }
    }
}
