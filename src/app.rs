//! The composition root: database, server, workers, and their orderly end. Nobody imports it but `main` and tests.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::{HttpServer, web};
use anyhow::Context;
use sqlx::postgres::PgConnectOptions;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::{Seeding, Settings};
use crate::embedded::{Durability, Embedded};
use crate::http::{self, Document, Limits};
use crate::seeding;
use crate::store::Store;
use crate::webhook::Targets;
use crate::workers::sending::{Sender, Timeouts};
use crate::workers::{accounts, clocks, feed, pruning, sampling, statistics, webhooks};

/// The database of the private cluster.
const DATABASE: &str = "tavola";

/// How long connections of clients have to end when the server stops, in seconds; requests have a little less. Everything
/// together takes less than the ten seconds after which those who run servers (Docker, say) kill them.
const GRACE: u64 = 7;

/// How long deliveries to webhooks have to finish, from the same moment. What is given up then is sent again by another server,
/// or by this one when it runs again.
const DELIVERY_GRACE: Duration = Duration::from_millis(8_500);

/// How long connections to the database have to end. One that hangs would never.
const CLOSING: Duration = Duration::from_secs(1);

/// How long what is queued for webhooks is gathered before it is claimed together.
const GATHER: Duration = Duration::from_millis(20);

/// Connections to the database for what goes to webhooks. Each is needed for moments only.
const DELIVERING: u32 = 2;

/// How often the private cluster is looked after.
const WATCH: Duration = Duration::from_secs(1);

/// A server that is ready to run.
pub struct Application {
    server: Server,
    addr: SocketAddr,
}

impl Application {
    /// Puts the API on a listener; with port 0 the address tells which port it got. `targets` are the addresses that webhooks
    /// may have, `workers` threads.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub fn build(
        store: Store,
        limits: Limits,
        targets: Targets,
        listener: TcpListener,
        workers: Option<usize>,
    ) -> std::io::Result<Self> {
        let addr = listener.local_addr()?;
        let document = web::Data::new(Document::new());
        let (limits, targets) = (web::Data::new(limits), web::Data::new(targets));
        let threads = threads(workers);
        let started = Arc::new(AtomicUsize::new(0));
        // Once for each thread.
        let app = move || {
            let store = web::Data::new(store.for_thread(started.fetch_add(1, Ordering::Relaxed)));
            http::app(store, document.clone(), limits.clone(), targets.clone())
        };
        let server = HttpServer::new(app)
            .workers(threads)
            // A compressed answer goes out in two parts. Without this the second waits until the client has acknowledged the first, which it
            // delays by 40 ms as long as it has nothing else to send.
            .tcp_nodelay(true)
            .listen(listener)?
            .shutdown_timeout(GRACE)
            // Signals are for `serve`, which has more to stop than this.
            .disable_signals();
        Ok(Self { server: server.run(), addr })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A handle to stop it with.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// The server failed.
    pub async fn run(self) -> std::io::Result<()> {
        self.server.await
    }
}

/// How many threads serve requests.
fn threads(workers: Option<usize>) -> usize {
    workers.or_else(|| available_parallelism().ok().map(NonZero::get)).unwrap_or(1)
}

/// The database that a server uses, and the private cluster if it is that.
struct Database {
    store: Store,
    cluster: Option<Embedded>,
}

impl Database {
    /// Opens it; `stop` ends the wait for what may take long, a migration that another server holds up, say.
    async fn open(settings: &Settings, stop: impl Future<Output = ()>) -> anyhow::Result<Self> {
        let (url, cluster) = match &settings.database_url {
            Some(url) => (url.clone(), None),
            None => {
                let (dir, bin) = (settings.data_dir.clone(), settings.pg_bin.clone());
                let start = move || Embedded::start(&dir, bin.as_deref(), Durability::Full);
                let cluster = tokio::task::spawn_blocking(start).await??;
                (cluster.url(DATABASE), Some(cluster))
            }
        };
        let options: PgConnectOptions = url.parse().context("DATABASE_URL cannot be read")?;
        let threads = threads(settings.workers.map(NonZero::get));
        let store = Store::open(options, settings.db_connections).spread(threads);
        let database = Self { store, cluster };
        let prepared = tokio::select! {
            prepared = database.prepare() => prepared,
            () = stop => Err(anyhow::anyhow!("stopped before the start was done")),
        };
        if let Err(error) = prepared {
            database.close().await;
            return Err(error);
        }
        Ok(database)
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        if let Some(cluster) = &self.cluster {
            cluster.ensure_database(DATABASE).await?;
        } else {
            self.store.check_sessions().await?;
        }
        self.store.migrate().await.context("the database cannot be brought up to date")?;
        // Before anybody can be late: time in which no server ran is given back.
        self.store.beat().await.context("the clocks cannot be read")?;
        Ok(())
    }

    async fn close(self) {
        if tokio::time::timeout(CLOSING, self.store.close()).await.is_err() {
            tracing::warn!("the database does not answer: its connections are dropped");
        }
        if let Some(cluster) = self.cluster {
            let stopped = tokio::task::spawn_blocking(move || cluster.stop()).await;
            match stopped {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "the private cluster did not stop cleanly"),
                Err(error) => tracing::error!(%error, "the private cluster could not be stopped"),
            }
        }
    }
}

/// What tells a server to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Waits for the next one.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Serves until SIGINT or SIGTERM; then lets requests in flight finish and stops everything that it has started.
///
/// # Errors
/// The database cannot be opened, or the address is in use.
pub async fn serve(settings: &Settings) -> anyhow::Result<()> {
    // From the beginning, so that a signal during the start is not the end of everything at once.
    let mut signals =
        Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? };
    let mut database = Database::open(settings, signals.stop()).await?;
    let served = async {
        let listener =
            TcpListener::bind(settings.addr).with_context(|| format!("cannot listen on {}", settings.addr))?;
        let workers = settings.workers.map(|threads| threads.get());
        let targets = Targets::new(settings.allow_private_webhooks);
        let sender = Sender::new(targets.clone(), Timeouts::default())?;
        let limits = Limits::new(&settings.limits);
        let application = Application::build(database.store.clone(), limits, targets, listener, workers)?;
        let (addr, handle) = (application.addr(), application.handle());
        let metrics = settings.metrics_addr.map(|addr| measure(database.store.clone(), addr)).transpose()?;
        let workers = tokio::spawn(work(database.store.clone(), metrics.is_some()));
        let (working, stopped) = oneshot::channel();
        let mut delivering = tokio::spawn(deliver(database.store.apart(DELIVERING), sender, stopped));
        let store = database.store.clone();
        let (say_when, when) = oneshot::channel();
        let stop = tokio::spawn(async move {
            signals.stop().await;
            tracing::info!("stopping");
            // Nobody listens only if the server has failed by itself.
            let _ = say_when.send(Instant::now());
            drop(working);
            // They would last as long as their readers want.
            store.close_streams();
            handle.stop(true).await;
        });
        announce(addr, settings.metrics_addr);
        let now = application.handle();
        let served = tokio::select! {
            served = application.run() => served.map_err(anyhow::Error::from),
            () = death(database.cluster.as_mut()) => {
                now.stop(false).await;
                Err(anyhow::anyhow!("the private PostgreSQL has ended, see postgres.log in the data directory"))
            }
        };
        stop.abort();
        workers.abort();
        let told = when.await.unwrap_or_else(|_| Instant::now());
        if tokio::time::timeout_at(told + DELIVERY_GRACE, &mut delivering).await.is_err() {
            delivering.abort();
            tracing::warn!("deliveries to webhooks were broken off; they are tried again");
        }
        if let Some(metrics) = metrics {
            metrics.stop(false).await;
        }
        served
    }
    .await;
    database.close().await;
    served
}

/// Comes to its end when the private cluster does: whoever runs the server can then start it anew, which recovers. Going on
/// would be to answer that the database is away, for ever.
async fn death(cluster: Option<&mut Embedded>) {
    let Some(cluster) = cluster else { return std::future::pending().await };
    while !cluster.has_died() {
        tokio::time::sleep(WATCH).await;
    }
}

/// Brings the database up to date.
///
/// # Errors
/// The database cannot be opened or brought up to date.
pub async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    Database::open(settings, std::future::pending()).await?.close().await;
    Ok(())
}

/// Fills a database with games of the past.
///
/// # Errors
/// The database cannot be opened or brought up to date, or the games cannot be written.
pub async fn seed_history(seeding: &Seeding) -> anyhow::Result<()> {
    let database = Database::open(&seeding.settings, std::future::pending()).await?;
    let seeded = seeding::run(&database.store, seeding).await;
    database.close().await;
    Ok(seeded?)
}

/// Counts all finished games anew for the statistics and says how many there are.
///
/// # Errors
/// The database cannot be opened, brought up to date or counted; the statistics are as they were then.
pub async fn rebuild_stats(settings: &Settings) -> anyhow::Result<()> {
    let database = Database::open(settings, std::future::pending()).await?;
    let rebuilt = database.store.rebuild_statistics().await.context("the statistics cannot be rebuilt");
    database.close().await;
    println!("{} games counted", rebuilt?);
    Ok(())
}

/// Tells the person who started the server where everything is.
fn announce(addr: SocketAddr, metrics: Option<SocketAddr>) {
    println!("Tavola is ready.");
    println!("  API            http://{addr}/v1");
    println!("  documentation  http://{addr}/docs/");
    if let Some(addr) = metrics {
        println!("  metrics        http://{addr}/metrics");
    }
    println!("  first game     see README.md; for instance:");
    println!(
        "    curl -s -X POST http://{addr}/v1/players -H 'Content-Type: application/json' -d '{{\"name\": \"Ada\"}}'"
    );
    println!("Stop with Ctrl-C.");
}

/// Tells metrics on an address of their own.
fn measure(store: Store, addr: SocketAddr) -> anyhow::Result<ServerHandle> {
    let listener = TcpListener::bind(addr).with_context(|| format!("cannot tell metrics on {addr}"))?;
    let server = http::metrics_server(store, listener)?;
    let handle = server.handle();
    tokio::spawn(server);
    Ok(handle)
}

/// Everything that servers do of themselves, for ever; `measured`: somebody wants to know what is in the database.
async fn work(store: Store, measured: bool) {
    let sample = async {
        if measured {
            sample(&store).await;
        }
    };
    tokio::join!(attend(&store), feed::run(&store), prune(&store), count(&store), settle(&store), sample);
}

/// Takes samples for the metrics.
async fn sample(store: &Store) {
    loop {
        let pause = sampling::run_once(store).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "no sample could be taken for the metrics");
            sampling::INTERVAL
        });
        tokio::time::sleep(pause).await;
    }
}

/// Keeps the clocks.
async fn attend(store: &Store) {
    let mut interval = tokio::time::interval(clocks::INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let done = tokio::select! {
            _ = interval.tick() => clocks::run_once(store).await,
            () = store.something_due() => clocks::attend_all(store).await,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "the clocks could not be looked after");
        }
    }
}

/// Settles deleted accounts.
async fn settle(store: &Store) {
    let mut interval = tokio::time::interval(accounts::INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = accounts::run_once(store).await {
            tracing::warn!(%error, "deleted accounts could not be settled");
        }
    }
}

/// Delivers to webhooks until `stopped` comes to its end; then what is under way is finished.
async fn deliver(store: Store, sender: Sender, mut stopped: oneshot::Receiver<Infallible>) {
    let mut worker = webhooks::Worker::new(store.clone(), sender);
    loop {
        if let Err(error) = worker.run_once().await {
            tracing::warn!(%error, "deliveries to webhooks could not be claimed");
        }
        tokio::select! {
            _ = &mut stopped => break,
            // There is room again, and its webhook may have more.
            () = worker.one_done() => {}
            // Moves follow each other fast: those of some milliseconds are looked for together.
            () = store.something_to_deliver() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep(webhooks::INTERVAL) => {}
        }
    }
    worker.settle().await;
    store.close().await;
}

/// Keeps the statistics.
async fn count(store: &Store) {
    let mut interval = tokio::time::interval(statistics::INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = statistics::run_once(store).await {
            tracing::warn!(%error, "finished games could not be counted");
        }
    }
}

async fn prune(store: &Store) {
    let mut interval = tokio::time::interval(pruning::INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first tick comes at once; a server that has just started has better things to do.
    interval.tick().await;
    loop {
        interval.tick().await;
        match pruning::run_once(store).await {
            Ok(pruned) => tracing::debug!(pruned, "what is kept for a time only was pruned"),
            Err(error) => tracing::warn!(%error, "what is kept for a time only could not be pruned"),
        }
    }
}
