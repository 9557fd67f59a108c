//! The bodies of the fuzz targets, each a function of bytes that panics where a law breaks. `cargo fuzz` runs them on what it
//! makes up; `tests/corpus.rs` of the server, which includes this file, on the corpus and on mutations of it.

pub mod cursors;
pub mod input;
pub mod moves;
pub mod names;
#[path = "../../tests/contract/options.rs"]
mod options;
pub mod records;
pub mod replay;
pub mod snapshots;
pub mod table;
