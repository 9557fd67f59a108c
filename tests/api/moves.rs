//! Moves: which are legal, playing one, the log.

use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;

use crate::games::NO_LIMITS;
use crate::helpers::TestApp;
use crate::play::{Chance, Table, short};

/// What must be the same before and after a refused command: the game as everybody sees it, its tag, its log.
async fn standing(app: &TestApp, table: &Table) -> (Option<String>, Value, Vec<Value>) {
    let reply = app.get(table.path("")).by(&table.players[0]).expect(200).await;
    (reply.header("etag").map(str::to_owned), reply.json(), app.log(table, None).await)
}

#[tokio::test]
async fn a_move_is_answered_with_itself_and_the_game_after_it() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        let table = app.table(slug, &short(slug), usize::from(*ruleset.meta().seats.end())).await;
        let before = app.game(&table.id, None).await;
        let seat = before["to_move"]["seat"].as_u64().unwrap() as usize;
        let mover = &table.players[seat];
        let legal = app.get(table.path("/legal-moves")).by(mover).expect(200).await;
        let version = before["version"].as_u64().unwrap();
        assert_eq!(legal.header("etag"), Some(format!("\"{version}\"").as_str()));
        let legal = legal.json();
        assert_eq!(
            (&legal["seat"], &legal["to_move"], &legal["version"]),
            (&json!(seat), &json!(seat), &json!(version))
        );
        let mv = &legal["moves"][0];

        let reply = app.post(table.path("/moves")).by(mover).at(version).json(mv).expect(201).await;
        assert_eq!(reply.header("etag"), Some(format!("\"{}\"", version + 1).as_str()));
        assert_eq!(reply.header("location"), Some(table.path("/moves/1").as_str()));
        assert!(!reply.is_replay());
        let answer = reply.json();
        assert_eq!((&answer["move"]["number"], &answer["move"]["seat"]), (&json!(1), &json!(seat)));
        assert_eq!(answer["move"]["move"], *mv, "{slug}");
        assert!(!answer["move"]["events"].as_array().unwrap().is_empty(), "a move does something");
        assert_eq!(answer["game"]["moves_count"], 1);
        assert_eq!(answer["game"], app.game(&table.id, Some(mover)).await, "{slug}: it is kept as it was answered");
        assert_eq!(answer["move"], app.get(table.path("/moves/1")).by(mover).ok(200).await);
        assert_eq!(app.log(&table, Some(mover)).await, [answer["move"].clone()]);
    }
}

#[tokio::test]
async fn the_log_keeps_the_text_as_it_was_written() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        let table = app.table(slug, &short(slug), usize::from(*ruleset.meta().seats.end())).await;
        app.play_random(&table, 0, 4).await;
    }
    let kept: Vec<String> = sqlx::query_scalar("select move::text from moves union all select events::text from moves")
        .fetch_all(app.sql())
        .await
        .unwrap();
    assert_eq!(kept.len(), 8 * RulesetId::ALL.len());
    for text in kept {
        let value: Value = serde_json::from_str(&text).unwrap();
        // Not as the database writes JSON that it has taken apart, with spaces.
        assert_eq!(text.len(), value.to_string().len(), "{text}");
    }
}

#[tokio::test]
async fn who_is_not_to_move_has_no_legal_moves_and_may_play_none() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL.iter().filter(|ruleset| ruleset.meta().seats.contains(&2)) {
        let table = app.table(ruleset.meta().slug, &json!({}), 2).await;
        let stranger = app.players(1).await.remove(0);
        let (mover, other) = app.mover_and_other(&table).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        let before = standing(&app, &table).await;

        let waiting = app.get(table.path("/legal-moves")).by(other).ok(200).await;
        assert_eq!(waiting["moves"], json!([]));
        assert_ne!(waiting["to_move"], waiting["seat"]);
        let play = || app.post(table.path("/moves")).json(&mv);
        play().by(other).refused(409, "not-your-turn").await;
        play().by(&stranger).refused(403, "not-seated").await;
        play().refused(401, "unauthenticated").await;
        play().token("tavola_0").refused(401, "unauthenticated").await;
        app.get(table.path("/legal-moves")).by(&stranger).refused(403, "not-seated").await;
        app.get(table.path("/legal-moves")).refused(401, "unauthenticated").await;
        assert_eq!(standing(&app, &table).await, before);
    }
}

#[tokio::test]
async fn a_move_is_judged_on_the_version_that_if_match_names() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let (mover, other) = app.mover_and_other(&table).await;
    let moves = app.legal_moves(&table.id, mover).await;
    let before = standing(&app, &table).await;
    for version in [0, 2, 1 << 40] {
        let problem =
            app.post(table.path("/moves")).by(mover).at(version).json(&moves[0]).refused(412, "stale-version").await;
        assert_eq!(problem["current_version"], 1);
    }
    // Whatever the body is: the version comes first for whoever is out of date.
    app.post(table.path("/moves")).by(other).at(0).json(&moves[0]).refused(412, "stale-version").await;
    assert_eq!(standing(&app, &table).await, before);
    app.post(table.path("/moves")).by(mover).at(1).json(&moves[0]).expect(201).await;
    // The same again: the game has moved on.
    app.post(table.path("/moves")).by(mover).at(1).json(&moves[0]).refused(412, "stale-version").await;
    app.post(table.path("/moves")).by(mover).json(&moves[0]).refused(409, "not-your-turn").await;
    assert_eq!(app.log(&table, None).await.len(), 1);
}

#[tokio::test]
async fn an_illegal_move_names_its_rule_and_changes_nothing() {
    let app = TestApp::new().await;
    // For each ruleset moves that no deal allows at the very beginning.
    let cases = [
        ("leonardo", 2, vec![]),
        ("quintis-fontis", 2, vec![json!({"type": "pass"})]),
        (
            "leopard",
            2,
            vec![json!({"type": "end_hand"}), json!({"type": "lay", "card": "JS", "square": "own", "cell": 5})],
        ),
        (
            "siggil",
            2,
            vec![
                json!({"type": "end_turn"}),
                json!({"type": "take", "slot": 0}),
                json!({"type": "discard", "slot": 1}),
            ],
        ),
    ];
    for (slug, seats, mut illegal) in cases {
        let table = app.table(slug, &json!({}), seats).await;
        let (mover, _) = app.mover_and_other(&table).await;
        // And a card that the mover does not hold.
        let view = app.game(&table.id, Some(mover)).await;
        let seat = view["viewer"]["seat"].as_u64().unwrap() as usize;
        let hand = view["state"]["seats"][seat]["hand"].clone();
        let missing = table.ruleset.catalogue().cards.into_iter().map(|card| Value::from(card.code));
        let missing = missing.into_iter().find(|card| !hand.as_array().unwrap().contains(card)).unwrap();
        match slug {
            "leonardo" => illegal.push(json!({"type": "play", "card": missing, "position": "left"})),
            "quintis-fontis" => illegal.push(json!({"type": "place", "card": missing, "x": 0, "y": 0})),
            "leopard" => illegal.push(json!({"type": "discard", "card": missing})),
            _ => {}
        }
        let before = standing(&app, &table).await;
        for mv in illegal {
            let problem = app.post(table.path("/moves")).by(mover).json(&mv).refused(422, "illegal-move").await;
            let letter = slug[..1].to_uppercase().replace('L', if slug == "leopard" { "P" } else { "L" });
            assert!(problem["rule"].as_str().unwrap().starts_with(&letter), "{slug} {mv}: {problem}");
        }
        assert_eq!(standing(&app, &table).await, before, "{slug}");
    }
}

#[tokio::test]
async fn what_is_no_move_of_the_ruleset_is_refused() {
    let app = TestApp::new().await;
    let foreign = [
        r#"{"type":"play","card":"mechanism-flow","position":"left"}"#,
        r#"{"type":"pass"}"#,
        r#"{"type":"discard","card":"QS"}"#,
        r#"{"type":"take","slot":0}"#,
    ];
    for ruleset in RulesetId::ALL.iter().filter(|ruleset| ruleset.meta().seats.contains(&2)) {
        let table = app.table(ruleset.meta().slug, &json!({}), 2).await;
        let (mover, _) = app.mover_and_other(&table).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        let mut unknown = mv.clone();
        unknown["colour"] = json!("red");
        let mut twice = mv.to_string();
        twice.truncate(twice.len() - 1);
        twice += &format!(",\"type\":{}}}", mv["type"]);
        let mut bodies: Vec<String> = vec![unknown.to_string(), twice, "{}".into(), String::new()];
        bodies.extend(
            ["null", "[]", "7", "\"take\"", "{\"type\":null}", "{\"type\":\"fly\"}", "{\"type\":[\"take\"]}"]
                .map(String::from),
        );
        // A sequence of the fields is no object.
        bodies.push(Value::from(mv.as_object().unwrap().values().cloned().collect::<Vec<_>>()).to_string());
        bodies.push(format!("[{mv}]"));
        bodies.push(format!("{mv} {mv}"));
        bodies.push(format!("{{\"move\":{mv}}}"));
        bodies.push(format!("{{\"type\":{}}}", "[".repeat(20_000) + &"]".repeat(20_000)));
        for (name, value) in mv.as_object().unwrap() {
            let mut broken = mv.clone();
            for wrong in
                [json!(null), json!({}), json!([value]), json!(-1), json!(1e300), json!(256), json!("\0"), json!(true)]
            {
                // Any number is a coordinate as far as its form goes, and null where a member may be left out means that.
                let allowed = match name.as_str() {
                    "x" | "y" => wrong == json!(-1),
                    "cell" | "bonus_key" => wrong.is_null(),
                    _ => false,
                };
                if wrong == *value || allowed {
                    continue;
                }
                broken[name] = wrong;
                bodies.push(broken.to_string());
            }
        }
        let before = standing(&app, &table).await;
        for body in bodies {
            let reply = app.post(table.path("/moves")).by(mover).text(body.clone()).send().await;
            let code = reply.json()["code"].clone();
            assert_eq!((reply.status, code.as_str()), (400, Some("invalid-body")), "{body}: {}", reply.text());
        }
        let own = foreign.iter().filter(|body| ruleset.read_move(body.as_bytes()).is_err());
        for body in own {
            app.post(table.path("/moves")).by(mover).text(*body).refused(400, "invalid-body").await;
        }
        assert_eq!(standing(&app, &table).await, before);
        app.post(table.path("/moves")).by(mover).text(format!(" \n\t{mv}\r\n ")).expect(201).await;
    }
}

#[tokio::test]
async fn before_the_start_and_after_the_end_nobody_plays() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let open = app.create(&ada, &json!({"ruleset": "leopard"})).await;
    let path = format!("/v1/games/{}", open["id"].as_str().unwrap());
    let mv = json!({"type": "discard", "card": "QS"});
    app.post(format!("{path}/moves")).by(&ada).json(&mv).refused(409, "game-not-active").await;
    app.post(format!("{path}/moves")).by(&bo).json(&mv).refused(403, "not-seated").await;
    let legal = app.get(format!("{path}/legal-moves")).by(&ada).ok(200).await;
    assert_eq!((&legal["to_move"], &legal["moves"]), (&Value::Null, &json!([])));
    let log = app.get(format!("{path}/moves")).ok(200).await;
    assert_eq!(log, json!({"items": [], "next_after": null}));
    app.get(format!("{path}/moves/1")).refused(404, "not-found").await;

    let table = app.table("quintis-fontis", &json!({"turn_limit": 3}), 2).await;
    let over = app.play_to_the_end(&table, 1).await;
    assert_eq!((&over["outcome"]["reason"], &over["moves_count"]), (&json!("turn_limit"), &json!(3)));
    let before = standing(&app, &table).await;
    for player in &table.players {
        for mv in [json!({"type": "pass"}), json!({"type": "place", "card": "cat-flow", "x": 0, "y": 0})] {
            app.post(table.path("/moves")).by(player).json(&mv).refused(409, "game-not-active").await;
        }
        let legal = app.get(table.path("/legal-moves")).by(player).ok(200).await;
        assert_eq!((&legal["to_move"], &legal["moves"]), (&Value::Null, &json!([])));
    }
    assert_eq!(standing(&app, &table).await, before);
}

#[tokio::test]
async fn the_log_is_read_in_pages_of_any_size() {
    let app = TestApp::new().await;
    let table = app.table("leonardo", &json!({"turn_limit": 23}), 2).await;
    app.play_random(&table, 2, 7).await;
    let page = app.get(table.path("/moves?limit=7")).ok(200).await;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next_after"]), (7, &Value::Null));
    app.play_to_the_end(&table, 2).await;
    let all = app.log(&table, None).await;
    assert_eq!(all.len(), 23);
    for (number, entry) in (1..).zip(&all) {
        assert_eq!(entry["number"], number);
        assert_eq!(entry["version"], number + 1, "the second player's coming was 1");
        assert_eq!(app.get(table.path(&format!("/moves/{number}"))).ok(200).await, *entry);
    }
    for limit in [1, 2, 20, 22, 23] {
        let (mut walked, mut after) = (Vec::new(), json!(0));
        while !after.is_null() {
            let page = app.get(table.path(&format!("/moves?after={after}&limit={limit}"))).ok(200).await;
            walked.extend(page["items"].as_array().unwrap().iter().cloned());
            after = page["next_after"].clone();
        }
        assert_eq!(walked, all, "by {limit}");
    }
    let default = app.get(table.path("/moves")).ok(200).await;
    assert_eq!((default["items"].as_array().unwrap().len(), &default["next_after"]), (20, &json!(20)));
    for after in [23, 24, 2_147_483_647u32] {
        let page = app.get(table.path(&format!("/moves?after={after}"))).ok(200).await;
        assert_eq!(page, json!({"items": [], "next_after": null}));
    }
}

#[tokio::test]
async fn numbers_that_are_none_are_refused() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    app.play_one(&table, &mut Chance(1)).await;
    let refused = async |query: &str, pointer: &str| {
        let problem = app.get(table.path(&format!("/moves?{query}"))).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{query}");
    };
    for limit in NO_LIMITS {
        refused(&format!("limit={limit}"), "limit").await;
        if !matches!(limit, "0" | "101" | "2147483647") {
            refused(&format!("after={limit}"), "after").await;
        }
    }
    refused("after=1&after=1", "after").await;
    app.get(table.path("/moves?before=1")).refused(400, "invalid-parameter").await;
    for number in ["0", "2", "2147483647"] {
        app.get(table.path(&format!("/moves/{number}"))).refused(404, "not-found").await;
    }
    for number in
        ["-1", "2147483648", "4294967297", "9223372036854775808", "1e0", "abc", "1.0", "%2B1", "%20", "latest"]
    {
        app.get(table.path(&format!("/moves/{number}"))).refused(400, "invalid-parameter").await;
    }
}

#[tokio::test]
async fn what_is_over_may_be_kept_by_caches_and_what_goes_on_may_not() {
    let app = TestApp::new().await;
    let table = app.table("leonardo", &json!({"turn_limit": 2}), 2).await;
    app.play_one(&table, &mut Chance(1)).await;
    for path in ["/moves", "/moves/1"] {
        let reply = app.get(table.path(path)).expect(200).await;
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        assert!(reply.header("vary").is_some_and(|vary| vary.to_lowercase().contains("authorization")), "{path}");
    }
    app.play_to_the_end(&table, 1).await;
    for path in ["/moves", "/moves/1"] {
        let reply = app.get(table.path(path)).expect(200).await;
        assert!(reply.header("cache-control").unwrap().contains("immutable"), "{path}");
    }
    let legal = app.get(table.path("/legal-moves")).by(&table.players[0]).expect(200).await;
    assert_eq!(legal.header("cache-control"), Some("no-store"));
}
