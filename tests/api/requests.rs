//! Bodies that cannot be taken, for every operation that takes one.

use serde_json::{Value, json};

use crate::helpers::{ORIGIN, Player, TestApp};
use crate::outsiders;

const LIMIT: usize = 64 * 1024;

/// Every operation with a body: method, path, and a body that it takes.
async fn with_bodies(app: &TestApp, ada: &Player) -> Vec<(&'static str, String, Value)> {
    let game = app.create(ada, &json!({"ruleset": "leonardo", "seats": 4})).await;
    let table = app.table_of("leopard", &json!({}), vec![ada.clone(), app.register("Bo").await]).await;
    let open = format!("/v1/games/{}", game["id"].as_str().unwrap());
    vec![
        ("POST", "/v1/players".into(), json!({"name": "Cy"})),
        ("PATCH", "/v1/me".into(), json!({"name": "Ada"})),
        ("POST", "/v1/games".into(), json!({"ruleset": "leopard"})),
        ("POST", format!("{open}/seats"), json!({})),
        ("POST", table.path("/moves"), json!({"type": "end_hand"})),
    ]
}

/// Operations that look at no body, but take one under the same conditions.
fn without_bodies(game: &str) -> [(&'static str, String); 2] {
    [("POST", format!("/v1/games/{game}/start")), ("POST", format!("/v1/games/{game}/resignation"))]
}

#[tokio::test]
async fn bodies_that_are_no_json_object_are_refused() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for (method, path, body) in with_bodies(&app, &ada).await {
        let good = body.to_string();
        let mut texts: Vec<Vec<u8>> = [
            "{",
            "}",
            "nul",
            "null",
            "true",
            "7",
            "\"\"",
            "[]",
            "[[]]",
            "{\"a\"}",
            "{\"a\":}",
            "{'a':1}",
            "{\"a\":1,}",
            "//\n{}",
            "NaN",
            " ",
            "\u{feff}{}",
        ]
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
        texts.push(format!("{good}x").into());
        texts.push(format!("{good}{{}}").into());
        texts.push(format!("{good},").into());
        texts.push(format!("\u{feff}{good}").into());
        texts.push([good.as_bytes(), b"\0"].concat());
        texts.push(b"{\"name\": \"\xff\xfe\"}".to_vec());
        texts.push("[".repeat(60_000).into());
        texts.push(("{\"a\":".repeat(10_000) + "1" + &"}".repeat(10_000)).into());
        texts.push(format!("{{\"unknown\":1,{}", &good[1..]).replace(",}", "}").into());
        texts.push(good.encode_utf16().flat_map(u16::to_le_bytes).collect());
        // A list of a structure's fields in their order is not that structure.
        texts.push(b"[\"Cy\", \"human\"]".to_vec());
        texts.push(b"[\"leopard\"]".to_vec());
        texts.push(b"[1, \"x\"]".to_vec());
        texts.push(b"[\"end_hand\"]".to_vec());
        for text in texts {
            let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
            let reply = app.call(method, &path).by(&ada).text(text).send().await;
            let code = reply.json()["code"].clone();
            assert_eq!(
                (reply.status, code.as_str()),
                (400, Some("invalid-body")),
                "{method} {path} {shown}: {}",
                reply.text()
            );
        }
    }
    assert_eq!(app.count("select count(*) from players").await, 2);
    assert_eq!(app.count("select count(*) from games").await, 2);
    assert_eq!(app.count("select count(*) from seats").await, 3);
}

#[tokio::test]
async fn deep_nesting_where_anything_may_stand_is_refused() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let body = format!(r#"{{"ruleset": "leopard", "options": {{"hands": {deep}}}}}"#);
    app.post("/v1/games").by(&ada).text(body).refused(400, "invalid-body").await;
    let body = r#"{"ruleset": "leopard", "options": {"hands": 1e999}}"#;
    app.post("/v1/games").by(&ada).text(body).refused(400, "invalid-body").await;
    let body = r#"{"ruleset": "leopard", "ruleset": "leopard"}"#;
    app.post("/v1/games").by(&ada).text(body).refused(400, "invalid-body").await;
}

#[tokio::test]
async fn bodies_of_another_type_are_refused() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let game = uuid::Uuid::now_v7().to_string();
    let mut operations: Vec<(&str, String, Value)> = with_bodies(&app, &ada).await;
    operations.extend(without_bodies(&game).into_iter().map(|(method, path)| (method, path, json!({}))));
    for (method, path, body) in operations {
        let call = || app.call(method, &path).by(&ada).body(body.to_string());
        call().refused(415, "unsupported-media-type").await;
        let kinds = [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonx",
            "text/json",
            "application/xml",
            "*/*",
            "",
            "application/merge-patch+json",
        ];
        for kind in kinds {
            call().header("content-type", kind).refused(415, "unsupported-media-type").await;
        }
        call().header("content-type", b"\xff".to_vec()).refused(415, "unsupported-media-type").await;
    }
    // JSON by another spelling is JSON.
    for (name, kind) in
        [("Cy", "application/json; charset=utf-8"), ("Dee", "Application/JSON"), ("Eve", "application/json;")]
    {
        let body = json!({"name": name}).to_string();
        app.post("/v1/players").header("content-type", kind).body(body).expect(201).await;
    }
}

/// A request as it goes over the wire, its body in one piece after the head.
fn request(method: &str, path: &str, token: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: {ORIGIN}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\n"
    );
    headers.iter().for_each(|header| head += &format!("{header}\r\n"));
    head += "\r\n";
    [head.as_bytes(), body].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    for chunk in body.chunks(1_000) {
        coded.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        coded.extend(chunk);
        coded.extend(b"\r\n");
    }
    coded.extend(b"0\r\n\r\n");
    coded
}

#[tokio::test]
async fn bodies_of_64_kib_are_taken_and_of_one_byte_more_are_not() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let game = uuid::Uuid::now_v7().to_string();
    let mut operations = with_bodies(&app, &ada).await;
    operations.extend(without_bodies(&game).into_iter().map(|(method, path)| (method, path, json!({}))));
    for (method, path, body) in operations {
        let padded = |size: usize| {
            let body = body.to_string();
            format!("{}{}", " ".repeat(size - body.len()), body).into_bytes()
        };
        let coded = &["transfer-encoding: chunked"];
        for headers in [&[format!("content-length: {}", LIMIT + 1).as_str()][..], coded] {
            let body = if headers == coded { chunked(&padded(LIMIT + 1)) } else { padded(LIMIT + 1) };
            let reply = app.raw(request(method, &path, &ada.token, headers, &body), method, &path).await;
            assert_eq!((reply.status, reply.json()["code"].as_str()), (413, Some("body-too-large")), "{method} {path}");
        }
        // A length that is only said.
        let head = request(method, &path, &ada.token, &["content-length: 9999999999"], b"{}");
        assert_eq!(app.raw(head, method, &path).await.status, 413);
        // The largest that is taken: whatever is answered, it is about something else.
        for body in [padded(LIMIT)] {
            let reply = app.call(method, &path).by(&ada).text(body).send().await;
            assert_ne!(reply.status, 413, "{method} {path}");
            assert_ne!(reply.json()["code"], "invalid-body", "{method} {path}: {}", reply.text());
        }
    }
    let body = chunked(json!({"name": "Dee"}).to_string().as_bytes());
    let reply = app
        .raw(request("POST", "/v1/players", "", &["transfer-encoding: chunked"], &body), "POST", "/v1/players")
        .await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

#[tokio::test]
async fn idempotency_keys_are_short_visible_text() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let create =
        |key: &[u8]| app.post("/v1/games").by(&ada).header("idempotency-key", key).json(&json!({"ruleset": "leopard"}));
    for key in ["".to_owned(), "x".repeat(256)] {
        let problem = create(key.as_bytes()).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], "Idempotency-Key");
    }
    create(b"caf\xc3\xa9").refused(400, "invalid-parameter").await;
    create(b"\xff").refused(400, "invalid-parameter").await;
    create(b"a\tb").refused(400, "invalid-parameter").await;
    create("x".repeat(255).as_bytes()).expect(201).await;
    create(b"1").expect(201).await;
    // Whoever knows the key of a registration can have its token: it must not be guessed.
    let register = |key: &str| app.post("/v1/players").key(key).json(&json!({"name": "Bo"}));
    register("0123456789012345678").refused(400, "invalid-parameter").await;
    register("01234567890123456789").expect(201).await;
}

/// To JSON Schema, by which the document describes bodies, `2.0` is an integer like `2`.
#[tokio::test]
async fn whole_numbers_may_be_written_with_a_point() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let wanted = r#"{"ruleset": "leopard", "seats": 2.0, "options": {"hands": 3e0},
                     "clock": {"kind": "per_move", "seconds": 8.64e4}}"#;
    let game = app.post("/v1/games").by(&ada).text(wanted).ok(201).await;
    assert_eq!(
        (&game["seat_count"], &game["options"]["hands"], &game["clock"]["seconds"]),
        (&json!(2), &json!(3), &json!(86_400))
    );
    let token = r#"{"name": "bot", "scopes": ["read"], "expires_in": 3600.0}"#;
    assert!(app.post("/v1/me/tokens").by(&ada).text(token).ok(201).await["expires_at"].is_string());
    // What is not whole is no integer, written as it may.
    for seats in ["2.5", "25e-1", "2.0000000001", "1e400"] {
        let wanted = format!(r#"{{"ruleset": "leopard", "seats": {seats}}}"#);
        app.post("/v1/games").by(&ada).text(wanted).refused(400, "invalid-body").await;
    }
    // It is another request, although it means the same.
    app.post("/v1/games").by(&ada).key("k").text(r#"{"ruleset": "siggil", "seats": 2}"#).ok(201).await;
    app.post("/v1/games")
        .by(&ada)
        .key("k")
        .text(r#"{"ruleset": "siggil", "seats": 2.0}"#)
        .refused(422, "idempotency-key-reused")
        .await;
}

#[tokio::test]
async fn unknown_parameters_are_refused_by_every_operation() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let table = app.table_of("leopard", &json!({}), vec![ada.clone(), app.register("Bo").await]).await;
    for (operation, method, template) in outsiders::operations() {
        if !template.starts_with("/v1/") {
            continue;
        }
        let path = outsiders::path_of(&template, &table.id, &ada.id);
        let mut call = app.call(&method, format!("{path}?no_such_parameter=1")).by(&ada);
        if let Some(body) = outsiders::body(&operation, "Cy", &json!({"type": "end_hand"}), &ada.id) {
            call = call.json(&body);
        }
        let reply = call.send().await;
        assert_eq!(reply.status, 400, "{operation}: {}", reply.text());
        assert_eq!(reply.json()["code"], "invalid-parameter", "{operation}");
    }
    app.get("/healthz?no_such_parameter=1").ok(200).await;
}
