//! Statistics of players and of rulesets, as far as games have been counted.

use actix_web::{HttpResponse, get, web};
use serde::{Deserialize, Deserializer};
use utoipa::IntoParams;

use crate::http::auth::MaybeToken;
use crate::http::dto::{PlayerStatsOut, RulesetStatsOut};
use crate::http::problem::Problem;
use crate::http::request::{Id, Params, number};
use crate::rulesets::registry::RulesetId;
use crate::store::{Scope, Store};

/// Of which games.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PlayerStatsParams {
    /// Only games of this ruleset.
    ruleset: Option<RulesetId>,
}

/// Get a player's statistics
///
/// How the player's finished games went: in total, by ruleset, by number of seats, by opponent and by month. Games that were
/// called off do not count. Private games count for the player alone, with a token of their own; everybody else is told of
/// public games. A game counts within some seconds of its end.
#[utoipa::path(
    operation_id = "get_player_stats", tag = "statistics", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The player's id"), PlayerStatsParams),
    responses((status = 200, description = "The statistics", body = PlayerStatsOut))
)]
#[get("/v1/players/{id}/stats")]
pub(super) async fn get_player_stats(
    store: web::Data<Store>,
    token: MaybeToken,
    id: Id,
    params: Params<PlayerStatsParams>,
) -> Result<HttpResponse, Problem> {
    let caller = match &token.0 {
        Some(token) => Some(store.authenticate(token, Scope::Read).await?.id),
        None => None,
    };
    let player = store.profile(id.0).await?.ok_or_else(Problem::not_found)?.player;
    let statistics = store.player_statistics(id.0, caller == Some(id.0), params.0.ruleset).await?;
    Ok(HttpResponse::Ok()
        .insert_header(("cache-control", "no-cache"))
        .insert_header(("vary", "Authorization"))
        .json(PlayerStatsOut::new(player, statistics)))
}

/// A number of seats.
#[derive(Clone, Copy, Debug)]
struct Seats(u8);

impl<'de> Deserialize<'de> for Seats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is no byte is refused before.
        number(deserializer, 1..=u32::from(u8::MAX)).map(|seats| Seats(seats as u8))
    }
}

/// Of which games.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RulesetStatsParams {
    /// Only games of so many players.
    #[param(value_type = Option<u8>, minimum = 1, maximum = 255)]
    seats: Option<Seats>,
}

/// Get a ruleset's statistics
///
/// What public finished games of the ruleset show: how they ended, how long they were, whether moving first is worth something,
/// what scores there were. A game counts within some seconds of its end.
#[utoipa::path(
    operation_id = "get_ruleset_stats", tag = "statistics",
    params(("slug" = String, Path, description = "The ruleset's slug", example = "leopard"), RulesetStatsParams),
    responses((status = 200, description = "The statistics", body = RulesetStatsOut))
)]
#[get("/v1/rulesets/{slug}/stats")]
pub(super) async fn get_ruleset_stats(
    store: web::Data<Store>,
    slug: web::Path<String>,
    params: Params<RulesetStatsParams>,
) -> Result<HttpResponse, Problem> {
    let ruleset = RulesetId::from_slug(&slug).ok_or_else(Problem::not_found)?;
    let statistics = store.ruleset_statistics(ruleset, params.0.seats.map(|seats| seats.0)).await?;
    Ok(HttpResponse::Ok().insert_header(("cache-control", "no-cache")).json(RulesetStatsOut::new(ruleset, &statistics)))
}
