//! What goes over the wire, but for moves, states and events, whose shapes belong to their rulesets.

mod game;
mod player;

pub use game::{GameIn, GameOut, GamePageOut, LegalMovesOut, MoveAnswerOut, MoveOut, MovePageOut, SeatIn};
pub use player::{PlayerIn, PlayerOut, ProfileIn, ProfileOut, RegistrationOut};
