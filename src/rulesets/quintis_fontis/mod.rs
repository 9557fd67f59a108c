//! The Enigma of Leonardo: Quintis Fontis (rules Q1–Q13): one common field, and the most Keys win. Wiring only.

mod event;
mod field;
mod moves;
mod state;
#[cfg(test)]
mod tests;
mod view;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cards::{card_faces, shuffled, symbol_terms};
use super::random::{Random, Stream};
use super::{Catalogue, EndReason, Meta, OptionError, Ranked, Ruleset, Seat, Text, TurnLimit, Viewer};

use state::SEATS;

pub use event::Event;
pub use moves::{Illegal, Move};
pub use state::State;
pub use view::{CellView, SeatView, View};

/// A played move: every card that is played is seen by everybody.
pub type MoveView = Move;

/// Turns for each player after which a game stops by default (Q13).
const TURNS_PER_SEAT: u32 = 100;

/// The options of a game.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = QuintisFontisOptions)]
pub struct Options {
    /// The game ends when that many turns have been taken, 1 to 10,000; null: never for this reason. Default: 100 for
    /// each player at the start (C4, Q13).
    #[serde(default, skip_serializing_if = "TurnLimit::is_default")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10000)]
    pub turn_limit: TurnLimit,
    /// Whether diagonal runs give Keys too (Q9). Default: false.
    #[serde(default, deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
    #[schema(default = false, nullable = false)]
    pub diagonals: Option<bool>,
}

impl Options {
    /// Whether diagonal runs give Keys (Q9).
    fn diagonals(&self) -> bool {
        self.diagonals.unwrap_or(false)
    }
}

/// The ruleset.
pub struct QuintisFontis;

impl Ruleset for QuintisFontis {
    type Options = Options;
    type State = State;
    type Move = Move;
    type MoveView = MoveView;
    type Event = Event;
    type View = View;
    type Illegal = Illegal;

    const META: Meta = Meta {
        slug: "quintis-fontis",
        name: Text {
            en: "The Enigma of Leonardo: Quintis Fontis", ru: "Загадка Леонардо. Подарочный набор"
        },
        designer: "Sergey Machin",
        seats: SEATS,
        rules_version: 1,
        summary: Text {
            en: "Lay, cover and swap cards on a common field of five by five cells. Three of a symbol in a row give its \
                 Key; most Keys when the deck has run out win.",
            ru: "Выкладывайте, накрывайте и обменивайте карты на общем поле пять на пять клеток. Три одинаковых символа \
                 подряд дают ключ; побеждает тот, у кого больше ключей, когда кончится колода.",
        },
        rules: Text { en: include_str!("rules.en.md"), ru: include_str!("rules.ru.md") },
        longest_game: TURNS_PER_SEAT * *SEATS.end() as u32,
        end_reasons: &[EndReason::Completed, EndReason::TurnLimit],
        score: 0..=12,
    };

    fn resolve(options: &Options, seats: u8) -> Result<Options, Vec<OptionError>> {
        let turn_limit = options.turn_limit.resolve(TURNS_PER_SEAT * u32::from(seats)).map_err(|error| vec![error])?;
        Ok(Options { turn_limit, diagonals: Some(options.diagonals()) })
    }

    fn setup(options: &Options, seats: u8, random: &Random) -> State {
        State::deal(options, seats, random)
    }

    fn shuffled(_seats: u8, random: &Random) -> Vec<&'static str> {
        shuffled(random).iter().map(|card| card.code()).collect()
    }

    fn to_act(state: &State) -> Option<Seat> {
        state.to_act()
    }

    fn legal_moves(state: &State, seat: Seat, moves: &mut Vec<Move>) {
        moves::legal_moves(state, seat, moves);
    }

    fn apply(
        state: &mut State,
        seat: Seat,
        mv: &Move,
        _random: &Random,
        events: &mut Vec<Event>,
    ) -> Result<(), Illegal> {
        moves::apply(state, seat, *mv, events)
    }

    fn view(state: &State, viewer: Viewer) -> View {
        view::view(state, viewer)
    }

    fn move_view(mv: &Move, _seat: Seat, _viewer: Viewer) -> MoveView {
        *mv
    }

    fn event_view(event: &Event, viewer: Viewer) -> Event {
        event.seen_by(viewer)
    }

    fn end(state: &State) -> Option<EndReason> {
        state.end()
    }

    fn ranking(state: &State) -> Vec<Ranked> {
        state.ranking()
    }

    fn determinize(view: &View, to_act: Option<Seat>, options: &Options, random: &mut Stream) -> State {
        view::determinize(view, to_act, options, random)
    }

    fn check(state: &State) -> Result<(), &'static str> {
        state.check()
    }

    fn catalogue() -> Catalogue {
        Catalogue { terms: [("symbol", symbol_terms())].into(), cards: card_faces(), layouts: Vec::new() }
    }
}
