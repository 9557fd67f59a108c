//! The options of `leopard`: how long a match is (P11) and what a line of one suit is worth (P12).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rulesets::OptionError;

/// Hands of a match unless an option says otherwise: each player deals once (P11).
const DEFAULT_HANDS: u32 = 2;

/// Most hands of a match to a number of points (P11).
pub(super) const MOST_HANDS: usize = 24;

/// Options of `leopard`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LeopardOptions)]
pub struct Options {
    /// How many hands make a match (P11): 1 to 12, default 2. Not together with `target_points`.
    #[serde(default, deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 12, default = 2)]
    pub hands: Option<u32>,
    /// Play hands until a player has that many points at the end of one, 24 hands at most (P11): 1 to 100. Not together
    /// with `hands`; by default `hands` is in force.
    #[serde(default, deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 100)]
    pub target_points: Option<u32>,
    /// What a line of one suit is worth (P12); default `1962`.
    #[serde(default, deserialize_with = "crate::rulesets::present", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, default = "1962")]
    pub scoring: Option<Scoring>,
}

impl Options {
    /// See [`crate::rulesets::Ruleset::resolve`].
    pub(super) fn resolve(&self) -> Result<Options, Vec<OptionError>> {
        let mut errors = Vec::new();
        let mut refuse = |option, detail: &str| errors.push(OptionError { option, detail: detail.into() });
        if self.hands.is_some_and(|hands| !(1..=12).contains(&hands)) {
            refuse("hands", "hands is 1 to 12");
        }
        if self.target_points.is_some_and(|points| !(1..=100).contains(&points)) {
            refuse("target_points", "target_points is 1 to 100");
        } else if self.hands.is_some() && self.target_points.is_some() {
            refuse("target_points", "give either hands or target_points, not both");
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Options {
            hands: if self.target_points.is_none() { self.hands.or(Some(DEFAULT_HANDS)) } else { None },
            target_points: self.target_points,
            scoring: self.scoring.or(Some(Scoring::default())),
        })
    }

    /// What ends the match.
    pub(super) fn goal(&self) -> Goal {
        match self.target_points {
            Some(points) => Goal::Points(points as u8),
            None => Goal::Hands(self.hands.unwrap_or(DEFAULT_HANDS) as u8),
        }
    }
}

/// Which edition of the rules tells what a line of one suit is worth (P12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeopardScoring)]
pub enum Scoring {
    /// Two points.
    #[default]
    #[serde(rename = "1962")]
    Edition1962,
    /// Three points.
    #[serde(rename = "2008")]
    Edition2008,
}

impl Scoring {
    /// Points for a line of one suit; one of one colour only gives one point in either edition.
    pub(super) fn suit_line(self) -> u8 {
        match self {
            Scoring::Edition1962 => 2,
            Scoring::Edition2008 => 3,
        }
    }
}

/// What ends a match (P11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Goal {
    /// So many hands.
    Hands(u8),
    /// So many points of one player, or [`MOST_HANDS`].
    Points(u8),
}

impl Goal {
    /// Whether the match is over after that many hands, with these totals.
    pub(super) fn reached(self, hands: usize, totals: [u16; 2]) -> bool {
        let reached = match self {
            Goal::Hands(goal) => hands >= usize::from(goal),
            Goal::Points(goal) => totals.iter().any(|total| *total >= u16::from(goal)),
        };
        reached || hands >= MOST_HANDS
    }
}
