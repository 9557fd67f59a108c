//! The same once more: a game that follows another.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::helpers::{Player, Reply, TestApp};
use crate::play::{Table, micros, short};

/// Who sits, or is invited, where: ids in order of seat.
fn order(game: &Value) -> Vec<String> {
    let parts = ["seats", "invitations"].map(|part| game[part].as_array().unwrap().clone());
    let mut lines: Vec<(u64, String)> = parts
        .iter()
        .flatten()
        .map(|line| (line["seat"].as_u64().unwrap(), line["player"]["id"].as_str().unwrap().to_owned()))
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, id)| id).collect()
}

/// A game that its players have left until it was over.
async fn over(app: &TestApp, wanted: &Value, players: &[Player]) -> Table {
    let table = app.table_like(wanted, players.to_vec()).await;
    resign_all(app, &table).await;
    table
}

async fn resign_all(app: &TestApp, table: &Table) {
    for player in &table.players {
        if app.game(&table.id, Some(player)).await["status"] == "active" {
            app.post(table.path("/resignation")).by(player).expect(200).await;
        }
    }
}

async fn rematch(app: &TestApp, table: &Table, player: &Player) -> Reply {
    app.post(table.path("/rematch")).by(player).json(&json!({})).send().await
}

#[tokio::test]
async fn a_rematch_is_the_same_game_with_everybody_a_seat_further() {
    let app = TestApp::new().await;
    let players = app.players(4).await;
    let clock = json!({"kind": "bank", "seconds": 600, "increment": 5});
    for seats in [2, 3, 4] {
        let wanted = json!({"ruleset": "leonardo", "options": {"turn_limit": 9}, "spectators": "after_end", "clock": clock, "entropy": "old"});
        let table = over(&app, &wanted, &players[..seats]).await;
        let old = app.game(&table.id, None).await;
        let by = &players[1];
        let reply = app.post(table.path("/rematch")).by(by).json(&json!({"entropy": "new"})).expect(201).await;
        let game = reply.json();
        assert_eq!(reply.header("location"), Some(format!("/v1/games/{}", game["id"].as_str().unwrap()).as_str()));
        for member in ["ruleset", "options", "clock", "spectators", "visibility", "seat_count", "rules_version"] {
            assert_eq!(game[member], old[member], "{member}");
        }
        assert_eq!(
            (&game["status"], &game["version"], &game["creator_id"]),
            (&json!("open"), &json!(0), &json!(by.id))
        );
        assert!(game["commitment"] != old["commitment"] && game["rematch_id"].is_null());
        assert_eq!((&game["seats"][0]["entropy"], game["seats"].as_array().unwrap().len()), (&json!("new"), 1));
        let expected: Vec<String> = (0..seats).map(|seat| players[(seat + seats - 1) % seats].id.clone()).collect();
        assert_eq!(order(&game), expected);
        for kept in game["invitations"].as_array().unwrap() {
            assert_eq!(micros(&kept["expires_at"]) - micros(&game["created_at"]), 604_800_000_000, "a week");
        }
        // The old game tells of it.
        let told = app.game(&table.id, None).await;
        assert_eq!(
            (&told["rematch_id"], &told["version"]),
            (&game["id"], &json!(old["version"].as_u64().unwrap() + 1))
        );
        let event = app.events(&table.id, None, 100).await.pop().unwrap();
        assert_eq!((&event["type"], &event["changes"]["rematch_id"]), (&json!("rematch_created"), &game["id"]));
        assert_eq!(told["outcome"], old["outcome"]);
        // The others take their seats by asking for the same; whoever sits in it is shown it.
        for (place, player) in players[..seats].iter().enumerate() {
            let reply = rematch(&app, &table, player).await;
            assert_eq!(reply.status, if place == 1 { 200 } else { 201 }, "{}", reply.text());
            let seen = reply.json();
            assert_eq!((&seen["id"], &seen["viewer"]["seat"]), (&game["id"], &json!((place + 1) % seats)));
        }
        let id = game["id"].as_str().unwrap();
        let begun = app.game(id, Some(by)).await;
        assert_eq!((&begun["status"], order(&begun), &begun["invitations"]), (&json!("active"), expected, &json!([])));
        for player in &players[..seats] {
            assert_eq!(rematch(&app, &table, player).await.status, 200);
        }
        assert_eq!(app.game(&table.id, None).await, told, "nothing has changed since");
        // And once more.
        let next = Table { id: id.to_owned(), ruleset: table.ruleset, players: players[..seats].to_vec() };
        resign_all(&app, &next).await;
        let third = rematch(&app, &next, &players[0]).await.json();
        let expected: Vec<String> = (0..seats).map(|seat| players[(seat + 2 * seats - 2) % seats].id.clone()).collect();
        assert_eq!(order(&third), expected);
    }
}

#[tokio::test]
async fn who_has_no_business_with_it_or_comes_too_early_gets_no_rematch() {
    let app = TestApp::new().await;
    let [ada, bo, stranger] = app.players(3).await.try_into().unwrap();
    for visibility in ["public", "private"] {
        let wanted = json!({"ruleset": "leopard", "visibility": visibility});
        let ask = |path: &str, player: &Player| app.post(format!("{path}/rematch")).by(player).json(&json!({}));
        let (status, code) = if visibility == "public" { (403, "not-seated") } else { (404, "not-found") };
        let open = app.open(&ada, &wanted).await;
        app.post(format!("{open}/rematch")).json(&json!({})).refused(401, "unauthenticated").await;
        ask(&open, &ada).refused(409, "game-not-finished").await;
        ask(&open, &stranger).refused(status, code).await;
        app.post(format!("{open}/invitations")).by(&ada).json(&json!({"player": bo.id})).expect(201).await;
        ask(&open, &bo).refused(403, "not-seated").await;
        // A game that has never begun cannot be had once more.
        app.post(format!("{open}/abort")).by(&ada).expect(200).await;
        ask(&open, &ada).refused(409, "game-not-finished").await;

        let table = app.table_like(&wanted, vec![ada.clone(), bo.clone()]).await;
        ask(&table.path(""), &ada).refused(409, "game-not-finished").await;
        ask(&table.path(""), &stranger).refused(status, code).await;
        app.post(table.path("/resignation")).by(&ada).expect(200).await;
        let version = app.game(&table.id, Some(&ada)).await["version"].clone();
        ask(&table.path(""), &stranger).refused(status, code).await;
        let long = json!({"entropy": "x".repeat(65)});
        let problem = app.post(table.path("/rematch")).by(&bo).json(&long).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/entropy");
        let problem =
            app.post(table.path("/rematch")).by(&bo).json(&json!({"seats": 3})).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/seats");
        assert_eq!(app.game(&table.id, Some(&ada)).await["version"], version);
        ask(&table.path(""), &bo).expect(201).await;
        // That there is one now changes nothing for others.
        ask(&table.path(""), &stranger).refused(status, code).await;
    }
}

#[tokio::test]
async fn both_at_once_get_one_game_and_play() {
    let app = TestApp::with(2, 8).await;
    for seats in [2, 3] {
        for _ in 0..5 {
            let players = app.players(seats).await;
            let table = over(&app, &json!({"ruleset": "leonardo"}), &players).await;
            let before = app.count("select count(*) from games").await;
            let replies = join_all((0..10).map(|place| rematch(&app, &table, &players[place % seats]))).await;
            assert_eq!(app.count("select count(*) from games").await, before + 1);
            let id = replies[0].json()["id"].as_str().unwrap().to_owned();
            for reply in &replies {
                assert!(matches!(reply.status, 200 | 201), "{}", reply.text());
                assert_eq!(reply.json()["id"], id.as_str());
            }
            assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), seats, "each took a seat once");
            let game = app.game(&id, None).await;
            assert_eq!((&game["status"], &game["version"]), (&json!("active"), &json!(seats - 1)));
            assert_eq!(app.game(&table.id, None).await["rematch_id"], id.as_str());
            let kinds = app.kinds(&table.id, None).await;
            assert_eq!(kinds.iter().filter(|kind| *kind == "rematch_created").count(), 1);
        }
    }
}

#[tokio::test]
async fn a_repeated_wish_under_a_key_is_answered_alike() {
    let app = TestApp::with(2, 8).await;
    let players = app.players(2).await;
    let table = over(&app, &json!({"ruleset": "leopard"}), &players).await;
    for (place, player) in players.iter().enumerate() {
        let ask = || app.post(table.path("/rematch")).by(player).key("again").json(&json!({"entropy": "e"})).send();
        let replies = join_all((0..10).map(|_| ask())).await;
        assert_eq!(replies.iter().filter(|reply| !reply.is_replay()).count(), 1);
        for reply in &replies {
            assert_eq!((reply.status, reply.lasting()), (201, replies[0].lasting()), "player {place}");
        }
        let other = app.post(table.path("/rematch")).by(player).key("again").json(&json!({"entropy": "f"}));
        other.refused(422, "idempotency-key-reused").await;
    }
    assert_eq!(app.count("select count(*) from games").await, 2);
}

#[tokio::test]
async fn whoever_declines_may_find_the_seat_taken() {
    let app = TestApp::new().await;
    let players = app.players(4).await;
    let stranger = &players[3];
    for visibility in ["public", "private"] {
        let table = over(&app, &json!({"ruleset": "leonardo", "visibility": visibility}), &players[..3]).await;
        let game = rematch(&app, &table, &players[0]).await.json();
        let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
        app.call("DELETE", format!("{path}/invitations/me")).by(&players[2]).expect(204).await;
        if visibility == "private" {
            // A private game stays private, under a code of its own.
            let old = app.game(&table.id, Some(&players[0])).await;
            assert!(game["invite"].is_string() && game["invite"] != old["invite"]);
            assert_eq!(old["rematch_id"], game["id"]);
            app.get(&path).by(stranger).refused(404, "not-found").await;
            app.get(&path).by(&players[2]).refused(404, "not-found").await;
            assert_eq!(app.get(&path).by(&players[1]).ok(200).await["invite"], Value::Null);
            app.post(table.path("/rematch")).by(&players[2]).json(&json!({})).refused(409, "seat-taken").await;
            let code = json!({"invite": game["invite"]});
            app.post(format!("{path}/seats")).by(&players[2]).json(&code).expect(201).await;
            assert_eq!(rematch(&app, &table, &players[2]).await.status, 200);
        } else {
            app.post(format!("{path}/seats")).by(stranger).json(&json!({})).expect(201).await;
            app.post(table.path("/rematch")).by(&players[2]).json(&json!({})).refused(409, "seat-taken").await;
            assert_eq!(rematch(&app, &table, &players[1]).await.json()["status"], "active");
            app.post(table.path("/rematch")).by(&players[2]).json(&json!({})).refused(409, "game-not-open").await;
        }
    }
}

#[tokio::test]
async fn alone_one_begins_anew_at_once_and_after_an_abort_too() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let solo = over(&app, &json!({"ruleset": "siggil"}), &players[..1]).await;
    let game = rematch(&app, &solo, &players[0]).await;
    assert_eq!((game.status, &game.json()["status"]), (201, &json!("active")));
    assert!(game.json()["state"].is_object());
    assert_eq!(rematch(&app, &solo, &players[0]).await.status, 200);
    for slug in ["leonardo", "quintis-fontis", "leopard", "siggil"] {
        let table = app.table_like(&json!({"ruleset": slug, "options": short(slug)}), players.clone()).await;
        for player in &players {
            app.post(table.path("/abort")).by(player).expect(200).await;
        }
        assert_eq!(rematch(&app, &table, &players[1]).await.status, 201, "{slug}");
        assert_eq!(rematch(&app, &table, &players[0]).await.json()["status"], "active", "{slug}");
    }
}
