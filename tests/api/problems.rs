//! Every kind of error once, in full.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tavola::config::LimitSettings;
use tavola::http::{Code, Limits};

use crate::checks::DOCUMENT;
use crate::helpers::{Reply, TestApp};
use crate::schemas::conforms;

/// Compares a problem with its snapshot; the request's id is another one each time.
fn check(seen: &mut BTreeSet<&'static str>, reply: Reply) {
    let mut body = reply.json();
    body["instance"] = json!("urn:uuid:…");
    let code = Code::parse(body["code"].as_str().unwrap()).expect("a known code");
    let told = json!({"status": reply.status, "body": body, "headers": {
        "allow": reply.header("allow"), "retry-after": reply.header("retry-after"),
        "www-authenticate": reply.header("www-authenticate"),
    }});
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_json_snapshot!(code.as_str(), told);
    });
    assert!(seen.insert(code.as_str()), "{} twice", code.as_str());
}

#[tokio::test]
async fn every_problem_looks_as_it_always_did() {
    let app = TestApp::new().await;
    let mut seen = BTreeSet::new();
    let (ada, bo, cy) = (app.register("Ada").await, app.register("Bo").await, app.register("Cy").await);
    let open = app.create(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
    let open = format!("/v1/games/{}", open["id"].as_str().unwrap());
    let table = app.table_of("leopard", &json!({}), vec![ada.clone(), bo.clone()]).await;
    let (mover, other) = app.mover_and_other(&table).await;
    let leopard = json!({"ruleset": "leopard"});

    check(&mut seen, app.post("/v1/games").by(&ada).json(&json!({"ruleset": "chess"})).send().await);
    check(&mut seen, app.get("/v1/games?limit=0").send().await);
    check(&mut seen, app.get("/v1/me").send().await);
    let reader = app.post("/v1/me/tokens").by(&cy).json(&json!({"name": "x", "scopes": ["read"]})).ok(201).await;
    let reader = reader["token"].as_str().unwrap();
    check(&mut seen, app.call("PATCH", "/v1/me").token(reader).json(&json!({"name": "Cyd"})).send().await);
    check(&mut seen, app.get(table.path("/legal-moves")).by(&cy).send().await);
    check(&mut seen, app.post(format!("{open}/start")).by(&bo).send().await);
    check(&mut seen, app.post(format!("{open}/invite")).by(&ada).send().await);
    let bot = app.post("/v1/players").json(&json!({"name": "Dora", "kind": "bot"})).ok(201).await;
    let rated = app.open(&ada, &json!({"ruleset": "leopard", "rated": true})).await;
    let seat = app.post(format!("{rated}/seats")).token(bot["token"].as_str().unwrap()).json(&json!({}));
    check(&mut seen, seat.send().await);
    let three = app.table_of("leonardo", &json!({}), vec![ada.clone(), bo.clone(), cy.clone()]).await;
    app.post(three.path("/resignation")).by(&cy).expect(200).await;
    check(&mut seen, app.post(three.path("/resignation")).by(&cy).send().await);
    check(&mut seen, app.get(format!("/v1/games/{}", uuid::Uuid::nil())).send().await);
    check(&mut seen, app.call("DELETE", "/v1/games").send().await);
    check(&mut seen, app.post(table.path("/moves")).by(other).json(&json!({"type": "end_hand"})).send().await);
    check(&mut seen, app.post(format!("{open}/resignation")).by(&ada).send().await);
    check(&mut seen, app.post(table.path("/start")).by(&ada).send().await);
    check(&mut seen, app.get(table.path("/record")).send().await);
    check(&mut seen, app.post(format!("{open}/seats")).by(&bo).json(&json!({"seat": 0})).send().await);
    check(&mut seen, app.post(format!("{open}/seats")).by(&ada).json(&json!({})).send().await);
    check(&mut seen, app.post(format!("{open}/start")).by(&ada).send().await);
    check(&mut seen, app.post("/v1/players").json(&json!({"name": "ADA"})).send().await);
    sqlx::query(
        "insert into tokens (hash, player_id)
         select sha256(n::text::bytea), id from players, generate_series(1, 49) as n where name = 'Ada'",
    )
    .execute(app.sql())
    .await
    .unwrap();
    check(&mut seen, app.post("/v1/me/tokens").by(&ada).json(&json!({"name": "x", "scopes": ["read"]})).send().await);
    check(&mut seen, app.post(table.path("/moves")).by(mover).at(0).json(&json!({"type": "end_hand"})).send().await);
    check(&mut seen, app.post("/v1/players").text(" ".repeat(65_537)).send().await);
    check(&mut seen, app.post("/v1/players").body("name=Ada").send().await);
    check(&mut seen, app.post(table.path("/moves")).by(mover).json(&json!({"type": "end_hand"})).send().await);
    let options = json!({"ruleset": "leopard", "options": {"hands": 13}});
    check(&mut seen, app.post("/v1/games").by(&ada).json(&options).send().await);
    let hook = |url: &str| app.post("/v1/me/webhooks").by(&ada).json(&json!({"url": url}));
    let webhook = hook("https://93.184.215.14/").ok(201).await;
    let webhook = format!("/v1/me/webhooks/{}", webhook["id"].as_str().unwrap());
    check(&mut seen, hook("https://93.184.215.14/").send().await);
    app.call("PATCH", &webhook).by(&ada).json(&json!({"enabled": false})).expect(200).await;
    check(&mut seen, app.post(format!("{webhook}/ping")).by(&ada).send().await);
    for n in 1..10 {
        hook(&format!("https://93.184.215.14/{n}")).expect(201).await;
    }
    check(&mut seen, hook("https://93.184.215.14/10").send().await);
    check(&mut seen, hook("https://127.0.0.1/").send().await);
    app.post("/v1/games").by(&ada).key("k").json(&leopard).expect(201).await;
    check(&mut seen, app.post("/v1/games").by(&ada).key("k").json(&json!({"ruleset": "siggil"})).send().await);
    // One an hour, and time stands still.
    let settings = LimitSettings { limit_registrations: 1, ..LimitSettings::NONE };
    let limited = TestApp::limited(Limits::with_clock(&settings, Duration::default)).await;
    limited.register("Ada").await;
    check(&mut seen, limited.post("/v1/players").json(&json!({"name": "Bo"})).send().await);
    sqlx::query("update games set server_seed = sha256('x'), ruleset = 'chess' where status = 'active'")
        .execute(app.sql())
        .await
        .unwrap();
    check(&mut seen, app.get(table.path("")).expecting_a_fault().send().await);
    app.store.close().await;
    check(&mut seen, app.get("/readyz").send().await);

    let all: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(seen, all, "cover the new code here");
}

#[test]
fn the_table_of_codes_is_sound() {
    let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes.len(), Code::ALL.len(), "no code twice");
    assert!(Code::ALL.windows(2).all(|two| two[0].status() <= two[1].status()), "by status");
    for code in Code::ALL {
        assert!(code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", code.as_str());
        assert!(code.status().is_client_error() || code.status().is_server_error());
        assert_eq!(Code::parse(code.as_str()), Some(*code));
        assert!(code.title().len() < 60 && code.about().len() > 20 && code.about().ends_with('.'), "{}", code.as_str());
    }
    assert_eq!(Code::parse("nothing"), None);
}

/// All codes that the document tells of are the server's, each under its status, and the examples are problems.
#[test]
fn the_document_knows_the_codes() {
    let mut told = BTreeSet::new();
    for item in DOCUMENT["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let examples = &response["content"]["application/problem+json"]["examples"];
                for (name, example) in examples.as_object().into_iter().flatten() {
                    let code = Code::parse(name).expect("a code of the server");
                    assert_eq!(code.status().as_str(), status);
                    let place = example["$ref"].as_str().unwrap().trim_start_matches('#');
                    let value: &Value = &DOCUMENT.pointer(place).unwrap()["value"];
                    conforms("/components/schemas/Problem", value).unwrap();
                    assert_eq!((&value["code"], &value["title"]), (&json!(name), &json!(code.title())));
                    told.insert(code.as_str());
                }
            }
        }
    }
    // What is no operation's own: a method that none has.
    let missing: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).filter(|code| !told.contains(code)).collect();
    assert_eq!(missing, ["method-not-allowed"]);
}
