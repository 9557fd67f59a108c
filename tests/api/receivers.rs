//! Receivers of webhooks as they should not be: slow, gone, talkative, or leading somewhere else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tavola::webhook::Targets;
use tavola::workers::sending::Timeouts;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use crate::deliveries::{LONG, Scene, text, worker};
use crate::receiver::{Receiver, Reply};
use crate::webhooks::Names;

/// Slow receivers have to be waited for.
const SHORT: Timeouts = Timeouts { connect: Duration::from_millis(400), total: Duration::from_millis(400) };

#[tokio::test]
async fn a_receiver_that_asks_for_a_pause_gets_it() {
    let mut scene = Scene::new().await;
    let date = httpdate::fmt_http_date(std::time::SystemTime::now() + Duration::from_secs(1_800));
    for (reply, expected) in [
        (Reply::Status(503, "retry-after: 3600\r\n"), 3_590.0..3_601.0),
        (Reply::Status(429, "Retry-After: 600\r\n"), 590.0..601.0),
        (Reply::To(503, format!("retry-after: {date}\r\n")), 1_780.0..1_801.0),
        // Not sooner than it would be tried anyway; it means nothing elsewhere.
        (Reply::Status(429, "retry-after: 0\r\n"), 470.0..721.0),
        (Reply::Status(500, "retry-after: 80000\r\n"), 1_430.0..2_161.0),
        (Reply::Status(503, "retry-after: whenever\r\n"), 2_870.0..4_321.0),
        // For ever: until a day is over.
        (Reply::Status(503, "retry-after: 99999999999\r\n"), 86_300.0..86_401.0),
        (Reply::Status(503, "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n"), 86_300.0..86_401.0),
    ] {
        scene.receiver.reply(reply.clone());
        scene.ping().await;
        assert_eq!(scene.turn().await, 1);
        let pause = Scene::pause(&scene.newest().await);
        assert!(expected.contains(&pause), "{reply:?}: {pause}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let mut scene = Scene::new().await;
    let inside = Receiver::new().await;
    for status in [301, 302, 303, 307, 308] {
        scene.receiver.reply(Reply::To(status, format!("location: {}\r\n", inside.url())));
        scene.ping().await;
        scene.turn().await;
        let failed = scene.newest().await;
        assert_eq!(text(&failed, "status"), "pending");
        assert_eq!(failed["attempts"].as_array().unwrap().last().unwrap()["status"], status);
    }
    assert!(inside.received().is_empty());
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_left_alone_at_once() {
    let mut scene = Scene::new().await;
    scene.sql(format!(
        "insert into webhook_deliveries (webhook_id, type, next_attempt_at) values ('{}', 'your_turn', now() + interval '1 hour')",
        text(&scene.hook, "id")
    ))
    .await;
    scene.receiver.reply(Reply::Status(410, ""));
    scene.ping().await;
    scene.turn().await;
    let hook = scene.show().await;
    assert!(hook["enabled"] == false && hook["disabled_at"].is_string(), "{hook}");
    let log = scene.log().await;
    assert!(log.iter().all(|delivery| delivery["status"] == "failed"), "what waited is given up too: {log:?}");
    assert_eq!(log[0]["attempts"][0]["status"], 410);
    let told: (String, Uuid, String) = sqlx::query_as("select player_id::text, webhook_id, type from account_events")
        .fetch_one(scene.app.sql())
        .await
        .unwrap();
    assert_eq!((told.0.as_str(), told.2.as_str()), (scene.ada.id.as_str(), "webhook_disabled"));
    assert_eq!(told.1.to_string(), text(&scene.hook, "id"));
    // Queued by somebody who has not seen it yet.
    let queue = format!(
        "insert into webhook_deliveries (webhook_id, type) values ('{}', 'your_turn')",
        text(&scene.hook, "id")
    );
    scene.sql(queue).await;
    assert_eq!(scene.turn().await, 0);

    scene.app.call("PATCH", scene.path("")).by(&scene.ada).json(&json!({"enabled": true})).ok(200).await;
    scene.ping().await;
    assert_eq!(scene.turn().await, 1, "what happened meanwhile is not sent");
    assert_eq!(scene.receiver.last().json()["type"], "ping");
}

#[tokio::test]
async fn a_slow_receiver_is_given_up_and_holds_up_nobody() {
    let mut scene = Scene::with(SHORT).await;
    let fast = Receiver::new().await;
    let other = scene.app.post("/v1/me/webhooks").by(&scene.ada).json(&json!({"url": fast.url()})).ok(201).await;
    let queue = |hook: &Value, count: usize| {
        format!(
            "insert into webhook_deliveries (webhook_id, type, next_attempt_at)
             select '{}', 'your_turn', now() - n * interval '1 second' from generate_series(1, {count}) as n",
            text(hook, "id")
        )
    };
    // Far more than are sent at once, and all of them longer due.
    scene.sql(queue(&scene.hook, 90)).await;
    scene.sql(queue(&other, 3)).await;
    for _ in 0..4 {
        scene.receiver.reply(Reply::Silence);
    }
    assert_eq!(scene.worker.run_once().await.unwrap(), 4 + 3);
    assert_eq!(scene.worker.run_once().await.unwrap(), 0, "one at a time of a receiver that is waited for");
    scene.worker.settle().await;
    assert_eq!(fast.received().len(), 3);
    let log = scene.log().await;
    let tried: Vec<&Value> = log.iter().filter_map(|delivery| delivery["attempts"].get(0)).collect();
    assert_eq!(tried.len(), 4);
    for attempt in tried {
        assert_eq!((&attempt["status"], text(attempt, "error")), (&Value::Null, "timed out"));
        assert!(attempt["duration_ms"].as_u64().unwrap() >= 400, "{attempt}");
    }
}

#[tokio::test]
async fn megabytes_of_answer_cost_nothing() {
    let mut scene = Scene::new().await;
    scene.receiver.reply(Reply::Flood);
    scene.ping().await;
    let begun = Instant::now();
    scene.turn().await;
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(text(&scene.newest().await, "status"), "delivered");
    // What is on the way, in buffers of the system.
    assert!(scene.receiver.flooded() < 16 << 20, "{}", scene.receiver.flooded());
}

/// A name that was public when the webhook was made and leads inside when a message is sent.
#[tokio::test]
async fn a_name_is_checked_again_at_every_delivery() {
    let mut scene = Scene::new().await;
    let names = Names::new(&["93.184.215.14"]);
    scene.worker = worker(&scene.app, Targets::with_lookup(false, names.clone()), LONG);
    let port = scene.receiver.addr.port();
    // http is not for those who allow the internet only; the address would be refused before anything is said by TLS.
    for addresses in [&["127.0.0.1"][..], &["::ffff:127.0.0.1"], &["::1", "127.0.0.1"]] {
        names.set(addresses);
        scene.sql(format!("update webhooks set url = 'https://hooks.example:{port}/'")).await;
        scene.ping().await;
        scene.turn().await;
        let failed = scene.newest().await;
        let attempt = failed["attempts"].as_array().unwrap().last().unwrap();
        assert_eq!((text(attempt, "error"), &attempt["status"]), ("the address is not allowed", &Value::Null));
    }
    assert!(scene.receiver.received().is_empty());

    // Where inside is allowed, that is where it goes: to the address that the check was told, whatever the name.
    names.set(&["127.0.0.1"]);
    scene.worker = worker(&scene.app, Targets::with_lookup(true, names), LONG);
    scene.sql(format!("update webhooks set url = 'http://hooks.example:{port}/'")).await;
    scene.ping().await;
    scene.turn().await;
    assert_eq!(scene.receiver.last().header("host"), format!("hooks.example:{port}"));
}

/// A server that allowed addresses inside and does so no more.
#[tokio::test]
async fn an_address_is_checked_again_at_every_delivery() {
    let mut scene = Scene::new().await;
    scene.worker = worker(&scene.app, Targets::new(false), LONG);
    let port = scene.receiver.addr.port();
    for (url, error) in [
        (format!("https://127.0.0.1:{port}/"), "the address is not allowed"),
        (format!("https://[::ffff:127.0.0.1]:{port}/"), "the address is not allowed"),
        (format!("https://localhost:{port}/"), "the address is not allowed"),
        (format!("http://127.0.0.1:{port}/"), "an https URL is needed"),
    ] {
        scene.sql(format!("update webhooks set url = '{url}'")).await;
        scene.ping().await;
        scene.turn().await;
        let failed = scene.newest().await;
        assert_eq!(text(failed["attempts"].as_array().unwrap().last().unwrap(), "error"), error, "{url}");
    }
    assert!(scene.receiver.received().is_empty());
}

#[tokio::test]
async fn why_there_is_no_answer_is_told_in_plain_words() {
    let mut scene = Scene::new().await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // What web servers say to those who speak TLS where they do not.
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = plain.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let names = Names::new(&[]);
    scene.worker = worker(&scene.app, Targets::with_lookup(true, names), LONG);
    for (url, error) in [
        (format!("http://127.0.0.1:{closed}/"), "connection failed"),
        ("http://hooks.example/".to_owned(), "no such host"),
        (format!("https://127.0.0.1:{port}/"), "no secure connection could be agreed on"),
    ] {
        scene.sql(format!("update webhooks set url = '{url}'")).await;
        scene.ping().await;
        scene.turn().await;
        let failed = scene.newest().await;
        assert_eq!(text(failed["attempts"].as_array().unwrap().last().unwrap(), "error"), error, "{url}");
    }
}

/// Many webhooks, some slow, all at once: the worker has room for so many, and each message is sent once.
#[tokio::test]
async fn there_is_room_for_so_many_at_once() {
    let scene = Scene::new().await;
    scene
        .sql(format!(
            "insert into webhooks (id, player_id, url, secret)
             select gen_random_uuid(), '{}', '{}?' || n, sha256('x') from generate_series(1, 40) as n;
             insert into webhook_deliveries (webhook_id, type) select id, 'your_turn' from webhooks, generate_series(1, 3)",
            scene.ada.id,
            scene.receiver.url()
        ))
        .await;
    let mut worker = worker(&scene.app, Targets::new(true), LONG);
    let first = worker.run_once().await.unwrap();
    assert_eq!(first, 64);
    assert_eq!(worker.run_once().await.unwrap(), 0, "no room");
    let mut sent = first;
    while sent < 41 * 3 {
        worker.one_done().await;
        sent += worker.run_once().await.unwrap();
    }
    worker.settle().await;
    let mut times = BTreeMap::new();
    for received in scene.receiver.received() {
        *times.entry(received.header("webhook-id").to_owned()).or_insert(0) += 1;
    }
    assert_eq!((times.len(), times.values().max()), (41 * 3, Some(&1)));
}
