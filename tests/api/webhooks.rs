//! Webhooks: making and changing them, and to which addresses they may go. What is sent is tested in `deliveries`.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tavola::store::MOST_WEBHOOKS;
use tavola::webhook::{Lookup, Targets};

use crate::helpers::{Call, Player, TestApp};

/// A resolver that knows one answer for every name; it can be given another one at any time.
pub struct Names(Mutex<Vec<IpAddr>>);

impl Names {
    pub fn new(addresses: &[&str]) -> Arc<Self> {
        let names = Self(Mutex::default());
        names.set(addresses);
        Arc::new(names)
    }

    pub fn set(&self, addresses: &[&str]) {
        *self.0.lock().unwrap() = addresses.iter().map(|address| address.parse().unwrap()).collect();
    }
}

impl Lookup for Names {
    fn lookup(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let addresses = self.0.lock().unwrap().clone();
        Box::pin(async move { Ok(addresses) })
    }
}

/// A server that takes every name for one of the public internet. Nothing is sent there: no test runs its worker.
async fn public() -> (TestApp, Player) {
    let app = TestApp::with_targets(Targets::with_lookup(false, Names::new(&["93.184.215.14"]))).await;
    let ada = app.register("Ada").await;
    (app, ada)
}

fn create<'a>(app: &'a TestApp, player: &Player, url: &str) -> Call<'a> {
    app.post("/v1/me/webhooks").by(player).json(&json!({"url": url}))
}

fn path(webhook: &Value, rest: &str) -> String {
    format!("/v1/me/webhooks/{}{rest}", webhook["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_webhook_is_created_and_its_secret_shown_once() {
    let (app, ada) = public().await;
    let reply = create(&app, &ada, "HTTPS://Hooks.Example:443/in?x=1").expect(201).await;
    let created = reply.json();
    assert_eq!(reply.header("location"), Some(path(&created, "").as_str()));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(created["url"], "https://hooks.example/in?x=1");
    assert_eq!((&created["enabled"], &created["failing_since"]), (&json!(true), &Value::Null));
    let secret = created["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() == 6 + 44, "{secret}");

    app.forbid(&secret);
    let mut shown = created.clone();
    shown.as_object_mut().unwrap().remove("secret");
    assert_eq!(app.get(path(&created, "")).by(&ada).ok(200).await, shown);
    assert_eq!(app.get("/v1/me/webhooks").by(&ada).ok(200).await, json!({"items": [shown]}));
    assert_eq!(app.call("PATCH", path(&created, "")).by(&ada).json(&json!({})).ok(200).await, shown);
    app.post(path(&created, "/ping")).by(&ada).ok(202).await;
    app.get(path(&created, "/deliveries")).by(&ada).ok(200).await;
    app.get("/v1/me").by(&ada).ok(200).await;
}

#[tokio::test]
async fn an_address_is_subscribed_once_by_a_player() {
    let (app, ada) = public().await;
    let bo = app.register("Bo").await;
    let first = create(&app, &ada, "https://hooks.example/a").ok(201).await;
    create(&app, &ada, "https://hooks.example/a").refused(409, "webhook-exists").await;
    create(&app, &ada, "https://HOOKS.example:443/x/../a").refused(409, "webhook-exists").await;
    create(&app, &bo, "https://hooks.example/a").expect(201).await;
    app.call("DELETE", path(&first, "")).by(&ada).expect(204).await;
    create(&app, &ada, "https://hooks.example/a").expect(201).await;

    let at_once = join_all((0..8).map(|_| create(&app, &ada, "https://hooks.example/b").send())).await;
    assert_eq!(at_once.iter().filter(|reply| reply.status == 201).count(), 1);
    assert_eq!(at_once.iter().filter(|reply| reply.status == 409).count(), 7);
}

#[tokio::test]
async fn a_player_has_ten_webhooks_at_most_also_when_they_come_at_once() {
    let (app, ada) = public().await;
    let urls: Vec<String> = (0..MOST_WEBHOOKS + 4).map(|n| format!("https://hooks.example/{n}")).collect();
    let replies = join_all(urls.iter().map(|url| create(&app, &ada, url).send())).await;
    let made: Vec<Value> = replies.iter().filter(|reply| reply.status == 201).map(|reply| reply.json()).collect();
    assert_eq!(made.len(), MOST_WEBHOOKS);
    let refused = replies.iter().filter(|reply| reply.status == 409);
    let codes: BTreeSet<String> = refused.map(|reply| reply.json()["code"].as_str().unwrap().to_owned()).collect();
    assert_eq!(codes, BTreeSet::from(["too-many-webhooks".to_owned()]));
    let listed = app.get("/v1/me/webhooks").by(&ada).ok(200).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), MOST_WEBHOOKS);

    app.call("DELETE", path(&made[3], "")).by(&ada).expect(204).await;
    create(&app, &ada, "https://hooks.example/new").expect(201).await;
}

#[tokio::test]
async fn a_repeated_request_is_answered_as_the_first_was() {
    let names = Names::new(&["93.184.215.14"]);
    let app = TestApp::with_targets(Targets::with_lookup(false, names.clone())).await;
    let ada = app.register("Ada").await;
    let call = || create(&app, &ada, "https://hooks.example/").key("first");
    let (one, two) = tokio::join!(call().send(), call().send());
    assert_eq!((one.lasting(), one.status), (two.lasting(), 201));
    assert!(one.is_replay() != two.is_replay());
    let created = one.json();
    // Whatever the name means by now.
    names.set(&["127.0.0.1"]);
    assert_eq!(call().ok(201).await, created);
    create(&app, &ada, "https://hooks.example/other").key("first").refused(422, "idempotency-key-reused").await;

    let rotate = || app.post(path(&created, "/secret")).by(&ada).key("second");
    let rotated = rotate().ok(200).await;
    assert_ne!(rotated["secret"], created["secret"]);
    assert_eq!(
        rotate().ok(200).await,
        rotated,
        "a repeat does not rotate again: the receiver may have the new one already"
    );
    let ping = || app.post(path(&created, "/ping")).by(&ada).key("third");
    assert_eq!(ping().ok(202).await, ping().ok(202).await);
    assert_eq!(app.count("select count(*) from webhook_deliveries").await, 1);
}

#[tokio::test]
async fn others_webhooks_are_not_there() {
    let (app, ada) = public().await;
    let bo = app.register("Bo").await;
    let hook = create(&app, &ada, "https://hooks.example/").ok(201).await;
    let ping = app.post(path(&hook, "/ping")).by(&ada).ok(202).await;
    let redelivery = path(&hook, &format!("/deliveries/{}/redelivery", ping["id"].as_str().unwrap()));
    let operations = [
        ("GET", path(&hook, "")),
        ("PATCH", path(&hook, "")),
        ("DELETE", path(&hook, "")),
        ("POST", path(&hook, "/secret")),
        ("POST", path(&hook, "/ping")),
        ("GET", path(&hook, "/deliveries")),
        ("POST", redelivery.clone()),
    ];
    for (method, path) in &operations {
        let call = || app.call(method, path.as_str());
        let call = |player| {
            if *method == "PATCH" { call().json(&json!({"enabled": false})).by(player) } else { call().by(player) }
        };
        call(&bo).refused(404, "not-found").await;
        app.call(method, path.as_str()).refused(401, "unauthenticated").await;
    }
    // A delivery belongs to its webhook, also if both webhooks are one's own.
    let other = create(&app, &ada, "https://hooks.example/other").ok(201).await;
    let crossed = redelivery.replace(hook["id"].as_str().unwrap(), other["id"].as_str().unwrap());
    app.post(crossed).by(&ada).refused(404, "not-found").await;
    assert_eq!(app.get(path(&hook, "")).by(&ada).ok(200).await["enabled"], true);
    assert_eq!(app.get("/v1/me/webhooks").by(&bo).ok(200).await, json!({"items": []}));
    app.get("/v1/me/webhooks/x").by(&ada).refused(400, "invalid-parameter").await;
    app.post(path(&hook, "/deliveries/x/redelivery")).by(&ada).refused(400, "invalid-parameter").await;

    app.call("DELETE", path(&hook, "")).by(&ada).expect(204).await;
    for (method, path) in operations {
        let call = app.call(method, path).by(&ada);
        let call = if method == "PATCH" { call.json(&json!({"enabled": true})) } else { call };
        call.refused(404, "not-found").await;
    }
    assert_eq!(app.count("select count(*) from webhook_deliveries").await, 0);
}

#[tokio::test]
async fn a_webhook_can_be_disabled_and_enabled_again() {
    let (app, ada) = public().await;
    let hook = create(&app, &ada, "https://hooks.example/").ok(201).await;
    let set = |enabled: bool| app.call("PATCH", path(&hook, "")).by(&ada).json(&json!({"enabled": enabled}));
    let ping = app.post(path(&hook, "/ping")).by(&ada).ok(202).await;
    let disabled = set(false).ok(200).await;
    assert_eq!(disabled["enabled"], false);
    assert_eq!(set(false).ok(200).await, disabled, "and again changes nothing");
    let log = app.get(path(&hook, "/deliveries")).by(&ada).ok(200).await;
    assert_eq!(log["items"][0]["status"], "failed", "what waited is given up");
    app.post(path(&hook, "/ping")).by(&ada).refused(409, "webhook-disabled").await;
    let again = path(&hook, &format!("/deliveries/{}/redelivery", ping["id"].as_str().unwrap()));
    app.post(again).by(&ada).refused(409, "webhook-disabled").await;

    sqlx::query("update webhooks set failing_since = now() - interval '9 days'").execute(app.sql()).await.unwrap();
    let enabled = set(true).ok(200).await;
    assert_eq!((&enabled["enabled"], &enabled["failing_since"]), (&json!(true), &Value::Null));
    app.post(path(&hook, "/ping")).by(&ada).expect(202).await;
    for body in [json!({"enabled": null}), json!({"enabled": "yes"}), json!({"url": "https://other.example/"})] {
        app.call("PATCH", path(&hook, "")).by(&ada).json(&body).refused(400, "invalid-body").await;
    }
    assert_eq!(app.count("select count(*) from account_events").await, 0, "one knows what one has done oneself");
}

#[tokio::test]
async fn addresses_inside_are_refused() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for url in [
        "https://127.0.0.1/",
        "https://127.0.0.1:8080/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0.0.0.0/",
        "https://10.1.2.3/",
        "https://192.168.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        // By the system's own resolver.
        "https://localhost/",
        "https://localhost./",
        "https://LOCALHOST:5432/",
        // The internet, but in the open.
        "http://93.184.215.14/",
    ] {
        let problem = create(&app, &ada, url).refused(422, "target-not-allowed").await;
        assert_eq!(problem["errors"][0]["pointer"], "/url", "{url}");
    }
    for url in ["", "hooks.example", "ftp://hooks.example/", "https://a:b@hooks.example/", "https://hooks.example/#a"] {
        let problem = create(&app, &ada, url).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/url", "{url}");
    }
    assert_eq!(app.count("select count(*) from webhooks").await, 0);
}

#[tokio::test]
async fn names_that_lead_inside_are_refused() {
    let names = Names::new(&[]);
    let app = TestApp::with_targets(Targets::with_lookup(false, names.clone())).await;
    let ada = app.register("Ada").await;
    for addresses in [&["127.0.0.1"][..], &["::ffff:10.0.0.1"], &["10.0.0.1", "fd00::1"], &["169.254.169.254"], &[]] {
        names.set(addresses);
        let problem = create(&app, &ada, "https://hooks.example/").refused(422, "target-not-allowed").await;
        let said = problem.to_string();
        assert!(
            addresses.iter().all(|address| !said.contains(address)),
            "what a name means inside is not told: {said}"
        );
    }
    names.set(&["10.0.0.1", "93.184.215.14"]);
    create(&app, &ada, "https://hooks.example/").expect(201).await;
}

#[tokio::test]
async fn an_operator_can_allow_addresses_inside() {
    let app = TestApp::with_targets(Targets::new(true)).await;
    let ada = app.register("Ada").await;
    for url in ["http://127.0.0.1:9/", "http://localhost:9/", "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/"]
    {
        create(&app, &ada, url).expect(201).await;
    }
}
