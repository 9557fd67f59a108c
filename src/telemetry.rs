//! The log. Never tokens, seeds, states or bodies.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{LogFormat, Settings};

/// Sets the log up for the process, on standard error.
///
/// # Errors
/// The filter cannot be read, or there is a log already.
pub fn start(settings: &Settings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.log)?;
    let registry = tracing_subscriber::registry().with(filter);
    // Colours are for people who look on.
    let layer =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let done: Result<(), TryInitError> = match settings.log_format {
        LogFormat::Text => registry.with(layer).try_init(),
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
    };
    Ok(done?)
}
