//! The private PostgreSQL cluster: used when no `DATABASE_URL` is given, and for tests.
//!
//! PostgreSQL's own server programs, which have to be installed, run as a child process on a directory of ours. The
//! cluster listens on a Unix socket only, in a directory that only the account it runs as may enter; there is no port
//! to clash and no password to keep. Text is compared by code point (locale C): what is to ignore case has to be folded
//! before it gets here.
//!
//! Whatever is killed, the next start recovers: a half-made cluster is never taken for one, a PostgreSQL left without
//! its server is ended first, and a cluster that was killed itself replays its log. Two servers never share a directory.
//!
//! What does not belong here: migrations, pools, and everything that is the same on somebody else's database.

mod account;
mod directory;
mod error;
mod postmaster;
mod programs;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use account::Account;
use directory::{Directory, Log};
use postmaster::{POLL, PidFile};
use programs::Programs;

pub use error::EmbeddedError;

/// The cluster's only role.
const SUPERUSER: &str = "postgres";
/// How long a start may take (s). Replaying the log after a crash is part of it.
const START: u64 = 300;
/// How long the sessions of a main process that was killed may hold its shared memory.
const AFTERMATH: Duration = Duration::from_secs(15);

/// What may be lost when the machine stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing that was committed. Anything else is as PostgreSQL's defaults and the cluster's `postgresql.conf` say.
    Full,
    /// The whole cluster. Fast, with room for many connections: for tests.
    None,
}

impl Durability {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Durability::Full => &["fsync=on", "synchronous_commit=on", "full_page_writes=on"],
            Durability::None => &["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300"],
        }
    }
}

/// A running private cluster. Dropping it stops it; [`Embedded::stop`] does too, and says how that went.
#[derive(Debug)]
pub struct Embedded {
    /// `None` once it was stopped.
    server: Option<Child>,
    socket_directory: PathBuf,
    log: Log,
    // Dropped last: the directory is ours until nothing runs in it any more.
    directory: Directory,
}

impl Embedded {
    /// Starts the cluster in `dir`, making both if they do not exist, and waits until it takes connections.
    ///
    /// `bin` is the directory of PostgreSQL's server programs; without it they are looked for. Root runs them as
    /// `postgres` or `nobody`. This blocks for about a second the first time and a tenth of it later; longer if the
    /// cluster was killed. The child is in a process group of its own, so that Ctrl-C in a terminal does not end it
    /// before those who use it.
    ///
    /// # Errors
    /// Each variant of [`EmbeddedError`] says what it stands for; [`EmbeddedError::InUse`] if another server has `dir`.
    pub fn start(dir: &Path, bin: Option<&Path>, durability: Durability) -> Result<Embedded, EmbeddedError> {
        let began = Instant::now();
        let directory = Directory::own(dir)?;
        let cluster = directory.cluster();
        let account = Account::choose(&cluster)?;
        let version = directory.cluster_version()?;
        let programs = Programs::find(bin, version, &account, &cluster, directory.path())?;
        postmaster::end_leftover(&cluster)?;
        let socket_directory = directory.socket_directory(&account)?;
        if version.is_none() {
            directory.make_cluster(&programs, &account, durability)?;
        }

        let log = directory.log()?;
        let mut embedded = Embedded { server: None, socket_directory, log, directory };
        loop {
            match embedded.launch(&programs, &account, durability) {
                Ok(()) => break,
                // The sessions of a main process that was killed end by themselves, but not at the same instant.
                Err(EmbeddedError::Died { tail, .. })
                    if tail.contains("pre-existing shared memory block") && began.elapsed() < AFTERMATH =>
                {
                    sleep(20 * POLL);
                }
                Err(error) => return Err(error),
            }
        }
        let took_ms = began.elapsed().as_millis();
        tracing::info!(version = programs.major(), cluster = %cluster.display(), took_ms, "PostgreSQL is ready");
        Ok(embedded)
    }

    fn launch(&mut self, programs: &Programs, account: &Account, durability: Durability) -> Result<(), EmbeddedError> {
        let cluster = self.directory.cluster();
        let program = programs.path("postgres");
        let mut command = account.command(&program, self.directory.path());
        command.arg("-D").arg(&cluster);
        let mut sockets = std::ffi::OsString::from("unix_socket_directories=");
        sockets.push(&self.socket_directory);
        command.arg("-c").arg(sockets);
        for setting in ["listen_addresses=", "port=5432", "unix_socket_permissions=0700", "log_timezone=UTC"] {
            command.args(["-c", setting]);
        }
        for setting in durability.settings() {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(self.log.writer()?).stderr(self.log.writer()?).process_group(0);
        // From here on, an error stops the child by way of `drop`.
        let child = self.server.insert(command.spawn().map_err(EmbeddedError::io("run", &program))?);

        let pid = child.id().cast_signed();
        let since = Instant::now();
        while since.elapsed().as_secs() < START {
            if let Some(status) = child.try_wait().map_err(EmbeddedError::io("wait for", &program))? {
                self.server = None;
                return Err(EmbeddedError::Died { status, log: self.log.path.clone(), tail: self.log.tail() });
            }
            // A file left by a killed server is there at first, but names another process.
            if PidFile::read(&cluster).is_some_and(|file| file.says_ready(pid)) {
                return Ok(());
            }
            sleep(POLL);
        }
        Err(EmbeddedError::NotReady { seconds: START, log: self.log.path.clone(), tail: self.log.tail() })
    }

    /// The URL of a database of this cluster, for its superuser. It holds no secret: the socket's directory does.
    pub fn url(&self, database: &str) -> String {
        let host = self.socket_directory.to_string_lossy();
        // Everything is given, for the driver takes what is missing from the environment.
        format!("postgres://{SUPERUSER}@localhost:5432/{}?host={}&sslmode=disable", encoded(database), encoded(&host))
    }

    /// Creates a database unless it exists.
    ///
    /// # Errors
    /// [`EmbeddedError::CreateDatabase`], whatever the cause.
    pub async fn ensure_database(&self, name: &str) -> Result<(), EmbeddedError> {
        let create = async {
            let mut connection = PgConnectOptions::from_str(&self.url("postgres"))?.connect().await?;
            let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
                .bind(name)
                .fetch_one(&mut connection)
                .await?;
            if !exists {
                // A name cannot be bound; quoted like this it can be nothing but a name.
                let statement = format!("create database \"{}\"", name.replace('"', "\"\""));
                sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
            }
            connection.close().await
        };
        create.await.map_err(|source| EmbeddedError::CreateDatabase { name: name.to_owned(), source })
    }

    /// Whether the cluster has ended although nobody stopped it: killed, or out of disk space or memory.
    pub fn has_died(&mut self) -> bool {
        self.server.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Stops the cluster: sessions are ended, everything is written, and nothing is left running. Blocks, usually for
    /// less than a tenth of a second; after 30 s a crash is preferred, from which the next start recovers.
    ///
    /// # Errors
    /// [`EmbeddedError::Stuck`] if the process does not end at all.
    pub fn stop(mut self) -> Result<(), EmbeddedError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), EmbeddedError> {
        let Some(mut child) = self.server.take() else { return Ok(()) };
        let status = postmaster::stop(child.id().cast_signed(), || {
            child.try_wait().map_err(EmbeddedError::io("wait for", &self.directory.cluster()))
        })?;
        if !status.success() {
            tracing::warn!(%status, log = %self.log.path.display(), "PostgreSQL did not end in good order");
        }
        if !self.socket_directory.starts_with(self.directory.path()) {
            let _ = fs::remove_dir_all(&self.socket_directory);
        }
        Ok(())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            tracing::error!(%error, "PostgreSQL was left running");
        }
    }
}

/// Deletes the cluster in `dir` with all its data, ending a PostgreSQL that was left running there. Nothing happens if
/// `dir` does not exist.
///
/// # Errors
/// [`EmbeddedError::InUse`] if a server uses it; [`EmbeddedError::Io`] if something cannot be deleted.
pub fn remove(dir: &Path) -> Result<(), EmbeddedError> {
    if !dir.exists() {
        return Ok(());
    }
    let directory = Directory::own(dir)?;
    postmaster::end_leftover(&directory.cluster())?;
    let _ = fs::remove_dir_all(directory.short_socket_directory());
    fs::remove_dir_all(directory.path()).map_err(EmbeddedError::io("delete", directory.path()))
}

/// Percent-encodes all that could mean something in a URL.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
