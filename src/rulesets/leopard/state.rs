//! The full state of a match of `leopard`, hidden cards included. It never leaves the server: see `view`.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cards::{COPIES, Card, DECK, Hand, shuffled};
use super::options::{Goal, MOST_HANDS, Options, Scoring};
use super::table::Table;
use crate::rulesets::random::Random;
use crate::rulesets::{Ranked, Seat, rank_by};

/// Cards in a hand between turns (P2); the player whose turn it is holds one more (P5).
pub(super) const HAND: usize = 8;

/// Cards in the stock before the first draw.
const STOCK: usize = DECK - 2 * HAND;

/// The least value of a square with which its owner may end the hand (P8).
pub(super) const ENDING_VALUE: u8 = 5;

/// More than any square can be worth: eight lines of three points, with one to spare.
const VALUE_BOUND: u8 = 8 * 3 + 1;

/// The match and its present hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(super) goal: Goal,
    pub(super) scoring: Scoring,
    pub(super) dealer: Seat,
    /// Whose turn it is; they have drawn already (P5). None when the match is over.
    pub(super) to_act: Option<Seat>,
    /// The last element is the top.
    pub(super) stock: ArrayVec<Card, STOCK>,
    /// By seat.
    pub(super) hands: [Hand; 2],
    /// In the order of discarding.
    pub(super) discard: ArrayVec<Card, DECK>,
    pub(super) table: Table,
    /// The hands that are over, in the order of play; the one that ended the match is among them.
    pub(super) scored_hands: ArrayVec<ScoredHand, MOST_HANDS>,
}

/// How a hand ended (P10). Lists are by seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeopardScoredHand)]
pub struct ScoredHand {
    /// The seat that ended the hand (P8); null when the stock ran out (P9).
    #[schema(required)]
    pub ended_by: Option<Seat>,
    /// What the squares were worth.
    #[schema(min_items = 2, max_items = 2)]
    pub values: [u8; 2],
    /// What the players scored.
    #[schema(min_items = 2, max_items = 2)]
    pub scores: [u8; 2],
}

impl ScoredHand {
    /// P10. Who ended the hand loses a point for that and gains again what exceeds five: v − 1 + (v − 5).
    pub(super) fn new(ended_by: Option<Seat>, values: [u8; 2]) -> ScoredHand {
        let mut scores = values;
        if let Some(seat) = ended_by {
            let score = &mut scores[usize::from(seat)];
            *score = *score - 1 + (*score - ENDING_VALUE);
        }
        ScoredHand { ended_by, values, scores }
    }

    /// Whether the rules can have given it: a snapshot may be damaged.
    fn is_sound(&self) -> bool {
        let ended_well = match self.ended_by {
            Some(seat) => self.values.get(usize::from(seat)).is_some_and(|value| *value >= ENDING_VALUE),
            None => true,
        };
        ended_well
            && self.values.iter().all(|value| *value < VALUE_BOUND)
            && *self == ScoredHand::new(self.ended_by, self.values)
    }
}

impl State {
    /// Draws the first dealer by lot and deals the first hand (P2).
    pub(super) fn new(options: &Options, random: &Random) -> State {
        let mut state = State {
            goal: options.goal(),
            scoring: options.scoring.unwrap_or_default(),
            dealer: random.lot(2),
            to_act: None,
            stock: ArrayVec::new(),
            hands: [Hand::default(); 2],
            discard: ArrayVec::new(),
            table: Table::default(),
            scored_hands: ArrayVec::new(),
        };
        state.deal(random);
        state.begin_turn(state.starter());
        state
    }

    /// Deals the next hand for the present dealer (P2); nobody has drawn yet.
    pub(super) fn deal(&mut self, random: &Random) {
        let cards = shuffled(self.scored_hands.len() as u64 + 1, random);
        let (starter, rest) = cards.split_at(HAND);
        let (dealer, stock) = rest.split_at(HAND);
        self.hands[usize::from(self.starter())] = starter.iter().copied().collect();
        self.hands[usize::from(self.dealer)] = dealer.iter().copied().collect();
        self.stock = stock.iter().rev().copied().collect();
        self.discard.clear();
        self.table = Table::default();
    }

    /// Gives the turn to a seat, whose first act is to draw (P5); answers the card.
    pub(super) fn begin_turn(&mut self, seat: Seat) -> Card {
        let card = self.stock.pop().expect("a hand ends with the turn in which the stock ran out");
        self.hands[usize::from(seat)].insert(card);
        self.to_act = Some(seat);
        card
    }

    /// The seat that begins the present hand: the dealer's opponent (P2).
    pub(super) fn starter(&self) -> Seat {
        1 - self.dealer
    }

    /// The number of the present hand, from 1; when the match is over, of its last.
    pub(super) fn hand_number(&self) -> u8 {
        self.scored_hands.len() as u8 + u8::from(self.to_act.is_some())
    }

    /// What the players have scored in the hands that are over, by seat.
    pub(super) fn totals(&self) -> [u16; 2] {
        [0, 1].map(|seat| self.scored_hands.iter().map(|hand| u16::from(hand.scores[seat])).sum())
    }

    /// P11: most points in total.
    pub(super) fn ranking(&self) -> Vec<Ranked> {
        rank_by(self.totals().map(|total| (i32::from(total), total)))
    }

    /// Whether these hands end the match (P11).
    pub(super) fn goal_reached(&self) -> bool {
        self.goal.reached(self.scored_hands.len(), self.totals())
    }

    /// See [`crate::rulesets::Ruleset::check`].
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.dealer > 1 || self.to_act.is_some_and(|seat| seat > 1) {
            return Err("no such seat");
        }
        if !self.hands.iter().all(|hand| hand.is_sound()) {
            return Err("a hand holds what is no card");
        }
        let mut copies = [0; Card::COUNT];
        let held = self.hands.iter().flat_map(|hand| hand.cards());
        let laid = self.table.laid().iter().map(|laid| laid.card);
        for card in held.chain(laid).chain(self.stock.iter().copied()).chain(self.discard.iter().copied()) {
            copies[card.index()] += 1;
        }
        if copies != [COPIES; Card::COUNT] {
            return Err("cards are missing or double");
        }
        if !self.scored_hands.iter().all(ScoredHand::is_sound) {
            return Err("a hand is scored wrongly");
        }
        if self.to_act.is_none() != self.goal_reached() {
            return Err("the match goes on beyond its end or stops before it");
        }
        let counts = self.hands.map(Hand::len);
        match self.to_act {
            Some(seat) => {
                let turns = self.table.laid().len() + self.discard.len();
                if seat != (self.starter() + (turns % 2) as Seat) % 2 {
                    return Err("the turn is with the wrong seat");
                }
                if counts[usize::from(seat)] != HAND + 1 || counts[usize::from(1 - seat)] != HAND {
                    return Err("a player holds too many cards or too few");
                }
            }
            // Who ended the hand still has the card that the others play.
            None if counts.iter().all(|count| (HAND..=HAND + 1).contains(count)) => {}
            None => return Err("a player holds too many cards or too few"),
        }
        Ok(())
    }
}
