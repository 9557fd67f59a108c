//! Moves of `siggil`: which are legal and what they do (S3–S10, S12–S14).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cards::{By, Card, CardSet, Kind, SigilCard, Spirit};
use super::state::{FREE_AT_ONCE, LaidSet, Phase, State};
use crate::rulesets::{EndReason, Illegal, Seat};

/// A move in `siggil`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = SiggilMove)]
pub enum Move {
    /// Discard an available card (S12; solo, phase `discard`).
    Discard {
        /// Slot of the sigil.
        #[schema(maximum = 55)]
        slot: u8,
    },
    /// Take an available card into your hand (S4; phase `take`).
    Take {
        /// Slot of the sigil.
        #[schema(maximum = 55)]
        slot: u8,
    },
    /// Let a free spirit escape for good (S13; solo, phase `release`).
    Release { spirit: Spirit },
    /// Play cards and capture a spirit (S5–S7; phase `capture`); this ends the turn.
    Capture {
        /// Free, or held by another player.
        spirit: Spirit,
        /// From your hand, all different, in any order; all of the spirit's family or all of its number.
        #[schema(value_type = Vec<Card>, min_items = 2, max_items = 7)]
        cards: CardSet,
        /// The id of your own set to which the cards are added (S7); without it they are a new set.
        #[serde(default, deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false, minimum = 1)]
        set: Option<u8>,
    },
    /// End the turn without a capture (S8; phase `capture`).
    EndTurn {},
}

/// What a move did. All of it is public: a card is taken or discarded face up, and sets lie open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = SiggilEvent)]
pub enum Event {
    /// A card went from the sigil into the hand of this seat.
    CardTaken { seat: Seat, slot: u8, card: Card },
    /// A card went from the sigil to the discard pile (solo).
    CardDiscarded { seat: Seat, slot: u8, card: Card },
    /// In the turn of this seat a face-down card became available and was turned up (S3); a spirit is freed next.
    CardRevealed { seat: Seat, slot: u8, card: SigilCard },
    /// In the turn of this seat a spirit became available and left the sigil (S3).
    SpiritFreed { seat: Seat, slot: u8, spirit: Spirit },
    /// This seat played cards from its hand and captured a spirit.
    SpiritCaptured {
        seat: Seat,
        spirit: Spirit,
        /// The seat that held it; null for a free spirit.
        #[schema(required)]
        from: Option<Seat>,
        /// The id of the set on which it now lies: a new one, or one of the seat's own that grew (S7).
        set: u8,
        /// What the cards of that set have in common with the spirit.
        by: By,
        /// Those just played, in catalogue order.
        #[schema(value_type = Vec<Card>)]
        cards: CardSet,
    },
    /// A free spirit was let go for good (solo).
    SpiritEscaped { seat: Seat, spirit: Spirit },
    /// A turn of this seat began; alone at the table, the next one of the same seat.
    TurnPassed { seat: Seat },
    /// The rules ended the game.
    GameFinished { reason: EndReason },
}

/// Why a move is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("it is not this seat's turn")]
    NotYourTurn,
    #[error("discard an available card first")]
    DiscardFirst,
    #[error("take an available card now")]
    TakeFirst,
    #[error("more than three spirits are free: release one of them first")]
    ReleaseFirst,
    #[error("capture a spirit or end the turn now")]
    CaptureOrEnd,
    #[error("no card lies at that slot")]
    NoCard,
    #[error("other cards lie on that card")]
    Covered,
    #[error("the spirit {0} is not free")]
    NotFree(Spirit),
    #[error("the spirit {0} is neither free nor held by another player")]
    NotToCapture(Spirit),
    #[error("you hold the spirit {0} already")]
    Held(Spirit),
    #[error("{0} is not in your hand")]
    NotInHand(Card),
    #[error("a free spirit is captured with a set of {0} cards")]
    FirstSet(usize),
    #[error("this spirit is captured with a new set of {0} cards, one more than the set that it lies on")]
    GreaterSet(usize),
    #[error("the cards are neither all of the spirit's family nor all of its number")]
    Mixed,
    #[error("you have no set with that number on which the spirit once lay")]
    NoSuchSet,
    #[error("that set grows by {0} cards, to one more than the set that the spirit lies on")]
    Added(usize),
    #[error("the cards are not of that set's kind")]
    OtherKind,
}

impl Illegal for NotAllowed {
    fn rule(&self) -> &'static str {
        match self {
            NotAllowed::NotYourTurn => "C1",
            NotAllowed::NoCard | NotAllowed::Covered => "S3",
            NotAllowed::TakeFirst | NotAllowed::NotInHand(_) => "S4",
            NotAllowed::NotToCapture(_) | NotAllowed::FirstSet(_) | NotAllowed::Mixed => "S5",
            NotAllowed::Held(_) | NotAllowed::GreaterSet(_) => "S6",
            NotAllowed::NoSuchSet | NotAllowed::Added(_) | NotAllowed::OtherKind => "S7",
            NotAllowed::CaptureOrEnd => "S8",
            NotAllowed::DiscardFirst => "S12",
            NotAllowed::ReleaseFirst | NotAllowed::NotFree(_) => "S13",
        }
    }
}

/// One way to capture a spirit: any `count` cards of `pool`.
struct Way {
    /// The id of the own set that grows (S7); none for a new set.
    set: Option<u8>,
    pool: CardSet,
    count: usize,
}

impl State {
    /// How many cards the set must have with which `seat` would capture a spirit (S5–S7).
    fn needed(&self, seat: Seat, spirit: Spirit) -> Result<usize, NotAllowed> {
        match self.holder(spirit) {
            Some(holder) if holder.owner == seat => Err(NotAllowed::Held(spirit)),
            Some(holder) => Ok(holder.cards.len() + 1),
            None if self.free.contains(spirit) => Ok(self.first_set()),
            None => Err(NotAllowed::NotToCapture(spirit)),
        }
    }

    /// The ways in which the seat can capture a spirit with the cards in its hand.
    fn ways(&self, seat: Seat, spirit: Spirit) -> impl Iterator<Item = Way> {
        let hand = self.hands[usize::from(seat)];
        let needed = self.needed(seat, spirit).ok();
        needed.into_iter().flat_map(move |needed| {
            let new_sets = By::ALL.map(|by| Way { set: None, pool: hand.and(by.cards(spirit)), count: needed });
            let own = (1..).zip(&self.sets).filter(move |(_, set)| set.owner == seat && set.spirit == spirit);
            let grown = own.map(move |(id, set)| {
                // The spirit lies on the largest of its sets, and that is another's.
                let count = needed - set.cards.len();
                Way { set: Some(id), pool: hand.and(set.by.cards(spirit)), count }
            });
            new_sets.into_iter().chain(grown).filter(|way| way.pool.len() >= way.count)
        })
    }

    /// Whether the seat has any capture to make (S8).
    pub(super) fn can_capture(&self, seat: Seat) -> bool {
        Spirit::all().any(|spirit| self.ways(seat, spirit).next().is_some())
    }

    /// Whether the seat has all the spirits that win at once (S9).
    fn has_won(&self, seat: Seat) -> bool {
        let to_win = match self.hands.len() {
            2 => 5,
            3 => 4,
            4 => 3,
            // Alone the game ends by S14.
            _ => return false,
        };
        self.spirits_of(seat).count() >= to_win
    }
}

/// See [`crate::rulesets::Ruleset::legal_moves`].
pub(super) fn legal_moves(state: &State, seat: Seat, moves: &mut Vec<Move>) {
    let Some(phase) = state.phase.filter(|_| seat == state.turn) else { return };
    match phase {
        Phase::Discard => moves.extend(state.sigil.available(state.layout).map(|slot| Move::Discard { slot })),
        Phase::Take => moves.extend(state.sigil.available(state.layout).map(|slot| Move::Take { slot })),
        Phase::Release => moves.extend(state.free.iter().map(|spirit| Move::Release { spirit })),
        Phase::Capture => {
            for spirit in Spirit::all() {
                let start = moves.len();
                let mut ways = 0;
                for Way { set, pool, count } in state.ways(seat, spirit) {
                    moves.extend(pool.subsets(count).map(|cards| Move::Capture { spirit, cards, set }));
                    ways += 1;
                }
                // Each way is in order by itself.
                if ways > 1 {
                    moves[start..].sort_unstable();
                }
            }
            moves.push(Move::EndTurn {});
        }
    }
}

/// See [`crate::rulesets::Ruleset::apply`].
pub(super) fn apply(state: &mut State, seat: Seat, mv: &Move, events: &mut Vec<Event>) -> Result<(), NotAllowed> {
    let phase = state.phase.filter(|_| seat == state.turn).ok_or(NotAllowed::NotYourTurn)?;
    match (*mv, phase) {
        (Move::Discard { slot }, Phase::Discard) => {
            let card = available(state, slot)?;
            state.discard.push(card);
            events.push(Event::CardDiscarded { seat, slot, card });
            state.take_out(slot, events);
            go_on(state, events);
        }
        (Move::Take { slot }, Phase::Take) => {
            let card = available(state, slot)?;
            state.hands[usize::from(seat)].insert(card);
            events.push(Event::CardTaken { seat, slot, card });
            state.take_out(slot, events);
            go_on(state, events);
        }
        (Move::Release { spirit }, Phase::Release) => {
            if !state.free.contains(spirit) {
                return Err(NotAllowed::NotFree(spirit));
            }
            state.free.remove(spirit);
            state.escaped.insert(spirit);
            events.push(Event::SpiritEscaped { seat, spirit });
            go_on(state, events);
        }
        (Move::Capture { spirit, cards, set }, Phase::Capture) => {
            capture(state, seat, spirit, cards, set, events)?;
            if state.has_won(seat) || no_spirit_left(state) {
                finish(state, events);
            } else {
                end_turn(state, events);
            }
        }
        (Move::EndTurn {}, Phase::Capture) => end_turn(state, events),
        (_, Phase::Discard) => return Err(NotAllowed::DiscardFirst),
        (_, Phase::Take) => return Err(NotAllowed::TakeFirst),
        (_, Phase::Release) => return Err(NotAllowed::ReleaseFirst),
        (_, Phase::Capture) => return Err(NotAllowed::CaptureOrEnd),
    }
    Ok(())
}

/// The card at a slot that a player asks for (S3).
fn available(state: &State, slot: u8) -> Result<Card, NotAllowed> {
    let card = state.sigil.card(slot).ok_or(NotAllowed::NoCard)?;
    match card.kind() {
        Kind::Card(card) if !state.sigil.is_covered(state.layout, slot) => Ok(card),
        // An available spirit has left, so a spirit that is still there is covered too.
        Kind::Card(_) | Kind::Spirit(_) => Err(NotAllowed::Covered),
    }
}

/// What follows when a card has left the sigil or a spirit was released.
fn go_on(state: &mut State, events: &mut Vec<Event>) {
    let solo = state.is_solo();
    if solo && state.free.len() > FREE_AT_ONCE {
        state.phase = Some(Phase::Release);
    } else if solo && state.owes_a_take() && !state.sigil.is_empty() {
        state.phase = Some(Phase::Take);
    } else if state.can_capture(state.turn) {
        state.phase = Some(Phase::Capture);
    } else {
        // S8: nothing to capture.
        end_turn(state, events);
    }
}

/// S5, S6 and S7.
fn capture(
    state: &mut State,
    seat: Seat,
    spirit: Spirit,
    cards: CardSet,
    set: Option<u8>,
    events: &mut Vec<Event>,
) -> Result<(), NotAllowed> {
    let needed = state.needed(seat, spirit)?;
    let from = state.holder(spirit).map(|holder| holder.owner);
    if let Some(missing) = cards.without(state.hands[usize::from(seat)]).iter().next() {
        return Err(NotAllowed::NotInHand(missing));
    }
    let fits = |by: By| cards.without(by.cards(spirit)).is_empty();
    let (place, by) = match set {
        None if cards.len() != needed => {
            return Err(if from.is_none() { NotAllowed::FirstSet(needed) } else { NotAllowed::GreaterSet(needed) });
        }
        None => {
            let by = By::ALL.into_iter().find(|by| fits(*by)).ok_or(NotAllowed::Mixed)?;
            state.sets.push(LaidSet { owner: seat, spirit, by, cards });
            (state.sets.len() - 1, by)
        }
        Some(id) => {
            let place = usize::from(id).wrapping_sub(1);
            let own = state.sets.get_mut(place).filter(|set| set.owner == seat && set.spirit == spirit);
            let own = own.ok_or(NotAllowed::NoSuchSet)?;
            // The spirit lies on the largest of its sets, and that is another's.
            let missing = needed - own.cards.len();
            if cards.len() != missing {
                return Err(NotAllowed::Added(missing));
            }
            if !fits(own.by) {
                return Err(NotAllowed::OtherKind);
            }
            own.cards = own.cards.or(cards);
            (place, own.by)
        }
    };
    let hand = &mut state.hands[usize::from(seat)];
    *hand = hand.without(cards);
    state.free.remove(spirit);
    state.held_on[spirit.index()] = Some(place as u8);
    events.push(Event::SpiritCaptured { seat, spirit, from, set: place as u8 + 1, by, cards });
    Ok(())
}

/// S14: alone at the table, and every spirit captured or escaped.
fn no_spirit_left(state: &State) -> bool {
    state.is_solo() && state.spirits_of(0).count() + state.escaped.len() == Spirit::COUNT
}

/// Ends the turn, and the game if it was the last one (S10, S14).
fn end_turn(state: &mut State, events: &mut Vec<Event>) {
    if state.sigil.is_empty() {
        return finish(state, events);
    }
    state.turn = (state.turn + 1) % state.hands.len() as Seat;
    state.phase = Some(if state.is_solo() { Phase::Discard } else { Phase::Take });
    events.push(Event::TurnPassed { seat: state.turn });
}

fn finish(state: &mut State, events: &mut Vec<Event>) {
    state.phase = None;
    events.push(Event::GameFinished { reason: EndReason::Completed });
}
