//! `tavola verify`: checks records of games, offline.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::game::{Record, RecordError};

/// Checks the record in each file and writes one line about each; answers whether all are good.
///
/// # Errors
/// The lines cannot be written.
pub fn verify(files: &[PathBuf], out: &mut impl Write) -> std::io::Result<bool> {
    let mut good = true;
    for file in files {
        match check(file) {
            Ok(record) => writeln!(out, "ok   {}: {}", file.display(), describe(&record))?,
            Err(problem) => {
                good = false;
                writeln!(out, "BAD  {}: {problem}", file.display())?;
            }
        }
    }
    Ok(good)
}

fn check(file: &Path) -> Result<Record, String> {
    let json = std::fs::read(file).map_err(|error| format!("cannot be read: {error}"))?;
    let check = || -> Result<Record, RecordError> {
        let record = Record::read(&json)?;
        record.verify()?;
        Ok(record)
    };
    check().map_err(|error| error.to_string())
}

fn describe(record: &Record) -> String {
    let winners: Vec<String> =
        record.outcome.ranking.iter().filter(|line| line.won).map(|line| line.seat.to_string()).collect();
    let won = match winners.as_slice() {
        [] => "nobody won".to_owned(),
        [seat] => format!("seat {seat} won"),
        seats => format!("seats {} won", seats.join(", ")),
    };
    format!("{}, {} players, {} moves, {won}", record.ruleset.meta().slug, record.seats.len(), record.moves.len())
}
