//! The private cluster on a real PostgreSQL: it keeps what it was given, whatever is killed, and serves one owner.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection, PgConnection};
use tavola::embedded::{self, Durability, Embedded, EmbeddedError};

/// In a process with this variable, [`owner`] starts a cluster there.
const OWNER_DIR: &str = "TAVOLA_TEST_OWNER_DIR";

/// A directory that does not exist yet, and is deleted at the end with all that runs in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // In memory where there is such a place: what is tested is who starts and stops, not the disk.
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Scratch(base.join(format!("tavola-test-{}-{count}{name}", std::process::id())))
    }

    fn start(&self) -> Embedded {
        start(&self.0).expect("the cluster starts")
    }

    fn start_durable(&self) -> Embedded {
        Embedded::start(&self.0, None, Durability::Full).expect("the cluster starts")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = embedded::remove(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}

fn start(dir: &Path) -> Result<Embedded, EmbeddedError> {
    Embedded::start(dir, None, Durability::None)
}

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("the cluster takes connections")
}

async fn write_row(url: &str) {
    let mut connection = connect(url).await;
    sqlx::raw_sql("create table kept (n integer); insert into kept values (42)")
        .execute(&mut connection)
        .await
        .expect("a row is written");
}

async fn read_row(url: &str) -> i32 {
    sqlx::query_scalar("select n from kept").fetch_one(&mut connect(url).await).await.expect("the row is there")
}

/// The process that `postmaster.pid` names.
fn postgres_of(dir: &Path) -> Pid {
    let text = std::fs::read_to_string(dir.join("cluster/postmaster.pid")).expect("PostgreSQL runs");
    Pid::from_raw(text.lines().next().and_then(|line| line.trim().parse().ok()).expect("it names a process"))
}

fn is_alive(pid: Pid) -> bool {
    // What was not our child may be a zombie for a moment, or for ever where nobody waits for orphans.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    kill(pid, None).is_ok() && !state.contains(") Z ")
}

fn wait_for_end(pid: Pid) {
    let since = Instant::now();
    while is_alive(pid) {
        assert!(since.elapsed() < Duration::from_secs(10), "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_row_outlives_a_stop() {
    let scratch = Scratch::new("");
    let cluster = scratch.start();
    cluster.ensure_database("tavola").await.expect("the database is created");
    write_row(&cluster.url("tavola")).await;
    let postgres = postgres_of(&scratch.0);
    cluster.stop().expect("it stops");
    assert!(!is_alive(postgres), "stop waits for the end");
    assert!(!scratch.0.join("cluster/postmaster.pid").exists(), "a clean shutdown");

    let cluster = scratch.start();
    cluster.ensure_database("tavola").await.expect("an existing database is fine");
    assert_eq!(read_row(&cluster.url("tavola")).await, 42);
    let postgres = postgres_of(&scratch.0);
    drop(cluster);
    assert!(!is_alive(postgres), "dropping stops it too");
}

#[tokio::test]
async fn a_durable_cluster_has_its_safeguards_and_no_port() {
    let scratch = Scratch::new("");
    let cluster = scratch.start_durable();
    let mut connection = connect(&cluster.url("postgres")).await;
    for (setting, value) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("data_checksums", "on"),
        ("listen_addresses", ""),
        ("server_encoding", "UTF8"),
    ] {
        let found: String = sqlx::query_scalar("select current_setting($1)")
            .bind(setting)
            .fetch_one(&mut connection)
            .await
            .expect("the setting exists");
        assert_eq!(found, value, "{setting}");
    }
}

#[tokio::test]
async fn a_second_server_is_refused() {
    let scratch = Scratch::new("");
    let cluster = scratch.start();
    let error = start(&scratch.0).expect_err("the directory is in use");
    let own = std::process::id();
    assert!(matches!(error, EmbeddedError::InUse { holder: Some(pid), .. } if pid == own), "{error:?}");
    assert!(error.to_string().contains("is already running on"), "{error}");
    let error = embedded::remove(&scratch.0).expect_err("nor is it deleted");
    assert!(matches!(error, EmbeddedError::InUse { .. }), "{error:?}");
    write_row(&cluster.url("postgres")).await;
    assert_eq!(read_row(&cluster.url("postgres")).await, 42, "the first is not disturbed");
}

#[tokio::test]
async fn a_killed_postgres_recovers() {
    let scratch = Scratch::new("");
    let cluster = scratch.start_durable();
    write_row(&cluster.url("postgres")).await;
    kill(postgres_of(&scratch.0), Signal::SIGKILL).expect("it is ours");
    drop(cluster);
    assert!(scratch.0.join("cluster/postmaster.pid").exists(), "a stale file is there");
    let cluster = scratch.start_durable();
    assert_eq!(read_row(&cluster.url("postgres")).await, 42);
}

#[tokio::test]
async fn a_killed_server_is_succeeded() {
    let scratch = Scratch::new("");
    for kill_both in [false, true] {
        let mut owner = Owner::spawn(&scratch.0);
        sqlx::raw_sql("drop table if exists kept").execute(&mut connect(&owner.url).await).await.expect("it is gone");
        write_row(&owner.url).await;
        let postgres = postgres_of(&scratch.0);
        owner.kill();
        assert!(is_alive(postgres), "PostgreSQL does not end with its server");
        if kill_both {
            kill(postgres, Signal::SIGKILL).expect("it is ours");
        }
        let cluster = scratch.start_durable();
        assert_ne!(postgres_of(&scratch.0), postgres);
        wait_for_end(postgres);
        assert_eq!(read_row(&cluster.url("postgres")).await, 42);
    }
}

#[tokio::test]
async fn a_process_id_that_was_given_out_again_is_no_server() {
    let scratch = Scratch::new("");
    let cluster = scratch.start();
    write_row(&cluster.url("postgres")).await;
    let pid_file = scratch.0.join("cluster/postmaster.pid");
    let text = std::fs::read_to_string(&pid_file).expect("PostgreSQL runs");
    cluster.stop().expect("it stops");
    // As after a power failure: the file is there, and its process id is another program's of the same account.
    let account = std::fs::metadata(scratch.0.join("cluster")).expect("it is there").uid();
    let mut other = Command::new("sleep").arg("60").uid(account).spawn().expect("sleep runs");
    let (_, rest) = text.split_once('\n').expect("it has lines");
    std::fs::write(&pid_file, format!("{}\n{rest}", other.id())).expect("the file is written");
    let cluster = scratch.start();
    assert_eq!(read_row(&cluster.url("postgres")).await, 42);
    assert!(other.try_wait().expect("it is our child").is_none(), "the other program was ended");
    other.kill().and_then(|()| other.wait()).expect("it is our child");
}

#[tokio::test]
async fn any_name_of_the_directory_works() {
    let mut scratch = Scratch::new("-ünïcode & 100% ?#");
    let cluster = scratch.start();
    write_row(&cluster.url("postgres")).await;
    cluster.stop().expect("it stops");
    // Too long for a socket in it, then with a character that PostgreSQL's setting takes for a separator.
    for name in [format!("-{}", "long".repeat(30)), "-odd, name".to_owned()] {
        let next = Scratch::new(&name);
        std::fs::rename(&scratch.0, &next.0).expect("a stopped cluster can be moved");
        scratch = next;
        let cluster = scratch.start();
        assert_eq!(read_row(&cluster.url("postgres")).await, 42);
        let socket = cluster.url("postgres").split_once("?host=").map(|(_, rest)| rest.replace("&sslmode=disable", ""));
        let socket = PathBuf::from(socket.expect("the URL has a socket"));
        assert!(socket.exists() && !socket.starts_with(&scratch.0), "it is elsewhere: {}", socket.display());
        cluster.stop().expect("it stops");
        assert!(!socket.exists(), "and nothing of it is left: {}", socket.display());
    }
}

#[test]
fn what_cannot_work_says_why() {
    let scratch = Scratch::new("");
    let error = Embedded::start(&scratch.0, Some(Path::new("/nonexistent")), Durability::None);
    let error = error.expect_err("there are no programs").to_string();
    assert!(error.contains("/nonexistent") && error.contains("TAVOLA_PG_BIN"), "{error}");

    if nix::unistd::geteuid().is_root() {
        let closed = Scratch::new("");
        std::fs::create_dir(&closed.0).expect("it is created");
        std::fs::set_permissions(&closed.0, Permissions::from_mode(0o700)).expect("it is ours");
        let error = start(&closed.0.join("data")).expect_err("PostgreSQL cannot get there");
        assert!(matches!(&error, EmbeddedError::NotTraversable { blocked, .. } if *blocked == closed.0), "{error:?}");
    }

    scratch.start().stop().expect("it stops");
    let version = scratch.0.join("cluster/PG_VERSION");
    let right = std::fs::read(&version).expect("it has a version");
    std::fs::write(&version, "9\n").expect("the file is written");
    let error = start(&scratch.0).expect_err("nobody has that version");
    assert!(matches!(error, EmbeddedError::VersionMismatch { wanted: 9, .. }), "{error:?}");
    std::fs::write(&version, right).expect("the file is written");

    let settings = scratch.0.join("cluster/postgresql.conf");
    let text = std::fs::read_to_string(&settings).expect("it has settings");
    std::fs::write(&settings, text + "\nno_such_setting = 1\n").expect("the file is written");
    let error = start(&scratch.0).expect_err("PostgreSQL refuses the setting");
    assert!(matches!(&error, EmbeddedError::Died { tail, .. } if tail.contains("no_such_setting")), "{error}");
}

/// A process of its own that owns a durable cluster, to be killed.
struct Owner {
    process: Child,
    /// The URL of its database `postgres`.
    url: String,
}

impl Owner {
    /// Runs [`owner`] in a copy of this test program, and waits until its cluster is ready.
    fn spawn(dir: &Path) -> Owner {
        let mut process = Command::new(std::env::current_exe().expect("a program knows itself"))
            .args(["--exact", "owner", "--ignored", "--nocapture"])
            .env(OWNER_DIR, dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let url = |line: String| Some(line.split_once("owner is ready: ")?.1.to_owned());
        let url = output.lines().map_while(Result::ok).find_map(url).expect("it starts");
        Owner { process, url }
    }

    fn kill(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("it is our child");
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not a test: the program of [`Owner`]. Does nothing unless that started it.
#[test]
#[ignore = "run by another test, in a process of its own"]
fn owner() {
    let Some(dir) = std::env::var_os(OWNER_DIR) else { return };
    let cluster = Embedded::start(Path::new(&dir), None, Durability::Full).expect("the cluster starts");
    println!("owner is ready: {}", cluster.url("postgres"));
    loop {
        std::thread::park();
    }
}
