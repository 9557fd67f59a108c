//! What a player may do in a turn (Q4–Q7, Q10), and what it does (Q8, Q9, Q11).

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::event::Event;
use super::field::{Cell, Field, MAX_OPEN};
use super::state::State;
use crate::rulesets::Seat;
use crate::rulesets::cards::{Card, Symbol};

/// A whole turn: one card from the hand is placed, covers or is swapped, or the player passes (Q4, Q10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = QuintisFontisMove)]
pub enum Move {
    /// Lay a card on a free cell that touches an occupied one along a side or at a corner (Q5); the first card of the
    /// game goes to (0, 0). The field may become five cells wide and five high (Q3).
    Place {
        /// A card of the own hand.
        card: Card,
        /// Column of the cell, growing to the right.
        #[schema(minimum = -4, maximum = 4)]
        x: i8,
        /// Row of the cell, growing downwards.
        #[schema(minimum = -4, maximum = 4)]
        y: i8,
    },
    /// Lay a card on top of a stack whose top card shares a symbol with it (Q6).
    Cover {
        /// A card of the own hand.
        card: Card,
        /// Column of the stack.
        #[schema(minimum = -4, maximum = 4)]
        x: i8,
        /// Row of the stack.
        #[schema(minimum = -4, maximum = 4)]
        y: i8,
    },
    /// Put a card in the place of the top card of a stack that shares a symbol with it, and take that card into the hand
    /// (Q7). Nothing is drawn after it (Q8).
    Swap {
        /// A card of the own hand.
        card: Card,
        /// Column of the stack.
        #[schema(minimum = -4, maximum = 4)]
        x: i8,
        /// Row of the stack.
        #[schema(minimum = -4, maximum = 4)]
        y: i8,
    },
    /// Play nothing; legal only when nothing else is (Q10).
    Pass {},
}

/// Why a move is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    #[error("it is not your turn")]
    NotToMove,
    #[error("you can play a card, so you may not pass")]
    CanPlay,
    #[error("this card is not in your hand")]
    NotInHand,
    #[error("the first card of the game goes to (0, 0)")]
    FirstCell,
    #[error("the field would become wider or higher than five cells")]
    TooFar,
    #[error("a card lies on this cell: a card can be placed only on a free one")]
    Occupied,
    #[error("this cell touches no card")]
    Apart,
    #[error("there is no card on this cell to cover")]
    NothingToCover,
    #[error("your card shares no symbol with the one that it is to cover")]
    CoversUnlike,
    #[error("there is no card on this cell to swap")]
    NothingToSwap,
    #[error("your card shares no symbol with the one that it is to be swapped for")]
    SwapsUnlike,
}

impl crate::rulesets::Illegal for Illegal {
    fn rule(&self) -> &'static str {
        match self {
            Illegal::NotToMove => "C1",
            Illegal::CanPlay => "Q10",
            Illegal::NotInHand => "Q4",
            Illegal::FirstCell | Illegal::TooFar => "Q3",
            Illegal::Occupied | Illegal::Apart => "Q5",
            Illegal::NothingToCover | Illegal::CoversUnlike => "Q6",
            Illegal::NothingToSwap | Illegal::SwapsUnlike => "Q7",
        }
    }
}

/// Appends the legal moves of a seat in their order: all places, then covers, then swaps; each by card, x, y.
pub fn legal_moves(state: &State, seat: Seat, moves: &mut Vec<Move>) {
    if state.to_act() != Some(seat) {
        return;
    }
    let hand = state.players[usize::from(seat)].hand;
    let before = moves.len();
    let open: ArrayVec<Cell, MAX_OPEN> = state.field.open().iter().collect();
    for card in hand.faces() {
        moves.extend(open.iter().map(|cell| Move::Place { card, x: cell.x, y: cell.y }));
    }
    let first_cover = moves.len();
    let shown = Shown::on(&state.field);
    let tops = state.field.tops();
    for card in hand.faces() {
        let mut alike = shown.alike(card);
        while alike != 0 {
            let Cell { x, y } = tops[alike.trailing_zeros() as usize].0;
            moves.push(Move::Cover { card, x, y });
            alike &= alike - 1;
        }
    }
    // Whatever can be covered with a card can be swapped for it.
    let first_swap = moves.len();
    moves.extend_from_within(first_cover..);
    for mv in &mut moves[first_swap..] {
        if let Move::Cover { card, x, y } = *mv {
            *mv = Move::Swap { card, x, y };
        }
    }
    if moves.len() == before {
        moves.push(Move::Pass {});
    }
}

/// For each symbol the stacks whose top card shows it, a bit for each place in [`Field::tops`].
struct Shown([u32; Symbol::COUNT]);

impl Shown {
    fn on(field: &Field) -> Self {
        let mut shown = [0; Symbol::COUNT];
        for (place, (_, card)) in field.tops().iter().enumerate() {
            shown[card.upper().index()] |= 1 << place;
            shown[card.lower().index()] |= 1 << place;
        }
        Self(shown)
    }

    /// The stacks whose top card shares a symbol with that card (Q6, Q7).
    fn alike(&self, card: Card) -> u32 {
        self.0[card.upper().index()] | self.0[card.lower().index()]
    }
}

/// Plays a move and appends what happened.
///
/// # Errors
/// A move that is not legal; nothing has changed then.
pub fn apply(state: &mut State, seat: Seat, mv: Move, events: &mut Vec<Event>) -> Result<(), Illegal> {
    if state.to_act() != Some(seat) {
        return Err(Illegal::NotToMove);
    }
    match mv {
        Move::Place { card, x, y } => {
            let cell = check_place(state, seat, card, (x, y))?;
            lay(state, seat, card, cell, events);
        }
        Move::Cover { card, x, y } => {
            let cell = check_stack(state, seat, card, (x, y), Illegal::NothingToCover, Illegal::CoversUnlike)?;
            lay(state, seat, card, cell, events);
        }
        Move::Swap { card, x, y } => {
            let cell = check_stack(state, seat, card, (x, y), Illegal::NothingToSwap, Illegal::SwapsUnlike)?;
            swap(state, seat, card, cell, events);
        }
        Move::Pass {} => {
            if can_play(state, seat) {
                return Err(Illegal::CanPlay);
            }
            end_turn(state, seat, events);
        }
    }
    Ok(())
}

/// The cell on which a card is to be placed, if it may be (Q3–Q5).
fn check_place(state: &State, seat: Seat, card: Card, (x, y): (i8, i8)) -> Result<Cell, Illegal> {
    if !state.players[usize::from(seat)].hand.contains(card) {
        return Err(Illegal::NotInHand);
    }
    let field = &state.field;
    match Cell::at(x, y) {
        Some(cell) if field.open().contains(cell) => Ok(cell),
        _ if field.occupied().is_empty() => Err(Illegal::FirstCell),
        Some(cell) if field.occupied().contains(cell) => Err(Illegal::Occupied),
        Some(cell) if field.may_reach(cell) => Err(Illegal::Apart),
        _ => Err(Illegal::TooFar),
    }
}

/// The cell of a stack that a card is to cover or to be swapped into, if it may be (Q4, Q6, Q7); otherwise `nothing`
/// when there is no stack, `unlike` when its top card shares no symbol with the card.
fn check_stack(
    state: &State,
    seat: Seat,
    card: Card,
    (x, y): (i8, i8),
    nothing: Illegal,
    unlike: Illegal,
) -> Result<Cell, Illegal> {
    if !state.players[usize::from(seat)].hand.contains(card) {
        return Err(Illegal::NotInHand);
    }
    let cell = Cell::at(x, y).ok_or(nothing)?;
    let top = state.field.top(cell).ok_or(nothing)?;
    if shares_symbol(card, top) { Ok(cell) } else { Err(unlike) }
}

/// Whether the seat has anything to play (Q10).
fn can_play(state: &State, seat: Seat) -> bool {
    let hand = state.players[usize::from(seat)].hand;
    // Any card at all can be placed as long as there is an open cell.
    !state.field.open().is_empty()
        || hand.faces().any(|card| state.field.tops().iter().any(|(_, top)| shares_symbol(card, *top)))
}

/// Whether two cards are alike enough for one to cover the other or to be swapped for it (Q6, Q7).
fn shares_symbol(card: Card, top: Card) -> bool {
    !card.symbols().and(top.symbols()).is_empty()
}

/// The turn of a player who places or covers: they draw after it (Q5, Q6, Q8).
fn lay(state: &mut State, seat: Seat, card: Card, cell: Cell, events: &mut Vec<Event>) {
    state.players[usize::from(seat)].hand.remove(card);
    state.field.lay(cell, card);
    events.push(Event::CardPlayed { seat, card, x: cell.x, y: cell.y });
    if let Some(drawn) = state.deck.pop() {
        state.players[usize::from(seat)].hand.insert(drawn);
        events.push(Event::CardDrawn { seat, card: Some(drawn) });
    }
    gain_keys(state, seat, card, cell, events);
    end_turn(state, seat, events);
}

/// The turn of a player who swaps (Q7): the card that they take is in the place of a draw (Q8).
fn swap(state: &mut State, seat: Seat, card: Card, cell: Cell, events: &mut Vec<Event>) {
    let taken = state.field.swap(cell, card);
    let hand = &mut state.players[usize::from(seat)].hand;
    // Out before in: a hand has no room for three of a face, and the card taken may be another of those played.
    hand.remove(card);
    hand.insert(taken);
    let Cell { x, y } = cell;
    events.push(Event::CardTaken { seat, card: taken, x, y });
    events.push(Event::CardPlayed { seat, card, x, y });
    gain_keys(state, seat, card, cell, events);
    end_turn(state, seat, events);
}

/// Gives the player the Keys that the card just played earns on its cell (Q9).
fn gain_keys(state: &mut State, seat: Seat, card: Card, cell: Cell, events: &mut Vec<Event>) {
    let lacking = card.symbols().without(state.players[usize::from(seat)].keys);
    for key in lacking.iter() {
        if state.key_supply(key) > 0 && state.field.has_run(key, cell, state.diagonals) {
            state.players[usize::from(seat)].keys.insert(key);
            events.push(Event::KeyGained { seat, key });
        }
    }
}

/// Counts the turn and passes it on, or ends the game (Q11, Q13).
fn end_turn(state: &mut State, seat: Seat, events: &mut Vec<Event>) {
    let seats = state.players.len() as u8;
    state.turns_taken = state.turns_taken.saturating_add(1);
    state.turn = (seat + 1) % seats;
    state.last_turns_left = match state.last_turns_left {
        Some(left) => Some(left - 1),
        // The last card was drawn in this very turn: one more for everybody, the drawer's last.
        None if state.deck.is_empty() => {
            events.push(Event::LastTurnsBegun { seat, turns: seats });
            Some(seats)
        }
        None => None,
    };
    events.push(match state.end() {
        Some(reason) => Event::GameFinished { reason },
        None => Event::TurnPassed { seat: state.turn },
    });
}
