//! A game's past and its fairness on the wire.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::game::Game;
use crate::rulesets::registry::AnyView;
use crate::rulesets::{Outcome, Seat};

/// The table as it was after so many moves.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = PastState)]
pub struct PastStateOut {
    pub game_id: Uuid,
    /// After so many moves; 0 is the deal.
    pub number: u32,
    /// As whom it is seen: `me`, `spectator`, `all`, or a seat's number.
    #[schema(example = "all")]
    pub perspective: String,
    /// The seat that was to move then; null if the game was over.
    #[schema(required)]
    pub to_move: Option<Seat>,
    pub state: AnyView,
    /// Null unless the game was over then.
    #[schema(required)]
    pub outcome: Option<Outcome>,
}

/// What anyone needs to check that a game's chance was fair.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Fairness)]
pub struct FairnessOut {
    /// SHA-256 of `server_seed`, published when the game was created; lowercase hex like all that follows.
    #[schema(example = "ecbada6c56205a4f26e9e3066821a5520ab901a932b0db531ed9ce4e5fb274af")]
    pub commitment: String,
    /// Null until a game that was played is over.
    #[schema(required)]
    pub server_seed: Option<String>,
    /// HMAC-SHA256 under the server's seed over game, ruleset and entropies; null until a game that was played is over.
    #[schema(required)]
    pub game_seed: Option<String>,
    /// The players' shares in the game's chance, by taken seat.
    pub entropies: Vec<String>,
    /// The seat that was drawn to start, in `leopard` the first dealer; null before the start.
    #[schema(required)]
    pub lot: Option<Seat>,
}

impl From<&Game> for FairnessOut {
    fn from(game: &Game) -> Self {
        let seed = game.revealed_seed();
        Self {
            commitment: hex::encode(game.commitment()),
            server_seed: seed.map(|seed| hex::encode(seed.0)),
            game_seed: seed.map(|_| hex::encode(game.game_seed())),
            entropies: game.seats.iter().map(|taken| taken.entropy.as_str().to_owned()).collect(),
            // Everybody at the table sees who starts.
            lot: game.started_at.map(|_| game.random().lot(game.seat_count)),
        }
    }
}
