//! How fast the server is against what its database allows, on one machine and in one run: `make bench-load`.
//!
//! Starts a PostgreSQL of its own with its default settings and full durability, and a server on it as a process of its own; plays
//! real games over HTTP with many players at once; and has pgbench carry out the same two statements, with the same bytes, on
//! the same cluster in turn with it. The ratio of the two is the figure: it holds on any machine. Prints tables in Markdown.
//!
//! The players know the deal, because they may look into the database before they begin; so each request of the first table is
//! a move, and choosing it costs next to nothing. The second table has what a client that knows nothing asks for each move.

mod bare;
mod client;
mod limit;
mod measure;
mod players;
mod relay;
mod report;

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use sqlx::PgPool;
use tavola::embedded::{Durability, Embedded};

/// Connections of the server and of the bare handler to the database, the server's default.
const CONNECTIONS: u32 = 16;

/// Seconds of what is done before it is measured.
const WARM_UP: u64 = 5;

/// Load a server and its database alike.
#[derive(Debug, Parser)]
struct Options {
    /// How many players, or clients of pgbench, ask at once
    #[arg(long, value_delimiter = ',', default_value = "16,64")]
    clients: Vec<usize>,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// How often the server and its limit are measured in turn
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Games that are being played
    #[arg(long, default_value_t = 10_000)]
    games: usize,
    /// Event streams that are open while the memory is measured
    #[arg(long, default_value_t = 1_000)]
    streams: usize,
    /// What to measure
    #[arg(long, value_delimiter = ',', default_value = "moves,mix,conditional,streams,start")]
    only: Vec<String>,
    /// An empty folder, on the disk that is meant, for the database
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The server's binary
    #[arg(long, default_value = env!("CARGO_BIN_EXE_tavola"))]
    server: PathBuf,
    /// Be the bare handler of a comparison on this address
    #[arg(long, hide = true)]
    bare: Option<SocketAddr>,
    /// The database of the bare handler
    #[arg(long, hide = true, default_value = "")]
    database: String,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// A process that is ended with its value.
struct Process(Child);

impl Process {
    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What all measurements use.
struct Bench {
    cluster: Embedded,
    pool: PgPool,
    options: Options,
}

impl Bench {
    fn url(&self) -> String {
        self.cluster.url("tavola")
    }

    /// Starts a server without limits on the database of that URL; answers how long it took to be ready.
    async fn serve(&self, database: &str) -> anyhow::Result<(Process, SocketAddr, Duration)> {
        let addr = free_address()?;
        let began = Instant::now();
        let mut command = Command::new(&self.options.server);
        command.env("DATABASE_URL", database).env("TAVOLA_ADDR", addr.to_string());
        for limit in ["TOKEN", "ADDRESS", "MOVES", "REGISTRATIONS"] {
            command.env(format!("TAVOLA_LIMIT_{limit}"), "0");
        }
        // A line for each request: written as anywhere, and not in the way of the figures.
        let log = File::create(std::env::temp_dir().join("tavola-load-server.log"))?;
        command.arg("serve").stdout(Stdio::null()).stderr(log);
        let server = Process(command.spawn().context("the server cannot be run")?);
        client::wait_until_ready(addr).await?;
        Ok((server, addr, began.elapsed()))
    }

    /// Starts the bare handler.
    async fn serve_bare(&self) -> anyhow::Result<(Process, SocketAddr)> {
        let addr = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--bare", &addr.to_string(), "--database", &self.url()]);
        let server = Process(command.spawn().context("the bare handler cannot be run")?);
        client::wait_until_ready(addr).await?;
        Ok((server, addr))
    }

    fn measures(&self, name: &str) -> bool {
        self.options.only.iter().any(|only| only == name)
    }
}

fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(addr) = options.bare {
        return bare::serve(addr, &options.database);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(options))
}

async fn run(options: Options) -> anyhow::Result<()> {
    let dir =
        options.dir.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("tavola-load-{}", std::process::id())));
    let cluster = Embedded::start(&dir, None, Durability::Full)?;
    cluster.ensure_database("tavola").await?;
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(4).connect(&cluster.url("tavola")).await?;
    let bench = Bench { cluster, pool, options };
    let measured = measure(&bench).await;
    bench.pool.close().await;
    bench.cluster.stop()?;
    tavola::embedded::remove(&dir)?;
    measured
}

async fn measure(bench: &Bench) -> anyhow::Result<()> {
    let options = &bench.options;
    let url = bench.url();
    let (server, addr, _) = bench.serve(&url).await?;
    let began = Instant::now();
    let most = options.clients.iter().copied().max().context("--clients is empty")?;
    let mut tables = players::set_up(addr, &bench.pool, &url, options.games, most).await?;
    eprintln!("{} games set up in {:.0?}", tables.len(), began.elapsed());
    if bench.measures("moves") {
        // So that there are moves to repeat.
        tables = players::play(addr, tables, most, WARM_UP, false).await?.1;
        let limit = limit::Limit::prepare(&bench.pool, &url, options.games).await?;
        // The first change of a page after a checkpoint writes all of it into the WAL: here, and not while it is measured.
        sqlx::query("checkpoint").execute(&bench.pool).await?;
        tables = players::play(addr, tables, most, WARM_UP, false).await?.1;
        limit.run(most, WARM_UP)?;
        let mut rows = Vec::new();
        for &clients in &options.clients {
            for round in 0..options.rounds {
                // Each goes first as often as the other.
                for turn in 0..2 {
                    let row = if (round + turn).is_multiple_of(2) {
                        let watch = measure::Watch::begin(&bench.pool, Some(server.id())).await?;
                        let (played, rest) = players::play(addr, tables, clients, options.seconds, false).await?;
                        tables = rest;
                        report::Row::new("server", clients, watch.end(&bench.pool).await?, played.moves)
                    } else {
                        let watch = measure::Watch::begin(&bench.pool, None).await?;
                        let latencies = limit.run(clients, options.seconds)?;
                        report::Row::new("pgbench", clients, watch.end(&bench.pool).await?, latencies)
                    };
                    eprintln!("{row}");
                    rows.push(row);
                }
            }
        }
        report::moves(&rows);
        let (trips, others) = relay::round_trips(bench, &mut tables).await?;
        println!(
            "Round trips to the database a move: {trips:.2}; what the server asks of itself, {others:.1} a second, is not in it.\n"
        );
    }
    if bench.measures("mix") {
        for &clients in &options.clients {
            let watch = measure::Watch::begin(&bench.pool, Some(server.id())).await?;
            let (played, rest) = players::play(addr, tables, clients, options.seconds, true).await?;
            tables = rest;
            let used = watch.end(&bench.pool).await?;
            report::mix(clients, &used, played);
        }
    }
    if bench.measures("conditional") {
        let (bare, bare_addr) = bench.serve_bare().await?;
        let mut rows = Vec::new();
        for round in 0..options.rounds {
            for turn in 0..2 {
                let (name, id, to) = match (round + turn).is_multiple_of(2) {
                    true => ("server", server.id(), addr),
                    false => ("bare handler", bare.id(), bare_addr),
                };
                let watch = measure::Watch::begin(&bench.pool, Some(id)).await?;
                let latencies = players::ask_conditionally(to, &tables, options.clients[0], options.seconds).await?;
                let row = report::Row::new(name, options.clients[0], watch.end(&bench.pool).await?, latencies);
                eprintln!("{row}");
                rows.push(row);
            }
        }
        report::conditional(&rows);
    }
    if bench.measures("streams") {
        let before = measure::memory(server.id())?;
        let streams = players::follow(addr, &tables, options.streams).await?;
        let (played, rest) = players::play(addr, tables, options.clients[0], WARM_UP, false).await?;
        tables = rest;
        ensure!(played.moves.count > 0, "nothing was played while the streams were open");
        let (now, most) = measure::memory(server.id())?;
        println!(
            "Memory of the server: {:.1} MB before, with {} games being played and {} event streams {now:.1} MB, at most {most:.1} MB.\n",
            before.0,
            tables.len(),
            streams.len()
        );
    }
    drop(server);
    if bench.measures("start") {
        let mut times = Vec::new();
        for _ in 0..11 {
            let (server, _, time) = bench.serve(&url).await?;
            times.push((time, measure::memory(server.id())?.0));
        }
        times.sort_by_key(|(time, _)| *time);
        println!(
            "Start to ready with a database at hand: median {:.0?}, longest {:.0?}; {:.1} MB of memory then.",
            times[times.len() / 2].0,
            times[times.len() - 1].0,
            times[0].1
        );
    }
    Ok(())
}
