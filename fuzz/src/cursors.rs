//! Places in lists and logs as text: the first byte chooses of what, the rest is the text.

use tavola::http::cursors::{KINDS, rewritten};

/// A place is read only from the text that is written for it.
pub fn run(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let kind = KINDS[usize::from(*choice) % KINDS.len()];
    if let Some(written) = rewritten(kind, text) {
        assert_eq!(written, text, "a place of {kind}");
    }
}
