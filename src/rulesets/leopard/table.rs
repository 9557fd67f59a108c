//! The two squares (P3): what lies where, which cells are vacant, and what a square is worth (P8).

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use super::cards::{Card, DECK, SUITS};
use super::options::Scoring;
use crate::rulesets::Seat;

/// A cell's number, 1 to 9, row by row (P3).
pub(super) type Cell = u8;

/// Cells in a square.
pub(super) const CELLS: usize = 9;

/// One of the two squares, as seen by the player who moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LeopardWhose)]
pub enum Whose {
    /// The mover's square.
    Own,
    /// The other player's square.
    Opponent,
}

impl Whose {
    /// The seat whose square is meant when `mover` (0 or 1) says so.
    pub(super) fn owner(self, mover: Seat) -> Seat {
        match self {
            Whose::Own => mover,
            Whose::Opponent => 1 - mover,
        }
    }
}

/// Cells of both squares as one player sees them: bits 0 to 8 are the cells 1 to 9 of that player's own square, bits 9 to
/// 17 those of the opponent's. So they are in the order in which moves name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places(u32);

impl Places {
    pub(super) const NONE: Places = Places(0);
    pub(super) const OWN: Places = Places(ALL_CELLS as u32);
    pub(super) const ALL: Places = Places(Places::OWN.0 | Places::OWN.0 << CELLS);

    /// That cell of either square; `cell` is 1 to 9.
    pub(super) const fn both(cell: Cell) -> Places {
        Places((1 | 1 << CELLS) << (cell - 1))
    }

    /// Whether a cell of a square is among them; `cell` is 1 to 9.
    pub(super) fn contains(self, square: Whose, cell: Cell) -> bool {
        self.0 >> (square as usize * CELLS) & 1 << (cell - 1) != 0
    }

    pub(super) fn and(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    pub(super) fn or(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    pub(super) fn without(self, other: Places) -> Places {
        Places(self.0 & !other.0)
    }

    /// Square and cell of each: the own square first, cells in ascending order.
    pub(super) fn iter(self) -> impl Iterator<Item = (Whose, Cell)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let place = rest.trailing_zeros() as usize;
            let square = if place < CELLS { Whose::Own } else { Whose::Opponent };
            let next = (rest != 0).then(|| (square, (place % CELLS) as Cell + 1));
            rest &= rest.wrapping_sub(1);
            next
        })
    }
}

/// Cells of one square; bit 0 is cell 1.
type Cells = u16;

/// All nine.
const ALL_CELLS: Cells = (1 << CELLS) - 1;

/// How many of the eight lines (three rows, three columns, two diagonals) lie wholly in a set of cells.
fn lines(cells: Cells) -> u8 {
    LINES_IN[usize::from(cells)]
}

/// [`lines`] for every set of cells.
const LINES_IN: [u8; 1 << CELLS] = {
    const LINES: [usize; 8] = [
        0b_000_000_111,
        0b_000_111_000,
        0b_111_000_000,
        0b_001_001_001,
        0b_010_010_010,
        0b_100_100_100,
        0b_100_010_001,
        0b_001_010_100,
    ];
    let mut counts = [0; 1 << CELLS];
    let mut set = 0;
    while set < counts.len() {
        let mut line = 0;
        while line < LINES.len() {
            if set & LINES[line] == LINES[line] {
                counts[set] += 1;
            }
            line += 1;
        }
        set += 1;
    }
    counts
};

/// What a player's square shows: only face-up top cards matter to the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Square {
    /// By suit, in the order C, D, H, S: the cells whose top card is face up and of that suit.
    shows: [Cells; SUITS],
}

impl Square {
    /// The cells on which nothing lies or whose top card is face down (P4).
    fn vacant(&self) -> Cells {
        let [clubs, diamonds, hearts, spades] = self.shows;
        ALL_CELLS & !(clubs | diamonds | hearts | spades)
    }

    /// Points for the lines of one suit or colour (P8, P12).
    pub(super) fn value(&self, scoring: Scoring) -> u8 {
        let [clubs, diamonds, hearts, spades] = self.shows;
        let colour_lines = lines(clubs | spades) + lines(diamonds | hearts);
        let suit_lines: u8 = self.shows.into_iter().map(lines).sum();
        // A line of one suit is also one of its colour: its first point is counted there.
        colour_lines + suit_lines * (scoring.suit_line() - 1)
    }

    fn put(&mut self, card: Card, cell: Cell) {
        let bit = 1 << (cell - 1);
        for cells in &mut self.shows {
            *cells &= !bit;
        }
        if !card.lies_face_down() {
            self.shows[card.suit()] |= bit;
        }
    }
}

/// A card on the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(Card, u8)", into = "(Card, u8)")]
pub(super) struct Laid {
    pub card: Card,
    /// In whose square.
    pub owner: Seat,
    pub cell: Cell,
    /// Who laid it: that player may look at it when it lies face down. Means nothing for cards that lie face up.
    pub by: Seat,
}

/// Where a card lies and who laid it, in one byte to keep snapshots small.
impl From<Laid> for (Card, u8) {
    fn from(laid: Laid) -> Self {
        (laid.card, (laid.by * 2 + laid.owner) * CELLS as u8 + laid.cell - 1)
    }
}

impl TryFrom<(Card, u8)> for Laid {
    type Error = &'static str;

    fn try_from((card, place): (Card, u8)) -> Result<Self, Self::Error> {
        let (seats, cell) = (place / CELLS as u8, place % CELLS as u8 + 1);
        if seats < 4 {
            Ok(Laid { card, owner: seats % 2, cell, by: seats / 2 })
        } else {
            Err("no such place on the table")
        }
    }
}

/// Both squares. Snapshots hold only the cards laid; what the squares show follows from them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "ArrayVec<Laid, DECK>")]
pub(super) struct Table {
    laid: ArrayVec<Laid, DECK>,
    /// By seat.
    squares: [Square; 2],
}

impl Table {
    /// Lays a card on top of what lies there.
    pub(super) fn lay(&mut self, laid: Laid) {
        self.squares[usize::from(laid.owner)].put(laid.card, laid.cell);
        self.laid.push(laid);
    }

    /// Every card laid in this hand, in the order of laying; so each stack from bottom to top.
    pub(super) fn laid(&self) -> &[Laid] {
        &self.laid
    }

    /// The vacant cells of both squares (P4), as `seat` sees them.
    pub(super) fn vacant(&self, seat: Seat) -> Places {
        let (own, opponent) = (self.square(seat).vacant(), self.square(1 - seat).vacant());
        Places(u32::from(own) | u32::from(opponent) << CELLS)
    }

    /// A player's square.
    pub(super) fn square(&self, owner: Seat) -> &Square {
        &self.squares[usize::from(owner)]
    }

    /// What each square is worth, by seat.
    pub(super) fn values(&self, scoring: Scoring) -> [u8; 2] {
        self.squares.map(|square| square.value(scoring))
    }
}

impl FromIterator<Laid> for Table {
    fn from_iter<I: IntoIterator<Item = Laid>>(cards: I) -> Self {
        let mut table = Table::default();
        cards.into_iter().for_each(|laid| table.lay(laid));
        table
    }
}

impl From<ArrayVec<Laid, DECK>> for Table {
    fn from(laid: ArrayVec<Laid, DECK>) -> Self {
        laid.into_iter().collect()
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.laid.serialize(serializer)
    }
}
