//! The five patterns in which the sigil is laid out (S2), and which slots lie on which.

use crate::rulesets::{self, LayoutSlot, Text};

/// Slots of every layout: one for each card and each spirit.
pub(super) const SLOTS: usize = 56;

/// All slots, as a mask.
pub(super) const ALL_SLOTS: u64 = (1 << SLOTS) - 1;

coded! {
    /// The pattern of the sigil (S2).
    Layout, schema "SiggilLayoutCode", ["pass", "turtle", "pyramids", "river", "pillars"]
}

/// Slots with consecutive numbers in one line: `count` cards from `x` on, `step` half-cards apart.
struct Row {
    level: u8,
    x: u8,
    y: u8,
    step: u8,
    count: u8,
    face_up: bool,
}

/// Shorthand that keeps the tables below readable; the cards of a row touch.
const fn row(level: u8, x: u8, y: u8, count: u8, face_up: bool) -> Row {
    Row { level, x, y, step: 2, count, face_up }
}

const UP: bool = true;
const DOWN: bool = false;

const PASS: [Row; 7] = [
    row(0, 6, 0, 5, UP),
    row(1, 5, 1, 6, DOWN),
    row(2, 4, 2, 7, UP),
    row(3, 3, 3, 8, DOWN),
    row(4, 2, 4, 9, UP),
    row(5, 1, 5, 10, DOWN),
    row(6, 0, 6, 11, UP),
];

const TURTLE: [Row; 11] = [
    row(0, 0, 0, 6, UP),
    row(0, 0, 2, 6, UP),
    row(0, 0, 4, 6, UP),
    row(0, 0, 6, 6, UP),
    row(1, 1, 0, 5, DOWN),
    row(1, 1, 2, 5, DOWN),
    row(1, 1, 4, 5, DOWN),
    row(1, 1, 6, 5, DOWN),
    row(2, 2, 1, 4, UP),
    row(2, 2, 3, 4, UP),
    row(2, 2, 5, 4, UP),
];

const PYRAMIDS: [Row; 14] = [
    row(0, 6, 0, 1, UP),
    row(0, 22, 0, 1, UP),
    row(1, 5, 1, 2, DOWN),
    row(1, 21, 1, 2, DOWN),
    row(2, 4, 2, 3, UP),
    row(2, 20, 2, 3, UP),
    row(3, 3, 3, 4, DOWN),
    row(3, 19, 3, 4, DOWN),
    row(4, 2, 4, 5, UP),
    row(4, 18, 4, 5, UP),
    row(5, 1, 5, 6, DOWN),
    row(5, 17, 5, 6, DOWN),
    row(6, 0, 6, 7, UP),
    row(6, 16, 6, 7, UP),
];

const RIVER: [Row; 4] = [row(0, 0, 0, 14, DOWN), row(1, 1, 1, 14, UP), row(2, 0, 2, 14, DOWN), row(3, 1, 3, 14, UP)];

/// Seven pillars that do not touch, eight cards each.
const PILLARS: [Row; 8] = {
    const fn floor(level: u8, face_up: bool) -> Row {
        Row { level, x: 0, y: level, step: 3, count: 7, face_up }
    }
    [
        floor(0, DOWN),
        floor(1, UP),
        floor(2, DOWN),
        floor(3, UP),
        floor(4, DOWN),
        floor(5, UP),
        floor(6, DOWN),
        floor(7, UP),
    ]
};

/// By layout, then by slot.
static TABLES: [Table; Layout::COUNT] =
    [Table::of(&PASS), Table::of(&TURTLE), Table::of(&PYRAMIDS), Table::of(&RIVER), Table::of(&PILLARS)];

/// A layout, worked out for the engine. Slots in masks are bits, slot 0 the lowest.
pub(super) struct Table {
    slots: [LayoutSlot; SLOTS],
    /// For each slot, the slots that cover it.
    pub above: [u64; SLOTS],
    /// For each slot, the slots that it covers.
    pub below: [u64; SLOTS],
    /// The slots that are laid face up.
    pub face_up: u64,
}

impl Table {
    /// Runs at compile time.
    const fn of(rows: &[Row]) -> Table {
        let empty = LayoutSlot { slot: 0, level: 0, x: 0, y: 0, face_up: false };
        let mut table = Table { slots: [empty; SLOTS], above: [0; SLOTS], below: [0; SLOTS], face_up: 0 };
        let mut slot = 0;
        let mut r = 0;
        while r < rows.len() {
            let Row { level, x, y, step, count, face_up } = rows[r];
            let mut i = 0;
            while i < count {
                table.slots[slot] = LayoutSlot { slot: slot as u8, level, x: x + i * step, y, face_up };
                table.face_up |= (face_up as u64) << slot;
                slot += 1;
                i += 1;
            }
            r += 1;
        }
        assert!(slot == SLOTS);
        let mut low = 0;
        while low < SLOTS {
            let mut high = 0;
            while high < SLOTS {
                if covers(table.slots[high], table.slots[low]) {
                    table.above[low] |= 1 << high;
                    table.below[high] |= 1 << low;
                }
                high += 1;
            }
            low += 1;
        }
        table
    }
}

/// S2: a higher level, and overlapping squares of two by two half-cards.
const fn covers(high: LayoutSlot, low: LayoutSlot) -> bool {
    high.level > low.level && high.x.abs_diff(low.x) < 2 && high.y.abs_diff(low.y) < 2
}

impl Layout {
    /// The pattern of a game that asks for no other (S2).
    pub(super) const DEFAULT: Layout = Layout::at(2);

    /// Its slots and what lies on what.
    pub(super) fn table(self) -> &'static Table {
        &TABLES[self.index()]
    }

    fn name(self) -> Text {
        const NAMES: [Text; Layout::COUNT] = [
            Text { en: "Pass", ru: "Перевал" },
            Text { en: "Turtle", ru: "Черепаха" },
            Text { en: "Pyramids", ru: "Пирамиды" },
            Text { en: "River", ru: "Река" },
            Text { en: "Pillars", ru: "Колонны" },
        ];
        NAMES[self.index()]
    }
}

/// All layouts, for the catalogue.
pub(super) fn layouts() -> Vec<rulesets::Layout> {
    Layout::all()
        .map(|layout| rulesets::Layout {
            code: layout.code(),
            name: layout.name(),
            slots: layout.table().slots.to_vec(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_the_layouts_are_those_of_the_published_list() {
        let published = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/siggil-layouts.json"));
        let published: serde_json::Value = serde_json::from_str(published).unwrap();
        assert_eq!(published.as_object().unwrap().len(), Layout::COUNT);
        for layout in layouts() {
            let published = &published[layout.code];
            assert_eq!(published["name"], serde_json::json!({"en": layout.name.en, "ru": layout.name.ru}));
            let slots = layout.slots.iter().map(|s| {
                let face = if s.face_up { "up" } else { "down" };
                serde_json::json!({"slot": s.slot, "level": s.level, "x": s.x, "y": s.y, "face": face})
            });
            assert_eq!(published["slots"], slots.collect::<serde_json::Value>(), "{}", layout.code);
        }
    }

    #[test]
    fn s02_a_slot_covers_those_below_that_it_overlaps() {
        let pass = Layout::at(0).table();
        assert_eq!(pass.above[0], 1 << 5 | 1 << 6, "the first card lies under two of the next row");
        assert_eq!(pass.below[5], 1 << 0);
        let pillars = Layout::at(4).table();
        assert_eq!(pillars.above[0], 1 << 7, "a pillar's card lies half under the next one, and under no other");
        assert_eq!(Layout::DEFAULT.code(), "pyramids");
    }

    #[test]
    fn s03_no_layout_has_a_face_down_card_without_one_on_it() {
        for table in &TABLES {
            assert!((0..SLOTS).all(|slot| table.above[slot] != 0 || table.face_up >> slot & 1 == 1));
        }
    }
}
