//! A game's past: its states from every perspective, its fairness, its record.

use serde_json::{Value, json};
use tavola::game::Record;
use tavola::rulesets::registry::RulesetId;

use crate::helpers::{Player, TestApp};
use crate::play::{Chance, short};

const FOR_EVER: &str = "public, max-age=31536000, immutable";

#[tokio::test]
async fn every_past_state_is_what_its_viewer_saw_then() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        let seats = if ruleset.meta().seats.contains(&3) { 3 } else { 2 };
        let table = app.table(slug, &short(slug), seats).await;
        let mut chance = Chance(5);
        let stranger = app.players(1).await.remove(0);
        let viewers: Vec<Option<&Player>> = table.players.iter().map(Some).chain([Some(&stranger), None]).collect();
        // What each saw when it happened.
        let mut seen: Vec<Vec<Value>> = Vec::new();
        for _ in 0..8 {
            let mut row = Vec::new();
            for viewer in &viewers {
                row.push(app.game(&table.id, *viewer).await["state"].clone());
            }
            seen.push(row);
            app.play_one(&table, &mut chance).await;
        }
        for (number, row) in seen.iter().enumerate() {
            for (viewer, state) in viewers.iter().zip(row) {
                let path = table.path(&format!("/states/{number}"));
                let reply = app.get(path.as_str()).by_some(*viewer).expect(200).await;
                assert_eq!(&reply.json()["state"], state, "{slug}, state {number}");
                assert_eq!(reply.header("cache-control"), Some("no-cache"));
                assert!(reply.json()["outcome"].is_null());
                let open = app.get(format!("{path}?perspective=spectator")).by_some(*viewer).ok(200).await;
                assert_eq!(open["state"], *row.last().unwrap(), "a spectator's view is the same to all");
            }
        }
        let game = app.play_to_the_end(&table, 6).await;
        let last = game["moves_count"].as_u64().unwrap();
        // Now everything is open, and what a seat saw can be asked for by anybody.
        for (number, row) in seen.iter().enumerate() {
            for (seat, state) in row[..table.players.len()].iter().enumerate() {
                let path = table.path(&format!("/states/{number}?perspective={seat}"));
                let reply = app.get(path).expect(200).await;
                assert_eq!(reply.json()["state"], *state, "{slug}, state {number}, seat {seat}");
                assert_eq!(reply.header("cache-control"), Some(FOR_EVER));
            }
        }
        let end = app.get(table.path(&format!("/states/{last}"))).ok(200).await;
        assert_eq!(
            (&end["perspective"], &end["state"], &end["outcome"]),
            (&json!("all"), &game["state"], &game["outcome"])
        );
        assert!(end["to_move"].is_null());
        let before = app.get(table.path(&format!("/states/{}", last - 1))).ok(200).await;
        assert!(before["outcome"].is_null() && before["to_move"].is_u64(), "{slug}: {before}");
        let mine = app.get(table.path("/states/0?perspective=me")).by(&table.players[1]).expect(200).await;
        assert_eq!((&mine.json()["state"], mine.header("cache-control")), (&seen[0][1], Some("no-cache")));
    }
}

#[tokio::test]
async fn nobody_sees_from_anothers_seat_while_the_game_is_played() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &short("leopard"), 2).await;
    let stranger = app.players(1).await.remove(0);
    let path = |perspective: &str| table.path(&format!("/states/0?perspective={perspective}"));
    for (viewer, perspective) in [
        (Some(&table.players[0]), "1"),
        (Some(&table.players[0]), "all"),
        (Some(&stranger), "0"),
        (Some(&stranger), "all"),
        (Some(&stranger), "me"),
        (None, "0"),
        (None, "all"),
        (None, "me"),
    ] {
        app.get(path(perspective)).by_some(viewer).refused(403, "not-seated").await;
    }
    let own = app.get(path("0")).by(&table.players[0]).ok(200).await;
    assert_eq!(own["state"], app.get(path("me")).by(&table.players[0]).ok(200).await["state"]);
    for perspective in ["2", "-1", "00", "everything", "", "256"] {
        app.get(path(perspective)).refused(400, "invalid-parameter").await;
    }
    for number in ["1", "2147483647"] {
        app.get(table.path(&format!("/states/{number}"))).refused(404, "not-found").await;
    }
    for number in ["-1", "2147483648", "abc", "1.0"] {
        app.get(table.path(&format!("/states/{number}"))).refused(400, "invalid-parameter").await;
    }
    // A game that has not started has no states.
    let ada = app.players(1).await.remove(0);
    let open = app.create(&ada, &json!({"ruleset": "leopard"})).await;
    app.get(format!("/v1/games/{}/states/0", open["id"].as_str().unwrap())).by(&ada).refused(404, "not-found").await;
}

#[tokio::test]
async fn the_seeds_are_told_when_the_game_is_over() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let created =
        app.create(&players[0], &json!({"ruleset": "leopard", "entropy": "ключ", "options": {"hands": 1}})).await;
    let id = created["id"].as_str().unwrap();
    let path = format!("/v1/games/{id}/fairness");
    let open = app.get(path.as_str()).ok(200).await;
    let expected = json!({"commitment": created["commitment"], "server_seed": null, "game_seed": null,
                          "entropies": ["ключ"], "lot": null});
    assert_eq!(open, expected);
    app.post(format!("/v1/games/{id}/seats")).by(&players[1]).json(&json!({"entropy": "b"})).ok(201).await;
    let active = app.get(path.as_str()).by(&players[0]).ok(200).await;
    assert_eq!((&active["server_seed"], &active["game_seed"]), (&Value::Null, &Value::Null));
    assert_eq!(active["entropies"], json!(["ключ", "b"]));
    let dealer = app.game(id, None).await["state"]["dealer"].clone();
    assert_eq!(active["lot"], dealer);
    app.get(format!("/v1/games/{id}/record")).by(&players[0]).refused(409, "game-not-finished").await;
    app.post(format!("/v1/games/{id}/resignation")).by(&players[1]).expect(200).await;
    let reply = app.get(path.as_str()).expect(200).await;
    assert_eq!(reply.header("cache-control"), Some(FOR_EVER));
    let over = reply.json();
    let seed: [u8; 32] = hex::decode(over["server_seed"].as_str().unwrap()).unwrap().try_into().unwrap();
    assert_eq!(hex::encode(tavola::rulesets::random::commitment(&seed)), created["commitment"].as_str().unwrap());
    let game_seed = tavola::rulesets::random::game_seed(&seed, id, "leopard", ["ключ", "b"]);
    assert_eq!(over["game_seed"], hex::encode(game_seed));
    // One that never started keeps its seed.
    let unstarted = app.create(&players[0], &json!({"ruleset": "leopard"})).await;
    let path = format!("/v1/games/{}", unstarted["id"].as_str().unwrap());
    app.call("DELETE", format!("{path}/seats/me")).by(&players[0]).expect(200).await;
    let fairness = app.get(format!("{path}/fairness")).ok(200).await;
    assert!(fairness["server_seed"].is_null() && fairness["game_seed"].is_null() && fairness["lot"].is_null());
    app.get(format!("{path}/record")).refused(409, "game-not-finished").await;
}

#[tokio::test]
async fn a_record_of_every_ruleset_verifies() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        for resigned in [false, true] {
            let table = app.table(slug, &short(slug), 2).await;
            let game = if resigned {
                app.play_random(&table, 3, 4).await;
                app.post(table.path("/resignation")).by(&table.players[1]).ok(200).await
            } else {
                app.play_to_the_end(&table, 3).await
            };
            let reply = app.get(table.path("/record")).expect(200).await;
            let record = Record::read(&reply.bytes).unwrap();
            record.verify().unwrap_or_else(|error| panic!("{slug}: {error}"));
            let json = reply.json();
            assert_eq!((&json["outcome"], &json["server_seed"]), (&game["outcome"], &game["server_seed"]));
            assert_eq!(json["moves"].as_array().unwrap().len() as u64, game["moves_count"].as_u64().unwrap());
        }
    }
}
