use actix_web::test::TestRequest;
use governor::clock::{Clock as _, FakeRelativeClock};

use super::*;

/// Limits by a clock that stands still until it is told otherwise.
fn limits(settings: LimitSettings) -> (Limits, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    let hand = clock.clone();
    (Limits::with_clock(&settings, move || hand.now().into()), clock)
}

const SOME: LimitSettings =
    LimitSettings { limit_token: 3, limit_address: 4, limit_moves: 5, limit_registrations: 2, trusted_proxies: 0 };

const GAMES: (Method, &str) = (Method::GET, "/v1/games");
const REGISTER: (Method, &str) = (Method::POST, "/v1/players");
const MOVES: (Method, &str) = (Method::POST, "/v1/games/1/moves");

/// Asks without doing anything; what the answer would be and the budgets that are told of, with what is left of them.
fn ask(limits: &Limits, what: (Method, &str), token: Option<&str>, status: u16) -> (u16, Vec<(&'static str, u32)>) {
    let mut request = TestRequest::with_uri(what.1).method(what.0).peer_addr("192.0.2.1:4711".parse().unwrap());
    if let Some(token) = token {
        request = request.insert_header(("authorization", format!("Bearer {token}")));
    }
    let asker = limits.asker(&request.to_srv_request(), what.1);
    let mut draws = limits.admit(&asker);
    let mut status = StatusCode::from_u16(status).unwrap();
    if draws.refusal().is_some() {
        status = StatusCode::TOO_MANY_REQUESTS;
    } else {
        limits.settle(&asker, status, status.is_success(), &mut draws);
    }
    (status.as_u16(), draws.0.iter().map(|draw| (draw.name, draw.remaining)).collect())
}

#[test]
fn a_budget_is_used_up_and_comes_back_evenly() {
    let (limits, clock) = limits(SOME);
    let budget = limits.token.as_ref().unwrap();
    let key = TokenHash::of("a");
    let draw = |remaining, seconds, refused| Draw { name: "token", quota: 3, window: 60, remaining, seconds, refused };
    assert_eq!(budget.draw(&key), draw(2, 20, false));
    assert_eq!(budget.draw(&key), draw(1, 40, false));
    assert_eq!(budget.draw(&key), draw(0, 60, false));
    assert_eq!(budget.draw(&key), draw(0, 20, true));
    // Asking in vain costs nothing.
    clock.advance(Duration::from_millis(18_500));
    assert_eq!(budget.draw(&key), draw(0, 2, true));
    clock.advance(Duration::from_millis(1_499));
    assert_eq!(budget.draw(&key), draw(0, 1, true));
    clock.advance(Duration::from_millis(1));
    assert_eq!(budget.draw(&key), draw(0, 60, false));
    assert_eq!(budget.draw(&TokenHash::of("b")), draw(2, 20, false), "another key");
    clock.advance(HOUR);
    assert_eq!(budget.draw(&key), draw(2, 20, false), "no more than a whole budget");
}

#[test]
fn the_largest_and_the_smallest_budgets_work() {
    let clock = Clock(Arc::new(|| Duration::ZERO));
    for window in [MINUTE, HOUR] {
        let largest = Budget::new("x", u32::MAX, window, &clock).unwrap().draw(&1);
        assert_eq!((largest.remaining, largest.seconds, largest.refused), (u32::MAX - 1, 1, false));
        let smallest = Budget::new("x", 1, window, &clock).unwrap();
        assert_eq!(smallest.draw(&1).seconds, window.as_secs());
        assert_eq!((smallest.draw(&1).seconds, smallest.draw(&1).refused), (window.as_secs(), true));
        assert!(Budget::<u8>::new("x", 0, window, &clock).is_none());
    }
}

#[test]
fn headers_tell_of_every_budget() {
    let (limits, _) = limits(SOME);
    let mut draws = Draws::default();
    let mut headers = HeaderMap::new();
    draws.tell(&mut headers);
    assert!(headers.is_empty());
    draws.on(&limits.address, &IpAddr::from([192, 0, 2, 1]));
    draws.on(&limits.registrations, &IpAddr::from([192, 0, 2, 1]));
    draws.tell(&mut headers);
    assert_eq!(headers.get(POLICY).unwrap(), r#""address";q=4;w=60, "registrations";q=2;w=3600"#);
    assert_eq!(headers.get(STATE).unwrap(), r#""address";r=3;t=15, "registrations";r=1;t=1800"#);
}

#[test]
fn a_token_draws_on_the_address_until_it_is_known() {
    let (limits, clock) = limits(SOME);
    assert_eq!(ask(&limits, GAMES, Some("good"), 200), (200, vec![("address", 3), ("token", 2)]));
    assert_eq!(ask(&limits, GAMES, Some("good"), 404), (404, vec![("token", 1)]));
    assert_eq!(ask(&limits, GAMES, None, 200), (200, vec![("address", 2)]));
    assert_eq!(ask(&limits, GAMES, Some("bad"), 401), (401, vec![("address", 1)]));
    // Made-up tokens, where nobody looks at them too, come to an end with the address.
    assert_eq!(ask(&limits, GAMES, Some("worse"), 404), (404, vec![("address", 0)]));
    assert_eq!(ask(&limits, GAMES, Some("worst"), 200), (429, vec![("address", 0)]));
    assert_eq!(ask(&limits, GAMES, None, 200), (429, vec![("address", 0)]));
    assert_eq!(ask(&limits, GAMES, Some("good"), 200), (200, vec![("token", 0)]), "the known one goes on");
    assert_eq!(ask(&limits, GAMES, Some("good"), 200), (429, vec![("token", 0)]));
    clock.advance(MINUTE);
    assert_eq!(ask(&limits, GAMES, Some("worst"), 200), (200, vec![("address", 3), ("token", 2)]));
}

#[test]
fn a_token_that_is_good_no_more_is_a_stranger() {
    let (limits, _) = limits(SOME);
    ask(&limits, GAMES, Some("good"), 200);
    assert_eq!(ask(&limits, GAMES, Some("good"), 401), (401, vec![("token", 1), ("address", 2)]));
    assert_eq!(ask(&limits, GAMES, Some("good"), 401), (401, vec![("address", 1)]));
}

#[test]
fn moves_have_a_budget_of_their_own_unless_they_are_none() {
    let (limits, _) = limits(SOME);
    assert_eq!(ask(&limits, MOVES, Some("good"), 201), (201, vec![("address", 3), ("moves", 4)]));
    for (status, drawn) in [
        (201, vec![("moves", 3)]),
        (422, vec![("moves", 2)]),
        (409, vec![("moves", 1), ("token", 2)]),
        (403, vec![("moves", 0), ("token", 1)]),
        (201, vec![("moves", 0)]),
    ] {
        let status_then = if drawn == [("moves", 0)] { 429 } else { status };
        assert_eq!(ask(&limits, MOVES, Some("good"), status), (status_then, drawn));
    }
    assert_eq!(ask(&limits, GAMES, Some("good"), 200), (200, vec![("token", 0)]));
}

#[test]
fn moves_go_on_when_all_else_is_used_up() {
    let (limits, _) = limits(SOME);
    ask(&limits, GAMES, Some("good"), 200);
    (0..8).for_each(|_| drop((ask(&limits, GAMES, Some("good"), 200), ask(&limits, GAMES, None, 200))));
    assert_eq!(ask(&limits, GAMES, Some("good"), 200).0, 429);
    assert_eq!(ask(&limits, MOVES, Some("good"), 201), (201, vec![("moves", 4)]));
    // What was done is done: the general budget stays as empty as it is.
    assert_eq!(ask(&limits, MOVES, Some("good"), 404), (404, vec![("moves", 3), ("token", 0)]));
}

#[test]
fn registrations_have_a_stricter_budget() {
    let (limits, clock) = limits(SOME);
    assert_eq!(ask(&limits, REGISTER, None, 201), (201, vec![("address", 3), ("registrations", 1)]));
    assert_eq!(ask(&limits, REGISTER, None, 409), (409, vec![("address", 2), ("registrations", 0)]));
    assert_eq!(ask(&limits, REGISTER, None, 201), (429, vec![("address", 1), ("registrations", 0)]));
    clock.advance(HOUR / 2);
    assert_eq!(ask(&limits, REGISTER, None, 201), (201, vec![("address", 3), ("registrations", 0)]));
    assert_eq!(ask(&limits, (Method::GET, "/v1/players"), None, 405).1, [("address", 2)]);
}

#[test]
fn a_limit_of_0_is_none() {
    let (unlimited, _) = limits(LimitSettings::NONE);
    for what in [GAMES, REGISTER, MOVES] {
        for token in [None, Some("good"), Some("good")] {
            assert_eq!(ask(&unlimited, what.clone(), token, 201), (201, vec![]));
        }
    }
    let (limits, _) = limits(LimitSettings { limit_address: 0, ..SOME });
    assert_eq!(ask(&limits, GAMES, Some("good"), 200), (200, vec![("token", 2)]));
    assert_eq!(ask(&limits, GAMES, None, 200), (200, vec![]));
}

#[test]
fn what_makes_no_difference_any_more_is_forgotten() {
    let (limits, clock) = limits(SOME);
    let sizes = || {
        let addresses = [&limits.address, &limits.registrations].map(|budget| budget.as_ref().unwrap().limiter.len());
        let tokens = [&limits.token, &limits.moves].map(|budget| budget.as_ref().unwrap().limiter.len());
        (addresses, tokens, limits.known().seen.len())
    };
    let move_of = |token| ask(&limits, MOVES, Some(token), 201);
    move_of("a");
    ask(&limits, GAMES, Some("a"), 200);
    ask(&limits, REGISTER, None, 201);
    ask(&limits, GAMES, Some("bad"), 401);
    assert_eq!(sizes(), ([1, 1], [1, 1], 1), "a wrong token leaves nothing");
    clock.advance(Duration::from_secs(90));
    limits.sweep();
    assert_eq!(sizes(), ([0, 1], [0, 0], 1));
    clock.advance(HOUR);
    limits.sweep();
    assert_eq!(sizes(), ([0, 0], [0, 0], 1));
    // Whoever moves once a day stays known.
    clock.advance(24 * HOUR);
    assert_eq!(move_of("a").1, [("moves", 4)]);
    clock.advance(MEMORY);
    limits.sweep();
    assert_eq!(sizes().2, 0);
}

#[test]
fn what_is_counted() {
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/", "/docs/swagger-ui.css"] {
        assert!(!is_limited(path), "{path}");
    }
    for path in ["/", "/v1/games", "/v1/nothing", "/docsx", "/problems/internal"] {
        assert!(is_limited(path), "{path}");
    }
}
