//! Moves of `leopard`: which are legal and what they do (P5–P11).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cards::{Card, RANKS, Rank};
use super::state::{ENDING_VALUE, HAND, ScoredHand, State};
use super::table::{CELLS, Cell, Laid, Places, Table, Whose};
use crate::rulesets::random::Random;
use crate::rulesets::{EndReason, Illegal, Seat};

/// A move in `leopard` (P5). The card of the turn has been drawn already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields, from = "MoveAsSent")]
#[schema(as = LeopardMove)]
pub enum Move {
    /// Lay a card from your hand on a cell of a square (P6). Jacks and queens lie face down, all others face up.
    Lay {
        /// From your hand.
        card: Card,
        /// Tens, queens and kings go into your own square only.
        square: Whose,
        /// 1 to 9, row by row. May be left out for ace to nine, which lie on the cell of their rank; the server writes
        /// it out.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false, minimum = 1, maximum = 9)]
        cell: Option<u8>,
    },
    /// Put a card from your hand face up on the open pile (P7).
    Discard {
        /// From your hand.
        card: Card,
    },
    /// End the hand (P8); your square must be worth at least five.
    EndHand {},
}

/// [`Move`] before the cell is filled in.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum MoveAsSent {
    Lay {
        card: Card,
        square: Whose,
        #[serde(default, deserialize_with = "crate::rulesets::present")]
        cell: Option<Cell>,
    },
    Discard {
        card: Card,
    },
    EndHand {},
}

impl From<MoveAsSent> for Move {
    /// A cell that is missing where it must be given is left to the rules to refuse.
    fn from(sent: MoveAsSent) -> Self {
        match sent {
            MoveAsSent::Lay { card, square, cell } => Move::Lay { card, square, cell: cell.or(card.own_cell()) },
            MoveAsSent::Discard { card } => Move::Discard { card },
            MoveAsSent::EndHand {} => Move::EndHand {},
        }
    }
}

/// How a card lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LeopardFace)]
pub enum Face {
    Up,
    /// Jacks and queens; only the player who laid such a card may look at it until the match ends.
    Down,
}

impl Face {
    /// How a card lies on the table (P6).
    pub(super) fn of(card: Card) -> Face {
        if card.lies_face_down() { Face::Down } else { Face::Up }
    }
}

/// What a move did, in the order in which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = LeopardEvent)]
pub enum Event {
    /// A card went from a hand to the top of a cell.
    CardPlayed {
        /// Who laid it.
        seat: Seat,
        /// Null when it lies face down and you did not lay it.
        #[schema(required)]
        card: Option<Card>,
        /// Whose square, as `seat` sees it.
        square: Whose,
        /// 1 to 9, row by row.
        #[schema(minimum = 1, maximum = 9)]
        cell: u8,
        face: Face,
    },
    /// A card went from this seat's hand face up to the discard pile.
    CardDiscarded { seat: Seat, card: Card },
    /// A hand ended (P10); lists are by seat. The scores are added to the totals.
    HandScored {
        /// The seat that ended the hand; null when the stock ran out.
        #[schema(required)]
        ended_by: Option<Seat>,
        /// What the squares were worth.
        #[schema(min_items = 2, max_items = 2)]
        values: [u8; 2],
        /// What the players scored.
        #[schema(min_items = 2, max_items = 2)]
        scores: [u8; 2],
    },
    /// All cards were gathered and shuffled, and this seat was dealt its eight of a new hand (P2). One event for each
    /// seat, the dealer's last; 88 cards are then in the stock.
    HandDealt {
        seat: Seat,
        /// The new hand's number, from 1.
        hand_number: u8,
        dealer: Seat,
        /// In catalogue order; null unless they are yours.
        #[schema(required, min_items = 8, max_items = 8)]
        cards: Option<[Card; HAND]>,
    },
    /// The turn went to this seat.
    TurnPassed { seat: Seat },
    /// This seat drew the top card of the stock; null unless it is yours.
    CardDrawn {
        seat: Seat,
        #[schema(required)]
        card: Option<Card>,
    },
    /// The match is over (P11).
    GameFinished { reason: EndReason },
}

/// Why a move is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("it is not this seat's turn")]
    NotYourTurn,
    #[error("{0} is not in your hand")]
    NotInHand(Card),
    #[error("say on which cell, 1 to 9, {0} is to be laid")]
    NoCell(Card),
    #[error("{0} can only be laid on cell {1}")]
    OtherCell(Card, Cell),
    #[error("{0} can only be laid in your own square")]
    OwnSquareOnly(Card),
    #[error("cell {0} of that square is not vacant")]
    NotVacant(Cell),
    #[error("no face-up card lies on top of cell {0} of that square")]
    NothingFaceUp(Cell),
    #[error("your square is worth {0}, and a hand can be ended with {ENDING_VALUE} or more")]
    TooLittle(u8),
}

impl Illegal for NotAllowed {
    fn rule(&self) -> &'static str {
        match self {
            NotAllowed::NotYourTurn => "C1",
            NotAllowed::NotInHand(_) => "P5",
            NotAllowed::NoCell(_)
            | NotAllowed::OtherCell(..)
            | NotAllowed::OwnSquareOnly(_)
            | NotAllowed::NotVacant(_)
            | NotAllowed::NothingFaceUp(_) => "P6",
            NotAllowed::TooLittle(_) => "P8",
        }
    }
}

/// P6: where a card of some rank may be laid.
#[derive(Clone, Copy)]
struct Allowed {
    /// Here if the cell is vacant.
    vacant: Places,
    /// Here if a card lies face up on top.
    face_up: Places,
}

impl Allowed {
    const fn of(rank: Rank) -> Allowed {
        let (vacant, face_up) = match rank {
            Rank::Number(cell) => (Places::both(cell), Places::NONE),
            Rank::Ten => (Places::OWN, Places::NONE),
            Rank::Jack => (Places::NONE, Places::ALL),
            Rank::Queen => (Places::NONE, Places::OWN),
            Rank::King => (Places::OWN, Places::OWN),
        };
        Allowed { vacant, face_up }
    }
}

/// [`Allowed::of`] for every card of a suit: looked up, since the listing of moves is mostly this.
const ALLOWED: [Allowed; RANKS] = {
    let mut allowed = [Allowed::of(Rank::King); RANKS];
    let mut i = 0;
    while i < RANKS {
        allowed[i] = Allowed::of(Card::at(i).rank());
        i += 1;
    }
    allowed
};

/// The places where a card may be laid, when these are the vacant ones (P6).
fn open_places(card: Card, vacant: Places) -> Places {
    let allowed = ALLOWED[card.index() % RANKS];
    allowed.vacant.and(vacant).or(allowed.face_up.without(vacant))
}

/// Why a cell is not among the [`open_places`].
fn why_not_open(card: Card, square: Whose, cell: Cell) -> NotAllowed {
    match (card.rank(), square) {
        (Rank::Number(own), Whose::Own | Whose::Opponent) if own != cell => NotAllowed::OtherCell(card, own),
        (Rank::Ten | Rank::Queen, Whose::Opponent) | (Rank::King, Whose::Own | Whose::Opponent) => {
            NotAllowed::OwnSquareOnly(card)
        }
        (Rank::Number(_), Whose::Own | Whose::Opponent) | (Rank::Ten, Whose::Own) => NotAllowed::NotVacant(cell),
        (Rank::Jack, Whose::Own | Whose::Opponent) | (Rank::Queen, Whose::Own) => NotAllowed::NothingFaceUp(cell),
    }
}

/// See [`crate::rulesets::Ruleset::legal_moves`].
pub(super) fn legal_moves(state: &State, seat: Seat, moves: &mut Vec<Move>) {
    if state.to_act != Some(seat) {
        return;
    }
    let hand = state.hands[usize::from(seat)];
    let vacant = state.table.vacant(seat);
    for card in hand.faces() {
        for (square, cell) in open_places(card, vacant).iter() {
            moves.push(Move::Lay { card, square, cell: Some(cell) });
        }
    }
    for card in hand.faces() {
        moves.push(Move::Discard { card });
    }
    if state.table.square(seat).value(state.scoring) >= ENDING_VALUE {
        moves.push(Move::EndHand {});
    }
}

/// See [`crate::rulesets::Ruleset::apply`].
pub(super) fn apply(
    state: &mut State,
    seat: Seat,
    mv: &Move,
    random: &Random,
    events: &mut Vec<Event>,
) -> Result<(), NotAllowed> {
    if state.to_act != Some(seat) {
        return Err(NotAllowed::NotYourTurn);
    }
    match *mv {
        Move::Lay { card, square, cell } => {
            let laid = check_lay(&state.table, seat, card, square, cell)?;
            take_from_hand(state, seat, card)?;
            state.table.lay(laid);
            let (cell, face) = (laid.cell, Face::of(card));
            events.push(Event::CardPlayed { seat, card: Some(card), square, cell, face });
        }
        Move::Discard { card } => {
            take_from_hand(state, seat, card)?;
            state.discard.push(card);
            events.push(Event::CardDiscarded { seat, card });
        }
        Move::EndHand {} => {
            let value = state.table.square(seat).value(state.scoring);
            if value < ENDING_VALUE {
                return Err(NotAllowed::TooLittle(value));
            }
            end_hand(state, Some(seat), random, events);
            return Ok(());
        }
    }
    if state.stock.is_empty() {
        // P9: this was the turn in which the last card was drawn.
        end_hand(state, None, random, events);
    } else {
        begin_turn(state, 1 - seat, events);
    }
    Ok(())
}

/// Where the card comes to lie, if P6 allows it there.
fn check_lay(table: &Table, seat: Seat, card: Card, square: Whose, cell: Option<Cell>) -> Result<Laid, NotAllowed> {
    let cell = cell.filter(|cell| (1..=CELLS as Cell).contains(cell)).ok_or(NotAllowed::NoCell(card))?;
    if open_places(card, table.vacant(seat)).contains(square, cell) {
        Ok(Laid { card, owner: square.owner(seat), cell, by: seat })
    } else {
        Err(why_not_open(card, square, cell))
    }
}

/// Nothing is taken on an error.
fn take_from_hand(state: &mut State, seat: Seat, card: Card) -> Result<(), NotAllowed> {
    let hand = &mut state.hands[usize::from(seat)];
    if !hand.contains(card) {
        return Err(NotAllowed::NotInHand(card));
    }
    hand.remove(card);
    Ok(())
}

/// P5: passes the turn; the draw belongs to it.
fn begin_turn(state: &mut State, seat: Seat, events: &mut Vec<Event>) {
    let card = state.begin_turn(seat);
    events.push(Event::TurnPassed { seat });
    events.push(Event::CardDrawn { seat, card: Some(card) });
}

/// Scores the hand (P10), then ends the match or deals the next hand (P11).
fn end_hand(state: &mut State, ended_by: Option<Seat>, random: &Random, events: &mut Vec<Event>) {
    let scored = ScoredHand::new(ended_by, state.table.values(state.scoring));
    let ScoredHand { ended_by, values, scores } = scored;
    state.scored_hands.push(scored);
    events.push(Event::HandScored { ended_by, values, scores });
    if state.goal_reached() {
        // The last hand stays on the table for everybody to see.
        state.to_act = None;
        events.push(Event::GameFinished { reason: EndReason::Completed });
        return;
    }
    state.dealer = 1 - state.dealer;
    state.deal(random);
    let (hand_number, dealer) = (state.scored_hands.len() as u8 + 1, state.dealer);
    for seat in [state.starter(), dealer] {
        let mut cards = state.hands[usize::from(seat)].cards();
        let cards = std::array::from_fn(|_| cards.next().expect("eight cards were dealt"));
        events.push(Event::HandDealt { seat, hand_number, dealer, cards: Some(cards) });
    }
    begin_turn(state, state.starter(), events);
}
