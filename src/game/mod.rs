//! Layer 2: the life of one game, still pure. Who asks, what they ask and all chance come in as arguments; times are
//! stamped by the store, whose clock is the database's. Rulesets are known only through the registry.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod clock;
mod command;
mod error;
mod event;
mod leaving;
mod log;
pub mod rating;
mod record;
mod seats;
mod viewer;

pub use clock::Clock;
pub use command::{Command, NewGame};
pub use error::GameError;
pub use event::{Change, EventKind, Facts, Happening, Notice, NoticeKind};
pub use log::{Entry, LogRow, Occurrence, Place, replay};
pub use rating::Rating;
pub use record::{RatedSeat, Record, RecordError, RecordedMove, RecordedRating};
pub(crate) use seats::is_visible;
pub use seats::{Entropy, InvalidText, Invitation, Player, PlayerKind, PlayerName, SeatStatus, SeatedPlayer};

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::rulesets::random::{Random, commitment, game_seed};
use crate::rulesets::registry::{AnyOptions, AnyState, InvalidOptions, RulesetId};
use crate::rulesets::{Outcome, Ranked, Seat};

/// The stages of a game's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = GameStatus)]
pub enum Status {
    /// Waiting for players.
    Open,
    /// Being played.
    Active,
    /// Over, with an outcome.
    Finished,
    /// Called off.
    Aborted,
}

impl Status {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Active => "active",
            Status::Finished => "finished",
            Status::Aborted => "aborted",
        }
    }

    /// The status of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [Status::Open, Status::Active, Status::Finished, Status::Aborted].into_iter().find(|s| s.as_str() == word)
    }
}

/// The 32 secret bytes from which a game's chance follows (fairness 1). Prints nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerSeed(pub [u8; 32]);

impl std::fmt::Debug for ServerSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerSeed(secret)")
    }
}

/// Who may know of a game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Everybody.
    #[default]
    Public,
    /// Its players, whoever is invited, and whoever has the invite code.
    Private,
}

impl Visibility {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            Visibility::Public => "public",
            Visibility::Private => "private",
        }
    }

    /// The visibility of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [Visibility::Public, Visibility::Private].into_iter().find(|known| known.as_str() == word)
    }
}

/// When spectators see the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spectators {
    /// While it is being played; hands and the like stay hidden.
    #[default]
    Live,
    /// Once the game is over.
    AfterEnd,
}

impl Spectators {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            Spectators::Live => "live",
            Spectators::AfterEnd => "after_end",
        }
    }

    /// The setting of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [Spectators::Live, Spectators::AfterEnd].into_iter().find(|known| known.as_str() == word)
    }
}

/// A code that lets its holder know of a private game and take a seat. Prints nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Invite(pub String);

impl std::fmt::Debug for Invite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Invite(secret)")
    }
}

/// How a finished game went for one of its players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GameResult {
    /// They won, and nobody else did.
    Won,
    /// They did not win.
    Lost,
    /// They won together with others.
    Shared,
}

impl GameResult {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            GameResult::Won => "won",
            GameResult::Lost => "lost",
            GameResult::Shared => "shared",
        }
    }
}

/// Everything of a game that whoever may know of it may know: all but the table and what is secret.
#[derive(Clone, Debug)]
pub struct Summary {
    pub id: Uuid,
    pub ruleset: RulesetId,
    /// The version of the rules under which it began.
    pub rules_version: u32,
    /// Options as given while it is open, those in force once it has started.
    pub options: Map<String, Value>,
    /// How many can sit; once started, how many play.
    pub seat_count: u8,
    pub status: Status,
    pub visibility: Visibility,
    pub spectators: Spectators,
    pub clock: Option<Clock>,
    /// Whether it counts for the ratings of its players.
    pub rated: bool,
    /// Counts accepted commands, from 0 for the creation.
    pub version: u32,
    /// Who may start it early: its creator, or who took their place by staying.
    pub creator: Uuid,
    /// The taken seats, in order of seat.
    pub seats: Vec<SeatedPlayer>,
    /// The seats that are kept for somebody, in order of seat; also those whose time is over until a server has noticed.
    pub invitations: Vec<Invitation>,
    pub moves_count: u32,
    /// When the last move was played.
    pub last_move_at: Option<OffsetDateTime>,
    /// The seat that must move; none unless the game is active.
    pub to_move: Option<Seat>,
    /// Since when it must: since the move before, its own included.
    pub to_move_since: Option<OffsetDateTime>,
    /// When the server has to act: the deadline of the player to move, or at once where a bot plays for one who left.
    pub due_at: Option<OffsetDateTime>,
    /// What each seat's bank holds as of the beginning of the present turn, in milliseconds; none without banks.
    pub remaining_ms: Option<Vec<i64>>,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    /// Set when it is finished, or aborted after its start.
    pub outcome: Option<Outcome>,
    /// The game that follows it.
    pub rematch: Option<Uuid>,
}

impl Summary {
    /// The instant by which the player to move must have moved.
    pub fn deadline(&self) -> Option<OffsetDateTime> {
        self.due_at.filter(|_| self.clock.is_some() && self.player_to_move().is_some())
    }

    /// The player who must move; none where a bot plays for them.
    pub fn player_to_move(&self) -> Option<&Player> {
        let seat = self.to_move?;
        let taken = self.seats.iter().find(|taken| taken.seat == seat && taken.status == SeatStatus::Playing);
        taken.map(|taken| &taken.player)
    }

    /// How a finished game went for a seat.
    pub fn result_of(&self, seat: Seat) -> Option<GameResult> {
        let outcome = self.outcome.as_ref().filter(|_| self.status == Status::Finished)?;
        let won = |line: &&Ranked| line.won;
        Some(match outcome.ranking.iter().filter(won).any(|line| line.seat == seat) {
            false => GameResult::Lost,
            true if outcome.ranking.iter().filter(won).count() > 1 => GameResult::Shared,
            true => GameResult::Won,
        })
    }

    /// Whether nothing can be played any more.
    pub fn is_over(&self) -> bool {
        matches!(self.status, Status::Finished | Status::Aborted)
    }

    /// The game as it was once this move had been played, between two changes that are no moves: what those changed stays.
    pub fn as_of_move(&self, entry: &Entry) -> Summary {
        let mut then = self.clone();
        then.version = entry.version;
        then.moves_count = entry.number;
        then.last_move_at = Some(entry.at);
        then.to_move = entry.to_move;
        then.to_move_since = entry.to_move.map(|_| entry.at);
        then.due_at = entry.due_at;
        then.remaining_ms.clone_from(&entry.remaining_ms);
        then
    }
}

/// One hosted play of a ruleset, hidden things included. What leaves the server of it is made for a viewer.
#[derive(Clone, Debug)]
pub struct Game {
    pub summary: Summary,
    /// Of a private game; none once it is revoked.
    pub invite: Option<Invite>,
    pub server_seed: ServerSeed,
    /// None before the start.
    pub state: Option<AnyState>,
}

/// A game is its summary and more.
impl Deref for Game {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

impl DerefMut for Game {
    fn deref_mut(&mut self) -> &mut Summary {
        &mut self.summary
    }
}

impl Game {
    /// SHA-256 of the server's seed, public from the creation on (fairness 1).
    pub fn commitment(&self) -> [u8; 32] {
        commitment(&self.server_seed.0)
    }

    /// The server's seed once everybody may know it: the game was played and is over (fairness 1).
    pub fn revealed_seed(&self) -> Option<&ServerSeed> {
        (self.is_over() && self.started_at.is_some()).then_some(&self.server_seed)
    }

    /// The options with all defaults written out: in force, or as they would be if the game started with all seats.
    ///
    /// # Errors
    /// Never for a game that was created by [`Game::create`] under these rules.
    pub fn options_in_force(&self) -> Result<AnyOptions, InvalidOptions> {
        self.ruleset.options(&self.options, self.seat_count)
    }

    /// The seed from which the game's chance follows (fairness 3); only of use once the seats are final. As secret as the
    /// server's seed.
    pub fn game_seed(&self) -> [u8; 32] {
        self.seed_later()()
    }

    /// The chance of the game.
    pub fn random(&self) -> Random {
        Random::later(self.seed_later())
    }

    fn seed_later(&self) -> impl FnOnce() -> [u8; 32] + Send + 'static {
        let (server_seed, id, slug) = (self.server_seed.0, self.id, self.ruleset.meta().slug);
        let entropies: Vec<Entropy> = self.seats.iter().map(|taken| taken.entropy.clone()).collect();
        move || game_seed(&server_seed, &id.hyphenated().to_string(), slug, entropies.iter().map(Entropy::as_str))
    }

    /// The state at the deal, before any move.
    ///
    /// # Errors
    /// As [`Game::options_in_force`].
    pub fn dealt(&self) -> Result<AnyState, InvalidOptions> {
        Ok(self.options_in_force()?.deal(self.seat_count, &self.random()))
    }

    /// The same game with what everybody knew of it then, and the table of that time.
    pub fn as_of(&self, summary: Summary, state: Option<AnyState>) -> Game {
        Game { summary, invite: self.invite.clone(), server_seed: self.server_seed.clone(), state }
    }
}

#[cfg(test)]
mod tests;
