//! Runs a command with a PostgreSQL cluster of its own: `cargo run --bin testdb -- cargo test`.
//!
//! The cluster is made for this run, in memory where there is some, and deleted afterwards; nothing in it survives a
//! crash. The command finds it by two variables: `TEST_ADMIN_URL`, for a superuser who may create databases, and
//! `DATABASE_URL`, an empty database `tavola`. The exit status is the command's.
//!
//! `testdb --migrate DIRECTORY COMMAND` applies the migrations of that directory to `tavola` first. They are read when it
//! runs, not when it is built, so that it serves to check the queries of a source that does not compile yet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::migrate::Migrator;
use sqlx::{Connection, PgConnection};
use tavola::embedded::{self, Durability, Embedded};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// Our directories are called this and the id of the process that made them.
const PREFIX: &str = "tavola-testdb-";
/// Where a file system in memory is, if there is one.
const MEMORY: &str = "/dev/shm";
/// The room to ask of it (KiB): a cluster takes 40 MB and each test's database 8 MB, and containers often have but 64.
const ROOM: u64 = 2 << 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("testdb: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let mut program = words.next();
    let mut migrations = None;
    if program.as_deref() == Some("--migrate".as_ref()) {
        migrations = words.next().map(PathBuf::from);
        program = words.next();
    }
    let Some(program) = program else { bail!("usage: testdb [--migrate DIRECTORY] COMMAND [ARGUMENT]...") };
    let arguments: Vec<OsString> = words.collect();

    // Listened to from here on: an interrupt while the cluster starts must not leave it behind.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;

    let base = base();
    sweep(&base);
    let dir = base.join(format!("{PREFIX}{}", std::process::id()));
    let bin = std::env::var_os("TAVOLA_PG_BIN").filter(|bin| !bin.is_empty()).map(PathBuf::from);
    embedded::remove(&dir)?;
    let outcome = async {
        let cluster = Embedded::start(&dir, bin.as_deref(), Durability::None)?;
        cluster.ensure_database("tavola").await?;
        if let Some(directory) = &migrations {
            migrate(directory, &cluster.url("tavola")).await.context("cannot migrate")?;
        }
        let mut child = Command::new(&program)
            .args(arguments)
            .env("TEST_ADMIN_URL", cluster.url("postgres"))
            .env("DATABASE_URL", cluster.url("tavola"))
            .spawn()
            .with_context(|| format!("cannot run {}", Path::new(&program).display()))?;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                // A terminal has sent it to the command too, which does no harm; others send it to us alone.
                _ = interrupt.recv() => forward(&child, Signal::SIGINT),
                _ = terminate.recv() => forward(&child, Signal::SIGTERM),
            }
        };
        cluster.stop()?;
        anyhow::Ok(status)
    }
    .await;
    embedded::remove(&dir)?;
    Ok(exit_code(outcome?))
}

async fn migrate(directory: &Path, url: &str) -> anyhow::Result<()> {
    let migrator = Migrator::new(directory).await?;
    let mut connection = PgConnection::connect(url).await?;
    migrator.run(&mut connection).await?;
    Ok(connection.close().await?)
}

/// A directory in memory if there is enough of it, else the temporary directory.
fn base() -> PathBuf {
    let roomy = || {
        let answer = std::process::Command::new("df").args(["-Pk", MEMORY]).output().ok()?;
        let text = String::from_utf8(answer.stdout).ok()?;
        text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok().filter(|free: &u64| *free >= ROOM)
    };
    if roomy().is_some() { PathBuf::from(MEMORY) } else { std::env::temp_dir() }
}

/// Deletes what killed runs have left, PostgreSQL included, for memory is dear. Those of other users are not ours to
/// delete, and one that cannot be deleted hurts nobody: errors are ignored.
fn sweep(base: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|id| id.parse().ok());
        if maker.is_some_and(|id: i32| id > 0 && kill(Pid::from_raw(id), None).is_err()) {
            let _ = embedded::remove(&entry.path());
        }
    }
}

fn forward(child: &Child, signal: Signal) {
    if let Some(id) = child.id() {
        // It fails only if the command has ended meanwhile.
        let _ = kill(Pid::from_raw(id.cast_signed()), signal);
    }
}

/// The command's exit code; for one that was killed 128 and the signal's number, as shells have it.
fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
