//! `tavola recompute-ratings`: computes all ratings anew, from an export or from the database's games, and compares.
//!
//! Beside `app`. Every number must be the same to its last digit; see `game::rating` for what that depends on.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

use crate::config::Recomputation;
use crate::game::rating::{Ledger, Rating};
use crate::game::{PlayerKind, Record};
use crate::rulesets::Ranked;
use crate::rulesets::registry::RulesetId;
use crate::store::Store;

/// How many differences are printed.
const MOST: u64 = 20;

/// What the last line of an export is called.
const TRAILER: &str = "tavola-export-trailer/";

/// What a line of an export begins to tell.
#[derive(Deserialize)]
struct Line {
    format: String,
}

/// What of a record ratings are about.
struct Rated {
    number: u64,
    game_id: Uuid,
    ruleset: RulesetId,
    pool: PlayerKind,
    players: Vec<Uuid>,
    ranking: Vec<Ranked>,
    recorded: Vec<(Rating, Rating)>,
}

/// Prints the first differences and counts them all.
struct Differences<'a, W> {
    out: &'a mut W,
    count: u64,
    failed: Option<std::io::Error>,
}

impl<W: Write> Differences<'_, W> {
    fn tell(&mut self, what: &str) {
        self.count += 1;
        if self.count <= MOST && self.failed.is_none() {
            self.failed = writeln!(self.out, "{what}").err();
        }
    }

    fn finish(self, games: u64, rewritten: bool) -> anyhow::Result<bool> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        if self.count > MOST {
            writeln!(self.out, "… and {} more", self.count - MOST)?;
        }
        let what = match (self.count, rewritten) {
            (0, _) => "all ratings are as computed".to_owned(),
            (count, true) => format!("{count} differences, rewritten"),
            (count, false) => format!("{count} differences"),
        };
        writeln!(self.out, "{games} rated games: {what}")?;
        Ok(self.count == 0 || rewritten)
    }
}

/// Does what the command line says and prints to `out`; answers whether all is well: nothing differs, or it has been rewritten.
///
/// # Errors
/// The export or the database cannot be read, or the database not be written; nothing has changed then.
pub async fn run(settings: &Recomputation, out: &mut impl Write) -> anyhow::Result<bool> {
    let mut differences = Differences { out, count: 0, failed: None };
    if let Some(file) = &settings.export {
        let games = check_export(file, |what| differences.tell(what))?;
        return differences.finish(games, false);
    }
    let Some(url) = &settings.database_url else { bail!("name an export, or the database in DATABASE_URL") };
    let options: PgConnectOptions = url.parse().context("DATABASE_URL cannot be read")?;
    let store = Store::open(options, 1);
    store.check_sessions().await?;
    ensure!(store.is_ready().await?, "the database lacks migrations: run `tavola migrate`");
    let games = store.recompute_ratings(!settings.check, |difference| differences.tell(&difference.0)).await?;
    store.close().await;
    differences.finish(games, !settings.check)
}

/// Computes all ratings from the records of an export, which has to be of all rated games; answers how many games there are.
///
/// # Errors
/// The file cannot be read, or a line of it is no record.
pub fn check_export(file: &Path, mut differs: impl FnMut(&str)) -> anyhow::Result<u64> {
    let reader = BufReader::new(File::open(file).with_context(|| file.display().to_string())?);
    let mut games = Vec::new();
    for (number, line) in (1..).zip(reader.lines()) {
        let line = line.with_context(|| format!("line {number} cannot be read"))?;
        if line.trim().is_empty() {
            continue;
        }
        games.extend(rated(&line).with_context(|| format!("line {number}"))?);
    }
    games.sort_by_key(|game| game.number);
    let mut ledger = Ledger::default();
    for game in &games {
        let id = game.game_id;
        let Some(computed) = ledger.count(game.ruleset, game.pool, &game.players, &game.ranking) else {
            differs(&format!("game {id}: the ranking is not that of its players"));
            continue;
        };
        if game.recorded.len() != computed.len() {
            differs(&format!("game {id}: not all seats are rated"));
        }
        for (seat, (recorded, computed)) in game.recorded.iter().zip(&computed).enumerate() {
            if recorded != computed {
                differs(&format!("game {id}, seat {seat}: recorded {recorded:?}, computed {computed:?}"));
            }
        }
    }
    Ok(games.len() as u64)
}

/// What a line says about ratings; none if it is a trailer or the record of a game that was not rated.
fn rated(line: &str) -> anyhow::Result<Option<Rated>> {
    let Line { format } = serde_json::from_str(line)?;
    if format.starts_with(TRAILER) {
        return Ok(None);
    }
    let record = Record::read(line.as_bytes())?;
    let Some(rating) = record.rating else { return Ok(None) };
    Ok(Some(Rated {
        number: rating.number,
        game_id: record.game_id,
        ruleset: record.ruleset,
        pool: rating.pool,
        players: record.seats.iter().map(|taken| taken.player.id).collect(),
        ranking: record.outcome.ranking,
        recorded: rating.seats.iter().map(|rated| (rated.before, rated.after)).collect(),
    }))
}
