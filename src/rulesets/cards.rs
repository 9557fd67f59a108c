//! The cards of the two editions of The Enigma of Leonardo (L1, Q1): what only one game needs is in that game's folder.

use serde::{Deserialize, Serialize};

use super::random::Random;
use super::{CardFace, Term, Text};

coded! {
    /// One of the twelve symbols; the first six stand in the upper half of a card, the others in the lower (L1). The order is that of seniority (Q12).
    Symbol, schema "Symbol", [
        "mechanism", "profile", "cathedral", "gull", "skull", "cat",
        "horseman", "halberd", "flower", "figure", "flow", "eclipse",
    ]
}

coded! {
    /// A card face: an upper and a lower symbol (L1).
    Card, schema "LeonardoCard", [
        "mechanism-horseman", "mechanism-halberd", "mechanism-flower", "mechanism-figure", "mechanism-flow", "mechanism-eclipse",
        "profile-horseman", "profile-halberd", "profile-flower", "profile-figure", "profile-flow", "profile-eclipse",
        "cathedral-horseman", "cathedral-halberd", "cathedral-flower", "cathedral-figure", "cathedral-flow", "cathedral-eclipse",
        "gull-horseman", "gull-halberd", "gull-flower", "gull-figure", "gull-flow", "gull-eclipse",
        "skull-horseman", "skull-halberd", "skull-flower", "skull-figure", "skull-flow", "skull-eclipse",
        "cat-horseman", "cat-halberd", "cat-flower", "cat-figure", "cat-flow", "cat-eclipse",
    ]
}

/// How many symbols stand in each half of the cards.
const HALF: usize = 6;

/// How many cards of the deck have the same face (L1).
pub const COPIES: usize = 2;

/// Cards in the deck.
pub const DECK: usize = COPIES * Card::COUNT;

impl Card {
    /// The symbol of the upper half.
    pub fn upper(self) -> Symbol {
        Symbol::at(self.index() / HALF)
    }

    /// The symbol of the lower half.
    pub fn lower(self) -> Symbol {
        Symbol::at(HALF + self.index() % HALF)
    }

    /// Both symbols.
    pub fn symbols(self) -> SymbolSet {
        SymbolSet(1 << self.upper().index() | 1 << self.lower().index())
    }
}

/// The deck before it is shuffled (fairness 8): copy 1, then copy 2, each in catalogue order.
pub fn deck() -> [Card; DECK] {
    std::array::from_fn(|i| Card::at(i % Card::COUNT))
}

/// The deck as it is shuffled for the deal, from the top (fairness 7).
pub fn shuffled(random: &Random) -> [Card; DECK] {
    let mut cards = deck();
    random.stream(1).shuffle(&mut cards);
    cards
}

/// A set of symbols, for states and snapshots; views list the codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16")]
pub struct SymbolSet(u16);

impl TryFrom<u16> for SymbolSet {
    type Error = &'static str;

    fn try_from(bits: u16) -> Result<Self, Self::Error> {
        if bits & !Self::ALL.0 == 0 { Ok(Self(bits)) } else { Err("no such symbol") }
    }
}

impl SymbolSet {
    /// All twelve.
    pub const ALL: SymbolSet = SymbolSet((1 << Symbol::COUNT) - 1);

    /// Whether the symbol is in it.
    pub fn contains(self, symbol: Symbol) -> bool {
        self.0 & 1 << symbol.index() != 0
    }

    /// Adds a symbol.
    pub fn insert(&mut self, symbol: Symbol) {
        self.0 |= 1 << symbol.index();
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The symbols that are in both.
    pub fn and(self, other: SymbolSet) -> SymbolSet {
        SymbolSet(self.0 & other.0)
    }

    /// The symbols that are in either.
    pub fn or(self, other: SymbolSet) -> SymbolSet {
        SymbolSet(self.0 | other.0)
    }

    /// The symbols that are in this one but not in `other`.
    pub fn without(self, other: SymbolSet) -> SymbolSet {
        SymbolSet(self.0 & !other.0)
    }

    /// The symbols in order of seniority.
    pub fn iter(self) -> impl Iterator<Item = Symbol> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let next = (rest != 0).then(|| Symbol::at(rest.trailing_zeros() as usize));
            rest &= rest.wrapping_sub(1);
            next
        })
    }

    /// A number that is greater the more senior the set is: the most senior symbol decides, then the next (Q12).
    pub fn seniority(self) -> u16 {
        self.0.reverse_bits()
    }
}

/// The symbols with their names.
pub fn symbol_terms() -> Vec<Term> {
    const RU: [&str; Symbol::COUNT] = [
        "механизм",
        "профиль",
        "собор",
        "чайка",
        "череп",
        "кошка",
        "кавалерист",
        "алебарда",
        "цветок",
        "фигура",
        "поток",
        "затмение",
    ];
    Symbol::all().map(|s| Term { code: s.code(), name: Text { en: s.code(), ru: RU[s.index()] } }).collect()
}

/// The card faces with their names.
pub fn card_faces() -> Vec<CardFace> {
    let terms = symbol_terms();
    Card::all()
        .map(|card| {
            let (upper, lower) = (&terms[card.upper().index()], &terms[card.lower().index()]);
            CardFace {
                code: card.code(),
                name_en: format!("{} and {}", upper.name.en, lower.name.en),
                name_ru: format!("{} и {}", upper.name.ru, lower.name.ru),
                copies: COPIES as u8,
                shows: [("upper", upper.code), ("lower", lower.code)].into(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l01_a_code_names_the_two_symbols() {
        for card in Card::all() {
            assert_eq!(card.code(), format!("{}-{}", card.upper(), card.lower()));
            assert_eq!(card.symbols().iter().collect::<Vec<_>>(), [card.upper(), card.lower()]);
        }
        assert_eq!(deck().len(), 72);
    }

    #[test]
    fn q12_the_most_senior_symbol_decides_then_the_next() {
        let set = |codes: &[&str]| {
            let mut set = SymbolSet::default();
            codes.iter().for_each(|code| set.insert(Symbol::from_code(code).unwrap()));
            set
        };
        assert!(set(&["mechanism"]).seniority() > set(&["profile"]).seniority());
        assert!(set(&["profile", "cat"]).seniority() > set(&["profile", "eclipse"]).seniority());
    }
}
