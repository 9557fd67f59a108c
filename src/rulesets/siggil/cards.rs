//! The cards of Siggil (S1): 49 numbered cards in seven families, seven spirits, and sets of them.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use crate::rulesets::{CardFace, Term, Text};

/// Families, and numbers in each of them.
const FAMILIES: usize = Spirit::COUNT;

coded! {
    /// A spirit, named after its family. Its number is its place in this list, from 1 (S1).
    Spirit, schema "SiggilSpirit", ["leaf", "feather", "shell", "turtle", "flame", "moon", "root"]
}

coded! {
    /// A numbered card: family and number (S1).
    Card, schema "SiggilCard", [
        "leaf-1", "leaf-2", "leaf-3", "leaf-4", "leaf-5", "leaf-6", "leaf-7",
        "feather-1", "feather-2", "feather-3", "feather-4", "feather-5", "feather-6", "feather-7",
        "shell-1", "shell-2", "shell-3", "shell-4", "shell-5", "shell-6", "shell-7",
        "turtle-1", "turtle-2", "turtle-3", "turtle-4", "turtle-5", "turtle-6", "turtle-7",
        "flame-1", "flame-2", "flame-3", "flame-4", "flame-5", "flame-6", "flame-7",
        "moon-1", "moon-2", "moon-3", "moon-4", "moon-5", "moon-6", "moon-7",
        "root-1", "root-2", "root-3", "root-4", "root-5", "root-6", "root-7",
    ]
}

coded! {
    /// What can lie in the sigil: a numbered card or a spirit.
    SigilCard, schema "SiggilSigilCard", [
        "leaf-1", "leaf-2", "leaf-3", "leaf-4", "leaf-5", "leaf-6", "leaf-7",
        "feather-1", "feather-2", "feather-3", "feather-4", "feather-5", "feather-6", "feather-7",
        "shell-1", "shell-2", "shell-3", "shell-4", "shell-5", "shell-6", "shell-7",
        "turtle-1", "turtle-2", "turtle-3", "turtle-4", "turtle-5", "turtle-6", "turtle-7",
        "flame-1", "flame-2", "flame-3", "flame-4", "flame-5", "flame-6", "flame-7",
        "moon-1", "moon-2", "moon-3", "moon-4", "moon-5", "moon-6", "moon-7",
        "root-1", "root-2", "root-3", "root-4", "root-5", "root-6", "root-7",
        "spirit:leaf", "spirit:feather", "spirit:shell", "spirit:turtle", "spirit:flame", "spirit:moon", "spirit:root",
    ]
}

/// The two kinds of [`SigilCard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Card(Card),
    Spirit(Spirit),
}

impl SigilCard {
    /// The numbered card or the spirit that it is.
    pub fn kind(self) -> Kind {
        match self.index().checked_sub(Card::COUNT) {
            None => Kind::Card(Card::at(self.index())),
            Some(spirit) => Kind::Spirit(Spirit::at(spirit)),
        }
    }

    /// The numbered card, unless it is a spirit.
    pub fn card(self) -> Option<Card> {
        match self.kind() {
            Kind::Card(card) => Some(card),
            Kind::Spirit(_) => None,
        }
    }

    /// The spirit, unless it is a numbered card.
    pub fn spirit(self) -> Option<Spirit> {
        match self.kind() {
            Kind::Card(_) => None,
            Kind::Spirit(spirit) => Some(spirit),
        }
    }
}

impl From<Card> for SigilCard {
    fn from(card: Card) -> Self {
        SigilCard::at(card.index())
    }
}

impl From<Spirit> for SigilCard {
    fn from(spirit: Spirit) -> Self {
        SigilCard::at(Card::COUNT + spirit.index())
    }
}

/// What the cards of a set have in common with its spirit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SiggilSetKind)]
pub enum By {
    /// All are of the spirit's family.
    Family,
    /// All have the spirit's number.
    Number,
}

impl By {
    /// Both kinds.
    pub const ALL: [By; 2] = [By::Family, By::Number];

    /// The seven cards that sets of this kind for that spirit are made of.
    pub fn cards(self, spirit: Spirit) -> CardSet {
        // Leaf's, then moved: a family is a run of seven cards, a number is every seventh card.
        const LEAVES: u64 = 0b111_1111;
        const ONES: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35 | 1 << 42;
        match self {
            By::Family => CardSet(LEAVES << (FAMILIES * spirit.index())),
            By::Number => CardSet(ONES << spirit.index()),
        }
    }
}

/// A set of numbered cards. In JSON the list of their codes in catalogue order; a code that is given twice is refused. Sets
/// are ordered by their last card, then by the one before it, and so on.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardSet(u64);

impl CardSet {
    /// All 49.
    pub const ALL: CardSet = CardSet((1 << Card::COUNT) - 1);

    /// Whether the card is in it.
    pub fn contains(self, card: Card) -> bool {
        self.0 & 1 << card.index() != 0
    }

    /// Adds a card.
    pub fn insert(&mut self, card: Card) {
        self.0 |= 1 << card.index();
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The cards that are in both.
    pub fn and(self, other: CardSet) -> CardSet {
        CardSet(self.0 & other.0)
    }

    /// The cards that are in either.
    pub fn or(self, other: CardSet) -> CardSet {
        CardSet(self.0 | other.0)
    }

    /// The cards that are in this one but not in `other`.
    pub fn without(self, other: CardSet) -> CardSet {
        CardSet(self.0 & !other.0)
    }

    /// The cards in catalogue order.
    pub fn iter(self) -> impl Iterator<Item = Card> {
        ones(self.0).map(|index| Card::at(usize::from(index)))
    }

    /// Every subset of `count` cards, at least one, in ascending order. Walks all subsets, so meant for the seven cards of
    /// a family or a number.
    pub fn subsets(self, count: usize) -> impl Iterator<Item = CardSet> {
        let all = self.0;
        let mut subset = 0u64;
        std::iter::from_fn(move || {
            loop {
                // Counts upwards in the bits of `all` alone; back at zero after the last.
                subset = subset.wrapping_sub(all) & all;
                if subset == 0 {
                    return None;
                }
                if subset.count_ones() as usize == count {
                    return Some(CardSet(subset));
                }
            }
        })
    }
}

impl FromIterator<Card> for CardSet {
    fn from_iter<I: IntoIterator<Item = Card>>(cards: I) -> Self {
        let mut set = CardSet::default();
        cards.into_iter().for_each(|card| set.insert(card));
        set
    }
}

impl fmt::Debug for CardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for CardSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_seq(self.iter()) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for CardSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Codes;
        impl<'de> Visitor<'de> for Codes {
            type Value = CardSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of different cards")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut codes: A) -> Result<CardSet, A::Error> {
                let mut cards = CardSet::default();
                while let Some(card) = codes.next_element::<Card>()? {
                    if cards.contains(card) {
                        return Err(A::Error::custom(format_args!("{card} is given twice")));
                    }
                    cards.insert(card);
                }
                Ok(cards)
            }
        }
        if deserializer.is_human_readable() {
            return deserializer.deserialize_seq(Codes);
        }
        let set = CardSet(u64::deserialize(deserializer)?);
        if set.without(CardSet::ALL).is_empty() { Ok(set) } else { Err(D::Error::custom("no such card")) }
    }
}

/// A set of spirits, for states and snapshots; views list the codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct SpiritSet(u8);

impl From<SpiritSet> for u8 {
    fn from(set: SpiritSet) -> Self {
        set.0
    }
}

impl TryFrom<u8> for SpiritSet {
    type Error = &'static str;

    fn try_from(mask: u8) -> Result<Self, Self::Error> {
        if mask & !SpiritSet::ALL.0 == 0 { Ok(SpiritSet(mask)) } else { Err("no such spirit") }
    }
}

impl SpiritSet {
    /// All seven.
    pub const ALL: SpiritSet = SpiritSet((1 << Spirit::COUNT) - 1);

    /// Whether the spirit is in it.
    pub fn contains(self, spirit: Spirit) -> bool {
        self.0 & 1 << spirit.index() != 0
    }

    /// Adds a spirit.
    pub fn insert(&mut self, spirit: Spirit) {
        self.0 |= 1 << spirit.index();
    }

    /// Takes a spirit out.
    pub fn remove(&mut self, spirit: Spirit) {
        self.0 &= !(1 << spirit.index());
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The spirits that are in this one but not in `other`.
    pub fn without(self, other: SpiritSet) -> SpiritSet {
        SpiritSet(self.0 & !other.0)
    }

    /// The spirits in catalogue order.
    pub fn iter(self) -> impl Iterator<Item = Spirit> {
        ones(self.0.into()).map(|index| Spirit::at(usize::from(index)))
    }
}

impl FromIterator<Spirit> for SpiritSet {
    fn from_iter<I: IntoIterator<Item = Spirit>>(spirits: I) -> Self {
        let mut set = SpiritSet::default();
        spirits.into_iter().for_each(|spirit| set.insert(spirit));
        set
    }
}

/// The places of the bits that are set, lowest first.
pub(super) fn ones(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros() as u8);
        mask &= mask.wrapping_sub(1);
        lowest
    })
}

/// Names of the families, by family.
const FAMILY_NAMES: [Text; FAMILIES] = [
    Text { en: "leaf", ru: "лист" },
    Text { en: "feather", ru: "перо" },
    Text { en: "shell", ru: "раковина" },
    Text { en: "turtle", ru: "черепаха" },
    Text { en: "flame", ru: "пламя" },
    Text { en: "moon", ru: "луна" },
    Text { en: "root", ru: "корень" },
];

/// Names of the spirits, by family.
const SPIRIT_NAMES: [Text; FAMILIES] = [
    Text { en: "spirit of the leaf", ru: "дух листа" },
    Text { en: "spirit of the feather", ru: "дух пера" },
    Text { en: "spirit of the shell", ru: "дух раковины" },
    Text { en: "spirit of the turtle", ru: "дух черепахи" },
    Text { en: "spirit of the flame", ru: "дух пламени" },
    Text { en: "spirit of the moon", ru: "дух луны" },
    Text { en: "spirit of the root", ru: "дух корня" },
];

/// The numbers, as codes and as names in every language.
const NUMBERS: [&str; FAMILIES] = ["1", "2", "3", "4", "5", "6", "7"];

/// Kinds of things that cards and moves speak of.
pub(super) fn terms() -> [(&'static str, Vec<Term>); 3] {
    let named = |names: [Text; FAMILIES]| {
        Spirit::all().zip(names).map(|(spirit, name)| Term { code: spirit.code(), name }).collect()
    };
    let numbers = NUMBERS.iter().map(|number| Term { code: number, name: Text { en: number, ru: number } });
    [("family", named(FAMILY_NAMES)), ("number", numbers.collect()), ("spirit", named(SPIRIT_NAMES))]
}

/// The faces of all 56 cards with their names.
pub(super) fn card_faces() -> Vec<CardFace> {
    SigilCard::all()
        .map(|face| {
            let (family, number, spirit) = match face.kind() {
                Kind::Card(card) => (card.index() / FAMILIES, card.index() % FAMILIES, None),
                Kind::Spirit(spirit) => (spirit.index(), spirit.index(), Some(spirit)),
            };
            let (name_en, name_ru) = if spirit.is_some() {
                let Text { en, ru } = SPIRIT_NAMES[family];
                (en.to_owned(), ru.to_owned())
            } else {
                let Text { en, ru } = FAMILY_NAMES[family];
                (format!("{en} {}", NUMBERS[number]), format!("{ru} {}", NUMBERS[number]))
            };
            let tied_to = [("family", Spirit::at(family).code()), ("number", NUMBERS[number])].into_iter();
            let shows = tied_to.chain(spirit.map(|spirit| ("spirit", spirit.code()))).collect();
            CardFace { code: face.code(), name_en, name_ru, copies: 1, shows }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s01_codes_name_family_number_and_spirit() {
        for (i, card) in Card::all().enumerate() {
            assert_eq!(card.code(), format!("{}-{}", Spirit::at(i / 7), i % 7 + 1));
            assert_eq!((SigilCard::from(card).code(), SigilCard::from(card).kind()), (card.code(), Kind::Card(card)));
        }
        for spirit in Spirit::all() {
            assert_eq!(SigilCard::from(spirit).code(), format!("spirit:{spirit}"));
            assert_eq!(SigilCard::from(spirit).kind(), Kind::Spirit(spirit));
        }
        assert_eq!((Card::COUNT, SigilCard::COUNT, card_faces().len()), (49, 56, 56));
    }

    #[test]
    fn s01_a_spirit_is_tied_to_one_family_and_one_number() {
        for spirit in Spirit::all() {
            let codes = |by: By| by.cards(spirit).iter().map(Card::code).collect::<Vec<_>>();
            let number = format!("-{}", spirit.index() + 1);
            assert!(codes(By::Family).len() == 7 && codes(By::Family).iter().all(|c| c.starts_with(spirit.code())));
            assert!(codes(By::Number).len() == 7 && codes(By::Number).iter().all(|c| c.ends_with(&number)));
        }
    }

    #[test]
    fn subsets_are_complete_and_ascending() {
        let shells = By::Family.cards(Spirit::at(2));
        for (count, number) in (1..=8).zip([7, 21, 35, 35, 21, 7, 1, 0]) {
            let subsets: Vec<_> = shells.subsets(count).collect();
            assert!(subsets.is_sorted() && subsets.iter().all(|s| s.len() == count && s.without(shells).is_empty()));
            assert_eq!(subsets.len(), number);
        }
    }

    #[test]
    fn a_set_is_read_in_any_order_written_in_catalogue_order_and_refuses_a_card_given_twice() {
        let read = |text| serde_json::from_str::<CardSet>(text);
        let set = read(r#"["root-7","leaf-1"]"#).unwrap();
        assert_eq!(serde_json::to_string(&set).unwrap(), r#"["leaf-1","root-7"]"#);
        assert!(read(r#"["leaf-1","leaf-1"]"#).unwrap_err().to_string().contains("leaf-1 is given twice"));
        assert!(read(r#"["spirit:leaf"]"#).is_err() && read("7").is_err());
        assert!(postcard::from_bytes::<CardSet>(&postcard::to_stdvec(&(1u64 << 49)).unwrap()).is_err());
        assert_eq!(postcard::from_bytes::<CardSet>(&postcard::to_stdvec(&set).unwrap()), Ok(set));
    }
}
