//! PostgreSQL's main process as seen from outside: what `postmaster.pid` says, and how to end one that is left over.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::EmbeddedError;

/// How often a state is looked at while waiting for it.
pub(super) const POLL: Duration = Duration::from_millis(5);
/// How long a fast shutdown (sessions ended, everything written) may take before a crash is preferred.
pub(super) const FAST_STOP: Duration = Duration::from_secs(30);
/// How long an immediate shutdown may take; PostgreSQL itself kills what is left after 5 s.
pub(super) const IMMEDIATE_STOP: Duration = Duration::from_secs(10);

/// What `postmaster.pid` says. The file stays behind when the server is killed, so it proves nothing by itself.
#[derive(Debug)]
pub(super) struct PidFile {
    /// The main process.
    pub(super) pid: i32,
    /// The data directory, as that process calls it.
    data: String,
    /// `starting`, `ready`, `stopping`; empty early in the start.
    status: String,
}

impl PidFile {
    /// Reads the file of the cluster `data`; `None` if there is none, or it has not been written fully yet.
    pub(super) fn read(data: &Path) -> Option<PidFile> {
        PidFile::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<PidFile> {
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok().filter(|pid| *pid > 0)?;
        let data = lines.next()?.to_owned();
        // Between: start time, port, socket directory, listen address, shared memory key.
        let status = lines.nth(5).unwrap_or_default().trim().to_owned();
        Some(PidFile { pid, data, status })
    }

    /// Whether the process `pid` wrote this and accepts connections.
    pub(super) fn says_ready(&self, pid: i32) -> bool {
        self.pid == pid && self.status == "ready"
    }

    /// Who the process named here is now.
    fn standing(&self, data: &Path) -> Standing {
        if kill(Pid::from_raw(self.pid), None) == Err(Errno::ESRCH) {
            return Standing::Gone;
        }
        let Some((state, name)) = state_and_name(self.pid) else { return Standing::Unknown };
        if state == 'Z' || Path::new(&name).file_name().is_none_or(|file| file != "postgres") {
            return Standing::Other;
        }
        // The main process works in its data directory. Where the system does not show that, its own word counts.
        match (fs::metadata(format!("/proc/{}/cwd", self.pid)), fs::metadata(data)) {
            (Ok(cwd), Ok(data)) if (cwd.dev(), cwd.ino()) == (data.dev(), data.ino()) => Standing::Ours,
            (Ok(_), Ok(_)) => Standing::Other,
            _ if Path::new(&self.data) == data => Standing::Ours,
            _ => Standing::Unknown,
        }
    }
}

/// Who the process is whose id a `postmaster.pid` holds. Ids are given out again, so it may be anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// There is no such process.
    Gone,
    /// The main process of this very cluster.
    Ours,
    /// Certainly not that: another program, another cluster's process, or one that is dead and only not buried yet.
    Other,
    /// The system does not tell.
    Unknown,
}

/// The state of a process (`Z`: dead, but not waited for yet) and the name of its program.
fn state_and_name(pid: i32) -> Option<(char, String)> {
    if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) {
        // `42 (name) S ...`, where the name may hold anything.
        let (name, rest) = text.split_once('(')?.1.rsplit_once(") ")?;
        return Some((rest.chars().next()?, name.to_owned()));
    }
    let answer = Command::new("ps").args(["-o", "stat=", "-o", "comm=", "-p", &pid.to_string()]).output().ok()?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let (state, name) = text.trim().split_once(' ')?;
    Some((state.chars().next()?, name.trim().to_owned()))
}

/// Ends the server that runs on `data` although whoever started it is gone, and clears the way for the next one.
///
/// The caller holds the lock of the data directory, so that this is nobody's server any more.
///
/// # Errors
/// `Stuck` if it does not end.
pub(super) fn end_leftover(data: &Path) -> Result<(), EmbeddedError> {
    let Some(file) = PidFile::read(data) else { return Ok(()) };
    match file.standing(data) {
        Standing::Ours => {
            tracing::warn!(pid = file.pid, "ending the PostgreSQL that a killed server has left running");
            // It is not our child, so nobody tells us how it ended. But removing its file is the last thing it does,
            // after it has given back the shared memory.
            stop(file.pid, || {
                let now = PidFile::read(data).filter(|now| now.pid == file.pid);
                Ok(now.is_none_or(|now| now.standing(data) != Standing::Ours).then_some(()))
            })?;
            // If it was killed just now, its file is still there.
            end_leftover(data)
        }
        // PostgreSQL would take a process of its own account for a live server and refuse to start, as it may after a
        // power failure. Should sessions of a killed one be left, it still finds them, by their shared memory.
        Standing::Other => {
            let path = data.join("postmaster.pid");
            fs::remove_file(&path).map_err(EmbeddedError::io("delete", &path))
        }
        Standing::Gone | Standing::Unknown => Ok(()),
    }
}

/// Tells the main process `pid` to end, first in good order, then at any price, until `is_over` yields something.
///
/// # Errors
/// `Stuck` if even that does not help; whatever `is_over` fails with.
pub(super) fn stop<T>(
    pid: i32,
    mut is_over: impl FnMut() -> Result<Option<T>, EmbeddedError>,
) -> Result<T, EmbeddedError> {
    for (signal, patience) in [(Signal::SIGINT, FAST_STOP), (Signal::SIGQUIT, IMMEDIATE_STOP)] {
        if let Some(outcome) = is_over()? {
            return Ok(outcome);
        }
        // A failure means that it has just ended, or is not ours to end: waiting tells which.
        let _ = kill(Pid::from_raw(pid), signal);
        let since = Instant::now();
        while since.elapsed() < patience {
            if let Some(outcome) = is_over()? {
                return Ok(outcome);
            }
            sleep(POLL);
        }
        tracing::warn!(pid, %signal, seconds = patience.as_secs(), "PostgreSQL has not stopped in time");
    }
    Err(EmbeddedError::Stuck { pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_file_of_the_right_process_is_ready() {
        let whole = "4242\n/srv/data\n1700000000\n5432\n/srv/run\n\n  1234567    42\nready   \n";
        let file = PidFile::parse(whole).expect("a whole file is read");
        assert!(file.says_ready(4242));
        assert!(!file.says_ready(4243));
        let starting = PidFile::parse(&whole.replace("ready   ", "starting")).expect("a whole file is read");
        assert!(!starting.says_ready(4242));
        let early = PidFile::parse("4242\n/srv/data\n1700000000\n").expect("an unfinished file is read");
        assert!(!early.says_ready(4242));
        assert!(PidFile::parse("").is_none());
        assert!(PidFile::parse("-1\n/srv/data\n").is_none(), "a negative id would be a process group");
    }

    #[test]
    fn a_process_is_known_by_more_than_its_id() {
        let own = std::process::id().cast_signed();
        let (state, name) = state_and_name(own).expect("the system tells of us");
        assert_ne!(state, 'Z');
        assert!(name.contains("tavola"), "{name}");
        let file = PidFile { pid: own, data: "/".into(), status: "ready".into() };
        assert_eq!(file.standing(Path::new("/")), Standing::Other, "alive, but not PostgreSQL");
    }
}
