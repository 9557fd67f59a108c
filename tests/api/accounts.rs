//! The end of accounts: what goes, what stays, and what comes too late.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::workers::accounts;
use uuid::Uuid;

use crate::helpers::{Player, TestApp};
use crate::play::{Chance, short};

impl TestApp {
    async fn delete_me(&self, player: &Player) {
        let reply = self.call("DELETE", "/v1/me").by(player).expect(204).await;
        assert_eq!((reply.header("cache-control"), reply.bytes.len()), (Some("no-store"), 0));
    }

    /// Has a request that was under way come through only now: the account is deleted, but a token of it was still good.
    async fn late_token(&self, player: &Player) -> Player {
        sqlx::query("insert into tokens (hash, player_id) values (sha256('late'), $1::uuid)")
            .bind(&player.id)
            .execute(self.sql())
            .await
            .unwrap();
        Player { token: "late".into(), ..player.clone() }
    }

    async fn settle(&self) -> u64 {
        accounts::run_once(&self.store).await.unwrap()
    }
}

/// The name that a deleted player has now.
async fn new_name(app: &TestApp, player: &Player) -> String {
    let profile = app.get(format!("/v1/players/{}", player.id)).ok(200).await;
    let name = profile["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("deleted-") && name.len() == 24 && !name.contains(&player.name), "{name}");
    name
}

#[tokio::test]
async fn a_deleted_account_has_no_name_and_no_token_and_others_keep_what_is_theirs() {
    let app = TestApp::new().await;
    let (ada, bo) = (app.register("Ada Lovelace").await, app.register("Bo").await);
    let second = app.post("/v1/me/tokens").by(&ada).json(&json!({"name": "x", "scopes": ["read"]})).ok(201).await;
    let second = second["token"].as_str().unwrap();
    let wanted = json!({"ruleset": "leopard", "options": short("leopard"), "rated": true});
    let over = app.table_like(&wanted, vec![ada.clone(), bo.clone()]).await;
    app.play_to_the_end(&over, 1).await;
    let running = app.table_like(&wanted, vec![bo.clone(), ada.clone()]).await;
    app.play_one(&running, &mut Chance(1)).await;
    let ratings = app.get(format!("/v1/players/{}/ratings", bo.id)).ok(200).await;

    app.call("DELETE", "/v1/me").token(second).refused(403, "missing-scope").await;
    app.call("DELETE", "/v1/me").refused(401, "unauthenticated").await;
    app.delete_me(&ada).await;
    let name = new_name(&app, &ada).await;
    for token in [ada.token.as_str(), second] {
        app.get("/v1/me").token(token).refused(401, "unauthenticated").await;
        app.call("DELETE", "/v1/me").token(token).refused(401, "unauthenticated").await;
        app.post("/v1/games").token(token).json(&wanted).refused(401, "unauthenticated").await;
    }
    // Nothing says the old name any more.
    app.forbid("lovelace");
    assert_eq!(app.get("/v1/players?name=Ada%20X").ok(200).await, json!({"items": []}));
    let found = app.get("/v1/players?name=Ada%20Lovelace").ok(200).await;
    assert_eq!(found, json!({"items": []}));
    for path in [
        over.path(""),
        running.path(""),
        format!("/v1/games?player={}", ada.id),
        over.path("/moves"),
        over.path("/events"),
        running.path("/events"),
        over.path("/record"),
        over.path("/fairness"),
        over.path("/states/0"),
        format!("/v1/players/{}/ratings", ada.id),
        format!("/v1/players/{}/ratings", bo.id),
        "/v1/leaderboards/leopard".to_owned(),
    ] {
        let text = app.get(&path).by(&bo).expect(200).await.text();
        let names = [over.path(""), running.path(""), over.path("/record"), format!("/v1/players/{}/ratings", bo.id)];
        assert!(!names.contains(&path) || text.contains(&name), "{path}: {text}");
    }
    let reply = app.get(over.path("/record")).expect(200).await;
    tavola::game::Record::read(&reply.bytes).unwrap().verify().unwrap();
    // The running game is won by the other, and counts.
    let game = app.game(&running.id, Some(&bo)).await;
    assert_eq!((&game["status"], &game["outcome"]["reason"]), (&json!("finished"), &json!("resignation")));
    let now = app.get(format!("/v1/players/{}/ratings", bo.id)).ok(200).await;
    assert_eq!((now["items"].as_array().unwrap().len(), now["current"][0]["games_count"].clone()), (2, json!(2)));
    let mut before = ratings["items"][0].clone();
    before["opponents"][0]["player"]["name"] = json!(name);
    assert_eq!(now["items"][1], before, "the history is what it was, but for the name");
    // The name is free.
    app.allow_all();
    let another = app.register("ADA LOVELACE").await;
    assert_ne!(another.id, ada.id);
    assert_eq!(new_name(&app, &ada).await, name);
    app.post("/v1/players").json(&json!({"name": name})).refused(400, "invalid-body").await;
}

#[tokio::test]
async fn a_deleted_account_leaves_open_games_and_declines_and_is_played_on_for() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let leonardo = json!({"ruleset": "leonardo", "seats": 3, "options": short("leonardo")});
    let own = app.open(&ada, &leonardo).await;
    let shared = app.open(&ada, &leonardo).await;
    app.post(format!("{shared}/seats")).by(&bo).expect(201).await;
    let inviting = app.open(&bo, &leonardo).await;
    app.post(format!("{inviting}/invitations")).by(&bo).json(&json!({"player": ada.id})).expect(201).await;
    let hidden = app.create(&bo, &json!({"ruleset": "leonardo", "seats": 3, "visibility": "private"})).await;
    let secret = format!("/v1/games/{}", hidden["id"].as_str().unwrap());
    app.post(format!("{secret}/seats")).by(&ada).json(&json!({"invite": hidden["invite"]})).expect(201).await;
    let three = app.table_of("leonardo", &short("leonardo"), vec![ada.clone(), bo.clone(), cy.clone()]).await;
    let solo = app.create(&ada, &json!({"ruleset": "siggil", "seats": 1})).await;
    app.delete_me(&ada).await;
    assert_eq!(app.get(&own).ok(200).await["status"], "aborted");
    let game = app.get(&shared).by(&bo).ok(200).await;
    assert_eq!((&game["status"], game["seats"].as_array().unwrap().len()), (&json!("open"), 1));
    assert!(!game["seats"].to_string().contains(&ada.id));
    app.post(format!("{shared}/seats")).by(&cy).expect(201).await;
    app.post(format!("{shared}/start")).by(&bo).expect(200).await;
    let game = app.get(&inviting).by(&bo).ok(200).await;
    assert!(!game.to_string().contains(&ada.id), "{game}");
    let game = app.get(&secret).by(&bo).ok(200).await;
    assert!(!game["seats"].to_string().contains(&ada.id));
    let game = app.game(&three.id, Some(&bo)).await;
    assert_eq!((&game["status"], &game["seats"][0]["status"]), (&json!("active"), &json!("resigned")));
    assert_eq!(app.game(solo["id"].as_str().unwrap(), None).await["status"], "finished");
    let game = app.play_with_bots_to_the_end(&three, 1).await;
    assert_eq!(game["outcome"]["ranking"][2]["seat"], 0);
    // All is done: doing it again changes nothing.
    assert_eq!(app.settle().await, 1, "for a minute it is looked at again");
    sqlx::query("update players set deleted_at = now() - interval '61 seconds' where deleted_at is not null")
        .execute(app.sql())
        .await
        .unwrap();
    assert_eq!((app.settle().await, app.settle().await), (1, 0));
}

#[tokio::test]
async fn what_a_crash_or_a_late_request_left_is_settled() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let leopard = json!({"ruleset": "leopard", "options": short("leopard")});
    let table = app.table_like(&leopard, vec![ada.clone(), bo.clone()]).await;
    // Deleted, and the server failed before anything else.
    let hash = tavola::store::TokenHash::of(&ada.token);
    app.store.delete_account(&hash).await.unwrap();
    assert_eq!(app.game(&table.id, None).await["status"], "active");
    assert_eq!(app.settle().await, 1);
    assert_eq!(app.game(&table.id, None).await["status"], "finished");
    // What was authenticated before and is written after.
    let late = app.late_token(&ada).await;
    let open = app.open(&late, &leopard).await;
    let others = app.open(&bo, &json!({"ruleset": "leonardo", "seats": 3})).await;
    app.post(format!("{others}/seats")).by(&late).expect(201).await;
    app.call("PATCH", "/v1/me").by(&late).json(&json!({"name": "Back again"})).refused(401, "unauthenticated").await;
    app.post("/v1/me/webhooks").by(&late).json(&json!({"url": "https://93.184.215.14/"})).expect(201).await;
    assert_eq!(app.settle().await, 1);
    assert_eq!(app.get(&open).ok(200).await["status"], "aborted");
    let game = app.get(&others).by(&bo).ok(200).await;
    assert!(!game["seats"].to_string().contains(&ada.id));
    app.get("/v1/me").by(&late).refused(401, "unauthenticated").await;
    for sql in [
        "select count(*) from webhooks",
        "select count(*) from tokens t join players p on p.id = t.player_id where p.deleted_at is not null",
    ] {
        assert_eq!(app.count(sql).await, 0, "{sql}");
    }
    // Of an account that is not deleted nothing is taken.
    assert!(app.store.settle_account(Uuid::parse_str(&bo.id).unwrap()).await.is_err());
    app.get("/v1/me").by(&bo).expect(200).await;
}

#[tokio::test]
async fn deleting_and_moving_at_once_leaves_nobody_sitting() {
    let app = TestApp::with(2, 8).await;
    for _ in 0..6 {
        let wanted = json!({"ruleset": "leopard", "options": short("leopard"), "rated": true});
        let table = app.table_like(&wanted, app.players(2).await).await;
        let (mover, other) = app.mover_and_other(&table).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        app.post("/v1/me/webhooks").by(mover).json(&json!({"url": "https://93.184.215.14/"})).expect(201).await;
        let moves = join_all((0..4).map(|_| app.post(table.path("/moves")).by(mover).json(&mv).send()));
        let deletions = join_all((0..4).map(|_| app.call("DELETE", "/v1/me").by(mover).send()));
        let (moves, deletions, resigned) =
            tokio::join!(moves, deletions, app.post(table.path("/resignation")).by(other).send());
        let done = deletions.iter().filter(|reply| reply.status == 204).count();
        assert_eq!((done, deletions.iter().filter(|reply| reply.status == 401).count()), (1, 3));
        assert!(moves.iter().all(|reply| matches!(reply.status, 201 | 401 | 409)), "{moves:?}");
        assert!(matches!(resigned.status, 200 | 409), "{}", resigned.text());
        app.settle().await;
        let game = app.game(&table.id, Some(other)).await;
        assert_eq!(game["status"], "finished");
        let rows = sqlx::query_scalar::<_, i64>("select count(*) from rating_changes where game_id = $1::uuid");
        assert_eq!(rows.bind(&table.id).fetch_one(app.sql()).await.unwrap(), 2);
    }
    // Both at once.
    let table = app.table("leopard", &short("leopard"), 2).await;
    join_all(table.players.iter().map(|player| app.call("DELETE", "/v1/me").by(player).expect(204))).await;
    assert_eq!(app.game(&table.id, None).await["status"], "finished");
}

#[tokio::test]
async fn a_registration_that_is_repeated_revives_nobody() {
    let app = TestApp::new().await;
    let key = "5f9a3c58-9a43-4c19-8a4e-1c1f0c8f7a11";
    let register = || app.post("/v1/players").key(key).json(&json!({"name": "Grace Hopper"}));
    let answer = register().ok(201).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let grace = Player {
        id: text(&answer["player"]["id"]),
        name: text(&answer["player"]["name"]),
        token: text(&answer["token"]),
    };
    app.post("/v1/games").by(&grace).key("k").json(&json!({"ruleset": "leopard"})).expect(201).await;
    app.delete_me(&grace).await;
    let again = register().ok(201).await;
    assert_eq!(again["player"]["id"], grace.id.as_str());
    assert_eq!(text(&again["player"]["name"]), new_name(&app, &grace).await);
    app.get("/v1/me").token(&text(&again["token"])).refused(401, "unauthenticated").await;
    assert_eq!(
        app.count("select count(*) from idempotency_keys where status is not null and body::text like '%opper%'").await,
        0
    );
    // Somebody else can have the name, with a key of their own.
    let other = app.register("Grace Hopper").await;
    assert_ne!(other.id, grace.id);
}
