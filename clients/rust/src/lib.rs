//! The client, as progenitor writes it from the OpenAPI document when the crate is built: `Client` with a method for each
//! operation, and `types`.

// What is generated is not held to the rules for what is written.
#![allow(warnings, clippy::all, clippy::pedantic)]

include!(concat!(env!("OUT_DIR"), "/client.rs"));
