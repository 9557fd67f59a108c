//! Giving up while others play on, bots that play for who has left, and calling a game off.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::game::Record;

use crate::helpers::{Player, TestApp};
use crate::play::{Chance, Table, seat_to_move, short};

/// The rulesets for three and four.
const LARGE: [&str; 3] = ["leonardo", "quintis-fontis", "siggil"];

/// The ranking's seats, from the best.
fn ranked(game: &Value) -> Vec<usize> {
    let ranking = game["outcome"]["ranking"].as_array().unwrap();
    ranking.iter().map(|line| line["seat"].as_u64().unwrap() as usize).collect()
}

fn won(game: &Value) -> Vec<usize> {
    let ranking = game["outcome"]["ranking"].as_array().unwrap().iter();
    ranking.filter(|line| line["won"] == true).map(|line| line["seat"].as_u64().unwrap() as usize).collect()
}

fn statuses(game: &Value) -> Vec<&str> {
    game["seats"].as_array().unwrap().iter().map(|seat| seat["status"].as_str().unwrap()).collect()
}

async fn resign(app: &TestApp, table: &Table, seat: usize) -> Value {
    app.post(table.path("/resignation")).by(&table.players[seat]).ok(200).await
}

/// What a player who has left can do: look on, from their own seat, and nothing else.
async fn assert_has_left(app: &TestApp, table: &Table, seat: usize, mv: &Value) {
    let player = &table.players[seat];
    let before = app.game(&table.id, Some(player)).await;
    assert!(before["state"]["seats"][seat]["hand"].is_array(), "their own hand, as before");
    assert_eq!(before["viewer"]["seat"], seat);
    let legal = app.get(table.path("/legal-moves")).by(player).ok(200).await;
    assert_eq!((&legal["seat"], &legal["moves"]), (&json!(seat), &json!([])), "there is nothing that they could send");
    app.post(table.path("/moves")).by(player).json(mv).refused(403, "has-left").await;
    app.post(table.path("/resignation")).by(player).refused(403, "has-left").await;
    app.post(table.path("/abort")).by(player).refused(403, "has-left").await;
    app.call("DELETE", table.path("/abort")).by(player).refused(403, "has-left").await;
    app.call("DELETE", table.path("/seats/me")).by(player).refused(409, "game-not-open").await;
    app.post(table.path("/rematch")).by(player).json(&json!({})).refused(409, "game-not-finished").await;
    assert_eq!(app.game(&table.id, Some(player)).await, before, "nothing has changed");
    app.get(table.path("/events")).by(player).expect(200).await;
    app.get(table.path("/states/0?perspective=me")).by(player).expect(200).await;
    let turns = app.get("/v1/me/turns").by(player).ok(200).await;
    assert_eq!(turns["items"], json!([]), "no turn waits for them");
    let waits = app.get(format!("/v1/games?to_move={}", player.id)).ok(200).await;
    assert_eq!(waits["items"], json!([]));
}

#[tokio::test]
async fn who_resigns_is_played_on_by_a_bot_and_ranks_last() {
    let app = TestApp::with(2, 6).await;
    for slug in LARGE {
        for seats in [3, 4] {
            let table = app.table(slug, &short(slug), seats).await;
            app.play_random(&table, 3, 3).await;
            // The one who is to move.
            let before = app.game(&table.id, None).await;
            let first = seat_to_move(&before).unwrap();
            let mv = app.legal_moves(&table.id, &table.players[first]).await[0].clone();
            let game = resign(&app, &table, first).await;
            assert_eq!((&game["status"], &game["outcome"]), (&json!("active"), &Value::Null));
            assert_eq!(game["version"], before["version"].as_u64().unwrap() + 1);
            assert_eq!((seat_to_move(&game), statuses(&game)[first]), (Some(first), "resigned"));
            assert_eq!(game["to_move"]["deadline"], Value::Null);
            assert_has_left(&app, &table, first, &mv).await;
            // The server plays for them until somebody is to move who is there.
            assert!(app.attend().await > 0);
            let game = app.game(&table.id, None).await;
            assert!(seat_to_move(&game) != Some(first), "{slug}");
            assert!(app.log(&table, None).await[3..].iter().all(|entry| entry["seat"] == first));
            assert_eq!(app.attend().await, 0, "now it waits");
            assert_has_left(&app, &table, first, &mv).await;
            // One who is not to move: the other's turn goes on as it was.
            let before = app.game(&table.id, None).await;
            let Some(mover) = seat_to_move(&before) else { panic!("{slug}: the game goes on") };
            let second = (0..seats).find(|seat| *seat != first && *seat != mover).unwrap();
            let game = resign(&app, &table, second).await;
            assert_eq!((&game["to_move"], statuses(&game)[second]), (&before["to_move"], "resigned"));
            assert_eq!(app.attend().await, 0);
            let game = app.play_with_bots_to_the_end(&table, 4).await;
            assert_eq!(game["status"], "finished");
            assert!(["completed", "turn_limit"].contains(&game["outcome"]["reason"].as_str().unwrap()));
            let ranking = ranked(&game);
            assert_eq!(ranking[seats - 2..], [second, first], "{slug}: the first out is lowest");
            assert!(!won(&game).is_empty() && !won(&game).contains(&first) && !won(&game).contains(&second));
            let lines = game["outcome"]["ranking"].as_array().unwrap();
            assert_eq!((&lines[seats - 2]["rank"], &lines[seats - 1]["rank"]), (&json!(seats - 1), &json!(seats)));
            verify(&app, &table, &[first, second]).await;
        }
    }
}

/// Checks the record of a game that was left by these, in this order.
async fn verify(app: &TestApp, table: &Table, left: &[usize]) {
    let reply = app.get(table.path("/record")).expect(200).await;
    let record = Record::read(&reply.bytes).unwrap();
    record.verify().unwrap_or_else(|error| panic!("{error}: {}", reply.text()));
    for (seat, taken) in record.seats.iter().enumerate() {
        let place = left.iter().position(|other| *other == seat).map(|place| place as u8 + 1);
        assert_eq!(taken.left, place);
    }
    // Who left when is not for the record's keeper to choose.
    if left.len() > 1 {
        let mut forged = record.clone();
        for taken in &mut forged.seats {
            taken.left = taken.left.map(|place| left.len() as u8 + 1 - place);
        }
        forged.digest = forged.compute_digest();
        assert!(forged.verify().is_err());
    }
}

#[tokio::test]
async fn when_the_last_one_leaves_the_game_is_over_and_nobody_has_won() {
    let app = TestApp::new().await;
    for slug in LARGE {
        for seats in [3, 4] {
            let table = app.table(slug, &short(slug), seats).await;
            app.play_random(&table, 5, 2).await;
            let order: Vec<usize> = (0..seats).map(|seat| (seat + 2) % seats).collect();
            for (place, seat) in order.iter().enumerate() {
                let game = resign(&app, &table, *seat).await;
                assert_eq!(game["status"], if place + 1 < seats { "active" } else { "finished" });
            }
            assert_eq!(app.attend().await, 0, "no bot plays on in a game that is over");
            let game = app.game(&table.id, None).await;
            assert_eq!((&game["outcome"]["reason"], won(&game)), (&json!("resignation"), vec![]));
            let last_first: Vec<usize> = order.iter().rev().copied().collect();
            assert_eq!((ranked(&game), &game["to_move"]), (last_first, &Value::Null));
            verify(&app, &table, &order).await;
            app.post(table.path("/resignation")).by(&table.players[0]).refused(409, "game-not-active").await;
            let kinds = app.kinds(&table.id, None).await;
            assert_eq!(kinds.iter().filter(|kind| *kind == "player_resigned").count(), seats);
            assert_eq!(kinds.iter().filter(|kind| *kind == "game_finished").count(), 1);
        }
    }
}

#[tokio::test]
async fn alone_one_gives_up_with_the_score_and_has_not_won() {
    let app = TestApp::new().await;
    let table = app.table("siggil", &json!({}), 1).await;
    app.play_random(&table, 5, 4).await;
    let game = resign(&app, &table, 0).await;
    assert_eq!((&game["outcome"]["reason"], won(&game), ranked(&game)), (&json!("resignation"), vec![], vec![0]));
    verify(&app, &table, &[0]).await;
}

#[tokio::test]
async fn a_resignation_is_repeated_under_its_key_and_refused_at_another_version() {
    let app = TestApp::new().await;
    let table = app.table("leonardo", &json!({}), 3).await;
    let player = &table.players[1];
    app.post(table.path("/resignation")).by(player).at(7).refused(412, "stale-version").await;
    let ask = || app.post(table.path("/resignation")).by(player).key("out").expect(200);
    let first = ask().await;
    assert_eq!(ask().await.lasting(), first.lasting());
    app.post(table.path("/resignation")).by(player).refused(403, "has-left").await;
    assert_eq!(app.game(&table.id, None).await["version"], 3);
}

#[tokio::test]
async fn all_who_resign_at_once_leave_one_after_another() {
    let app = TestApp::with(2, 8).await;
    for round in 0..6 {
        let table = app.table("leonardo", &json!({"turn_limit": 30}), 4).await;
        let leaving = if round % 2 == 0 { 3 } else { 4 };
        let calls =
            table.players[..leaving].iter().map(|player| app.post(table.path("/resignation")).by(player).send());
        // Bots begin to move in the middle of it.
        let (replies, _) = tokio::join!(join_all(calls), app.attend());
        assert!(replies.iter().all(|reply| reply.status == 200));
        let game =
            if leaving == 3 { app.play_with_bots_to_the_end(&table, 1).await } else { app.game(&table.id, None).await };
        assert_eq!(game["status"], "finished");
        assert_eq!(won(&game), if leaving == 3 { vec![3] } else { vec![] });
        let events = app.events(&table.id, None, 100).await;
        let resigned = events.iter().filter(|event| event["type"] == "player_resigned");
        let order: Vec<usize> = resigned.map(|event| event["seat"].as_u64().unwrap() as usize).collect();
        let last_first: Vec<usize> = order.iter().rev().copied().collect();
        assert_eq!(ranked(&game)[4 - leaving..], last_first);
        verify(&app, &table, &order).await;
    }
}

async fn abort(app: &TestApp, path: &str, player: &Player) -> Value {
    app.post(format!("{path}/abort")).by(player).ok(200).await
}

#[tokio::test]
async fn before_the_start_the_creator_calls_a_game_off() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
    app.post(format!("{path}/seats")).by(&bo).expect(201).await;
    app.post(format!("{path}/abort")).refused(401, "unauthenticated").await;
    app.post(format!("{path}/abort")).by(&bo).refused(403, "not-owner").await;
    app.post(format!("{path}/abort")).by(&cy).refused(403, "not-seated").await;
    app.call("DELETE", format!("{path}/abort")).by(&ada).refused(409, "game-not-active").await;
    app.post(format!("{path}/abort")).by(&ada).at(0).refused(412, "stale-version").await;
    let game = abort(&app, &path, &ada).await;
    assert_eq!((&game["status"], &game["outcome"], &game["version"]), (&json!("aborted"), &Value::Null, &json!(2)));
    assert!(game["server_seed"].is_null() && game["started_at"].is_null() && game["finished_at"].is_string());
    for path in [format!("{path}/record"), format!("{path}/states/0")] {
        let status = if path.ends_with("record") { 409 } else { 404 };
        app.get(path).by(&ada).expect(status).await;
    }
    app.post(format!("{path}/abort")).by(&ada).refused(409, "game-not-active").await;
    app.post(format!("{path}/seats")).by(&cy).refused(409, "game-not-open").await;
}

#[tokio::test]
async fn after_the_start_all_who_play_must_ask_and_may_change_their_mind() {
    let app = TestApp::new().await;
    for slug in LARGE {
        let table = app.table(slug, &short(slug), 3).await;
        app.play_random(&table, 6, 2).await;
        let (path, players) = (table.path(""), &table.players);
        let start = app.game(&table.id, None).await;
        let wants = |game: &Value| -> Vec<bool> {
            game["seats"].as_array().unwrap().iter().map(|seat| seat["wants_abort"].as_bool().unwrap()).collect()
        };
        let game = abort(&app, &path, &players[0]).await;
        assert_eq!((&game["status"], wants(&game)), (&json!("active"), vec![true, false, false]));
        assert_eq!(game["to_move"], start["to_move"], "nobody's turn is any the longer for it");
        // Asking twice is asking once.
        assert_eq!(abort(&app, &path, &players[0]).await["version"], game["version"]);
        abort(&app, &path, &players[1]).await;
        let game = app.call("DELETE", table.path("/abort")).by(&players[0]).ok(200).await;
        assert_eq!(wants(&game), [false, true, false]);
        let again = app.call("DELETE", table.path("/abort")).by(&players[0]).ok(200).await;
        assert_eq!(again["version"], game["version"]);
        // Moves go on meanwhile, and take back nothing.
        app.play_one(&table, &mut Chance(8)).await;
        let game = abort(&app, &path, &players[2]).await;
        assert_eq!((&game["status"], wants(&game)), (&json!("active"), vec![false, true, true]));
        let game = abort(&app, &path, &players[0]).await;
        assert_eq!((&game["status"], &game["outcome"]["reason"]), (&json!("aborted"), &json!("aborted")));
        assert_eq!((won(&game), ranked(&game).len(), &game["to_move"]), (vec![], 3, &Value::Null));
        assert!(game["server_seed"].is_string(), "it was played: everything is open");
        app.get(table.path("/record")).refused(409, "game-not-finished").await;
        app.post(table.path("/abort")).by(&players[0]).refused(409, "game-not-active").await;
        app.call("DELETE", table.path("/abort")).by(&players[0]).refused(409, "game-not-active").await;
        app.post(table.path("/moves")).by(&players[0]).json(&json!({})).refused(409, "game-not-active").await;
        let kinds = app.kinds(&table.id, None).await;
        let asked: Vec<&String> = kinds.iter().filter(|kind| kind.starts_with("abort_")).collect();
        assert_eq!(
            asked,
            ["abort_requested", "abort_requested", "abort_withdrawn", "abort_requested", "abort_requested"]
        );
        assert_eq!(kinds.last().unwrap(), "game_aborted");
        assert!(!kinds.contains(&"game_finished".to_owned()));
        // Everything is open now, as after any end.
        let seen = app.game(&table.id, None).await;
        assert!((0..3).all(|seat| seen["state"]["seats"][seat]["hand"].is_array()));
        app.get(table.path("/states/0?perspective=all")).expect(200).await;
    }
}

#[tokio::test]
async fn who_has_left_is_not_asked() {
    let app = TestApp::new().await;
    // First they leave, then the others ask.
    let table = app.table("leonardo", &json!({}), 3).await;
    resign(&app, &table, 0).await;
    abort(&app, &table.path(""), &table.players[1]).await;
    assert_eq!(abort(&app, &table.path(""), &table.players[2]).await["status"], "aborted");
    assert_eq!(app.attend().await, 0);
    // The others ask; that the last one leaves who did not want it settles it.
    let table = app.table("leonardo", &json!({}), 3).await;
    for player in &table.players[1..] {
        assert_eq!(abort(&app, &table.path(""), player).await["status"], "active");
    }
    let game = resign(&app, &table, 0).await;
    assert_eq!((&game["status"], &game["outcome"]["reason"]), (&json!("aborted"), &json!("aborted")));
    assert_eq!((won(&game), statuses(&game)), (vec![], vec!["resigned", "playing", "playing"]));
    assert_eq!(
        app.kinds(&table.id, None).await.iter().rev().take(2).rev().collect::<Vec<_>>(),
        ["player_resigned", "game_aborted"]
    );
    assert_eq!(app.attend().await, 0, "no bot plays on");
    // So does the clock.
    let wanted = json!({"ruleset": "leonardo", "clock": {"kind": "per_move", "seconds": 60}});
    let table = app.table_like(&wanted, app.players(3).await).await;
    let late = app.to_move(&table).await.unwrap();
    for seat in (0..3).filter(|seat| *seat != late) {
        abort(&app, &table.path(""), &table.players[seat]).await;
    }
    app.let_time_run_out(&table.id).await;
    assert_eq!(app.attend().await, 1);
    let game = app.game(&table.id, None).await;
    assert_eq!((&game["status"], statuses(&game)[late]), (&json!("aborted"), "timed_out"));
    // Who asked and then left has no say either.
    let table = app.table("leonardo", &json!({}), 3).await;
    abort(&app, &table.path(""), &table.players[0]).await;
    resign(&app, &table, 0).await;
    assert_eq!(abort(&app, &table.path(""), &table.players[1]).await["status"], "active");
}

#[tokio::test]
async fn all_who_ask_at_once_call_it_off_once() {
    let app = TestApp::with(2, 8).await;
    for seats in [2, 3, 4] {
        for _ in 0..3 {
            let table = app.table("leonardo", &json!({}), seats).await;
            let calls = table.players.iter().map(|player| app.post(table.path("/abort")).by(player).send());
            let replies = join_all(calls).await;
            assert!(replies.iter().all(|reply| reply.status == 200));
            assert_eq!(replies.iter().filter(|reply| reply.json()["status"] == "aborted").count(), 1);
            let kinds = app.kinds(&table.id, None).await;
            assert_eq!(kinds.iter().filter(|kind| *kind == "abort_requested").count(), seats);
            assert_eq!(kinds.iter().filter(|kind| *kind == "game_aborted").count(), 1);
        }
    }
    let solo = app.table("siggil", &json!({}), 1).await;
    assert_eq!(abort(&app, &solo.path(""), &solo.players[0]).await["status"], "aborted");
}
