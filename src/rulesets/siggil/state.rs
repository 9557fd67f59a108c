//! The full state of a game of `siggil`, hidden cards included. It never leaves the server: see `view`.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cards::{By, Card, CardSet, Kind, SigilCard, Spirit, SpiritSet, ones};
use super::layouts::{ALL_SLOTS, Layout, SLOTS};
use super::moves::Event;
use crate::rulesets::random::Random;
use crate::rulesets::{OptionError, Seat};

/// Most sets that can be laid: each takes at least two of the 49 cards.
const MAX_SETS: usize = Card::COUNT / 2;

/// Most cards that can be discarded: of each two cards of a solo game the second is taken (S12).
const MAX_DISCARDS: usize = Card::COUNT.div_ceil(2);

/// Spirits that may be free in a solo game (S13).
pub(super) const FREE_AT_ONCE: usize = 3;

/// In the solo deck a spirit follows after every seven cards (S11), so it is the last of each eight.
const SOLO_GROUP: usize = 8;

/// Whether the solo deal puts a spirit at that slot (S11).
pub(super) fn is_solo_spirit(slot: u8) -> bool {
    usize::from(slot) % SOLO_GROUP == SOLO_GROUP - 1
}

/// Options of `siggil`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = SiggilOptions)]
pub struct Options {
    /// The pattern of the sigil (S2); default `pyramids`.
    #[serde(deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, default = "pyramids")]
    pub layout: Option<Layout>,
    /// For one player only (S12): how many cards capture a spirit; default `normal`.
    #[serde(deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, default = "normal")]
    pub difficulty: Option<Difficulty>,
}

/// How hard the solo game is (S12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SiggilDifficulty)]
pub enum Difficulty {
    /// Sets of three cards.
    #[default]
    Normal,
    /// Sets of four cards.
    Hard,
}

impl Options {
    /// See [`crate::rulesets::Ruleset::resolve`].
    pub(super) fn resolve(&self, seats: u8) -> Result<Options, Vec<OptionError>> {
        let difficulty = match (seats, self.difficulty) {
            (1, given) => Some(given.unwrap_or_default()),
            (_, None) => None,
            (_, Some(_)) => {
                let detail = "difficulty is for the game of one player only".into();
                return Err(vec![OptionError { option: "difficulty", detail }]);
            }
        };
        Ok(Options { layout: Some(self.layout.unwrap_or(Layout::DEFAULT)), difficulty })
    }
}

/// What the seat whose turn it is must do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SiggilPhase)]
pub enum Phase {
    /// Discard an available card (S12; solo).
    Discard,
    /// Take an available card into the hand (S4).
    Take,
    /// Let one of more than three free spirits go (S13; solo).
    Release,
    /// Capture a spirit or end the turn (S8).
    Capture,
}

/// The cards that still lie in the sigil. In snapshots only those that are there, in order of slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "StoredSigil", try_from = "StoredSigil")]
pub(super) struct Sigil {
    /// By slot; [`NOTHING`] where no card lies any more.
    cards: [SigilCard; SLOTS],
    present: u64,
    face_up: u64,
}

/// Stands where no card lies, so that equal sigils compare equal.
const NOTHING: SigilCard = SigilCard::at(0);

#[derive(Serialize, Deserialize)]
struct StoredSigil {
    present: u64,
    face_up: u64,
    cards: ArrayVec<SigilCard, SLOTS>,
}

impl From<Sigil> for StoredSigil {
    fn from(sigil: Sigil) -> Self {
        let cards = sigil.cards().map(|(_, card)| card).collect();
        StoredSigil { present: sigil.present, face_up: sigil.face_up, cards }
    }
}

impl TryFrom<StoredSigil> for Sigil {
    type Error = &'static str;

    fn try_from(stored: StoredSigil) -> Result<Self, Self::Error> {
        let StoredSigil { present, face_up, cards } = stored;
        if present & !ALL_SLOTS != 0 || face_up & !present != 0 || present.count_ones() as usize != cards.len() {
            return Err("the sigil's cards do not fit its slots");
        }
        Ok(Sigil::new(ones(present).zip(cards), face_up))
    }
}

impl Sigil {
    /// Cards at their slots (below 56), those of the mask `face_up` face up.
    pub(super) fn new(cards: impl IntoIterator<Item = (u8, SigilCard)>, face_up: u64) -> Sigil {
        let mut sigil = Sigil { cards: [NOTHING; SLOTS], present: 0, face_up: 0 };
        for (slot, card) in cards {
            sigil.cards[usize::from(slot)] = card;
            sigil.present |= 1 << slot;
        }
        sigil.face_up = face_up & sigil.present;
        sigil
    }

    /// Whether no card is left.
    pub(super) fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// The cards by slot.
    pub(super) fn cards(&self) -> impl Iterator<Item = (u8, SigilCard)> {
        ones(self.present).map(|slot| (slot, self.cards[usize::from(slot)]))
    }

    /// The card at a slot, if there is one; any number may be asked for.
    pub(super) fn card(&self, slot: u8) -> Option<SigilCard> {
        let present = usize::from(slot) < SLOTS && self.present >> slot & 1 == 1;
        present.then(|| self.cards[usize::from(slot)])
    }

    /// Whether the card at a slot lies face up.
    pub(super) fn is_face_up(&self, slot: u8) -> bool {
        self.face_up >> slot & 1 == 1
    }

    /// Whether a card lies on that slot (S3).
    pub(super) fn is_covered(&self, layout: Layout, slot: u8) -> bool {
        layout.table().above[usize::from(slot)] & self.present != 0
    }

    /// The slots of the available cards (S3).
    pub(super) fn available(&self, layout: Layout) -> impl Iterator<Item = u8> {
        // Whatever is available has been turned up.
        ones(self.face_up).filter(move |slot| !self.is_covered(layout, *slot))
    }

    fn remove(&mut self, slot: u8) {
        self.cards[usize::from(slot)] = NOTHING;
        self.present &= !(1 << slot);
        self.face_up &= !(1 << slot);
    }
}

/// A set that was laid to capture a spirit. Its id is its place among all sets, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LaidSet {
    pub owner: Seat,
    pub spirit: Spirit,
    pub by: By,
    pub cards: CardSet,
}

/// Everything on the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(super) layout: Layout,
    /// Whether the solo game is played with sets of four (S12).
    pub(super) hard: bool,
    /// Whose turn it is; the last mover's seat when the game is over.
    pub(super) turn: Seat,
    /// None exactly when the game is over.
    pub(super) phase: Option<Phase>,
    pub(super) sigil: Sigil,
    pub(super) free: SpiritSet,
    /// Released for good (S13).
    pub(super) escaped: SpiritSet,
    /// In the order of discarding (S12).
    pub(super) discard: ArrayVec<Card, MAX_DISCARDS>,
    /// By seat.
    pub(super) hands: ArrayVec<CardSet, 4>,
    /// In the order of laying.
    pub(super) sets: ArrayVec<LaidSet, MAX_SETS>,
    /// For each spirit the place in `sets` of the set on which it lies, if it has been captured.
    pub(super) held_on: [Option<u8>; Spirit::COUNT],
}

impl State {
    /// S2, S3, S11: shuffles, lays out, turns up and frees what is available.
    pub(super) fn deal(options: &Options, seats: u8, random: &Random) -> State {
        let layout = options.layout.unwrap_or(Layout::DEFAULT);
        let deck = shuffled(seats, random);
        let mut state = State {
            layout,
            hard: options.difficulty == Some(Difficulty::Hard),
            turn: random.lot(seats),
            phase: Some(if seats == 1 { Phase::Discard } else { Phase::Take }),
            sigil: Sigil::new((0..).zip(deck), layout.table().face_up),
            free: SpiritSet::default(),
            escaped: SpiritSet::default(),
            discard: ArrayVec::new(),
            hands: (0..seats).map(|_| CardSet::default()).collect(),
            sets: ArrayVec::new(),
            held_on: [None; Spirit::COUNT],
        };
        // What is free at the start is in the state itself; there is no move whose events could tell it.
        state.uncover(ALL_SLOTS, &mut Vec::new());
        state
    }

    /// Whether one player plays alone (S11–S14).
    pub(super) fn is_solo(&self) -> bool {
        self.hands.len() == 1
    }

    /// Cards in a set that captures a free spirit (S5, S12).
    pub(super) fn first_set(&self) -> usize {
        match self.hands.len() {
            4 => 2,
            _ if self.hard => 4,
            _ => 3,
        }
    }

    /// The set on which a spirit lies, if it has been captured.
    pub(super) fn holder(&self, spirit: Spirit) -> Option<&LaidSet> {
        self.held_on[spirit.index()].map(|place| &self.sets[usize::from(place)])
    }

    /// The spirits that a seat holds, in catalogue order.
    pub(super) fn spirits_of(&self, seat: Seat) -> impl Iterator<Item = Spirit> {
        Spirit::all().filter(move |spirit| self.holder(*spirit).is_some_and(|set| set.owner == seat))
    }

    /// Solo: whether the turn's card has been discarded but none taken yet (S12).
    pub(super) fn owes_a_take(&self) -> bool {
        let laid: usize = self.sets.iter().map(|set| set.cards.len()).sum();
        self.discard.len() > self.hands[0].len() + laid
    }

    /// Takes an available card out of the sigil and applies S3 to what lay under it.
    pub(super) fn take_out(&mut self, slot: u8, events: &mut Vec<Event>) {
        self.sigil.remove(slot);
        self.uncover(self.layout.table().below[usize::from(slot)], events);
    }

    /// S3: those of the slots that have become available are turned up, and spirits among them leave, which can make
    /// further cards available.
    fn uncover(&mut self, slots: u64, events: &mut Vec<Event>) {
        let seat = self.turn;
        let mut waiting = slots & self.sigil.present;
        while waiting != 0 {
            let slot = waiting.trailing_zeros() as u8;
            waiting &= waiting - 1;
            if self.sigil.is_covered(self.layout, slot) {
                continue;
            }
            let card = self.sigil.cards[usize::from(slot)];
            if !self.sigil.is_face_up(slot) {
                self.sigil.face_up |= 1 << slot;
                events.push(Event::CardRevealed { seat, slot, card });
            }
            if let Kind::Spirit(spirit) = card.kind() {
                self.sigil.remove(slot);
                self.free.insert(spirit);
                events.push(Event::SpiritFreed { seat, slot, spirit });
                waiting |= self.layout.table().below[usize::from(slot)] & self.sigil.present;
            }
        }
    }

    /// Checks that every card and spirit is in one place, that sets and spirits fit, and that the phase does.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let seats = self.hands.len();
        if !(1..=4).contains(&seats) || usize::from(self.turn) >= seats {
            return Err("no such seat");
        }
        if !self.is_solo() && (self.hard || !self.discard.is_empty() || self.escaped.len() > 0) {
            return Err("only a solo game is hard, has discards and lets spirits escape");
        }
        self.check_cards()?;
        self.check_spirits()?;
        self.check_sets()?;
        let unsettled = |slot, card: SigilCard| card.spirit().is_some() || !self.sigil.is_face_up(slot);
        if self.sigil.cards().any(|(slot, card)| unsettled(slot, card) && !self.sigil.is_covered(self.layout, slot)) {
            return Err("an available card is face down or a spirit");
        }
        let crowded = self.is_solo() && self.free.len() > FREE_AT_ONCE;
        let fits = match self.phase {
            Some(Phase::Release) => crowded,
            _ if crowded => false,
            None => true,
            Some(Phase::Discard) => self.is_solo() && !self.sigil.is_empty() && !self.owes_a_take(),
            Some(Phase::Take) => !self.sigil.is_empty() && self.owes_a_take() == self.is_solo(),
            Some(Phase::Capture) => self.sigil.is_empty() || !self.owes_a_take(),
        };
        if fits { Ok(()) } else { Err("the phase does not fit") }
    }

    fn check_cards(&self) -> Result<(), &'static str> {
        let lying = self.sigil.cards().filter_map(|(_, card)| card.card());
        let owned = self.hands.iter().copied().chain(self.sets.iter().map(|set| set.cards)).flat_map(CardSet::iter);
        let cards: Vec<Card> = lying.chain(owned).chain(self.discard.iter().copied()).collect();
        if cards.len() == Card::COUNT && cards.into_iter().collect::<CardSet>() == CardSet::ALL {
            Ok(())
        } else {
            Err("cards are missing or double")
        }
    }

    fn check_spirits(&self) -> Result<(), &'static str> {
        let lying = self.sigil.cards().filter_map(|(_, card)| card.spirit());
        let held = Spirit::all().filter(|spirit| self.held_on[spirit.index()].is_some());
        let spirits: Vec<Spirit> = lying.chain(held).chain(self.free.iter()).chain(self.escaped.iter()).collect();
        if spirits.len() != Spirit::COUNT || spirits.into_iter().collect::<SpiritSet>() != SpiritSet::ALL {
            return Err("spirits are missing or double");
        }
        if self.is_solo() && self.sigil.cards().any(|(slot, card)| card.spirit().is_some() != is_solo_spirit(slot)) {
            return Err("a spirit of a solo game lies at the wrong slot");
        }
        Ok(())
    }

    /// Every set fits its spirit, which lies on the largest of its sets.
    fn check_sets(&self) -> Result<(), &'static str> {
        for spirit in Spirit::all() {
            if let Some(place) = self.held_on[spirit.index()]
                && self.sets.get(usize::from(place)).is_none_or(|set| set.spirit != spirit)
            {
                return Err("a spirit lies on a set that is not its own");
            }
        }
        for (place, set) in (0..).zip(&self.sets) {
            if usize::from(set.owner) >= self.hands.len() {
                return Err("no such seat");
            }
            if !set.cards.without(set.by.cards(set.spirit)).is_empty() || set.cards.len() < self.first_set() {
                return Err("a set's cards do not fit its spirit");
            }
            let on_top = self.held_on[set.spirit.index()] == Some(place);
            let largest = self.holder(set.spirit).is_some_and(|holder| set.cards.len() < holder.cards.len());
            if !on_top && !largest {
                return Err("a spirit does not lie on the largest of its sets");
            }
        }
        Ok(())
    }
}

/// The cards as they are shuffled for so many players, from the top: the order of the slots (S2, S11).
pub(super) fn shuffled(seats: u8, random: &Random) -> [SigilCard; SLOTS] {
    if seats == 1 { solo_deck(random) } else { common_deck(random) }
}

/// All 56 shuffled together (S2). Before the shuffle they are in catalogue order (fairness 8).
fn common_deck(random: &Random) -> [SigilCard; SLOTS] {
    let mut deck = std::array::from_fn(SigilCard::at);
    random.stream(1).shuffle(&mut deck);
    deck
}

/// Cards and spirits shuffled apart, a spirit after every seven cards (S11).
fn solo_deck(random: &Random) -> [SigilCard; SLOTS] {
    let mut cards: [SigilCard; Card::COUNT] = std::array::from_fn(|i| Card::at(i).into());
    random.stream(1).shuffle(&mut cards);
    let mut spirits: [SigilCard; Spirit::COUNT] = std::array::from_fn(|i| Spirit::at(i).into());
    random.stream(2).shuffle(&mut spirits);
    let (mut spirits, mut cards) = (spirits.into_iter(), cards.into_iter());
    std::array::from_fn(|slot| {
        let next = if is_solo_spirit(slot as u8) { spirits.next() } else { cards.next() };
        next.expect("a spirit to every seven of the 49 cards")
    })
}
