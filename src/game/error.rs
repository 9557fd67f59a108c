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
    #[error("a rated game is public and for two or more")]
    NotRatable,
    #[error("a rated game is between humans or between bots, not both")]
    WrongPool,
    #[error("the game needs at least {fewest} players")]
    TooFewPlayers { fewest: u8 },
    #[error("you have left this game; a bot plays on for you")]
    HasLeft,
    #[error("the game is {}, not over", .0.as_str())]
    NotOver(Status),
    #[error("there is no invitation, or none any more")]
    NotInvited,
    #[error("the player has a seat in this game already")]
    PlayerSeated,
    #[error("the game is public: everybody may take a seat")]
    NotPrivate,
    #[error("{member} is {} to {}", .allowed.start(), .allowed.end())]
    InvalidClock { member: &'static str, allowed: RangeInclusive<u32> },
    #[error("it is not your turn")]
    NotYourTurn { to_move: Option<Seat> },
    #[error("the move cannot be read")]
    MalformedMove(#[source] serde_json::Error),
    #[error(transparent)]
    Illegal(#[from] IllegalMove),
    #[error(transparent)]
    InvalidOptions(#[from] InvalidOptions),
}
