//! The full state of a game: how it is dealt (Q1, Q2), how it stands, what must always hold. No moves, no views.

use std::ops::RangeInclusive;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use super::Options;
use super::field::Field;
use crate::rulesets::cards::{COPIES, Card, DECK, Symbol, SymbolSet, shuffled};
use crate::rulesets::random::Random;
use crate::rulesets::{EndReason, Ranked, Seat, rank_by};

/// How many can play.
pub const SEATS: RangeInclusive<u8> = 2..=4;

/// Cards in a hand at the beginning of a turn, but for those after a player's last (Q2, Q8).
const HAND: usize = 6;

/// Keys of each symbol (Q1).
const KEYS_PER_SYMBOL: u8 = 3;

/// Everything about a game, hidden things included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Whether diagonal runs count (Q9).
    pub diagonals: bool,
    /// After how many turns the game stops (Q13).
    pub turn_limit: Option<u32>,
    /// Turns of all players together, passes included.
    pub turns_taken: u32,
    /// Whose turn it is; when the game is over, whose it would be.
    pub turn: Seat,
    /// From the turn in which the last card was drawn: how many turns are still to come (Q11).
    pub last_turns_left: Option<u8>,
    /// The face-down deck; the top card is the last.
    pub deck: ArrayVec<Card, DECK>,
    pub field: Field,
    /// By seat.
    pub players: ArrayVec<Player, { *SEATS.end() as usize }>,
}

/// What a player has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Player {
    pub hand: Hand,
    pub keys: SymbolSet,
}

/// The cards of a hand: a bit for each face that is held, and one for each that is held twice. Which of two equal cards
/// is which is not even stored (C3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hand {
    held: u64,
    twice: u64,
}

// Two bits for each face are enough.
const _: () = assert!(COPIES == 2 && Card::COUNT <= u64::BITS as usize);

impl Hand {
    /// Whether a card with that face is held.
    pub fn contains(self, card: Card) -> bool {
        self.held & 1 << card.index() != 0
    }

    /// Adds a card.
    pub fn insert(&mut self, card: Card) {
        let bit = 1 << card.index();
        self.twice |= self.held & bit;
        self.held |= bit;
    }

    /// Takes one card with that face out, if there is one.
    pub fn remove(&mut self, card: Card) {
        let bit = 1 << card.index();
        self.held &= !bit | self.twice;
        self.twice &= !bit;
    }

    /// How many cards there are.
    pub fn len(self) -> usize {
        (self.held.count_ones() + self.twice.count_ones()) as usize
    }

    /// Every face once, in catalogue order.
    pub fn faces(self) -> impl Iterator<Item = Card> {
        let mut rest = self.held;
        std::iter::from_fn(move || {
            let next = (rest != 0).then(|| Card::at(rest.trailing_zeros() as usize));
            rest &= rest.wrapping_sub(1);
            next
        })
    }

    /// Every card, in catalogue order.
    pub fn cards(self) -> impl Iterator<Item = Card> {
        self.faces().flat_map(move |card| std::iter::repeat_n(card, 1 + (self.twice >> card.index() & 1) as usize))
    }

    /// Whether the bits are those of a hand.
    fn is_possible(self) -> bool {
        self.held < 1 << Card::COUNT && self.twice & !self.held == 0
    }
}

impl FromIterator<Card> for Hand {
    fn from_iter<I: IntoIterator<Item = Card>>(cards: I) -> Self {
        let mut hand = Hand::default();
        cards.into_iter().for_each(|card| hand.insert(card));
        hand
    }
}

impl State {
    /// Deals a game (Q2, fairness 7–9): six cards to seat 0, then six to seat 1, and so on. `options` are resolved ones.
    pub fn deal(options: &Options, seats: u8, random: &Random) -> Self {
        let cards = shuffled(random);
        let (dealt, rest) = cards.split_at(HAND * usize::from(seats));
        let player = |hand: &[Card]| Player { hand: hand.iter().copied().collect(), keys: SymbolSet::default() };
        Self {
            diagonals: options.diagonals(),
            turn_limit: options.turn_limit.turns(),
            turns_taken: 0,
            turn: random.lot(seats),
            last_turns_left: None,
            deck: rest.iter().rev().copied().collect(),
            field: Field::default(),
            players: dealt.chunks_exact(HAND).map(player).collect(),
        }
    }

    /// The seat that must move (C1); none when the game is over.
    pub fn to_act(&self) -> Option<Seat> {
        self.end().is_none().then_some(self.turn)
    }

    /// Why the game is over. A normal end in the limit's last turn is a normal end (C4).
    pub fn end(&self) -> Option<EndReason> {
        if self.last_turns_left == Some(0) {
            Some(EndReason::Completed)
        } else if self.turn_limit.is_some_and(|limit| self.turns_taken >= limit) {
            Some(EndReason::TurnLimit)
        } else {
            None
        }
    }

    /// How many Keys of a symbol the supply still holds (Q1): those that no player has.
    pub fn key_supply(&self, symbol: Symbol) -> u8 {
        KEYS_PER_SYMBOL.saturating_sub(self.players.iter().filter(|player| player.keys.contains(symbol)).count() as u8)
    }

    /// The ranking by Keys; among equals the most senior Key decides, then the next (Q12).
    pub fn ranking(&self) -> Vec<Ranked> {
        rank_by(self.players.iter().map(|player| {
            let count = player.keys.len();
            (count as i32, (count, player.keys.seniority()))
        }))
    }
    /// Checks what must hold in every state.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let seats = self.players.len() as u8;
        if !SEATS.contains(&seats) {
            return Err("the number of seats is not 2 to 4");
        }
        if self.turn >= seats {
            return Err("a seat that does not exist is to move");
        }
        if self.turn_limit.is_some_and(|limit| self.turns_taken > limit) {
            return Err("more turns were taken than the limit allows");
        }
        // From the draw of the last card until the end, and only then, turns are counted down (Q11).
        if self.deck.is_empty() != self.last_turns_left.is_some() {
            return Err("the last turns do not fit the deck");
        }
        if self.last_turns_left.is_some_and(|left| left > seats) {
            return Err("there are more last turns than seats");
        }
        let smallest = if self.last_turns_left.is_some() { HAND - 1 } else { HAND };
        for player in &self.players {
            if !player.hand.is_possible() || !(smallest..=HAND).contains(&player.hand.len()) {
                return Err("a hand is impossible");
            }
            if !player.keys.without(SymbolSet::ALL).is_empty() {
                return Err("a Key has no symbol");
            }
        }
        let held = |symbol| self.players.iter().filter(|player| player.keys.contains(symbol)).count();
        if Symbol::all().any(|symbol| held(symbol) > usize::from(KEYS_PER_SYMBOL)) {
            return Err("there are more than three Keys of a symbol");
        }
        self.field.check()?;
        let mut copies = [0; Card::COUNT];
        let hands = self.players.iter().flat_map(|player| player.hand.cards());
        for card in self.field.cards().chain(hands).chain(self.deck.iter().copied()) {
            copies[card.index()] += 1;
        }
        if copies != [COPIES; Card::COUNT] {
            return Err("cards are missing or there are too many");
        }
        Ok(())
    }
}
