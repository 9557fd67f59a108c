//! What a viewer of a game of `siggil` may see, and what they can imagine of the rest.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use utoipa::ToSchema;

use super::cards::{By, Card, CardSet, Kind, SigilCard, Spirit, SpiritSet};
use super::layouts::{Layout, SLOTS};
use super::moves::Event;
use super::state::{Difficulty, LaidSet, Options, Phase, Sigil, State, is_solo_spirit};
use crate::rulesets::random::Stream;
use crate::rulesets::{Ranked, Seat, Viewer, rank_by};

/// The table of a game of `siggil`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SiggilView)]
pub struct View {
    /// The pattern in which the sigil was laid out (S2).
    pub layout: Layout,
    /// What the seat to move must do now; null when the game is over.
    #[schema(required)]
    pub phase: Option<Phase>,
    /// The cards that still lie in the sigil, by slot.
    pub sigil: Vec<SlotView>,
    /// The slots of the cards that can be taken or discarded: no card lies on them. Ascending.
    pub available: SmallVec<[u8; 16]>,
    /// In catalogue order.
    pub free_spirits: SmallVec<[Spirit; 16]>,
    /// Let go for good (solo), in catalogue order.
    pub escaped: SmallVec<[Spirit; 16]>,
    /// The discard pile (solo), in the order of discarding.
    pub discard: Vec<Card>,
    /// By seat.
    pub seats: Vec<SeatView>,
}

/// One card of the sigil.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SiggilSlot)]
pub struct SlotView {
    /// 0 to 55; where it is: see the layout in the catalogue.
    pub slot: u8,
    pub face: Face,
    /// Null where it is hidden from you.
    #[schema(required)]
    pub card: Option<SigilCard>,
}

/// How a card lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SiggilFace)]
pub enum Face {
    Up,
    Down,
}

/// One player's cards and spirits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SiggilSeat)]
pub struct SeatView {
    /// In catalogue order; null where it is hidden from you.
    #[schema(required, value_type = Option<Vec<Card>>)]
    pub hand: Option<CardSet>,
    pub hand_count: u8,
    /// In the order of laying.
    pub sets: Vec<SetView>,
    /// The spirits that the seat holds, in catalogue order.
    pub spirits: SmallVec<[Spirit; 16]>,
}

/// A set that was laid to capture a spirit; it stays when the spirit is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SiggilSet)]
pub struct SetView {
    /// Counts from 1 in the order of laying, over all players.
    pub id: u8,
    /// The spirit that it captured.
    pub spirit: Spirit,
    /// What its cards have in common with the spirit.
    pub by: By,
    /// In catalogue order.
    #[schema(value_type = Vec<Card>)]
    pub cards: CardSet,
    /// Whether the spirit still lies on it.
    pub holds_spirit: bool,
}

/// See [`crate::rulesets::Ruleset::view`].
pub(super) fn view(state: &State, viewer: Viewer) -> View {
    // A face-down card is nobody's: only the end of the game shows it.
    let sees_all = match viewer {
        Viewer::Everything => true,
        Viewer::Seat(_) | Viewer::Spectator => false,
    };
    let slot_view = |(slot, card)| {
        let face = if state.sigil.is_face_up(slot) { Face::Up } else { Face::Down };
        SlotView { slot, face, card: (face == Face::Up || sees_all).then_some(card) }
    };
    let mut sigil = Vec::with_capacity(SLOTS);
    sigil.extend(state.sigil.cards().map(slot_view));
    View {
        layout: state.layout,
        phase: state.phase,
        sigil,
        available: state.sigil.available(state.layout).collect(),
        free_spirits: state.free.iter().collect(),
        escaped: state.escaped.iter().collect(),
        discard: state.discard.to_vec(),
        seats: (0..).zip(&state.hands).map(|(seat, hand)| seat_view(state, seat, *hand, viewer.sees(seat))).collect(),
    }
}

fn seat_view(state: &State, seat: Seat, hand: CardSet, shown: bool) -> SeatView {
    let set_view = |(place, set): (u8, &LaidSet)| SetView {
        id: place + 1,
        spirit: set.spirit,
        by: set.by,
        cards: set.cards,
        holds_spirit: state.held_on[set.spirit.index()] == Some(place),
    };
    SeatView {
        hand: shown.then_some(hand),
        hand_count: hand.len() as u8,
        sets: (0..).zip(&state.sets).filter(|(_, set)| set.owner == seat).map(set_view).collect(),
        spirits: state.spirits_of(seat).collect(),
    }
}

/// See [`crate::rulesets::Ruleset::event_view`]: nothing is hidden.
pub(super) fn event_view(event: &Event, _viewer: Viewer) -> Event {
    match *event {
        // Cards leave the sigil face up, so everybody has seen them.
        public @ (Event::CardTaken { .. }
        | Event::CardDiscarded { .. }
        | Event::CardRevealed { .. }
        | Event::SpiritFreed { .. }
        | Event::SpiritCaptured { .. }
        | Event::SpiritEscaped { .. }
        | Event::TurnPassed { .. }
        | Event::GameFinished { .. }) => public,
    }
}

/// See [`crate::rulesets::Ruleset::ranking`]: most spirits, then fewest cards in hand (S10); alone only all seven win (S14).
pub(super) fn ranking(state: &State) -> Vec<Ranked> {
    let standings = (0..).zip(&state.hands).map(|(seat, hand)| {
        let spirits = state.spirits_of(seat).count() as i32;
        (spirits, (spirits, Reverse(hand.len())))
    });
    let mut ranking = rank_by(standings);
    if state.is_solo() {
        ranking.iter_mut().for_each(|line| line.won = line.score == Spirit::COUNT as i32);
    }
    ranking
}

/// How many deals are tried for one in which the seat that was asked to capture can; then the last is taken as it is.
const TRIES: u32 = 32;

/// See [`crate::rulesets::Ruleset::determinize`]: cards that the viewer does not see are dealt anew.
pub(super) fn determinize(view: &View, to_act: Option<Seat>, options: &Options, random: &mut Stream) -> State {
    let mut state = imagine(view, to_act, options, random);
    // The turn would have ended by itself if there were nothing to capture (S8).
    for _ in 1..TRIES {
        if state.phase != Some(Phase::Capture) || state.can_capture(state.turn) {
            break;
        }
        state = imagine(view, to_act, options, random);
    }
    state
}

fn imagine(view: &View, to_act: Option<Seat>, options: &Options, random: &mut Stream) -> State {
    let seen = Seen::of(view);
    let solo = view.seats.len() == 1;
    let mut cards: Vec<SigilCard> = CardSet::ALL.without(seen.cards).iter().map(SigilCard::from).collect();
    let mut spirits: Vec<SigilCard> = SpiritSet::ALL.without(seen.spirits).iter().map(SigilCard::from).collect();
    random.shuffle(&mut cards);
    random.shuffle(&mut spirits);

    // Hands first: a spirit is never in one.
    let hands = view.seats.iter().map(|seat| {
        let mut deal = |count| cards.drain(cards.len() - count..).filter_map(SigilCard::card).collect();
        seat.hand.unwrap_or_else(|| deal(usize::from(seat.hand_count)))
    });
    let hands = hands.collect();
    if !solo {
        cards.append(&mut spirits);
        random.shuffle(&mut cards);
    }
    // Alone, everybody knows which slots the spirits have (S11).
    let sigil = view.sigil.iter().map(|SlotView { slot, card, .. }| {
        let pool = if solo && is_solo_spirit(*slot) { &mut spirits } else { &mut cards };
        (*slot, card.or_else(|| pool.pop()).expect("as many cards are unseen as lie face down"))
    });
    let face_up = view.sigil.iter().filter(|slot| slot.face == Face::Up).fold(0, |mask, slot| mask | 1 << slot.slot);
    let sigil = Sigil::new(sigil, face_up);

    let mut laid: Vec<(&SetView, Seat)> =
        (0..).zip(&view.seats).flat_map(|(seat, own)| own.sets.iter().map(move |set| (set, seat))).collect();
    laid.sort_unstable_by_key(|(set, _)| set.id);
    let mut held_on = [None; Spirit::COUNT];
    for (place, (set, _)) in (0..).zip(&laid) {
        if set.holds_spirit {
            held_on[set.spirit.index()] = Some(place);
        }
    }
    State {
        layout: view.layout,
        hard: options.difficulty == Some(Difficulty::Hard),
        // Nobody's any more when the game is over.
        turn: to_act.unwrap_or(0),
        phase: view.phase,
        sigil,
        free: view.free_spirits.iter().copied().collect(),
        escaped: view.escaped.iter().copied().collect(),
        discard: view.discard.iter().copied().collect(),
        hands,
        sets: laid
            .into_iter()
            .map(|(&SetView { spirit, by, cards, .. }, owner)| LaidSet { owner, spirit, by, cards })
            .collect(),
        held_on,
    }
}

/// The cards and spirits whose place the viewer knows.
struct Seen {
    cards: CardSet,
    spirits: SpiritSet,
}

impl Seen {
    fn of(view: &View) -> Seen {
        let mut cards: CardSet = view.discard.iter().copied().collect();
        let mut spirits: SpiritSet = view.free_spirits.iter().chain(&view.escaped).copied().collect();
        for card in view.sigil.iter().filter_map(|slot| slot.card) {
            match card.kind() {
                Kind::Card(card) => cards.insert(card),
                Kind::Spirit(spirit) => spirits.insert(spirit),
            }
        }
        for seat in &view.seats {
            cards = seat.sets.iter().fold(cards.or(seat.hand.unwrap_or_default()), |seen, set| seen.or(set.cards));
            seat.spirits.iter().for_each(|spirit| spirits.insert(*spirit));
        }
        Seen { cards, spirits }
    }
}
