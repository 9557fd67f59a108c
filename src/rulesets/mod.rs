//! Layer 1: the rules of the games, pure.
//!
//! A ruleset turns state + move + randomness into a new state + events. Nothing here knows a clock, a database, HTTP, the
//! environment or any randomness but [`random`]. What a ruleset must supply is the [`Ruleset`] trait; the list of all
//! rulesets is [`registry`]. Rule codes such as `P6` are those of the rules texts (`rules.en.md` in each folder).

// Clocks, environment, hash maps (random order) and the global generator are listed in clippy.toml.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

#[macro_use]
mod coded;
pub mod cards;
pub mod leonardo;
pub mod leopard;
pub mod quintis_fontis;
pub mod random;
#[macro_use]
pub mod registry;
pub mod siggil;

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use random::{Random, Stream};

/// A 0-based position at the table; seats are numbered clockwise (C1).
pub type Seat = u8;

/// For whom a view is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The player who sits there.
    Seat(Seat),
    /// Anybody else, while the game goes on: sees only what is public.
    Spectator,
    /// Anybody, once the game is over: nothing is hidden any more.
    Everything,
}

impl Viewer {
    /// Whether what only `seat` may know is shown to this viewer.
    pub fn sees(self, seat: Seat) -> bool {
        match self {
            Viewer::Seat(own) => own == seat,
            Viewer::Spectator => false,
            Viewer::Everything => true,
        }
    }
}

/// Why a game is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The rules ended it.
    Completed,
    /// The option `turn_limit` ended it (C4).
    TurnLimit,
    /// A player resigned and nobody was left to play against.
    Resignation,
    /// A player overstepped the clock and nobody was left to play against.
    Timeout,
    /// It was called off: nobody won.
    Aborted,
}

impl EndReason {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            EndReason::Completed => "completed",
            EndReason::TurnLimit => "turn_limit",
            EndReason::Resignation => "resignation",
            EndReason::Timeout => "timeout",
            EndReason::Aborted => "aborted",
        }
    }

    /// In words.
    pub fn name(self) -> Text {
        match self {
            EndReason::Completed => Text { en: "played to the end", ru: "сыграно до конца" },
            EndReason::TurnLimit => Text { en: "turn limit reached", ru: "достигнут предел ходов" },
            EndReason::Resignation => Text { en: "resignation", ru: "игрок сдался" },
            EndReason::Timeout => Text { en: "time is up", ru: "время вышло" },
            EndReason::Aborted => Text { en: "called off", ru: "игра отменена" },
        }
    }
}

/// One line of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ranked {
    /// 0-based seat.
    pub seat: Seat,
    /// 1 is best; equal seats share a rank and the next ranks are skipped: 1, 1, 3 (C6).
    pub rank: u8,
    /// Keys, points or spirits, by ruleset.
    pub score: i32,
    /// Rank 1, shared included; alone at the table: the game's own goal reached.
    pub won: bool,
}

/// How a game ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    pub reason: EndReason,
    /// Every seat once, in order of rank, then of seat.
    pub ranking: Vec<Ranked>,
}

/// Ranks seats by a key, greatest first; equal keys share a rank (C6). `standings` gives for each seat from 0 its
/// score and its key. The result is in order of rank, then of seat, and rank 1 is `won`.
pub fn rank_by<K: Ord>(standings: impl IntoIterator<Item = (i32, K)>) -> Vec<Ranked> {
    let mut lines: Vec<(Seat, i32, K)> = (0..).zip(standings).map(|(seat, (score, key))| (seat, score, key)).collect();
    lines.sort_by(|a, b| b.2.cmp(&a.2).then(a.0.cmp(&b.0)));
    let mut ranking: Vec<Ranked> = Vec::with_capacity(lines.len());
    for (place, (seat, score, key)) in (1..).zip(&lines) {
        let rank = match ranking.last() {
            Some(previous) if lines[usize::from(place - 2)].2 == *key => previous.rank,
            _ => place,
        };
        ranking.push(Ranked { seat: *seat, rank, score: *score, won: rank == 1 });
    }
    ranking
}

/// A text in the languages of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    pub en: &'static str,
    pub ru: &'static str,
}

/// What is known of a ruleset before any game of it: declared here, tested by the laws in `tests/contract.rs`.
pub struct Meta {
    /// Name in URLs and in the database, `[a-z-]+`; never changed.
    pub slug: &'static str,
    pub name: Text,
    /// Who made the game up.
    pub designer: &'static str,
    /// How many can play.
    pub seats: RangeInclusive<u8>,
    /// Grows by one when a rule's reading changes; stored with every game.
    pub rules_version: u32,
    /// One sentence or two: what one does and how one wins.
    pub summary: Text,
    /// The complete rules, Markdown, each rule under its code.
    pub rules: Text,
    /// Most moves that a game with default options can have, whatever the number of seats.
    pub longest_game: u32,
    /// How the rules alone can end it: `Completed`, `TurnLimit` or both.
    pub end_reasons: &'static [EndReason],
    /// Smallest and greatest possible score of a seat.
    pub score: RangeInclusive<i32>,
}

/// An option that is refused, or several that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The option's name, such as `hands`.
    pub option: &'static str,
    /// For people: what would be allowed.
    pub detail: String,
}

/// Why a move is not allowed: the rule, and words that tell the mover nothing they may not know.
pub trait Illegal: Debug + Display + PartialEq + Send + Sync + 'static {
    /// The code of the rule, such as `P6`.
    fn rule(&self) -> &'static str;
}

/// The contract between a game and the server.
///
/// `setup`, `apply` and everything else are functions of their arguments alone: the same seed and the same moves give the
/// same game, bit for bit. States are small and cheap to clone, and nothing allocates needlessly: tree search runs on them.
pub trait Ruleset: Sized + 'static {
    /// As a client gives them, each optional; after [`Ruleset::resolve`] those in force. Unknown fields are refused.
    type Options: Clone + Debug + PartialEq + Default + Serialize + DeserializeOwned + ToSchema + Send + Sync;
    /// Everything, hidden things included. Serde is for snapshots only (a compact, not self-describing format): no schema.
    type State: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// What a player submits: an enum tagged by `type`.
    type Move: Clone + Debug + PartialEq + Eq + Ord + Serialize + DeserializeOwned + ToSchema + Send + Sync;
    /// A played move as a viewer may see it in the log: as [`Ruleset::Move`], hidden cards null.
    type MoveView: Clone + Debug + PartialEq + Serialize + DeserializeOwned + ToSchema + Send + Sync;
    /// What happened, an enum tagged by `type`. Chance is in it (which card was drawn), so that a reader of the log never
    /// rolls again. What a viewer may not know is null in [`Ruleset::event_view`]'s answer.
    type Event: Clone + Debug + PartialEq + Serialize + DeserializeOwned + ToSchema + Send + Sync;
    /// The state as one viewer may see it; this is its wire shape.
    type View: Clone + Debug + PartialEq + Serialize + DeserializeOwned + ToSchema + Send + Sync;
    type Illegal: Illegal;

    const META: Meta;

    /// The options in force for a game of `seats` players: defaults written out, combinations checked. Resolving again
    /// changes nothing.
    ///
    /// # Errors
    /// Values out of range and contradictions, one for each option.
    fn resolve(options: &Self::Options, seats: u8) -> Result<Self::Options, Vec<OptionError>>;

    /// Deals. `options` are resolved ones and `seats` is within [`Meta::seats`].
    fn setup(options: &Self::Options, seats: u8, random: &Random) -> Self::State;

    /// The codes of the cards as they are shuffled for the (first) deal, from the top.
    fn shuffled(seats: u8, random: &Random) -> Vec<&'static str>;

    /// The seat that must move; none exactly when the game is over.
    fn to_act(state: &Self::State) -> Option<Seat>;

    /// Appends every legal move of `seat`: sorted, free of duplicates and complete; none for a waiting seat.
    fn legal_moves(state: &Self::State, seat: Seat, moves: &mut Vec<Self::Move>);

    /// Plays a move of the seat that is to act and appends what happened.
    ///
    /// # Errors
    /// A move that [`Ruleset::legal_moves`] does not list; state and events are then untouched.
    fn apply(
        state: &mut Self::State,
        seat: Seat,
        mv: &Self::Move,
        random: &Random,
        events: &mut Vec<Self::Event>,
    ) -> Result<(), Self::Illegal>;

    /// The state as `viewer` may see it, built from what is allowed.
    fn view(state: &Self::State, viewer: Viewer) -> Self::View;

    /// A move of `seat` as `viewer` may see it in the log.
    fn move_view(mv: &Self::Move, seat: Seat, viewer: Viewer) -> Self::MoveView;

    /// An event as `viewer` may see it.
    fn event_view(event: &Self::Event, viewer: Viewer) -> Self::Event;

    /// Why the rules ended the game; none while it goes on.
    fn end(state: &Self::State) -> Option<EndReason>;

    /// The ranking if the game ended now, tie-breaks included.
    fn ranking(state: &Self::State) -> Vec<Ranked>;

    /// A full state dealt at random among those that a view allows: what a player at that seat can imagine. `to_act` and
    /// `options` (resolved) belong to what everybody knows of the game.
    fn determinize(
        view: &Self::View,
        to_act: Option<Seat>,
        options: &Self::Options,
        random: &mut Stream,
    ) -> Self::State;

    /// Checks what must hold in every state (cards conserved, counts within bounds); used when a snapshot is read and by
    /// the tests.
    ///
    /// # Errors
    /// What does not hold.
    fn check(state: &Self::State) -> Result<(), &'static str>;

    /// Every card, symbol and layout with its names.
    fn catalogue() -> Catalogue;
}

/// What a client needs to draw a game: codes with names in every language.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Kinds of things that cards and moves speak of, such as `symbol`, `suit` or `family`, each in catalogue order.
    pub terms: BTreeMap<&'static str, Vec<Term>>,
    /// Every card face once, in catalogue order (the order of hands in views).
    pub cards: Vec<CardFace>,
    /// Where cards can lie at the start, for rulesets that have layouts.
    pub layouts: Vec<Layout>,
}

/// A code and its names.
#[derive(Clone, Debug)]
pub struct Term {
    pub code: &'static str,
    pub name: Text,
}

/// A card face.
#[derive(Clone, Debug)]
pub struct CardFace {
    pub code: &'static str,
    pub name_en: String,
    pub name_ru: String,
    /// How many cards of the deck have this face.
    pub copies: u8,
    /// What the face shows: kind of term (or a part such as `upper`) to the term's code.
    pub shows: BTreeMap<&'static str, &'static str>,
}

/// A pattern in which cards are laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    pub code: &'static str,
    pub name: Text,
    pub slots: Vec<LayoutSlot>,
}

/// One place of a layout; a card there covers `[x, x + 2) × [y, y + 2)`.
#[derive(Clone, Copy, Debug)]
pub struct LayoutSlot {
    pub slot: u8,
    pub level: u8,
    pub x: u8,
    pub y: u8,
    pub face_up: bool,
}

/// The option `turn_limit` (C4): absent means the ruleset's default, null switches it off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TurnLimit {
    /// Not given: the default for the number of players at the start. Skipped when written.
    #[default]
    Default,
    /// `null` or a number of turns.
    Given(Option<u32>),
}

impl TurnLimit {
    /// For serde's `skip_serializing_if`.
    pub fn is_default(&self) -> bool {
        *self == TurnLimit::Default
    }

    /// With `default` turns in the place of [`TurnLimit::Default`].
    ///
    /// # Errors
    /// A limit outside 1–10,000.
    pub fn resolve(self, default: u32) -> Result<Self, OptionError> {
        match self {
            TurnLimit::Default => Ok(TurnLimit::Given(Some(default))),
            TurnLimit::Given(Some(turns)) if !(1..=10_000).contains(&turns) => {
                Err(OptionError { option: "turn_limit", detail: "turn_limit is 1 to 10000, or null for none".into() })
            }
            given => Ok(given),
        }
    }

    /// The number of turns after which the game stops, if there is one.
    pub fn turns(self) -> Option<u32> {
        match self {
            TurnLimit::Given(turns) => turns,
            TurnLimit::Default => None,
        }
    }
}

/// For serde's `deserialize_with`: a field that may be left out but not be null.
///
/// # Errors
/// What is there is no `T`.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for TurnLimit {
    /// Only called when the field is there (use `#[serde(default)]`), so null is a value of its own.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<u32>::deserialize(deserializer).map(TurnLimit::Given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c06_tied_seats_share_a_rank_and_the_next_is_skipped() {
        let ranks: Vec<_> = rank_by([(1, 1), (5, 5), (5, 5)]).iter().map(|r| (r.seat, r.rank, r.won)).collect();
        assert_eq!(ranks, [(1, 1, true), (2, 1, true), (0, 3, false)]);
    }

    #[test]
    fn c04_a_turn_limit_tells_absent_from_null() {
        #[derive(Deserialize, Serialize)]
        struct Options {
            #[serde(default, skip_serializing_if = "TurnLimit::is_default")]
            turn_limit: TurnLimit,
        }
        let read = |text| serde_json::from_str::<Options>(text).unwrap().turn_limit;
        assert_eq!(read("{}"), TurnLimit::Default);
        assert_eq!(read(r#"{"turn_limit":null}"#), TurnLimit::Given(None));
        assert_eq!(read(r#"{"turn_limit":7}"#), TurnLimit::Given(Some(7)));
        let written = serde_json::to_string(&Options { turn_limit: TurnLimit::Given(None) }).unwrap();
        assert_eq!(written, r#"{"turn_limit":null}"#);
        assert!(
            TurnLimit::Given(Some(10_001)).resolve(200).is_err() && TurnLimit::Given(Some(0)).resolve(200).is_err()
        );
    }
}
