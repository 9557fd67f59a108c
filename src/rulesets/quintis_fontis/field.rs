//! The common field: where cards lie (Q3), where one may be placed (Q5), and which runs of symbols stand (Q9).
//!
//! No hands, turns or Keys here.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::rulesets::cards::{Card, DECK, Symbol};

/// How wide and how high the field may become, in cells (Q3).
const SIZE: u32 = 5;

/// Most stacks.
const CELLS: usize = (SIZE * SIZE) as usize;

/// More cells are never open: these are all of a field of five by five and those around it.
pub const MAX_OPEN: usize = ((SIZE + 2) * (SIZE + 2)) as usize;

/// The first card lies at (0, 0), so no coordinate is ever further from 0 than this.
const REACH: i8 = 4;

/// Rows and columns of the board on which the field can lie, whichever way it grows.
const SPAN: u32 = 9;

/// Steps in which runs lie (Q9): to the right and down, then the diagonals, which count only by option.
const DIRECTIONS: [(i8, i8); 4] = [(1, 0), (0, 1), (1, 1), (1, -1)];

/// Cards that lie on each other, from bottom to top; so many take no room elsewhere.
pub type Stack = SmallVec<[Card; 16]>;

/// A cell of the board; ordered by x, then y, as moves are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Column, growing to the right.
    pub x: i8,
    /// Row, growing downwards.
    pub y: i8,
}

impl Cell {
    /// Where the first card goes (Q3).
    pub const ORIGIN: Cell = Cell { x: 0, y: 0 };

    /// The cell with those coordinates; none when no card can ever lie there.
    pub fn at(x: i8, y: i8) -> Option<Self> {
        let within = -REACH..=REACH;
        (within.contains(&x) && within.contains(&y)).then_some(Self { x, y })
    }

    /// Place on the board: column by column from the left, each from the top.
    const fn index(self) -> u32 {
        (self.x + REACH) as u32 * SPAN + (self.y + REACH) as u32
    }
}

/// A set of cells: a bit for each cell of the board, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSet(u128);

impl CellSet {
    /// The topmost cell of every column.
    const TOP_ROW: u128 = {
        let (mut row, mut column) = (0, 0);
        while column < SPAN {
            row |= 1 << (column * SPAN);
            column += 1;
        }
        row
    };

    /// Only that cell.
    const fn of(cell: Cell) -> Self {
        Self(1 << cell.index())
    }

    /// Whether the cell is in it.
    pub fn contains(self, cell: Cell) -> bool {
        self.0 & Self::of(cell).0 != 0
    }

    /// Whether it holds no cell.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The cells in their order.
    pub fn iter(self) -> impl Iterator<Item = Cell> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = rest.trailing_zeros();
            let cell = Cell { x: (index / SPAN) as i8 - REACH, y: (index % SPAN) as i8 - REACH };
            let next = (rest != 0).then_some(cell);
            rest &= rest.wrapping_sub(1);
            next
        })
    }

    /// These cells and all that touch one of them along a side or at a corner (Q5). At the board's edge a step down or up
    /// ends in the next column: [`CellSet::frame`] never holds such a cell, it is nine rows away.
    fn spread(self) -> Self {
        let columns = self.0 | self.0 << 1 | self.0 >> 1;
        Self(columns | columns << SPAN | columns >> SPAN)
    }

    /// First and last column, and first and last row, counted from the board's left and top edge. Not for the empty set.
    fn bounds(self) -> [(u32, u32); 2] {
        let ends = |bits: u128| (bits.trailing_zeros(), u128::BITS - 1 - bits.leading_zeros());
        let (first, last) = ends(self.0);
        let rows = (0..SPAN).fold(0, |rows, column| rows | self.0 >> (column * SPAN)) & ((1 << SPAN) - 1);
        [(first / SPAN, last / SPAN), ends(rows)]
    }

    /// The cells to which a field of these cells may grow without becoming wider or higher than five (Q3). The origin,
    /// in the middle of the board, must be among them: so the frame does not leave the board on any side.
    fn frame(self) -> Self {
        let bits = |from: u32, to: u32| (1u128 << to) - (1 << from);
        let [columns, rows] = self.bounds().map(|(first, last)| (last + 1 - SIZE, first + SIZE));
        Self(bits(columns.0 * SPAN, columns.1 * SPAN) & (Self::TOP_ROW * bits(rows.0, rows.1)))
    }
}

/// All stacks of the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The cells of `tops`.
    occupied: CellSet,
    /// Every stack's cell and top card, in the order of cells.
    tops: ArrayVec<(Cell, Card), CELLS>,
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

    /// Every stack's cell and top card, in the order of cells.
    pub fn tops(&self) -> &[(Cell, Card)] {
        &self.tops
    }

    /// The top card of a stack; none on a free cell.
    pub fn top(&self, cell: Cell) -> Option<Card> {
        self.occupied.contains(cell).then(|| self.tops[self.place_of(cell)].1)
    }

    /// Whether that symbol shows in a run of three or more adjacent cells through this one, where it does show (Q9);
    /// diagonal runs count only if `diagonals`.
    pub fn has_run(&self, symbol: Symbol, cell: Cell, diagonals: bool) -> bool {
        let directions = if diagonals { &DIRECTIONS[..] } else { &DIRECTIONS[..2] };
        directions.iter().any(|(dx, dy)| {
            let shows = |steps: i8| {
                let other = Cell::at(cell.x + steps * dx, cell.y + steps * dy);
                other.and_then(|other| self.top(other)).is_some_and(|top| top.symbols().contains(symbol))
            };
            // The cell is in the middle of three, the first of them or the last.
            if shows(1) { shows(-1) || shows(2) } else { shows(-1) && shows(-2) }
        })
    }

    /// Lays a card on top of what lies on the cell, or as the first card there.
    pub fn lay(&mut self, cell: Cell, card: Card) {
        if self.occupied.contains(cell) {
            let covered = self.swap(cell, card);
            self.buried.push((cell, covered));
        } else {
            self.tops.insert(self.place_of(cell), (cell, card));
            self.occupied.0 |= CellSet::of(cell).0;
        }
    }

    /// Puts a card in the place of the top card of an occupied cell, which is returned.
    pub fn swap(&mut self, cell: Cell, card: Card) -> Card {
        let place = self.place_of(cell);
        std::mem::replace(&mut self.tops[place].1, card)
    }

    /// Every stack from bottom to top, row by row and from left to right in a row.
    pub fn stacks(&self) -> Vec<(Cell, Stack)> {
        let mut stacks: Vec<(Cell, Stack)> = self.tops.iter().map(|(cell, _)| (*cell, Stack::new())).collect();
        for &(cell, card) in &self.buried {
            stacks[self.place_of(cell)].1.push(card);
        }
        for ((_, stack), (_, top)) in stacks.iter_mut().zip(&self.tops) {
            stack.push(*top);
        }
        stacks.sort_unstable_by_key(|(cell, _)| (cell.y, cell.x));
        stacks
    }

    /// Every card on the field, in no order that means anything.
    pub fn cards(&self) -> impl Iterator<Item = Card> {
        self.tops.iter().chain(&self.buried).map(|(_, card)| *card)
    }

    /// How many occupied cells come before that one: its place in `tops`.
    fn place_of(&self, cell: Cell) -> usize {
        (self.occupied.0 & (CellSet::of(cell).0 - 1)).count_ones() as usize
    }

    /// Checks what must hold of every field.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.tops.iter().chain(&self.buried).any(|(cell, _)| Cell::at(cell.x, cell.y).is_none()) {
            return Err("a card lies outside the board");
        }
        let occupied = self.occupied;
        if occupied.0.count_ones() as usize != self.tops.len()
            || !occupied.iter().eq(self.tops.iter().map(|(cell, _)| *cell))
        {
            return Err("the stacks are out of order");
        }
        if self.buried.iter().any(|(cell, _)| !occupied.contains(*cell)) {
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
        // Everything is connected to the first card (Q5).
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
