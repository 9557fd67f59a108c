//! Whole games from bytes: which ruleset, options and chance, and then what each player tries, often what they may not.

use serde_json::Value;
use tavola::game::{
    Change, Command, Entropy, Entry, Game, Invite, NewGame, Player, PlayerKind, Record, ServerSeed, Spectators,
    Visibility, replay,
};
use tavola::rulesets::registry::RulesetId;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::input::Input;
use super::table::{Kind, attempt, show, survives_snapshot, viewers};

/// A game, all its moves so far, and the time.
struct Play {
    game: Game,
    log: Vec<Entry>,
    now: OffsetDateTime,
}

/// Plays a game: what is legal is accepted, the rest is refused and changes nothing, and at every ply the state can be written,
/// shown to everybody, and follows from the log. A game that ends has a record which verifies.
pub fn run(input: &[u8]) {
    play(input);
}

/// As [`run`]; answers the record of a game that has come to its end.
pub fn play(input: &[u8]) -> Option<Record> {
    let mut input = Input(input);
    let kind = Kind::chosen(&mut input);
    let mut play = Play::begin(&kind, input.number());
    let mut earlier: Vec<Vec<u8>> = Vec::new();
    while !input.is_empty() && !play.game.is_over() {
        let state = play.game.state.as_ref().expect("it has begun");
        let seat = state.to_act().expect("it is not over");
        let texts: Vec<Vec<u8>> =
            state.legal_moves(seat).iter().map(|mv| serde_json::to_vec(mv).expect("a move is JSON")).collect();
        assert!(!texts.is_empty(), "the game goes on and nobody can move");
        if play.game.player_to_move().is_none() {
            play.attend(input.number());
            continue;
        }
        let (way, place) = (input.byte(), input.byte());
        let body = texts[(usize::from(way >> 4) << 8 | usize::from(place)) % texts.len()].clone();
        match way & 15 {
            // Somebody else, seated or not.
            0 => {
                let other = (seat + 1 + place % kind.seats) % (kind.seats + 1);
                assert!(!play.moves(&body, other), "seat {other} moves instead of {seat}");
            }
            // A move of before, or of another game.
            1 => {
                play.moves(earlier.get(usize::from(place)).unwrap_or(&body), seat);
            }
            // A move with a byte changed.
            2 => {
                let mut damaged = body;
                let at = usize::from(input.byte()) % damaged.len();
                damaged[at] ^= input.byte();
                play.moves(&damaged, seat);
            }
            // Anything at all.
            3 => {
                play.moves(input.take(place.into()), seat);
            }
            4 if place == 0 => play.resigns((way >> 4) % kind.seats),
            _ => {
                assert!(play.moves(&body, seat), "a listed move is refused");
                earlier.push(body);
            }
        }
    }
    play.check_end(&kind)
}

fn player(seat: u8) -> Player {
    Player { id: Uuid::from_u128(seat.into()), name: format!("P{seat}"), kind: PlayerKind::Human }
}

fn entropy(seat: u8) -> Entropy {
    Entropy::parse(format!("entropy of {seat}")).expect("it is short")
}

impl Play {
    /// A game whose players have all sat down.
    fn begin(kind: &Kind, seed: usize) -> Play {
        let now = OffsetDateTime::UNIX_EPOCH;
        let new = NewGame {
            id: Uuid::from_u128(0x0190_c0de_0000_7000_8000_0000_0000_0000),
            ruleset: kind.ruleset,
            options: kind.options.clone(),
            seats: Some(kind.seats),
            visibility: Visibility::Public,
            spectators: Spectators::Live,
            clock: None,
            rated: false,
            invite: Invite(String::new()),
            entropy: entropy(0),
            server_seed: ServerSeed(std::array::from_fn(|place| (seed >> (place % 2 * 8)) as u8)),
            created_at: now,
        };
        let (game, _) = Game::create(new, player(0)).expect("it is a game");
        let mut play = Play { game, log: Vec::new(), now };
        for seat in 1..kind.seats {
            let command = Command::TakeSeat { seat: None, entropy: entropy(seat), invite: None };
            play.game.handle(command, &player(seat), play.now).expect("there is a seat");
        }
        play.check();
        play
    }

    /// Somebody makes a move; answers whether it was accepted.
    fn moves(&mut self, body: &[u8], seat: u8) -> bool {
        let ruleset = self.game.ruleset;
        let before = self.game.clone();
        let state = before.state.as_ref().expect("it has begun");
        // What the rules say to it by themselves.
        let expected = ruleset.read_move(body).ok().and_then(|mv| attempt(state, seat, &mv, &before.random()));
        self.now += Duration::MILLISECOND;
        match self.game.handle(Command::Play { body }, &player(seat), self.now) {
            Ok(change) => {
                assert!(expected == self.game.state, "the game comes to another state than its rules");
                self.take(change, before.version);
                true
            }
            Err(_) => {
                assert!(expected.is_none(), "the game refuses what its rules allow");
                assert_eq!(format!("{:?}", self.game.summary), format!("{:?}", before.summary), "refused and changed");
                assert!(self.game.state == before.state, "refused and changed");
                false
            }
        }
    }

    fn resigns(&mut self, seat: u8) {
        let before = self.game.version;
        // Who has resigned before cannot do so again.
        if let Ok(change) = self.game.handle(Command::Resign, &player(seat), self.now) {
            self.take(change, before);
        }
    }

    /// The server plays for one who has left.
    fn attend(&mut self, choice: usize) {
        let before = self.game.version;
        let change = self.game.attend(self.now, choice as u64).expect("the rules list legal moves");
        self.take(change.expect("somebody has left and is to move"), before);
    }

    fn take(&mut self, change: Change, version: u32) {
        assert_eq!(self.game.version, version + 1);
        if let Some(entry) = change.entry {
            assert_eq!(entry.number as usize, self.log.len() + 1);
            check_entry(self.game.ruleset, &entry, self.game.seat_count);
            self.log.push(entry);
        }
        self.check();
    }

    /// What holds at every ply.
    fn check(&self) {
        let state = self.game.state.as_ref().expect("it has begun");
        survives_snapshot(state);
        show(state, self.game.seat_count);
        assert_eq!(self.game.moves_count as usize, self.log.len());
        assert!(self.game.is_over() || self.game.to_move == state.to_act(), "whose turn it is");
        assert_eq!(state.to_act().is_none(), state.end().is_some());
    }

    /// What holds of the whole.
    fn check_end(&self, kind: &Kind) -> Option<Record> {
        let moves = self.log.iter().map(|entry| (entry.seat, &entry.mv));
        let replayed = replay(&self.game, moves).expect("what was accepted is legal");
        assert!(Some(&replayed) == self.game.state.as_ref(), "the replay of the log comes to another state");
        if kind.options.is_empty() {
            assert!(self.game.moves_count <= kind.ruleset.meta().longest_game, "the game is too long");
        }
        let record = Record::new(&self.game, self.log.iter().map(Into::into).collect(), None);
        assert_eq!(record.is_some(), self.game.is_over(), "only a finished game has a record");
        if let Some(record) = &record {
            record.verify().expect("the record is good");
            let written = serde_json::to_vec(record).expect("a record is JSON");
            assert!(
                Record::read(&written).expect("a record is read") == *record,
                "a record changes when it is written"
            );
        }
        record
    }
}

/// What holds of a move in the log.
fn check_entry(ruleset: RulesetId, entry: &Entry, seats: u8) {
    let events = serde_json::to_string(&entry.events).expect("events are JSON");
    assert!(
        ruleset.read_events(&events).expect("events are read") == entry.events,
        "events change when they are written"
    );
    for viewer in viewers(seats) {
        let shown: [Value; 2] = [
            serde_json::to_value(entry.move_view(viewer)).expect("a move is JSON"),
            serde_json::to_value(entry.event_views(viewer)).expect("events are JSON"),
        ];
        assert!(shown[0].is_object() && shown[1].is_array());
    }
}
