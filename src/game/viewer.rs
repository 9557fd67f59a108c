//! Who sees what: the only place that makes a [`Viewer`] of a player.

use uuid::Uuid;

use super::{Game, Spectators, Visibility};
use crate::rulesets::{Seat, Viewer};

impl Game {
    /// The seat of a player, if they have one.
    pub fn seat_of(&self, player: Uuid) -> Option<Seat> {
        self.seats.iter().find(|taken| taken.player.id == player).map(|taken| taken.seat)
    }

    /// Whether a player, or somebody without an account, may know of the game; who has the code of a private one may.
    pub fn is_known_to(&self, player: Option<Uuid>, code: Option<&str>) -> bool {
        let belongs = |id| self.seat_of(id).is_some() || self.invitation_of(id).is_some();
        self.visibility == Visibility::Public || player.is_some_and(belongs) || self.opens_with(code)
    }

    /// As whom a player, or somebody without an account, looks at the table now; none if they may not see it yet. Once the
    /// game is over nothing is hidden from anybody; until then who has no seat is a spectator.
    pub fn viewer(&self, player: Option<Uuid>) -> Option<Viewer> {
        if self.is_over() { Some(Viewer::Everything) } else { self.viewer_while_active(player) }
    }

    /// As whom they looked at it while it was being played.
    pub fn viewer_while_active(&self, player: Option<Uuid>) -> Option<Viewer> {
        match player.and_then(|id| self.seat_of(id)) {
            Some(seat) => Some(Viewer::Seat(seat)),
            None => (self.spectators == Spectators::Live).then_some(Viewer::Spectator),
        }
    }
}
