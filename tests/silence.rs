//! Whoever falls silent for ever, and whenever: every game on the clock comes to an end, and nobody who left it has won.

use serde_json::{Map, Value, json};
use tavola::game::{
    Change, Clock, Command, Entropy, Entry, EventKind, Game, Invite, NewGame, Player, PlayerKind, Record, SeatStatus,
    ServerSeed, Spectators, Status, Visibility,
};
use tavola::rulesets::random::{Random, Stream};
use tavola::rulesets::registry::RulesetId;
use tavola::rulesets::{EndReason, Seat};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// How long a move may take.
const BUDGET: Duration = Duration::seconds(60);

fn player(seat: Seat) -> Player {
    Player { id: Uuid::from_u128(u128::from(seat) + 1), name: format!("P{seat}"), kind: PlayerKind::Human }
}

/// Short games: silence can begin at every one of their moves.
fn options(ruleset: RulesetId) -> Map<String, Value> {
    let options = match ruleset.meta().slug {
        "leonardo" | "quintis-fontis" => json!({"turn_limit": 8}),
        "leopard" => json!({"hands": 1}),
        _ => json!({}),
    };
    options.as_object().cloned().unwrap_or_default()
}

/// A game with its log, and the time.
#[derive(Clone)]
struct Table {
    game: Game,
    log: Vec<Entry>,
    now: OffsetDateTime,
}

impl Table {
    fn begin(ruleset: RulesetId, seats: u8, seed: u8) -> Self {
        let now = OffsetDateTime::UNIX_EPOCH;
        let new = NewGame {
            id: Uuid::from_u128(0x0190_c0de_0000_7000_8000_0000_0000_0000),
            ruleset,
            options: options(ruleset),
            seats: Some(seats),
            visibility: Visibility::Public,
            spectators: Spectators::Live,
            clock: Some(Clock::PerMove { seconds: 60 }),
            rated: false,
            invite: Invite(String::new()),
            entropy: Entropy::default(),
            server_seed: ServerSeed([seed; 32]),
            created_at: now,
        };
        let (game, _) = Game::create(new, player(0)).unwrap();
        let mut table = Self { game, log: Vec::new(), now };
        for seat in 1..seats {
            table.give(Command::TakeSeat { seat: None, entropy: Entropy::default(), invite: None }, seat);
        }
        table
    }

    fn note(&mut self, change: Change) -> Change {
        self.log.extend(change.entry.clone());
        change
    }

    fn give(&mut self, command: Command<'_>, seat: Seat) -> Change {
        self.now += Duration::SECOND;
        let change = self.game.handle(command, &player(seat), self.now).unwrap();
        self.note(change)
    }

    fn play_one(&mut self, seat: Seat, choices: &mut Stream) {
        let moves = self.game.state.as_ref().unwrap().legal_moves(seat);
        let chosen = &moves[choices.below(moves.len() as u32) as usize];
        let body = serde_json::to_vec(chosen).unwrap();
        self.give(Command::Play { body: &body }, seat);
    }

    /// The server does what is due now, and had nothing to do until then.
    fn attend(&mut self, choices: &mut Stream) -> Change {
        let due = self.game.due_at.expect("something will be due");
        let version = self.game.version;
        if due > self.now {
            let early = self.game.attend(due - Duration::MICROSECOND, 0).unwrap();
            assert!(early.is_none() && self.game.version == version, "it is not late yet");
        }
        self.now = self.now.max(due);
        let change = self.game.attend(self.now, choices.below(1 << 30).into()).unwrap().expect("it is due");
        assert_eq!(self.game.version, version + 1);
        self.note(change)
    }

    /// Plays on; the seats of `silent` (bits) never act again. Answers who left, in order.
    fn play_on(&mut self, silent: u32, choices: &mut Stream) -> Vec<Seat> {
        let mut left = Vec::new();
        let mut steps = 0;
        while let Some(seat) = self.game.to_move {
            steps += 1;
            assert!(steps < 2 * self.game.ruleset.meta().longest_game, "it comes to an end");
            let since = self.game.to_move_since.unwrap();
            let budget = if left.contains(&seat) { Duration::ZERO } else { BUDGET };
            assert_eq!(self.game.due_at, Some(since + budget), "nobody waits longer than this");
            if left.contains(&seat) {
                let change = self.attend(choices);
                assert_eq!(change.entry.map(|entry| entry.seat), Some(seat), "a bot plays for who has left");
            } else if silent & 1 << seat != 0 {
                let change = self.attend(choices);
                assert!(change.has(EventKind::PlayerTimedOut) && change.entry.is_none());
                left.push(seat);
            } else {
                self.play_one(seat, choices);
            }
        }
        left
    }

    /// Checks how it ended after these left, in this order.
    fn check(&self, left: &[Seat]) {
        let game = &self.game;
        let meta = game.ruleset.meta();
        let outcome = game.outcome.as_ref().expect("an outcome");
        assert_eq!((game.status, game.due_at, game.finished_at), (Status::Finished, None, Some(self.now)));
        assert!(game.attend_is_over());
        let stayed = usize::from(game.seat_count) - left.len();
        if !left.is_empty() && (stayed == 0 || game.seat_count <= 2) {
            assert_eq!(outcome.reason, EndReason::Timeout);
        } else {
            assert!(meta.end_reasons.contains(&outcome.reason), "{:?}", outcome.reason);
        }
        let seats: Vec<Seat> = outcome.ranking.iter().map(|line| line.seat).collect();
        let mut all = seats.clone();
        all.sort_unstable();
        assert_eq!(all, (0..game.seat_count).collect::<Vec<_>>(), "everybody has a place");
        // The first out is lowest.
        let last_first: Vec<Seat> = left.iter().rev().copied().collect();
        assert_eq!(seats[stayed..], last_first[..]);
        for (place, line) in (1..).zip(&outcome.ranking) {
            let before = &outcome.ranking[..place - 1];
            let alone = usize::from(line.rank) == place;
            let tied = before.last().is_some_and(|other| other.rank == line.rank);
            assert!(alone || tied && place <= stayed, "ranks count on: {:?}", outcome.ranking);
            let has_left = left.contains(&line.seat);
            assert!(!has_left || !line.won && alone, "who left has won nothing: {:?}", outcome.ranking);
            assert!(game.seat_count == 1 || has_left || line.won == (line.rank == 1), "{:?}", outcome.ranking);
            assert!(meta.score.contains(&line.score));
        }
        for taken in &game.seats {
            let has_left = left.contains(&taken.seat);
            assert_eq!(taken.status, if has_left { SeatStatus::TimedOut } else { SeatStatus::Playing });
            assert_eq!(taken.left_at_version.is_some(), has_left);
        }
    }
}

/// What is over needs nothing more.
trait NothingDue {
    fn attend_is_over(&self) -> bool;
}

impl NothingDue for Game {
    fn attend_is_over(&self) -> bool {
        self.clone().attend(OffsetDateTime::UNIX_EPOCH + Duration::days(36_500), 0).unwrap().is_none()
    }
}

#[test]
fn with_any_seats_silent_for_ever_every_game_reaches_an_end() {
    for &ruleset in RulesetId::ALL {
        for seats in ruleset.meta().seats.clone() {
            let subsets = (1 << seats) - 1;
            let mut tried = vec![0; subsets as usize];
            for seed in 0..3 {
                let mut choices = Random::new([seed; 32]).stream(u64::from(seats));
                let mut table = Table::begin(ruleset, seats, seed);
                let mut ply = u32::from(seed);
                while let Some(mover) = table.game.to_move {
                    // Each ply has its turn with another set of seats, each set with plies all over the game, and at some
                    // plies all sets have.
                    let all = ply.is_multiple_of(10);
                    for subset in 1..=subsets {
                        if !all && ply % subsets + 1 != subset {
                            continue;
                        }
                        tried[subset as usize - 1] += 1;
                        let mut silent = table.clone();
                        let left = silent.play_on(subset, &mut choices);
                        silent.check(&left);
                        if all {
                            let moves = silent.log.iter().map(Into::into).collect();
                            Record::new(&silent.game, moves, None).unwrap().verify().unwrap();
                        }
                    }
                    table.play_one(mover, &mut choices);
                    ply += 1;
                }
                table.check(&[]);
            }
            assert!(tried.iter().all(|times| *times > 0), "{ruleset:?} of {seats}: {tried:?}");
        }
    }
}

#[test]
fn who_falls_silent_from_the_start_on_all_seats_leaves_one_after_another() {
    for &ruleset in RulesetId::ALL {
        for seats in ruleset.meta().seats.clone() {
            let mut choices = Random::new([9; 32]).stream(0);
            let mut table = Table::begin(ruleset, seats, 9);
            let start = table.now;
            let left = table.play_on(u32::MAX, &mut choices);
            table.check(&left);
            // One of two, and of one; all of more, for bots do not wait.
            assert_eq!(left.len(), if seats <= 2 { 1 } else { usize::from(seats) });
            assert_eq!(table.now - start, BUDGET * left.len() as u32);
            assert!(
                table.game.outcome.as_ref().unwrap().ranking.iter().filter(|line| line.won).count()
                    == usize::from(seats == 2)
            );
        }
    }
}
