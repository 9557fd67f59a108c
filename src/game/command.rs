//! Commands: what players ask of a game, and what becomes of it.

use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    Change, Clock, Entropy, Entry, EventKind, Game, GameError, Happening, Invitation, Invite, Player, SeatedPlayer,
    ServerSeed, Spectators, Status, Summary, Visibility,
};
use crate::rulesets::Seat;
use crate::rulesets::registry::{AnyMove, RulesetId};

/// What somebody asks of a game.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// Take a seat: the one that is kept for them, the lowest free one, or the one that is named. The game starts when all
    /// are taken. A private game wants its invite code, or an invitation.
    TakeSeat { seat: Option<Seat>, entropy: Entropy, invite: Option<&'a str> },
    /// Leave before the start.
    LeaveSeat,
    /// Start with the seats that are taken.
    Start,
    /// Keep a seat for somebody, the highest free one unless it is named.
    Invite { player: Player, seat: Option<Seat>, expires_at: OffsetDateTime },
    /// Do without the seat that is kept for one.
    Decline,
    /// Keep the seat for this player no longer.
    Uninvite { player: Uuid },
    /// Give a private game another invite code, or none any more.
    ChangeInvite { invite: Option<Invite> },
    /// Play a move, given as JSON.
    Play { body: &'a [u8] },
    /// Give up.
    Resign,
    /// Call the game off: its creator before the start, all who play after it.
    Abort,
    /// Not to want to call it off any more.
    WithdrawAbort,
}

/// What a new game is to be.
#[derive(Clone, Debug)]
pub struct NewGame {
    pub id: Uuid,
    pub ruleset: RulesetId,
    pub options: Map<String, Value>,
    /// None: two, or the fewest that the ruleset allows.
    pub seats: Option<u8>,
    pub visibility: Visibility,
    pub spectators: Spectators,
    pub clock: Option<Clock>,
    pub rated: bool,
    pub entropy: Entropy,
    pub server_seed: ServerSeed,
    /// For a private game.
    pub invite: Invite,
    pub created_at: OffsetDateTime,
}

impl Game {
    /// A new game; its creator takes the lowest seat, and if that is the only one it starts at once.
    ///
    /// # Errors
    /// The number of seats, the options or the clock are not allowed.
    pub fn create(new: NewGame, creator: Player) -> Result<(Game, Change), GameError> {
        Self::create_with(new, creator, 0, Vec::new())
    }

    /// A new game in which the creator has this seat and others are kept for somebody.
    ///
    /// # Errors
    /// As [`Game::create`].
    fn create_with(
        new: NewGame,
        creator: Player,
        seat: Seat,
        invitations: Vec<Invitation>,
    ) -> Result<(Game, Change), GameError> {
        let meta = new.ruleset.meta();
        let seat_count = new.seats.unwrap_or_else(|| 2.max(*meta.seats.start()));
        if !meta.seats.contains(&seat_count) {
            return Err(GameError::SeatCount { allowed: meta.seats.clone() });
        }
        if let Some(clock) = new.clock {
            clock.check()?;
        }
        if new.rated && (new.visibility == Visibility::Private || seat_count < 2) {
            // Everybody may see how a rating came about.
            return Err(GameError::NotRatable);
        }
        // Refused now rather than at the start, when it would be too late to mend.
        new.ruleset.options(&new.options, seat_count)?;
        let mut change = Change::new(None, new.created_at);
        change.tell(Happening::of_player(EventKind::GameCreated, seat, creator.id));
        for invitation in &invitations {
            change.tell(Happening::of_player(EventKind::PlayerInvited, invitation.seat, invitation.player.id));
        }
        let summary = Summary {
            id: new.id,
            ruleset: new.ruleset,
            rules_version: meta.rules_version,
            options: new.options,
            seat_count,
            status: Status::Open,
            visibility: new.visibility,
            spectators: new.spectators,
            clock: new.clock,
            rated: new.rated,
            version: 0,
            creator: creator.id,
            seats: vec![SeatedPlayer::new(seat, creator, new.entropy)],
            invitations,
            moves_count: 0,
            last_move_at: None,
            to_move: None,
            to_move_since: None,
            due_at: None,
            remaining_ms: None,
            created_at: new.created_at,
            started_at: None,
            finished_at: None,
            outcome: None,
            rematch: None,
        };
        let invite = (new.visibility == Visibility::Private).then_some(new.invite);
        let mut game = Game { summary, invite, server_seed: new.server_seed, state: None };
        if seat_count == 1 {
            game.deal(&mut change)?;
        }
        Ok((game, change))
    }

    /// The game that follows this one: the same, each player a seat further; the seats of the others are kept for them until
    /// `expires_at`. Of `new` the id, the seed, the invite code, the entropy and the time are taken. The old game's version
    /// grows by one.
    ///
    /// # Errors
    /// The player had no seat in it; it has not been played, or is not over; there is one already.
    pub fn create_rematch(
        &mut self,
        new: NewGame,
        player: &Player,
        expires_at: OffsetDateTime,
    ) -> Result<(Game, Change, Change), GameError> {
        self.seat_of(player.id).ok_or(GameError::NotSeated)?;
        if !self.is_over() || self.started_at.is_none() {
            return Err(GameError::NotOver(self.status));
        }
        let seat_count = self.seat_count;
        let rotated = |seat: Seat| (seat + 1) % seat_count;
        let mut invitations = Vec::new();
        let mut own = 0;
        for taken in &self.seats {
            let seat = rotated(taken.seat);
            if taken.player.id == player.id {
                own = seat;
            } else {
                invitations.push(Invitation { seat, player: taken.player.clone(), expires_at });
            }
        }
        invitations.sort_by_key(|invitation| invitation.seat);
        let new = NewGame {
            ruleset: self.ruleset,
            options: self.options.clone(),
            seats: Some(seat_count),
            visibility: self.visibility,
            spectators: self.spectators,
            clock: self.clock,
            rated: self.rated,
            ..new
        };
        let (next, change) = Self::create_with(new, player.clone(), own, invitations)?;
        self.rematch = Some(next.id);
        self.version += 1;
        let mut of_old = Change::new(self.to_move, change.at);
        of_old.tell(Happening::of_game(EventKind::RematchCreated));
        Ok((next, change, of_old))
    }

    /// Carries out a command of a player at `now`; the version grows by one, unless there was nothing to change.
    ///
    /// # Errors
    /// The command is not theirs to give, or not now, or not allowed by the rules. The game is then unchanged.
    pub fn handle(&mut self, command: Command<'_>, actor: &Player, now: OffsetDateTime) -> Result<Change, GameError> {
        let mut change = Change::new(self.to_move, now);
        match command {
            Command::TakeSeat { seat, entropy, invite } => {
                self.take_seat(actor, seat, entropy, invite, now, &mut change)?;
            }
            Command::LeaveSeat => self.leave_seat(actor, &mut change)?,
            Command::Start => self.start(actor, &mut change)?,
            Command::Invite { player, seat, expires_at } => {
                self.invite(actor, player, seat, expires_at, now, &mut change)?;
            }
            Command::Decline => self.decline(actor, &mut change)?,
            Command::Uninvite { player } => self.uninvite(actor, player, &mut change)?,
            Command::ChangeInvite { invite } => self.change_invite(actor, invite, &mut change)?,
            Command::Play { body } => self.play(actor, body, &mut change)?,
            Command::Resign => self.resign(actor, &mut change)?,
            Command::Abort => self.abort(actor, &mut change)?,
            Command::WithdrawAbort => self.withdraw_abort(actor, &mut change)?,
        }
        if !change.is_empty() {
            self.version += 1;
        }
        Ok(change)
    }

    fn require_status(&self, status: Status) -> Result<(), GameError> {
        match status {
            _ if self.status == status => Ok(()),
            Status::Open => Err(GameError::NotOpen(self.status)),
            _ => Err(GameError::NotActive(self.status)),
        }
    }

    fn require_creator(&self, actor: &Player) -> Result<(), GameError> {
        if self.creator == actor.id { Ok(()) } else { Err(GameError::NotCreator) }
    }

    /// In a rated game all are humans or all are bots.
    fn require_pool(&self, player: &Player) -> Result<(), GameError> {
        let fits = self.seats.iter().all(|taken| taken.player.kind == player.kind);
        if fits || !self.rated { Ok(()) } else { Err(GameError::WrongPool) }
    }

    /// The seat of a player who still plays.
    pub(super) fn require_playing(&self, actor: &Player) -> Result<Seat, GameError> {
        let seat = self.seat_of(actor.id).ok_or(GameError::NotSeated)?;
        self.require_status(Status::Active)?;
        if self.is_playing(seat) { Ok(seat) } else { Err(GameError::HasLeft) }
    }

    /// A seat that nobody has and that is kept for nobody else: the one that is wanted, or of the free ones the one that
    /// `choose` takes.
    fn free_seat(
        &self,
        wanted: Option<Seat>,
        but_for: Uuid,
        now: OffsetDateTime,
        choose: impl Fn(&mut dyn DoubleEndedIterator<Item = Seat>) -> Option<Seat>,
    ) -> Result<Seat, GameError> {
        let kept = |seat: Seat| {
            let mut kept = self.invitations.iter().filter(|kept| kept.seat == seat && kept.expires_at > now);
            kept.any(|kept| kept.player.id != but_for)
        };
        let taken = |seat: Seat| self.seats.iter().any(|other| other.seat == seat) || kept(seat);
        match wanted {
            Some(seat) if seat >= self.seat_count => Err(GameError::NoSuchSeat { seats: self.seat_count }),
            Some(seat) if taken(seat) => Err(GameError::SeatTaken),
            Some(seat) => Ok(seat),
            None => choose(&mut (0..self.seat_count).filter(|seat| !taken(*seat))).ok_or(GameError::SeatTaken),
        }
    }

    fn take_seat(
        &mut self,
        actor: &Player,
        wanted: Option<Seat>,
        entropy: Entropy,
        invite: Option<&str>,
        now: OffsetDateTime,
        change: &mut Change,
    ) -> Result<(), GameError> {
        if self.seat_of(actor.id).is_some() {
            return Err(GameError::AlreadySeated);
        }
        self.require_status(Status::Open)?;
        self.require_pool(actor)?;
        let own = self.invitations.iter().find(|kept| kept.player.id == actor.id && kept.expires_at > now);
        if self.visibility == Visibility::Private && own.is_none() && !self.opens_with(invite) {
            return Err(GameError::NotInvited);
        }
        let wanted = wanted.or(own.map(|kept| kept.seat));
        let seat = self.free_seat(wanted, actor.id, now, |free| free.next())?;
        self.clear_invitations(seat, actor.id, change);
        self.seats.push(SeatedPlayer::new(seat, actor.clone(), entropy));
        self.seats.sort_by_key(|taken| taken.seat);
        change.tell(Happening::of_player(EventKind::PlayerJoined, seat, actor.id));
        if self.seats.len() == usize::from(self.seat_count) {
            self.deal(change)?;
        }
        Ok(())
    }

    /// The creator who leaves hands the game over to the lowest seat; the last to leave closes it.
    fn leave_seat(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        let seat = self.seat_of(actor.id).ok_or(GameError::NotSeated)?;
        self.require_status(Status::Open)?;
        self.seats.retain(|taken| taken.seat != seat);
        change.tell(Happening::of_player(EventKind::PlayerLeft, seat, actor.id));
        match self.seats.first().map(|lowest| lowest.player.id) {
            Some(lowest) if self.creator == actor.id => self.creator = lowest,
            Some(_) => {}
            None => self.call_off(change),
        }
        Ok(())
    }

    /// The taken seats are numbered anew from 0, in their order (fairness 3).
    fn start(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        self.require_creator(actor)?;
        self.require_status(Status::Open)?;
        let fewest = (*self.ruleset.meta().seats.start()).max(if self.rated { 2 } else { 1 });
        let players = self.seats.len() as u8;
        if players < fewest {
            return Err(GameError::TooFewPlayers { fewest });
        }
        self.ruleset.options(&self.options, players)?;
        self.drop_invitations(change);
        self.seat_count = players;
        (0..).zip(&mut self.seats).for_each(|(seat, taken)| taken.seat = seat);
        self.deal(change)
    }

    fn invite(
        &mut self,
        actor: &Player,
        player: Player,
        wanted: Option<Seat>,
        expires_at: OffsetDateTime,
        now: OffsetDateTime,
        change: &mut Change,
    ) -> Result<(), GameError> {
        self.require_creator(actor)?;
        self.require_status(Status::Open)?;
        if self.seat_of(player.id).is_some() {
            return Err(GameError::PlayerSeated);
        }
        self.require_pool(&player)?;
        // From above, so that who comes by themselves finds the low seats.
        let seat = self.free_seat(wanted, player.id, now, |free| free.next_back())?;
        self.clear_invitations(seat, player.id, change);
        change.tell(Happening::of_player(EventKind::PlayerInvited, seat, player.id));
        self.invitations.push(Invitation { seat, player, expires_at });
        self.invitations.sort_by_key(|kept| kept.seat);
        Ok(())
    }

    fn decline(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        let seat = self.invitation_of(actor.id).ok_or(GameError::NotInvited)?;
        self.invitations.retain(|kept| kept.seat != seat);
        change.tell(Happening::of_player(EventKind::InvitationDeclined, seat, actor.id));
        Ok(())
    }

    fn uninvite(&mut self, actor: &Player, player: Uuid, change: &mut Change) -> Result<(), GameError> {
        self.require_creator(actor)?;
        let seat = self.invitation_of(player).ok_or(GameError::NotInvited)?;
        self.invitations.retain(|kept| kept.seat != seat);
        change.tell(Happening::of_player(EventKind::InvitationWithdrawn, seat, player));
        Ok(())
    }

    /// The seat that is kept for a player.
    pub fn invitation_of(&self, player: Uuid) -> Option<Seat> {
        self.invitations.iter().find(|kept| kept.player.id == player).map(|kept| kept.seat)
    }

    /// Makes room for a player: what was kept for them they have, or do without; what was kept in that seat for another, too
    /// long, is over, whether a server has come by or not.
    fn clear_invitations(&mut self, seat: Seat, player: Uuid, change: &mut Change) {
        let kept = std::mem::take(&mut self.invitations);
        let (gone, kept) = kept.into_iter().partition(|kept| kept.player.id == player || kept.seat == seat);
        self.invitations = kept;
        for other in Vec::<Invitation>::into_iter(gone).filter(|other| other.player.id != player) {
            change.tell(Happening::of_player(EventKind::InvitationExpired, other.seat, other.player.id));
        }
    }

    fn drop_invitations(&mut self, change: &mut Change) {
        for kept in std::mem::take(&mut self.invitations) {
            change.tell(Happening::of_player(EventKind::InvitationWithdrawn, kept.seat, kept.player.id));
        }
    }

    /// Drops the invitations whose time is over; none if there are none.
    pub fn expire_invitations(&mut self, now: OffsetDateTime) -> Option<Change> {
        let mut change = Change::new(self.to_move, now);
        let kept = std::mem::take(&mut self.invitations);
        let (over, kept) = kept.into_iter().partition(|kept| kept.expires_at <= now);
        self.invitations = kept;
        for Invitation { seat, player, .. } in over {
            change.tell(Happening::of_player(EventKind::InvitationExpired, seat, player.id));
        }
        if change.happenings.is_empty() {
            return None;
        }
        self.version += 1;
        Some(change)
    }

    fn change_invite(&mut self, actor: &Player, invite: Option<Invite>, change: &mut Change) -> Result<(), GameError> {
        self.require_creator(actor)?;
        if self.visibility == Visibility::Public {
            return Err(GameError::NotPrivate);
        }
        self.invite = invite;
        change.tell(Happening::of_game(EventKind::InviteChanged));
        Ok(())
    }

    fn deal(&mut self, change: &mut Change) -> Result<(), GameError> {
        let options = self.options_in_force()?;
        let state = options.deal(self.seat_count, &self.random());
        self.options = options.to_json();
        self.status = Status::Active;
        self.to_move = state.to_act();
        self.state = Some(state);
        self.started_at = Some(change.at);
        self.remaining_ms = self.full_banks();
        change.tell(Happening::of_game(EventKind::GameStarted));
        self.begin_turn(None, change.at);
        self.finish_if_over(change);
        Ok(())
    }

    fn play(&mut self, actor: &Player, body: &[u8], change: &mut Change) -> Result<(), GameError> {
        let seat = self.seat_of(actor.id).ok_or(GameError::NotSeated)?;
        self.require_status(Status::Active)?;
        let mv = self.ruleset.read_move(body).map_err(GameError::MalformedMove)?;
        if !self.is_playing(seat) {
            return Err(GameError::HasLeft);
        }
        if self.to_move != Some(seat) {
            return Err(GameError::NotYourTurn { to_move: self.to_move });
        }
        self.play_move(seat, mv, change)
    }

    /// Plays a move of the seat that is to move.
    pub(super) fn play_move(&mut self, seat: Seat, mv: AnyMove, change: &mut Change) -> Result<(), GameError> {
        let random = self.random();
        let state = self.state.as_mut().ok_or(GameError::NotActive(self.summary.status))?;
        let events = state.apply(seat, &mv, &random)?;
        self.summary.to_move = state.to_act();
        self.moves_count += 1;
        self.last_move_at = Some(change.at);
        self.begin_turn(Some(seat), change.at);
        change.entry = Some(Entry {
            number: self.moves_count,
            version: self.version + 1,
            seat,
            mv,
            events,
            at: change.at,
            to_move: self.to_move,
            due_at: self.due_at,
            remaining_ms: self.remaining_ms.clone(),
        });
        self.finish_if_over(change);
        Ok(())
    }
}
