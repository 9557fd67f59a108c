//! The limit: pgbench carries out the two statements of a move, with nothing around them.
//!
//! The texts of the statements are those that the server was compiled with, the bytes those of moves that were played before;
//! its games are copies of games that are being played. Parameters and results are in PostgreSQL's text format, since
//! pgbench knows no other.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

use crate::report::Counted;

/// As many different moves take turns.
const SAMPLES: usize = 8;
/// The share of transactions whose latency is kept: writing it down takes time too.
const SAMPLING: &str = "0.2";

/// What pgbench needs.
pub struct Limit {
    pgbench: PathBuf,
    options: PgConnectOptions,
    scripts: Vec<String>,
    variables: Vec<String>,
}

/// Of a move that was played: what the second statement was given.
#[derive(sqlx::FromRow)]
struct Sample {
    seat: i16,
    mv: String,
    events: String,
    snapshot: String,
    player: String,
    token: String,
}

impl Limit {
    /// Copies `games` games and chooses moves to repeat.
    pub async fn prepare(pool: &PgPool, database: &str, games: usize) -> anyhow::Result<Self> {
        for statement in [
            "create function load_game(bigint) returns uuid language sql immutable as
                 $$ select lpad(to_hex($1), 32, '0')::uuid $$",
            "create function load_key(bigint) returns uuid language sql immutable as
                 $$ select encode(int8send($1) || '\\x0001020304050607'::bytea, 'hex')::uuid $$",
            "create table load_games as
                 select id, load_game(row_number() over (order by id)) as copy from games where status = 'active'",
            "insert into games select (jsonb_populate_record(g, jsonb_build_object('id', l.copy))).*
             from games g join load_games l on l.id = g.id",
            "insert into positions (game_id, changed_at, last_move_at, to_move_since, due_at, version, moves_count, to_move_seat,
                                    remaining_ms, snapshot, check_at)
             select l.copy, changed_at, last_move_at, to_move_since, due_at, version, moves_count, to_move_seat,
                    remaining_ms, snapshot, check_at
             from positions p join load_games l on l.id = p.game_id",
            "insert into seats select (jsonb_populate_record(s, jsonb_build_object('game_id', l.copy))).*
             from seats s join load_games l on l.id = s.game_id",
            "vacuum analyze",
        ] {
            sqlx::query(statement).execute(pool).await?;
        }
        let copies: i64 = sqlx::query_scalar("select count(*) from load_games").fetch_one(pool).await?;
        ensure!(copies > games as i64 / 2, "only {copies} games are being played");
        let samples: Vec<Sample> = sqlx::query_as(
            "select m.seat, m.move::text as mv, m.events::text as events, p.snapshot::text as snapshot,
                    s.player_id::text as player,
                    (select hash::text from tokens t where t.player_id = s.player_id) as token
             from moves m
             join positions p on p.game_id = m.game_id and p.moves_count = m.number
             join seats s on s.game_id = m.game_id and s.seat = m.seat
             where p.to_move_seat is not null
             order by random() limit $1",
        )
        .bind(SAMPLES as i64)
        .fetch_all(pool)
        .await?;
        ensure!(samples.len() == SAMPLES, "only {} moves were played", samples.len());
        let (load, write) = (
            statement("left join idempotency_keys k\n            on")?,
            statement("with written as (\n            update positions")?,
        );
        let scripts = (0..SAMPLES).map(|sample| script(&load, &write, sample, copies)).collect();
        let variables = samples.iter().enumerate().flat_map(|(number, sample)| sample.variables(number)).collect();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(pool).await?;
        let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
        Ok(Self { pgbench: program.with_file_name("pgbench"), options: database.parse()?, scripts, variables })
    }

    /// Has pgbench carry out as many moves as it can, so long.
    pub fn run(&self, clients: usize, seconds: u64) -> anyhow::Result<Counted> {
        let dir = std::env::temp_dir().join(format!("tavola-pgbench-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        let counted = self.run_in(&dir, clients, seconds);
        std::fs::remove_dir_all(&dir)?;
        counted
    }

    fn run_in(&self, dir: &Path, clients: usize, seconds: u64) -> anyhow::Result<Counted> {
        let mut command = Command::new(&self.pgbench);
        let socket = self.options.get_socket().context("the cluster listens on a socket")?;
        command.current_dir(dir).args([
            "--no-vacuum",
            "--protocol=prepared",
            "--jobs=2",
            "--log",
            "--sampling-rate",
            SAMPLING,
        ]);
        command.arg(format!("--client={clients}")).arg(format!("--time={seconds}"));
        command.arg("--host").arg(socket).args(["--port=5432", "--username", self.options.get_username()]);
        let fixed = ["nothing=-", "at=now", "told_kinds={your_turn}", "told_seats={0}"];
        for variable in fixed.into_iter().chain(self.variables.iter().map(String::as_str)) {
            command.arg("--define").arg(variable);
        }
        for (number, script) in self.scripts.iter().enumerate() {
            let path = dir.join(format!("{number}.sql"));
            std::fs::write(&path, script)?;
            command.arg("--file").arg(path);
        }
        let output =
            command.arg(self.options.get_database().unwrap_or_default()).output().context("pgbench cannot be run")?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "pgbench: {said}{}", String::from_utf8_lossy(&output.stderr));
        let after = |words: &str| {
            let rest = said.split(words).nth(1).and_then(|rest| rest.split_whitespace().next());
            rest.and_then(|number| number.parse::<f64>().ok()).with_context(|| format!("pgbench does not tell {words}"))
        };
        let count = after("number of transactions actually processed: ")?;
        ensure!(after("number of failed transactions: ")? == 0.0, "pgbench failed at times: {said}");
        let mut latencies = Vec::new();
        for file in std::fs::read_dir(dir)? {
            let path = file?.path();
            if path.to_string_lossy().contains("pgbench_log") {
                let lines = std::fs::read_to_string(path)?;
                // The third column is in microseconds.
                let column = lines.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<f64>().ok());
                latencies.extend(column.map(|micros| micros / 1e3));
            }
        }
        Ok(Counted { count: count as usize, seconds: count / after("tps = ")?, latencies })
    }
}

impl Sample {
    /// As definitions for pgbench.
    fn variables(&self, number: usize) -> [String; 6] {
        let Self { seat, mv, events, snapshot, player, token } = self;
        [
            format!("seat_{number}={seat}"),
            format!("move_{number}={mv}"),
            format!("events_{number}={events}"),
            format!("snapshot_{number}={snapshot}"),
            format!("players_{number}={{{player}}}"),
            format!("token_{number}={token}"),
        ]
    }
}

/// A statement that the server was compiled with, by what only it contains.
fn statement(marker: &str) -> anyhow::Result<String> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx"))? {
        let data: serde_json::Value = serde_json::from_slice(&std::fs::read(file?.path())?)?;
        found.extend(data["query"].as_str().filter(|query| query.contains(marker)).map(str::to_owned));
    }
    ensure!(found.len() == 1, "{} statements contain {marker}", found.len());
    Ok(found.remove(0))
}

/// One move as pgbench is to carry it out.
fn script(load: &str, write: &str, sample: usize, games: i64) -> String {
    let nothing = |kind: &str| format!("nullif(:nothing, '-')::{kind}");
    let of = |name: &str| format!(":{name}_{sample}");
    // What the game has by way of a deadline, put off, as a move does.
    let due = "(nullif(:due_at::text, '')::timestamptz + interval '1 second')".to_owned();
    let game = "load_game(:game)".to_owned();
    let parameters = [
        game.clone(),
        ":version".into(),
        ":next".into(),
        ":number".into(),
        of("seat"),
        ":at".into(),
        ":at".into(),
        due.clone(),
        nothing("bigint[]"),
        of("snapshot"),
        of("seat"),
        of("move"),
        of("events"),
        of("players"),
        ":told_kinds".into(),
        ":told_seats".into(),
        due,
        "load_key(:key)".into(),
        "load_key(:game)".into(),
    ];
    let mut script = format!("\\set game random(1, {games})\n\\set key random(1, 9000000000000000000)\n");
    script += &plain_names(&replaced(load, &[game, of("token"), "load_key(:key)".into()]));
    script += " \\gset\n\\set next :version + 1\n\\set number :moves_count + 1\n";
    script += &replaced(write, &parameters);
    script + ";\n"
}

/// A statement with values in the place of its parameters.
fn replaced(statement: &str, values: &[String]) -> String {
    let mut parts = statement.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let place: usize = part[..digits].parse().unwrap_or_default();
        text += &values[place - 1];
        text += &part[digits..];
    }
    text
}

/// A statement whose columns have no marks of the driver's in their names, which pgbench could not read.
fn plain_names(statement: &str) -> String {
    let quoted = statement.split('"').enumerate().map(|(number, part)| {
        let name = || part.split([':', '?', '!']).next().unwrap_or_default();
        if number.is_multiple_of(2) { part.to_owned() } else { format!("\"{}\"", name()) }
    });
    quoted.collect()
}
