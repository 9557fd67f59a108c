//! Many at once: one is served, the others learn that they were not, and nothing is done twice or by half.

use futures_util::future::join_all;
use serde_json::json;
use tavola::game::Command;
use tavola::store::{Access, Answer, Headers, Scope, Store, TokenHash};

use crate::durability::assert_replays_from_its_seed;
use crate::helpers::{Reply, TestApp};
use crate::play::Chance;

/// How many answers have that status and, for errors, that code.
fn count(replies: &[Reply], status: u16, code: &str) -> usize {
    replies.iter().filter(|reply| reply.status == status && (status < 400 || reply.json()["code"] == code)).count()
}

#[tokio::test]
async fn of_many_equal_moves_at_one_version_one_is_played() {
    let app = TestApp::with(2, 8).await;
    for many in [20, 50] {
        let table = app.table("leopard", &json!({}), 2).await;
        let (mover, _) = app.mover_and_other(&table).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        let calls = (0..many).map(|_| app.post(table.path("/moves")).by(mover).at(1).json(&mv).send());
        let replies = join_all(calls).await;
        assert_eq!(count(&replies, 201, ""), 1);
        assert_eq!(count(&replies, 412, "stale-version"), many - 1);
        assert_eq!(app.log(&table, None).await.len(), 1);
        assert_eq!(app.game(&table.id, None).await["version"], 2);
    }
}

#[tokio::test]
async fn of_many_equal_moves_of_a_turn_one_is_played() {
    let app = TestApp::with(2, 8).await;
    for many in [20, 50] {
        let table = app.table("leonardo", &json!({}), 2).await;
        let (mover, _) = app.mover_and_other(&table).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        let replies = join_all((0..many).map(|_| app.post(table.path("/moves")).by(mover).json(&mv).send())).await;
        assert_eq!(count(&replies, 201, ""), 1);
        // The others are judged after it, when it is another's turn.
        assert_eq!(count(&replies, 409, "not-your-turn"), many - 1);
        assert_eq!(app.log(&table, None).await.len(), 1);
    }
}

#[tokio::test]
async fn different_moves_of_a_turn_at_once_are_one_move() {
    let app = TestApp::with(2, 8).await;
    let table = app.table("leonardo", &json!({}), 2).await;
    let (mover, other) = app.mover_and_other(&table).await;
    let moves = app.legal_moves(&table.id, mover).await;
    let (theirs, own) = (moves.iter().rev().take(10), moves.iter().take(20));
    let calls = own.map(|mv| (mover, mv)).chain(theirs.map(|mv| (other, mv)));
    // All on the version that they saw: without that another's move may become legal meanwhile, on their turn.
    let version = app.game(&table.id, None).await["version"].as_u64().unwrap();
    let calls = calls.map(|(player, mv)| app.post(table.path("/moves")).by(player).at(version).json(mv).send());
    let replies = join_all(calls).await;
    let log = app.log(&table, None).await;
    assert_eq!((count(&replies, 201, ""), log.len()), (1, 1), "{log:?}");
    assert!(replies.iter().all(|reply| matches!(reply.status, 201 | 409 | 412 | 422)));
}

#[tokio::test]
async fn of_twenty_who_want_one_seat_one_has_it() {
    let app = TestApp::with(2, 8).await;
    let players = app.players(21).await;
    // A seat of its own name, the last seat, and any seat of one that is left.
    for (seats, body) in [(3, json!({"seat": 1})), (2, json!({"seat": 1})), (2, json!({}))] {
        let game = app.create(&players[0], &json!({"ruleset": "leonardo", "seats": seats})).await;
        let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
        let sit = |player| app.post(format!("{path}/seats")).by(player).json(&body).send();
        let replies = join_all(players[1..].iter().map(sit)).await;
        assert_eq!(count(&replies, 201, ""), 1);
        let refused = if seats == 3 { "seat-taken" } else { "game-not-open" };
        assert_eq!(count(&replies, 409, refused), 19);
        let seen = app.get(&path).ok(200).await;
        assert_eq!(seen["seats"].as_array().unwrap().len(), 2);
        assert_eq!(
            (&seen["version"], &seen["status"]),
            (&json!(1), &json!(if seats == 3 { "open" } else { "active" }))
        );
    }
}

#[tokio::test]
async fn twenty_who_want_three_seats_fill_them_and_the_game_starts_once() {
    let app = TestApp::with(2, 8).await;
    let players = app.players(21).await;
    let game = app.create(&players[0], &json!({"ruleset": "siggil", "seats": 4})).await;
    let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
    let replies = join_all(players[1..].iter().map(|player| app.post(format!("{path}/seats")).by(player).send())).await;
    assert_eq!((count(&replies, 201, ""), count(&replies, 409, "game-not-open")), (3, 17));
    let started = replies.iter().filter(|reply| reply.status == 201 && reply.json()["status"] == "active").count();
    assert_eq!(started, 1, "one of them has started it");
    let seen = app.get(&path).ok(200).await;
    assert_eq!((&seen["version"], seen["seats"].as_array().unwrap().len()), (&json!(3), 4));
}

#[tokio::test]
async fn two_take_different_seats_at_once_and_the_game_starts_once() {
    let app = TestApp::with(2, 8).await;
    for _ in 0..5 {
        let players = app.players(3).await;
        let game = app.create(&players[0], &json!({"ruleset": "leonardo", "seats": 3})).await;
        let path = format!("/v1/games/{}/seats", game["id"].as_str().unwrap());
        let sit = |seat: usize| app.post(&path).by(&players[seat]).json(&json!({"seat": seat})).send();
        let (one, two) = tokio::join!(sit(1), sit(2));
        assert_eq!((one.status, two.status), (201, 201));
        let mut statuses =
            [one.json()["status"].clone(), two.json()["status"].clone()].map(|status| status.to_string());
        statuses.sort();
        assert_eq!(statuses, ["\"active\"", "\"open\""]);
    }
}

#[tokio::test]
async fn one_player_asks_for_many_seats_at_once_and_has_one() {
    let app = TestApp::with(2, 8).await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let game = app.create(&ada, &json!({"ruleset": "leonardo", "seats": 4})).await;
    let path = format!("/v1/games/{}/seats", game["id"].as_str().unwrap());
    let sit = |seat: usize| app.post(&path).by(&bo).json(&json!({"seat": 1 + seat % 3})).send();
    let replies = join_all((0..20).map(sit)).await;
    assert_eq!((count(&replies, 201, ""), count(&replies, 409, "already-seated")), (1, 19));
}

#[tokio::test]
async fn leaving_starting_and_joining_at_once_are_one_after_another() {
    let app = TestApp::with(2, 8).await;
    for _ in 0..5 {
        let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
        let game = app.create(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
        let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
        app.post(format!("{path}/seats")).by(&bo).expect(201).await;
        let (left, started, joined) = tokio::join!(
            app.call("DELETE", format!("{path}/seats/me")).by(&bo).send(),
            app.post(format!("{path}/start")).by(&ada).send(),
            app.post(format!("{path}/seats")).by(&cy).send(),
        );
        let done = [&left, &started, &joined].iter().filter(|reply| reply.status < 300).count();
        assert!([&left, &started, &joined].iter().all(|reply| reply.status < 300 || reply.status == 409));
        let seen = app.get(&path).ok(200).await;
        assert_eq!(seen["version"], 1 + done, "each that was done is one version");
        assert_eq!(seen["status"] == "active", seen["state"].is_object());
        let seats: Vec<u64> =
            seen["seats"].as_array().unwrap().iter().filter_map(|seat| seat["seat"].as_u64()).collect();
        if seen["status"] == "active" {
            assert_eq!(seats, (0..seen["seat_count"].as_u64().unwrap()).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn a_move_and_a_resignation_at_once_have_one_outcome() {
    let app = TestApp::with(2, 8).await;
    for _ in 0..6 {
        let table = app.table("leonardo", &json!({"turn_limit": 1}), 2).await;
        let (mover, other) = app.mover_and_other(&table).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        // The move would end the game, and so would the resignation.
        let (played, resigned) = tokio::join!(
            app.post(table.path("/moves")).by(mover).json(&mv).send(),
            app.post(table.path("/resignation")).by(other).send(),
        );
        let seen = app.game(&table.id, None).await;
        let reason = seen["outcome"]["reason"].as_str().unwrap();
        match (played.status, resigned.status) {
            (201, 409) => assert_eq!((reason, &seen["moves_count"]), ("turn_limit", &json!(1))),
            (409, 200) => assert_eq!((reason, &seen["moves_count"]), ("resignation", &json!(0))),
            other => panic!("{other:?}: {seen}"),
        }
        assert_eq!(seen["version"], 2);
    }
}

#[tokio::test]
async fn games_created_in_one_instant_have_different_seeds_and_deals() {
    let app = TestApp::with(2, 8).await;
    let ada = app.register("Ada").await;
    let body = json!({"ruleset": "siggil", "seats": 1});
    let replies = join_all((0..20).map(|_| app.post("/v1/games").by(&ada).json(&body).send())).await;
    let distinct = |member: fn(&serde_json::Value) -> String| {
        replies.iter().map(|reply| member(&reply.json())).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(distinct(|game| game["commitment"].to_string()), 20);
    assert_eq!(distinct(|game| game["state"]["sigil"].to_string()), 20);
    assert_eq!(distinct(|game| game["id"].to_string()), 20);
    assert_eq!(app.count("select count(distinct server_seed) from games").await, 20);
}

#[tokio::test]
async fn looking_does_not_advance_chance() {
    let app = TestApp::new().await;
    for (slug, options) in
        [("leopard", json!({"hands": 2})), ("siggil", json!({})), ("leonardo", json!({"turn_limit": 20}))]
    {
        let table = app.table(slug, &options, 2).await;
        let mut chance = Chance(4);
        for _ in 0..4 {
            let (mover, other) = app.mover_and_other(&table).await;
            let first = app.game(&table.id, Some(mover)).await;
            let moves = app.legal_moves(&table.id, mover).await;
            for _ in 0..2 {
                assert_eq!(app.game(&table.id, Some(mover)).await, first);
                assert_eq!(app.legal_moves(&table.id, mover).await, moves);
                app.game(&table.id, Some(other)).await;
                app.get(table.path("/moves")).expect(200).await;
                // Neither does what is refused.
                app.post(table.path("/moves")).by(other).json(&moves[0]).refused(409, "not-your-turn").await;
            }
            app.play(&table, mover, chance.pick(&moves)).await;
        }
        app.post(table.path("/resignation")).by(&table.players[0]).expect(200).await;
        assert_replays_from_its_seed(&app, &table).await;
    }
}

/// Waits until something of this database waits for a lock, or nothing does.
pub async fn until_blocked(app: &TestApp, blocked: bool) {
    let waiting =
        "select count(*) > 0 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, bool>(waiting).fetch_one(app.sql()).await.unwrap() != blocked {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_request_that_was_given_up_has_left_open_ends_with_it() {
    let app = TestApp::new().await;
    for slug in ["leonardo", "leopard", "siggil"] {
        let table = app.table(slug, &json!({}), 2).await;
        let (id, before) = (uuid::Uuid::parse_str(&table.id).unwrap(), app.game(&table.id, None).await);
        // One connection for games, which the next one asks for too.
        let store = Store::open(app.database().clone(), 2);
        let access = Access::of(TokenHash::of(&table.players[0].token));
        // It has written the position by then, and waits in the middle of its transaction.
        let mut lock = app.sql().begin().await.unwrap();
        sqlx::query("select from seats where game_id = $1 for update").bind(id).execute(&mut *lock).await.unwrap();
        let resigning = tokio::spawn({
            let (store, access) = (store.clone(), access.clone());
            async move {
                let answer = |_: &_, _: &_| Answer { status: 200, headers: Headers::default(), body: Vec::new() };
                store.update_game(id, &access, None, None, &Command::Resign, answer).await.map(drop)
            }
        });
        until_blocked(&app, true).await;
        resigning.abort();
        assert!(resigning.await.unwrap_err().is_cancelled());
        lock.rollback().await.unwrap();
        until_blocked(&app, false).await;
        assert_eq!(app.game(&table.id, None).await, before);
        // Nothing of it keeps others from going on, and the answers that the next one gets are its own.
        app.play_random(&table, 3, 2).await;
        let loaded = store.load_game(id, &access, Scope::Read, None).await.unwrap();
        assert_eq!((loaded.game.id, u64::from(loaded.game.version)), (id, before["version"].as_u64().unwrap() + 2));
        app.post(table.path("/resignation")).by(&table.players[0]).expect(200).await;
        assert_replays_from_its_seed(&app, &table).await;
        store.close().await;
    }
}
