//! Rate limits: who draws on which budget, what is told of it, and that nobody is cut off in the middle of a game. The
//! servers here have clocks that stand still.

use std::time::Duration;

use governor::clock::{Clock, FakeRelativeClock};
use serde_json::json;
use tavola::config::LimitSettings;
use tavola::http::Limits;

use crate::helpers::{Reply, TestApp};

/// A server with these limits and its clock.
async fn limited(settings: LimitSettings) -> (TestApp, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    let hand = clock.clone();
    (TestApp::limited(Limits::with_clock(&settings, move || hand.now().into())).await, clock)
}

/// What an answer says of limits: the policies, the state, how long to wait.
fn told(reply: &Reply) -> [Option<&str>; 3] {
    ["ratelimit-policy", "ratelimit", "retry-after"].map(|name| reply.header(name))
}

#[tokio::test]
async fn a_token_is_cut_off_when_its_budget_is_used_up_and_let_in_again() {
    let (app, clock) = limited(LimitSettings { limit_token: 3, ..LimitSettings::NONE }).await;
    let (ada, bo) = (app.register("Ada").await, app.register("Bo").await);
    let policy = Some(r#""token";q=3;w=60"#);
    for state in [r#""token";r=2;t=20"#, r#""token";r=1;t=40"#] {
        assert_eq!(told(&app.get("/v1/me").by(&ada).expect(200).await), [policy, Some(state), None]);
    }
    // An error is told of like a success, and costs as much.
    let reply = app.get(format!("/v1/games/{}", ada.id)).by(&ada).expect(404).await;
    assert_eq!(told(&reply), [policy, Some(r#""token";r=0;t=60"#), None]);
    let reply = app.get("/v1/me").by(&ada).expect(429).await;
    assert_eq!(told(&reply), [policy, Some(r#""token";r=0;t=20"#), Some("20")]);
    assert_eq!(reply.json()["code"], "rate-limited");
    assert_eq!(reply.json()["detail"], "the budget `token` is used up; try again in 20 s");
    let exposed = reply.header("access-control-expose-headers").unwrap();
    for name in ["ratelimit", "ratelimit-policy", "retry-after"] {
        assert!(exposed.split(',').any(|known| known.trim() == name), "{name}: {exposed}");
    }
    // Another token, and nobody, are none the worse.
    app.get("/v1/me").by(&bo).expect(200).await;
    app.get("/v1/games").expect(200).await;
    clock.advance(Duration::from_millis(19_001));
    assert_eq!(app.get("/v1/me").by(&ada).expect(429).await.header("retry-after"), Some("1"));
    clock.advance(Duration::from_millis(999));
    app.get("/v1/me").by(&ada).expect(200).await;
}

#[tokio::test]
async fn what_is_refused_has_done_nothing() {
    let (app, clock) = limited(LimitSettings { limit_token: 1, ..LimitSettings::NONE }).await;
    let ada = app.register("Ada").await;
    app.get("/v1/me").by(&ada).expect(200).await;
    let create = || app.post("/v1/games").by(&ada).key("k").json(&json!({"ruleset": "leopard"}));
    create().refused(429, "rate-limited").await;
    assert_eq!(app.count("select count(*) from games").await, 0);
    assert_eq!(app.count("select count(*) from idempotency_keys").await, 0);
    clock.advance(Duration::from_secs(60));
    assert!(!create().expect(201).await.is_replay());
}

#[tokio::test]
async fn moves_go_on_when_the_general_budget_is_used_up() {
    let (app, clock) = limited(LimitSettings { limit_token: 6, limit_moves: 3, ..LimitSettings::NONE }).await;
    let table = app.table("siggil", &json!({}), 1).await;
    let mover = &table.players[0];
    while app.get("/v1/me").by(mover).send().await.status == 200 {}
    for _ in 0..4 {
        // Time for one request, by which the player learns what can be played.
        clock.advance(Duration::from_secs(10));
        let legal = app.legal_moves(&table.id, mover).await;
        app.get(table.path("")).by(mover).refused(429, "rate-limited").await;
        let reply = app.play(&table, mover, &legal[0]).await;
        assert_eq!(reply.header("ratelimit-policy"), Some(r#""moves";q=3;w=60"#));
    }
    // Generous, not boundless: a move more every 20 seconds, of three at first.
    let reply = app.post(table.path("/moves")).by(mover).json(&json!({})).expect(429).await;
    assert_eq!(told(&reply), [Some(r#""moves";q=3;w=60"#), Some(r#""moves";r=0;t=10"#), Some("10")]);
}

#[tokio::test]
async fn a_move_out_of_turn_draws_on_the_general_budget_too() {
    let (app, _) = limited(LimitSettings { limit_token: 10, limit_moves: 20, ..LimitSettings::NONE }).await;
    let table = app.table("leopard", &json!({}), 2).await;
    // Asked without a token: whose turn it is, is a matter of the lot, and asking would draw on a budget.
    let seat = app.game(&table.id, None).await["to_move"]["seat"].as_u64().unwrap() as usize;
    let (mover, other) = (&table.players[seat], &table.players[1 - seat]);
    let left = |reply: &Reply| reply.header("ratelimit").unwrap().to_owned();
    let play = |player| app.post(table.path("/moves")).by(player).json(&json!({"type": "end_hand"}));
    // Creating, or taking a seat, was one request.
    let reply = play(other).expect(409).await;
    assert_eq!(left(&reply), r#""moves";r=19;t=3, "token";r=8;t=12"#);
    assert_eq!(reply.header("ratelimit-policy"), Some(r#""moves";q=20;w=60, "token";q=10;w=60"#));
    let nowhere = format!("/v1/games/{}/moves", uuid::Uuid::nil());
    let reply = app.post(nowhere).by(other).json(&json!({})).expect(404).await;
    assert_eq!(left(&reply), r#""moves";r=18;t=6, "token";r=7;t=18"#);
    for spent in 1..=7 {
        let reply = play(other).expect(409).await;
        assert!(left(&reply).ends_with(&format!(r#""token";r={};t={}"#, 7 - spent, (3 + spent) * 6)), "{reply:?}");
    }
    app.get("/v1/me").by(other).refused(429, "rate-limited").await;
    // An illegal move is a move of the player whose turn it is.
    assert_eq!(left(&play(mover).expect(422).await), r#""moves";r=19;t=3"#);
}

#[tokio::test]
async fn wrong_tokens_draw_on_the_address() {
    let (app, clock) = limited(LimitSettings { limit_token: 100, limit_address: 6, ..LimitSettings::NONE }).await;
    // A registration and the first use of a token draw on the address too.
    let ada = app.register("Ada").await;
    let reply = app.get("/v1/me").by(&ada).expect(200).await;
    assert_eq!(reply.header("ratelimit"), Some(r#""address";r=4;t=20, "token";r=99;t=1"#));
    for left in (2..4).rev() {
        let reply = app.get("/v1/me").token(&format!("wrong-{left}")).expect(401).await;
        assert_eq!(reply.header("ratelimit"), Some(format!(r#""address";r={left};t={}"#, (6 - left) * 10).as_str()));
    }
    // Nor does it help to send them where no token is looked at, or what is no token.
    app.get(format!("/v1/players/{}", ada.id)).token("wrong").expect(200).await;
    app.get("/v1/me").header("authorization", "Basic eDp5").expect(401).await;
    for token in ["wrong", "another", "wrong-3"] {
        app.get(format!("/v1/players/{}", ada.id)).token(token).refused(429, "rate-limited").await;
        app.post(format!("/v1/games/{}/moves", ada.id))
            .token(token)
            .json(&json!({}))
            .refused(429, "rate-limited")
            .await;
    }
    let reply = app.get("/v1/games").expect(429).await;
    assert_eq!(told(&reply), [Some(r#""address";q=6;w=60"#), Some(r#""address";r=0;t=10"#), Some("10")]);
    // Ada, at the same address, is not cut off.
    app.get("/v1/me").by(&ada).expect(200).await;
    clock.advance(Duration::from_secs(10));
    app.get("/v1/games").expect(200).await;
}

#[tokio::test]
async fn registrations_have_a_budget_however_their_path_is_written() {
    let settings = LimitSettings { limit_registrations: 2, limit_address: 100, ..LimitSettings::NONE };
    let (app, clock) = limited(settings).await;
    let register = |path: &str, name: &str| app.post(path).json(&json!({"name": name}));
    let reply = register("/v1/players", "Ada").expect(201).await;
    assert_eq!(reply.header("ratelimit-policy"), Some(r#""address";q=100;w=60, "registrations";q=2;w=3600"#));
    assert_eq!(reply.header("ratelimit"), Some(r#""address";r=99;t=1, "registrations";r=1;t=1800"#));
    register("/v1/%70layers", "Bo").expect(201).await;
    for path in ["/v1/players", "/v1/%70layers"] {
        let reply = register(path, "Cy").expect(429).await;
        assert_eq!(reply.header("retry-after"), Some("1800"));
    }
    app.get("/v1/games").expect(200).await;
    clock.advance(Duration::from_secs(1800));
    register("/v1/players", "Cy").expect(201).await;
}

#[tokio::test]
async fn x_forwarded_for_counts_only_behind_trusted_proxies() {
    async fn from(app: &TestApp, sent: &str) -> Reply {
        app.get("/v1/games").header("x-forwarded-for", sent).send().await
    }
    let settings = LimitSettings { limit_address: 1, ..LimitSettings::NONE };
    let (app, _) = limited(settings.clone()).await;
    assert_eq!(from(&app, "203.0.113.1").await.status, 200);
    assert_eq!(from(&app, "203.0.113.2").await.status, 429);

    let (app, _) = limited(LimitSettings { trusted_proxies: 1, ..settings }).await;
    assert_eq!(from(&app, "203.0.113.1").await.status, 200);
    assert_eq!(from(&app, "203.0.113.2").await.status, 200);
    // What stands before the proxy's own entry is the client's word.
    assert_eq!(from(&app, "203.0.113.3, 203.0.113.2").await.status, 429);
    assert_eq!(from(&app, "2001:db8::1").await.status, 200);
    assert_eq!(from(&app, "2001:db8::2").await.status, 429);
    assert_eq!(from(&app, "2001:db8:0:1::1").await.status, 200);
    // Past the proxy.
    assert_eq!(app.get("/v1/games").send().await.status, 200);
    assert_eq!(app.get("/v1/games").send().await.status, 429);
}

#[tokio::test]
async fn what_watches_and_describes_the_server_is_free() {
    let (app, _) = limited(LimitSettings { limit_address: 1, limit_token: 1, ..LimitSettings::NONE }).await;
    app.get("/v1/games").expect(200).await;
    app.get("/v1/games").refused(429, "rate-limited").await;
    app.get("/problems/rate-limited").refused(429, "rate-limited").await;
    app.get("/v1/nothing").refused(429, "rate-limited").await;
    for _ in 0..3 {
        for path in ["/healthz", "/readyz", "/openapi.json", "/docs/", "/docs/index.html"] {
            assert_eq!(told(&app.get(path).expect(200).await), [None; 3], "{path}");
        }
        let preflight = app.call("OPTIONS", "/v1/games").header("access-control-request-method", "POST");
        assert_eq!(told(&preflight.expect(200).await), [None; 3]);
    }
}

#[tokio::test]
async fn without_limits_nothing_is_told() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    for call in [app.get("/v1/games"), app.get("/v1/me").by(&ada), app.get("/v1/me").by(&ada)] {
        assert_eq!(told(&call.expect(200).await), [None; 3]);
    }
}
