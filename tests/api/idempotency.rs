//! Repeated requests: answered as the first was, byte for byte, and nothing done twice.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;
use tavola::workers::pruning;

use crate::helpers::{Call, Reply, TestApp};
use crate::play::{Chance, short};

/// A key that is long enough for everything.
const KEY: &str = "d2b1f7f0-1b7e-4c1c-9a57-8c2f4a1f0001";

fn assert_replays(first: &Reply, again: &Reply) {
    assert!(!first.is_replay() && again.is_replay(), "{}: {}", again.status, again.text());
    assert_eq!(again.lasting(), first.lasting());
}

/// Twenty equal requests at once: one is the first, all are answered alike.
async fn twenty_at_once<'a>(call: impl Fn() -> Call<'a>, status: u16) -> Vec<Reply> {
    let replies = join_all((0..20).map(|_| call().send())).await;
    assert!(
        replies.iter().all(|reply| reply.status == status),
        "{:?}",
        replies.iter().map(Reply::text).collect::<Vec<_>>()
    );
    assert_eq!(replies.iter().filter(|reply| !reply.is_replay()).count(), 1);
    assert!(replies.windows(2).all(|two| two[0].lasting() == two[1].lasting()));
    replies
}

#[tokio::test]
async fn a_repeated_move_is_played_once() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        let table = app.table(slug, &short(slug), usize::from(*ruleset.meta().seats.end()).min(2)).await;
        let seat = app.to_move(&table).await.unwrap();
        let mover = &table.players[seat];
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        let play =
            || app.post(table.path("/moves")).by(mover).at(1.min(table.players.len() as u64 - 1)).key(KEY).json(&mv);
        let first = play().expect(201).await;
        // At once, and after the game has gone on, to its very end: the answer stays what it was.
        assert_replays(&first, &play().send().await);
        app.play_random(&table, 3, 5).await;
        assert_replays(&first, &play().send().await);
        if short(slug).get("turn_limit").is_some() {
            app.play_to_the_end(&table, 3).await;
            assert_replays(&first, &play().send().await);
        }
        let log = app.log(&table, None).await;
        assert_eq!(log.last().unwrap()["number"], log.len(), "{slug}");
        assert_eq!(app.game(&table.id, None).await["moves_count"], log.len());
    }
}

#[tokio::test]
async fn the_move_that_ended_the_game_is_answered_again_with_the_end() {
    let app = TestApp::new().await;
    for (slug, options, seats) in [
        ("leonardo", json!({"turn_limit": 4}), 2),
        ("quintis-fontis", json!({"turn_limit": 3}), 3),
        ("siggil", json!({}), 1),
    ] {
        let table = app.table(slug, &options, seats).await;
        let mut chance = Chance(9);
        let mut game = app.game(&table.id, None).await;
        let (mut last, mut number) = (None, 0);
        while let Some(seat) = crate::play::seat_to_move(&game) {
            let mover = &table.players[seat];
            let mv = chance.pick(&app.legal_moves(&table.id, mover).await).clone();
            number += 1;
            let key = format!("{KEY}-{number}");
            let reply = app.post(table.path("/moves")).by(mover).key(&key).json(&mv).expect(201).await;
            game = reply.json()["game"].clone();
            last = Some((seat, key, mv, reply));
        }
        let (seat, key, mv, first) = last.unwrap();
        assert_eq!(game["status"], "finished");
        let again = app.post(table.path("/moves")).by(&table.players[seat]).key(&key).json(&mv).send().await;
        assert_replays(&first, &again);
        assert!(again.json()["game"]["server_seed"].is_string(), "{slug}");
    }
}

#[tokio::test]
async fn a_repeat_after_a_resignation_tells_of_the_game_as_it_was() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let (mover, other) = app.mover_and_other(&table).await;
    let mv = app.legal_moves(&table.id, mover).await[0].clone();
    let play = || app.post(table.path("/moves")).by(mover).key(KEY).json(&mv);
    let first = play().expect(201).await;
    app.post(table.path("/resignation")).by(other).expect(200).await;
    assert_replays(&first, &play().send().await);
}

#[tokio::test]
async fn repeated_commands_are_carried_out_once() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let create = || app.post("/v1/games").by(&ada).key("create").json(&json!({"ruleset": "leonardo", "seats": 4}));
    let created = create().expect(201).await;
    assert_replays(&created, &create().send().await);
    let path = format!("/v1/games/{}", created.json()["id"].as_str().unwrap());

    let sit = || app.post(format!("{path}/seats")).by(&bo).key("sit").json(&json!({"entropy": "b"}));
    let seated = sit().expect(201).await;
    assert_replays(&seated, &sit().send().await);
    app.post(format!("{path}/seats")).by(&cy).expect(201).await;
    let start = || app.post(format!("{path}/start")).by(&ada).key("start");
    let started = start().expect(200).await;
    let resign = || app.post(format!("{path}/resignation")).by(&bo).key("resign").at(3);
    let resigned = resign().expect(200).await;

    // Long after: all as they were.
    assert_replays(&created, &create().send().await);
    assert_replays(&seated, &sit().send().await);
    assert_replays(&started, &start().send().await);
    assert_replays(&resigned, &resign().send().await);
    assert_eq!(app.count("select count(*) from games").await, 1);
    assert_eq!(app.get(&path).ok(200).await["version"], 4);
}

#[tokio::test]
async fn a_repeated_registration_has_the_same_token() {
    let app = TestApp::new().await;
    let register = || app.post("/v1/players").key(KEY).json(&json!({"name": "Ada"}));
    let first = register().expect(201).await;
    let again = register().send().await;
    assert_replays(&first, &again);
    app.get("/v1/me").token(again.json()["token"].as_str().unwrap()).expect(200).await;
    app.post("/v1/players").key(KEY).json(&json!({"name": "Bo"})).refused(422, "idempotency-key-reused").await;
    assert_eq!(app.count("select count(*) from players").await, 1);
    // The key itself is not kept: it opens the account.
    let kept: Vec<String> =
        sqlx::query_scalar("select k::text from idempotency_keys k").fetch_all(app.sql()).await.unwrap();
    assert!(kept.iter().all(|row| !row.contains(KEY) && !row.contains(&hex::encode(KEY))), "{kept:?}");
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let app = TestApp::new().await;
    let table = app.table("siggil", &json!({}), 2).await;
    let (mover, other) = app.mover_and_other(&table).await;
    let moves = app.legal_moves(&table.id, mover).await;
    let play = |mv: &Value| app.post(table.path("/moves")).by(mover).key(KEY).json(mv);
    play(&moves[0]).expect(201).await;
    play(&moves[1]).refused(422, "idempotency-key-reused").await;
    // Other spaces are another body, another path another request.
    let spaced = format!(" {}", moves[0]);
    app.post(table.path("/moves")).by(mover).key(KEY).text(spaced).refused(422, "idempotency-key-reused").await;
    app.post(table.path("/resignation")).by(mover).key(KEY).refused(422, "idempotency-key-reused").await;
    app.post("/v1/games")
        .by(mover)
        .key(KEY)
        .json(&json!({"ruleset": "siggil"}))
        .refused(422, "idempotency-key-reused")
        .await;
    app.post(table.path("/seats")).by(mover).key(KEY).json(&json!({})).refused(422, "idempotency-key-reused").await;
    assert_eq!(app.game(&table.id, None).await["status"], "active");
    // Another player's key of the same text is another key.
    let (seat, _) = (app.to_move(&table).await, ());
    let next = &table.players[seat.unwrap()];
    if next.id == other.id {
        let mv = app.legal_moves(&table.id, next).await[0].clone();
        let reply = app.post(table.path("/moves")).by(next).key(KEY).json(&mv).expect(201).await;
        assert!(!reply.is_replay());
    }
    app.post("/v1/games").by(other).key("k").json(&json!({"ruleset": "siggil"})).expect(201).await;
    let reply = app.post("/v1/games").by(mover).key("k").json(&json!({"ruleset": "siggil"})).expect(201).await;
    assert!(!reply.is_replay());
}

#[tokio::test]
async fn a_request_that_failed_does_not_use_its_key_up() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let (mover, other) = app.mover_and_other(&table).await;
    let mv = app.legal_moves(&table.id, mover).await[0].clone();
    let play = |player, mv: &Value| app.post(table.path("/moves")).by(player).key(KEY).json(mv);
    play(mover, &json!({"type": "end_hand"})).refused(422, "illegal-move").await;
    play(mover, &json!({"type": "fly"})).refused(400, "invalid-body").await;
    play(mover, &mv).at(0).refused(412, "stale-version").await;
    play(other, &mv).refused(409, "not-your-turn").await;
    play(mover, &mv).expect(201).await;
    assert_eq!(app.count("select count(*) from idempotency_keys").await, 1);

    app.register("Ada").await;
    let register = |name: &str| app.post("/v1/players").key(KEY).json(&json!({"name": name}));
    register("ada").refused(409, "name-taken").await;
    register("Bo").expect(201).await;
    let create = |options: Value| {
        app.post("/v1/games").by(mover).key("c").json(&json!({"ruleset": "leopard", "options": options}))
    };
    create(json!({"hands": 0})).refused(422, "invalid-options").await;
    create(json!({"hands": 1})).expect(201).await;
}

#[tokio::test]
async fn a_token_that_is_wrong_has_no_answer_however_well_the_key_is_known() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let (mover, other) = app.mover_and_other(&table).await;
    let mv = app.legal_moves(&table.id, mover).await[0].clone();
    let play = || app.post(table.path("/moves")).key(KEY).json(&mv);
    let first = play().by(mover).expect(201).await;
    play().refused(401, "unauthenticated").await;
    play().token("x").refused(401, "unauthenticated").await;
    // The other player may hold an equal card and play it, but it is a move of their own then.
    let theirs = play().by(other).send().await;
    assert!(!theirs.is_replay() && theirs.bytes != first.bytes, "{}", theirs.text());
}

#[tokio::test]
async fn twenty_equal_moves_with_one_key_are_one_move() {
    let app = TestApp::with(2, 8).await;
    let table = app.table("leopard", &json!({}), 2).await;
    let (mover, _) = app.mover_and_other(&table).await;
    let mv = app.legal_moves(&table.id, mover).await[0].clone();
    twenty_at_once(|| app.post(table.path("/moves")).by(mover).at(1).key(KEY).json(&mv), 201).await;
    assert_eq!(app.count("select count(*) from moves").await, 1);
    assert_eq!(app.count("select version::bigint from positions").await, 2);
}

#[tokio::test]
async fn twenty_equal_commands_with_one_key_are_one_command() {
    let app = TestApp::with(2, 8).await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let game = json!({"ruleset": "leonardo", "seats": 3});
    let created = twenty_at_once(|| app.post("/v1/games").by(&ada).key("create").json(&game), 201).await;
    assert_eq!(app.count("select count(*) from games").await, 1);
    let path = format!("/v1/games/{}", created[0].json()["id"].as_str().unwrap());
    twenty_at_once(|| app.post(format!("{path}/seats")).by(&bo).key("sit").json(&json!({})), 201).await;
    assert_eq!(app.count("select count(*) from seats").await, 2);
    twenty_at_once(|| app.post(format!("{path}/start")).by(&ada).key("start"), 200).await;
    twenty_at_once(|| app.post(format!("{path}/resignation")).by(&bo).key("resign"), 200).await;
    assert_eq!(app.count("select version::bigint from positions").await, 3);
    twenty_at_once(|| app.post("/v1/players").key(KEY).json(&json!({"name": "Cy"})), 201).await;
    assert_eq!(app.count("select count(*) from players").await, 3);
    assert_eq!(app.count("select count(*) from tokens").await, 3);
}

#[tokio::test]
async fn of_two_requests_with_one_key_at_once_one_is_told() {
    let app = TestApp::with(2, 8).await;
    let ada = app.register("Ada").await;
    let create = |slug: &str| app.post("/v1/games").by(&ada).key("k").json(&json!({"ruleset": slug})).send();
    let slugs = ["leopard", "siggil"];
    let replies = join_all((0..20).map(|i| create(slugs[i % 2]))).await;
    assert_eq!(app.count("select count(*) from games").await, 1);
    let winner = replies.iter().position(|reply| reply.status == 201).unwrap() % 2;
    for (place, reply) in replies.iter().enumerate() {
        let expected = if place % 2 == winner { (201, Value::Null) } else { (422, json!("idempotency-key-reused")) };
        assert_eq!((reply.status, reply.json()["code"].clone()), expected);
    }
}

const DAY_OLD: &str = "update idempotency_keys set created_at = now() - interval '24 hours 1 second'";

#[tokio::test]
async fn after_a_day_a_key_is_forgotten() {
    let app = TestApp::new().await;
    let table = app.table("siggil", &json!({}), 2).await;
    let (mover, _) = app.mover_and_other(&table).await;
    let mv = app.legal_moves(&table.id, mover).await[0].clone();
    let sql = app.sql();
    let play = |mv: &Value| app.post(table.path("/moves")).by(mover).key(KEY).json(mv);
    let create = |slug: &str| app.post("/v1/games").by(mover).key("k").json(&json!({"ruleset": slug}));
    let register = |name: &str| app.post("/v1/players").key(KEY).json(&json!({"name": name}));
    play(&mv).expect(201).await;
    create("leopard").expect(201).await;
    register("Ada").expect(201).await;
    sqlx::query("update idempotency_keys set created_at = now() - interval '23 hours 59 minutes'")
        .execute(sql)
        .await
        .unwrap();
    assert!(play(&mv).expect(201).await.is_replay());
    assert!(create("leopard").expect(201).await.is_replay());

    sqlx::query(DAY_OLD).execute(sql).await.unwrap();
    // Judged anew: the card is gone.
    let again = play(&mv).send().await;
    assert!(matches!(again.status, 409 | 422), "{}", again.text());
    assert_ne!(again.json()["code"], "idempotency-key-reused");
    // The key can be used for something else, pruned or not.
    assert!(!create("siggil").expect(201).await.is_replay());
    assert!(create("siggil").expect(201).await.is_replay());
    assert!(!register("Bo").expect(201).await.is_replay());
    app.play_random(&table, 5, 1).await;
    let next = app.legal_moves(&table.id, mover).await[0].clone();
    assert!(!play(&next).expect(201).await.is_replay());
    assert_eq!(app.count("select count(*) from games").await, 3);
}

#[tokio::test]
async fn pruning_deletes_what_is_a_day_old_and_nothing_else() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let sql = app.sql();
    sqlx::query(
        "insert into idempotency_keys (id, request_hash, player_id, status, headers, body)
         select md5(n::text)::uuid, md5(n::text)::uuid, $1::uuid, 201, '{}', 'x' from generate_series(1, 25000) as n",
    )
    .bind(uuid::Uuid::parse_str(&ada.id).unwrap())
    .execute(sql)
    .await
    .unwrap();
    assert_eq!(pruning::run_once(&app.store).await.unwrap(), 0);
    sqlx::query(DAY_OLD).execute(sql).await.unwrap();
    app.post("/v1/games").by(&ada).key("k").json(&json!({"ruleset": "leopard"})).expect(201).await;
    // More than one statement looks through.
    assert!(app.count("select pg_relation_size('idempotency_keys') / 8192").await > 300);
    // Who deletes an account deletes its keys in another order: neither waits for the other.
    let mut other = sql.begin().await.unwrap();
    sqlx::query("select from idempotency_keys order by created_at limit 1 for update")
        .execute(&mut *other)
        .await
        .unwrap();
    assert_eq!(pruning::run_once(&app.store).await.unwrap(), 24_999);
    other.rollback().await.unwrap();
    assert_eq!(pruning::run_once(&app.store).await.unwrap(), 1);
    assert_eq!(app.count("select count(*) from idempotency_keys").await, 1);
    assert!(app.post("/v1/games").by(&ada).key("k").json(&json!({"ruleset": "leopard"})).expect(201).await.is_replay());
}

#[tokio::test]
async fn a_repeat_stays_the_same_when_a_player_has_a_new_name() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let create = || app.post("/v1/games").by(&ada).key("k").json(&json!({"ruleset": "leopard"}));
    let first = create().expect(201).await;
    app.call("PATCH", "/v1/me").by(&ada).json(&json!({"name": "Another"})).expect(200).await;
    assert_replays(&first, &create().send().await);
    drop(bo);
}
