//! Generates the client from `openapi/openapi.json`, each time the document changes.

mod downgrade;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

const DOCUMENT: &str = "../../openapi/openapi.json";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let mut document = serde_json::from_str(&fs::read_to_string(DOCUMENT)?)?;
    downgrade::downgrade(&mut document)?;
    let document = serde_json::from_value(document)?;
    let client = progenitor::Generator::default().generate_tokens(&document)?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("client.rs"), client.to_string())?;
    Ok(())
}
