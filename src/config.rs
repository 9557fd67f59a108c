//! Settings, checked once at the start; nothing else reads the environment.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::{Map, Value};

use crate::rulesets::registry::RulesetId;

/// A server for card games played turn by turn.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What `serve`, the default command, takes.
    #[command(flatten)]
    pub serve: Settings,
}

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API (the default)
    Serve(Settings),
    /// Bring the database's schema up to date and stop
    Migrate(Settings),
    /// Count all finished games anew for the statistics and stop
    ///
    /// Servers of the same database can go on: until it is done they answer with the old statistics, and games that finish
    /// meanwhile are counted afterwards.
    RebuildStats(Settings),
    /// Print the OpenAPI document
    Openapi,
    /// Check records of finished games, offline
    ///
    /// A record is what GET /v1/games/{id}/record answers with. Checks commitment, seeds, shuffle, the legality of every move,
    /// outcome and digest. Prints one line for each file; the exit status is 0 if all are good.
    Verify {
        /// Files with one record each
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Play games between random players and print statistics of them
    ///
    /// The same seed gives the same statistics, whatever the number of threads. Only the speed differs: it goes to
    /// standard error, or with --json into the member `speed`.
    Simulate(Simulation),
    /// Fill a database with games of the past, to try out a long history
    ///
    /// The games are played by the engine, by players of random moves who sometimes resign or overstep the clock, and are spread over
    /// two years up to now. Not for a database on which people play. The same seed gives the same games.
    SeedHistory(Seeding),
    /// Compute all ratings anew from the finished rated games, and compare or replace them
    ///
    /// With an export of all rated games (NDJSON of records) everything is computed from the records alone and compared with what
    /// they say, to the last digit. Without one the games of the database are what it is computed from, and what is kept there is
    /// replaced, or with --check only compared. The exit status is 1 if anything differs and stays so.
    RecomputeRatings(Recomputation),
}

/// How long a past is made.
#[derive(Clone, Debug, Args)]
pub struct Seeding {
    /// How many games
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub games: u64,
    /// For how many of them, evenly spread, the moves are written too, which take most of the room
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub logs: u64,
    /// Write the moves of all games
    #[arg(long, conflicts_with = "logs")]
    pub all_logs: bool,
    /// How many players share them
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(200..=10_000_000))]
    pub players: u64,
    /// Decides everything
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub settings: Settings,
}

/// Which ratings are computed anew.
#[derive(Clone, Debug, Args)]
pub struct Recomputation {
    /// Change nothing: print the first differences and fail if there are any
    #[arg(long)]
    pub check: bool,
    /// An export of all rated games; it is only compared
    pub export: Option<PathBuf>,
    /// The PostgreSQL database, if there is no export
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
}

/// Which games are simulated.
#[derive(Clone, Debug, Args)]
pub struct Simulation {
    /// The ruleset to play
    #[arg(value_parser = ruleset_parser())]
    pub ruleset: RulesetId,
    /// How many games
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub games: u64,
    /// How many play; two, or the fewest that the ruleset allows, unless it is said
    #[arg(long, value_name = "N")]
    pub seats: Option<u8>,
    /// Options of the ruleset, those left out by default, as in `{"turn_limit": 50}`
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = json_object)]
    pub options: Map<String, Value>,
    /// Decides every deal and every move
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Threads that play; as many as there are cores unless it is said
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

/// Reads a slug; help and error messages list them all.
fn ruleset_parser() -> impl TypedValueParser<Value = RulesetId> {
    let slugs = RulesetId::ALL.iter().map(|id| id.meta().slug);
    PossibleValuesParser::new(slugs).try_map(|slug| RulesetId::from_slug(&slug).ok_or("no such ruleset"))
}

fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

/// How the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Where the server listens and where its data is.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// The PostgreSQL database to use; without it the server starts a private cluster of its own
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Address and port to listen on
    #[arg(long, env = "TAVOLA_ADDR", default_value = "127.0.0.1:8080")]
    pub addr: SocketAddr,
    /// Address and port to tell metrics on, for Prometheus (GET /metrics); without it there are none
    ///
    /// They are for those who operate the server: do not publish the address.
    #[arg(long, env = "TAVOLA_METRICS_ADDR")]
    pub metrics_addr: Option<SocketAddr>,
    /// Where the private cluster lives
    #[arg(long, env = "TAVOLA_DATA_DIR", default_value = "./data")]
    pub data_dir: PathBuf,
    /// Folder of PostgreSQL's server programs for the private cluster; found by itself where it usually is
    #[arg(long, env = "TAVOLA_PG_BIN")]
    pub pg_bin: Option<PathBuf>,
    /// Most connections to the database for requests; webhooks take two more
    ///
    /// Half of them are for moves and for reading single games, shared out among the threads; the other half is for everything
    /// else.
    #[arg(long, env = "TAVOLA_DB_CONNECTIONS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub db_connections: u32,
    /// Threads that serve requests; as many as there are cores unless it is said
    #[arg(long, env = "TAVOLA_WORKERS")]
    pub workers: Option<std::num::NonZeroUsize>,
    /// Let webhooks have addresses that are not on the public internet (loopback, private, link-local and so on), and plain
    /// http
    ///
    /// For tests and intranets. Every player can then have this machine send requests into its network.
    #[arg(long, env = "TAVOLA_ALLOW_PRIVATE_WEBHOOKS", value_parser = BoolishValueParser::new())]
    pub allow_private_webhooks: bool,
    /// How the log looks
    #[arg(long, env = "TAVOLA_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// What is logged, as in `debug,sqlx=warn`
    // Requests that are no HTTP are nobody's concern but their sender's, who could fill the log with them.
    #[arg(long, env = "TAVOLA_LOG", default_value = "info,sqlx=warn,actix_http=off")]
    pub log: String,
    #[command(flatten)]
    pub limits: LimitSettings,
}

/// How much clients may ask of the server; 0 is no limit.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Rate limits (each process keeps its own; 0 is no limit)")]
pub struct LimitSettings {
    /// Requests a minute with one token, moves aside
    #[arg(long, env = "TAVOLA_LIMIT_TOKEN", value_name = "N", default_value_t = 600)]
    pub limit_token: u32,
    /// Requests a minute from one address (of IPv6: one /64) without a token that is known to be good
    #[arg(long, env = "TAVOLA_LIMIT_ADDRESS", value_name = "N", default_value_t = 300)]
    pub limit_address: u32,
    /// Moves a minute with one token
    #[arg(long, env = "TAVOLA_LIMIT_MOVES", value_name = "N", default_value_t = 1200)]
    pub limit_moves: u32,
    /// Registrations of players an hour from one address, those that fail included
    #[arg(long, env = "TAVOLA_LIMIT_REGISTRATIONS", value_name = "N", default_value_t = 60)]
    pub limit_registrations: u32,
    /// How many proxies of yours stand before the server, each of which appends to X-Forwarded-For the address that asked it;
    /// with 0 the header is not believed
    #[arg(long, env = "TAVOLA_TRUSTED_PROXIES", value_name = "N", default_value_t = 0)]
    pub trusted_proxies: u8,
}

impl LimitSettings {
    /// No limits, no proxies.
    pub const NONE: Self =
        Self { limit_token: 0, limit_address: 0, limit_moves: 0, limit_registrations: 0, trusted_proxies: 0 };
}
