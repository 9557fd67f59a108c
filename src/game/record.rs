//! The record of a finished game: one self-contained document with everything that is needed to replay and check it,
//! without this server.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::leaving::{goes_on, with_leavers_last};
use super::rating::{Rating, rate};
use super::{Entry, Game, PlayerKind, SeatStatus, Status};
use crate::rulesets::random::{Random, commitment, game_seed};
use crate::rulesets::registry::{AnyMove, AnyOptions, RulesetId};
use crate::rulesets::{EndReason, Outcome, Seat};

/// The form of records that this server writes.
pub const FORMAT: &str = "tavola-record/1";

/// A finished game with everything that is needed to replay and check it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Record)]
pub struct Record {
    /// The form of this document.
    #[schema(example = "tavola-record/1")]
    pub format: String,
    pub game_id: Uuid,
    pub ruleset: RulesetId,
    /// The version of the rules under which it was played.
    pub rules_version: u32,
    /// In force, defaults written out.
    #[schema(value_type = AnyOptions)]
    pub options: Map<String, Value>,
    /// In order of seat.
    pub seats: Vec<RecordedSeat>,
    /// SHA-256 of `server_seed`, as it was published before the deal; lowercase hex like all that follows.
    pub commitment: String,
    pub server_seed: String,
    /// HMAC-SHA256 under the server's seed over game, ruleset and the players' entropy.
    pub game_seed: String,
    /// The seat that started; in `leopard` the first dealer.
    pub lot: Seat,
    /// The codes of the cards as they were shuffled for the (first) deal, from the top.
    pub shuffled: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub finished_at: OffsetDateTime,
    /// All moves, in order.
    pub moves: Vec<RecordedMove>,
    pub outcome: Outcome,
    /// Whether it counted for ratings; not there if it did not.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schema(default = false)]
    pub rated: bool,
    /// What it did to the ratings of its players; not there if it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false)]
    pub rating: Option<RecordedRating>,
    /// SHA-256 (lowercase hex) of the canonical JSON (RFC 8785) of this document without this member.
    pub digest: String,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// What a game did to ratings. All ratings follow from the records of all rated games, taken in order of `number`, each from what
/// the games before it came to: `tavola recompute-ratings` does that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedRating {
    /// Whose ratings these are: humans and bots are apart.
    pub pool: PlayerKind,
    /// Grows from each rated game of a player to the next that was counted; not without gaps.
    #[schema(minimum = 1)]
    pub number: u64,
    /// In order of seat.
    pub seats: Vec<RatedSeat>,
}

/// What a game did to one player's rating.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RatedSeat {
    pub seat: Seat,
    /// When the game was finished.
    pub before: Rating,
    pub after: Rating,
}

/// Who sat where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedSeat {
    pub seat: Seat,
    pub player: RecordedPlayer,
    /// The player's share in the game's chance.
    pub entropy: String,
    /// Whether they played to the end. If not, a bot went on for them where others played on.
    pub status: SeatStatus,
    /// The how-manieth to leave they were, from 1; not there for those who stayed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, minimum = 1, maximum = 4)]
    pub left: Option<u8>,
}

/// A player as they were called when the record was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedPlayer {
    pub id: Uuid,
    pub name: String,
    pub kind: PlayerKind,
}

/// A move as it was played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedMove {
    /// From 1.
    pub number: u32,
    pub seat: Seat,
    #[schema(value_type = AnyMove)]
    pub r#move: Value,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("this is no record of form {FORMAT}: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the form is {0:?}, not {FORMAT:?}")]
    Format(String),
    #[error("the digest does not fit the document")]
    Digest,
    #[error("the rules are of version {0}, which this program does not know")]
    RulesVersion(u32),
    #[error("the seats are not those of a game of this ruleset")]
    Seats,
    #[error("the options are not those of a game in force")]
    Options,
    #[error("server_seed is not 32 bytes in lowercase hex")]
    Seed,
    #[error("the commitment is not that of the server's seed")]
    Commitment,
    #[error("the game seed does not follow from the server's seed and the players' entropy")]
    GameSeed,
    #[error("the lot does not follow from the game seed")]
    Lot,
    #[error("the cards were not shuffled as the game seed says")]
    Shuffled,
    #[error("the times are not in order")]
    Times,
    #[error("move {number}: {problem}")]
    Move { number: u32, problem: String },
    #[error("the outcome does not follow from the moves")]
    Outcome,
    #[error("the ratings do not follow from the outcome")]
    Rating,
}

impl RecordedMove {
    /// A move of the log.
    pub fn new(number: u32, seat: Seat, mv: &AnyMove, at: OffsetDateTime) -> Self {
        // Moves are plain data: writing them cannot fail.
        Self { number, seat, r#move: serde_json::to_value(mv).unwrap_or_default(), at }
    }
}

impl From<&Entry> for RecordedMove {
    fn from(entry: &Entry) -> Self {
        Self::new(entry.number, entry.seat, &entry.mv, entry.at)
    }
}

impl Record {
    /// The record of a finished game; none if it is not finished. `moves` are all of them, in order; `rating` is what it did to
    /// ratings, if it was rated.
    pub fn new(game: &Game, moves: Vec<RecordedMove>, rating: Option<RecordedRating>) -> Option<Record> {
        if game.status != Status::Finished {
            return None;
        }
        let seed = game.revealed_seed()?;
        let random = game.random();
        let left = |version: u32| {
            let before = game.seats.iter().filter_map(|taken| taken.left_at_version).filter(|other| *other <= version);
            before.count() as u8
        };
        let mut record = Record {
            format: FORMAT.to_owned(),
            game_id: game.id,
            ruleset: game.ruleset,
            rules_version: game.rules_version,
            options: game.options.clone(),
            seats: game
                .seats
                .iter()
                .map(|taken| RecordedSeat {
                    seat: taken.seat,
                    player: RecordedPlayer {
                        id: taken.player.id,
                        name: taken.player.name.clone(),
                        kind: taken.player.kind,
                    },
                    entropy: taken.entropy.as_str().to_owned(),
                    status: taken.status,
                    left: taken.left_at_version.map(left),
                })
                .collect(),
            commitment: hex::encode(game.commitment()),
            server_seed: hex::encode(seed.0),
            game_seed: hex::encode(game.game_seed()),
            lot: random.lot(game.seat_count),
            shuffled: game.ruleset.shuffled(game.seat_count, &random).into_iter().map(str::to_owned).collect(),
            created_at: game.created_at,
            started_at: game.started_at?,
            finished_at: game.finished_at?,
            moves,
            outcome: game.outcome.clone()?,
            rated: game.rated,
            rating,
            digest: String::new(),
        };
        record.digest = record.compute_digest();
        Some(record)
    }

    /// Reads a record as it was exported.
    ///
    /// # Errors
    /// It is not JSON, or not a record: members are missing, unknown or of another type.
    pub fn read(json: &[u8]) -> Result<Record, RecordError> {
        Ok(serde_json::from_slice(json)?)
    }

    /// SHA-256 of the canonical JSON (RFC 8785) of the record without its digest, lowercase hex.
    pub fn compute_digest(&self) -> String {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        if let Some(members) = document.as_object_mut() {
            members.shift_remove("digest");
        }
        hex::encode(Sha256::digest(serde_json_canonicalizer::to_vec(&document).unwrap_or_default()))
    }

    /// Checks everything: digest, commitment, seeds, lot, shuffle, the legality of every move, times, outcome, and that the
    /// ratings after the game follow from those before it, to the last digit.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn verify(&self) -> Result<(), RecordError> {
        if self.format != FORMAT {
            return Err(RecordError::Format(self.format.clone()));
        }
        if self.digest != self.compute_digest() {
            return Err(RecordError::Digest);
        }
        let meta = self.ruleset.meta();
        if self.rules_version != meta.rules_version {
            return Err(RecordError::RulesVersion(self.rules_version));
        }
        let players = u8::try_from(self.seats.len()).map_err(|_| RecordError::Seats)?;
        if !meta.seats.contains(&players) || (0..players).zip(&self.seats).any(|(seat, taken)| taken.seat != seat) {
            return Err(RecordError::Seats);
        }
        let options = self.ruleset.options(&self.options, players).map_err(|_| RecordError::Options)?;
        if options.to_json() != self.options {
            return Err(RecordError::Options);
        }
        let random = self.verify_chance(players)?;
        self.verify_times()?;
        self.verify_moves(&options, &random)?;
        self.verify_rating()
    }

    fn verify_chance(&self, players: u8) -> Result<Random, RecordError> {
        let seed: [u8; 32] = hex::decode(&self.server_seed)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .filter(|seed| hex::encode(seed) == self.server_seed)
            .ok_or(RecordError::Seed)?;
        if hex::encode(commitment(&seed)) != self.commitment {
            return Err(RecordError::Commitment);
        }
        let entropies = self.seats.iter().map(|taken| taken.entropy.as_str());
        let id = self.game_id.hyphenated().to_string();
        let seed = game_seed(&seed, &id, self.ruleset.meta().slug, entropies);
        if hex::encode(seed) != self.game_seed {
            return Err(RecordError::GameSeed);
        }
        let random = Random::new(seed);
        if random.lot(players) != self.lot {
            return Err(RecordError::Lot);
        }
        if self.ruleset.shuffled(players, &random) != self.shuffled {
            return Err(RecordError::Shuffled);
        }
        Ok(random)
    }

    fn verify_times(&self) -> Result<(), RecordError> {
        let moves = self.moves.iter().map(|played| played.at);
        let times = [self.created_at, self.started_at].into_iter().chain(moves).chain([self.finished_at]);
        if times.is_sorted() { Ok(()) } else { Err(RecordError::Times) }
    }

    fn verify_moves(&self, options: &AnyOptions, random: &Random) -> Result<(), RecordError> {
        let mut state = options.deal(self.seats.len() as u8, random);
        for (number, played) in (1..).zip(&self.moves) {
            let refused = |problem: String| RecordError::Move { number, problem };
            if played.number != number {
                return Err(refused(format!("it is numbered {}", played.number)));
            }
            let json = played.r#move.to_string();
            let mv = self.ruleset.read_move(json.as_bytes()).map_err(|error| refused(error.to_string()))?;
            state.apply(played.seat, &mv, random).map_err(|error| refused(error.to_string()))?;
        }
        let leavers = self.verify_leavers()?;
        let goes_on = goes_on(self.seats.len() as u8, self.seats.len() - leavers.len());
        let reason = match (state.end(), leavers.last()) {
            (Some(reason), None) => reason,
            (Some(reason), Some(_)) if goes_on => reason,
            (None, Some(last)) if !goes_on => match last.status {
                SeatStatus::TimedOut => EndReason::Timeout,
                SeatStatus::Resigned | SeatStatus::Playing => EndReason::Resignation,
            },
            _ => return Err(RecordError::Outcome),
        };
        let leavers: Vec<Seat> = leavers.iter().map(|leaver| leaver.seat).collect();
        let outcome = Outcome { reason, ranking: with_leavers_last(&state.ranking(), &leavers) };
        if outcome == self.outcome { Ok(()) } else { Err(RecordError::Outcome) }
    }

    fn verify_rating(&self) -> Result<(), RecordError> {
        let Some(rating) = &self.rating else {
            return if self.rated { Err(RecordError::Rating) } else { Ok(()) };
        };
        let in_order = self.seats.iter().map(|taken| taken.seat).eq(rating.seats.iter().map(|rated| rated.seat));
        let of_pool = self.seats.iter().all(|taken| taken.player.kind == rating.pool);
        let before: Vec<Rating> = rating.seats.iter().map(|rated| rated.before).collect();
        let after = rating.seats.iter().map(|rated| rated.after);
        let follows = rate(&before, &self.outcome.ranking).is_some_and(|computed| after.eq(computed));
        if self.rated && in_order && of_pool && follows { Ok(()) } else { Err(RecordError::Rating) }
    }

    /// Those who left, in the order of leaving.
    fn verify_leavers(&self) -> Result<Vec<&RecordedSeat>, RecordError> {
        let mut leavers: Vec<&RecordedSeat> = self.seats.iter().filter(|taken| taken.left.is_some()).collect();
        leavers.sort_by_key(|taken| taken.left);
        let in_order = (1..).zip(&leavers).all(|(place, taken)| taken.left == Some(place));
        let fits = |taken: &RecordedSeat| taken.left.is_none() == (taken.status == SeatStatus::Playing);
        if in_order && self.seats.iter().all(fits) { Ok(leavers) } else { Err(RecordError::Seats) }
    }
}
