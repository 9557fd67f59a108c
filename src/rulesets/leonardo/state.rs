//! The full state of a game of `leonardo`, hidden cards included. It never leaves the server: see `view`.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::moves::Position;
use crate::rulesets::cards::{COPIES, Card, DECK, SymbolSet, shuffled};
use crate::rulesets::random::Random;
use crate::rulesets::{EndReason, Seat, TurnLimit};

/// Cards in a full hand (L2), and as many in a cross.
pub(super) const HAND: usize = 5;

/// Keys that win the game (L9).
pub(super) const KEYS_TO_WIN: usize = 7;

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
    /// Whose turn it is; when the game is over, who took the last one.
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
        let mut top = shuffled(random).into_iter();
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

    /// Cards outside the crosses and hands: deck and discard pile hold them together, whatever the turn.
    pub(super) fn table_cards(seats: usize) -> u32 {
        (DECK - 2 * HAND * seats) as u32
    }

    /// Reshuffles in that many turns (L8). A turn moves one card from the deck to the discard pile; the turn after the
    /// deck's last card makes a new deck.
    pub(super) fn reshuffles_in(turns: u32, seats: usize) -> u32 {
        turns / (State::table_cards(seats) + 1)
    }

    /// Checks seats, the cards in their two copies, the hands, the Keys, and that the numbers of turns, discards and
    /// reshuffles agree. In a state that passes no move can fail but by the rules.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if !(2..=4).contains(&self.seats.len()) || usize::from(self.turn) >= self.seats.len() {
            return Err("no such seat");
        }
        let mut copies = [0; Card::COUNT];
        let laid = self.seats.iter().flat_map(|seat| seat.cross.iter().chain(&seat.hand));
        for card in laid.chain(&self.deck).chain(&self.discard) {
            copies[card.index()] += 1;
        }
        if copies != [COPIES; Card::COUNT] {
            return Err("cards are missing or double");
        }
        // The turn that wins ends before its draw and counts as a turn (L9); nobody else ever has seven Keys.
        let won = self.over == Some(EndReason::Completed);
        for (seat, own) in (0..).zip(&self.seats) {
            let winner = won && seat == self.turn;
            if !own.hand.is_sorted() || own.hand.len() != HAND - usize::from(winner) {
                return Err("a hand is out of order or has the wrong size");
            }
            if !own.keys.without(SymbolSet::ALL).is_empty() || (own.keys.len() >= KEYS_TO_WIN) != winner {
                return Err("the Keys do not belong to this point of a game");
            }
        }
        // No game gets near this many turns, and counting them cannot overflow.
        if self.turns_taken > u32::MAX / 2 {
            return Err("the number of turns is impossible");
        }
        let draws = self.turns_taken.checked_sub(u32::from(won)).ok_or("a game was won before the first turn")?;
        let discards = draws % (State::table_cards(self.seats.len()) + 1) + u32::from(won);
        if self.discard.len() as u32 != discards || self.reshuffles != State::reshuffles_in(draws, self.seats.len()) {
            return Err("the discard pile does not fit the number of turns");
        }
        let limit_reached = self.turn_limit.is_some_and(|limit| self.turns_taken >= limit);
        match self.over {
            None if limit_reached => Err("the turn limit is overstepped"),
            Some(EndReason::TurnLimit) if !limit_reached => Err("the turn limit is not reached"),
            None | Some(EndReason::Completed | EndReason::TurnLimit) => Ok(()),
            Some(_) => Err("the rules end no game for that reason"),
        }
    }
}

impl SeatState {
    /// The card at a position of the cross.
    pub(super) fn at(&mut self, position: Position) -> &mut Card {
        &mut self.cross[position as usize]
    }
}
