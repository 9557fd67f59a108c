//! A damaged snapshot is refused or holds a state on which nothing panics: then the log decides.

use tavola::rulesets::Viewer;
use tavola::rulesets::random::Random;
use tavola::rulesets::registry::{AnyState, RulesetId};

use crate::options;

/// A game is damaged at every so many-th ply.
const EVERY: usize = 67;

/// Uses a state in every way.
fn use_up(state: &AnyState, seats: u8, random: &Random) {
    for viewer in (0..seats).map(Viewer::Seat).chain([Viewer::Spectator, Viewer::Everything]) {
        state.view(viewer);
    }
    let (_, _) = (state.ranking(), state.end());
    for seat in 0..seats {
        for mv in state.legal_moves(seat) {
            let mut after = state.clone();
            if after.apply(seat, &mv, random).is_ok() {
                after.view(Viewer::Everything);
                after.snapshot();
            }
        }
    }
}

/// Plays on for a while from a state.
fn play_on(mut state: AnyState, random: &Random, tester: u64) {
    let mut choices = random.stream(tester);
    for _ in 0..200 {
        let Some(seat) = state.to_act() else { return };
        let moves = state.legal_moves(seat);
        if moves.is_empty() {
            return;
        }
        let mv = &moves[choices.below(moves.len() as u32) as usize];
        if state.apply(seat, mv, random).is_err() {
            return;
        }
    }
    state.view(Viewer::Everything);
    state.ranking();
}

fn damage(id: RulesetId, state: &AnyState, seats: u8, random: &Random) {
    let whole = state.snapshot();
    assert_eq!(id.read_snapshot(&whole).expect("an undamaged snapshot is read"), *state);
    for length in 0..whole.len() {
        assert!(id.read_snapshot(&whole[..length]).is_err(), "{length} of {} bytes are a state", whole.len());
    }
    let mut choices = random.stream(1 << 40);
    for place in 0..whole.len() {
        let bit = 1 << choices.below(8);
        for byte in [whole[place] ^ bit, whole[place].wrapping_add(1), whole[place].wrapping_sub(1), 0, 0x7F, 0xFF] {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            if let Ok(state) = id.read_snapshot(&damaged) {
                use_up(&state, seats, random);
                play_on(state, random, 1 << 41);
            }
        }
    }
}

#[test]
fn damaged_snapshots_never_panic() {
    for &id in RulesetId::ALL {
        for (number, (options, seats)) in options::combinations(id).into_iter().enumerate() {
            let random = Random::new([number as u8; 32]);
            let given = serde_json::from_str(&options).unwrap();
            let mut state = id.options(&given, seats).unwrap().deal(seats, &random);
            let mut choices = random.stream(1 << 42);
            for ply in number.. {
                if ply % EVERY == 0 || state.to_act().is_none() {
                    damage(id, &state, seats, &random);
                }
                let Some(seat) = state.to_act() else { break };
                let moves = state.legal_moves(seat);
                state.apply(seat, &moves[choices.below(moves.len() as u32) as usize], &random).unwrap();
            }
        }
    }
}

#[test]
fn foreign_snapshots_are_refused() {
    for &id in RulesetId::ALL {
        assert!(id.read_snapshot(&[]).is_err() && id.read_snapshot(&[255; 300]).is_err());
        let (options, seats) = options::combinations(id).remove(0);
        let given = serde_json::from_str(&options).unwrap();
        let snapshot = id.options(&given, seats).unwrap().deal(seats, &Random::new([7; 32])).snapshot();
        for &other in RulesetId::ALL.iter().filter(|other| **other != id) {
            if let Ok(state) = other.read_snapshot(&snapshot) {
                panic!("a snapshot of {} is read as {state:?}", id.meta().slug);
            }
        }
        let mut other_format = snapshot;
        other_format[0] ^= 0x80;
        assert!(id.read_snapshot(&other_format).is_err());
    }
}
