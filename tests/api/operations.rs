//! Health, the document, the pages about problems, and what belongs to no operation: unknown paths, wrong methods, CORS.

use serde_json::json;
use tavola::http::Code;

use crate::checks::DOCUMENT;
use crate::helpers::{ORIGIN, TestApp};

#[tokio::test]
async fn health_is_told() {
    let app = TestApp::new().await;
    for path in ["/healthz", "/readyz"] {
        let reply = app.get(path).expect(200).await;
        assert_eq!(reply.json(), json!({"status": "ok"}));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn without_the_database_the_process_is_well_and_the_service_is_not() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    app.store.close().await;
    app.get("/healthz").expect(200).await;
    app.get("/readyz").refused(503, "unavailable").await;
    app.get("/v1/games").refused(503, "unavailable").await;
    app.get("/v1/me").by(&ada).refused(503, "unavailable").await;
    app.post("/v1/players").json(&json!({"name": "Bo"})).refused(503, "unavailable").await;
    app.post(format!("/v1/games/{}/moves", ada.id)).by(&ada).json(&json!({})).refused(503, "unavailable").await;
}

#[tokio::test]
async fn an_older_schema_is_not_ready() {
    let app = TestApp::new().await;
    sqlx::query("update _sqlx_migrations set success = false").execute(app.sql()).await.unwrap();
    app.get("/readyz").refused(503, "unavailable").await;
}

#[tokio::test]
async fn connections_that_the_database_ended_are_made_anew() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let end = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()";
    app.count(end).await;
    // The requests that meet the ended connections are told to come again; what then succeeds is right.
    let mut last = 0;
    for _ in 0..10 {
        let reply = app.get("/v1/me").by(&ada).send().await;
        last = reply.status;
        if last == 200 {
            break;
        }
        assert_eq!((reply.status, reply.json()["code"].as_str()), (503, Some("unavailable")));
    }
    assert_eq!(last, 200);
}

#[tokio::test]
async fn the_document_is_served_as_it_is_made() {
    let app = TestApp::new().await;
    assert_eq!(app.get("/openapi.json").ok(200).await, *DOCUMENT);
}

#[tokio::test]
async fn the_documentation_needs_no_internet() {
    let app = TestApp::new().await;
    let reply = app.get("/docs").send().await;
    assert!((301..=308).contains(&reply.status), "{}", reply.status);
    assert_eq!(reply.header("location"), Some("/docs/"));
    let page = app.get("/docs/").expect(200).await.text();
    // Everything that the page loads is served here too.
    let mut loaded = 0;
    for part in page.split(['"', '\'']).filter(|part| [".js", ".css", ".png"].iter().any(|end| part.ends_with(end))) {
        assert!(!part.contains("//"), "{part} comes from elsewhere");
        app.get(format!("/docs/{}", part.trim_start_matches("./"))).expect(200).await;
        loaded += 1;
    }
    assert!(loaded >= 3, "{page}");
    app.get("/docs/nothing.js").refused(404, "not-found").await;
}

#[tokio::test]
async fn every_problem_has_its_page() {
    let app = TestApp::new().await;
    for code in Code::ALL {
        let reply = app.get(format!("/problems/{}", code.as_str())).expect(200).await;
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        let page = reply.text();
        assert!(page.contains(code.as_str()) && page.contains(code.title()) && page.contains(code.status().as_str()));
    }
    for code in ["", "nothing", "Illegal-Move", "illegal-move%00", "%3Cscript%3E", "%ff", "..%2f..%2fetc"] {
        app.get(format!("/problems/{code}")).refused(404, "not-found").await;
    }
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let app = TestApp::new().await;
    let paths = [
        "/",
        "/v1",
        "/v1/",
        "/v1/game",
        "/v1/games/",
        "/v2/games",
        "//v1/games",
        "/v1//games",
        "/v1/players/",
        "/V1/games",
        "/v1/me/",
        "/favicon.ico",
        "/v1/games/1/2/3/4",
        "/%",
        "/%00",
        "/%ff",
        "/.env",
        "/admin",
    ];
    for path in paths {
        for method in ["GET", "POST", "DELETE", "PATCH", "PUT", "OPTIONS"] {
            app.call(method, path).refused(404, "not-found").await;
        }
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let app = TestApp::new().await;
    let id = uuid::Uuid::now_v7().to_string();
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let path = template.replace("{id}", &id).replace("{number}", "1").replace("{code}", "internal");
        let item = item.as_object().unwrap();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "BREW"] {
            if item.contains_key(&method.to_lowercase()) {
                continue;
            }
            let reply = app.call(method, &path).send().await;
            assert_eq!(reply.status, 405, "{method} {path}: {}", reply.text());
            assert_eq!(reply.json()["code"], "method-not-allowed");
            let mut allowed: Vec<String> = reply.header("allow").unwrap().split(", ").map(str::to_lowercase).collect();
            let mut known: Vec<String> = item.keys().cloned().collect();
            allowed.sort();
            known.sort();
            assert_eq!(allowed, known, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn browsers_anywhere_may_ask() {
    let app = TestApp::new().await;
    let (path, token) = (
        "/v1/games/0193a2f0-6c1d-7e10-8f3a-2b9d5c4e6f70/moves",
        "authorization, content-type, if-match, idempotency-key",
    );
    let reply = app
        .call("OPTIONS", path)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", token)
        .send()
        .await;
    assert!(matches!(reply.status, 200 | 204), "{}", reply.status);
    assert!(reply.header("access-control-allow-methods").unwrap().contains("POST"));
    let allowed = reply.header("access-control-allow-headers").unwrap().to_lowercase();
    assert!(allowed == "*" || token.split(", ").all(|name| allowed.contains(name)), "{allowed}");
    let reply = app.get("/v1/games").expect(200).await;
    let exposed = reply.header("access-control-expose-headers").unwrap().to_lowercase();
    assert!(matches!(reply.header("access-control-allow-origin"), Some("*" | ORIGIN)));
    let exposed: std::collections::BTreeSet<&str> = exposed.split(", ").collect();
    let wanted = [
        "allow",
        "etag",
        "idempotent-replayed",
        "location",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
        "www-authenticate",
        "x-request-id",
    ];
    assert_eq!(exposed, wanted.into(), "what a script may read");
    // Errors too, whatever layer they come from.
    for path in ["/v1/me", "/nothing", "/v1/games?limit=0"] {
        assert!(app.get(path).send().await.header("access-control-expose-headers").is_some(), "{path}");
    }
}

#[tokio::test]
async fn every_request_has_an_id_of_its_own() {
    let app = TestApp::new().await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        for path in ["/healthz", "/v1/me", "/nothing"] {
            let reply = app.get(path).header("x-request-id", "0193a2f0-6c1d-7e10-8f3a-2b9d5c4e6f70").send().await;
            seen.insert(reply.header("x-request-id").unwrap().to_owned());
        }
    }
    assert_eq!(seen.len(), 15);
}
