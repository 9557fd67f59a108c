//! Games on the wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::PlayerOut;
use crate::game::{Clock, Entry, Game, Invitation, SeatStatus, SeatedPlayer, Spectators, Status, Summary, Visibility};
use crate::rulesets::registry::{AnyEvent, AnyMove, AnyMoveView, AnyOptions, AnyView, RulesetId};
use crate::rulesets::{Outcome, Seat, Viewer};

/// A new game.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewGame)]
pub struct GameIn {
    pub ruleset: RulesetId,
    /// Options of the ruleset; those left out have their defaults.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({}))]
    pub options: Map<String, Value>,
    /// How many seats; left out: two, or the fewest that the ruleset allows if that is more.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, minimum = 1, maximum = 4, example = 2)]
    pub seats: Option<u8>,
    /// `private`: only its players, whoever you invite, and whoever has the `invite` code may know of it.
    #[serde(default)]
    pub visibility: Visibility,
    /// When those without a seat see the table.
    #[serde(default)]
    pub spectators: Spectators,
    /// How long players may take; null, or left out: as long as they like.
    #[serde(default)]
    pub clock: Option<Clock>,
    /// Whether it counts for the ratings of its players: a public game of two or more, all of them humans or all of them bots.
    #[serde(default)]
    pub rated: bool,
    /// Your share in the game's chance: up to 64 characters, public.
    #[serde(default)]
    #[schema(max_length = 64, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$", example = "my own 7 words")]
    pub entropy: String,
}

/// Taking a seat.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSeat)]
pub struct SeatIn {
    /// Which seat; left out: the lowest free one.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, minimum = 0, maximum = 3, example = 1)]
    pub seat: Option<Seat>,
    /// Your share in the game's chance: up to 64 characters, public.
    #[serde(default)]
    #[schema(max_length = 64, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$", example = "sesame")]
    pub entropy: String,
    /// The code of a private game to which you are not invited by name.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, max_length = 64)]
    pub invite: Option<String>,
}

/// Inviting a player.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewInvitation)]
pub struct InvitationIn {
    /// The player's id.
    pub player: Uuid,
    /// Which seat is kept for them; left out: the highest free one.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, minimum = 0, maximum = 3, example = 1)]
    pub seat: Option<Seat>,
    /// For how long, in seconds: a minute to 30 days; left out: a week.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, minimum = 60, maximum = 2592000, example = 604800)]
    pub expires_in: Option<u32>,
}

/// Wishing for a rematch.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRematch)]
pub struct RematchIn {
    /// Your share in the game's chance: up to 64 characters, public.
    #[serde(default)]
    #[schema(max_length = 64, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$", example = "once more")]
    pub entropy: String,
}

/// A taken seat.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Seat)]
pub struct SeatOut {
    /// 0-based, clockwise.
    pub seat: Seat,
    pub player: PlayerOut,
    /// The player's share in the game's chance.
    pub entropy: String,
    pub status: SeatStatus,
    /// Whether the player asks to call the game off.
    pub wants_abort: bool,
    /// What the player's bank held at the beginning of the present turn, in milliseconds; null unless the clock is a bank.
    #[schema(required)]
    pub remaining_ms: Option<i64>,
}

impl SeatOut {
    fn new(taken: SeatedPlayer, banks: Option<&[i64]>) -> Self {
        let SeatedPlayer { seat, player, entropy, status, wants_abort, .. } = taken;
        let remaining_ms = banks.and_then(|banks| banks.get(usize::from(seat)).copied());
        let entropy = entropy.as_str().to_owned();
        Self { seat, player: player.into(), entropy, status, wants_abort, remaining_ms }
    }
}

/// A seat that is kept for a player.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub struct InvitationOut {
    pub seat: Seat,
    pub player: PlayerOut,
    #[serde(with = "time::serde::rfc3339")]
    pub expires_at: OffsetDateTime,
}

impl From<Invitation> for InvitationOut {
    fn from(kept: Invitation) -> Self {
        Self { seat: kept.seat, player: kept.player.into(), expires_at: kept.expires_at }
    }
}

/// Whose turn it is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ToMove)]
pub struct ToMoveOut {
    pub seat: Seat,
    /// Since when.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub since: Option<OffsetDateTime>,
    /// Until when the player must have moved; null without a clock, and where a bot plays for one who has left.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub deadline: Option<OffsetDateTime>,
}

/// As whom you see a game.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Viewer)]
pub struct ViewerOut {
    /// Your seat; null for a spectator.
    #[schema(required)]
    pub seat: Option<Seat>,
}

/// A game in a list: everything public but the table.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = GameSummary)]
pub struct GameSummaryOut {
    pub id: Uuid,
    pub ruleset: RulesetId,
    /// The version of the rules under which it is played.
    pub rules_version: u32,
    /// In force; before the start as they would be with all seats taken.
    #[schema(value_type = AnyOptions)]
    pub options: Map<String, Value>,
    pub status: Status,
    /// Grows by one with every change; also the ETag.
    pub version: u32,
    pub visibility: Visibility,
    pub spectators: Spectators,
    /// Null: players may take as long as they like.
    #[schema(required)]
    pub clock: Option<Clock>,
    /// Whether it counts for the ratings of its players.
    pub rated: bool,
    /// How many can sit; once started, how many play.
    pub seat_count: u8,
    /// The taken seats, in order.
    pub seats: Vec<SeatOut>,
    /// The seats that are kept for somebody, in order.
    pub invitations: Vec<InvitationOut>,
    /// The player who may start the game early.
    pub creator_id: Uuid,
    /// Null unless the game is active.
    #[schema(required)]
    pub to_move: Option<ToMoveOut>,
    pub moves_count: u32,
    /// Null until a move is played.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub last_move_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub started_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub finished_at: Option<OffsetDateTime>,
    /// Null until the game is over.
    #[schema(required)]
    pub outcome: Option<Outcome>,
    /// The game that follows this one, if there is one.
    #[schema(required)]
    pub rematch_id: Option<Uuid>,
}

/// A game as its viewer may see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Game)]
pub struct GameOut {
    pub id: Uuid,
    pub ruleset: RulesetId,
    /// The version of the rules under which it is played.
    pub rules_version: u32,
    /// In force; before the start as they would be with all seats taken.
    #[schema(value_type = AnyOptions)]
    pub options: Map<String, Value>,
    pub status: Status,
    /// Grows by one with every change; also the ETag.
    pub version: u32,
    pub visibility: Visibility,
    pub spectators: Spectators,
    /// Null: players may take as long as they like.
    #[schema(required)]
    pub clock: Option<Clock>,
    /// Whether it counts for the ratings of its players.
    pub rated: bool,
    /// How many can sit; once started, how many play.
    pub seat_count: u8,
    /// The taken seats, in order.
    pub seats: Vec<SeatOut>,
    /// The seats that are kept for somebody, in order.
    pub invitations: Vec<InvitationOut>,
    /// The player who may start the game early.
    pub creator_id: Uuid,
    /// Null unless the game is active.
    #[schema(required)]
    pub to_move: Option<ToMoveOut>,
    pub viewer: ViewerOut,
    /// The code that lets its holder know of a private game and take a seat; null to everybody but the creator.
    #[schema(required, example = "5f0c6f4b7a1f4f0e9d3d5f9b")]
    pub invite: Option<String>,
    /// SHA-256 of `server_seed` (lowercase hex), published before anything is dealt.
    #[schema(example = "ecbada6c56205a4f26e9e3066821a5520ab901a932b0db531ed9ce4e5fb274af")]
    pub commitment: String,
    /// Null until a game that was played is over; lowercase hex.
    #[schema(required)]
    pub server_seed: Option<String>,
    pub moves_count: u32,
    /// Null until a move is played.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub last_move_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub started_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    pub finished_at: Option<OffsetDateTime>,
    /// Null until the game is over.
    #[schema(required)]
    pub outcome: Option<Outcome>,
    /// The game that follows this one, if there is one.
    #[schema(required)]
    pub rematch_id: Option<Uuid>,
    /// The table; null before the start, and for spectators of an `after_end` game until it is over.
    #[schema(required)]
    pub state: Option<AnyView>,
}

impl From<Summary> for GameSummaryOut {
    fn from(game: Summary) -> Self {
        // What is not known to the rules any more is shown as it was given.
        let to_move = game.to_move.map(|seat| {
            let (since, deadline) = (game.to_move_since, game.deadline());
            ToMoveOut { seat, since, deadline }
        });
        let options = game.ruleset.options(&game.options, game.seat_count).map_or(game.options, |o| o.to_json());
        let banks = game.remaining_ms.as_deref();
        Self {
            id: game.id,
            ruleset: game.ruleset,
            rules_version: game.rules_version,
            options,
            status: game.status,
            version: game.version,
            visibility: game.visibility,
            spectators: game.spectators,
            clock: game.clock,
            rated: game.rated,
            seat_count: game.seat_count,
            seats: game.seats.into_iter().map(|taken| SeatOut::new(taken, banks)).collect(),
            invitations: game.invitations.into_iter().map(InvitationOut::from).collect(),
            creator_id: game.creator,
            to_move,
            moves_count: game.moves_count,
            last_move_at: game.last_move_at,
            created_at: game.created_at,
            started_at: game.started_at,
            finished_at: game.finished_at,
            outcome: game.outcome,
            rematch_id: game.rematch,
        }
    }
}

impl GameOut {
    /// The game as this player, or somebody without an account, may see it.
    pub fn new(game: &Game, player: Option<Uuid>) -> Self {
        let viewer = game.viewer(player);
        let summary = GameSummaryOut::from(game.summary.clone());
        let invite = game.invite.as_ref().filter(|_| player == Some(game.creator));
        Self {
            id: summary.id,
            ruleset: summary.ruleset,
            rules_version: summary.rules_version,
            options: summary.options,
            status: summary.status,
            version: summary.version,
            visibility: summary.visibility,
            spectators: summary.spectators,
            clock: summary.clock,
            rated: summary.rated,
            seat_count: summary.seat_count,
            seats: summary.seats,
            invitations: summary.invitations,
            creator_id: summary.creator_id,
            to_move: summary.to_move,
            viewer: ViewerOut { seat: player.and_then(|id| game.seat_of(id)) },
            invite: invite.map(|invite| invite.0.clone()),
            commitment: hex::encode(game.commitment()),
            server_seed: game.revealed_seed().map(|seed| hex::encode(seed.0)),
            moves_count: summary.moves_count,
            last_move_at: summary.last_move_at,
            created_at: summary.created_at,
            started_at: summary.started_at,
            finished_at: summary.finished_at,
            outcome: summary.outcome,
            rematch_id: summary.rematch_id,
            state: viewer.and_then(|viewer| Some(game.state.as_ref()?.view(viewer))),
        }
    }
}

/// A game in a list of ids.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = GameId)]
pub struct GameIdOut {
    pub id: Uuid,
}

/// A page of ids of games.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = GameIdPage)]
pub struct GameIdPageOut {
    pub items: Vec<GameIdOut>,
    /// As in a page of games.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// A page of games, or with `fields=id` of their ids.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it is there for the document; handlers answer with one or the other")]
pub enum AnyGamePage {
    Games(GamePageOut),
    Ids(GameIdPageOut),
}

/// A page of games, in the order that was asked for.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = GamePage)]
pub struct GamePageOut {
    pub items: Vec<GameSummaryOut>,
    /// Send it as `cursor`, with the same filters, for the next page; null on the last.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// The legal moves of the asking player.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = LegalMoves)]
pub struct LegalMovesOut {
    /// Your seat.
    pub seat: Seat,
    /// The seat to move; null unless the game is active.
    #[schema(required)]
    pub to_move: Option<Seat>,
    /// The game's version to which the moves belong; send it as `If-Match`.
    pub version: u32,
    /// Each ready to be sent as it is; sorted, none twice; empty when it is not your turn.
    pub moves: Vec<AnyMove>,
}

/// A played move with what it did, as its viewer may see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = LogEntry)]
pub struct MoveOut {
    /// From 1.
    pub number: u32,
    /// The game's version once it was played.
    pub version: u32,
    pub seat: Seat,
    pub r#move: AnyMoveView,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// What it did, in order.
    pub events: Vec<AnyEvent>,
}

impl MoveOut {
    /// The entry as this viewer may see it.
    pub fn new(entry: &Entry, viewer: Viewer) -> Self {
        Self {
            number: entry.number,
            version: entry.version,
            seat: entry.seat,
            r#move: entry.move_view(viewer),
            at: entry.at,
            events: entry.event_views(viewer),
        }
    }
}

/// The answer to a move.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MoveAnswer)]
pub struct MoveAnswerOut {
    pub r#move: MoveOut,
    /// The game after it.
    pub game: GameOut,
}

/// A page of the log, in order of number.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MovePage)]
pub struct MovePageOut {
    pub items: Vec<MoveOut>,
    /// Send it as `after` for what follows; null on the last page.
    #[schema(required)]
    pub next_after: Option<u32>,
}
