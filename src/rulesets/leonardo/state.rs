//! The full state of a game of `leonardo`, hidden cards included. It never leaves the server: see `view`.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::moves::Position;
use crate::rulesets::cards::{COPIES, Card, DECK, SymbolSet, deck};
use crate::rulesets::random::Random;
use crate::rulesets::{EndReason, Seat, TurnLimit};

/// Cards in a full hand (L2).
pub(super) const HAND: usize = 5;

/// Options of `leonardo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LeonardoOptions)]
pub struct Options {
    /// The game ends when that many turns have been taken (C4): 1 to 10,000, null for no limit; default 100 × players.
    #[serde(default, skip_serializing_if = "TurnLimit::is_default")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    pub turn_limit: TurnLimit,
}

/// Everything on the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(super) turns_taken: u32,
    pub(super) turn_limit: Option<u32>,
    /// Whose turn it is; the last mover's seat when the game is over.
    pub(super) turn: Seat,
    pub(super) over: Option<EndReason>,
    /// The last element is the top.
    pub(super) deck: ArrayVec<Card, DECK>,
    /// In the order of discarding.
    pub(super) discard: ArrayVec<Card, DECK>,
    /// How often the discard pile has been shuffled into a new deck (L8).
    pub(super) reshuffles: u32,
    pub(super) seats: ArrayVec<SeatState, 4>,
}

/// What lies before one player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SeatState {
    /// By [`Position`].
    pub cross: [Card; 5],
    /// In catalogue order.
    pub hand: ArrayVec<Card, HAND>,
    pub keys: SymbolSet,
    /// Whether the bonus Key has been taken (L7).
    pub bonus_key_taken: bool,
}

impl State {
    /// L2: ten cards each, the first five of them form the cross.
    pub(super) fn deal(options: &Options, seats: u8, random: &Random) -> State {
        let mut cards = deck();
        random.stream(1).shuffle(&mut cards);
        let mut top = cards.into_iter();
        let mut next = || top.next().expect("four players take 40 of 72 cards");
        let seats = (0..seats)
            .map(|_| {
                let cross = std::array::from_fn(|_| next());
                let mut hand: ArrayVec<Card, HAND> = (0..HAND).map(|_| next()).collect();
                hand.sort_unstable();
                SeatState { cross, hand, keys: SymbolSet::default(), bonus_key_taken: false }
            })
            .collect::<ArrayVec<_, 4>>();
        State {
            turns_taken: 0,
            turn_limit: options.turn_limit.turns(),
            turn: random.lot(seats.len() as u8),
            over: None,
            deck: top.rev().collect(),
            discard: ArrayVec::new(),
            reshuffles: 0,
            seats,
        }
    }

    /// The left neighbour (C1).
    pub(super) fn left_of(&self, seat: Seat) -> Seat {
        (seat + 1) % self.seats.len() as Seat
    }

    /// Checks that every card is there in its two copies, hands are sorted and full, and seats exist.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let mut copies = [0; Card::COUNT];
        let laid = self.seats.iter().flat_map(|seat| seat.cross.iter().chain(&seat.hand));
        for card in laid.chain(&self.deck).chain(&self.discard) {
            copies[card.index()] += 1;
        }
        if copies != [COPIES; Card::COUNT] {
            return Err("cards are missing or double");
        }
        if !(2..=4).contains(&self.seats.len()) || usize::from(self.turn) >= self.seats.len() {
            return Err("no such seat");
        }
        if self
            .seats
            .iter()
            .any(|seat| !seat.hand.is_sorted() || seat.keys.without(SymbolSet::ALL) != SymbolSet::default())
        {
            return Err("a hand or the Keys are out of order");
        }
        // Only the turn that wins ends before its draw (L9).
        let short = self.seats.iter().filter(|seat| seat.hand.len() < HAND).count();
        if short > usize::from(self.over == Some(EndReason::Completed)) {
            return Err("a hand is short of cards");
        }
        Ok(())
    }
}

impl SeatState {
    /// The card at a position of the cross.
    pub(super) fn at(&mut self, position: Position) -> &mut Card {
        &mut self.cross[position as usize]
    }
}
