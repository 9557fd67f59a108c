//! The command line: reads the settings, builds, runs. No logic.

use std::process::ExitCode;

use clap::Parser;
use tavola::config::{Cli, Command};
use tavola::simulate::{self, SimulateError};
use tavola::{app, http, recompute, telemetry, verify};

/// Takes less time than the system's, and keeps less of what was in use once.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[actix_web::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command.unwrap_or(Command::Serve(cli.serve)) {
        Command::Serve(settings) => match telemetry::start(&settings) {
            Ok(()) => app::serve(&settings).await,
            Err(error) => Err(error),
        },
        Command::Migrate(settings) => app::migrate(&settings).await,
        Command::SeedHistory(seeding) => app::seed_history(&seeding).await,
        Command::RebuildStats(settings) => app::rebuild_stats(&settings).await,
        Command::Openapi => {
            print!("{}", http::openapi::pretty());
            Ok(())
        }
        Command::Verify { files } => match verify::verify(&files, &mut std::io::stdout()) {
            Ok(true) => Ok(()),
            Ok(false) => return ExitCode::FAILURE,
            Err(error) => Err(error.into()),
        },
        Command::RecomputeRatings(settings) => match recompute::run(&settings, &mut std::io::stdout()).await {
            Ok(true) => Ok(()),
            Ok(false) => return ExitCode::FAILURE,
            Err(error) => Err(error),
        },
        Command::Simulate(settings) => simulate::run(&settings).map_err(anyhow::Error::from),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tavola: {error:#}");
            match error.downcast_ref() {
                // As for any other argument that is refused.
                Some(SimulateError::Seats(_) | SimulateError::Options(_)) => ExitCode::from(2),
                Some(SimulateError::Output(_)) | None => ExitCode::FAILURE,
            }
        }
    }
}
