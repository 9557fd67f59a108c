//! Tables.

use std::fmt;

use crate::measure::{Used, percentile};
use crate::players::Played;

/// One measurement. Latencies are in milliseconds.
pub struct Row {
    name: &'static str,
    clients: usize,
    used: Used,
    count: f64,
    latencies: [f64; 3],
    /// How many the latencies stand for; pgbench samples them.
    per_second: f64,
}

/// How many there were in how long, and how long each took, in milliseconds.
pub struct Counted {
    pub count: usize,
    pub seconds: f64,
    pub latencies: Vec<f64>,
}

impl Row {
    /// What `counted` used.
    pub fn new(name: &'static str, clients: usize, used: Used, mut counted: Counted) -> Self {
        counted.latencies.sort_by(f64::total_cmp);
        let latencies = [0.5, 0.95, 0.99].map(|share| percentile(&counted.latencies, share));
        let count = counted.count as f64;
        Self { name, clients, used, count, latencies, per_second: count / counted.seconds }
    }

    fn each(&self, seconds: f64) -> f64 {
        seconds * 1e6 / self.count
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p95, p99] = self.latencies;
        write!(
            f,
            "| {} | {} | {:.0} | {p50:.2} | {p95:.2} | {p99:.2} | {:.0} | {:.0} | {:.0} | {:.3} |",
            self.name,
            self.clients,
            self.per_second,
            self.each(self.used.server_cpu),
            self.each(self.used.database_cpu),
            self.used.wal_bytes / self.count,
            self.used.commits / self.count,
        )
    }
}

const HEAD: &str =
    "| | clients | a second | p50 ms | p95 ms | p99 ms | server CPU µs | PostgreSQL CPU µs | WAL bytes | commits |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// The median over the rounds of one figure.
fn median(rows: &[&Row], figure: impl Fn(&Row) -> f64) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| figure(row)).collect();
    values.sort_by(f64::total_cmp);
    percentile(&values, 0.5)
}

/// Moves of the server against pgbench's, and what the one is of the other.
pub fn moves(rows: &[Row]) {
    println!("Moves, each measurement; CPU, WAL and commits are for one move.\n\n{HEAD}");
    rows.iter().for_each(|row| println!("{row}"));
    compare(rows, "server", "pgbench");
}

/// Conditional reads of the server against those of the bare handler.
pub fn conditional(rows: &[Row]) {
    println!("`GET /v1/games/{{id}}` with `If-None-Match`, each measurement.\n\n{HEAD}");
    rows.iter().for_each(|row| println!("{row}"));
    compare(rows, "server", "bare handler");
}

fn compare(rows: &[Row], one: &str, other: &str) {
    println!("\n| clients | {one} / {other}: a second | p99 | PostgreSQL CPU |\n| --- | --- | --- | --- |");
    let mut counts: Vec<usize> = rows.iter().map(|row| row.clients).collect();
    counts.dedup();
    for clients in counts {
        let of = |name: &str| -> Vec<&Row> {
            rows.iter().filter(|row| row.clients == clients && row.name == name).collect()
        };
        let (these, those) = (of(one), of(other));
        let ratio = |figure: &dyn Fn(&Row) -> f64| median(&these, figure) / median(&those, figure);
        println!(
            "| {clients} | {:.2} | {:.2} | {:.2} |",
            ratio(&|row| row.per_second),
            ratio(&|row| row.latencies[2]),
            ratio(&|row| row.each(row.used.database_cpu)),
        );
    }
    println!();
}

/// What players ask who know nothing beforehand.
pub fn mix(clients: usize, used: &Used, played: Played) {
    let moves = played.moves.count as f64;
    println!(
        "{clients} players who look, list their moves and move: {:.0} moves a second, {:.0} µs of the server and {:.0} µs of PostgreSQL a move with what goes before it.\n",
        moves / played.moves.seconds,
        used.server_cpu * 1e6 / moves,
        used.database_cpu * 1e6 / moves,
    );
    println!("| endpoint | p50 ms | p95 ms | p99 ms |\n| --- | --- | --- | --- |");
    let endpoints = [
        ("GET /v1/games/{id}", played.looks),
        ("GET /v1/games/{id}/legal-moves", played.lists),
        ("POST /v1/games/{id}/moves", played.moves.latencies),
    ];
    for (endpoint, mut latencies) in endpoints {
        latencies.sort_by(f64::total_cmp);
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| percentile(&latencies, share));
        println!("| `{endpoint}` | {p50:.2} | {p95:.2} | {p99:.2} |");
    }
    println!();
}
