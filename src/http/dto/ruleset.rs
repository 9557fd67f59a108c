//! Rulesets on the wire: all that a client needs to draw and play a game that it does not know.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::language::Language;
use crate::rulesets::registry::RulesetId;
use crate::rulesets::{EndReason, LayoutSlot, Meta};

/// From how many to how many.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Range)]
pub struct RangeOut {
    pub min: i32,
    pub max: i32,
}

/// A ruleset in the list.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RulesetSummary)]
pub struct RulesetSummaryOut {
    pub slug: RulesetId,
    #[schema(example = "Leopard")]
    pub name: String,
    /// Who made the game up.
    #[schema(example = "Robert Abbott")]
    pub designer: String,
    /// How many can play.
    pub seats: RangeOut,
    /// Grows when a rule's reading changes.
    pub rules_version: u32,
    /// What one does and how one wins.
    pub summary: String,
}

/// The rulesets.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RulesetList)]
pub struct RulesetListOut {
    pub items: Vec<RulesetSummaryOut>,
}

/// A code with its name.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Term)]
pub struct TermOut {
    #[schema(example = "skull")]
    pub code: String,
    #[schema(example = "skull")]
    pub name: String,
}

/// A card face.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CardFace)]
pub struct CardFaceOut {
    /// As states and moves have it.
    #[schema(example = "skull-flow")]
    pub code: String,
    #[schema(example = "skull and flow")]
    pub name: String,
    /// How many cards of the deck have this face.
    pub copies: u8,
    /// What it shows: a kind of term, or a part of the card, and the term's code.
    pub shows: BTreeMap<String, String>,
}

/// One place of a layout. A card there covers `[x, x + 2) × [y, y + 2)`; it lies on those of lower levels that it overlaps.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = LayoutSlot)]
pub struct LayoutSlotOut {
    pub slot: u8,
    /// 0 is the lowest.
    pub level: u8,
    /// In half cards, to the right.
    pub x: u8,
    /// In half cards, downwards.
    pub y: u8,
    pub face: Face,
}

/// Which way up a card is laid out.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LayoutFace)]
pub enum Face {
    Up,
    Down,
}

impl From<LayoutSlot> for LayoutSlotOut {
    fn from(place: LayoutSlot) -> Self {
        let LayoutSlot { slot, level, x, y, face_up } = place;
        Self { slot, level, x, y, face: if face_up { Face::Up } else { Face::Down } }
    }
}

/// A pattern in which cards are laid out at the start.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Layout)]
pub struct LayoutOut {
    #[schema(example = "pyramids")]
    pub code: String,
    #[schema(example = "Pyramids")]
    pub name: String,
    pub slots: Vec<LayoutSlotOut>,
}

/// How a game can end.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = EndReasonName)]
pub struct EndReasonOut {
    pub code: EndReason,
    pub name: String,
}

/// A ruleset with everything that a client needs to draw and play it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Ruleset)]
pub struct RulesetOut {
    pub slug: RulesetId,
    /// Of the names and texts here.
    pub language: Language,
    #[schema(example = "Leopard")]
    pub name: String,
    /// Who made the game up.
    #[schema(example = "Robert Abbott")]
    pub designer: String,
    /// How many can play.
    pub seats: RangeOut,
    /// Grows when a rule's reading changes; stored with every game.
    pub rules_version: u32,
    /// What one does and how one wins.
    pub summary: String,
    /// The complete rules, Markdown, each under the code that errors cite.
    pub rules: String,
    /// JSON Schema (2020-12) of the options, with defaults.
    #[schema(value_type = Object)]
    pub options_schema: Value,
    /// JSON Schema (2020-12) of a move.
    #[schema(value_type = Object)]
    pub move_schema: Value,
    /// Kinds of things that cards and moves speak of (`symbol`, `suit`, `family`…), each in the order of the catalogue.
    pub terms: BTreeMap<String, Vec<TermOut>>,
    /// Every card face, in the order in which hands are sorted.
    pub cards: Vec<CardFaceOut>,
    /// Where cards can lie at the start; empty for rulesets without layouts.
    pub layouts: Vec<LayoutOut>,
    /// How a game can end.
    pub end_reasons: Vec<EndReasonOut>,
    /// Most moves that a game with default options can have.
    pub longest_game: u32,
    /// Smallest and greatest possible score of a seat.
    pub score: RangeOut,
}

fn seats(meta: &Meta) -> RangeOut {
    RangeOut { min: (*meta.seats.start()).into(), max: (*meta.seats.end()).into() }
}

impl RulesetSummaryOut {
    /// The ruleset in a language.
    pub fn new(slug: RulesetId, language: Language) -> Self {
        let meta = slug.meta();
        Self {
            slug,
            name: language.of(meta.name).to_owned(),
            designer: meta.designer.to_owned(),
            seats: seats(meta),
            rules_version: meta.rules_version,
            summary: language.of(meta.summary).to_owned(),
        }
    }
}

impl RulesetOut {
    /// The ruleset in a language, with the schemas of its options and moves.
    pub fn new(slug: RulesetId, language: Language, options_schema: Value, move_schema: Value) -> Self {
        let (meta, catalogue) = (slug.meta(), slug.catalogue());
        let owned = |text: &str| text.to_owned();
        let terms = catalogue.terms.into_iter().map(|(kind, terms)| {
            let terms =
                terms.iter().map(|term| TermOut { code: owned(term.code), name: owned(language.of(term.name)) });
            (owned(kind), terms.collect())
        });
        let cards = catalogue.cards.into_iter().map(|face| CardFaceOut {
            code: owned(face.code),
            name: language.choose(face.name_en, face.name_ru),
            copies: face.copies,
            shows: face.shows.into_iter().map(|(part, code)| (owned(part), owned(code))).collect(),
        });
        let layouts = catalogue.layouts.into_iter().map(|layout| LayoutOut {
            code: owned(layout.code),
            name: owned(language.of(layout.name)),
            slots: layout.slots.into_iter().map(LayoutSlotOut::from).collect(),
        });
        let own = meta.end_reasons.iter().copied();
        let reasons = own.chain([EndReason::Resignation]);
        Self {
            slug,
            language,
            name: owned(language.of(meta.name)),
            designer: owned(meta.designer),
            seats: seats(meta),
            rules_version: meta.rules_version,
            summary: owned(language.of(meta.summary)),
            rules: owned(language.of(meta.rules)),
            options_schema,
            move_schema,
            terms: terms.collect(),
            cards: cards.collect(),
            layouts: layouts.collect(),
            end_reasons: reasons.map(|code| EndReasonOut { code, name: owned(language.of(code.name())) }).collect(),
            longest_game: meta.longest_game,
            score: RangeOut { min: *meta.score.start(), max: *meta.score.end() },
        }
    }
}
