//! Who may know of a game: private games, their codes, and tables that spectators see only after the end.

use serde_json::{Value, json};

use crate::checks::operation;
use crate::helpers::{Player, Reply, TestApp};
use crate::outsiders::{body, operations, path_of};
use crate::play::{Chance, Table, short};

/// What an answer says besides what belongs to the exchange itself: the whole of it, for errors but their instance.
fn said(reply: &Reply) -> (u16, Vec<(String, String)>, Value) {
    let (status, headers, text) = reply.lasting();
    let headers = headers.into_iter().filter(|(name, _)| name != "content-length").collect();
    let mut body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if let Some(body) = body.as_object_mut() {
        body.shift_remove("instance");
    }
    (status, headers, body)
}

/// The operations of one game: id, method, path.
fn of_games() -> Vec<(String, String, String)> {
    let operations = operations().into_iter();
    operations.filter(|(_, _, path)| path == "/v1/games/{id}" || path.starts_with("/v1/games/{id}/")).collect()
}

fn code_of(game: &Value) -> String {
    game["invite"].as_str().expect("the creator sees the code").to_owned()
}

fn with_code(path: &str, code: &str) -> String {
    format!("{path}?invite={code}")
}

/// Whether the operation that gets this takes the code of a private game.
fn takes_code(path: &str) -> bool {
    let parameters = operation("GET", path).and_then(|operation| operation.value["parameters"].as_array());
    parameters.into_iter().flatten().any(|parameter| parameter["name"] == "invite")
}

/// Asks for everything about a game as an outsider, and for the same of a game that does not exist.
async fn assert_unknown(app: &TestApp, table: &Table, outsiders: &[(Option<&Player>, Option<&str>)], mv: &Value) {
    let nowhere = uuid::Uuid::now_v7().to_string();
    let someone = &table.players[0];
    for (operation, method, template) in of_games() {
        for (outsider, code) in outsiders {
            let ask = |game: &str| {
                let mut path = path_of(&template, game, &someone.id);
                let mut body = body(&operation, "n", mv, &someone.id);
                if let Some(code) = code {
                    match (&mut body, method.as_str()) {
                        (Some(body), _) if operation == "take_seat" => body["invite"] = json!(code),
                        (_, "GET") if takes_code(&path) => path = with_code(&path, code),
                        _ => {}
                    }
                }
                let call = app.call(&method, path).by_some(*outsider);
                match body {
                    Some(body) => call.json(&body),
                    None => call,
                }
            };
            let (real, none) = (ask(&table.id).send().await, ask(&nowhere).send().await);
            assert_eq!(said(&real), said(&none), "{operation}");
            // An operation that wants a token asks nobody for more.
            let wanted = if real.status == 401 { (401, outsider.is_none()) } else { (404, true) };
            assert_eq!((real.status, true), wanted, "{operation}: {}", real.text());
            if operation == "list_events" {
                let stream = |game: &str| ask(game).header("accept", "text/event-stream").send();
                let (real, none) = (stream(&table.id).await, stream(&nowhere).await);
                assert_eq!((said(&real), real.status), (said(&none), 404), "{operation}");
            }
        }
    }
}

/// The ids of all games of a list.
async fn listed(app: &TestApp, query: &str, viewer: Option<&Player>) -> Vec<String> {
    let page = app.get(format!("/v1/games?limit=100&{query}")).by_some(viewer).ok(200).await;
    page["items"].as_array().unwrap().iter().map(|game| game["id"].as_str().unwrap().to_owned()).collect()
}

/// Asks for every list that could have the game; whether each has it.
async fn lists_with(app: &TestApp, id: &str, player: &Player, viewer: Option<&Player>) -> Vec<bool> {
    let status = app.game(id, Some(player)).await["status"].as_str().unwrap().to_owned();
    let mut found = Vec::new();
    for status in [String::new(), format!("&status={status}")] {
        for ruleset in ["", "&ruleset=leopard"] {
            for of in [String::new(), format!("&player={}", player.id)] {
                let games = listed(app, &format!("{status}{ruleset}{of}"), viewer).await;
                found.push(games.iter().any(|game| game == id));
            }
        }
    }
    found
}

#[tokio::test]
async fn a_private_game_is_no_game_to_strangers_whatever_they_ask_at_every_stage() {
    let app = TestApp::new().await;
    let [ada, bo, stranger, declined] = app.players(4).await.try_into().unwrap();
    let other = app.create(&stranger, &json!({"ruleset": "leopard", "visibility": "private"})).await;
    let other = code_of(&other);
    let private = json!({"ruleset": "leopard", "visibility": "private"});
    for stage in ["open", "active", "finished", "aborted", "called off"] {
        let game = app.create(&ada, &private).await;
        let table = Table {
            id: game["id"].as_str().unwrap().to_owned(),
            ruleset: crate::play::ruleset("leopard"),
            players: vec![ada.clone(), bo.clone()],
        };
        let old = code_of(&game);
        app.post(table.path("/invitations")).by(&ada).json(&json!({"player": declined.id})).expect(201).await;
        app.get(table.path("")).by(&declined).expect(200).await;
        let gone = app.call("DELETE", table.path("/invitations/me")).by(&declined).expect(204).await;
        assert!(gone.bytes.is_empty());
        let code = code_of(&app.post(table.path("/invite")).by(&ada).ok(200).await);
        let mut mv = json!({"type": "discard"});
        if stage != "open" && stage != "called off" {
            app.post(table.path("/seats")).by(&bo).json(&json!({"invite": code})).expect(201).await;
            mv = app.legal_moves(&table.id, app.mover_and_other(&table).await.0).await[0].clone();
            app.play_random(&table, 1, 2).await;
        }
        match stage {
            "finished" => drop(app.post(table.path("/resignation")).by(&bo).ok(200).await),
            "aborted" => {
                app.post(table.path("/abort")).by(&ada).expect(200).await;
                app.post(table.path("/abort")).by(&bo).expect(200).await;
            }
            "called off" => drop(app.post(table.path("/abort")).by(&ada).ok(200).await),
            _ => {}
        }
        let before = app.game(&table.id, Some(&ada)).await;
        let outsiders = [
            (None, None),
            (Some(&stranger), None),
            (Some(&declined), None),
            (Some(&stranger), Some(old.as_str())),
            (Some(&stranger), Some(other.as_str())),
            (None, Some("")),
            (None, Some("%00")),
        ];
        assert_unknown(&app, &table, &outsiders, &mv).await;
        assert_eq!(app.game(&table.id, Some(&ada)).await, before, "{stage}: nobody has changed anything");
        for viewer in [None, Some(&stranger), Some(&declined)] {
            assert!(!lists_with(&app, &table.id, &ada, viewer).await.contains(&true), "{stage}");
            for player in [&ada, &bo] {
                assert!(!listed(&app, &format!("to_move={}", player.id), viewer).await.contains(&table.id), "{stage}");
            }
        }
        assert!(!lists_with(&app, &table.id, &ada, Some(&ada)).await.contains(&false), "{stage}");
        app.get(format!("/v1/invites/{old}")).by(&stranger).refused(404, "not-found").await;
        let seen = app.get(with_code(&table.path(""), &code)).by(&stranger).ok(200).await;
        assert_eq!((&seen["id"], &seen["invite"]), (&json!(table.id), &Value::Null), "{stage}");
        for path in ["/v1/me/turns", "/v1/me/invitations"] {
            assert_eq!(app.get(path).by(&stranger).ok(200).await["items"], json!([]), "{stage}");
        }
        let feed = app.get("/v1/me/events").by(&stranger).ok(200).await;
        assert!(!feed.to_string().contains(&table.id), "{stage}");
    }
}

#[tokio::test]
async fn limits_tell_a_stranger_nothing_of_a_private_game() {
    use governor::clock::{Clock, FakeRelativeClock};
    use tavola::config::LimitSettings;
    let clock = FakeRelativeClock::default();
    let settings = LimitSettings { limit_token: 1_000, limit_moves: 1_000, ..LimitSettings::NONE };
    let app = TestApp::limited(tavola::http::Limits::with_clock(&settings, move || clock.now().into())).await;
    let players = app.players(3).await;
    let private = json!({"ruleset": "leopard", "visibility": "private"});
    let table = app.table_like(&private, players[..2].to_vec()).await;
    // The first request of a token is another thing than those that follow.
    app.get("/v1/me").by(&players[2]).expect(200).await;
    let spent = |reply: &Reply| {
        let (status, headers, _) = reply.lasting();
        let names: Vec<String> = headers.into_iter().map(|(name, _)| name).collect();
        (status, names, reply.header("ratelimit-policy").map(str::to_owned))
    };
    let nowhere = format!("/v1/games/{}", uuid::Uuid::now_v7());
    let ask = |path: String| app.post(format!("{path}/moves")).by(&players[2]).json(&json!({"type": "discard"})).send();
    let (real, none) = (ask(table.path("")).await, ask(nowhere).await);
    assert_eq!((spent(&real), real.status), (spent(&none), 404));
}

#[tokio::test]
async fn whoever_has_the_code_sees_every_part_of_the_game_and_may_sit() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let game = app.create(&ada, &json!({"ruleset": "leonardo", "visibility": "private", "seats": 2})).await;
    let (id, code) = (game["id"].as_str().unwrap(), code_of(&game));
    let path = format!("/v1/games/{id}");
    app.forbid(&code);
    for holder in [Some(&cy), None] {
        // A code in the URL is no answer.
        let by_code = app.get(format!("/v1/invites/{code}")).by_some(holder).ok(200).await;
        assert_eq!(by_code, app.get(with_code(&path, &code)).by_some(holder).ok(200).await);
        assert_eq!((&by_code["id"], &by_code["invite"]), (&json!(id), &Value::Null));
    }
    app.post(format!("{path}/seats")).by(&bo).refused(404, "not-found").await;
    app.post(format!("{path}/seats")).by(&bo).json(&json!({"invite": "x"})).refused(404, "not-found").await;
    app.post(with_code(&format!("{path}/seats"), &code)).by(&bo).refused(400, "invalid-parameter").await;
    let problem =
        app.post(format!("{path}/seats")).by(&bo).json(&json!({"invite": null})).refused(400, "invalid-body").await;
    assert_eq!(problem["errors"][0]["pointer"], "/invite");
    app.post(format!("{path}/seats")).json(&json!({"invite": code})).refused(401, "unauthenticated").await;
    let seated = app.post(format!("{path}/seats")).by(&bo).json(&json!({"invite": code})).ok(201).await;
    assert_eq!(
        (&seated["status"], &seated["viewer"]["seat"], &seated["invite"]),
        (&json!("active"), &json!(1), &Value::Null)
    );
    app.post(format!("{path}/seats")).by(&cy).json(&json!({"invite": code})).refused(409, "game-not-open").await;
    let table =
        Table { id: id.to_owned(), ruleset: crate::play::ruleset("leonardo"), players: vec![ada.clone(), bo.clone()] };
    app.allow_all();
    app.play_random(&table, 3, 3).await;
    app.forbid(&code);
    for over in [false, true] {
        if over {
            app.post(format!("{path}/resignation")).by(&bo).expect(200).await;
        }
        for (operation, method, template) in of_games() {
            // Legal moves are for players alone.
            if method != "GET" || operation == "list_legal_moves" {
                continue;
            }
            let path = path_of(&template, id, &ada.id);
            for holder in [Some(&cy), None] {
                app.get(&path).by_some(holder).refused(404, "not-found").await;
                let reply = app.get(with_code(&path, &code)).by_some(holder).send().await;
                let wanted = if operation == "get_record" && !over { 409 } else { 200 };
                assert_eq!(reply.status, wanted, "{operation}: {}", reply.text());
            }
            app.get(&path).by(&bo).send().await;
        }
        let legal = with_code(&format!("{path}/legal-moves"), &code);
        app.get(legal).by(&cy).refused(400, "invalid-parameter").await;
        app.get(format!("{path}/legal-moves")).by(&cy).refused(404, "not-found").await;
    }
    app.allow_all();
    // To have the code is not to belong to the game.
    assert!(!lists_with(&app, id, &ada, Some(&cy)).await.contains(&true));
    assert_eq!(app.game(id, Some(&ada)).await["invite"], code.as_str());
}

#[tokio::test]
async fn a_code_is_changed_and_revoked_by_the_creator_alone() {
    let app = TestApp::new().await;
    let [ada, bo, cy, stranger] = app.players(4).await.try_into().unwrap();
    let game = app.create(&ada, &json!({"ruleset": "leonardo", "visibility": "private", "seats": 4})).await;
    let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
    let (invite, seats) = (format!("{path}/invite"), format!("{path}/seats"));
    let first = code_of(&game);
    assert!(first.len() == 24 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    app.post(&seats).by(&bo).json(&json!({"invite": first})).expect(201).await;
    for method in ["POST", "DELETE"] {
        app.call(method, &invite).refused(401, "unauthenticated").await;
        app.call(method, &invite).by(&bo).refused(403, "not-owner").await;
        app.call(method, &invite).by(&stranger).refused(404, "not-found").await;
        app.call(method, with_code(&invite, &first)).by(&stranger).refused(400, "invalid-parameter").await;
        app.call(method, &invite).by(&ada).at(7).refused(412, "stale-version").await;
    }
    let change = || app.post(&invite).by(&ada).key("change").expect(200);
    let changed = change().await;
    let second = code_of(&changed.json());
    assert!(second != first && changed.json()["version"] == 2);
    assert_eq!(change().await.lasting(), changed.lasting(), "the same request gives no third code");
    app.get(with_code(&path, &first)).by(&stranger).refused(404, "not-found").await;
    app.get(format!("/v1/invites/{first}")).refused(404, "not-found").await;
    app.post(&seats).by(&stranger).json(&json!({"invite": first})).refused(404, "not-found").await;
    app.get(with_code(&path, &second)).by(&stranger).expect(200).await;
    let revoked = app.call("DELETE", &invite).by(&ada).ok(200).await;
    assert_eq!((&revoked["invite"], &revoked["version"]), (&Value::Null, &json!(3)));
    for code in [first.as_str(), &second, "", "null", "%00", "../invites"] {
        app.get(with_code(&path, code)).by(&stranger).refused(404, "not-found").await;
        app.get(format!("/v1/invites/{}", code.replace('/', "%2F"))).refused(404, "not-found").await;
        if code != "%00" {
            app.post(&seats).by(&stranger).json(&json!({"invite": code})).refused(404, "not-found").await;
        }
    }
    app.post(&seats).by(&stranger).json(&json!({"invite": "\u{0}"})).refused(404, "not-found").await;
    // Who is in is in, and a new code lets others in again.
    app.get(&path).by(&bo).expect(200).await;
    let third = code_of(&app.post(&invite).by(&ada).ok(200).await);
    app.post(&seats).by(&cy).json(&json!({"invite": third})).expect(201).await;
    // A public game has none.
    let public = app.open(&ada, &json!({"ruleset": "leopard"})).await;
    assert_eq!(app.get(&public).by(&ada).ok(200).await["invite"], Value::Null);
    for method in ["POST", "DELETE"] {
        app.call(method, format!("{public}/invite")).by(&ada).refused(409, "game-not-private").await;
        app.call(method, format!("{public}/invite")).by(&bo).refused(403, "not-owner").await;
    }
    app.get(with_code(&public, "anything")).ok(200).await;
}

#[tokio::test]
async fn the_code_goes_with_the_creator_s_place() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let game = app.create(&ada, &json!({"ruleset": "leonardo", "visibility": "private", "seats": 4})).await;
    let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
    let code = code_of(&game);
    for player in [&bo, &cy] {
        app.post(format!("{path}/seats")).by(player).json(&json!({"invite": code})).expect(201).await;
    }
    let left = app.call("DELETE", format!("{path}/seats/me")).by(&ada).ok(200).await;
    assert_eq!((&left["creator_id"], &left["invite"]), (&json!(bo.id), &Value::Null));
    assert_eq!(app.get(&path).by(&bo).ok(200).await["invite"], code.as_str());
    assert_eq!(app.get(&path).by(&cy).ok(200).await["invite"], Value::Null);
    app.get(&path).by(&ada).refused(404, "not-found").await;
    assert_eq!(app.get(with_code(&path, &code)).by(&ada).ok(200).await["invite"], Value::Null);
    app.post(format!("{path}/invite")).by(&ada).refused(404, "not-found").await;
    let new = code_of(&app.post(format!("{path}/invite")).by(&bo).ok(200).await);
    app.get(with_code(&path, &code)).by(&ada).refused(404, "not-found").await;
    // Back by name, the first creator is not shown what is another's now, not even of the time when it was hers.
    app.post(format!("{path}/invitations")).by(&bo).json(&json!({"player": ada.id})).expect(201).await;
    app.forbid(&new);
    for seated in [false, true] {
        if seated {
            app.post(format!("{path}/seats")).by(&ada).json(&json!({})).expect(201).await;
        }
        app.get(&path).by(&ada).expect(200).await;
        app.get(format!("{path}/events?limit=100")).by(&ada).expect(200).await;
        app.get(format!("{path}/events?limit=100&after=1")).by(&ada).expect(200).await;
        app.get("/v1/games?player=me").by(&ada).expect(200).await;
        app.get("/v1/me/events").by(&ada).expect(200).await;
        app.get(format!("{path}/events?limit=100")).by(&cy).expect(200).await;
    }
    app.allow_all();
    let own = app.get(format!("{path}/events?limit=100")).by(&bo).ok(200).await;
    assert_eq!(own["items"].as_array().unwrap().last().unwrap()["changes"]["invite"], new.as_str());
}

#[tokio::test]
async fn nothing_of_a_private_game_may_be_kept_where_others_find_it() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    for visibility in ["public", "private"] {
        let table = app.table_like(&json!({"ruleset": "leopard", "visibility": visibility}), players.clone()).await;
        app.play_random(&table, 1, 3).await;
        app.post(table.path("/resignation")).by(&players[0]).expect(200).await;
        let code = app.game(&table.id, Some(&players[0])).await["invite"].as_str().unwrap_or_default().to_owned();
        for rest in ["/moves", "/moves/1", "/states/0", "/states/3", "/fairness"] {
            for call in [app.get(table.path(rest)).by(&players[1]), app.get(with_code(&table.path(rest), &code))] {
                let reply = call.expect(200).await;
                let kept = reply.header("cache-control").unwrap();
                assert_eq!(kept.contains("public"), visibility == "public", "{visibility} {rest}: {kept}");
                let varies =
                    reply.headers.get_all("vary").iter().any(|name| name.to_str().unwrap().contains("Authorization"));
                assert!(visibility == "public" || varies, "{visibility} {rest}");
            }
        }
    }
}

#[tokio::test]
async fn who_looks_on_at_an_after_end_game_sees_the_table_when_it_is_over() {
    let app = TestApp::new().await;
    let spectator = app.register("Onlooker").await;
    for (slug, seats) in [("leonardo", 3), ("quintis-fontis", 2), ("leopard", 2), ("siggil", 2)] {
        let wanted = json!({"ruleset": slug, "options": short(slug), "spectators": "after_end"});
        let table = app.table_like(&wanted, app.players(seats).await).await;
        // To their players both kinds look the same.
        let mut chance = Chance(5);
        for number in 1..=4 {
            app.play_one(&table, &mut chance).await;
            for viewer in [None, Some(&spectator)] {
                let seen = app.game(&table.id, viewer).await;
                assert_eq!((&seen["state"], &seen["moves_count"]), (&Value::Null, &json!(number)), "{slug}");
                assert!(seen["to_move"]["seat"].is_u64());
                for rest in [
                    "/moves".into(),
                    "/moves/1".into(),
                    format!("/moves/{}", number + 9),
                    "/states/0".into(),
                    format!("/states/{number}"),
                    "/states/0?perspective=spectator".into(),
                    "/states/0?perspective=all".into(),
                    "/states/0?perspective=0".into(),
                    "/states/0?perspective=me".into(),
                ] {
                    app.get(table.path(&rest)).by_some(viewer).refused(403, "not-seated").await;
                }
                let events = app.events(&table.id, viewer, 3).await;
                assert_eq!(events.iter().filter(|event| event["type"] == "move_played").count(), number);
                assert!(events.iter().all(|event| event.get("move").is_none()), "{slug}");
                assert!(events.iter().all(|event| event["changes"].get("state").is_none_or(Value::is_null)), "{slug}");
                let mut stream = app.follow(&table.id, viewer, None, crate::follow::Form::Lines).await;
                assert_eq!(stream.next().await.unwrap()["game"]["state"], Value::Null);
            }
            for (seat, player) in table.players.iter().enumerate() {
                let seen = app.game(&table.id, Some(player)).await;
                assert!(seen["state"]["seats"][seat]["hand"].is_array(), "{slug}: their own hand");
                assert!(seen["state"]["seats"][(seat + 1) % seats]["hand"].is_null(), "{slug}: not another's");
                assert_eq!(app.log(&table, Some(player)).await.len(), number);
                app.get(table.path("/states/1")).by(player).expect(200).await;
                app.get(table.path("/states/1?perspective=spectator")).by(player).expect(200).await;
                app.get(table.path("/states/1?perspective=all")).by(player).refused(403, "not-seated").await;
                let events = app.events(&table.id, Some(player), 100).await;
                let moves = events.iter().filter(|event| event["type"] == "move_played");
                assert!(moves.clone().count() == number && moves.clone().all(|event| event["move"]["number"].is_u64()));
            }
        }
        // Even the one who left still sits there.
        for player in &table.players[1..] {
            app.post(table.path("/resignation")).by(player).send().await;
        }
        let _ = app.post(table.path("/resignation")).by(&table.players[0]).send().await;
        for viewer in [None, Some(&spectator)] {
            let seen = app.game(&table.id, viewer).await;
            assert_eq!(seen["status"], "finished");
            assert_eq!(seen["state"], app.game(&table.id, Some(&table.players[0])).await["state"], "{slug}");
            assert_eq!(app.log(&table, viewer).await, app.log(&table, Some(&table.players[0])).await);
            for rest in ["/moves/1", "/states/0", "/states/4", "/states/2?perspective=0", "/record"] {
                app.get(table.path(rest)).by_some(viewer).expect(200).await;
            }
            let last = app.events(&table.id, viewer, 100).await.pop().unwrap();
            assert_eq!((&last["type"], &last["changes"]["state"]), (&json!("game_finished"), &seen["state"]));
        }
    }
    let problem = app.post("/v1/games").by(&spectator).json(&json!({"ruleset": "leopard", "spectators": "never"}));
    assert_eq!(problem.refused(400, "invalid-body").await["errors"][0]["pointer"], "/spectators");
}
