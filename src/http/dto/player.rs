//! Players on the wire.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::game::{Player, PlayerKind};
use crate::store::Profile;

/// A new account.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPlayer)]
pub struct PlayerIn {
    /// 1–32 characters after trimming (normalised to NFC), none of them invisible; unique without regard to case.
    #[schema(min_length = 1, example = "Ada")]
    pub name: String,
    /// `bot` for a playing program.
    #[serde(default)]
    pub kind: PlayerKind,
}

/// Changes of one's own account.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PlayerChanges)]
pub struct ProfileIn {
    /// As when registering; left out, it stays.
    #[serde(default, deserialize_with = "crate::rulesets::present")]
    #[schema(nullable = false, min_length = 1, example = "Ada L.")]
    pub name: Option<String>,
}

/// An account, as seats show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Player)]
pub struct PlayerOut {
    pub id: Uuid,
    #[schema(example = "Ada")]
    pub name: String,
    pub kind: PlayerKind,
}

impl From<Player> for PlayerOut {
    fn from(player: Player) -> Self {
        Self { id: player.id, name: player.name, kind: player.kind }
    }
}

/// An account, as its own page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Profile)]
pub struct ProfileOut {
    pub id: Uuid,
    #[schema(example = "Ada")]
    pub name: String,
    pub kind: PlayerKind,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The accounts that were found.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ProfileList)]
pub struct ProfileListOut {
    pub items: Vec<ProfileOut>,
}

impl From<Profile> for ProfileOut {
    fn from(profile: Profile) -> Self {
        let Player { id, name, kind } = profile.player;
        Self { id, name, kind, created_at: profile.created_at }
    }
}

/// A new account and its token.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Registration)]
pub struct RegistrationOut {
    pub player: ProfileOut,
    /// Send it as `Authorization: Bearer <token>`. It is shown this once; the server keeps only a hash of it.
    #[schema(example = "tavola_5f0c6f4b7a1f4f0e9d3d5f9b1c2a3e4d5f60718293a4b5c6d7e8f90a1b2c3d4e")]
    pub token: String,
}
