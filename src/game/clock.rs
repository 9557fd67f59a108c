//! Clocks: how long a player may take. Instants are stamped by the store, whose clock is the database's; here is only the
//! arithmetic.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use super::{Game, GameError, SeatStatus};
use crate::rulesets::Seat;

/// Shortest time for a move or bank, in seconds: shorter games than this are not what a server of requests is for.
const SHORTEST: u32 = 60;
/// Longest time for a move or bank, in seconds: 14 days.
const LONGEST: u32 = 14 * 86_400;
/// Most that a move can give back, in seconds.
const LARGEST_INCREMENT: u32 = 86_400;

/// How long the players of a game may take. Who oversteps it leaves the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Clock {
    /// So long for every move.
    PerMove {
        /// 60 to 1209600 (14 days).
        #[schema(minimum = 60, maximum = 1209600, example = 86400)]
        seconds: u32,
    },
    /// So long for all one's moves together; every move gives something back.
    Bank {
        /// At the start: 60 to 1209600 (14 days).
        #[schema(minimum = 60, maximum = 1209600, example = 259200)]
        seconds: u32,
        /// Added after each move: 0 to 86400.
        #[schema(minimum = 0, maximum = 86400, example = 3600)]
        increment: u32,
    },
}

impl Clock {
    /// Refuses what is out of range.
    ///
    /// # Errors
    /// Which member it is.
    pub fn check(self) -> Result<(), GameError> {
        let (Clock::PerMove { seconds } | Clock::Bank { seconds, .. }) = self;
        if !(SHORTEST..=LONGEST).contains(&seconds) {
            return Err(GameError::InvalidClock { member: "seconds", allowed: SHORTEST..=LONGEST });
        }
        match self {
            Clock::Bank { increment, .. } if increment > LARGEST_INCREMENT => {
                Err(GameError::InvalidClock { member: "increment", allowed: 0..=LARGEST_INCREMENT })
            }
            _ => Ok(()),
        }
    }
}

impl Game {
    /// Sets the clock for the seat that is to move from `at` on. `before`: who was to move, if that seat has just moved.
    pub(super) fn begin_turn(&mut self, before: Option<Seat>, at: OffsetDateTime) {
        if let (Some(Clock::Bank { increment, .. }), Some(mover), Some(due)) = (self.clock, before, self.due_at)
            && self.is_playing(mover)
            && let Some(bank) = self.remaining_ms.as_mut().and_then(|banks| banks.get_mut(usize::from(mover)))
        {
            let left = i64::try_from((due - at).whole_milliseconds()).unwrap_or_default();
            *bank = left.max(0) + i64::from(increment) * 1000;
        }
        self.to_move_since = self.to_move.map(|_| at);
        self.due_at = self.budget().map(|budget| at + budget);
    }

    /// How long the seat to move may take.
    fn budget(&self) -> Option<Duration> {
        let seat = self.to_move?;
        match self.clock {
            // A bot need not be waited for.
            _ if !self.is_playing(seat) => Some(Duration::ZERO),
            Some(Clock::PerMove { seconds }) => Some(Duration::seconds(seconds.into())),
            Some(Clock::Bank { .. }) => {
                let bank = self.remaining_ms.as_ref()?.get(usize::from(seat))?;
                Some(Duration::milliseconds(*bank))
            }
            None => None,
        }
    }

    /// The banks as they are at the start, in milliseconds, by seat; none without a bank.
    pub(super) fn full_banks(&self) -> Option<Vec<i64>> {
        match self.clock {
            Some(Clock::Bank { seconds, .. }) => Some(vec![i64::from(seconds) * 1000; usize::from(self.seat_count)]),
            _ => None,
        }
    }

    /// Whether a seat's player still plays.
    pub fn is_playing(&self, seat: Seat) -> bool {
        self.seats.iter().any(|taken| taken.seat == seat && taken.status == SeatStatus::Playing)
    }
}
