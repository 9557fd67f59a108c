//! Siggil (Сиггил): take the sigil apart card by card and capture the spirits that were locked in it. Wiring only.

mod cards;
#[cfg(test)]
mod laws;
mod layouts;
mod moves;
mod state;
#[cfg(test)]
mod tests;
mod view;

use super::random::{Random, Stream};
use super::{Catalogue, EndReason, Meta, OptionError, Ranked, Seat, Text, Viewer};

pub use cards::{By, Card, CardSet, SigilCard, Spirit};
pub use layouts::Layout;
pub use moves::{Event, Move, NotAllowed};
pub use state::{Difficulty, Options, Phase, State};
pub use view::{Face, SeatView, SetView, SlotView, View};

/// Nothing in a move is secret: cards are taken and played face up.
pub type MoveView = Move;

/// The ruleset `siggil`.
pub struct Siggil;

impl super::Ruleset for Siggil {
    type Options = Options;
    type State = State;
    type Move = Move;
    type MoveView = MoveView;
    type Event = Event;
    type View = View;
    type Illegal = NotAllowed;

    const META: Meta = Meta {
        slug: "siggil",
        name: Text { en: "Siggil", ru: "Сиггил" },
        designer: "Henri Kermarrec",
        seats: 1..=4,
        rules_version: 1,
        summary: Text {
            en: "Take a pattern of overlapping cards apart, one card a turn, and capture the spirits that come free with sets \
                 of their family or their number, or take them from others with greater sets. Most spirits win; alone you \
                 must capture all seven.",
            ru: "Разбирайте узор из перекрывающихся карт, по карте за ход, и ловите освободившихся духов наборами их семейства \
                 или их числа либо отнимайте их бо́льшими наборами у соперников. Побеждает тот, у кого больше духов; в одиночку \
                 нужно поймать всех семерых.",
        },
        rules: Text { en: include_str!("rules.en.md"), ru: include_str!("rules.ru.md") },
        // Every one of the 49 cards is taken, and a capture or the end of the turn follows. Alone it is shorter.
        longest_game: 98,
        end_reasons: &[EndReason::Completed],
        score: 0..=7,
    };

    fn resolve(options: &Options, seats: u8) -> Result<Options, Vec<OptionError>> {
        options.resolve(seats)
    }

    fn setup(options: &Options, seats: u8, random: &Random) -> State {
        State::deal(options, seats, random)
    }

    fn shuffled(seats: u8, random: &Random) -> Vec<&'static str> {
        state::shuffled(seats, random).iter().map(|card| card.code()).collect()
    }

    fn to_act(state: &State) -> Option<Seat> {
        state.phase.map(|_| state.turn)
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
    ) -> Result<(), NotAllowed> {
        moves::apply(state, seat, mv, events)
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
        state.phase.is_none().then_some(EndReason::Completed)
    }

    fn ranking(state: &State) -> Vec<Ranked> {
        view::ranking(state)
    }

    fn determinize(view: &View, to_act: Option<Seat>, options: &Options, random: &mut Stream) -> State {
        view::determinize(view, to_act, options, random)
    }

    fn check(state: &State) -> Result<(), &'static str> {
        state.check()
    }

    fn catalogue() -> Catalogue {
        Catalogue { terms: cards::terms().into(), cards: cards::card_faces(), layouts: layouts::layouts() }
    }
}
