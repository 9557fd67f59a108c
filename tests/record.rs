//! Records of finished games: what is good verifies, whatever is changed in them does not, and the script of
//! `docs/fairness.md`, which shares no code with the server, agrees with it.

use std::io::Write;
use std::process::{Command as Process, Stdio};

use serde_json::{Map, Value, json};
use tavola::game::{
    Command, Entropy, Entry, Game, Invite, NewGame, Player, PlayerKind, Record, RecordError, ServerSeed, Spectators,
    Visibility,
};
use tavola::rulesets::random::{Random, Stream};
use tavola::rulesets::registry::RulesetId;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// A game that random players have finished, or that the player to move gave up after `moves`.
fn finished(ruleset: RulesetId, seats: u8, give_up_after: Option<u32>) -> Record {
    let player =
        |seat: u8| Player { id: Uuid::from_u128(seat.into()), name: format!("P{seat} é"), kind: PlayerKind::Human };
    let entropy = |seat: u8| Entropy::parse(format!("ключ {seat}")).unwrap();
    let mut now = OffsetDateTime::UNIX_EPOCH;
    let new = NewGame {
        id: Uuid::from_u128(0x0190_c0de_0000_7000_8000_0000_0000_0000),
        ruleset,
        options: Map::new(),
        seats: Some(seats),
        visibility: Visibility::Public,
        spectators: Spectators::Live,
        clock: None,
        rated: false,
        invite: Invite(String::new()),
        entropy: entropy(0),
        server_seed: ServerSeed([seats; 32]),
        created_at: now,
    };
    let (mut game, _) = Game::create(new, player(0)).unwrap();
    let mut log: Vec<Entry> = Vec::new();
    let mut choices: Stream = Random::new([1; 32]).stream(9);
    let mut give = |game: &mut Game, command: Command<'_>, seat: u8| {
        now += Duration::MILLISECOND;
        log.extend(game.handle(command, &player(seat), now).unwrap().entry);
    };
    for seat in 1..seats {
        give(&mut game, Command::TakeSeat { seat: None, entropy: entropy(seat), invite: None }, seat);
    }
    while let Some(seat) = game.to_move {
        if give_up_after == Some(game.moves_count) {
            // Of more than two all have to.
            for leaver in (0..seats).map(|place| (seat + place) % seats) {
                if !game.is_over() {
                    give(&mut game, Command::Resign, leaver);
                }
            }
            break;
        }
        let moves = game.state.as_ref().unwrap().legal_moves(seat);
        let chosen = &moves[choices.below(moves.len() as u32) as usize];
        let body = serde_json::to_vec(chosen).unwrap();
        give(&mut game, Command::Play { body: &body }, seat);
    }
    Record::new(&game, log.iter().map(Into::into).collect(), None).unwrap()
}

/// The record after a change of its JSON.
fn changed(record: &Record, change: impl FnOnce(&mut Value)) -> Result<Record, RecordError> {
    let mut json = serde_json::to_value(record).unwrap();
    change(&mut json);
    Record::read(json.to_string().as_bytes())
}

/// Pointers to every value of a document that is not an array or an object.
fn leaves(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| leaves(item, &format!("{pointer}/{i}"), found));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| leaves(member, &format!("{pointer}/{name}"), found));
        }
        _ => found.push(pointer.to_owned()),
    }
}

/// Another value of the same kind.
fn other(value: &Value) -> Value {
    match value {
        Value::Bool(yes) => json!(!yes),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::String(text) => match text.chars().last() {
            Some(last) => {
                json!(format!("{}{}", &text[..text.len() - last.len_utf8()], if last == '0' { '1' } else { '0' }))
            }
            None => json!("x"),
        },
        _ => json!(7),
    }
}

#[test]
fn every_finished_game_verifies_as_written_and_as_read() {
    for ruleset in RulesetId::ALL {
        for seats in ruleset.meta().seats.clone() {
            for give_up_after in [None, Some(0), Some(5)] {
                let record = finished(*ruleset, seats, give_up_after);
                record.verify().unwrap();
                let read = Record::read(&serde_json::to_vec_pretty(&record).unwrap()).unwrap();
                assert_eq!(read, record);
            }
        }
    }
}

#[test]
fn any_change_of_meaning_is_found() {
    for ruleset in RulesetId::ALL {
        // Short, since every value of it is changed once.
        let record = finished(*ruleset, *ruleset.meta().seats.end(), Some(10));
        let json = serde_json::to_value(&record).unwrap();
        let mut pointers = Vec::new();
        leaves(&json, "", &mut pointers);
        assert!(pointers.len() > 100);
        for pointer in pointers {
            let mutated = changed(&record, |json| {
                let leaf = json.pointer_mut(&pointer).unwrap();
                *leaf = other(leaf);
            });
            let found = mutated.and_then(|record| record.verify());
            assert!(found.is_err(), "{ruleset:?}: a change at {pointer} is not found");
        }
        for (name, member) in json.as_object().unwrap() {
            let without = changed(&record, |json| {
                json.as_object_mut().unwrap().shift_remove(name);
            });
            assert!(without.is_err(), "{ruleset:?}: {name} is not missed");
            if let Some(items) = member.as_array().filter(|items| !items.is_empty()) {
                let shorter = changed(&record, |json| json[name] = json!(items[1..]));
                assert!(
                    shorter.and_then(|record| record.verify()).is_err(),
                    "{ruleset:?}: a part of {name} is not missed"
                );
            }
        }
        assert!(changed(&record, |json| json["more"] = json!(1)).is_err());
    }
}

#[test]
fn a_forger_who_computes_the_digest_anew_is_found_too() {
    for ruleset in RulesetId::ALL {
        let record = finished(*ruleset, *ruleset.meta().seats.end(), None);
        let forged = |change: &dyn Fn(&mut Record)| {
            let mut forged = record.clone();
            change(&mut forged);
            forged.digest = forged.compute_digest();
            forged.verify().unwrap_err().to_string()
        };
        let flip = |text: &mut String| *text = other(&json!(text)).as_str().unwrap().to_owned();
        assert!(forged(&|record| flip(&mut record.server_seed)).contains("commitment"));
        assert!(forged(&|record| flip(&mut record.commitment)).contains("commitment"));
        assert!(forged(&|record| flip(&mut record.game_seed)).contains("game seed"));
        assert!(forged(&|record| record.seats[0].entropy.push('!')).contains("game seed"));
        assert!(forged(&|record| record.game_id = Uuid::nil()).contains("game seed"));
        assert!(forged(&|record| record.lot ^= 1).contains("lot"));
        // 256 seats more are no seats more where they are counted in a byte.
        let crowd = |record: &mut Record| {
            let seat = record.seats[0].clone();
            record.seats.extend(vec![seat; 256]);
        };
        assert!(forged(&crowd).contains("seats"));
        assert!(
            forged(&|record| record.shuffled.swap(0, 1)).contains("shuffled")
                || record.shuffled[0] == record.shuffled[1]
        );
        assert!(forged(&|record| record.rules_version += 1).contains("rules"));
        assert!(forged(&|record| record.options.clear()).contains("options"));
        assert!(forged(&|record| record.finished_at = record.created_at).contains("times"));
        assert!(forged(&|record| record.moves[3].number = 9).starts_with("move 4:"));
        assert!(forged(&|record| record.moves[3].r#move = json!({"type": "nothing"})).starts_with("move 4:"));
        assert!(forged(&|record| record.moves[3].seat = 77).starts_with("move 4:"));
        assert!(forged(&|record| record.outcome.ranking[0].score += 1).contains("outcome"));
        let shortened = forged(&|record| {
            record.moves.pop();
        });
        assert!(shortened.contains("outcome"), "{shortened}");
        let prolonged = forged(&|record| {
            let last = record.moves.last().unwrap().clone();
            record.moves.push(last);
        });
        assert!(prolonged.starts_with("move "), "{prolonged}");
    }
}

#[test]
fn the_script_in_the_documentation_agrees() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fairness.md")).unwrap();
    let script = text.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let run = |record: &Record| {
        let mut file = tempfile();
        serde_json::to_writer(&mut file.1, record).unwrap();
        let mut python = Process::new("python3")
            .args(["-", &file.0])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed for this test");
        python.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let output = python.wait_with_output().unwrap();
        std::fs::remove_file(&file.0).unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    for ruleset in RulesetId::ALL {
        for seats in ruleset.meta().seats.clone() {
            let record = finished(*ruleset, seats, Some(0));
            let (good, said) = run(&record);
            assert!(good && said.lines().count() == 4, "{ruleset:?}, {seats} seats: {said}");
            let mut forged = record.clone();
            forged.shuffled.rotate_left(1);
            assert!(!run(&forged).0);
        }
    }
}

/// A new file and its path.
fn tempfile() -> (String, std::fs::File) {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("tavola-record-{}-{next}.json", std::process::id()));
    (path.to_str().unwrap().to_owned(), std::fs::File::create(path).unwrap())
}
