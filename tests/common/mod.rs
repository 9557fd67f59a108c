//! What several test binaries need.
#![allow(dead_code, reason = "each binary uses its part")]

use std::path::PathBuf;

/// Goldens are rewritten on request only (`make goldens`); the diff is reviewed like code.
pub fn goldens_wanted() -> bool {
    std::env::var("TAVOLA_GOLDENS").is_ok_and(|value| value == "write")
}

/// A file or folder under `tests/`.
pub fn tests_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 32 bytes from hex.
pub fn unhex(text: &str) -> [u8; 32] {
    assert_eq!(text.len(), 64, "32 bytes in hex");
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex digits"))
}
