//! What goes over the wire, but for moves, states and events, whose shapes belong to their rulesets.

mod event;
mod game;
mod history;
mod player;
mod rating;
mod ruleset;
mod statistics;
mod token;
mod webhook;

pub use event::{EventOut, EventPageOut};
pub use game::{
    AnyGamePage, GameIdOut, GameIdPageOut, GameIn, GameOut, GamePageOut, GameSummaryOut, InvitationIn, LegalMovesOut,
    MoveAnswerOut, MoveOut, MovePageOut, RematchIn, SeatIn,
};
pub use history::{FairnessOut, PastStateOut};
pub use player::{PlayerIn, PlayerOut, ProfileIn, ProfileListOut, ProfileOut, RegistrationOut};
pub use rating::{LeaderboardOut, RatingChangeOut, RatingPageOut};
pub use ruleset::{RulesetListOut, RulesetOut, RulesetSummaryOut};
pub use statistics::{PlayerStatsOut, RulesetStatsOut};
pub use token::{IssuedOut, TokenIn, TokenListOut, TokenOut};
pub use webhook::{DeliveryOut, DeliveryPageOut, WebhookChangesIn, WebhookIn, WebhookListOut, WebhookOut};
