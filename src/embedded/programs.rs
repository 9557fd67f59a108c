//! Where PostgreSQL's server programs are. They are seldom on the PATH, and each system has its own place for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::EmbeddedError;
use super::account::Account;

/// The oldest major version whose SQL we can rely on.
const OLDEST: u32 = 15;

/// Places with one directory a version: parent, start of the version's directory name, and the way on from there.
const VERSIONED: [(&str, &str, &str); 7] = [
    ("/usr/lib/postgresql", "", "bin"),                          // Debian, Ubuntu
    ("/usr", "pgsql-", "bin"),                                   // Fedora, RHEL (packages of postgresql.org)
    ("/usr/libexec", "postgresql", ""),                          // Alpine
    ("/opt/homebrew/opt", "postgresql@", "bin"),                 // macOS, Homebrew on ARM
    ("/usr/local/opt", "postgresql@", "bin"),                    // macOS, Homebrew on Intel
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"), // macOS, Postgres.app
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql@", "bin"),    // Homebrew on Linux
];

/// Places with one version: Fedora's and Arch's own packages, builds from source.
const FIXED: [&str; 4] = ["/usr/bin", "/usr/local/pgsql/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// A directory with server programs, and their version.
#[derive(Debug)]
pub(super) struct Programs {
    bin: PathBuf,
    major: u32,
}

impl Programs {
    /// Finds programs that can run the cluster `data`, whose version is `wanted` if it exists already.
    ///
    /// `chosen` is looked at alone if given; else what `pg_config` tells, and the usual places, newest version first.
    /// `account` has to be able to run them in `dir`; that it gets there at all is found out here.
    pub(super) fn find(
        chosen: Option<&Path>,
        wanted: Option<u32>,
        account: &Account,
        data: &Path,
        dir: &Path,
    ) -> Result<Programs, EmbeddedError> {
        let places = match chosen {
            Some(bin) => vec![bin.canonicalize().unwrap_or_else(|_| bin.to_owned())],
            None => usual_places(),
        };
        let mut first_unfit = None;
        for bin in places.iter().filter(|bin| bin.join("postgres").is_file() && bin.join("initdb").is_file()) {
            match Programs::examine(bin, wanted, account, data, dir) {
                Ok(programs) => return Ok(programs),
                Err(error) => first_unfit = first_unfit.or(Some(error)),
            }
        }
        Err(first_unfit.unwrap_or(EmbeddedError::NoPrograms { looked_in: places }))
    }

    fn examine(
        bin: &Path,
        wanted: Option<u32>,
        account: &Account,
        data: &Path,
        dir: &Path,
    ) -> Result<Programs, EmbeddedError> {
        let program = bin.join("postgres");
        let answer =
            account.command(&program, dir).arg("--version").stdin(Stdio::null()).output().map_err(|error| {
                // The system does not say whether the program or the directory was refused.
                match account.blocked_on_the_way_to(dir) {
                    Some(blocked) => EmbeddedError::NotTraversable { account: account.name().to_owned(), blocked },
                    None => EmbeddedError::io("run", &program)(error),
                }
            })?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let Some(found) = major_of(text.split_whitespace().nth(2).unwrap_or_default()) else {
            let answer = format!("{text}{}", String::from_utf8_lossy(&answer.stderr)).trim().to_owned();
            return Err(EmbeddedError::BrokenProgram { program, answer });
        };
        match wanted {
            _ if found < OLDEST => Err(EmbeddedError::TooOld { bin: bin.to_owned(), found }),
            Some(wanted) if wanted != found => {
                Err(EmbeddedError::VersionMismatch { data: data.to_owned(), wanted, bin: bin.to_owned(), found })
            }
            _ => Ok(Programs { bin: bin.to_owned(), major: found }),
        }
    }

    /// The path of one program.
    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.bin.join(program)
    }

    /// The major version.
    pub(super) fn major(&self) -> u32 {
        self.major
    }
}

/// The leading number of a version: 15 for `15.18`, 18 for `18beta1`.
pub(super) fn major_of(version: &str) -> Option<u32> {
    let digits = version.trim().split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn usual_places() -> Vec<PathBuf> {
    let told = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).output().ok();
    let told = told.filter(|answer| answer.status.success());
    let told = told.map(|answer| PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()));
    let mut places: Vec<PathBuf> = told.into_iter().collect();
    for (parent, prefix, rest) in VERSIONED {
        let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(parent)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let major = major_of(entry.file_name().to_str()?.strip_prefix(prefix)?)?;
                Some((major, entry.path().join(rest)))
            })
            .collect();
        versions.sort_by(|a, b| b.cmp(a));
        places.extend(versions.into_iter().map(|(_, path)| path));
    }
    places.extend(FIXED.iter().map(PathBuf::from));
    let mut seen = std::collections::BTreeSet::new();
    places.retain(|path| seen.insert(path.clone()));
    places
}

#[cfg(test)]
mod tests {
    use super::major_of;

    #[test]
    fn the_major_version_is_the_leading_number() {
        assert_eq!(major_of("15.18"), Some(15));
        assert_eq!(major_of("18beta1\n"), Some(18));
        assert_eq!(major_of("devel"), None);
        assert_eq!(major_of(""), None);
    }
}
