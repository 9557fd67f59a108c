//! What a move did, and who may see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rulesets::cards::{Card, Symbol};
use crate::rulesets::{EndReason, Seat, Viewer};

/// Something that a move did. In the log it is kept in full; what a viewer may not know is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = QuintisFontisEvent)]
pub enum Event {
    /// The top card of a stack went to a player's hand, in exchange for the card played next (Q7).
    CardTaken {
        /// Who took it.
        seat: Seat,
        /// The card, which everybody saw.
        card: Card,
        /// Column of the stack, growing to the right.
        x: i8,
        /// Row of the stack, growing downwards.
        y: i8,
    },
    /// A card went from a player's hand to the top of whatever lies on a cell (Q5–Q7).
    CardPlayed {
        /// Who played it.
        seat: Seat,
        /// The card.
        card: Card,
        /// Column of the cell, growing to the right.
        x: i8,
        /// Row of the cell, growing downwards.
        y: i8,
    },
    /// A player drew the top card of the deck (Q8).
    CardDrawn {
        /// Who drew it.
        seat: Seat,
        /// The card; null unless it is the viewer's own or the game is over.
        #[schema(required)]
        card: Option<Card>,
    },
    /// A player took a Key from the supply (Q9).
    KeyGained {
        /// Who took it.
        seat: Seat,
        /// The symbol of the Key.
        key: Symbol,
    },
    /// The last card of the deck was drawn: every player has one more turn (Q11).
    LastTurnsBegun {
        /// Who drew it, whose turn will be the last.
        seat: Seat,
        /// How many turns are still to come, which is the number of players.
        turns: u8,
    },
    /// The turn is over and the next begins.
    TurnPassed {
        /// Who moves next.
        seat: Seat,
    },
    /// The game is over (Q11, Q13).
    GameFinished {
        /// Why it is over.
        reason: EndReason,
    },
}

impl Event {
    /// The event as a viewer may see it: only the cards that others draw are hidden.
    pub fn seen_by(self, viewer: Viewer) -> Self {
        match self {
            Event::CardDrawn { seat, card } => Event::CardDrawn { seat, card: card.filter(|_| viewer.sees(seat)) },
            Event::CardTaken { .. }
            | Event::CardPlayed { .. }
            | Event::KeyGained { .. }
            | Event::LastTurnsBegun { .. }
            | Event::TurnPassed { .. }
            | Event::GameFinished { .. } => self,
        }
    }
}
