//! What goes over the wire, but for moves, states and events, whose shapes belong to their rulesets.

mod game;
mod history;
mod player;
mod ruleset;

pub use game::{GameIn, GameOut, GamePageOut, LegalMovesOut, MoveAnswerOut, MoveOut, MovePageOut, SeatIn};
pub use history::{FairnessOut, PastStateOut};
pub use player::{PlayerIn, PlayerOut, ProfileIn, ProfileOut, RegistrationOut};
pub use ruleset::{RulesetListOut, RulesetOut, RulesetSummaryOut};
