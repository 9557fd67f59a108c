//! Tavola: a server for card games played turn by turn.

pub mod rulesets;
