//! The end of a game: by its rules, by those who leave it, or because it is called off.

use time::OffsetDateTime;

use super::{Change, EventKind, Game, GameError, Happening, Player, SeatStatus, SeatedPlayer, Status, Visibility};
use crate::rulesets::registry::AnyState;
use crate::rulesets::{EndReason, Outcome, Ranked, Seat};

impl Game {
    pub(super) fn resign(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        let seat = self.require_playing(actor)?;
        self.leave(seat, SeatStatus::Resigned, change);
        Ok(())
    }

    /// What the server has to do of itself at `now`, to which the clocks have come: time out who is late, or play a move for who has left, of the legal ones
    /// that which `choice` (any number) picks. None if nothing is due.
    ///
    /// # Errors
    /// The rules refuse a move that they listed, which no ruleset does.
    pub fn attend(&mut self, now: OffsetDateTime, choice: u64) -> Result<Option<Change>, GameError> {
        let Some(seat) = self.to_move.filter(|_| self.due_at.is_some_and(|due| due <= now)) else { return Ok(None) };
        let mut change = Change::new(self.to_move, now);
        if self.is_playing(seat) {
            self.leave(seat, SeatStatus::TimedOut, &mut change);
        } else {
            let moves = self.state.as_ref().map(|state| state.legal_moves(seat)).unwrap_or_default();
            let count = (moves.len() as u64).max(1);
            let mv = moves.into_iter().nth((choice % count) as usize);
            self.play_move(seat, mv.ok_or(GameError::NotActive(self.status))?, &mut change)?;
        }
        self.version += 1;
        Ok(Some(change))
    }

    /// A player leaves a game that is being played. Of two the other wins; of more a bot plays on for them, as long as
    /// anybody is left.
    fn leave(&mut self, seat: Seat, how: SeatStatus, change: &mut Change) {
        let version = self.version + 1;
        let Some(taken) = self.seats.iter_mut().find(|taken| taken.seat == seat) else { return };
        taken.status = how;
        taken.left_at_version = Some(version);
        let player = taken.player.id;
        let (kind, reason) = match how {
            SeatStatus::TimedOut => (EventKind::PlayerTimedOut, EndReason::Timeout),
            SeatStatus::Resigned | SeatStatus::Playing => (EventKind::PlayerResigned, EndReason::Resignation),
        };
        change.tell(Happening::of_player(kind, seat, player));
        let playing = self.seats.iter().filter(|taken| taken.status == SeatStatus::Playing).count();
        if goes_on(self.seat_count, playing) {
            // A bot moves at once; who leaves while another is to move takes nothing of the other's time.
            if self.to_move == Some(seat) {
                self.begin_turn(None, change.at);
            }
            self.call_off_if_all_want(change);
        } else {
            self.finish(reason, change);
        }
    }

    pub(super) fn abort(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        if self.status == Status::Open {
            if self.creator != actor.id {
                return Err(if self.seat_of(actor.id).is_some() {
                    GameError::NotCreator
                } else {
                    GameError::NotSeated
                });
            }
            self.call_off(change);
            return Ok(());
        }
        let seat = self.require_playing(actor)?;
        if self.wants_abort(seat, true) {
            change.tell(Happening::of_player(EventKind::AbortRequested, seat, actor.id));
        }
        self.call_off_if_all_want(change);
        Ok(())
    }

    pub(super) fn withdraw_abort(&mut self, actor: &Player, change: &mut Change) -> Result<(), GameError> {
        let seat = self.require_playing(actor)?;
        if self.wants_abort(seat, false) {
            change.tell(Happening::of_player(EventKind::AbortWithdrawn, seat, actor.id));
        }
        Ok(())
    }

    /// Notes whether a seat wants to call the game off; answers whether that is new.
    fn wants_abort(&mut self, seat: Seat, wants: bool) -> bool {
        let taken = self.seats.iter_mut().find(|taken| taken.seat == seat);
        taken.is_some_and(|taken| std::mem::replace(&mut taken.wants_abort, wants) != wants)
    }

    fn call_off_if_all_want(&mut self, change: &mut Change) {
        let mut playing = self.seats.iter().filter(|taken| taken.status == SeatStatus::Playing);
        if playing.all(|taken| taken.wants_abort) {
            self.call_off(change);
        }
    }

    /// Nobody wins a game that is called off.
    pub(super) fn call_off(&mut self, change: &mut Change) {
        self.outcome = self.state.as_ref().map(|state| {
            let ranking = state.ranking().into_iter().map(|line| Ranked { won: false, ..line });
            Outcome { reason: EndReason::Aborted, ranking: ranking.collect() }
        });
        self.status = Status::Aborted;
        self.close(change.at);
        // Also for those who were to come.
        for kept in std::mem::take(&mut self.invitations) {
            change.tell(Happening::of_player(EventKind::InvitationWithdrawn, kept.seat, kept.player.id));
        }
        change.tell(Happening::of_game(EventKind::GameAborted));
    }

    pub(super) fn finish_if_over(&mut self, change: &mut Change) {
        if let Some(reason) = self.state.as_ref().and_then(AnyState::end) {
            self.finish(reason, change);
        }
    }

    fn finish(&mut self, reason: EndReason, change: &mut Change) {
        let ranking = self.state.as_ref().map(AnyState::ranking).unwrap_or_default();
        self.outcome = Some(Outcome { reason, ranking: with_leavers_last(&ranking, &leavers(&self.seats)) });
        self.status = Status::Finished;
        self.close(change.at);
        change.tell(Happening::of_game(EventKind::GameFinished));
    }

    fn close(&mut self, at: OffsetDateTime) {
        self.to_move = None;
        self.to_move_since = None;
        self.due_at = None;
        self.finished_at = Some(at);
    }

    /// Whether a code is that of the game; never if it has none.
    pub fn opens_with(&self, code: Option<&str>) -> bool {
        self.visibility == Visibility::Private
            && code.is_some_and(|code| self.invite.as_ref().is_some_and(|invite| invite.0 == code))
    }
}

/// Whether a game of so many goes on with so many who have not left.
pub(super) fn goes_on(seat_count: u8, playing: usize) -> bool {
    playing > 0 && seat_count > 2
}

/// The seats that were left, in the order of leaving.
fn leavers(seats: &[SeatedPlayer]) -> Vec<Seat> {
    let mut leavers: Vec<_> = seats.iter().filter_map(|taken| Some((taken.left_at_version?, taken.seat))).collect();
    leavers.sort_unstable();
    leavers.into_iter().map(|(_, seat)| seat).collect()
}

/// A ranking in which those who left, given in the order of leaving, are last, the first of them lowest; the others close
/// up. Nobody who left has won.
pub(super) fn with_leavers_last(ranking: &[Ranked], leavers: &[Seat]) -> Vec<Ranked> {
    let stayed: Vec<&Ranked> = ranking.iter().filter(|line| !leavers.contains(&line.seat)).collect();
    let mut result: Vec<Ranked> = stayed
        .iter()
        .map(|line| {
            let better = stayed.iter().filter(|other| other.rank < line.rank).count() as u8;
            Ranked { rank: better + 1, won: if leavers.is_empty() { line.won } else { better == 0 }, ..**line }
        })
        .collect();
    for seat in leavers.iter().rev() {
        let rank = result.len() as u8 + 1;
        result.extend(ranking.iter().filter(|line| line.seat == *seat).map(|line| Ranked {
            rank,
            won: false,
            ..*line
        }));
    }
    result
}
