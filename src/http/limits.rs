//! How much a client may ask in which time: budgets per token and per address, told in every answer by `RateLimit` and
//! `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers). The state is this process's own and in memory.
//!
//! | request | draws on |
//! | --- | --- |
//! | with a token that is known to be good | `token` |
//! | a move, with such a token | `moves`; on `token` too if it turns out that the player had no business to move |
//! | without a token, or with another one | `address`; on the token's budget too if it turns out to be good |
//! | a registration | `registrations`, besides |
//!
//! A token is known once an operation that looks at tokens has succeeded with it. Were every token to have a budget from the
//! beginning, whoever sends another made-up one each time would have no limit at all, and could fill the memory. So what
//! grows here, grows with accounts and addresses only; and whoever plays is not cut off because others at the same address
//! have used up its budget.

mod address;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{HttpResponse, web};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use super::problem::{Code, Problem};
use super::{Document, auth};
use crate::config::LimitSettings;
use crate::store::{Store, TokenHash};

/// The headers that tell of budgets.
pub const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub const STATE: HeaderName = HeaderName::from_static("ratelimit");

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// For how long after its last use a token is known. Games by correspondence have a move a day.
const MEMORY: Duration = Duration::from_secs(36 * 3600);

/// How often what is full again, or was not used for long, is forgotten.
const SWEEP: Duration = MINUTE;

/// Whether requests for a path are counted. What watches the server and what describes it is not; nor are preflights, which
/// never come this far.
pub fn is_limited(path: &str) -> bool {
    !matches!(path, "/healthz" | "/readyz" | "/openapi.json" | "/docs") && !path.starts_with("/docs/")
}

/// Time since some moment that stays the same.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl governor::clock::Clock for Clock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        (self.0)()
    }
}

/// As many requests in a window as its quota says, for each key; they come back evenly over the window.
struct Budget<K: Clone + Eq + Hash> {
    name: &'static str,
    quota: u32,
    window: Duration,
    clock: Clock,
    limiter: RateLimiter<K, DefaultKeyedStateStore<K>, Clock, StateInformationMiddleware>,
}

impl<K: Clone + Eq + Hash> Budget<K> {
    /// A full budget; none if the quota is 0, which is no limit.
    fn new(name: &'static str, quota: u32, window: Duration, clock: &Clock) -> Option<Self> {
        let burst = quota.try_into().ok()?;
        let rate = Quota::with_period(window / quota)?.allow_burst(burst);
        let limiter = RateLimiter::new(rate, DefaultKeyedStateStore::default(), clock.clone());
        Some(Self { name, quota, window, clock: clock.clone(), limiter })
    }

    /// Takes one request from a key's budget, if it is not used up.
    fn draw(&self, key: &K) -> Draw {
        let (name, quota, window) = (self.name, self.quota, self.window.as_secs());
        match self.limiter.check_key(key) {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                let used = u64::from(quota.saturating_sub(remaining));
                let full_in = (used * window).div_ceil(quota.into());
                Draw { name, quota, window, remaining, seconds: full_in, refused: false }
            }
            Err(refusal) => {
                let wait = refusal.wait_time_from((self.clock.0)()).as_nanos().div_ceil(1_000_000_000);
                let seconds = u64::try_from(wait).unwrap_or(u64::MAX).max(1);
                Draw { name, quota, window, remaining: 0, seconds, refused: true }
            }
        }
    }
}

/// What a budget says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Draw {
    name: &'static str,
    /// Requests in a window.
    quota: u32,
    /// Seconds.
    window: u64,
    /// How many more requests there may be now.
    remaining: u32,
    /// Until the budget is full again, or, if it refuses, until it does not.
    seconds: u64,
    refused: bool,
}

/// All that the budgets say to a request, in the order in which they were asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Draws(Vec<Draw>);

impl Draws {
    /// Draws on a budget, if there is such a limit.
    fn on<K: Clone + Eq + Hash>(&mut self, budget: &Option<Budget<K>>, key: &K) {
        self.0.extend(budget.as_ref().map(|budget| budget.draw(key)));
    }

    /// The budget that is used up.
    fn refusal(&self) -> Option<&Draw> {
        self.0.iter().find(|draw| draw.refused)
    }

    /// Tells of every budget that the request has to do with.
    fn tell(&self, headers: &mut HeaderMap) {
        let (mut policy, mut state) = (String::new(), String::new());
        for Draw { name, quota, window, remaining, seconds, .. } in &self.0 {
            let comma = if policy.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(policy, "{comma}\"{name}\";q={quota};w={window}");
            let _ = write!(state, "{comma}\"{name}\";r={remaining};t={seconds}");
        }
        for (name, text) in [(POLICY, policy), (STATE, state)] {
            if let Ok(value) = HeaderValue::from_str(&text)
                && !text.is_empty()
            {
                headers.insert(name, value);
            }
        }
    }
}

/// What a request is, for the budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Registration,
    Move,
    Other,
}

impl Kind {
    fn of(method: &Method, path: &str) -> Self {
        let segments: Vec<&str> = path.split('/').collect();
        match segments[..] {
            ["", "v1", "players"] if method == Method::POST => Kind::Registration,
            ["", "v1", "games", _, "moves"] if method == Method::POST => Kind::Move,
            _ => Kind::Other,
        }
    }
}

/// Who asks, and for what.
#[derive(Clone, Copy, Debug)]
struct Asker {
    address: IpAddr,
    token: Option<TokenHash>,
    /// Whether the token is known to be good.
    known: bool,
    kind: Kind,
}

/// Tokens that are known to be good, with the time of their last use.
#[derive(Default)]
struct Known {
    seen: HashMap<TokenHash, Duration>,
    swept: Duration,
}

/// The budgets of all clients of a server.
pub struct Limits {
    address: Option<Budget<IpAddr>>,
    registrations: Option<Budget<IpAddr>>,
    token: Option<Budget<TokenHash>>,
    moves: Option<Budget<TokenHash>>,
    known: Mutex<Known>,
    trusted_proxies: usize,
    clock: Clock,
}

impl Limits {
    /// Full budgets.
    pub fn new(settings: &LimitSettings) -> Self {
        let start = Instant::now();
        Self::with_clock(settings, move || start.elapsed())
    }

    /// No limits at all.
    pub fn none() -> Self {
        Self::new(&LimitSettings::NONE)
    }

    /// Full budgets by another clock, which tells the time since some moment that stays the same; for tests.
    pub fn with_clock(settings: &LimitSettings, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let clock = Clock(Arc::new(clock));
        Self {
            address: Budget::new("address", settings.limit_address, MINUTE, &clock),
            registrations: Budget::new("registrations", settings.limit_registrations, HOUR, &clock),
            token: Budget::new("token", settings.limit_token, MINUTE, &clock),
            moves: Budget::new("moves", settings.limit_moves, MINUTE, &clock),
            known: Mutex::default(),
            trusted_proxies: settings.trusted_proxies.into(),
            clock,
        }
    }

    fn asker(&self, request: &ServiceRequest, path: &str) -> Asker {
        // A header that holds no token is none; it is refused where a token is looked at.
        let token = auth::token(request.request()).unwrap_or_default();
        Asker {
            address: address::of(request.headers(), request.peer_addr(), self.trusted_proxies),
            token,
            known: token.is_some_and(|token| self.is_known(token)),
            kind: Kind::of(request.method(), path),
        }
    }

    /// Draws on the budgets that a request needs before it is carried out.
    fn admit(&self, asker: &Asker) -> Draws {
        self.sweep();
        let mut draws = Draws::default();
        match asker.token.filter(|_| asker.known) {
            Some(token) if asker.kind == Kind::Move => draws.on(&self.moves, &token),
            Some(token) => draws.on(&self.token, &token),
            None => draws.on(&self.address, &asker.address),
        }
        if asker.kind == Kind::Registration && draws.refusal().is_none() {
            draws.on(&self.registrations, &asker.address);
        }
        draws
    }

    /// Draws on the budgets of which only the answer tells that the request needs them. `proven`: the token was looked at
    /// and is good. A budget that is used up by now is left so: the request has been carried out.
    fn settle(&self, asker: &Asker, status: StatusCode, proven: bool, draws: &mut Draws) {
        let Some(token) = asker.token else { return };
        if !asker.known {
            if proven {
                self.remember(token);
                draws.on(if asker.kind == Kind::Move { &self.moves } else { &self.token }, &token);
            }
        } else if status == StatusCode::UNAUTHORIZED {
            // It was good once.
            self.known().seen.remove(&token);
            draws.on(&self.address, &asker.address);
        } else if asker.kind == Kind::Move
            && matches!(status, StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::CONFLICT)
        {
            draws.on(&self.token, &token);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that is done under the lock leaves it half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_known(&self, token: TokenHash) -> bool {
        let now = (self.clock.0)();
        self.known().seen.get_mut(&token).map(|seen| *seen = now).is_some()
    }

    fn remember(&self, token: TokenHash) {
        let now = (self.clock.0)();
        self.known().seen.insert(token, now);
    }

    /// Forgets, now and then, what would be the same if it were new.
    fn sweep(&self) {
        let now = (self.clock.0)();
        {
            let mut known = self.known();
            if now.saturating_sub(known.swept) < SWEEP {
                return;
            }
            known.swept = now;
            known.seen.retain(|_, seen| now.saturating_sub(*seen) < MEMORY);
        }
        for budget in [&self.address, &self.registrations].into_iter().flatten() {
            budget.limiter.retain_recent();
        }
        for budget in [&self.token, &self.moves].into_iter().flatten() {
            budget.limiter.retain_recent();
        }
    }
}

/// The layer that refuses what is too much, before anything is done for it, and tells how much is left.
pub async fn limit(
    store: web::Data<Store>,
    limits: web::Data<Limits>,
    document: web::Data<Document>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    // As the routes see it, however it was escaped.
    let path = request.match_info().as_str().to_owned();
    if !is_limited(&path) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let asker = limits.asker(&request, &path);
    let mut draws = limits.admit(&asker);
    if let Some(refusal) = draws.refusal() {
        store.metrics().refusals.with_label_values(&[refusal.name]).inc();
        let mut response = refused(refusal);
        draws.tell(response.headers_mut());
        // Not by `into_response`, which forgets the problem that the outermost layer writes the body from.
        return Ok(ServiceResponse::new(request.into_parts().0, response));
    }
    let mut response = next.call(request).await?.map_into_boxed_body();
    let status = response.status();
    let proven = (status.is_success() || status == StatusCode::NOT_MODIFIED)
        && document.takes_token(response.request().method(), &path);
    limits.settle(&asker, status, proven, &mut draws);
    draws.tell(response.headers_mut());
    Ok(response)
}

fn refused(draw: &Draw) -> HttpResponse {
    let Draw { name, seconds, .. } = draw;
    let detail = format!("the budget `{name}` is used up; try again in {seconds} s");
    let mut response = HttpResponse::from_error(Problem::new(Code::RateLimited, detail));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
    response
}
