//! What a viewer of a match of `leopard` may see, and what they can imagine of the rest.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use utoipa::ToSchema;

use super::cards::{COPIES, Card, DECK, Hand, Rank};
use super::moves::{Event, Face, Move};
use super::options::Options;
use super::state::{ScoredHand, State};
use super::table::{CELLS, Cell, Laid, Whose};
use crate::rulesets::random::Stream;
use crate::rulesets::{Seat, Viewer};

/// A match of `leopard`: its present hand and what has been scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeopardView)]
pub struct View {
    /// From 1; the last hand's when the match is over.
    pub hand_number: u8,
    /// The seat that dealt this hand; the other one began it (P2).
    pub dealer: Seat,
    /// Cards left in the face-down stock.
    pub stock_count: u8,
    /// The open discard pile of this hand, in the order of discarding.
    pub discard: Vec<Card>,
    /// By seat.
    #[schema(min_items = 2, max_items = 2)]
    pub seats: [SeatView; 2],
    /// The hands that are over, in the order of play.
    pub scored_hands: Vec<ScoredHand>,
}

/// One player's cards and points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeopardSeat)]
pub struct SeatView {
    /// In catalogue order; null where it is hidden from you.
    #[schema(required)]
    pub hand: Option<SmallVec<[Card; 16]>>,
    /// Nine for the player whose turn it is, who has drawn; eight for the other.
    pub hand_count: u8,
    /// The stacks on the cells 1 to 9, each from bottom to top; the top card counts (P3).
    #[schema(min_items = 9, max_items = 9)]
    pub square: [SmallVec<[LaidView; 5]>; CELLS],
    /// Points for the lines of the square as it is now (P8).
    pub square_value: u8,
    /// Points scored in the hands that are over.
    pub total: u16,
}

/// A card on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeopardLaidCard)]
pub struct LaidView {
    pub face: Face,
    /// Null when it lies face down and you did not lay it.
    #[schema(required)]
    pub card: Option<Card>,
}

/// A played move of `leopard` as its viewer may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = LeopardPlayedMove)]
pub enum MoveView {
    /// A card was laid on a cell (P6).
    Lay {
        /// Null for a jack or queen that another player laid, until the match ends.
        #[schema(required)]
        card: Option<Card>,
        /// As the player who laid it sees it.
        square: Whose,
        /// 1 to 9, row by row.
        #[schema(minimum = 1, maximum = 9)]
        cell: u8,
    },
    /// A card was discarded (P7).
    Discard { card: Card },
    /// The hand was ended (P8).
    EndHand {},
}

/// A laid card, unless it lies face down and is hidden from the viewer.
fn shown(card: Card, by: Seat, viewer: Viewer) -> Option<Card> {
    match Face::of(card) {
        Face::Up => Some(card),
        Face::Down => viewer.sees(by).then_some(card),
    }
}

/// See [`crate::rulesets::Ruleset::view`].
pub(super) fn view(state: &State, viewer: Viewer) -> View {
    let (values, totals) = (state.table.values(state.scoring), state.totals());
    let mut seats = [0, 1].map(|seat: Seat| {
        let at = usize::from(seat);
        let hand = state.hands[at];
        SeatView {
            hand: viewer.sees(seat).then(|| hand.cards().collect()),
            hand_count: hand.len() as u8,
            square: Default::default(),
            square_value: values[at],
            total: totals[at],
        }
    });
    for &Laid { card, owner, cell, by } in state.table.laid() {
        let stack = &mut seats[usize::from(owner)].square[usize::from(cell - 1)];
        stack.push(LaidView { face: Face::of(card), card: shown(card, by, viewer) });
    }
    View {
        hand_number: state.hand_number(),
        dealer: state.dealer,
        stock_count: state.stock.len() as u8,
        discard: state.discard.to_vec(),
        seats,
        scored_hands: state.scored_hands.to_vec(),
    }
}

/// See [`crate::rulesets::Ruleset::move_view`].
pub(super) fn move_view(mv: &Move, seat: Seat, viewer: Viewer) -> MoveView {
    match *mv {
        // A played move names its cell.
        Move::Lay { card, square, cell } => {
            MoveView::Lay { card: shown(card, seat, viewer), square, cell: cell.unwrap_or_default() }
        }
        Move::Discard { card } => MoveView::Discard { card },
        Move::EndHand {} => MoveView::EndHand {},
    }
}

/// See [`crate::rulesets::Ruleset::event_view`].
pub(super) fn event_view(event: &Event, viewer: Viewer) -> Event {
    match *event {
        Event::CardPlayed { seat, card, square, cell, face } => {
            let card = card.and_then(|card| shown(card, seat, viewer));
            Event::CardPlayed { seat, card, square, cell, face }
        }
        Event::HandDealt { seat, hand_number, dealer, cards } => {
            Event::HandDealt { seat, hand_number, dealer, cards: cards.filter(|_| viewer.sees(seat)) }
        }
        Event::CardDrawn { seat, card } => Event::CardDrawn { seat, card: card.filter(|_| viewer.sees(seat)) },
        public @ (Event::CardDiscarded { .. }
        | Event::HandScored { .. }
        | Event::TurnPassed { .. }
        | Event::GameFinished { .. }) => public,
    }
}

/// A card on the table as far as the viewer knows it.
struct Imagined {
    card: Option<Card>,
    owner: Seat,
    cell: Cell,
    by: Seat,
}

/// See [`crate::rulesets::Ruleset::determinize`]: every deal that the view allows is equally likely.
pub(super) fn determinize(view: &View, to_act: Option<Seat>, options: &Options, random: &mut Stream) -> State {
    let mut laid = imagine_table(view);
    let (mut jacks, mut queens, mut rest) = unseen(view);

    // In the other player's square only jacks can have been laid face down (P6), elsewhere jacks and queens. The narrowest
    // choice comes first: how many ways the later ones have does not depend on it, so all deals stay equally likely.
    random.shuffle(&mut jacks);
    for place in laid.iter_mut().filter(|place| place.card.is_none() && place.by != place.owner) {
        place.card = jacks.pop();
    }
    let mut face_down = jacks;
    face_down.append(&mut queens);
    random.shuffle(&mut face_down);
    for place in laid.iter_mut().filter(|place| place.card.is_none()) {
        place.card = face_down.pop();
    }
    rest.append(&mut face_down);
    random.shuffle(&mut rest);
    let hands = [0, 1].map(|seat| match &view.seats[seat] {
        SeatView { hand: Some(cards), .. } => cards.iter().copied().collect::<Hand>(),
        SeatView { hand_count, .. } => rest.drain(..usize::from(*hand_count)).collect(),
    });

    State {
        goal: options.goal(),
        scoring: options.scoring.unwrap_or_default(),
        dealer: view.dealer,
        to_act,
        stock: rest.into_iter().collect(),
        hands,
        discard: view.discard.iter().copied().collect(),
        table: laid
            .into_iter()
            .map(|Imagined { card, owner, cell, by }| {
                let card = card.expect("as many jacks and queens are unseen as lie face down and hidden");
                Laid { card, owner, cell, by }
            })
            .collect(),
        scored_hands: view.scored_hands.iter().copied().collect(),
    }
}

/// The cards on the table, each stack from bottom to top, with who must have laid them.
fn imagine_table(view: &View) -> Vec<Imagined> {
    // The hands tell whose view it is: nobody's when both are shown, or none.
    let seen_by = match &view.seats {
        [SeatView { hand: Some(_), .. }, SeatView { hand: None, .. }] => Some(0),
        [SeatView { hand: None, .. }, SeatView { hand: Some(_), .. }] => Some(1),
        _ => None,
    };
    let mut laid = Vec::new();
    for (owner, seat) in (0..).zip(&view.seats) {
        for (cell, stack) in (1..).zip(&seat.square) {
            laid.extend(stack.iter().map(|&LaidView { card, .. }| {
                // A player sees just those face-down cards that they laid; anybody else cannot tell the owner's from a
                // jack of the other player's.
                let by = match (seen_by, card) {
                    (Some(viewer), Some(_)) => viewer,
                    (Some(viewer), None) => 1 - viewer,
                    (None, Some(_) | None) => owner,
                };
                Imagined { card, owner, cell, by }
            }));
        }
    }
    laid
}

/// The cards that a view does not show, in catalogue order: jacks, queens, all others.
fn unseen(view: &View) -> (Vec<Card>, Vec<Card>, Vec<Card>) {
    let mut left = [COPIES; Card::COUNT];
    let seen_in_seats = view.seats.iter().flat_map(|seat| {
        let on_table = seat.square.iter().flatten().filter_map(|laid| laid.card);
        seat.hand.iter().flatten().copied().chain(on_table)
    });
    for card in view.discard.iter().copied().chain(seen_in_seats) {
        left[card.index()] -= 1;
    }
    let (mut jacks, mut queens, mut rest) = (Vec::new(), Vec::new(), Vec::with_capacity(DECK));
    for card in Card::all() {
        let pile = match card.rank() {
            Rank::Jack => &mut jacks,
            Rank::Queen => &mut queens,
            Rank::Number(_) | Rank::Ten | Rank::King => &mut rest,
        };
        pile.extend(std::iter::repeat_n(card, left[card.index()]));
    }
    (jacks, queens, rest)
}
