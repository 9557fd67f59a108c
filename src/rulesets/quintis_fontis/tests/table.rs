//! Small explicit states, moves in few words, and checked ways to play them.

use super::super::field::{Cell, Field};
use super::super::state::{Hand, Player};
use super::super::*;
use crate::rulesets::cards::{Card, Symbol, SymbolSet, deck};

pub type Q = QuintisFontis;

pub fn card(code: &str) -> Card {
    Card::from_code(code).unwrap_or_else(|| panic!("no card {code}"))
}

pub fn symbol(code: &str) -> Symbol {
    Symbol::from_code(code).unwrap_or_else(|| panic!("no symbol {code}"))
}

pub fn keys(codes: &[&str]) -> SymbolSet {
    let mut set = SymbolSet::default();
    codes.iter().for_each(|code| set.insert(symbol(code)));
    set
}

/// A possible game of two in which seat 0 is to move: those stacks (bottom to top) lie on the field and those cards are
/// in its hand. What is not named is filled up in catalogue order, the rest is the deck.
pub fn table(field: &[(i8, i8, &[&str])], hand: &[&str]) -> State {
    table_for(2, field, hand)
}

pub fn table_for(seats: usize, stacks: &[(i8, i8, &[&str])], hand: &[&str]) -> State {
    let mut rest = deck().to_vec();
    let mut take = |code: &str| {
        let place = rest.iter().position(|other| *other == card(code)).expect("two of each face");
        rest.remove(place)
    };
    let mut field = Field::default();
    let mut laid = 0;
    for (x, y, stack) in stacks {
        for code in *stack {
            field.lay(Cell::at(*x, *y).unwrap(), take(code));
            laid += 1;
        }
    }
    let named: Vec<Card> = hand.iter().map(|code| take(code)).collect();
    let mut rest = rest.into_iter();
    let mut full = |cards: Vec<Card>| {
        let missing = 6 - cards.len();
        cards.into_iter().chain(rest.by_ref().take(missing)).collect::<Hand>()
    };
    let players = std::iter::once(full(named)).chain((1..seats).map(|_| full(Vec::new())));
    let players = players.collect::<Vec<_>>().into_iter().map(|hand| Player { hand, keys: SymbolSet::default() });
    let state = State {
        diagonals: false,
        turn_limit: None,
        turns_taken: laid,
        turn: 0,
        last_turns_left: None,
        players: players.collect(),
        deck: rest.collect(),
        field,
    };
    assert_eq!(state.check(), Ok(()));
    state
}

/// Moves all cards of the deck but so many under a stack, so that the deck is about to run out.
pub fn shorten_deck(state: &mut State, left: usize) {
    let (cell, top) = (Cell::ORIGIN, state.field.top(Cell::ORIGIN).unwrap());
    while state.deck.len() > left {
        let buried = state.deck.pop().unwrap();
        state.field.swap(cell, buried);
        state.field.lay(cell, top);
        state.turns_taken += 1;
    }
    assert_eq!(state.check(), Ok(()));
}

pub fn place(code: &str, x: i8, y: i8) -> Move {
    Move::Place { card: card(code), x, y }
}

pub fn cover(code: &str, x: i8, y: i8) -> Move {
    Move::Cover { card: card(code), x, y }
}

pub fn swap(code: &str, x: i8, y: i8) -> Move {
    Move::Swap { card: card(code), x, y }
}

pub fn chance() -> Random {
    Random::new([7; 32])
}

pub fn moves_of(state: &State, seat: Seat) -> Vec<Move> {
    let mut moves = Vec::new();
    Q::legal_moves(state, seat, &mut moves);
    moves
}

/// Plays a move of the seat to act, which must be legal, and returns what happened.
pub fn play(state: &mut State, mv: Move) -> Vec<Event> {
    let mut events = Vec::new();
    let seat = state.to_act().expect("the game goes on");
    assert!(moves_of(state, seat).contains(&mv), "{mv:?} is not listed");
    Q::apply(state, seat, &mv, &chance(), &mut events).unwrap();
    assert_eq!(state.check(), Ok(()));
    events
}

/// The refusal of a move of the seat to act; checks that it is not listed and changes nothing.
pub fn refused(state: &State, mv: Move) -> Illegal {
    let seat = state.to_act().expect("the game goes on");
    assert!(!moves_of(state, seat).contains(&mv), "{mv:?} is listed");
    let (mut after, mut events) = (state.clone(), Vec::new());
    let error = Q::apply(&mut after, seat, &mv, &chance(), &mut events).unwrap_err();
    assert!(after == *state && events.is_empty());
    error
}

pub fn keys_gained(events: &[Event]) -> Vec<&'static str> {
    events
        .iter()
        .filter_map(|event| if let Event::KeyGained { key, .. } = event { Some(key.code()) } else { None })
        .collect()
}
