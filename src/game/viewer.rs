//! Who sees what: the only place that makes a [`Viewer`] of a player.

use uuid::Uuid;

use super::Game;
use crate::rulesets::{Seat, Viewer};

impl Game {
    /// The seat of a player, if they have one.
    pub fn seat_of(&self, player: Uuid) -> Option<Seat> {
        self.seats.iter().find(|taken| taken.player.id == player).map(|taken| taken.seat)
    }

    /// As whom a player, or somebody without an account, looks at the game now. Once it is over nothing is hidden from
    /// anybody; until then who has no seat is a spectator.
    pub fn viewer(&self, player: Option<Uuid>) -> Viewer {
        if self.is_over() { Viewer::Everything } else { self.viewer_while_active(player) }
    }

    /// As whom they looked at it while it was being played.
    pub fn viewer_while_active(&self, player: Option<Uuid>) -> Viewer {
        player.and_then(|id| self.seat_of(id)).map_or(Viewer::Spectator, Viewer::Seat)
    }
}
