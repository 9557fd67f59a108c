//! Tokens: what each scope opens, expiry, making and revoking them.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::workers::pruning;

use crate::checks::DOCUMENT;
use crate::helpers::{Player, Reply, TestApp};
use crate::outsiders::{body, operations, path_of};
use crate::play::Chance;

const SCOPES: [&str; 3] = ["read", "play", "manage"];
/// A key that is long enough for a token.
const KEY: &str = "b0a6a6c4-54b1-4bd5-9a0e-7f5f4f1e2d3c";

impl TestApp {
    /// Another token of the player's, as it was answered.
    async fn token(&self, player: &Player, scopes: &[&str]) -> Value {
        self.post("/v1/me/tokens").by(player).json(&json!({"name": "another", "scopes": scopes})).ok(201).await
    }

    /// The same player with another token.
    async fn with_scopes(&self, player: &Player, scopes: &[&str]) -> Player {
        Player { token: text(&self.token(player, scopes).await["token"]), ..player.clone() }
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The scope that an operation has to need of a token, thought out anew here and not read from the document.
fn needed(operation: &str, method: &str, path: &str) -> Option<&'static str> {
    let takes_none = [
        "register_player",
        "find_players",
        "get_player",
        "list_ratings",
        "list_rulesets",
        "get_ruleset",
        "get_ruleset_stats",
        "get_problem",
    ];
    if takes_none.contains(&operation) || !path.starts_with("/v1/") || ["get_me", "get_token"].contains(&operation) {
        return None;
    }
    match method {
        "GET" if ["/v1/me/events", "/v1/me/invitations", "/v1/me/turns"].contains(&path) => Some("read"),
        _ if path.starts_with("/v1/me") => Some("manage"),
        "GET" => Some("read"),
        _ => Some("play"),
    }
}

#[tokio::test]
async fn every_operation_takes_the_scope_that_it_needs_and_no_other() {
    let app = TestApp::new().await;
    for (operation, method, template) in operations() {
        let table = app.table("leonardo", &json!({}), 2).await;
        app.play_one(&table, &mut Chance(1)).await;
        let seat = app.to_move(&table).await.expect("somebody is to move");
        let mover = &table.players[seat];
        let path = path_of(&template, &table.id, &mover.id);
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        let needed = needed(&operation, &method, &template);
        // First those that must change nothing.
        let mut scopes = SCOPES;
        let allows = |scope: &str| needed.is_none_or(|needed| needed == scope || (needed, scope) == ("read", "play"));
        scopes.sort_by_key(|scope| allows(scope));
        for scope in scopes {
            let caller = app.with_scopes(mover, &[scope]).await;
            let before = app.game(&table.id, Some(mover)).await;
            let mut call = app.call(&method, &path).by(&caller);
            if let Some(body) = body(&operation, &format!("{operation} {scope}"), &mv, &mover.id) {
                call = call.json(&body);
            }
            let what = format!("{operation} with {scope}");
            if allows(scope) {
                let reply = call.send().await;
                let code = (reply.status >= 400).then(|| reply.json()["code"].clone());
                assert_ne!(code, Some(json!("missing-scope")), "{what}: {}", reply.text());
                assert_ne!(reply.status, 401, "{what}: {}", reply.text());
            } else {
                let problem = call.refused(403, "missing-scope").await;
                let needed = needed.unwrap_or_default();
                assert_eq!(problem["detail"], format!("the token lacks the scope `{needed}`"), "{what}");
                assert_eq!(problem["errors"][0]["pointer"], "Authorization", "{what}");
                assert_eq!(app.game(&table.id, Some(mover)).await, before, "{what}: it changed the game");
            }
        }
    }
}

/// The document says in words and as `security` what the test above has found to be so.
#[test]
fn the_document_tells_the_scope_of_every_operation() {
    for (operation, method, path) in operations() {
        let told = &DOCUMENT["paths"][&path][method.to_lowercase()];
        let needed = needed(&operation, &method, &path);
        let ways = told["security"].as_array().expect("it is said expressly");
        let scopes: Vec<&str> = ways.iter().filter_map(|way| way["token"][0].as_str()).collect();
        assert_eq!(scopes, needed.into_iter().collect::<Vec<_>>(), "{operation}");
        let problem = &told["responses"]["403"]["content"]["application/problem+json"]["examples"]["missing-scope"];
        assert_eq!(problem.is_object(), needed.is_some(), "{operation}");
        let description = told["description"].as_str().unwrap();
        let says = |words: String| description.ends_with(&words);
        match needed {
            Some(scope) if ways.contains(&json!({})) => {
                assert!(says(format!("Needs no token; one that is sent needs the scope `{scope}`.")), "{operation}");
            }
            Some(scope) => assert!(says(format!("Needs a token with scope `{scope}`.")), "{operation}"),
            None => assert!(!description.contains("with scope"), "{operation}"),
        }
    }
}

#[tokio::test]
async fn the_token_of_a_registration_may_do_everything_and_tells_so() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let seen = app.get("/v1/me/token").by(&ada).ok(200).await;
    assert_eq!(seen["scopes"], json!(["read", "play", "manage"]));
    assert_eq!((&seen["name"], &seen["expires_at"]), (&json!("registration"), &Value::Null));
    let list = app.get("/v1/me/tokens").by(&ada).ok(200).await;
    assert_eq!(list, json!({"items": [seen]}));
    app.get("/v1/me/token").refused(401, "unauthenticated").await;
}

#[tokio::test]
async fn a_new_token_is_what_was_asked_for_and_is_shown_once() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let new = json!({"name": "  old laptop ", "scopes": ["play", "play"], "expires_in": 3600});
    let reply = app.post("/v1/me/tokens").by(&ada).json(&new).expect(201).await;
    assert_eq!(reply.header("cache-control"), Some("no-store"), "a token is kept by nobody on the way");
    let made = reply.json();
    assert_eq!((&made["name"], &made["scopes"]), (&json!("old laptop"), &json!(["play"])));
    let time = |member: &str| {
        let format = &time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::parse(made[member].as_str().unwrap(), format).unwrap()
    };
    assert_eq!(time("expires_at") - time("created_at"), time::Duration::HOUR);

    let token = text(&made["token"]);
    let seen = app.get("/v1/me/token").token(&token).ok(200).await;
    for member in ["id", "name", "scopes", "created_at", "expires_at"] {
        assert_eq!(seen[member], made[member], "{member}");
    }
    assert_eq!(app.get("/v1/me").token(&token).ok(200).await["id"], ada.id.as_str());

    // Neither the token nor its hash is ever told again, and the database has not the token.
    app.forbid(token.strip_prefix("tavola_").unwrap());
    app.forbid(ada.token.strip_prefix("tavola_").unwrap());
    let hashes: Vec<String> =
        sqlx::query_scalar("select encode(hash, 'hex') from tokens").fetch_all(app.sql()).await.unwrap();
    hashes.iter().for_each(|hash| app.forbid(hash));
    let list = app.get("/v1/me/tokens").by(&ada).ok(200).await;
    let names: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|token| &token["name"]).collect();
    assert_eq!(names, ["old laptop", "registration"], "newest first");
    assert_eq!(list["items"][0], seen);
    let rows: Vec<String> =
        sqlx::query_scalar("select t::text from tokens t union all select k::text from idempotency_keys k")
            .fetch_all(app.sql())
            .await
            .unwrap();
    assert!(rows.iter().all(|row| !row.contains(token.strip_prefix("tavola_").unwrap())));
}

#[tokio::test]
async fn what_no_token_can_be_is_refused() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let long = "é".repeat(65);
    let cases = [
        (json!({"scopes": ["read"]}), ""),
        (json!({"name": "x"}), ""),
        (json!({"name": "", "scopes": ["read"]}), "/name"),
        (json!({"name": " \u{a0}", "scopes": ["read"]}), "/name"),
        (json!({"name": long, "scopes": ["read"]}), "/name"),
        (json!({"name": "a\u{200b}b", "scopes": ["read"]}), "/name"),
        (json!({"name": "a\0b", "scopes": ["read"]}), "/name"),
        (json!({"name": "\u{202e}ab", "scopes": ["read"]}), "/name"),
        (json!({"name": 1, "scopes": ["read"]}), "/name"),
        (json!({"name": "x", "scopes": []}), "/scopes"),
        (json!({"name": "x", "scopes": "read"}), "/scopes"),
        (json!({"name": "x", "scopes": ["read", "admin"]}), "/scopes/1"),
        (json!({"name": "x", "scopes": ["READ"]}), "/scopes/0"),
        (json!({"name": "x", "scopes": ["read"], "expires_in": 0}), "/expires_in"),
        (json!({"name": "x", "scopes": ["read"], "expires_in": -1}), "/expires_in"),
        (json!({"name": "x", "scopes": ["read"], "expires_in": 315_360_001}), "/expires_in"),
        (json!({"name": "x", "scopes": ["read"], "expires_in": 1.5}), "/expires_in"),
        (json!({"name": "x", "scopes": ["read"], "expires_in": null}), "/expires_in"),
        (json!({"name": "x", "scopes": ["read"], "player_id": ada.id}), "/player_id"),
    ];
    for (body, pointer) in cases {
        let problem = app.post("/v1/me/tokens").by(&ada).json(&body).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
    }
    let (name, scopes) = ("é".repeat(64), ["read"]);
    let made = app.post("/v1/me/tokens").by(&ada).json(&json!({"name": name, "scopes": scopes})).ok(201).await;
    assert_eq!(made["name"], name);
    assert_eq!(app.count("select count(*) from tokens").await, 2);
}

#[tokio::test]
async fn a_token_gives_no_more_than_it_has() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let create =
        |by: &Player, scopes: &[&str]| app.post("/v1/me/tokens").by(by).json(&json!({"name": "x", "scopes": scopes}));
    for own in [&["read"][..], &["play"], &["read", "play"]] {
        let poor = app.with_scopes(&ada, own).await;
        let problem = create(&poor, &["read"]).refused(403, "missing-scope").await;
        assert_eq!(problem["detail"], "the token lacks the scope `manage`");
        app.get("/v1/me/tokens").by(&poor).refused(403, "missing-scope").await;
    }
    let manager = app.with_scopes(&ada, &["manage"]).await;
    for (wanted, missing) in [(&["read"][..], "read"), (&["play"], "play"), (&["manage", "play"], "play")] {
        let problem = create(&manager, wanted).refused(403, "missing-scope").await;
        assert_eq!(problem["detail"], format!("the token lacks the scope `{missing}`"), "{wanted:?}");
    }
    create(&manager, &["manage"]).expect(201).await;
    // Whoever may play may read, and may let another read.
    let player = app.with_scopes(&ada, &["manage", "play"]).await;
    create(&player, &["read"]).expect(201).await;
    let reader = app.with_scopes(&ada, &["manage", "read"]).await;
    create(&reader, &["play"]).refused(403, "missing-scope").await;
}

#[tokio::test]
async fn a_token_does_not_outlive_the_one_that_made_it() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let create = |token: &str, expires_in: Option<u32>| {
        let mut body = json!({"name": "x", "scopes": ["manage"]});
        if let Some(seconds) = expires_in {
            body["expires_in"] = seconds.into();
        }
        app.post("/v1/me/tokens").token(token).json(&body).ok(201)
    };
    let hour = create(&ada.token, Some(3600)).await;
    let token = text(&hour["token"]);
    assert_eq!(create(&token, None).await["expires_at"], hour["expires_at"]);
    assert_eq!(create(&token, Some(7200)).await["expires_at"], hour["expires_at"]);
    let minute = create(&token, Some(60)).await;
    assert!(minute["expires_at"].as_str() < hour["expires_at"].as_str(), "{minute}");
}

#[tokio::test]
async fn an_expired_token_is_no_token() {
    let app = TestApp::new().await;
    let table = app.table("leonardo", &json!({}), 2).await;
    let (mover, _) = app.mover_and_other(&table).await;
    let mv = app.legal_moves(&table.id, mover).await[0].clone();
    let caller = app.with_scopes(mover, &SCOPES).await;
    app.get("/v1/me/token").by(&caller).expect(200).await;
    sqlx::query("update tokens set expires_at = now() where name = 'another'").execute(app.sql()).await.unwrap();
    for path in ["/v1/me", "/v1/me/token", "/v1/me/tokens", "/v1/games", &table.path(""), &table.path("/legal-moves")] {
        app.get(path).by(&caller).refused(401, "unauthenticated").await;
    }
    app.post("/v1/games").by(&caller).json(&json!({"ruleset": "leopard"})).refused(401, "unauthenticated").await;
    app.post(table.path("/moves")).by(&caller).json(&mv).refused(401, "unauthenticated").await;
    app.post(table.path("/resignation")).by(&caller).refused(401, "unauthenticated").await;
    let new = json!({"name": "x", "scopes": ["read"]});
    app.post("/v1/me/tokens").by(&caller).json(&new).refused(401, "unauthenticated").await;
    // It stands in no list, and others of the account are as they were.
    let list = app.get("/v1/me/tokens").by(mover).ok(200).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    app.post(table.path("/moves")).by(mover).json(&mv).expect(201).await;
}

#[tokio::test]
async fn a_revoked_token_is_refused_and_nobody_revokes_anothers() {
    let app = TestApp::new().await;
    let (ada, bo) = (app.register("Ada").await, app.register("Bo").await);
    let made = app.token(&ada, &["play"]).await;
    let path = format!("/v1/me/tokens/{}", text(&made["id"]));
    let revoke = |by: &Player| app.call("DELETE", &path).by(by);
    revoke(&bo).refused(404, "not-found").await;
    revoke(&Player { token: text(&made["token"]), ..ada.clone() }).refused(403, "missing-scope").await;
    app.call("DELETE", &path).refused(401, "unauthenticated").await;
    app.get("/v1/me").token(&text(&made["token"])).expect(200).await;

    assert!(revoke(&ada).expect(204).await.bytes.is_empty());
    app.get("/v1/me").token(&text(&made["token"])).refused(401, "unauthenticated").await;
    revoke(&ada).refused(404, "not-found").await;
    app.call("DELETE", format!("/v1/me/tokens/{}", uuid::Uuid::nil())).by(&ada).refused(404, "not-found").await;
    let problem = app.call("DELETE", "/v1/me/tokens/1").by(&ada).refused(400, "invalid-parameter").await;
    assert_eq!(problem["errors"][0]["pointer"], "id");

    // The present one too.
    let spare = app.with_scopes(&ada, &SCOPES).await;
    let own = text(&app.get("/v1/me/token").by(&ada).ok(200).await["id"]);
    app.call("DELETE", format!("/v1/me/tokens/{own}")).by(&ada).expect(204).await;
    app.get("/v1/me").by(&ada).refused(401, "unauthenticated").await;
    app.get("/v1/me").by(&spare).expect(200).await;
}

#[tokio::test]
async fn a_repeated_creation_is_answered_with_the_same_token() {
    let app = TestApp::with(2, 8).await;
    let ada = app.register("Ada").await;
    let new = json!({"name": "x", "scopes": ["manage", "read"], "expires_in": 60});
    let create = || app.post("/v1/me/tokens").by(&ada).key(KEY).json(&new);
    let replies = join_all((0..20).map(|_| create().send())).await;
    let first = replies.iter().find(|reply| !reply.is_replay()).expect("one is the first");
    assert_eq!(replies.iter().filter(|reply| !reply.is_replay()).count(), 1);
    assert!(replies.iter().all(|reply| reply.lasting() == first.lasting()), "{}", first.text());
    assert_eq!(first.status, 201);
    assert_eq!(app.count("select count(*) from tokens").await, 2);
    let token = text(&first.json()["token"]);
    app.get("/v1/me").token(&token).expect(200).await;

    app.post("/v1/me/tokens")
        .by(&ada)
        .key(KEY)
        .json(&json!({"name": "y", "scopes": ["read"]}))
        .refused(422, "idempotency-key-reused")
        .await;
    let problem = app.post("/v1/me/tokens").by(&ada).key("short").json(&new).refused(400, "invalid-parameter").await;
    assert_eq!(problem["errors"][0]["pointer"], "Idempotency-Key");
    // Another token of the account gains nothing by the key that it could not have made itself.
    let manager = app.with_scopes(&ada, &["manage"]).await;
    app.post("/v1/me/tokens").by(&manager).key(KEY).json(&new).refused(403, "missing-scope").await;
    // It is the first answer still when the token is revoked: a repeat makes nothing.
    let id = text(&first.json()["id"]);
    app.call("DELETE", format!("/v1/me/tokens/{id}")).by(&ada).expect(204).await;
    let again = create().expect(201).await;
    assert!(again.is_replay());
    assert_eq!(again.lasting(), first.lasting());
    app.get("/v1/me").token(&token).refused(401, "unauthenticated").await;
    // Another player's request under the key is another's.
    let bo = app.register("Bo").await;
    let others = app.post("/v1/me/tokens").by(&bo).key(KEY).json(&new).expect(201).await;
    assert!(!others.is_replay());
    assert_ne!(others.json()["token"], token.as_str());
}

#[tokio::test]
async fn a_repeated_registration_is_answered_although_its_token_is_revoked() {
    let app = TestApp::new().await;
    let register = || app.post("/v1/players").key(KEY).json(&json!({"name": "Ada"}));
    let first = register().expect(201).await;
    let token = text(&first.json()["token"]);
    let id = text(&app.get("/v1/me/token").token(&token).ok(200).await["id"]);
    app.call("DELETE", format!("/v1/me/tokens/{id}")).token(&token).expect(204).await;
    let again = register().expect(201).await;
    assert!(again.is_replay());
    assert_eq!(again.lasting(), first.lasting());
    app.get("/v1/me").token(&token).refused(401, "unauthenticated").await;
}

/// Gives a player so many tokens more.
async fn fill(app: &TestApp, player: &Player, count: i32) {
    sqlx::query(
        "insert into tokens (hash, player_id, name)
         select sha256(('t' || n)::bytea), $1, 'filling' from generate_series(1, $2) as n",
    )
    .bind(uuid::Uuid::parse_str(&player.id).unwrap())
    .bind(count)
    .execute(app.sql())
    .await
    .unwrap();
}

#[tokio::test]
async fn twenty_created_at_once_near_the_limit_do_not_pass_it() {
    let app = TestApp::with(2, 8).await;
    let ada = app.register("Ada").await;
    fill(&app, &ada, 44).await;
    let new = json!({"name": "x", "scopes": ["read"]});
    let create = || app.post("/v1/me/tokens").by(&ada).json(&new);
    let replies: Vec<Reply> = join_all((0..20).map(|_| create().send())).await;
    let made: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 201).collect();
    let full = replies.iter().filter(|reply| reply.status == 409 && reply.json()["code"] == "too-many-tokens").count();
    assert_eq!((made.len(), full), (5, 15));
    let tokens: BTreeSet<String> = made.iter().map(|reply| text(&reply.json()["token"])).collect();
    assert_eq!(tokens.len(), 5);
    let list = app.get("/v1/me/tokens").by(&ada).ok(200).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 50, "the list shows them all");
    // Others have their own fifty.
    let bo = app.register("Bo").await;
    app.token(&bo, &["read"]).await;
    // A refusal leaves no trace: once there is room, the same key does it.
    let keyed = || create().key(KEY);
    keyed().refused(409, "too-many-tokens").await;
    sqlx::query("update tokens set expires_at = now() where hash = sha256('t1')").execute(app.sql()).await.unwrap();
    assert!(!keyed().expect(201).await.is_replay(), "one that has expired does not count");
    assert!(keyed().expect(201).await.is_replay(), "a repeat needs no room");
    create().refused(409, "too-many-tokens").await;
}

#[tokio::test]
async fn pruning_deletes_tokens_that_expired_a_day_ago_and_no_others() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    fill(&app, &ada, 3).await;
    assert_eq!(pruning::run_once(&app.store).await.unwrap(), 0);
    for (hash, ago) in [("t1", "25 hours"), ("t2", "23 hours")] {
        sqlx::query("update tokens set expires_at = now() - $2::text::interval where hash = sha256($1::text::bytea)")
            .bind(hash)
            .bind(ago)
            .execute(app.sql())
            .await
            .unwrap();
    }
    assert_eq!(pruning::run_once(&app.store).await.unwrap(), 1);
    assert_eq!(app.count("select count(*) from tokens where hash = sha256('t1')").await, 0);
    assert_eq!(app.count("select count(*) from tokens").await, 3);
    app.get("/v1/me").by(&ada).expect(200).await;
}
