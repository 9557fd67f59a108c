//! The common field: where cards lie (Q3), where one may be placed (Q5), and which lines of symbols stand (Q9).
//!
//! No hands, turns or Keys here.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use crate::rulesets::cards::{Card, DECK, Symbol};

/// How wide and how high the field may become, in cells (Q3).
const SIZE: u32 = 5;

/// Most stacks.
const CELLS: usize = (SIZE * SIZE) as usize;

/// The first card lies at (0, 0), so no coordinate is ever further from 0 than this.
const REACH: i8 = 4;

/// Rows and columns of the board on which the field can lie, whichever way it grows.
const SPAN: u8 = 9;

/// From a cell to the one below it, and to its right-hand neighbour, in numbers of cells.
const DOWN: u32 = 1;
const RIGHT: u32 = SPAN as u32;

/// The directions of a run (Q9): down and right, then the two diagonals, which count only by option.
const DIRECTIONS: [u32; 4] = [DOWN, RIGHT, RIGHT + DOWN, RIGHT - DOWN];

/// A cell within reach of (0, 0); ordered by x, then y, as moves are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell(u8);

impl Cell {
    /// Where the first card goes (Q3).
    pub const ORIGIN: Cell = Cell(SPAN * REACH as u8 + REACH as u8);

    /// The cell with those coordinates; none when no card can ever lie there.
    pub fn at(x: i8, y: i8) -> Option<Self> {
        let within = -REACH..=REACH;
        (within.contains(&x) && within.contains(&y)).then(|| Self((x + REACH) as u8 * SPAN + (y + REACH) as u8))
    }

    /// Column, growing to the right.
    pub fn x(self) -> i8 {
        (self.0 / SPAN) as i8 - REACH
    }

    /// Row, growing downwards.
    pub fn y(self) -> i8 {
        (self.0 % SPAN) as i8 - REACH
    }
}

/// A set of cells, one bit for each cell of the board.
///
/// Steps are shifts. They may run over the edge of the board into the next column, from y = 4 to y = −4 or back, but
/// never from one occupied cell to another: the field would be nine high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSet(u128);

impl CellSet {
    /// The whole board.
    const BOARD: CellSet = CellSet((1 << (SPAN * SPAN)) - 1);

    /// The topmost cell of every column.
    const TOP_ROW: CellSet = {
        let (mut row, mut column) = (0, 0);
        while column < SPAN {
            row |= 1 << (column * SPAN);
            column += 1;
        }
        CellSet(row)
    };

    /// Only that cell.
    fn of(cell: Cell) -> Self {
        Self(1 << cell.0)
    }

    /// Whether the cell is in it.
    pub fn contains(self, cell: Cell) -> bool {
        self.0 & Self::of(cell).0 != 0
    }

    /// Whether it holds no cell.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The cells that are in either.
    pub fn or(self, other: CellSet) -> Self {
        Self(self.0 | other.0)
    }

    /// The cells, by x, then y.
    pub fn iter(self) -> impl Iterator<Item = Cell> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let next = (rest != 0).then(|| Cell(rest.trailing_zeros() as u8));
            rest &= rest.wrapping_sub(1);
            next
        })
    }

    /// These cells and all that touch one of them along a side or at a corner (Q5).
    fn spread(self) -> Self {
        let columns = self.0 | self.0 << DOWN | self.0 >> DOWN;
        Self(columns | columns << RIGHT | columns >> RIGHT)
    }

    /// The first and the last occupied column, and the same for the rows, counted from the board's left and top edge.
    /// Not for the empty set.
    fn bounds(self) -> [(u32, u32); 2] {
        let ends = |bits: u128| (bits.trailing_zeros(), u128::BITS - 1 - bits.leading_zeros());
        let (first, last) = ends(self.0);
        let rows = (0..u32::from(SPAN)).fold(0, |rows, column| rows | self.0 >> (column * RIGHT)) & ((1 << SPAN) - 1);
        [(first / RIGHT, last / RIGHT), ends(rows)]
    }

    /// The cells that a field of these cells, which hold the origin, may grow to without being wider or higher than
    /// five (Q3).
    fn frame(self) -> Self {
        // The origin is the middle of the board: nothing here leaves it to either side.
        let allowed = self.bounds().map(|(first, last)| last + 1 - SIZE..first + SIZE);
        let span = |from: u32, to: u32| (1u128 << to) - (1 << from);
        let [columns, rows] = allowed;
        Self(span(columns.start * RIGHT, columns.end * RIGHT) & (Self::TOP_ROW.0 * span(rows.start, rows.end)))
    }

    /// Whether the cell is one of three or more of these cells in a row, in one of the directions (Q9).
    fn has_run_through(self, cell: Cell, directions: &[u32]) -> bool {
        directions.iter().any(|step| {
            let starts = self.0 & self.0 >> step & self.0 >> (2 * step);
            let runs = starts | starts << step | starts << (2 * step);
            Self(runs).contains(cell)
        })
    }
}

/// All stacks of the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Field {
    occupied: CellSet,
    /// The top card of every stack, in the order of `occupied`.
    tops: ArrayVec<Card, CELLS>,
    /// The cards under them, in the order in which they were covered: those of one stack from bottom to top. Covered
    /// cards never move again (Q7), so the list only grows.
    buried: ArrayVec<(Cell, Card), DECK>,
}

impl Field {
    /// The cells on which something lies.
    pub fn occupied(&self) -> CellSet {
        self.occupied
    }

    /// The cells on which a card may be placed (Q3, Q5).
    pub fn open(&self) -> CellSet {
        if self.occupied.is_empty() {
            return CellSet::of(Cell::ORIGIN);
        }
        CellSet(self.occupied.spread().0 & self.occupied.frame().0 & !self.occupied.0)
    }

    /// Whether the field, which must not be empty, may grow to that cell (Q3).
    pub fn may_reach(&self, cell: Cell) -> bool {
        self.occupied.frame().contains(cell)
    }

    /// The top card of a stack; none on a free cell.
    pub fn top(&self, cell: Cell) -> Option<Card> {
        self.occupied.contains(cell).then(|| self.tops[self.place_of(cell)])
    }

    /// By symbol: the cells whose top card shows it.
    pub fn shown(&self) -> [CellSet; Symbol::COUNT] {
        let mut shown = [CellSet::default(); Symbol::COUNT];
        for (cell, card) in self.occupied.iter().zip(&self.tops) {
            for symbol in [card.upper(), card.lower()] {
                shown[symbol.index()].0 |= CellSet::of(cell).0;
            }
        }
        shown
    }

    /// Whether that symbol shows in a run of three or more adjacent cells through this one (Q9); diagonal runs only if
    /// `diagonals`.
    pub fn has_run(&self, symbol: Symbol, cell: Cell, diagonals: bool) -> bool {
        let mut shown = CellSet::default();
        for (cell, card) in self.occupied.iter().zip(&self.tops) {
            if card.symbols().contains(symbol) {
                shown.0 |= CellSet::of(cell).0;
            }
        }
        shown.has_run_through(cell, if diagonals { &DIRECTIONS } else { &DIRECTIONS[..2] })
    }

    /// Lays a card on top of what lies on the cell, or as the first card there.
    pub fn lay(&mut self, cell: Cell, card: Card) {
        if self.occupied.contains(cell) {
            let covered = self.swap(cell, card);
            self.buried.push((cell, covered));
        } else {
            self.tops.insert(self.place_of(cell), card);
            self.occupied = self.occupied.or(CellSet::of(cell));
        }
    }

    /// Puts a card in the place of the top card of an occupied cell, which is returned.
    pub fn swap(&mut self, cell: Cell, card: Card) -> Card {
        let place = self.place_of(cell);
        std::mem::replace(&mut self.tops[place], card)
    }

    /// Every stack from bottom to top, row by row and from left to right in a row.
    pub fn stacks(&self) -> Vec<(Cell, Vec<Card>)> {
        let mut stacks: Vec<(Cell, Vec<Card>)> = self.occupied.iter().map(|cell| (cell, Vec::new())).collect();
        for &(cell, card) in &self.buried {
            stacks[self.place_of(cell)].1.push(card);
        }
        for ((_, stack), &top) in stacks.iter_mut().zip(&self.tops) {
            stack.push(top);
        }
        stacks.sort_unstable_by_key(|(cell, _)| (cell.y(), cell.x()));
        stacks
    }

    /// Every card on the field, in no order that means anything.
    pub fn cards(&self) -> impl Iterator<Item = Card> {
        self.tops.iter().copied().chain(self.buried.iter().map(|&(_, card)| card))
    }

    /// How many occupied cells come before that one, which is its place in `tops`.
    fn place_of(&self, cell: Cell) -> usize {
        (self.occupied.0 & (CellSet::of(cell).0 - 1)).count_ones() as usize
    }

    /// Checks what must hold of every field.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let occupied = self.occupied;
        if occupied.0 & !CellSet::BOARD.0 != 0 {
            return Err("a stack lies outside the board");
        }
        if self.tops.len() != occupied.0.count_ones() as usize {
            return Err("not every stack has a top card");
        }
        if self.buried.iter().any(|&(cell, _)| cell.0 >= SPAN * SPAN || !occupied.contains(cell)) {
            return Err("a covered card lies under nothing");
        }
        if occupied.is_empty() {
            return Ok(());
        }
        if !occupied.contains(Cell::ORIGIN) {
            return Err("nothing lies where the first card went");
        }
        if occupied.bounds().iter().any(|(first, last)| last - first >= SIZE) {
            return Err("the field is wider or higher than five");
        }
        let mut reached = CellSet::of(Cell::ORIGIN);
        loop {
            let further = CellSet(reached.spread().0 & occupied.0);
            if further == reached {
                break;
            }
            reached = further;
        }
        if reached == occupied { Ok(()) } else { Err("the field is not connected") }
    }
}
