//! Leopard (Леопард): fill a square of nine cells with lines of one suit or colour. Wiring only.

mod cards;
mod moves;
mod options;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod view;

use super::random::{Random, Stream};
use super::{Catalogue, EndReason, Meta, OptionError, Ranked, Seat, Text, Viewer};

pub use cards::Card;
pub use moves::{Event, Face, Move, NotAllowed};
pub use options::{Options, Scoring};
pub use state::{ScoredHand, State};
pub use table::Whose;
pub use view::{LaidView, MoveView, SeatView, View};

/// The ruleset `leopard`.
pub struct Leopard;

impl super::Ruleset for Leopard {
    type Options = Options;
    type State = State;
    type Move = Move;
    type MoveView = MoveView;
    type Event = Event;
    type View = View;
    type Illegal = NotAllowed;

    const META: Meta = Meta {
        slug: "leopard",
        name: Text { en: "Leopard", ru: "Леопард" },
        designer: "Robert Abbott",
        seats: 2..=2,
        rules_version: 1,
        summary: Text {
            en: "Lay cards into your square of nine cells so that lines of three show one suit or colour, spoil your \
                 opponent's, and end the hand in time. Most points after all hands win.",
            ru: "Выкладывайте карты в свой квадрат из девяти клеток, чтобы в линиях из трёх карт сошлись масть или цвет, \
                 портите квадрат соперника и вовремя завершайте раздачу. Побеждает тот, кто за все раздачи набрал больше \
                 очков.",
        },
        rules: Text { en: include_str!("rules.en.md"), ru: include_str!("rules.ru.md") },
        // Two hands of one turn for each card of the stock.
        longest_game: 2 * 88,
        end_reasons: &[EndReason::Completed],
        // Twelve hands ended with nine cards of one suit, scored as in 2008: 2 × 24 − 6 each.
        score: 0..=12 * 42,
    };

    fn resolve(options: &Options, _seats: u8) -> Result<Options, Vec<OptionError>> {
        options.resolve()
    }

    fn setup(options: &Options, _seats: u8, random: &Random) -> State {
        State::new(options, random)
    }

    fn shuffled(_seats: u8, random: &Random) -> Vec<&'static str> {
        cards::shuffled(1, random).iter().map(|card| card.code()).collect()
    }

    fn to_act(state: &State) -> Option<Seat> {
        state.to_act
    }

    fn legal_moves(state: &State, seat: Seat, moves: &mut Vec<Move>) {
        moves::legal_moves(state, seat, moves);
    }

    fn apply(
        state: &mut State,
        seat: Seat,
        mv: &Move,
        random: &Random,
        events: &mut Vec<Event>,
    ) -> Result<(), NotAllowed> {
        moves::apply(state, seat, mv, random, events)
    }

    fn view(state: &State, viewer: Viewer) -> View {
        view::view(state, viewer)
    }

    fn move_view(mv: &Move, seat: Seat, viewer: Viewer) -> MoveView {
        view::move_view(mv, seat, viewer)
    }

    fn event_view(event: &Event, viewer: Viewer) -> Event {
        view::event_view(event, viewer)
    }

    fn end(state: &State) -> Option<EndReason> {
        state.to_act.is_none().then_some(EndReason::Completed)
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
        Catalogue { terms: cards::terms().into(), cards: cards::card_faces(), layouts: Vec::new() }
    }
}
