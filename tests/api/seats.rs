//! Seats: taking one, leaving it, starting early, resigning.

use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;
use tavola::workers::clocks;

use crate::helpers::{Player, TestApp};
use crate::play::{Chance, short};

async fn open(app: &TestApp, creator: &Player, ruleset: &str, seats: u8) -> String {
    let game = app.create(creator, &json!({"ruleset": ruleset, "seats": seats})).await;
    format!("/v1/games/{}", game["id"].as_str().unwrap())
}

fn seated(game: &Value) -> Vec<(u64, String)> {
    let seats = game["seats"].as_array().unwrap().iter();
    seats.map(|seat| (seat["seat"].as_u64().unwrap(), seat["player"]["id"].as_str().unwrap().to_owned())).collect()
}

#[tokio::test]
async fn players_take_seats_and_the_last_one_starts_the_game() {
    let app = TestApp::new().await;
    let [ada, bo, cy, dee] = app.players(4).await.try_into().unwrap();
    let game = open(&app, &ada, "leonardo", 4).await;
    let reply = app.post(format!("{game}/seats")).by(&bo).json(&json!({"seat": 2, "entropy": "b"})).expect(201).await;
    assert_eq!(reply.header("etag"), Some("\"1\""));
    let seen = reply.json();
    assert_eq!((&seen["status"], &seen["viewer"]["seat"]), (&json!("open"), &json!(2)));
    // The lowest free one; a body is not needed.
    let seen = app.post(format!("{game}/seats")).by(&cy).ok(201).await;
    assert_eq!(seen["viewer"]["seat"], 1);
    let seen = app.post(format!("{game}/seats")).by(&dee).json(&json!({})).ok(201).await;
    assert_eq!((&seen["status"], &seen["version"], &seen["viewer"]["seat"]), (&json!("active"), &json!(3), &json!(3)));
    let expected = [(0, ada.id.clone()), (1, cy.id), (2, bo.id), (3, dee.id)];
    assert_eq!(seated(&seen), expected);
    assert_eq!(seen["seats"][2]["entropy"], "b");
    assert!(seen["state"].is_object() && seen["to_move"]["seat"].is_u64(), "{seen}");
    assert_eq!(seen["started_at"], seen["to_move"]["since"]);
}

#[tokio::test]
async fn a_seat_that_cannot_be_had_is_refused() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let game = open(&app, &ada, "leonardo", 2).await;
    let path = format!("{game}/seats");
    app.post(&path).json(&json!({})).refused(401, "unauthenticated").await;
    app.post(&path).by(&ada).json(&json!({})).refused(409, "already-seated").await;
    app.post(&path).by(&ada).json(&json!({"seat": 1})).refused(409, "already-seated").await;
    app.post(&path).by(&bo).json(&json!({"seat": 0})).refused(409, "seat-taken").await;
    for seat in ["2", "3", "255", "256", "-1", "1.5", "\"1\"", "4294967297"] {
        let problem = app.post(&path).by(&bo).text(format!("{{\"seat\": {seat}}}")).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/seat", "{seat}");
    }
    let problem = app.post(&path).by(&bo).json(&json!({"entropy": "x".repeat(65)})).refused(400, "invalid-body").await;
    assert_eq!(problem["errors"][0]["pointer"], "/entropy");
    let problem = app.post(&path).by(&bo).json(&json!({"set": 1})).refused(400, "invalid-body").await;
    assert_eq!(problem["errors"][0]["pointer"], "/set");
    let stale = app.post(&path).by(&bo).at(1).json(&json!({})).refused(412, "stale-version").await;
    assert_eq!(stale["current_version"], 0);
    assert_eq!(app.get(&game).ok(200).await["version"], 0, "nothing has changed");

    app.post(&path).by(&bo).at(0).json(&json!({})).expect(201).await;
    // Started: whoever sits there knows, others find no room.
    app.post(&path).by(&bo).json(&json!({})).refused(409, "already-seated").await;
    app.post(&path).by(&cy).json(&json!({})).refused(409, "game-not-open").await;
    app.post(&path).by(&cy).json(&json!({"seat": 1})).refused(409, "game-not-open").await;
}

#[tokio::test]
async fn a_player_leaves_and_the_seat_is_free_again() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let game = open(&app, &ada, "leonardo", 3).await;
    app.post(format!("{game}/seats")).by(&bo).expect(201).await;
    let leave = || app.call("DELETE", format!("{game}/seats/me"));
    leave().refused(401, "unauthenticated").await;
    leave().by(&cy).refused(403, "not-seated").await;
    leave().by(&bo).at(0).refused(412, "stale-version").await;
    let reply = leave().by(&bo).at(1).expect(200).await;
    assert_eq!(reply.header("etag"), Some("\"2\""));
    let seen = reply.json();
    assert_eq!((seated(&seen).len(), &seen["viewer"]["seat"]), (1, &Value::Null));
    leave().by(&bo).refused(403, "not-seated").await;
    let seen = app.post(format!("{game}/seats")).by(&cy).ok(201).await;
    assert_eq!(seated(&seen), [(0, ada.id.clone()), (1, cy.id.clone())]);
    // Started, nobody leaves.
    app.post(format!("{game}/start")).by(&ada).expect(200).await;
    leave().by(&cy).refused(409, "game-not-open").await;
}

#[tokio::test]
async fn a_creator_who_leaves_hands_the_game_over_and_the_last_calls_it_off() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let game = open(&app, &ada, "leonardo", 4).await;
    app.post(format!("{game}/seats")).by(&bo).json(&json!({"seat": 3})).expect(201).await;
    app.post(format!("{game}/seats")).by(&cy).json(&json!({"seat": 2})).expect(201).await;
    let leave = |player: &Player| app.call("DELETE", format!("{game}/seats/me")).by(player);
    let seen = leave(&ada).ok(200).await;
    assert_eq!(seen["creator_id"], cy.id, "the lowest seat");
    app.post(format!("{game}/start")).by(&ada).refused(403, "not-owner").await;
    app.post(format!("{game}/start")).by(&bo).refused(403, "not-owner").await;
    // Who left may come back, as an ordinary player.
    let seen = app.post(format!("{game}/seats")).by(&ada).ok(201).await;
    assert_eq!((&seen["creator_id"], &seen["viewer"]["seat"]), (&json!(cy.id), &json!(0)));
    leave(&ada).expect(200).await;
    let seen = leave(&bo).ok(200).await;
    assert_eq!(seen["creator_id"], cy.id, "another who leaves changes nothing");
    let seen = leave(&cy).ok(200).await;
    assert_eq!((&seen["status"], &seen["seats"]), (&json!("aborted"), &json!([])));
    assert!(seen["server_seed"].is_null() && seen["outcome"].is_null() && seen["state"].is_null(), "{seen}");
    assert!(seen["finished_at"].is_string() && seen["started_at"].is_null(), "{seen}");
    app.post(format!("{game}/seats")).by(&ada).refused(409, "game-not-open").await;
    app.post(format!("{game}/start")).by(&cy).refused(409, "game-not-open").await;
    leave(&cy).refused(403, "not-seated").await;
}

#[tokio::test]
async fn starting_early_numbers_the_seats_anew() {
    let app = TestApp::new().await;
    let [ada, bo, cy, dee] = app.players(4).await.try_into().unwrap();
    let game = open(&app, &ada, "leonardo", 4).await;
    let start = || app.post(format!("{game}/start"));
    start().by(&ada).refused(409, "too-few-players").await;
    app.post(format!("{game}/seats")).by(&bo).json(&json!({"seat": 3, "entropy": "bo"})).expect(201).await;
    app.post(format!("{game}/seats")).by(&cy).json(&json!({"seat": 1, "entropy": "cy"})).expect(201).await;
    start().refused(401, "unauthenticated").await;
    start().by(&bo).refused(403, "not-owner").await;
    start().by(&dee).refused(403, "not-owner").await;
    start().by(&ada).at(1).refused(412, "stale-version").await;
    let reply = start().by(&ada).at(2).expect(200).await;
    assert_eq!(reply.header("etag"), Some("\"3\""));
    let seen = reply.json();
    assert_eq!(seated(&seen), [(0, ada.id.clone()), (1, cy.id.clone()), (2, bo.id.clone())]);
    assert_eq!((&seen["status"], &seen["seat_count"]), (&json!("active"), &json!(3)));
    assert_eq!(seen["state"]["seats"].as_array().unwrap().len(), 3);
    assert_eq!(seen["seats"][2]["entropy"], "bo");
    // A default that depends on the players uses their number at the start (C4).
    assert_eq!(seen["options"]["turn_limit"], 300);
    assert_eq!(app.get(&game).by(&bo).ok(200).await["viewer"]["seat"], 2);
    start().by(&ada).refused(409, "game-not-open").await;
    start().by(&bo).refused(403, "not-owner").await;
}

#[tokio::test]
async fn every_ruleset_starts_with_its_fewest_players_and_not_with_fewer() {
    let app = TestApp::new().await;
    let players = app.players(4).await;
    for ruleset in RulesetId::ALL {
        let (slug, seats) = (ruleset.meta().slug, ruleset.meta().seats.clone());
        let game = open(&app, &players[0], slug, *seats.end()).await;
        for (taken, player) in (1u8..).zip(&players[1..]).take_while(|(taken, _)| taken < seats.start()) {
            let refused = app.post(format!("{game}/start")).by(&players[0]).refused(409, "too-few-players").await;
            assert!(taken < *seats.start(), "{slug}: {refused}");
            app.post(format!("{game}/seats")).by(player).expect(201).await;
        }
        let seen = app.get(&game).ok(200).await;
        if seen["status"] == "open" {
            let seen = app.post(format!("{game}/start")).by(&players[0]).ok(200).await;
            assert_eq!((&seen["status"], &seen["seat_count"]), (&json!("active"), &json!(seats.start())), "{slug}");
        }
    }
}

#[tokio::test]
async fn of_two_players_the_other_wins_when_one_resigns() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL.iter().filter(|ruleset| ruleset.meta().seats.contains(&2)) {
        let table = app.table(ruleset.meta().slug, &json!({}), 2).await;
        app.play_one(&table, &mut crate::play::Chance(3)).await;
        let version = app.game(&table.id, None).await["version"].as_u64().unwrap();
        app.post(table.path("/resignation")).by(&table.players[0]).at(version - 1).refused(412, "stale-version").await;
        let reply = app.post(table.path("/resignation")).by(&table.players[0]).at(version).expect(200).await;
        let seen = reply.json();
        assert_eq!((&seen["status"], &seen["version"]), (&json!("finished"), &json!(version + 1)));
        assert_eq!(seen["moves_count"], 1, "a resignation is no move");
        assert_eq!(seen["outcome"]["reason"], "resignation");
        let ranking = seen["outcome"]["ranking"].as_array().unwrap();
        let told: Vec<_> = ranking.iter().map(|line| (&line["seat"], &line["rank"], &line["won"])).collect();
        assert_eq!(told, [(&json!(1), &json!(1), &json!(true)), (&json!(0), &json!(2), &json!(false))]);
        assert_eq!((&seen["seats"][0]["status"], &seen["seats"][1]["status"]), (&json!("resigned"), &json!("playing")));
        assert!(seen["to_move"].is_null() && seen["server_seed"].is_string() && seen["finished_at"].is_string());
        // Over is over.
        app.post(table.path("/resignation")).by(&table.players[0]).refused(409, "game-not-active").await;
        app.post(table.path("/resignation")).by(&table.players[1]).refused(409, "game-not-active").await;
    }
}

#[tokio::test]
async fn of_more_players_who_resigns_is_last() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL {
        for seats in ruleset.meta().seats.clone().filter(|seats| *seats > 2) {
            let slug = ruleset.meta().slug;
            let table = app.table(slug, &short(slug), usize::from(seats)).await;
            app.play_random(&table, 5, 6).await;
            // The one whose turn it is, or not: anybody may resign at any time. The game goes on without them.
            let leaver = usize::from(seats) - 1;
            let mut game = app.post(table.path("/resignation")).by(&table.players[leaver]).ok(200).await;
            assert_eq!((&game["status"], &game["seats"][leaver]["status"]), (&json!("active"), &json!("resigned")));
            let mut chance = Chance(6);
            while game["status"] == "active" {
                clocks::run_once(&app.store).await.unwrap();
                if app.to_move(&table).await.is_some() {
                    app.play_one(&table, &mut chance).await;
                }
                game = app.game(&table.id, None).await;
            }
            let ranking = game["outcome"]["ranking"].as_array().unwrap();
            let last = ranking.last().unwrap();
            assert_eq!((last["seat"].as_u64(), last["rank"].as_u64()), (Some(leaver as u64), Some(u64::from(seats))));
            assert_eq!(last["won"], false);
            let stayed = &ranking[..ranking.len() - 1];
            assert!(stayed.iter().all(|line| line["won"] == (line["rank"] == 1)), "{slug}: {game}");
            assert!(stayed[0]["won"] == true && stayed.iter().all(|line| line["rank"].as_u64() < Some(seats.into())));
            assert!(
                stayed.windows(2).all(|two| two[0]["score"].as_i64() >= two[1]["score"].as_i64()),
                "{slug}: {game}"
            );
        }
    }
}

#[tokio::test]
async fn a_solo_game_that_is_resigned_is_not_won() {
    let app = TestApp::new().await;
    let table = app.table("siggil", &json!({}), 1).await;
    app.play_random(&table, 7, 10).await;
    let seen = app.post(table.path("/resignation")).by(&table.players[0]).ok(200).await;
    let ranking = seen["outcome"]["ranking"].as_array().unwrap();
    assert_eq!(ranking.len(), 1);
    assert_eq!((&ranking[0]["rank"], &ranking[0]["won"]), (&json!(1), &json!(false)));
}

#[tokio::test]
async fn only_players_of_an_active_game_resign() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let game = open(&app, &ada, "leopard", 2).await;
    app.post(format!("{game}/resignation")).by(&ada).refused(409, "game-not-active").await;
    app.post(format!("{game}/seats")).by(&bo).expect(201).await;
    app.post(format!("{game}/resignation")).refused(401, "unauthenticated").await;
    app.post(format!("{game}/resignation")).by(&cy).refused(403, "not-seated").await;
    assert_eq!(app.get(&game).ok(200).await["status"], "active");
}

#[tokio::test]
async fn if_match_is_a_version_or_any() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let game = open(&app, &ada, "leopard", 2).await;
    let path = format!("{game}/seats");
    for tag in
        ["0", "W/\"0\"", "\"0", "'0'", "\"\"", "\"x\"", "\"-1\"", "\"0\", \"1\"", "", "\"+0\"", "\"0x0\"", "\" 0\""]
    {
        let problem = app.post(&path).by(&bo).header("if-match", tag).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], "If-Match", "{tag}");
    }
    app.post(&path).by(&bo).header("if-match", b"\"0\"\xff".to_vec()).refused(400, "invalid-parameter").await;
    for version in ["1", "2147483648", "4294967295", "4294967296", "99999999999999999999", &"9".repeat(99)] {
        app.post(&path).by(&bo).header("if-match", format!("\"{version}\"")).refused(412, "stale-version").await;
    }
    app.post(&path).by(&bo).header("if-match", "*").expect(201).await;
}
