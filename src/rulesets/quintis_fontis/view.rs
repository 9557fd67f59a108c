//! What one viewer may see of a game, and the states that are possible behind it.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use utoipa::ToSchema;

use super::Options;
use super::field::{Cell, Field, Stack};
use super::state::{Player, State};
use crate::rulesets::cards::{COPIES, Card, DECK, Symbol, SymbolSet};
use crate::rulesets::random::Stream;
use crate::rulesets::{Seat, Viewer};

/// A game of Quintis Fontis as one viewer may see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = QuintisFontisView)]
pub struct View {
    /// Turns of all players together, passes included.
    pub turns_taken: u32,
    /// Cards in the face-down deck.
    pub deck_count: u8,
    /// How many Keys of each symbol can still be taken, 0 to 3; every symbol is there (Q1).
    pub key_supply: BTreeMap<Symbol, u8>,
    /// Once the last card of the deck has been drawn: how many turns are still to come; null before (Q11).
    #[schema(required)]
    pub last_turns_left: Option<u8>,
    /// The occupied cells, row by row from the top, in a row from left to right.
    pub field: Vec<CellView>,
    /// By seat.
    pub seats: Vec<SeatView>,
}

/// A stack on the field; all of its cards are public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = QuintisFontisCell)]
pub struct CellView {
    /// Column, growing to the right; the first card of the game lies at 0.
    #[schema(minimum = -4, maximum = 4)]
    pub x: i8,
    /// Row, growing downwards; the first card of the game lies at 0.
    #[schema(minimum = -4, maximum = 4)]
    pub y: i8,
    /// At least one card, from bottom to top.
    pub stack: SmallVec<[Card; 16]>,
}

/// What a player has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = QuintisFontisSeat)]
pub struct SeatView {
    /// The cards in hand, in catalogue order; null unless the hand is the viewer's own or the game is over.
    #[schema(required)]
    pub hand: Option<SmallVec<[Card; 16]>>,
    /// How many cards the hand has.
    pub hand_count: u8,
    /// The symbols of the Keys that the player holds, in order of seniority (Q12).
    pub keys: SmallVec<[Symbol; 16]>,
}

/// The state as `viewer` may see it.
pub fn view(state: &State, viewer: Viewer) -> View {
    let seat_view = |(seat, player): (Seat, &Player)| SeatView {
        hand: viewer.sees(seat).then(|| player.hand.cards().collect()),
        hand_count: player.hand.len() as u8,
        keys: player.keys.iter().collect(),
    };
    let cell_view = |(cell, stack): (Cell, Stack)| CellView { x: cell.x, y: cell.y, stack };
    View {
        turns_taken: state.turns_taken,
        deck_count: state.deck.len() as u8,
        key_supply: Symbol::all().map(|symbol| (symbol, state.key_supply(symbol))).collect(),
        last_turns_left: state.last_turns_left,
        field: state.field.stacks().into_iter().map(cell_view).collect(),
        seats: (0..).zip(&state.players).map(seat_view).collect(),
    }
}

/// A state dealt at random among those that the view allows: the cards that it does not show are shuffled and dealt to
/// the hands that it does not show, the rest is the deck.
pub fn determinize(view: &View, to_act: Option<Seat>, options: &Options, random: &mut Stream) -> State {
    let mut field = Field::default();
    for CellView { x, y, stack } in &view.field {
        let cell = Cell::at(*x, *y).expect("a view shows cells of the board");
        stack.iter().for_each(|card| field.lay(cell, *card));
    }
    let mut unseen: ArrayVec<Card, DECK> = unseen(view).collect();
    random.shuffle(&mut unseen);
    let mut player = |seat: &SeatView| {
        let hand = match &seat.hand {
            Some(cards) => cards.iter().copied().collect(),
            None => unseen.drain(..usize::from(seat.hand_count)).collect(),
        };
        let mut keys = SymbolSet::default();
        seat.keys.iter().for_each(|key| keys.insert(*key));
        Player { hand, keys }
    };
    let players = view.seats.iter().map(&mut player).collect();
    State {
        diagonals: options.diagonals(),
        turn_limit: options.turn_limit.turns(),
        turns_taken: view.turns_taken,
        // When the game is over nobody's turn it is, and any seat does.
        turn: to_act.unwrap_or(0),
        last_turns_left: view.last_turns_left,
        deck: unseen,
        field,
        players,
    }
}

/// The cards that a view does not show, in catalogue order.
fn unseen(view: &View) -> impl Iterator<Item = Card> {
    let mut copies = [COPIES; Card::COUNT];
    let stacks = view.field.iter().flat_map(|cell| &cell.stack);
    let hands = view.seats.iter().filter_map(|seat| seat.hand.as_ref()).flatten();
    for card in stacks.chain(hands) {
        copies[card.index()] -= 1;
    }
    Card::all().flat_map(move |card| std::iter::repeat_n(card, copies[card.index()]))
}
