//! Layer 2: the life of one game, still pure. Who asks, what they ask and all chance come in as arguments; times are
//! stamped by the store, whose clock is the database's. Rulesets are known only through the registry.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod error;
mod log;
mod record;
mod seats;
mod viewer;

pub use error::GameError;
pub use log::{Entry, replay};
pub use record::{Record, RecordError};
pub use seats::{Entropy, InvalidText, Player, PlayerKind, PlayerName, SeatStatus, SeatedPlayer};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::rulesets::random::{Random, commitment, game_seed};
use crate::rulesets::registry::{AnyOptions, AnyState, InvalidOptions, RulesetId};
use crate::rulesets::{EndReason, Outcome, Ranked, Seat};

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

/// One hosted play of a ruleset, hidden things included. What leaves the server of it is made for a viewer.
#[derive(Clone, Debug)]
pub struct Game {
    pub id: Uuid,
    pub ruleset: RulesetId,
    /// The version of the rules under which it began.
    pub rules_version: u32,
    /// Options as given while it is open, those in force once it has started.
    pub options: Map<String, Value>,
    /// How many can sit; once started, how many play.
    pub seat_count: u8,
    pub status: Status,
    /// Counts accepted commands, from 0 for the creation.
    pub version: u32,
    /// Who may start it early: its creator, or who took their place by staying.
    pub creator: Uuid,
    /// The taken seats, in order of seat.
    pub seats: Vec<SeatedPlayer>,
    pub server_seed: ServerSeed,
    pub moves_count: u32,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    /// Since when the seat to move has been to move.
    pub to_move_since: Option<OffsetDateTime>,
    /// Set when it is finished, or aborted after its start.
    pub outcome: Option<Outcome>,
    /// None before the start.
    pub state: Option<AnyState>,
}

/// What lists show of a game: everything public but the table itself.
#[derive(Clone, Debug)]
pub struct Summary {
    pub id: Uuid,
    pub ruleset: RulesetId,
    pub rules_version: u32,
    pub options: Map<String, Value>,
    pub seat_count: u8,
    pub status: Status,
    pub version: u32,
    pub creator: Uuid,
    pub seats: Vec<SeatedPlayer>,
    pub moves_count: u32,
    pub to_move: Option<Seat>,
    pub to_move_since: Option<OffsetDateTime>,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    pub outcome: Option<Outcome>,
}

/// What somebody asks of a game.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// Take a seat, the lowest free one unless it is named. The game starts when all are taken.
    TakeSeat { seat: Option<Seat>, entropy: Entropy },
    /// Leave before the start.
    LeaveSeat,
    /// Start with the seats that are taken.
    Start,
    /// Play a move, given as JSON.
    Play { body: &'a [u8] },
    /// Give up.
    Resign,
}

/// What a command changed besides the game itself; the store writes it down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The game started with this command.
    pub started: bool,
    /// The game ended with this command.
    pub ended: bool,
    /// The move that was played.
    pub entry: Option<Entry>,
}

/// What a new game is to be.
#[derive(Clone, Debug)]
pub struct NewGame {
    pub id: Uuid,
    pub ruleset: RulesetId,
    pub options: Map<String, Value>,
    /// None: two, or the fewest that the ruleset allows.
    pub seats: Option<u8>,
    pub entropy: Entropy,
    pub server_seed: ServerSeed,
    pub created_at: OffsetDateTime,
}

impl Game {
    /// A new game; its creator takes the lowest seat, and if that is the only one it starts at once.
    ///
    /// # Errors
    /// The number of seats or the options do not suit the ruleset.
    pub fn create(new: NewGame, creator: Player) -> Result<(Game, Change), GameError> {
        let meta = new.ruleset.meta();
        let seat_count = new.seats.unwrap_or_else(|| 2.max(*meta.seats.start()));
        if !meta.seats.contains(&seat_count) {
            return Err(GameError::SeatCount { allowed: meta.seats.clone() });
        }
        // Refused now rather than at the start, when it would be too late to mend.
        new.ruleset.options(&new.options, seat_count)?;
        let mut game = Game {
            id: new.id,
            ruleset: new.ruleset,
            rules_version: meta.rules_version,
            options: new.options,
            seat_count,
            status: Status::Open,
            version: 0,
            creator: creator.id,
            seats: vec![SeatedPlayer { seat: 0, player: creator, entropy: new.entropy, status: SeatStatus::Playing }],
            server_seed: new.server_seed,
            moves_count: 0,
            created_at: new.created_at,
            started_at: None,
            finished_at: None,
            to_move_since: None,
            outcome: None,
            state: None,
        };
        let mut change = Change::default();
        if seat_count == 1 {
            game.deal(&mut change)?;
        }
        Ok((game, change))
    }

    /// Carries out a command of a player; the version grows by one.
    ///
    /// # Errors
    /// The command is not theirs to give, or not now, or not allowed by the rules. The game is then unchanged.
    pub fn handle(&mut self, command: Command<'_>, actor: &Player) -> Result<Change, GameError> {
        let mut change = Change::default();
        match command {
            Command::TakeSeat { seat, entropy } => self.take_seat(actor, seat, entropy, &mut change)?,
            Command::LeaveSeat => self.leave_seat(actor, &mut change)?,
            Command::Start => self.start(actor, &mut change)?,
            Command::Play { body } => self.play(actor, body, &mut change)?,
            Command::Resign => self.resign(actor, &mut change)?,
        }
        self.version += 1;
        Ok(change)
    }

    /// Writes the time of a change into the game.
    pub fn stamp(&mut self, change: &Change, at: OffsetDateTime) {
        if change.started {
            self.started_at = Some(at);
        }
        if change.ended {
            self.finished_at = Some(at);
        }
        if change.started || change.ended || change.entry.is_some() {
            self.to_move_since = self.to_move().map(|_| at);
        }
    }

    /// The seat that must move; none unless the game is active.
    pub fn to_move(&self) -> Option<Seat> {
        let state = self.state.as_ref().filter(|_| self.status == Status::Active)?;
        state.to_act()
    }

    /// The player in the seat that must move.
    pub fn player_to_move(&self) -> Option<&Player> {
        let seat = self.to_move()?;
        self.seats.iter().find(|taken| taken.seat == seat).map(|taken| &taken.player)
    }

    /// Whether nothing can happen any more.
    pub fn is_over(&self) -> bool {
        matches!(self.status, Status::Finished | Status::Aborted)
    }

    /// What lists show of it.
    pub fn summary(&self) -> Summary {
        Summary {
            id: self.id,
            ruleset: self.ruleset,
            rules_version: self.rules_version,
            options: self.options.clone(),
            seat_count: self.seat_count,
            status: self.status,
            version: self.version,
            creator: self.creator,
            seats: self.seats.clone(),
            moves_count: self.moves_count,
            to_move: self.to_move(),
            to_move_since: self.to_move_since,
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            outcome: self.outcome.clone(),
        }
    }

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
        let entropies = self.seats.iter().map(|taken| taken.entropy.as_str());
        game_seed(&self.server_seed.0, &self.id.hyphenated().to_string(), self.ruleset.meta().slug, entropies)
    }

    /// The chance of the game.
    pub fn random(&self) -> Random {
        Random::new(self.game_seed())
    }

    /// The state at the deal, before any move.
    ///
    /// # Errors
    /// As [`Game::options_in_force`].
    pub fn dealt(&self) -> Result<AnyState, InvalidOptions> {
        Ok(self.options_in_force()?.deal(self.seat_count, &self.random()))
    }

    /// The game as it was once this move had been played: `state` is the state then.
    pub fn as_of(&self, entry: &Entry, state: AnyState) -> Game {
        let mut then = self.clone();
        then.version = entry.version;
        then.moves_count = entry.number;
        then.outcome = state.outcome();
        then.status = if then.outcome.is_some() { Status::Finished } else { Status::Active };
        then.finished_at = then.outcome.as_ref().map(|_| entry.at);
        then.seats.iter_mut().for_each(|taken| taken.status = SeatStatus::Playing);
        then.state = Some(state);
        then.to_move_since = then.to_move().map(|_| entry.at);
        then
    }

    fn take_seat(
        &mut self,
        actor: &Player,
        wanted: Option<Seat>,
        entropy: Entropy,
        change: &mut Change,
    ) -> Result<(), GameError> {
        if self.seat_of(actor.id).is_some() {
            return Err(GameError::AlreadySeated);
        }
        if self.status != Status::Open {
            return Err(GameError::NotOpen(self.status));
        }
        let taken = |seat: Seat| self.seats.iter().any(|other| other.seat == seat);
        let seat = match wanted {
            Some(seat) if seat >= self.seat_count => return Err(GameError::NoSuchSeat { seats: self.seat_count }),
            Some(seat) if taken(seat) => return Err(GameError::SeatTaken),
            Some(seat) => seat,
            None => (0..self.seat_count).find(|seat| !taken(*seat)).ok_or(GameError::SeatTaken)?,
        };
        self.seats.push(SeatedPlayer { seat, player: actor.clone(), entropy, status: SeatStatus::Playing });
        self.seats.sort_by_key(|taken| taken.seat);
        if self.seats.len() == usize::from(self.seat_count) {
            self.deal(change)?;
        }
        Ok(())
    }

    /// The creator who leaves hands the game over to the lowest seat; the last to leave closes it.
    fn leave_seat(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        let seat = self.seat_of(actor.id).ok_or(GameError::NotSeated)?;
        if self.status != Status::Open {
            return Err(GameError::NotOpen(self.status));
        }
        self.seats.retain(|taken| taken.seat != seat);
        match self.seats.first() {
            Some(lowest) if self.creator == actor.id => self.creator = lowest.player.id,
            Some(_) => {}
            None => {
                self.status = Status::Aborted;
                change.ended = true;
            }
        }
        Ok(())
    }

    /// The taken seats are numbered anew from 0, in their order (fairness 3).
    fn start(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        if self.creator != actor.id {
            return Err(GameError::NotCreator);
        }
        if self.status != Status::Open {
            return Err(GameError::NotOpen(self.status));
        }
        let fewest = *self.ruleset.meta().seats.start();
        let players = self.seats.len() as u8;
        if players < fewest {
            return Err(GameError::TooFewPlayers { fewest });
        }
        self.ruleset.options(&self.options, players)?;
        self.seat_count = players;
        (0..).zip(&mut self.seats).for_each(|(seat, taken)| taken.seat = seat);
        self.deal(change)
    }

    fn deal(&mut self, change: &mut Change) -> Result<(), GameError> {
        let options = self.options_in_force()?;
        self.state = Some(options.deal(self.seat_count, &self.random()));
        self.options = options.to_json();
        self.status = Status::Active;
        change.started = true;
        self.finish_if_over(change);
        Ok(())
    }

    fn play(&mut self, actor: &Player, body: &[u8], change: &mut Change) -> Result<(), GameError> {
        let seat = self.seat_of(actor.id).ok_or(GameError::NotSeated)?;
        if self.status != Status::Active {
            return Err(GameError::NotActive(self.status));
        }
        let to_move = self.to_move();
        let random = self.random();
        let state = self.state.as_mut().ok_or(GameError::NotActive(self.status))?;
        let mv = self.ruleset.read_move(body).map_err(GameError::MalformedMove)?;
        if to_move != Some(seat) {
            return Err(GameError::NotYourTurn { to_move });
        }
        let events = state.apply(seat, &mv, &random)?;
        self.moves_count += 1;
        change.entry = Some(Entry {
            number: self.moves_count,
            version: self.version + 1,
            seat,
            mv,
            events,
            // Until the store has written it.
            at: self.created_at,
        });
        self.finish_if_over(change);
        Ok(())
    }

    fn finish_if_over(&mut self, change: &mut Change) {
        if let Some(outcome) = self.state.as_ref().and_then(AnyState::outcome) {
            self.finish(outcome, change);
        }
    }

    fn finish(&mut self, outcome: Outcome, change: &mut Change) {
        self.outcome = Some(outcome);
        self.status = Status::Finished;
        change.ended = true;
    }

    /// Resigning ends the game: who resigned is last, the others rank by the score they have.
    fn resign(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        let seat = self.seat_of(actor.id).ok_or(GameError::NotSeated)?;
        if self.status != Status::Active {
            return Err(GameError::NotActive(self.status));
        }
        let ranking = self.state.as_ref().map(AnyState::ranking).ok_or(GameError::NotActive(self.status))?;
        if let Some(taken) = self.seats.iter_mut().find(|taken| taken.seat == seat) {
            taken.status = SeatStatus::Resigned;
        }
        self.finish(Outcome { reason: EndReason::Resignation, ranking: without_leaver(&ranking, seat) }, change);
        Ok(())
    }
}

/// A ranking with one seat put last and the others closed up; alone, the leaver has not won.
fn without_leaver(ranking: &[Ranked], leaver: Seat) -> Vec<Ranked> {
    let stayed: Vec<&Ranked> = ranking.iter().filter(|line| line.seat != leaver).collect();
    let last = ranking.iter().filter(|line| line.seat == leaver);
    let closed_up = stayed.iter().map(|line| {
        let better = stayed.iter().filter(|other| other.rank < line.rank).count() as u8;
        Ranked { rank: better + 1, won: better == 0, ..**line }
    });
    closed_up.chain(last.map(|line| Ranked { rank: ranking.len() as u8, won: false, ..*line })).collect()
}

#[cfg(test)]
mod tests;
