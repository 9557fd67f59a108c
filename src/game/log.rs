//! The log of a game: the truth from which every past state follows.

use time::OffsetDateTime;
use uuid::Uuid;

use super::{EventKind, Facts, Game, GameError, Happening, Player, Summary};
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
    /// Whose turn it was then; none if the move ended the game.
    pub to_move: Option<Seat>,
    /// When the server had to act next: the deadline of that seat, for instance.
    pub due_at: Option<OffsetDateTime>,
    /// What each seat's bank then held, in milliseconds; none without banks.
    pub remaining_ms: Option<Vec<i64>>,
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

/// Something of a game's log that is no move.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    pub version: u32,
    /// A version can have several, and then a move before them.
    pub index: u16,
    pub happening: Happening,
    pub at: OffsetDateTime,
    /// The game as it was then.
    pub facts: Facts,
}

/// A row of the one log of everything visible that happens to a game.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a page of them lives at a time: a box would only cost")]
pub enum LogRow {
    Move(Entry),
    Occurrence(Occurrence),
}

impl LogRow {
    /// Its place in the log.
    pub fn place(&self) -> Place {
        match self {
            LogRow::Move(entry) => Place { version: entry.version, index: 0 },
            LogRow::Occurrence(occurrence) => Place { version: occurrence.version, index: occurrence.index },
        }
    }

    /// When it happened.
    pub fn at(&self) -> OffsetDateTime {
        match self {
            LogRow::Move(entry) => entry.at,
            LogRow::Occurrence(occurrence) => occurrence.at,
        }
    }
}

/// A place in a game's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub version: u32,
    pub index: u16,
}

impl Place {
    /// The place just before, behind which this one is the first; none at the very beginning.
    pub fn before(self) -> Option<Self> {
        match self.index.checked_sub(1) {
            Some(index) => Some(Self { index, ..self }),
            None => self.version.checked_sub(1).map(Self::after),
        }
    }

    /// The place behind all that belongs to a version.
    pub fn after(version: u32) -> Self {
        Self { version, index: u16::MAX }
    }
}

impl Game {
    /// Goes one row of the log further. `player` knows who has which id.
    ///
    /// # Errors
    /// The row does not follow: the log is damaged, or the rules have changed since.
    pub fn advance(&mut self, row: &LogRow, player: impl Fn(Uuid) -> Option<Player>) -> Result<(), GameError> {
        match row {
            LogRow::Move(entry) => {
                let random = self.random();
                if let Some(state) = self.state.as_mut() {
                    state.apply(entry.seat, &entry.mv, &random)?;
                }
                self.summary = self.summary.after(row, player);
            }
            LogRow::Occurrence(occurrence) => {
                self.summary = self.summary.after(row, player);
                if occurrence.happening.kind == EventKind::GameStarted {
                    self.state = Some(self.dealt()?);
                }
            }
        }
        Ok(())
    }
}

impl Summary {
    /// What everybody knows of the game one row of its log later. `player` knows who has which id.
    pub fn after(&self, row: &LogRow, player: impl Fn(Uuid) -> Option<Player>) -> Summary {
        match row {
            LogRow::Move(entry) => self.as_of_move(entry),
            LogRow::Occurrence(occurrence) => self.as_of_facts(occurrence.facts.clone(), occurrence.version, player),
        }
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
