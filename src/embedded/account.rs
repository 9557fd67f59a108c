//! The account PostgreSQL runs as: our own, unless that is root, which PostgreSQL refuses.

use std::fs::{self, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{Gid, Uid, User, getegid, geteuid};

use super::EmbeddedError;

/// Settings of the environment that the server programs would take for their own.
const FOREIGN_SETTINGS: [&str; 6] = ["PGDATA", "PGPORT", "PGDATESTYLE", "PGTZ", "PGCLIENTENCODING", "PGOPTIONS"];

/// An account to run the server programs as.
#[derive(Debug)]
pub(super) struct Account {
    name: String,
    uid: Uid,
    gid: Gid,
    /// Whether this process is root and has to become that account first.
    switch: bool,
}

impl Account {
    /// Chooses the account: this process's own; for root the owner of the existing cluster `data`, so that a cluster
    /// made by one user still works under `sudo`, else `postgres`, else `nobody`.
    pub(super) fn choose(data: &Path) -> Result<Account, EmbeddedError> {
        let owner = match fs::metadata(data) {
            Ok(metadata) => Some(Uid::from_raw(metadata.uid())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(EmbeddedError::io("look at", data)(error)),
        };
        let own = geteuid();
        let wrong_owner = |owner: Uid, account: String| EmbeddedError::WrongOwner {
            path: data.to_owned(),
            owner: name_of(owner),
            account,
        };
        if !own.is_root() {
            return match owner {
                Some(owner) if owner != own => Err(wrong_owner(owner, name_of(own))),
                _ => Ok(Account { name: name_of(own), uid: own, gid: getegid(), switch: false }),
            };
        }
        let user = match owner {
            Some(owner) if owner.is_root() => return Err(wrong_owner(owner, unprivileged()?.name)),
            Some(owner) => User::from_uid(owner)
                .ok()
                .flatten()
                .ok_or_else(|| wrong_owner(owner, "an account with a name".into()))?,
            None => unprivileged()?,
        };
        Ok(Account { name: user.name, uid: user.uid, gid: user.gid, switch: true })
    }

    /// The account's name, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs `program` as this account, in `dir` (ours may be closed to it), in plain English.
    pub(super) fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env("LC_ALL", "C");
        for name in FOREIGN_SETTINGS {
            command.env_remove(name);
        }
        if self.switch {
            // The standard library drops root's supplementary groups along with it.
            command.uid(self.uid.as_raw()).gid(self.gid.as_raw());
        }
        command
    }

    /// Makes `dir` a directory that only this account may enter, creating it if it does not exist.
    ///
    /// # Errors
    /// Anything else of that name, a link included, that neither we nor the account made: in a directory open to all,
    /// as the system's temporary one is, it may be a trap. For the same reason root changes nothing that belongs to the
    /// account already, who could put a link in its place meanwhile.
    pub(super) fn private_directory(&self, dir: &Path) -> Result<(), EmbeddedError> {
        if let Err(error) = fs::create_dir(dir)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(EmbeddedError::io("create", dir)(error));
        }
        let found = fs::symlink_metadata(dir).map_err(EmbeddedError::io("look at", dir))?;
        let owner = Uid::from_raw(found.uid());
        if owner == self.uid && found.is_dir() && found.mode() & 0o777 == 0o700 {
            return Ok(());
        }
        if owner != geteuid() || !found.is_dir() {
            return Err(EmbeddedError::NotPrivate { path: dir.to_owned(), account: self.name.clone() });
        }
        fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(EmbeddedError::io("set the permissions of", dir))?;
        if self.switch {
            chown(dir, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
                .map_err(EmbeddedError::io("change the owner of", dir))?;
        }
        Ok(())
    }

    /// The first directory on the way to `dir` (absolute, without links), itself included, that the mode bits keep
    /// this account from entering.
    pub(super) fn blocked_on_the_way_to(&self, dir: &Path) -> Option<PathBuf> {
        let mut way: Vec<&Path> = dir.ancestors().collect();
        way.reverse();
        way.into_iter().find(|step| fs::metadata(step).is_ok_and(|found| !self.may_enter(&found))).map(Path::to_owned)
    }

    fn may_enter(&self, found: &Metadata) -> bool {
        let bit = if found.uid() == self.uid.as_raw() {
            0o100
        } else if found.gid() == self.gid.as_raw() {
            0o010
        } else {
            0o001
        };
        found.mode() & bit != 0
    }
}

fn unprivileged() -> Result<User, EmbeddedError> {
    ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| User::from_name(name).ok().flatten())
        .ok_or(EmbeddedError::NoAccount)
}

fn name_of(uid: Uid) -> String {
    User::from_uid(uid).ok().flatten().map_or_else(|| format!("uid {uid}"), |user| user.name)
}
