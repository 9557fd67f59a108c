//! Moves of `leonardo`: which are legal and what they do (L3–L9).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::state::{KEYS_TO_WIN, State};
use crate::rulesets::cards::{Card, Symbol, SymbolSet};
use crate::rulesets::random::Random;
use crate::rulesets::{EndReason, Illegal, Seat};

/// A position of the cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LeonardoPosition)]
pub enum Position {
    Center,
    Up,
    Right,
    Down,
    Left,
}

impl Position {
    /// All five, in the order of the cross.
    pub(super) const ALL: [Position; 5] =
        [Position::Center, Position::Up, Position::Right, Position::Down, Position::Left];
}

/// A move in `leonardo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = LeonardoMove)]
pub enum Move {
    /// Play a card into your own cross (L4); the card there goes to the left neighbour. Keys follow by themselves, and
    /// the turn ends with a draw.
    Play {
        /// From your hand.
        card: Card,
        /// Which card of your cross it replaces.
        position: Position,
        /// The Key that you take if one symbol is then on all five cards of your cross (L7); any that you still lack.
        #[serde(default, deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        bonus_key: Option<Symbol>,
    },
}

/// Why a Key was gained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LeonardoKeySource)]
pub enum KeySource {
    /// The symbol is on a whole row or column (L5).
    Line,
    /// The bonus Key (L7).
    Bonus,
}

/// What a move did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = LeonardoEvent)]
pub enum Event {
    /// A card went from a hand into the same player's cross.
    CardPlayed { seat: Seat, card: Card, position: Position },
    /// The card that was replaced went into this seat's cross, to the same position.
    CardPassed { seat: Seat, card: Card, position: Position },
    /// The card that had lain there, in this seat's cross, went to the discard pile.
    CardDiscarded { seat: Seat, card: Card, position: Position },
    /// A player took a Key.
    KeyGained { seat: Seat, key: Symbol, by: KeySource },
    /// The deck was empty: the discard pile was shuffled into a new deck of that many cards (L8).
    DeckReshuffled { deck_count: u8 },
    /// A player drew a card; null unless it is yours.
    CardDrawn {
        seat: Seat,
        #[schema(required)]
        card: Option<Card>,
    },
    /// The turn went to this seat.
    TurnPassed { seat: Seat },
    /// The rules ended the game.
    GameFinished { reason: EndReason },
}

/// Why a move is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("it is not this seat's turn")]
    NotYourTurn,
    #[error("{0} is not in your hand")]
    NotInHand(Card),
    #[error("the bonus Key is taken once in a game, and you have taken it")]
    BonusTaken,
    #[error("no symbol would be on all five cards of your cross")]
    NoBonus,
    #[error("you hold the Key {0} already, or gain it by a line in this turn")]
    KeyHeld(Symbol),
}

impl Illegal for NotAllowed {
    fn rule(&self) -> &'static str {
        match self {
            NotAllowed::NotYourTurn => "C1",
            NotAllowed::NotInHand(_) => "L4",
            NotAllowed::BonusTaken | NotAllowed::NoBonus | NotAllowed::KeyHeld(_) => "L7",
        }
    }
}

/// What a cross gives once `card` lies at `position`.
struct Gain {
    /// Symbols on the whole row or the whole column (L5).
    lines: SymbolSet,
    /// Whether a symbol is on all five (L7).
    all_five: bool,
}

impl Gain {
    fn of(cross: &[Card; 5], card: Card, position: Position) -> Gain {
        let [center, up, right, down, left] =
            Position::ALL.map(|p| if p == position { card.symbols() } else { cross[p as usize].symbols() });
        let row = center.and(left).and(right);
        let column = center.and(up).and(down);
        Gain { lines: row.or(column), all_five: !row.and(column).is_empty() }
    }
}

/// See [`crate::rulesets::Ruleset::legal_moves`].
pub(super) fn legal_moves(state: &State, seat: Seat, moves: &mut Vec<Move>) {
    if state.over.is_some() || seat != state.turn {
        return;
    }
    let own = &state.seats[usize::from(seat)];
    // For each position the symbols on the four other cards: a card with one of them there makes five alike (L7).
    let four_alike = if own.bonus_key_taken { [SymbolSet::default(); 5] } else { four_alike(&own.cross) };
    let mut previous = None;
    for &card in &own.hand {
        // Equal cards lie side by side and count once (C3).
        if previous.replace(card) == Some(card) {
            continue;
        }
        let symbols = card.symbols();
        for position in Position::ALL {
            moves.push(Move::Play { card, position, bonus_key: None });
            if !four_alike[position as usize].and(symbols).is_empty() {
                let lines = Gain::of(&own.cross, card, position).lines;
                let lacking = SymbolSet::ALL.without(own.keys.or(lines));
                moves.extend(lacking.iter().map(|key| Move::Play { card, position, bonus_key: Some(key) }));
            }
        }
    }
}

/// By position: the symbols that are on all the other cards of a cross.
fn four_alike(cross: &[Card; 5]) -> [SymbolSet; 5] {
    let [center, up, right, down, left] = cross.map(Card::symbols);
    let (vertical, horizontal) = (up.and(down), left.and(right));
    let (row, column) = (center.and(horizontal), center.and(vertical));
    [vertical.and(horizontal), row.and(down), column.and(left), row.and(up), column.and(right)]
}

/// See [`crate::rulesets::Ruleset::apply`].
pub(super) fn apply(
    state: &mut State,
    seat: Seat,
    mv: &Move,
    random: &Random,
    events: &mut Vec<Event>,
) -> Result<(), NotAllowed> {
    let Move::Play { card, position, bonus_key } = *mv;
    if state.over.is_some() || seat != state.turn {
        return Err(NotAllowed::NotYourTurn);
    }
    let own = &mut state.seats[usize::from(seat)];
    let place = own.hand.iter().position(|held| *held == card).ok_or(NotAllowed::NotInHand(card))?;
    let gain = Gain::of(&own.cross, card, position);
    let line_keys = gain.lines.without(own.keys);
    if let Some(key) = bonus_key {
        if own.bonus_key_taken {
            return Err(NotAllowed::BonusTaken);
        }
        if !gain.all_five {
            return Err(NotAllowed::NoBonus);
        }
        if own.keys.or(line_keys).contains(key) {
            return Err(NotAllowed::KeyHeld(key));
        }
    }

    // L4
    own.hand.remove(place);
    let passed = std::mem::replace(own.at(position), card);
    events.push(Event::CardPlayed { seat, card, position });
    // L5 and L7, taken together
    own.keys = own.keys.or(line_keys);
    if let Some(key) = bonus_key {
        own.keys.insert(key);
        own.bonus_key_taken = true;
    }
    let keys = own.keys.len();
    let neighbour = state.left_of(seat);
    let discarded = std::mem::replace(state.seats[usize::from(neighbour)].at(position), passed);
    state.discard.push(discarded);
    events.push(Event::CardPassed { seat: neighbour, card: passed, position });
    events.push(Event::CardDiscarded { seat: neighbour, card: discarded, position });
    events.extend(line_keys.iter().map(|key| Event::KeyGained { seat, key, by: KeySource::Line }));
    events.extend(bonus_key.map(|key| Event::KeyGained { seat, key, by: KeySource::Bonus }));

    state.turns_taken += 1;
    if keys >= KEYS_TO_WIN {
        // L9: before the draw.
        return finish(state, EndReason::Completed, events);
    }
    draw(state, seat, random, events);
    if state.turn_limit.is_some_and(|limit| state.turns_taken >= limit) {
        return finish(state, EndReason::TurnLimit, events);
    }
    state.turn = neighbour;
    events.push(Event::TurnPassed { seat: neighbour });
    Ok(())
}

fn finish(state: &mut State, reason: EndReason, events: &mut Vec<Event>) -> Result<(), NotAllowed> {
    state.over = Some(reason);
    events.push(Event::GameFinished { reason });
    Ok(())
}

/// L8. L4 has just discarded a card, so there is always one to draw.
fn draw(state: &mut State, seat: Seat, random: &Random, events: &mut Vec<Event>) {
    if state.deck.is_empty() {
        state.reshuffles += 1;
        let mut deck = std::mem::take(&mut state.discard);
        random.stream(1 + u64::from(state.reshuffles)).shuffle(&mut deck);
        deck.reverse();
        events.push(Event::DeckReshuffled { deck_count: deck.len() as u8 });
        state.deck = deck;
    }
    let Some(card) = state.deck.pop() else { return };
    let hand = &mut state.seats[usize::from(seat)].hand;
    hand.insert(hand.partition_point(|held| *held <= card), card);
    events.push(Event::CardDrawn { seat, card: Some(card) });
}
