//! Texts that players bring: names, names of tokens, entropy, words.

use tavola::game::{Entropy, InvalidText, PlayerKind, PlayerName, SeatStatus};
use tavola::store::{Scope, TokenName};

/// What is accepted keeps its promises, and is accepted again as what it has become.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    player_name(text);
    if let Some(name) = TokenName::parse(text) {
        shows(name.as_str(), 64);
        assert_eq!(TokenName::parse(name.as_str()), Some(name));
    }
    match Entropy::parse(text.to_owned()) {
        Ok(entropy) => {
            assert_eq!(entropy.as_str(), text, "entropy is taken as it is");
            assert!(text.chars().count() <= 64 && !text.chars().any(char::is_control));
        }
        Err(_) => assert!(text.chars().count() > 64 || text.chars().any(char::is_control)),
    }
    assert!(PlayerKind::parse(text).is_none_or(|word| word.as_str() == text));
    assert!(SeatStatus::parse(text).is_none_or(|word| word.as_str() == text));
    assert!(Scope::parse(text).is_none_or(|word| word.as_str() == text));
}

fn player_name(text: &str) {
    let Ok(name) = PlayerName::parse(text) else { return };
    shows(name.as_str(), 32);
    assert_eq!(PlayerName::parse(name.as_str()), Ok(name.clone()), "a name that was read is read again");
    let key = name.key();
    assert!(!key.is_empty() && !key.starts_with("deleted-"), "the key {key:?}");
    // The key is a name of its own, whose key it is; unless writing it out has made it too long.
    match PlayerName::parse(key) {
        Ok(again) => assert_eq!(again.key(), key, "the key of a key"),
        Err(refusal) => assert!(refusal == InvalidText::NameLength && key.chars().count() > 32, "{key:?}: {refusal}"),
    }
    for other in [text.to_ascii_uppercase(), text.to_ascii_lowercase(), text.replace(' ', "  ")] {
        // What is longer now may be too long, and is then no name.
        if let Ok(other) = PlayerName::parse(&other) {
            assert_eq!(other.key(), key, "another way to write the name");
        }
    }
}

/// A text of 1 to `longest` characters of which none is hidden.
fn shows(text: &str, longest: usize) {
    assert!((1..=longest).contains(&text.chars().count()), "{text:?} has another length");
    assert_eq!(text.trim(), text, "it is trimmed");
    let hides = |char: char| {
        char.is_control()
            || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(char, '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
            || matches!(char, '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
    };
    assert!(!text.chars().any(hides), "{text:?} has characters that do not show");
}
