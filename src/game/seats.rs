//! Who sits at a table, and the texts they bring: names and entropy, checked once.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::rulesets::Seat;

/// An account, as everybody may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player {
    pub id: Uuid,
    pub name: String,
    pub kind: PlayerKind,
}

/// What kind of player an account is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlayerKind {
    /// A person.
    #[default]
    Human,
    /// A playing program.
    Bot,
}

impl PlayerKind {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            PlayerKind::Human => "human",
            PlayerKind::Bot => "bot",
        }
    }

    /// The kind of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [PlayerKind::Human, PlayerKind::Bot].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A player in a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatedPlayer {
    pub seat: Seat,
    pub player: Player,
    pub entropy: Entropy,
    pub status: SeatStatus,
    /// The game's version once they had left, which is the order of leaving; none while they play.
    pub left_at_version: Option<u32>,
    /// Whether they want to call the game off.
    pub wants_abort: bool,
}

impl SeatedPlayer {
    /// Somebody who has just sat down.
    pub fn new(seat: Seat, player: Player, entropy: Entropy) -> Self {
        Self { seat, player, entropy, status: SeatStatus::Playing, left_at_version: None, wants_abort: false }
    }
}

/// A seat that is kept for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub seat: Seat,
    pub player: Player,
    pub expires_at: OffsetDateTime,
}

/// Whether a seat's player still plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeatStatus {
    Playing,
    /// They gave up; where the game goes on, a bot plays for them.
    Resigned,
    /// They overstepped the clock; likewise.
    TimedOut,
}

impl SeatStatus {
    /// The word in SQL and HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            SeatStatus::Playing => "playing",
            SeatStatus::Resigned => "resigned",
            SeatStatus::TimedOut => "timed_out",
        }
    }

    /// The status of that name.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [SeatStatus::Playing, SeatStatus::Resigned, SeatStatus::TimedOut];
        all.into_iter().find(|status| status.as_str() == word)
    }
}

/// Why a text is refused; for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    #[error("a name has 1 to 32 characters, spaces at the ends not counted")]
    NameLength,
    #[error("a name has no control, invisible or text-direction characters")]
    NameCharacter,
    #[error("names that begin with 'deleted-' are kept for accounts that have left")]
    NameReserved,
    #[error("entropy has at most 64 characters")]
    EntropyLength,
    #[error("entropy has no control characters")]
    EntropyCharacter,
}

/// A name that an account can have: trimmed, NFC, 1–32 visible characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerName {
    text: String,
    key: String,
}

/// Letters and marks that show nothing although their category says otherwise, and what stands for a character that was lost.
const INVISIBLE: [char; 7] = ['\u{34f}', '\u{115f}', '\u{1160}', '\u{2800}', '\u{3164}', '\u{ffa0}', '\u{fffd}'];

impl PlayerName {
    const LONGEST: usize = 32;

    /// Reads a name.
    ///
    /// # Errors
    /// Empty or too long after trimming; control, zero-width, bidi or other invisible characters; a reserved name.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let text: String = text.trim().nfc().collect();
        if !(1..=Self::LONGEST).contains(&text.chars().count()) {
            return Err(InvalidText::NameLength);
        }
        if text.chars().any(|c| !is_visible(c)) {
            return Err(InvalidText::NameCharacter);
        }
        // Compatibility forms and case make no second name: NFKC, lower case, spaces as one.
        let folded: String = text.nfkc().flat_map(char::to_lowercase).nfkc().collect();
        let key = folded.split_whitespace().collect::<Vec<_>>().join(" ");
        if key.is_empty() {
            return Err(InvalidText::NameLength);
        }
        if key.starts_with("deleted-") {
            return Err(InvalidText::NameReserved);
        }
        Ok(Self { text, key })
    }

    /// As it is shown.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What two names have in common that differ only by case, width or the like.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Whether a character shows as something, a space included.
pub(crate) fn is_visible(c: char) -> bool {
    use GeneralCategory as G;
    let hidden = matches!(
        c.general_category(),
        G::Control
            | G::Format
            | G::Surrogate
            | G::PrivateUse
            | G::Unassigned
            | G::LineSeparator
            | G::ParagraphSeparator
    );
    // Variation selectors choose between looks of the character before them and show nothing themselves.
    let selector = matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{180b}'..='\u{180f}' | '\u{e0100}'..='\u{e01ef}');
    !hidden && !selector && !INVISIBLE.contains(&c)
}

/// What a player adds to the chance of a game (fairness 2): taken as it is, public.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entropy(String);

impl Entropy {
    /// Reads entropy.
    ///
    /// # Errors
    /// More than 64 characters, or control characters.
    pub fn parse(text: String) -> Result<Self, InvalidText> {
        if text.chars().count() > 64 {
            return Err(InvalidText::EntropyLength);
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidText::EntropyCharacter);
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_normalised() {
        let name = PlayerName::parse("  Ame\u{301}lie ").unwrap();
        assert_eq!(name.as_str(), "Amélie");
        assert_eq!(PlayerName::parse("x".repeat(32).as_str()).unwrap().as_str().len(), 32);
    }

    #[test]
    fn names_that_look_alike_have_one_key() {
        let key = |name| PlayerName::parse(name).unwrap().key().to_owned();
        assert_eq!(key("ADA"), key("ada"));
        assert_eq!(key("Ａda"), key("ada"));
        assert_eq!(key("Ada\u{a0}B"), key("ada  b"));
        assert_eq!(key("ЁЖ"), key("ёж"));
    }

    #[test]
    fn invisible_and_reserved_names_are_refused() {
        for name in ["", "   ", &"x".repeat(33)] {
            assert_eq!(PlayerName::parse(name), Err(InvalidText::NameLength), "{name:?}");
        }
        for c in
            ['\0', '\n', '\u{200b}', '\u{200d}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{3164}', '\u{fe0f}', '\u{ad}']
        {
            assert_eq!(PlayerName::parse(&format!("a{c}b")), Err(InvalidText::NameCharacter), "{c:?}");
        }
        assert_eq!(PlayerName::parse("Deleted-1"), Err(InvalidText::NameReserved));
    }

    #[test]
    fn entropy_is_taken_as_it_is() {
        assert_eq!(Entropy::parse("  ключ ".into()).unwrap().as_str(), "  ключ ");
        assert_eq!(Entropy::parse("é".repeat(64)).unwrap().as_str().chars().count(), 64);
        assert_eq!(Entropy::parse("é".repeat(65)), Err(InvalidText::EntropyLength));
        assert_eq!(Entropy::parse("a\tb".into()), Err(InvalidText::EntropyCharacter));
    }
}
