//! Streams of events: server-sent events or NDJSON, heartbeats, and what becomes of slow readers.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use actix_web::http::header::{self, ContentEncoding};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use prometheus::IntGauge;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::dto::EventOut;
use super::problem::Problem;
use crate::game::EventKind;
use crate::metrics::Metrics;
use crate::store::{Store, Watch};

/// How often a stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often a stream looks by itself, in case it was not woken, and whether its reader may still read.
const LOOK: Duration = Duration::from_secs(5);

/// How long a reader may take to read anything before it is cut off. It can resume from the last event that it has.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many events wait for a reader at most; more are only read from the database once there is room.
const ROOM: usize = 16;

/// In which form somebody wants events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One page, as other lists.
    Page,
    /// `text/event-stream`.
    ServerSent,
    /// `application/x-ndjson`: one JSON object a line, empty lines as heartbeats.
    Lines,
}

impl Form {
    /// What `Accept` asks for; a page unless it names one of the streams.
    pub fn of(request: &HttpRequest) -> Self {
        let accepted = request.headers().get_all(header::ACCEPT).filter_map(|value| value.to_str().ok());
        for kind in accepted.flat_map(|value| value.split(',')) {
            match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
                "text/event-stream" => return Form::ServerSent,
                "application/x-ndjson" => return Form::Lines,
                "application/json" => return Form::Page,
                _ => {}
            }
        }
        Form::Page
    }

    /// An event as the stream has it.
    pub fn frame(self, event: &EventOut) -> String {
        let json = serde_json::to_string(event).unwrap_or_default();
        match self {
            Form::ServerSent => format!("id: {}\nevent: {}\ndata: {json}\n\n", event.id, event.r#type.as_str()),
            Form::Page | Form::Lines => json + "\n",
        }
    }

    fn heartbeat(self) -> &'static str {
        match self {
            Form::ServerSent => ": heartbeat\n\n",
            Form::Page | Form::Lines => "\n",
        }
    }
}

/// Where a stream's events come from.
pub trait Source: 'static {
    /// The next events after those before; none if there are none yet. The stream asks again until there are none.
    ///
    /// # Errors
    /// The reader may not read any more, or the database fails.
    fn next(&mut self) -> impl Future<Output = Result<Vec<EventOut>, Problem>>;
}

/// Answers with a stream. Its first events are read before the answer begins, so that what is refused is refused by its status.
///
/// # Errors
/// The first events cannot be read.
pub async fn answer(store: &Store, form: Form, watch: Watch, source: impl Source) -> Result<HttpResponse, Problem> {
    // Behind a pointer: each function that it is handed on to would have room for it.
    let mut source = Box::new(source);
    let first = source.next().await?;
    let (sender, receiver) = mpsc::channel(ROOM);
    let (closing, store) = (store.closing(), store.clone());
    let open = Open::new(&store);
    actix_web::rt::spawn(async move {
        let _open = open;
        let run = run(form, watch, source, first, &sender, &store);
        tokio::select! {
            () = run => {}
            // The reader has gone.
            () = sender.closed() => {}
            // The server stops: the reader resumes at another one.
            () = closing => {}
        }
    });
    let body = stream::unfold(receiver, |mut receiver| async {
        let bytes: web::Bytes = receiver.recv().await?;
        Some((Ok::<_, Infallible>(bytes), receiver))
    });
    let kind = if form == Form::ServerSent { "text/event-stream" } else { "application/x-ndjson" };
    Ok(HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::VARY, "Accept, Authorization"))
        // Compression would hold events back until there is enough to compress, and some proxies would too.
        .insert_header(ContentEncoding::Identity)
        .insert_header(("x-accel-buffering", "no"))
        .content_type(kind)
        .streaming(body))
}

async fn run(
    form: Form,
    mut watch: Watch,
    mut source: Box<impl Source>,
    mut events: Vec<EventOut>,
    sender: &mpsc::Sender<web::Bytes>,
    store: &Store,
) {
    let metrics = store.metrics();
    let start = Instant::now();
    let mut heartbeat = interval_at(start + HEARTBEAT, HEARTBEAT);
    let mut look = interval_at(start + LOOK, LOOK);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let none_left = events.is_empty();
        for event in &events {
            if event.r#type == EventKind::Resync {
                metrics.resyncs.inc();
            }
            if !send(sender, form.frame(event), metrics).await {
                return;
            }
        }
        events = Vec::new();
        let wait = async {
            if none_left {
                tokio::select! {
                    () = watch.woken() => {}
                    _ = look.tick() => {}
                }
            }
            store.turn_to_read().await
        };
        let mut wait = pin!(wait);
        let turn = loop {
            tokio::select! {
                turn = &mut wait => break turn,
                _ = heartbeat.tick() => {
                    if !send(sender, form.heartbeat().to_owned(), metrics).await {
                        return;
                    }
                }
            }
        };
        // Apart, so that a stream which waits does not keep the room that reading takes.
        let next = Box::pin(source.next()).await;
        drop(turn);
        match next {
            Ok(next) => events = next,
            // Passes: the stream looks again by itself.
            Err(problem) if problem.code == super::Code::Unavailable => {}
            // The token is revoked, the game is private now: nothing more is for this reader.
            Err(_) => return,
        }
    }
}

/// Hands something on to the reader; answers whether they may get more.
async fn send(sender: &mpsc::Sender<web::Bytes>, text: String, metrics: &Metrics) -> bool {
    let sent = sender.send_timeout(text.into(), PATIENCE).await;
    if matches!(sent, Err(SendTimeoutError::Timeout(_))) {
        metrics.cut_off.inc();
    }
    sent.is_ok()
}

/// A stream that counts as open as long as this lives.
struct Open(IntGauge);

impl Open {
    fn new(store: &Store) -> Self {
        let metrics = store.metrics();
        metrics.streams_opened.inc();
        metrics.streams.inc();
        Self(metrics.streams.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
