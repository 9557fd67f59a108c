//! The cards of `leopard` (P1), a player's hand, and the names of both for the catalogue.

use serde::{Deserialize, Serialize};

use super::table::Cell;
use crate::rulesets::random::Random;
use crate::rulesets::{CardFace, Term, Text};

coded! {
    /// A card face: rank `A23456789TJQK`, then suit `CDHS` (P1).
    Card, schema "LeopardCard", [
        "AC", "2C", "3C", "4C", "5C", "6C", "7C", "8C", "9C", "TC", "JC", "QC", "KC",
        "AD", "2D", "3D", "4D", "5D", "6D", "7D", "8D", "9D", "TD", "JD", "QD", "KD",
        "AH", "2H", "3H", "4H", "5H", "6H", "7H", "8H", "9H", "TH", "JH", "QH", "KH",
        "AS", "2S", "3S", "4S", "5S", "6S", "7S", "8S", "9S", "TS", "JS", "QS", "KS",
    ]
}

/// Ranks in a suit.
pub(super) const RANKS: usize = 13;

/// Suits, in the order C, D, H, S.
pub(super) const SUITS: usize = 4;

/// How many cards of the deck have the same face (P1).
pub(super) const COPIES: usize = 2;

/// Cards in the deck.
pub(super) const DECK: usize = COPIES * Card::COUNT;

/// A rank as far as P6 tells ranks apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// Ace to nine, with the cell that such a card belongs on (P3).
    Number(Cell),
    Ten,
    Jack,
    Queen,
    King,
}

impl Card {
    pub(super) const fn rank(self) -> Rank {
        match self.index() % RANKS {
            9 => Rank::Ten,
            10 => Rank::Jack,
            11 => Rank::Queen,
            12 => Rank::King,
            number => Rank::Number(number as Cell + 1),
        }
    }

    /// 0 to 3: clubs, diamonds, hearts, spades.
    pub(super) fn suit(self) -> usize {
        self.index() / RANKS
    }

    /// The cell that an ace to nine belongs on, from 1 (P3); the other ranks have none.
    pub(super) fn own_cell(self) -> Option<Cell> {
        match self.rank() {
            Rank::Number(cell) => Some(cell),
            Rank::Ten | Rank::Jack | Rank::Queen | Rank::King => None,
        }
    }

    /// Whether the card always lies face down: jacks and queens do, all others always face up (P6).
    pub(super) fn lies_face_down(self) -> bool {
        matches!(self.rank(), Rank::Jack | Rank::Queen)
    }
}

/// The deck before it is shuffled (fairness 8): deck 1, then deck 2, each in catalogue order.
pub(super) fn deck() -> [Card; DECK] {
    std::array::from_fn(|i| Card::at(i % Card::COUNT))
}

/// The cards as they are shuffled for a hand (from 1), from the top (fairness 7).
pub(super) fn shuffled(hand: u64, random: &Random) -> [Card; DECK] {
    let mut cards = deck();
    random.stream(hand).shuffle(&mut cards);
    cards
}

/// A player's cards, two of each face at most. Two equal cards cannot be told apart in it (C3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hand {
    /// One bit for each face that is held, in catalogue order.
    held: u64,
    /// The faces of which both copies are held.
    doubled: u64,
}

impl Hand {
    pub(super) fn contains(self, card: Card) -> bool {
        self.held & 1 << card.index() != 0
    }

    /// Adds a card of which the hand holds one copy at most.
    pub(super) fn insert(&mut self, card: Card) {
        let bit = 1 << card.index();
        self.doubled |= self.held & bit;
        self.held |= bit;
    }

    /// Takes out one copy of a card that is held.
    pub(super) fn remove(&mut self, card: Card) {
        let bit = 1 << card.index();
        self.held &= !bit | self.doubled;
        self.doubled &= !bit;
    }

    /// Cards held, equal ones counted twice.
    pub(super) fn len(self) -> usize {
        (self.held.count_ones() + self.doubled.count_ones()) as usize
    }

    /// The faces held, each once, in catalogue order.
    pub(super) fn faces(self) -> impl Iterator<Item = Card> {
        let mut rest = self.held;
        std::iter::from_fn(move || {
            let next = (rest != 0).then(|| Card::at(rest.trailing_zeros() as usize));
            rest &= rest.wrapping_sub(1);
            next
        })
    }

    /// Every card, in catalogue order.
    pub(super) fn cards(self) -> impl Iterator<Item = Card> {
        self.faces().flat_map(move |card| {
            let copies = 1 + (self.doubled >> card.index() & 1);
            std::iter::repeat_n(card, copies as usize)
        })
    }

    /// Whether the bits mean cards; those of a damaged snapshot may not.
    pub(super) fn is_sound(self) -> bool {
        self.held >> Card::COUNT == 0 && self.doubled & !self.held == 0
    }
}

impl FromIterator<Card> for Hand {
    fn from_iter<I: IntoIterator<Item = Card>>(cards: I) -> Self {
        let mut hand = Hand::default();
        cards.into_iter().for_each(|card| hand.insert(card));
        hand
    }
}

const RANK_TERMS: [Term; RANKS] = [
    term("A", "ace", "туз"),
    term("2", "two", "двойка"),
    term("3", "three", "тройка"),
    term("4", "four", "четвёрка"),
    term("5", "five", "пятёрка"),
    term("6", "six", "шестёрка"),
    term("7", "seven", "семёрка"),
    term("8", "eight", "восьмёрка"),
    term("9", "nine", "девятка"),
    term("T", "ten", "десятка"),
    term("J", "jack", "валет"),
    term("Q", "queen", "дама"),
    term("K", "king", "король"),
];

const SUIT_TERMS: [Term; SUITS] = [
    term("C", "clubs", "трефы"),
    term("D", "diamonds", "бубны"),
    term("H", "hearts", "червы"),
    term("S", "spades", "пики"),
];

/// The suits' names as they stand in a card's Russian name ("семёрка червей").
const SUITS_GENITIVE_RU: [&str; SUITS] = ["треф", "бубен", "червей", "пик"];

const COLOUR_TERMS: [Term; 2] = [term("black", "black", "чёрный"), term("red", "red", "красный")];

const fn term(code: &'static str, en: &'static str, ru: &'static str) -> Term {
    Term { code, name: Text { en, ru } }
}

/// Ranks, suits and colours with their names, each kind in catalogue order.
pub(super) fn terms() -> [(&'static str, Vec<Term>); 3] {
    [("rank", RANK_TERMS.to_vec()), ("suit", SUIT_TERMS.to_vec()), ("colour", COLOUR_TERMS.to_vec())]
}

/// The card faces with their names.
pub(super) fn card_faces() -> Vec<CardFace> {
    Card::all()
        .map(|card| {
            let (rank, suit) = (&RANK_TERMS[card.index() % RANKS], &SUIT_TERMS[card.suit()]);
            // Diamonds and hearts stand between the black suits (P1).
            let colour = &COLOUR_TERMS[usize::from(matches!(card.suit(), 1 | 2))];
            CardFace {
                code: card.code(),
                name_en: format!("{} of {}", rank.name.en, suit.name.en),
                name_ru: format!("{} {}", rank.name.ru, SUITS_GENITIVE_RU[card.suit()]),
                copies: COPIES as u8,
                shows: [("rank", rank.code), ("suit", suit.code), ("colour", colour.code)].into(),
            }
        })
        .collect()
}
