//! Accounts: registering, one's own, others'.

use serde_json::json;

use crate::helpers::TestApp;

#[tokio::test]
async fn a_player_registers_and_is_known_by_the_token() {
    let app = TestApp::new().await;
    let reply = app.post("/v1/players").json(&json!({"name": "  Ada ", "kind": "bot"})).expect(201).await;
    let answer = reply.json();
    assert_eq!(answer["player"]["name"], "Ada");
    assert_eq!(answer["player"]["kind"], "bot");
    let id = answer["player"]["id"].as_str().unwrap();
    assert_eq!(reply.header("location"), Some(format!("/v1/players/{id}").as_str()));
    assert_eq!(reply.header("cache-control"), Some("no-store"), "a token is kept by nobody on the way");

    let token = answer["token"].as_str().unwrap();
    let me = app.get("/v1/me").token(token).ok(200).await;
    assert_eq!(me, answer["player"]);
    assert_eq!(app.get(format!("/v1/players/{id}")).ok(200).await, me, "others see the same");
    // The scheme's name is in any case (RFC 9110).
    app.get("/v1/me").header("authorization", format!("bEaReR {token}")).expect(200).await;
}

#[tokio::test]
async fn the_token_itself_is_nowhere_in_the_database() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let tokens: Vec<String> =
        sqlx::query_scalar("select t::text || p::text from tokens t, players p").fetch_all(app.sql()).await.unwrap();
    let secret = ada.token.strip_prefix("tavola_").expect("tokens have a prefix that scanners can find");
    assert_eq!((tokens.len(), secret.len()), (1, 64));
    assert!(!tokens[0].contains(secret), "{tokens:?}");
}

#[tokio::test]
async fn a_person_is_what_one_is_unless_one_says_otherwise() {
    let app = TestApp::new().await;
    let answer = app.post("/v1/players").json(&json!({"name": "Ada"})).ok(201).await;
    assert_eq!(answer["player"]["kind"], "human");
    let problem =
        app.post("/v1/players").json(&json!({"name": "Bo", "kind": "cat"})).refused(400, "invalid-body").await;
    assert_eq!(problem["errors"][0]["pointer"], "/kind");
}

#[tokio::test]
async fn names_that_nobody_could_tell_apart_or_read_are_refused() {
    let app = TestApp::new().await;
    let long = "x".repeat(33);
    let names = [
        "",
        " ",
        "\t \u{a0}",
        &long,
        "a\0b",
        "a\nb",
        "a\u{7f}",
        "a\u{200b}b",
        "a\u{200d}b",
        "a\u{feff}",
        "\u{202e}ada",
        "a\u{2066}b",
        "a\u{200e}b",
        "\u{3164}",
        "\u{2800}",
        "a\u{ad}b",
        "deleted-1",
        "DELETED-1",
        "a\u{fe0f}",
        "\u{e000}",
        "a\u{e0041}b",
        "a\u{2028}b",
    ];
    for name in names {
        let problem = app.post("/v1/players").json(&json!({"name": name})).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/name", "{name:?}");
    }
    // A lone surrogate is no character at all.
    app.post("/v1/players").text(r#"{"name": "a\ud800"}"#).refused(400, "invalid-body").await;
    assert_eq!(app.count("select count(*) from players").await, 0);
}

#[tokio::test]
async fn names_of_any_script_are_kept_as_they_look() {
    let app = TestApp::new().await;
    let names =
        ["Ада", "李雷", "Zoë O'Neil-Smith", "أدا", "x", "<script>alert(1)</script>", "'; drop table players;--", "🂡"];
    for name in names {
        assert_eq!(app.register(name).await.name, name);
    }
    assert_eq!(app.register(&"é".repeat(32)).await.name.chars().count(), 32);
    assert_eq!(app.register("Ame\u{301}lie").await.name, "Amélie", "names are kept in NFC");
}

#[tokio::test]
async fn names_that_differ_only_by_case_or_form_are_one_name() {
    let app = TestApp::new().await;
    app.register("Amélie Fi").await;
    for name in ["amélie fi", "AMÉLIE FI", "Ame\u{301}lie Fi", "Amélie  Fi", "Amélie\u{a0}Fi", "Ａmélie Fi", "Amélie ﬁ"]
    {
        app.post("/v1/players").json(&json!({"name": name})).refused(409, "name-taken").await;
    }
    app.register("Amelie Fi").await;
}

#[tokio::test]
async fn a_name_can_be_changed_and_is_changed_everywhere() {
    let app = TestApp::new().await;
    let (ada, bo) = (app.register("Ada").await, app.register("Bo").await);
    let game = app.create(&ada, &json!({"ruleset": "leopard"})).await;
    let me = app.call("PATCH", "/v1/me").by(&ada).json(&json!({"name": " Ada L. "})).ok(200).await;
    assert_eq!((me["id"].as_str(), me["name"].as_str()), (Some(ada.id.as_str()), Some("Ada L.")));
    let seen = app.game(game["id"].as_str().unwrap(), None).await;
    assert_eq!(seen["seats"][0]["player"]["name"], "Ada L.");

    // The old name is free, one's own in another case too, another's is not.
    app.call("PATCH", "/v1/me").by(&bo).json(&json!({"name": "ADA"})).expect(200).await;
    app.call("PATCH", "/v1/me").by(&bo).json(&json!({"name": "Ada"})).expect(200).await;
    app.call("PATCH", "/v1/me").by(&bo).json(&json!({"name": "ada l."})).refused(409, "name-taken").await;
    let refused =
        app.call("PATCH", "/v1/me").by(&bo).json(&json!({"name": "\u{200b}"})).refused(400, "invalid-body").await;
    assert_eq!(refused["errors"][0]["pointer"], "/name");
    app.call("PATCH", "/v1/me").by(&bo).json(&json!({"kind": "bot"})).refused(400, "invalid-body").await;
    // Nothing said, nothing changed.
    let same = app.call("PATCH", "/v1/me").by(&bo).json(&json!({})).ok(200).await;
    assert_eq!(same["name"], "Ada");
}

#[tokio::test]
async fn only_a_valid_token_opens_an_account() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    app.get("/v1/me").refused(401, "unauthenticated").await;
    app.call("PATCH", "/v1/me").json(&json!({"name": "Bo"})).refused(401, "unauthenticated").await;
    let changed = ada.token.replace(&ada.token[10..11], if &ada.token[10..11] == "a" { "b" } else { "a" });
    let long = "x".repeat(5_000);
    let upper = ada.token.to_uppercase();
    for token in [
        changed.as_str(),
        "x",
        "tavola_",
        &ada.token[..70],
        &long,
        &upper,
        "null",
        "' or true --",
        "eyJhbGciOiJub25lIn0.e30.",
    ] {
        app.get("/v1/me").token(token).refused(401, "unauthenticated").await;
    }
    for header in [
        ada.token.clone(),
        format!("Basic {}", ada.token),
        format!("Token {}", ada.token),
        "Bearer".into(),
        "Bearer ".into(),
    ] {
        app.get("/v1/me").header("authorization", header).refused(401, "unauthenticated").await;
    }
    app.get("/v1/me").header("authorization", b"Bearer \xff\xfe".to_vec()).refused(401, "unauthenticated").await;
    // A wrong token is refused even where none is needed.
    app.get("/v1/games").token("x").refused(401, "unauthenticated").await;
}

#[tokio::test]
async fn an_unknown_player_is_not_found_and_a_wrong_id_is_told() {
    let app = TestApp::new().await;
    app.get(format!("/v1/players/{}", uuid::Uuid::now_v7())).refused(404, "not-found").await;
    app.get(format!("/v1/players/{}", uuid::Uuid::nil())).refused(404, "not-found").await;
    for id in [
        "1",
        "me",
        "0193a2f06c1d7e108f3a2b9d5c4e6f70",
        "%7B0193a2f0-6c1d-7e10-8f3a-2b9d5c4e6f70%7D",
        "%00",
        "%ff",
        "..%2fme",
    ] {
        let problem = app.get(format!("/v1/players/{id}")).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], "id");
    }
    // In capitals it is the same id.
    let ada = app.register("Ada").await;
    app.get(format!("/v1/players/{}", ada.id.to_uppercase())).expect(200).await;
}

#[tokio::test]
async fn twenty_register_one_name_at_once_and_one_has_it() {
    let app = TestApp::with(2, 8).await;
    let body = json!({"name": "Ada"});
    let calls = (0..20).map(|_| app.post("/v1/players").json(&body).send());
    let replies = futures_util::future::join_all(calls).await;
    let made = replies.iter().filter(|reply| reply.status == 201).count();
    let taken = replies.iter().filter(|reply| reply.status == 409 && reply.json()["code"] == "name-taken").count();
    assert_eq!((made, taken), (1, 19));
    assert_eq!(app.count("select count(*) from tokens").await, 1);
}

#[tokio::test]
async fn a_player_is_found_by_name_in_whatever_spelling() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for name in ["Ada", "ADA", "%20ada%20", "%EF%BC%A1da"] {
        let found = app.get(format!("/v1/players?name={name}")).ok(200).await;
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{name}");
        assert_eq!(found["items"][0]["id"], ada.id.as_str());
        assert_eq!(found["items"][0], app.get(format!("/v1/players/{}", ada.id)).ok(200).await);
    }
    assert_eq!(app.get("/v1/players?name=Bo").ok(200).await["items"], json!([]));
    for query in ["", "?name=", "?name=%00", "?nome=Ada", "?name=a&name=b"] {
        app.get(format!("/v1/players{query}")).refused(400, "invalid-parameter").await;
    }
}
