//! The directory of a private cluster: who owns it, what is in it, and where the socket is.
//!
//! ```text
//! owner.lock     locked as long as a server uses the directory; says which
//! cluster/       PostgreSQL's data; belongs to the account it runs as
//! run/           its socket, unless the path is too long for one
//! postgres.log   what it says
//! ```

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::unistd::geteuid;
use sha2::{Digest, Sha256};

use super::account::Account;
use super::programs::{Programs, major_of};
use super::{Durability, EmbeddedError, SUPERUSER};

/// The name of the socket in its directory; the number is the port of the default.
const SOCKET: &str = ".s.PGSQL.5432";
/// The longest path of a socket: 107 bytes on Linux, 103 on macOS and the BSDs.
const LONGEST_SOCKET: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// A log longer than this (bytes) is put aside at the next start; one older log is kept.
const LONG_LOG: u64 = 16 << 20;
/// How many lines of the log an error shows.
const TAIL: usize = 15;

/// A data directory that this process has to itself.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Holds the lock. It ends with the process, however that ends, and is not inherited by PostgreSQL.
    lock: File,
}

impl Directory {
    /// Takes possession of `dir`, creating it if needed.
    ///
    /// # Errors
    /// `InUse` while another process has it.
    pub(super) fn own(dir: &Path) -> Result<Directory, EmbeddedError> {
        if !dir.exists() {
            fs::create_dir_all(dir).map_err(EmbeddedError::io("create", dir))?;
            // The account PostgreSQL runs as has to get through, but nobody has to look around.
            let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
            fs::set_permissions(dir, Permissions::from_mode(mode))
                .map_err(EmbeddedError::io("set the permissions of", dir))?;
        }
        // PostgreSQL compares paths as text, and is started in another working directory than ours.
        let path = dir.canonicalize().map_err(EmbeddedError::io("find", dir))?;
        let lock = Directory::take_lock(&path)?;
        Ok(Directory { path, lock })
    }

    fn take_lock(dir: &Path) -> Result<File, EmbeddedError> {
        let path = dir.join("owner.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(EmbeddedError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
                return Err(EmbeddedError::InUse { dir: dir.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(EmbeddedError::io("lock", &path)(error)),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(EmbeddedError::io("write", &path))?;
        Ok(file)
    }

    /// The directory itself, absolute and without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// PostgreSQL's data directory, which exists only once it is complete.
    pub(super) fn cluster(&self) -> PathBuf {
        self.path.join("cluster")
    }

    /// The major version that made the cluster; `None` if there is no cluster yet.
    pub(super) fn cluster_version(&self) -> Result<Option<u32>, EmbeddedError> {
        if !self.cluster().exists() {
            return Ok(None);
        }
        let path = self.cluster().join("PG_VERSION");
        let text = fs::read_to_string(&path).map_err(EmbeddedError::io("read", &path))?;
        let unreadable = || std::io::Error::new(ErrorKind::InvalidData, "it does not hold a version");
        major_of(&text).map(Some).ok_or_else(|| EmbeddedError::io("read", &path)(unreadable()))
    }

    /// Makes the cluster, under another name until it is complete.
    ///
    /// Text is compared by code point (locale C), so that indexes outlive updates of the system's collations.
    pub(super) fn make_cluster(
        &self,
        programs: &Programs,
        account: &Account,
        durability: Durability,
    ) -> Result<(), EmbeddedError> {
        // An initdb that outlived a killed server may still write under its own name, so each has one of its own.
        for entry in fs::read_dir(&self.path).map_err(EmbeddedError::io("read", &self.path))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("cluster.new.") {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let new = self.path.join(format!("cluster.new.{}", std::process::id()));
        account.private_directory(&new)?;
        let initdb = programs.path("initdb");
        let mut command = account.command(&initdb, &self.path);
        command.arg("-D").arg(&new).args(["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C"]);
        command.arg("--no-instructions");
        command.arg(match durability {
            Durability::Full => "--data-checksums",
            Durability::None => "--no-sync",
        });
        let answer = command.stdin(Stdio::null()).output().map_err(EmbeddedError::io("run", &initdb))?;
        if !answer.status.success() {
            let _ = fs::remove_dir_all(&new);
            let output = last_lines(&[answer.stdout, answer.stderr].concat());
            return Err(EmbeddedError::Initdb { status: answer.status, output });
        }
        fs::rename(&new, self.cluster()).map_err(EmbeddedError::io("rename", &new))?;
        File::open(&self.path).and_then(|dir| dir.sync_all()).map_err(EmbeddedError::io("write", &self.path))
    }

    /// The directory for the socket, made for `account` alone: access to it is all the authentication there is.
    /// No server runs on the cluster any more.
    pub(super) fn socket_directory(&self, account: &Account) -> Result<PathBuf, EmbeddedError> {
        let tried = [self.path.join("run"), self.short_socket_directory()];
        let Some(fitting) = tried.iter().find(|path| fits(path)) else {
            return Err(EmbeddedError::NoSocketDirectory { tried });
        };
        account.private_directory(fitting)?;
        // What a killed server left. PostgreSQL would remove it too, but not if its process id was given out again.
        for name in [SOCKET.to_owned(), format!("{SOCKET}.lock")] {
            let path = fitting.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(EmbeddedError::io("delete", &path)(error));
                }
                _ => {}
            }
        }
        Ok(fitting.clone())
    }

    /// Where the socket goes if it cannot be in the directory: a name in the temporary directory that depends only on
    /// the directory, so that a killed server's leaves are used again.
    pub(super) fn short_socket_directory(&self) -> PathBuf {
        let digest = Sha256::digest(self.path.as_os_str().as_encoded_bytes());
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        std::env::temp_dir().join(format!("tavola-{name}"))
    }

    /// Opens the log to append to it.
    pub(super) fn log(&self) -> Result<Log, EmbeddedError> {
        let path = self.path.join("postgres.log");
        if fs::metadata(&path).is_ok_and(|found| found.len() > LONG_LOG) {
            let _ = fs::rename(&path, self.path.join("postgres.log.old"));
        }
        let open = || {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            let start = file.metadata()?.len();
            Ok((file, start))
        };
        let (file, start) = open().map_err(EmbeddedError::io("open", &path))?;
        Ok(Log { path: path.clone(), file, start })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Closing the file would not do at once: a process that another thread is just starting has a copy of it for a
        // moment. A failure leaves it to that.
        let _ = self.lock.unlock();
    }
}

/// PostgreSQL's log from one start on.
#[derive(Debug)]
pub(super) struct Log {
    /// Where it is.
    pub(super) path: PathBuf,
    file: File,
    start: u64,
}

impl Log {
    /// A handle for the server to write to.
    pub(super) fn writer(&self) -> Result<Stdio, EmbeddedError> {
        self.file.try_clone().map(Stdio::from).map_err(EmbeddedError::io("open", &self.path))
    }

    /// The last lines written since the start, for an error.
    pub(super) fn tail(&self) -> String {
        let read = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.start))?;
            let mut bytes = Vec::new();
            file.take(LONG_LOG).read_to_end(&mut bytes)?;
            std::io::Result::Ok(bytes)
        };
        read().map_or_else(|error| format!("(unreadable: {error})"), |bytes| last_lines(&bytes))
    }
}

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

/// Whether a socket can be in `dir`, and the path can stand in PostgreSQL's comma-separated setting and in a URL.
fn fits(dir: &Path) -> bool {
    let plain = |text: &str| !text.contains([',', '"', '\\', '\n']) && text.trim() == text;
    dir.to_str().is_some_and(plain) && dir.join(SOCKET).as_os_str().len() <= LONGEST_SOCKET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_a_longest_path() {
        let longest = LONGEST_SOCKET - SOCKET.len() - 1;
        assert!(fits(Path::new(&format!("/{}", "a".repeat(longest - 1)))));
        assert!(!fits(Path::new(&format!("/{}", "a".repeat(longest)))));
        assert!(!fits(Path::new("/a,b")));
    }

    #[test]
    fn an_error_shows_the_end() {
        let text: String = (0..40).map(|n| format!("line {n}\n\n")).collect();
        let tail = last_lines(text.as_bytes());
        assert!(tail.starts_with("line 25\n") && tail.ends_with("line 39"));
        assert_eq!(last_lines(b""), "");
    }
}
