//! Games: creating, looking at one, lists.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;

use crate::helpers::{Player, TestApp};

fn id(game: &Value) -> &str {
    game["id"].as_str().expect("a game has an id")
}

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().expect("a page has items").iter().map(|game| id(game).to_owned()).collect()
}

#[tokio::test]
async fn a_new_game_waits_with_its_creator_in_seat_0() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        let body = json!({"ruleset": slug, "entropy": "sésame 7"});
        let reply = app.post("/v1/games").by(&ada).json(&body).expect(201).await;
        let game = reply.json();
        assert_eq!(reply.header("location"), Some(format!("/v1/games/{}", id(&game)).as_str()));
        assert_eq!(reply.header("etag"), Some("\"0\""));
        assert_eq!(game["ruleset"], slug);
        assert_eq!((&game["status"], &game["version"], &game["seat_count"]), (&json!("open"), &json!(0), &json!(2)));
        assert_eq!(game["seats"].as_array().unwrap().len(), 1);
        assert_eq!(game["seats"][0]["player"], json!({"id": ada.id, "name": "Ada", "kind": "human"}));
        assert_eq!(game["seats"][0]["entropy"], "sésame 7");
        assert_eq!((&game["creator_id"], &game["viewer"]), (&json!(ada.id), &json!({"seat": 0})));
        for member in ["to_move", "server_seed", "started_at", "finished_at", "outcome", "state"] {
            assert!(game[member].is_null(), "{member}: {game}");
        }
        // The options are shown with all their defaults.
        assert!(game["options"].as_object().is_some_and(|options| !options.is_empty()), "{game}");
        assert_eq!(app.game(id(&game), Some(&ada)).await, game, "it is kept as it was answered");
    }
}

#[tokio::test]
async fn a_solo_game_starts_at_once() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let game = app.create(&ada, &json!({"ruleset": "siggil", "seats": 1})).await;
    assert_eq!((&game["status"], &game["version"]), (&json!("active"), &json!(0)));
    assert_eq!(game["to_move"]["seat"], 0);
    assert!(game["state"].is_object() && game["started_at"].is_string(), "{game}");
    assert!(!app.legal_moves(id(&game), &ada).await.is_empty());
}

#[tokio::test]
async fn the_number_of_seats_must_suit_the_ruleset() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for ruleset in RulesetId::ALL {
        let meta = ruleset.meta();
        for seats in [0, meta.seats.start() - 1, meta.seats.end() + 1, 255] {
            let body = json!({"ruleset": meta.slug, "seats": seats});
            let problem = app.post("/v1/games").by(&ada).json(&body).refused(400, "invalid-body").await;
            assert_eq!(problem["errors"][0]["pointer"], "/seats", "{}: {seats}", meta.slug);
        }
        for seats in meta.seats.clone() {
            let game = app.create(&ada, &json!({"ruleset": meta.slug, "seats": seats})).await;
            assert_eq!(game["seat_count"], seats);
        }
    }
    for seats in ["256", "-1", "2.5", "1e1", "4294967298", "18446744073709551618", "\"2\"", "[2]"] {
        let body = format!(r#"{{"ruleset": "leonardo", "seats": {seats}}}"#);
        let problem = app.post("/v1/games").by(&ada).text(body).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/seats", "{seats}");
    }
}

#[tokio::test]
async fn options_that_do_not_suit_the_ruleset_are_pointed_at() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let cases = [
        ("leopard", json!({"hands": 0}), vec!["/hands"]),
        ("leopard", json!({"hands": 13}), vec!["/hands"]),
        ("leopard", json!({"hands": "2"}), vec!["/hands"]),
        ("leopard", json!({"hands": -1}), vec!["/hands"]),
        ("leopard", json!({"hands": 1u64 << 40}), vec!["/hands"]),
        ("leopard", json!({"hands": 2, "target_points": 10}), vec!["/target_points"]),
        ("leopard", json!({"target_points": 101}), vec!["/target_points"]),
        ("leopard", json!({"scoring": "1999"}), vec!["/scoring"]),
        ("leopard", json!({"hands": 0, "scoring": 1962}), vec!["/scoring"]),
        ("leopard", json!({"colour": "red", "hads": 2}), vec!["/colour", "/hads"]),
        ("leopard", json!({"a/b~c": 1}), vec!["/a~1b~0c"]),
        ("leopard", json!({"": 1}), vec!["/"]),
        ("leopard", json!({"\0": 1}), vec!["/\0"]),
        ("leonardo", json!({"turn_limit": 0}), vec!["/turn_limit"]),
        ("leonardo", json!({"turn_limit": 10_001}), vec!["/turn_limit"]),
        ("leonardo", json!({"hands": 2}), vec!["/hands"]),
        ("quintis-fontis", json!({"diagonals": "yes"}), vec!["/diagonals"]),
        ("siggil", json!({"layout": "square"}), vec!["/layout"]),
        ("siggil", json!({"difficulty": "hard"}), vec!["/difficulty"]),
    ];
    for (ruleset, options, pointers) in cases {
        let body = json!({"ruleset": ruleset, "options": options});
        let problem = app.post("/v1/games").by(&ada).json(&body).refused(422, "invalid-options").await;
        let told: Vec<&str> =
            problem["errors"].as_array().unwrap().iter().filter_map(|e| e["pointer"].as_str()).collect();
        assert_eq!(told, pointers, "{ruleset} {options}: {problem}");
    }
    assert_eq!(app.count("select count(*) from games").await, 0, "nothing was made");
    let game = app.create(&ada, &json!({"ruleset": "leonardo", "options": {"turn_limit": null}})).await;
    assert_eq!(game["options"]["turn_limit"], Value::Null, "null is a value: no limit");
}

#[tokio::test]
async fn entropy_is_short_and_printable_and_taken_as_it_is() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for entropy in ["x".repeat(65), "é".repeat(65), "a\nb".into(), "\0".into(), "\u{85}".into(), "\u{7f}".into()] {
        let body = json!({"ruleset": "leopard", "entropy": entropy});
        let problem = app.post("/v1/games").by(&ada).json(&body).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/entropy", "{entropy:?}");
    }
    for entropy in ["é".repeat(64), "  a  ".into(), "🂡".repeat(64), String::new(), "e\u{301}".into(), "\u{202e}".into()]
    {
        let game = app.create(&ada, &json!({"ruleset": "leopard", "entropy": entropy})).await;
        assert_eq!(game["seats"][0]["entropy"], entropy);
    }
}

#[tokio::test]
async fn a_game_of_what_is_no_ruleset_is_refused() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for ruleset in ["", "chess", "Leopard", "leopard ", "quintis_fontis", "leopard\0"] {
        let body = json!({"ruleset": ruleset});
        let problem = app.post("/v1/games").by(&ada).json(&body).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/ruleset", "{ruleset:?}");
    }
    app.post("/v1/games").by(&ada).json(&json!({})).refused(400, "invalid-body").await;
    app.post("/v1/games").by(&ada).refused(400, "invalid-body").await;
    app.post("/v1/games").json(&json!({"ruleset": "leopard"})).refused(401, "unauthenticated").await;
    app.post("/v1/games").token("x").json(&json!({"ruleset": "leopard"})).refused(401, "unauthenticated").await;
}

#[tokio::test]
async fn an_unchanged_game_costs_no_body() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let path = table.path("");
    let reply = app.get(&path).expect(200).await;
    assert_eq!(reply.header("etag"), Some("\"1\""), "creation was 0, the second player came with 1");
    assert!(reply.header("vary").is_some_and(|vary| vary.to_lowercase().contains("authorization")));
    for tags in ["\"1\"", "W/\"1\"", "\"0\", \"1\"", "\"x\" , W/\"1\"", "*", "\"0\",\"1\",\"2\"", "  \"1\"  "] {
        let reply = app.get(&path).by(&table.players[0]).header("if-none-match", tags).expect(304).await;
        assert_eq!(reply.header("etag"), Some("\"1\""), "{tags}");
        assert!(reply.bytes.is_empty());
        assert!(reply.header("vary").is_some());
    }
    for tags in ["\"0\"", "1", "\"10\"", "", "W/\"0\"", "\"1", "'1'", "\"01\"", "\"*\""] {
        app.get(&path).header("if-none-match", tags).expect(200).await;
    }
    // Several header lines are one list.
    app.get(&path).header("if-none-match", "\"7\"").header("if-none-match", "\"1\"").expect(304).await;
    app.get(&path).header("if-none-match", b"\xff\"1\"".to_vec()).expect(200).await;

    // After a move the tag is another one.
    app.play_one(&table, &mut crate::play::Chance(1)).await;
    let reply = app.get(&path).header("if-none-match", "\"1\"").expect(200).await;
    assert_eq!(reply.header("etag"), Some("\"2\""));
    // Whoever may not see the game learns nothing from a tag.
    app.get(&path).token("x").header("if-none-match", "\"2\"").refused(401, "unauthenticated").await;
}

#[tokio::test]
async fn a_tag_opens_no_private_game() {
    let app = TestApp::new().await;
    let [ada, bo, cleo, dan] = <[Player; 4]>::try_from(app.players(4).await).unwrap();
    let table = json!({"ruleset": "leonardo", "seats": 3, "visibility": "private"});
    let game = app.create(&ada, &table).await;
    let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
    let code = game["invite"].as_str().unwrap();
    app.post(format!("{path}/seats")).by(&bo).json(&json!({"invite": code})).expect(201).await;
    app.post(format!("{path}/invitations")).by(&ada).json(&json!({"player": cleo.id})).expect(201).await;
    let opened = format!("{path}?invite={code}");
    let tag = app.get(&path).by(&ada).expect(200).await.header("etag").unwrap().to_owned();
    for tag in [tag.as_str(), "*"] {
        for player in [&ada, &bo, &cleo] {
            app.get(&path).by(player).header("if-none-match", tag).expect(304).await;
        }
        app.get(&path).by(&dan).header("if-none-match", tag).refused(404, "not-found").await;
        app.get(&path).header("if-none-match", tag).refused(404, "not-found").await;
        app.get(format!("{path}?invite=x")).by(&dan).header("if-none-match", tag).refused(404, "not-found").await;
        app.get(&opened).by(&dan).header("if-none-match", tag).expect(304).await;
        app.get(&opened).header("if-none-match", tag).expect(304).await;
    }
    let unknown = format!("/v1/games/{}", uuid::Uuid::now_v7());
    app.get(unknown).by(&ada).header("if-none-match", "*").refused(404, "not-found").await;
    // Who has left it no longer belongs.
    app.call("DELETE", format!("{path}/seats/me")).by(&bo).expect(200).await;
    app.get(&path).by(&bo).header("if-none-match", "*").refused(404, "not-found").await;
}

#[tokio::test]
async fn an_unknown_game_is_not_found_for_everybody_and_every_operation() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let unknown = uuid::Uuid::now_v7();
    let mut bodies = BTreeSet::new();
    let calls = [
        ("GET", "", false),
        ("GET", "/moves", false),
        ("GET", "/moves/1", false),
        ("GET", "/legal-moves", true),
        ("POST", "/moves", true),
        ("POST", "/seats", true),
        ("DELETE", "/seats/me", true),
        ("POST", "/start", true),
        ("POST", "/resignation", true),
    ];
    for (method, rest, body) in calls {
        let mut call = app.call(method, format!("/v1/games/{unknown}{rest}")).by(&ada).header("if-match", "\"0\"");
        if body && method == "POST" {
            call = call.json(&json!({}));
        }
        let mut problem = call.refused(404, "not-found").await;
        problem["instance"] = Value::Null;
        bodies.insert(problem.to_string());
    }
    assert_eq!(bodies.len(), 1, "what is not there looks the same everywhere: {bodies:?}");
    for rest in ["", "/moves", "/moves/1", "/legal-moves"] {
        app.get(format!("/v1/games/7{rest}")).by(&ada).refused(400, "invalid-parameter").await;
    }
}

/// Games of several kinds, and who is in them.
async fn many_games(app: &TestApp) -> (Player, Player) {
    let (ada, bo) = (app.register("Ada").await, app.register("Bo").await);
    for ruleset in RulesetId::ALL {
        app.create(&ada, &json!({"ruleset": ruleset.meta().slug})).await;
    }
    let solo = app.create(&bo, &json!({"ruleset": "siggil", "seats": 1})).await;
    app.post(format!("/v1/games/{}/resignation", id(&solo))).by(&bo).expect(200).await;
    let called_off = app.create(&bo, &json!({"ruleset": "leopard"})).await;
    app.call("DELETE", format!("/v1/games/{}/seats/me", id(&called_off))).by(&bo).expect(200).await;
    for slug in ["leopard", "leonardo", "leopard"] {
        app.table_of(slug, &json!({}), vec![ada.clone(), bo.clone()]).await;
    }
    (ada, bo)
}

#[tokio::test]
async fn lists_are_filtered_by_all_that_is_asked_together() {
    let app = TestApp::new().await;
    let (ada, bo) = many_games(&app).await;
    let all = app.get("/v1/games?limit=100").ok(200).await;
    let games = all["items"].as_array().unwrap();
    assert_eq!(games.len(), RulesetId::ALL.len() + 5);
    assert!(games.windows(2).all(|two| id(&two[0]) > id(&two[1])), "newest first");
    assert!(games.iter().all(|game| game.get("state").is_none() && game.get("server_seed").is_none()));

    let has = |game: &Value, player: &Player| {
        game["seats"].as_array().unwrap().iter().any(|seat| seat["player"]["id"] == player.id.as_str())
    };
    let waits_for = |game: &Value, player: &Player| {
        let seats = game["seats"].as_array().unwrap();
        let seat = seats.iter().find(|seat| seat["player"]["id"] == player.id.as_str());
        seat.is_some_and(|seat| game["to_move"]["seat"] == seat["seat"])
    };
    let statuses = ["", "open", "active", "finished", "aborted"];
    let rulesets = ["", "leopard", "siggil", "quintis-fontis"];
    for status in statuses {
        for ruleset in rulesets {
            for player in [None, Some(&ada), Some(&bo)] {
                for to_move in [None, Some(&ada), Some(&bo)] {
                    let mut query = String::from("limit=100");
                    for (name, value) in [("status", status), ("ruleset", ruleset)] {
                        if !value.is_empty() {
                            query += &format!("&{name}={value}");
                        }
                    }
                    for (name, player) in [("player", player), ("to_move", to_move)] {
                        if let Some(player) = player {
                            query += &format!("&{name}={}", player.id);
                        }
                    }
                    let expected: Vec<&str> = games
                        .iter()
                        .filter(|game| status.is_empty() || game["status"] == status)
                        .filter(|game| ruleset.is_empty() || game["ruleset"] == ruleset)
                        .filter(|game| player.is_none_or(|player| has(game, player)))
                        .filter(|game| to_move.is_none_or(|player| waits_for(game, player)))
                        .map(id)
                        .collect();
                    assert_eq!(ids(&app.get(format!("/v1/games?{query}")).ok(200).await), expected, "{query}");
                }
            }
        }
    }
}

#[tokio::test]
async fn me_is_whoever_asks() {
    let app = TestApp::new().await;
    let (ada, bo) = many_games(&app).await;
    for player in [&ada, &bo] {
        for filter in ["player", "to_move"] {
            let by_me = app.get(format!("/v1/games?{filter}=me")).by(player).ok(200).await;
            let by_id = app.get(format!("/v1/games?{filter}={}", player.id)).ok(200).await;
            assert_eq!(by_me["items"], by_id["items"]);
        }
    }
    app.get("/v1/games?player=me").refused(401, "unauthenticated").await;
    app.get("/v1/games?to_move=me").refused(401, "unauthenticated").await;
    app.get("/v1/games?to_move=me").token("x").refused(401, "unauthenticated").await;
    let nobody = app.get(format!("/v1/games?player={}", uuid::Uuid::now_v7())).ok(200).await;
    assert_eq!((ids(&nobody).len(), &nobody["next_cursor"]), (0, &Value::Null));
}

/// All pages of a list.
async fn walk(app: &TestApp, query: &str, limit: usize) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(format!("/v1/games?limit={limit}&{query}{cursor}")).ok(200).await;
        let found = ids(&page);
        assert!(found.len() <= limit);
        all.extend(found);
        let Some(next) = page["next_cursor"].as_str() else { return all };
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn pages_of_any_size_are_the_same_list() {
    let app = TestApp::new().await;
    let (ada, _) = many_games(&app).await;
    for query in
        ["", "status=open&", "ruleset=leopard&", &format!("player={}&", ada.id), &format!("to_move={}&", ada.id)]
    {
        let all = walk(&app, query, 100).await;
        for limit in [1, 2, 3, 20] {
            assert_eq!(walk(&app, query, limit).await, all, "{query} by {limit}");
        }
        // A list whose length is just the limit has no further page.
        if !all.is_empty() {
            let page = app.get(format!("/v1/games?limit={}&{query}", all.len())).ok(200).await;
            assert!(page["next_cursor"].is_null(), "{query}: {page}");
        }
    }
}

#[tokio::test]
async fn a_game_created_while_one_turns_pages_disturbs_nothing() {
    let app = TestApp::new().await;
    let (ada, _) = many_games(&app).await;
    let all = walk(&app, "", 100).await;
    let page = app.get("/v1/games?limit=3").ok(200).await;
    let mut walked = ids(&page);
    let mut cursor = page["next_cursor"].as_str().map(str::to_owned);
    while let Some(next) = cursor {
        app.create(&ada, &json!({"ruleset": "leopard"})).await;
        let page = app.get(format!("/v1/games?limit=3&cursor={next}")).ok(200).await;
        walked.extend(ids(&page));
        cursor = page["next_cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(walked, all);
}

#[tokio::test]
async fn a_cursor_is_good_for_its_list_only() {
    let app = TestApp::new().await;
    let (ada, bo) = many_games(&app).await;
    let page = app.get("/v1/games?limit=1&ruleset=leopard").ok(200).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    // The limit is no part of the list.
    app.get(format!("/v1/games?limit=50&ruleset=leopard&cursor={cursor}")).expect(200).await;
    for other in ["", "&ruleset=siggil", "&ruleset=leopard&status=open", &format!("&ruleset=leopard&player={}", ada.id)]
    {
        let problem =
            app.get(format!("/v1/games?limit=1{other}&cursor={cursor}")).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], "cursor", "{other}");
    }
    // `me` is another list for another player, and the same as one's id.
    let mine = app.get("/v1/games?limit=1&player=me").by(&ada).ok(200).await;
    let cursor = mine["next_cursor"].as_str().unwrap();
    app.get(format!("/v1/games?limit=1&player={}&cursor={cursor}", ada.id)).expect(200).await;
    app.get(format!("/v1/games?limit=1&player=me&cursor={cursor}")).by(&bo).refused(400, "invalid-parameter").await;
    let (zeros, long, multibyte) = ("0".repeat(48), "a".repeat(4_000), "é".repeat(24));
    for cursor in [
        "",
        "x",
        "null",
        "0",
        zeros.as_str(),
        long.as_str(),
        multibyte.as_str(),
        "%00",
        "%ff",
        &cursor[1..],
        &format!("{cursor}00"),
    ] {
        app.get(format!("/v1/games?cursor={cursor}")).refused(400, "invalid-parameter").await;
    }
}

/// Values that are no limit.
pub const NO_LIMITS: [&str; 16] = [
    "-1",
    "0",
    "101",
    "2147483647",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e9",
    "abc",
    "",
    "5.0",
    "%205",
    "0x10",
    "null",
];

#[tokio::test]
async fn parameters_that_cannot_be_read_are_named() {
    let app = TestApp::new().await;
    let refused = async |query: &str, pointer: &str| {
        let problem = app.get(format!("/v1/games?{query}")).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{query}: {problem}");
    };
    for limit in NO_LIMITS {
        refused(&format!("limit={limit}"), "limit").await;
    }
    refused("limit=%2B5", "limit").await;
    refused("limit=%D9%A3", "limit").await;
    refused("limit", "limit").await;
    refused("limit=1&limit=1", "limit").await;
    refused("status=open&status=active", "status").await;
    refused("status=", "status").await;
    refused("status=OPEN", "status").await;
    refused("status=open,active", "status").await;
    refused("ruleset=chess", "ruleset").await;
    refused("ruleset=leopard%00", "ruleset").await;
    refused("player=ada", "player").await;
    refused("player=", "player").await;
    refused("player=%27%20or%20true--", "player").await;
    refused("to_move=0", "to_move").await;
    app.get("/v1/games?page=2").refused(400, "invalid-parameter").await;
    app.get("/v1/games?limit=5&Limit=5").refused(400, "invalid-parameter").await;
    app.get("/v1/games?%ff=1").refused(400, "invalid-parameter").await;
    app.get(format!("/v1/games?{}", "a&".repeat(1_000))).refused(400, "invalid-parameter").await;
    for query in ["", "&", "limit=1", "limit=100", "limit=007", "&&limit=1&"] {
        app.get(format!("/v1/games?{query}")).expect(200).await;
    }
}
