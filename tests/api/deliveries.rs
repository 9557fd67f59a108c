//! What is sent to webhooks, signed, and tried again until a day is over. `receivers` has the difficult ones. Workers are turned by hand, time is moved by SQL.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tavola::store::{Outcome, Verdict};
use tavola::webhook::Targets;
use tavola::workers::pruning;
use tavola::workers::sending::{Sender, Timeouts};
use tavola::workers::webhooks::Worker;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::helpers::{Player, TestApp};
use crate::receiver::{Received, Receiver, Reply};

/// A server that may send to this machine, a player with a webhook to a receiver, and a worker.
pub struct Scene {
    pub app: TestApp,
    pub ada: Player,
    pub receiver: Receiver,
    pub hook: Value,
    pub worker: Worker,
}

/// Longer than any test.
pub const LONG: Timeouts = Timeouts { connect: Duration::from_secs(30), total: Duration::from_secs(30) };

pub fn worker(app: &TestApp, targets: Targets, timeouts: Timeouts) -> Worker {
    Worker::new(app.store.clone(), Sender::new(targets, timeouts).unwrap())
}

impl Scene {
    pub async fn new() -> Self {
        Self::with(LONG).await
    }

    pub async fn with(timeouts: Timeouts) -> Self {
        let (app, receiver) = (TestApp::with_targets(Targets::new(true)).await, Receiver::new().await);
        let ada = app.register("Ada").await;
        let hook = app.post("/v1/me/webhooks").by(&ada).json(&json!({"url": receiver.url()})).ok(201).await;
        let worker = worker(&app, Targets::new(true), timeouts);
        Self { app, ada, receiver, hook, worker }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/v1/me/webhooks/{}{rest}", self.hook["id"].as_str().unwrap())
    }

    pub fn secret(&self) -> &str {
        self.hook["secret"].as_str().unwrap()
    }

    pub async fn sql(&self, statement: impl Into<String>) {
        sqlx::raw_sql(AssertSqlSafe(statement.into())).execute(self.app.sql()).await.unwrap();
    }

    pub async fn ping(&self) -> Value {
        self.app.post(self.path("/ping")).by(&self.ada).ok(202).await
    }

    /// Delivers what is due; how many messages.
    pub async fn turn(&mut self) -> usize {
        let count = self.worker.run_once().await.unwrap();
        self.worker.settle().await;
        count
    }

    /// Makes everything due that waits.
    pub async fn hasten(&self) {
        self.sql("update webhook_deliveries set next_attempt_at = now() where next_attempt_at is not null").await;
    }

    pub async fn log(&self) -> Vec<Value> {
        let page = self.app.get(self.path("/deliveries?limit=100")).by(&self.ada).ok(200).await;
        page["items"].as_array().unwrap().clone()
    }

    /// The newest delivery in the log.
    pub async fn newest(&self) -> Value {
        self.log().await.swap_remove(0)
    }

    pub async fn show(&self) -> Value {
        self.app.get(self.path("")).by(&self.ada).ok(200).await
    }

    /// Seconds until a delivery is tried next.
    pub fn pause(delivery: &Value) -> f64 {
        let next = delivery["next_attempt_at"].as_str().unwrap_or_else(|| panic!("not tried again: {delivery}"));
        (OffsetDateTime::parse(next, &Rfc3339).unwrap() - OffsetDateTime::now_utc()).as_seconds_f64()
    }
}

pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("no {member}: {value}"))
}

#[tokio::test]
async fn a_ping_arrives_signed() {
    let mut scene = Scene::new().await;
    let ping = scene.ping().await;
    assert_eq!((text(&ping, "type"), text(&ping, "status")), ("ping", "pending"));
    assert_eq!((&ping["attempts"], &ping["game_id"]), (&json!([]), &Value::Null));
    assert_eq!(scene.turn().await, 1);

    let received = scene.receiver.last();
    assert_eq!(received.line, "POST /hook");
    assert_eq!(received.header("webhook-id"), text(&ping, "id"));
    assert_eq!(received.header("content-type"), "application/json");
    assert_eq!(received.header("user-agent"), concat!("Tavola/", env!("CARGO_PKG_VERSION")));
    let sent: i64 = received.header("webhook-timestamp").parse().unwrap();
    assert!((OffsetDateTime::now_utc().unix_timestamp() - sent).abs() <= 60);
    assert!(received.is_signed(0, scene.secret()) && received.signatures() == 1, "{received:?}");
    assert_eq!(
        received.json(),
        json!({"type": "ping", "timestamp": ping["created_at"], "data": {"webhook_id": scene.hook["id"]}})
    );

    let logged = scene.newest().await;
    assert_eq!((text(&logged, "id"), text(&logged, "status")), (text(&ping, "id"), "delivered"));
    assert!(logged["delivered_at"].is_string() && logged["next_attempt_at"].is_null());
    let attempt = &logged["attempts"][0];
    assert_eq!((&attempt["number"], &attempt["status"], &attempt["error"]), (&json!(1), &json!(204), &Value::Null));
    assert_eq!(scene.turn().await, 0, "it is delivered");
    assert_eq!(scene.receiver.received().len(), 1);
}

#[tokio::test]
async fn a_message_tells_of_a_game_what_was_queued() {
    let mut scene = Scene::new().await;
    let game = Uuid::from_u128(7);
    scene
        .sql(format!(
            "insert into webhook_deliveries (webhook_id, type, game_id, version, seat, deadline)
             values ('{0}', 'your_turn', '{game}', 17, 1, '2026-12-01T12:00:00Z'), ('{0}', 'game_aborted', '{game}', 18, 1, null)",
            text(&scene.hook, "id")
        ))
        .await;
    assert_eq!(scene.turn().await, 2);
    let mut bodies: Vec<Value> = scene.receiver.received().iter().map(Received::json).collect();
    bodies.sort_by_key(|body| body["data"]["version"].as_u64());
    let data: Vec<&Value> = bodies.iter().map(|body| &body["data"]).collect();
    assert_eq!((text(&bodies[0], "type"), text(&bodies[1], "type")), ("your_turn", "game_aborted"));
    assert_eq!(*data[0], json!({"game_id": game, "version": 17, "seat": 1, "deadline": "2026-12-01T12:00:00Z"}));
    assert_eq!(*data[1], json!({"game_id": game, "version": 18, "seat": 1, "deadline": null}));
    let log = scene.log().await;
    let turn = log.iter().find(|delivery| delivery["type"] == "your_turn").unwrap();
    assert_eq!(
        (&turn["version"], &turn["seat"], text(turn, "game_id")),
        (&json!(17), &json!(1), game.to_string().as_str())
    );
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign_for_a_day() {
    let mut scene = Scene::new().await;
    let first = scene.secret().to_owned();
    let rotated = scene.app.post(scene.path("/secret")).by(&scene.ada).ok(200).await;
    let second = text(&rotated, "secret").to_owned();
    assert_ne!(first, second);
    let until = OffsetDateTime::parse(text(&rotated, "old_secret_until"), &Rfc3339).unwrap();
    assert!((until - OffsetDateTime::now_utc() - time::Duration::DAY).abs() < time::Duration::MINUTE);
    scene.ping().await;
    scene.turn().await;
    let received = scene.receiver.last();
    assert!(received.signatures() == 2 && received.is_signed(0, &second) && received.is_signed(1, &first));

    // Of three, the oldest is out.
    let rotated = scene.app.post(scene.path("/secret")).by(&scene.ada).ok(200).await;
    let third = text(&rotated, "secret").to_owned();
    scene.ping().await;
    scene.turn().await;
    let received = scene.receiver.last();
    assert!(received.signatures() == 2 && received.is_signed(0, &third) && received.is_signed(1, &second));

    scene.sql("update webhooks set old_secret_until = now()").await;
    assert_eq!(scene.show().await["old_secret_until"], Value::Null);
    scene.ping().await;
    scene.turn().await;
    let received = scene.receiver.last();
    assert!(received.signatures() == 1 && received.is_signed(0, &third));
}

#[tokio::test]
async fn what_fails_is_tried_again_signed_anew() {
    let mut scene = Scene::new().await;
    for status in [500, 404] {
        scene.receiver.reply(Reply::Status(status, ""));
    }
    scene.ping().await;
    assert_eq!(scene.turn().await, 1);
    let failed = scene.newest().await;
    assert_eq!((text(&failed, "status"), &failed["attempts"][0]["status"]), ("pending", &json!(500)));
    let pause = Scene::pause(&failed);
    assert!((2.0..=6.0).contains(&pause), "5 s and a fifth, less what has passed: {pause}");
    assert!(scene.show().await["failing_since"].is_string());
    assert_eq!(scene.turn().await, 0, "not before its time");

    scene.hasten().await;
    scene.turn().await;
    let pause = Scene::pause(&scene.newest().await);
    assert!((20.0..=36.0).contains(&pause), "{pause}");
    // The signature is made anew, or it could not be by the new secret too.
    let rotated = scene.app.post(scene.path("/secret")).by(&scene.ada).ok(200).await;
    scene.hasten().await;
    scene.turn().await;
    let delivered = scene.newest().await;
    assert_eq!(text(&delivered, "status"), "delivered");
    let statuses: Vec<&Value> = delivered["attempts"].as_array().unwrap().iter().map(|a| &a["status"]).collect();
    assert_eq!(statuses, [500, 404, 204]);
    assert_eq!(scene.show().await["failing_since"], Value::Null);

    let received = scene.receiver.received();
    assert_eq!(received.len(), 3);
    assert!(received[..2].iter().all(|each| each.is_signed(0, scene.secret()) && each.signatures() == 1));
    assert!(received[2].is_signed(0, text(&rotated, "secret")) && received[2].is_signed(1, scene.secret()));
    assert!(received.iter().all(|each| each.body == received[0].body), "the same bytes each time");
    assert!(received.iter().all(|each| each.header("webhook-id") == received[0].header("webhook-id")));
}

#[tokio::test]
async fn what_a_killed_server_had_claimed_is_sent_by_another() {
    let mut scene = Scene::new().await;
    let ping = scene.ping().await;
    let lease = Duration::from_secs(120);
    let claimed = scene.app.store.claim_deliveries(10, 10, &[], lease).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].attempt), (1, 1));
    // It dies.
    assert_eq!(scene.turn().await, 0, "while the lease lasts it is not tried twice");
    assert!((110.0..=120.0).contains(&Scene::pause(&scene.newest().await)));
    scene.hasten().await;
    assert_eq!(scene.turn().await, 1);
    assert_eq!(scene.receiver.last().header("webhook-id"), text(&ping, "id"));
    let delivered = scene.newest().await;
    assert_eq!((text(&delivered, "status"), &delivered["attempts"][0]["number"]), ("delivered", &json!(2)));

    // It was not dead but slow, and what it has to say comes late.
    let failed = Outcome {
        status: None,
        error: Some("timed out"),
        duration: Duration::from_secs(130),
        verdict: Verdict::Failed { retry: Duration::from_secs(5) },
    };
    scene.app.store.record_attempt(&claimed[0], &failed).await.unwrap();
    let delivered = scene.newest().await;
    assert_eq!((text(&delivered, "status"), &delivered["next_attempt_at"]), ("delivered", &Value::Null));
    assert_eq!(delivered["attempts"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn servers_share_the_queue_without_sending_twice() {
    let mut scene = Scene::new().await;
    scene
        .sql(format!(
            "insert into webhook_deliveries (webhook_id, type) select '{}', 'your_turn' from generate_series(1, 40)",
            text(&scene.hook, "id")
        ))
        .await;
    let mut other = worker(&scene.app, Targets::new(true), LONG);
    let mut sent = 0;
    while sent < 40 {
        let (one, two) = tokio::join!(scene.worker.run_once(), other.run_once());
        sent += one.unwrap() + two.unwrap();
        tokio::join!(scene.worker.settle(), other.settle());
    }
    let mut received: Vec<String> =
        scene.receiver.received().iter().map(|each| each.header("webhook-id").to_owned()).collect();
    assert_eq!(received.len(), 40);
    received.sort();
    received.dedup();
    assert_eq!(received.len(), 40);
}

#[tokio::test]
async fn what_comes_of_a_deleted_webhook_is_dropped() {
    let mut scene = Scene::new().await;
    scene.ping().await;
    let claimed = scene.app.store.claim_deliveries(10, 10, &[], Duration::from_secs(120)).await.unwrap();
    scene.app.call("DELETE", scene.path("")).by(&scene.ada).expect(204).await;
    for verdict in [Verdict::Delivered, Verdict::Failed { retry: Duration::ZERO }, Verdict::Gone] {
        let outcome = Outcome { status: Some(200), error: None, duration: Duration::ZERO, verdict };
        scene.app.store.record_attempt(&claimed[0], &outcome).await.unwrap();
    }
    assert_eq!(scene.app.count("select count(*) from webhook_attempts").await, 0);
    assert_eq!(scene.app.count("select count(*) from account_events").await, 0);
    assert_eq!(scene.turn().await, 0);
}

#[tokio::test]
async fn there_is_one_ping_to_come_at_most() {
    let mut scene = Scene::new().await;
    scene.receiver.reply(Reply::Status(500, ""));
    let first = scene.ping().await;
    assert_eq!(text(&scene.ping().await, "id"), text(&first, "id"));
    scene.turn().await;
    let again = scene.ping().await;
    assert_eq!((text(&again, "id"), again["attempts"].as_array().unwrap().len()), (text(&first, "id"), 1));
    assert_eq!(scene.turn().await, 1, "at once, not when it would have been");
    let second = scene.ping().await;
    assert_ne!(text(&second, "id"), text(&first, "id"));
    assert_eq!(scene.receiver.received().len(), 2);
}

#[tokio::test]
async fn a_delivery_can_be_sent_again() {
    let mut scene = Scene::new().await;
    let ping = scene.ping().await;
    scene.turn().await;
    let path = scene.path(&format!("/deliveries/{}/redelivery", text(&ping, "id")));
    let again = scene.app.post(&path).by(&scene.ada).ok(202).await;
    assert_eq!((text(&again, "id"), text(&again, "status")), (text(&ping, "id"), "pending"));
    assert_eq!(again["attempts"].as_array().unwrap().len(), 1);
    scene.turn().await;
    let received = scene.receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(text(&scene.newest().await, "status"), "delivered");
    let unknown = scene.path(&format!("/deliveries/{}/redelivery", Uuid::nil()));
    scene.app.post(unknown).by(&scene.ada).refused(404, "not-found").await;

    // Long after its day: this once.
    scene.sql("update webhook_deliveries set created_at = now() - interval '20 days'").await;
    scene.receiver.reply(Reply::Status(500, ""));
    scene.app.post(&path).by(&scene.ada).ok(202).await;
    assert_eq!(scene.turn().await, 1);
    let failed = scene.newest().await;
    assert_eq!((text(&failed, "status"), &failed["next_attempt_at"]), ("failed", &Value::Null));
}

#[tokio::test]
async fn after_a_day_a_message_is_given_up() {
    let mut scene = Scene::new().await;
    for _ in 0..3 {
        scene.receiver.reply(Reply::Status(500, ""));
    }
    scene.ping().await;
    scene.sql("update webhook_deliveries set attempts_count = 10, created_at = now() - interval '23 hours'").await;
    scene.turn().await;
    let pause = Scene::pause(&scene.newest().await);
    assert!((3_500.0..=3_600.0).contains(&pause), "once more, at the end of its day: {pause}");
    scene.sql("update webhook_deliveries set created_at = created_at - interval '1 hour'").await;
    scene.hasten().await;
    scene.turn().await;
    assert_eq!(text(&scene.newest().await, "status"), "failed");
    scene.hasten().await;
    assert_eq!(scene.turn().await, 0);
    assert_eq!(scene.show().await["enabled"], true, "the webhook goes on");
}

#[tokio::test]
async fn after_five_days_of_failure_a_webhook_is_disabled_and_says_so() {
    let mut scene = Scene::new().await;
    for _ in 0..3 {
        scene.receiver.reply(Reply::Status(500, ""));
    }
    scene.ping().await;
    scene.sql("update webhooks set failing_since = now() - interval '4 days 23 hours'").await;
    scene.turn().await;
    assert_eq!(scene.show().await["enabled"], true);
    scene.sql("update webhooks set failing_since = now() - interval '5 days 1 second'").await;
    scene.hasten().await;
    scene.turn().await;
    let hook = scene.show().await;
    assert!(hook["enabled"] == false && hook["disabled_at"].is_string(), "{hook}");
    assert_eq!(text(&scene.newest().await, "status"), "failed");
    let told = "select count(*) from account_events where type = 'webhook_disabled' and webhook_id is not null";
    assert_eq!(scene.app.count(told).await, 1);
}

#[tokio::test]
async fn one_success_ends_a_failure() {
    let mut scene = Scene::new().await;
    scene.ping().await;
    scene.sql("update webhooks set failing_since = now() - interval '9 days'").await;
    scene.turn().await;
    let hook = scene.show().await;
    assert_eq!((&hook["enabled"], &hook["failing_since"]), (&json!(true), &Value::Null));
    assert_eq!(scene.app.count("select count(*) from account_events").await, 0);
}

#[tokio::test]
async fn the_log_comes_page_by_page() {
    let scene = Scene::new().await;
    scene
        .sql(format!(
            "insert into webhook_deliveries (id, webhook_id, type, game_id, version, created_at)
             select md5(n::text)::uuid, '{}', 'your_turn', gen_random_uuid(), n, now() - n / 3 * interval '1 microsecond'
             from generate_series(1, 25) as n",
            text(&scene.hook, "id")
        ))
        .await;
    let whole = scene.log().await;
    assert_eq!(whole.len(), 25);
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = scene.app.get(scene.path(&format!("/deliveries?limit=4{cursor}"))).by(&scene.ada).ok(200).await;
        let items = page["items"].as_array().unwrap();
        assert!((1..=4).contains(&items.len()));
        paged.extend(items.clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, whole);
    for bad in ["x", "00", &"f".repeat(48), &"8".repeat(48), &"7".repeat(48)] {
        let path = scene.path(&format!("/deliveries?cursor={bad}"));
        scene.app.get(path).by(&scene.ada).refused(400, "invalid-parameter").await;
    }
}

#[tokio::test]
async fn old_deliveries_are_forgotten_unless_they_wait() {
    let scene = Scene::new().await;
    scene
        .sql(format!(
            "insert into webhook_deliveries (webhook_id, type, created_at, next_attempt_at)
             select '{}', 'your_turn', now() - age, next from (values
                 (interval '31 days', null::timestamptz), ('31 days', now()), ('29 days', null), ('0 days', null)) as v (age, next)",
            text(&scene.hook, "id")
        ))
        .await;
    assert_eq!(pruning::run_once(&scene.app.store).await.unwrap(), 1);
    assert_eq!(scene.log().await.len(), 3);
}
