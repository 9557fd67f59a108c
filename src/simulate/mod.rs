//! Games between random players, as many and as fast as the engine can, and what they show (`tavola simulate`).
//!
//! Beside `app`: of the crate only the rulesets and the settings are used here. Everything printed to standard output
//! follows from the seed, whatever the number of threads; what depends on the machine goes to standard error, in JSON into
//! the member `speed`.

mod play;
mod report;
pub(crate) mod statistics;

use std::io::{self, Write};
use std::time::Instant;

use crate::config::Simulation;
use crate::rulesets::registry::{InvalidOptions, RulesetId};

use report::Report;

/// Why there was no simulation.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    #[error("--seats: {slug} is played by {from} to {to}", slug = .0.meta().slug, from = .0.meta().seats.start(), to = .0.meta().seats.end())]
    Seats(RulesetId),
    #[error("--options: {}", told(.0))]
    Options(InvalidOptions),
    #[error("cannot write the result")]
    Output(#[from] io::Error),
}

/// Every option that was refused, as `/name: why`.
fn told(InvalidOptions(errors): &InvalidOptions) -> String {
    errors.iter().map(|(pointer, detail)| format!("{pointer}: {detail}")).collect::<Vec<_>>().join("; ")
}

/// Plays the games and prints what they show.
///
/// # Errors
/// Seats or options that do not suit the ruleset; nothing was played then. The result could not be written.
pub fn run(settings: &Simulation) -> Result<(), SimulateError> {
    let id = settings.ruleset;
    let seats = settings.seats.unwrap_or_else(|| 2.max(*id.meta().seats.start()));
    if !id.meta().seats.contains(&seats) {
        return Err(SimulateError::Seats(id));
    }
    let options = id.options(&settings.options, seats).map_err(SimulateError::Options)?.to_json();
    let threads = match settings.threads {
        Some(threads) => threads.get(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };

    let start = Instant::now();
    let tally = with_ruleset!(id, R => {
        let resolved = serde_json::from_value(options.clone().into()).expect("resolved options are options");
        play::games::<R>(&resolved, seats, settings.seed, settings.games, threads)
    });
    let speed = report::Speed::new(start.elapsed(), tally.decisions(), threads);
    let report = Report::new(settings, seats, options, &tally);

    let mut out = io::stdout().lock();
    if settings.json {
        serde_json::to_writer_pretty(&mut out, &report::Timed { report: &report, speed }).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        eprintln!("{speed}");
        write!(out, "{report}")?;
    }
    out.flush()?;
    Ok(())
}
