//! The log of a game: the truth from which every past state follows.

use time::OffsetDateTime;

use super::{Game, GameError};
use crate::rulesets::registry::{AnyEvent, AnyMove, AnyMoveView, AnyState};
use crate::rulesets::{Seat, Viewer};

/// A played move with all it did, hidden things included.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// From 1.
    pub number: u32,
    /// The game's version once it was played.
    pub version: u32,
    pub seat: Seat,
    pub mv: AnyMove,
    pub events: Vec<AnyEvent>,
    pub at: OffsetDateTime,
}

impl Entry {
    /// The move as `viewer` may see it.
    pub fn move_view(&self, viewer: Viewer) -> AnyMoveView {
        self.mv.view(self.seat, viewer)
    }

    /// The events as `viewer` may see them.
    pub fn event_views(&self, viewer: Viewer) -> Vec<AnyEvent> {
        self.events.iter().map(|event| event.view(viewer)).collect()
    }
}

/// The state after these moves, which must be all from the first on, in order.
///
/// # Errors
/// A move of the log is not legal: the log is damaged, or the rules have changed since.
pub fn replay<'a>(game: &Game, moves: impl IntoIterator<Item = (Seat, &'a AnyMove)>) -> Result<AnyState, GameError> {
    let random = game.random();
    let mut state = game.dealt()?;
    for (seat, mv) in moves {
        state.apply(seat, mv, &random)?;
    }
    Ok(state)
}
