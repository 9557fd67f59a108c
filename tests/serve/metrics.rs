//! Metrics: what was played is counted, and nothing is told that is nobody's business.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::server::{Folder, Server};

/// What the server tells now.
async fn scrape(server: &Server) -> String {
    let answer = server.client.get(&server.metrics).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4");
    answer.text().await.unwrap()
}

/// The value of a series; 0 if it is not there.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

/// Waits until a series has at least this value.
async fn reaches(server: &Server, series: &str, least: f64) -> String {
    let begun = Instant::now();
    loop {
        let text = scrape(server).await;
        if value(&text, series) >= least {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{series} stays below {least}:\n{text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const DURATIONS: &str = "tavola_http_request_duration_seconds_count";

#[tokio::test]
async fn what_happens_is_counted_and_no_secret_told() {
    let folder = Folder::new("serve-metrics");
    let receiver = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let environment = [("TAVOLA_ALLOW_PRIVATE_WEBHOOKS", "yes"), ("TAVOLA_LIMIT_REGISTRATIONS", "3")];
    let server = Server::start_with(&folder.0, &environment).await;
    let (game, tokens) = server.table("leonardo").await;
    for _ in 0..3 {
        server.play(&game, &tokens).await;
    }
    let moves = r#"tavola_moves_total{by="player",ruleset="leonardo"}"#;
    let text = scrape(&server).await;
    assert_eq!(value(&text, moves), 3.0);
    assert_eq!(value(&text, r#"tavola_games_created_total{ruleset="leonardo"}"#), 1.0);
    let route = r#"{method="POST",route="/v1/games/{id}/moves",status="2xx"}"#;
    assert_eq!(value(&text, &format!("{DURATIONS}{route}")), 3.0);

    // A move that is repeated is one move.
    let state = server.call("GET", &format!("/v1/games/{game}"), "", None).await;
    let mover = &tokens[state["to_move"]["seat"].as_u64().unwrap() as usize];
    let legal = server.call("GET", &format!("/v1/games/{game}/legal-moves"), mover, None).await;
    for _ in 0..2 {
        let request = server.client.post(format!("{}/v1/games/{game}/moves", server.url)).bearer_auth(mover);
        let answer = request.header("idempotency-key", "k").json(&legal["moves"][0]).send().await.unwrap();
        assert_eq!(answer.status(), 201);
    }
    assert_eq!(value(&scrape(&server).await, moves), 4.0);

    // Whoever is too late leaves, and a bot plays for them.
    let third = server.call("POST", "/v1/players", "", Some(json!({"name": "Cid"}))).await;
    let third = third["token"].as_str().unwrap().to_owned();
    let table = json!({"ruleset": "leonardo", "seats": 3, "clock": {"kind": "per_move", "seconds": 3600}});
    let long = server.call("POST", "/v1/games", &third, Some(table)).await["id"].as_str().unwrap().to_owned();
    for token in &tokens {
        server.call("POST", &format!("/v1/games/{long}/seats"), token, Some(json!({}))).await;
    }
    let socket = format!("postgres://postgres@localhost/tavola?host={}", folder.0.join("run").display());
    let mut sql = PgConnection::connect(&socket).await.unwrap();
    let late = "update positions set due_at = now() - interval '1 second', check_at = now() - interval '1 second'
                where due_at is not null";
    sqlx::query(late).execute(&mut sql).await.unwrap();
    sql.close().await.unwrap();
    reaches(&server, r#"tavola_moves_total{by="bot",ruleset="leonardo"}"#, 1.0).await;
    assert_eq!(value(&scrape(&server).await, r#"tavola_timeouts_total{ruleset="leonardo"}"#), 1.0);

    // Games end.
    server.call("POST", &format!("/v1/games/{game}/resignation"), mover, None).await;
    let text = scrape(&server).await;
    assert_eq!(value(&text, r#"tavola_games_ended_total{reason="resignation",ruleset="leonardo"}"#), 1.0);
    // The database is looked at now and then.
    let text = reaches(&server, r#"tavola_games{ruleset="leonardo",status="active"}"#, 1.0).await;
    assert_eq!(value(&text, "tavola_database_up"), 1.0);
    assert_eq!(value(&text, "tavola_database_connections_max"), 16.0);
    assert_eq!(value(&text, "tavola_database_waiting"), 0.0);
    assert!(value(&text, "process_resident_memory_bytes") > 1e6 && value(&text, "process_cpu_seconds_total") > 0.0);

    // Streams, as long as they are read; this one's reader has an event that there never was.
    let url = format!("{}/v1/games/{long}/events", server.url);
    let request = server.client.get(url).header("accept", "text/event-stream").header("last-event-id", "9999");
    let stream = request.send().await.unwrap();
    let text = reaches(&server, "tavola_stream_resyncs_total", 1.0).await;
    assert_eq!((value(&text, "tavola_streams"), value(&text, "tavola_streams_opened_total")), (1.0, 1.0));
    drop(stream);
    while value(&scrape(&server).await, "tavola_streams") > 0.0 {
        // Its end is noticed at the next event or heartbeat, or when the connection's is.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    // Webhooks: one message is delivered, another one refused for good.
    let hook = json!({"url": format!("http://{}/", receiver.local_addr().unwrap())});
    let hook = server.call("POST", "/v1/me/webhooks", &tokens[0], Some(hook)).await;
    for status in ["204 No Content", "410 Gone"] {
        let path = format!("/v1/me/webhooks/{}/ping", hook["id"].as_str().unwrap());
        server.call("POST", &path, &tokens[0], None).await;
        let (mut connection, _) = receiver.accept().await.unwrap();
        connection.read_exact(&mut [0; 4]).await.unwrap();
        connection.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await.unwrap();
        let outcome = if status.starts_with("204") { "delivered" } else { "gone" };
        reaches(&server, &format!(r#"tavola_webhook_attempts_total{{outcome="{outcome}"}}"#), 1.0).await;
    }
    reaches(&server, "tavola_webhooks_disabled_total", 1.0).await;

    // Whatever is asked for that there is not: one series.
    let before = scrape(&server).await;
    for number in 0..100 {
        let url = format!("{}/nothing/{number}", server.url);
        assert_eq!(server.client.get(url).send().await.unwrap().status(), 404);
    }
    let after = scrape(&server).await;
    let series = |text: &str| text.lines().filter(|line| line.starts_with(DURATIONS)).count();
    assert_eq!(series(&after), series(&before) + 1);
    assert_eq!(value(&after, &format!(r#"{DURATIONS}{{method="other",route="other",status="4xx"}}"#)), 100.0);
    assert_eq!(value(&after, r#"tavola_http_problems_total{code="not-found"}"#), 100.0);

    let refused = server.client.post(format!("{}/v1/players", server.url)).json(&json!({"name": "Dee"}));
    assert_eq!(refused.send().await.unwrap().status(), 429);
    let text = scrape(&server).await;
    assert_eq!(value(&text, r#"tavola_rate_limited_total{budget="registrations"}"#), 1.0);

    let secret = hook["secret"].as_str().unwrap().to_owned();
    for hidden in tokens.iter().chain([&third, &game, &long, &secret]).map(String::as_str).chain(["Ada", "Bob", "Cid"])
    {
        assert!(!text.contains(hidden), "{hidden} is told");
    }
    // Not with the API, which everybody can ask.
    assert_eq!(server.client.get(format!("{}/metrics", server.url)).send().await.unwrap().status(), 404);
    server.stop(Signal::SIGTERM).await;
}
