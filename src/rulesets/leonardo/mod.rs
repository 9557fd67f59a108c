//! The Enigma of Leonardo (Загадка Леонардо): first to hold seven different Keys wins. Wiring only.

mod moves;
mod state;
#[cfg(test)]
mod tests;
mod view;

use super::cards::{card_faces, shuffled, symbol_terms};
use super::random::{Random, Stream};
use super::{Catalogue, EndReason, Meta, OptionError, Ranked, Seat, Text, Viewer, rank_by};

pub use moves::{Event, KeySource, Move, NotAllowed, Position};
pub use state::{Options, State};
pub use view::{CrossView, SeatView, View};

/// Nothing in a move is secret: the card is seen as it is played.
pub type MoveView = Move;

/// The ruleset `leonardo`.
pub struct Leonardo;

impl super::Ruleset for Leonardo {
    type Options = Options;
    type State = State;
    type Move = Move;
    type MoveView = MoveView;
    type Event = Event;
    type View = View;
    type Illegal = NotAllowed;

    const META: Meta = Meta {
        slug: "leonardo",
        name: Text { en: "The Enigma of Leonardo", ru: "Загадка Леонардо" },
        designer: "Sergey Machin",
        seats: 2..=4,
        rules_version: 1,
        summary: Text {
            en: "Lay cards into your cross of five and push others into your neighbour's; three equal symbols in a line \
                 give a Key. The first to hold seven different Keys wins.",
            ru: "Кладите карты в свой крест из пяти карт и сдвигайте старые соседу; три одинаковых символа в линии дают \
                 Ключ. Побеждает тот, кто первым соберёт семь разных Ключей.",
        },
        rules: Text { en: include_str!("rules.en.md"), ru: include_str!("rules.ru.md") },
        longest_game: 400,
        end_reasons: &[EndReason::Completed, EndReason::TurnLimit],
        score: 0..=8,
    };

    fn resolve(options: &Options, seats: u8) -> Result<Options, Vec<OptionError>> {
        let turn_limit = options.turn_limit.resolve(100 * u32::from(seats)).map_err(|error| vec![error])?;
        Ok(Options { turn_limit })
    }

    fn setup(options: &Options, seats: u8, random: &Random) -> State {
        State::deal(options, seats, random)
    }

    fn shuffled(_seats: u8, random: &Random) -> Vec<&'static str> {
        shuffled(random).iter().map(|card| card.code()).collect()
    }

    fn to_act(state: &State) -> Option<Seat> {
        state.over.is_none().then_some(state.turn)
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

    fn move_view(mv: &Move, _seat: Seat, _viewer: Viewer) -> MoveView {
        *mv
    }

    fn event_view(event: &Event, viewer: Viewer) -> Event {
        view::event_view(event, viewer)
    }

    fn end(state: &State) -> Option<EndReason> {
        state.over
    }

    /// L10: by number of Keys.
    fn ranking(state: &State) -> Vec<Ranked> {
        rank_by(state.seats.iter().map(|seat| (seat.keys.len() as i32, seat.keys.len())))
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
