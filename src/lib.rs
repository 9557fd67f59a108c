//! Tavola: a server for card games played turn by turn.
//!
//! Layers, each importing only those before it: [`rulesets`] (pure rules) ← [`game`] (the pure life of one game) ←
//! [`store`] (the only SQL) ← [`http`] (the API) and [`workers`] ← [`app`] (composition). `tests/layers.rs` checks it.
//! [`webhook`], below [`store`], is what webhooks are made of; [`metrics`], below it too, is what a server counts of itself. [`simulate`], a command of its own, stands on the rulesets alone;
//! [`seeding`], another, on game and store.
//! [`recompute`], another one, on [`store`].

pub mod app;
pub mod config;
pub mod embedded;
pub mod game;
pub mod http;
pub mod metrics;
pub mod recompute;
#[macro_use]
pub mod rulesets;
pub mod seeding;
pub mod simulate;
pub mod store;
pub mod telemetry;
pub mod verify;
pub mod webhook;
pub mod workers;
