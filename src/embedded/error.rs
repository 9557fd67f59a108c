//! What can keep the private cluster from starting or stopping, worded for the person who typed the command.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why the private cluster could not be started, used or stopped.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The operating system refused an operation on a file, a directory or a program.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb: `create`, `read`.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A live server holds the lock of this data directory.
    #[error("another server{} is already running on {}: stop it first, or use another data directory",
        holder.as_ref().map(|pid| format!(" (process {pid})")).unwrap_or_default(), dir.display())]
    InUse {
        /// The data directory.
        dir: PathBuf,
        /// The other server's process id, if it could be read.
        holder: Option<u32>,
    },
    /// No directory with PostgreSQL's server programs was found.
    #[error(
        "no PostgreSQL server programs (postgres, initdb) found in {}: install PostgreSQL 15 or newer \
        (scripts/setup.sh does), or set TAVOLA_PG_BIN to the directory that has them, or DATABASE_URL to a database",
        list(looked_in)
    )]
    NoPrograms {
        /// Every directory that was looked at.
        looked_in: Vec<PathBuf>,
    },
    /// A directory has server programs, but they do not run or do not say their version.
    #[error("{} does not tell its version: {answer}", program.display())]
    BrokenProgram {
        /// The program that was asked.
        program: PathBuf,
        /// What it said instead.
        answer: String,
    },
    /// The server programs are older than the SQL of this program needs.
    #[error("{} has PostgreSQL {found}, but 15 or newer is needed", bin.display())]
    TooOld {
        /// The directory of the programs.
        bin: PathBuf,
        /// Their major version.
        found: u32,
    },
    /// The cluster was made by another major version than any that is installed.
    #[error("the cluster in {} was made by PostgreSQL {wanted}, but {} has version {found}: install PostgreSQL \
        {wanted}, set TAVOLA_PG_BIN to its programs, or move the data with pg_upgrade", data.display(), bin.display())]
    VersionMismatch {
        /// The cluster.
        data: PathBuf,
        /// The major version that made it.
        wanted: u32,
        /// The directory of the best programs found.
        bin: PathBuf,
        /// Their major version.
        found: u32,
    },
    /// The process is root, which PostgreSQL refuses, and there is no account to run it as.
    #[error("PostgreSQL does not run as root, and there is neither an account `postgres` nor `nobody` to run it as")]
    NoAccount,
    /// The cluster's files belong to an account that this process cannot run PostgreSQL as.
    #[error("{} belongs to {owner}, but PostgreSQL would have to run as {account}: start as {owner}, \
        or change the owner of that directory and all in it", path.display())]
    WrongOwner {
        /// The directory in question.
        path: PathBuf,
        /// The name (or number) of the account that owns it.
        owner: String,
        /// The name of the account PostgreSQL would run as.
        account: String,
    },
    /// The account PostgreSQL runs as cannot get to the data directory.
    #[error("the account `{account}`, as which PostgreSQL has to run, may not enter {}: put the data directory \
        elsewhere (TAVOLA_DATA_DIR), or allow it with `chmod o+x {}`", blocked.display(), blocked.display())]
    NotTraversable {
        /// The name of the account.
        account: String,
        /// The first directory on the way that it may not enter.
        blocked: PathBuf,
    },
    /// Something else is where a directory for `account` alone was to be made.
    #[error("{} exists, but is not a directory that only {account} may enter: remove it", path.display())]
    NotPrivate {
        /// What is in the way.
        path: PathBuf,
        /// The name of the account PostgreSQL runs as.
        account: String,
    },
    /// No directory with a name short enough for a socket could be had.
    #[error("the names of both {} and {} are too long, or too odd, for the directory of a socket",
        tried[0].display(), tried[1].display())]
    NoSocketDirectory {
        /// The directories considered.
        tried: [PathBuf; 2],
    },
    /// `initdb` failed.
    #[error("initdb failed ({status}):\n{output}")]
    Initdb {
        /// How it ended.
        status: ExitStatus,
        /// Its last lines.
        output: String,
    },
    /// The server ended while it was starting.
    #[error("PostgreSQL ended while starting ({status}); the end of {}:\n{tail}", log.display())]
    Died {
        /// How it ended.
        status: ExitStatus,
        /// The log file.
        log: PathBuf,
        /// The last lines this start wrote to it.
        tail: String,
    },
    /// The server runs, but was not ready within the time allowed.
    #[error("PostgreSQL was not ready within {seconds} s; the end of {}:\n{tail}", log.display())]
    NotReady {
        /// The time allowed.
        seconds: u64,
        /// The log file.
        log: PathBuf,
        /// The last lines this start wrote to it.
        tail: String,
    },
    /// A PostgreSQL process does not end although it was told to.
    #[error("PostgreSQL (process {pid}) does not stop")]
    Stuck {
        /// Its process id.
        pid: i32,
    },
    /// A database could not be created.
    #[error("cannot create the database `{name}`")]
    CreateDatabase {
        /// The name of the database.
        name: String,
        /// The driver's error.
        source: sqlx::Error,
    },
}

impl EmbeddedError {
    /// For `map_err`: names what was being done and to which file.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EmbeddedError {
        move |source| EmbeddedError::Io { action, path: path.to_owned(), source }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
