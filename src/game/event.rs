//! What happens to a game, for everybody who may know of it: the events of its log besides the moves.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Entropy, Entry, Game, Invitation, Player, SeatStatus, SeatedPlayer, Status, Summary};
use crate::rulesets::{Outcome, Seat};

/// Makes the table of kinds, which SQL and HTTP know by the same words.
macro_rules! kinds {
    ($($(#[$about:meta])* $name:ident $word:literal,)+) => {
        /// What kind of event it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[schema(as = EventType)]
        pub enum EventKind { $($(#[$about])* $name,)+ }

        impl EventKind {
            /// All kinds.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name),+];

            /// The word in SQL and HTTP.
            pub fn as_str(self) -> &'static str {
                match self { $(EventKind::$name => $word),+ }
            }

            /// The kind of that name.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
            }
        }
    };
}

kinds! {
    /// Somebody made the game.
    GameCreated "game_created",
    /// Somebody took a seat.
    PlayerJoined "player_joined",
    /// Somebody left before the start.
    PlayerLeft "player_left",
    /// A seat is kept for somebody.
    PlayerInvited "player_invited",
    /// They do not want it.
    InvitationDeclined "invitation_declined",
    /// It is not kept any more.
    InvitationWithdrawn "invitation_withdrawn",
    /// They have not come in time.
    InvitationExpired "invitation_expired",
    /// The code for a private game is another, or there is none any more.
    InviteChanged "invite_changed",
    /// The cards are dealt.
    GameStarted "game_started",
    /// A move was played.
    MovePlayed "move_played",
    /// A player has given up.
    PlayerResigned "player_resigned",
    /// A player has overstepped the clock.
    PlayerTimedOut "player_timed_out",
    /// A player wants to call the game off.
    AbortRequested "abort_requested",
    /// They do not want to any more.
    AbortWithdrawn "abort_withdrawn",
    /// No server ran for a while: the deadline was put off.
    ClockCredited "clock_credited",
    /// The game is over and has an outcome.
    GameFinished "game_finished",
    /// The game was called off.
    GameAborted "game_aborted",
    /// There is a game that follows this one.
    RematchCreated "rematch_created",
    /// A webhook of yours was switched off since it failed for long.
    WebhookDisabled "webhook_disabled",
    /// Where things stand: the first event of a new stream.
    Snapshot "snapshot",
    /// Your place in the log is not known (any more): forget what you have, a snapshot follows.
    Resync "resync",
}

/// Something that a command did, besides playing a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happening {
    pub kind: EventKind,
    pub seat: Option<Seat>,
    /// Whom it concerns.
    pub player: Option<Uuid>,
}

impl Happening {
    /// Something about the game as a whole.
    pub fn of_game(kind: EventKind) -> Self {
        Self { kind, seat: None, player: None }
    }

    /// Something about one player.
    pub fn of_player(kind: EventKind, seat: Seat, player: Uuid) -> Self {
        Self { kind, seat: Some(seat), player: Some(player) }
    }
}

/// Something that a player is to be told wherever they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub player: Uuid,
    pub kind: NoticeKind,
    /// The player's seat, or the one that is kept for them.
    pub seat: Option<Seat>,
}

/// What a player is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    YourTurn,
    GameStarted,
    GameFinished,
    GameAborted,
    PlayerInvited,
}

impl NoticeKind {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::YourTurn => "your_turn",
            NoticeKind::GameStarted => "game_started",
            NoticeKind::GameFinished => "game_finished",
            NoticeKind::GameAborted => "game_aborted",
            NoticeKind::PlayerInvited => "player_invited",
        }
    }
}

/// What a command changed besides the game itself; the store writes it down.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub at: OffsetDateTime,
    /// The move that was played.
    pub entry: Option<Entry>,
    /// What else happened, in order.
    pub happenings: Vec<Happening>,
    /// Whose turn it was before.
    moved_on_from: Option<Seat>,
}

impl Change {
    pub(super) fn new(to_move: Option<Seat>, at: OffsetDateTime) -> Self {
        Self { at, entry: None, happenings: Vec::new(), moved_on_from: to_move }
    }

    pub(super) fn tell(&mut self, happening: Happening) {
        self.happenings.push(happening);
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.entry.is_none() && self.happenings.is_empty()
    }

    /// Whether something of this kind happened.
    pub fn has(&self, kind: EventKind) -> bool {
        self.happenings.iter().any(|happening| happening.kind == kind)
    }
}

impl Game {
    /// Whom to tell of a change. A turn is told of once, to whom it has come; not to a bot, nor to a player who goes on.
    pub fn notices(&self, change: &Change) -> Vec<Notice> {
        let mut notices = Vec::new();
        for happening in &change.happenings {
            let kind = match happening.kind {
                EventKind::GameStarted => NoticeKind::GameStarted,
                EventKind::GameFinished => NoticeKind::GameFinished,
                EventKind::GameAborted => NoticeKind::GameAborted,
                EventKind::PlayerInvited => {
                    let invited = happening.player.map(|player| (player, happening.seat));
                    let kind = NoticeKind::PlayerInvited;
                    notices.extend(invited.map(|(player, seat)| Notice { player, kind, seat }));
                    continue;
                }
                _ => continue,
            };
            notices.extend(self.seats.iter().map(|taken| {
                let seat = Some(taken.seat);
                Notice { player: taken.player.id, kind, seat }
            }));
        }
        if change.moved_on_from != self.to_move
            && let Some(player) = self.player_to_move()
        {
            notices.push(Notice { player: player.id, kind: NoticeKind::YourTurn, seat: self.to_move });
        }
        notices
    }
}

/// A game as it was at some version, all but the table and what is secret: what the log keeps of each change that is no
/// move. Players are named by their ids; their names are those of today.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    status: Status,
    options: Map<String, Value>,
    seat_count: u8,
    creator: Uuid,
    seats: Vec<SeatFact>,
    invitations: Vec<InvitationFact>,
    moves_count: u32,
    #[serde(default, with = "time::serde::rfc3339::option")]
    last_move_at: Option<OffsetDateTime>,
    to_move: Option<Seat>,
    #[serde(with = "time::serde::rfc3339::option")]
    to_move_since: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    due_at: Option<OffsetDateTime>,
    remaining_ms: Option<Vec<i64>>,
    #[serde(with = "time::serde::rfc3339::option")]
    started_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    finished_at: Option<OffsetDateTime>,
    outcome: Option<Outcome>,
    rematch: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SeatFact {
    seat: Seat,
    player: Uuid,
    entropy: String,
    status: SeatStatus,
    left_at_version: Option<u32>,
    wants_abort: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct InvitationFact {
    seat: Seat,
    player: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
}

impl Facts {
    /// How many moves had been played.
    pub fn moves_count(&self) -> u32 {
        self.moves_count
    }

    /// Everybody who sits or is invited.
    pub fn players(&self) -> impl Iterator<Item = Uuid> {
        let seated = self.seats.iter().map(|seat| seat.player);
        seated.chain(self.invitations.iter().map(|invitation| invitation.player))
    }
}

impl Summary {
    /// What the log keeps of it.
    pub fn facts(&self) -> Facts {
        Facts {
            status: self.status,
            options: self.options.clone(),
            seat_count: self.seat_count,
            creator: self.creator,
            seats: self.seats.iter().map(SeatFact::from).collect(),
            invitations: self
                .invitations
                .iter()
                .map(|Invitation { seat, player, expires_at }| {
                    let (seat, player, expires_at) = (*seat, player.id, *expires_at);
                    InvitationFact { seat, player, expires_at }
                })
                .collect(),
            moves_count: self.moves_count,
            last_move_at: self.last_move_at,
            to_move: self.to_move,
            to_move_since: self.to_move_since,
            due_at: self.due_at,
            remaining_ms: self.remaining_ms.clone(),
            started_at: self.started_at,
            finished_at: self.finished_at,
            outcome: self.outcome.clone(),
            rematch: self.rematch,
        }
    }

    /// The game as it was when these facts were written, at `version`. `player` knows who has which id.
    pub fn as_of_facts(&self, facts: Facts, version: u32, player: impl Fn(Uuid) -> Option<Player>) -> Summary {
        let seats = facts.seats.into_iter().filter_map(|fact| {
            Some(SeatedPlayer {
                seat: fact.seat,
                player: player(fact.player)?,
                // It was read once already, when it was given.
                entropy: Entropy::parse(fact.entropy).unwrap_or_default(),
                status: fact.status,
                left_at_version: fact.left_at_version,
                wants_abort: fact.wants_abort,
            })
        });
        let invitations = facts.invitations.into_iter().filter_map(|fact| {
            Some(Invitation { seat: fact.seat, player: player(fact.player)?, expires_at: fact.expires_at })
        });
        Summary {
            status: facts.status,
            version,
            options: facts.options,
            seat_count: facts.seat_count,
            creator: facts.creator,
            seats: seats.collect(),
            invitations: invitations.collect(),
            moves_count: facts.moves_count,
            last_move_at: facts.last_move_at,
            to_move: facts.to_move,
            to_move_since: facts.to_move_since,
            due_at: facts.due_at,
            remaining_ms: facts.remaining_ms,
            started_at: facts.started_at,
            finished_at: facts.finished_at,
            outcome: facts.outcome,
            rematch: facts.rematch,
            ..self.clone()
        }
    }
}

impl From<&SeatedPlayer> for SeatFact {
    fn from(taken: &SeatedPlayer) -> Self {
        Self {
            seat: taken.seat,
            player: taken.player.id,
            entropy: taken.entropy.as_str().to_owned(),
            status: taken.status,
            left_at_version: taken.left_at_version,
            wants_abort: taken.wants_abort,
        }
    }
}
