//! Why a game refuses a command.

use std::ops::RangeInclusive;

use super::Status;
use crate::rulesets::Seat;
use crate::rulesets::registry::{IllegalMove, InvalidOptions};

/// Why a game refuses a command; what it says may be shown to whoever gave it.
#[derive(Debug, thiserror::Error)]
pub enum GameError {
    #[error("you have no seat in this game")]
    NotSeated,
    #[error("only the game's creator may do this")]
    NotCreator,
    #[error("the game is {}, not open", .0.as_str())]
    NotOpen(Status),
    #[error("the game is {}, not active", .0.as_str())]
    NotActive(Status),
    #[error("the seat is taken")]
    SeatTaken,
    #[error("you have a seat in this game already")]
    AlreadySeated,
    #[error("the game has {seats} seats, numbered from 0")]
    NoSuchSeat { seats: u8 },
    #[error("the ruleset is for {} to {} players", .allowed.start(), .allowed.end())]
    SeatCount { allowed: RangeInclusive<u8> },
    #[error("the ruleset needs at least {fewest} players")]
    TooFewPlayers { fewest: u8 },
    #[error("it is not your turn")]
    NotYourTurn { to_move: Option<Seat> },
    #[error("the move cannot be read")]
    MalformedMove(#[source] serde_json::Error),
    #[error(transparent)]
    Illegal(#[from] IllegalMove),
    #[error(transparent)]
    InvalidOptions(#[from] InvalidOptions),
}
