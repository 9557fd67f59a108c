//! What a viewer of a game of `leonardo` may see, and what they can imagine of the rest.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use utoipa::ToSchema;

use super::moves::Event;
use super::state::{HAND, KEYS_TO_WIN, Options, SeatState, State};
use crate::rulesets::cards::{Card, Symbol, SymbolSet, deck};
use crate::rulesets::random::Stream;
use crate::rulesets::{EndReason, Seat, Viewer};

/// The table of a game of `leonardo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeonardoView)]
pub struct View {
    /// Turns taken by all players together.
    pub turns_taken: u32,
    /// Cards left in the face-down deck.
    pub deck_count: u8,
    /// The discard pile, in the order of discarding.
    pub discard: Vec<Card>,
    /// By seat.
    pub seats: Vec<SeatView>,
}

/// One player's cards and Keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeonardoSeat)]
pub struct SeatView {
    /// Face up.
    pub cross: CrossView,
    /// In catalogue order; null where it is hidden from you.
    #[schema(required)]
    pub hand: Option<SmallVec<[Card; 16]>>,
    /// Cards in the hand: five, but four for a winner, who no longer draws (L9).
    pub hand_count: u8,
    /// In catalogue order.
    pub keys: SmallVec<[Symbol; 16]>,
    /// Whether the bonus Key of L7 has been taken.
    pub bonus_key_taken: bool,
}

/// The five cards of a cross.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeonardoCross)]
pub struct CrossView {
    pub center: Card,
    pub up: Card,
    pub right: Card,
    pub down: Card,
    pub left: Card,
}

/// See [`crate::rulesets::Ruleset::view`].
pub(super) fn view(state: &State, viewer: Viewer) -> View {
    View {
        turns_taken: state.turns_taken,
        deck_count: state.deck.len() as u8,
        discard: state.discard.to_vec(),
        seats: (0..).zip(&state.seats).map(|(seat, own)| seat_view(own, viewer.sees(seat))).collect(),
    }
}

fn seat_view(own: &SeatState, shown: bool) -> SeatView {
    let [center, up, right, down, left] = own.cross;
    SeatView {
        cross: CrossView { center, up, right, down, left },
        hand: shown.then(|| own.hand.iter().copied().collect()),
        hand_count: own.hand.len() as u8,
        keys: own.keys.iter().collect(),
        bonus_key_taken: own.bonus_key_taken,
    }
}

/// See [`crate::rulesets::Ruleset::event_view`].
pub(super) fn event_view(event: &Event, viewer: Viewer) -> Event {
    match *event {
        Event::CardDrawn { seat, card } => Event::CardDrawn { seat, card: card.filter(|_| viewer.sees(seat)) },
        public @ (Event::CardPlayed { .. }
        | Event::CardPassed { .. }
        | Event::CardDiscarded { .. }
        | Event::KeyGained { .. }
        | Event::DeckReshuffled { .. }
        | Event::TurnPassed { .. }
        | Event::GameFinished { .. }) => public,
    }
}

/// See [`crate::rulesets::Ruleset::determinize`]: cards that the viewer does not see are dealt anew.
pub(super) fn determinize(view: &View, to_act: Option<Seat>, options: &Options, random: &mut Stream) -> State {
    let mut unseen = deck().to_vec();
    let laid = view.seats.iter().flat_map(|seat| {
        let CrossView { center, up, right, down, left } = seat.cross;
        [center, up, right, down, left].into_iter().chain(seat.hand.iter().flatten().copied())
    });
    for card in laid.chain(view.discard.iter().copied()) {
        if let Some(place) = unseen.iter().position(|other| *other == card) {
            unseen.swap_remove(place);
        }
    }
    random.shuffle(&mut unseen);
    let seats = view
        .seats
        .iter()
        .map(|seat| {
            let CrossView { center, up, right, down, left } = seat.cross;
            let mut hand: ArrayVec<Card, HAND> = match &seat.hand {
                Some(cards) => cards.iter().copied().collect(),
                None => unseen.drain(..usize::from(seat.hand_count)).collect(),
            };
            hand.sort_unstable();
            let mut keys = SymbolSet::default();
            seat.keys.iter().for_each(|key| keys.insert(*key));
            SeatState { cross: [center, up, right, down, left], hand, keys, bonus_key_taken: seat.bonus_key_taken }
        })
        .collect();
    let winner = (0..).zip(&view.seats).find(|(_, seat)| seat.keys.len() >= KEYS_TO_WIN).map(|(seat, _)| seat);
    let over = match (to_act, winner) {
        (Some(_), _) => None,
        (None, Some(_)) => Some(EndReason::Completed),
        (None, None) => Some(EndReason::TurnLimit),
    };
    State {
        turns_taken: view.turns_taken,
        turn_limit: options.turn_limit.turns(),
        // Who took the last turn of a game that the limit ended is not in the view, and decides nothing any more.
        turn: to_act.or(winner).unwrap_or(0),
        over,
        deck: unseen.into_iter().collect(),
        discard: view.discard.iter().copied().collect(),
        reshuffles: State::reshuffles_in(view.turns_taken - u32::from(winner.is_some()), view.seats.len()),
        seats,
    }
}
