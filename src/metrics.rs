//! What a server counts of itself, for whoever operates it: `GET /metrics` of the metrics listener writes it out, and
//! docs/operating.md tells of each. Labels are words of the server's own, so there are only so many series; no player, no
//! game, no token and nothing that a client has sent is ever one.
//!
//! Counting costs some 100 ns and no memory: series are atomics that are there from the start, or from the first time. All
//! counts are this process's own, but those of [`Sample`], which are the whole database's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use prometheus::core::Collector;
use prometheus::{
    Encoder, Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::game::{Change, EventKind, Game, SeatStatus};
use crate::rulesets::EndReason;
use crate::rulesets::registry::RulesetId;

/// The form of what [`Metrics::write`] writes.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// Upper bounds of the durations of requests, in seconds. A move takes some milliseconds, a request 30 s at most.
const DURATIONS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// All that is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// How long requests took until their answer began, in seconds, by method, route and class of status.
    pub requests: HistogramVec,
    /// Errors that were answered, by code.
    pub problems: IntCounterVec,
    /// Requests that were refused since a budget was used up, by its name.
    pub refusals: IntCounterVec,
    moves: IntCounterVec,
    created: IntCounterVec,
    ended: IntCounterVec,
    timeouts: IntCounterVec,
    /// How long no server ran, in seconds, as far as clocks were put off for it.
    pub credited: prometheus::Counter,
    /// Attempts to deliver to webhooks, by what came of them.
    pub attempts: IntCounterVec,
    /// Webhooks that were switched off since they failed for long, or wanted nothing more.
    pub disabled: IntCounter,
    /// Streams of events that are open.
    pub streams: IntGauge,
    /// Streams of events that were opened.
    pub streams_opened: IntCounter,
    /// Streams whose reader's place in the log was not known (any more).
    pub resyncs: IntCounter,
    /// Streams that were ended since their reader did not read.
    pub cut_off: IntCounter,
    connections: IntGaugeVec,
    most_connections: IntGauge,
    waiting: IntGauge,
    up: IntGauge,
    acquired: Gauge,
    games: IntGaugeVec,
    clock_delay: Gauge,
    webhook_delay: Gauge,
    memory: IntGauge,
    cpu: prometheus::Counter,
    files: IntGauge,
}

/// What is looked up in the database now and then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// How long it took until a connection was to be had.
    pub acquired: Duration,
    /// How many games are open or active, by ruleset and status.
    pub games: Vec<(RulesetId, String, i64)>,
    /// How long the game that has waited longest for the server to act has waited, in seconds; 0 if none does.
    pub clock_delay: f64,
    /// How long the delivery to a webhook that has been due longest has been so, in seconds; 0 if none is.
    pub webhook_delay: f64,
}

/// The pool of connections as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    pub idle: usize,
    pub in_use: usize,
    /// How many requests about games wait for one.
    pub waiting: usize,
    /// How many there may be.
    pub most: usize,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let kept = &registry;
        let opts = HistogramOpts::new(
            "tavola_http_request_duration_seconds",
            "Time from a request's head to that of its answer, by method, route and class of status",
        );
        let labels = ["method", "route", "status"];
        let requests = keep(kept, HistogramVec::new(opts.buckets(DURATIONS.to_vec()), &labels));
        let problems = counters(kept, "http_problems", "Errors that were answered, by code", &["code"]);
        let refusals = counters(kept, "rate_limited", "Requests that were refused, by budget", &["budget"]);
        let moves = counters(kept, "moves", "Moves, by players and by bots for those who left", &["ruleset", "by"]);
        let created = counters(kept, "games_created", "Games that were created", &["ruleset"]);
        let ended = counters(kept, "games_ended", "Games that ended, by the reason", &["ruleset", "reason"]);
        let timeouts = counters(kept, "timeouts", "Players who overstepped the clock", &["ruleset"]);
        let attempts = counters(kept, "webhook_attempts", "Attempts to deliver to webhooks", &["outcome"]);
        let reasons = [EndReason::Completed, EndReason::TurnLimit, EndReason::Resignation, EndReason::Timeout];
        // What has not happened yet has happened 0 times: a rate can be made of that, of a series that is not there it cannot.
        for slug in RulesetId::ALL.iter().map(|ruleset| ruleset.meta().slug) {
            ["player", "bot"].iter().for_each(|by| drop(moves.with_label_values(&[slug, by])));
            created.with_label_values(&[slug]);
            for reason in reasons.into_iter().chain([EndReason::Aborted]) {
                ended.with_label_values(&[slug, reason.as_str()]);
            }
            timeouts.with_label_values(&[slug]);
        }
        ["delivered", "failed", "gone"].iter().for_each(|outcome| drop(attempts.with_label_values(&[outcome])));
        let start = Gauge::new("process_start_time_seconds", "When the process started, since 1970");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        keep(kept, start).set(now.as_secs_f64());
        let build = Opts::new("tavola_build_info", "The server's version; always 1");
        let build = keep(kept, IntGaugeVec::new(build, &["version"]));
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let credited = prometheus::Counter::new(
            "tavola_clocks_credited_seconds_total",
            "Time in which no server ran, by which clocks were put off",
        );
        let cpu = prometheus::Counter::new("process_cpu_seconds_total", "Processor time of the process");
        let connections = Opts::new("tavola_database_connections", "Connections for requests");
        let games = Opts::new("tavola_games", "Games that are open or active, in the whole database");
        Self {
            requests,
            problems,
            refusals,
            moves,
            created,
            ended,
            timeouts,
            credited: keep(kept, credited),
            attempts,
            disabled: keep(
                kept,
                IntCounter::new("tavola_webhooks_disabled_total", "Webhooks that were switched off for their failures"),
            ),
            streams: whole(kept, "tavola_streams", "Streams of events that are open"),
            streams_opened: keep(
                kept,
                IntCounter::new("tavola_streams_opened_total", "Streams of events that were opened"),
            ),
            resyncs: keep(
                kept,
                IntCounter::new(
                    "tavola_stream_resyncs_total",
                    "Streams that began anew: their reader's place was not known",
                ),
            ),
            cut_off: keep(
                kept,
                IntCounter::new("tavola_streams_cut_off_total", "Streams that were ended: their reader did not read"),
            ),
            connections: keep(kept, IntGaugeVec::new(connections, &["state"])),
            most_connections: whole(kept, "tavola_database_connections_max", "Most connections for requests"),
            waiting: whole(kept, "tavola_database_waiting", "Requests about games that wait for a connection"),
            up: whole(kept, "tavola_database_up", "Whether the database answered when it was last asked"),
            acquired: seconds(kept, "tavola_database_acquire_seconds", "How long a connection was waited for then"),
            games: keep(kept, IntGaugeVec::new(games, &["ruleset", "status"])),
            clock_delay: seconds(kept, "tavola_clock_delay_seconds", "How late the server is in attending to a game"),
            webhook_delay: seconds(kept, "tavola_webhook_delay_seconds", "How late the latest due delivery is"),
            memory: whole(kept, "process_resident_memory_bytes", "Memory of the process"),
            cpu: keep(kept, cpu),
            files: whole(kept, "process_open_fds", "Open files and connections of the process"),
            registry,
        }
    }
}

impl Metrics {
    /// Counts what has happened to a game; once, when it is committed.
    pub fn changed(&self, game: &Game, change: &Change) {
        let slug = game.ruleset.meta().slug;
        if let Some(entry) = &change.entry {
            let left = |seat| game.seats.iter().any(|taken| taken.seat == seat && taken.status != SeatStatus::Playing);
            self.moves.with_label_values(&[slug, if left(entry.seat) { "bot" } else { "player" }]).inc();
        }
        for happening in &change.happenings {
            match happening.kind {
                EventKind::GameCreated => self.created.with_label_values(&[slug]).inc(),
                EventKind::PlayerTimedOut => self.timeouts.with_label_values(&[slug]).inc(),
                EventKind::GameFinished | EventKind::GameAborted => {
                    // One that never started has no outcome.
                    let reason = game.outcome.as_ref().map_or(EndReason::Aborted, |outcome| outcome.reason);
                    self.ended.with_label_values(&[slug, reason.as_str()]).inc();
                }
                _ => {}
            }
        }
    }

    /// Keeps what was looked up in the database; none if it did not answer.
    pub fn sampled(&self, sample: Option<&Sample>) {
        self.up.set(sample.is_some().into());
        let Some(sample) = sample else { return };
        self.acquired.set(sample.acquired.as_secs_f64());
        for (ruleset, status, count) in &sample.games {
            self.games.with_label_values(&[ruleset.meta().slug, status]).set(*count);
        }
        self.clock_delay.set(sample.clock_delay);
        self.webhook_delay.set(sample.webhook_delay);
    }

    /// Writes everything out, in Prometheus' text format.
    ///
    /// # Errors
    /// A family of metrics is empty or ambiguous: never, as they are made here.
    pub fn write(&self, pool: Pool) -> Result<Vec<u8>, prometheus::Error> {
        self.connections.with_label_values(&["idle"]).set(pool.idle as i64);
        self.connections.with_label_values(&["in_use"]).set(pool.in_use as i64);
        self.most_connections.set(pool.most as i64);
        self.waiting.set(pool.waiting as i64);
        // What the system does not tell stays as it was: 0.
        resident_memory().into_iter().for_each(|bytes| self.memory.set(bytes));
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            self.cpu.inc_by((micros as f64 / 1e6 - self.cpu.get()).max(0.0));
        }
        if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
            // One of them is the folder itself.
            self.files.set(files.count().saturating_sub(1) as i64);
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }
}

/// Keeps a metric under a name and labels that stand here in the source.
fn keep<C: Collector + Clone + 'static>(registry: &Registry, metric: prometheus::Result<C>) -> C {
    let metric = metric.expect("names and labels are words");
    registry.register(Box::new(metric.clone())).expect("no two have one name");
    metric
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    keep(registry, IntCounterVec::new(Opts::new(format!("tavola_{name}_total"), help), labels))
}

fn whole(registry: &Registry, name: &str, help: &str) -> IntGauge {
    keep(registry, IntGauge::new(name, help))
}

fn seconds(registry: &Registry, name: &str, help: &str) -> Gauge {
    keep(registry, Gauge::new(name, help))
}

/// The memory of this process in bytes, where there is a `/proc`.
fn resident_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().trim_end_matches("kB").trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}
