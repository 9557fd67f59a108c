//! Tavola: a server for card games played turn by turn.
//!
//! Layers, each importing only those before it: [`rulesets`] (pure rules) ← [`game`] (the pure life of one game) ←
//! [`store`] (the only SQL) ← [`http`] (the API) ← [`app`] (composition). `tests/layers.rs` checks it.

pub mod game;
pub mod rulesets;
