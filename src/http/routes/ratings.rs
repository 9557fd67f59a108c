//! Ratings: a player's, and leaderboards.

use actix_web::{HttpRequest, HttpResponse, get, web};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;
use uuid::Uuid;

use crate::game::PlayerKind;
use crate::http::auth::MaybeToken;
use crate::http::dto::{LeaderboardOut, RatingChangeOut, RatingPageOut};
use crate::http::problem::{Code, Problem};
use crate::http::request::{Id, Limit, Params, id};
use crate::rulesets::registry::RulesetId;
use crate::store::{LeaderPlace, Scope, Store};

/// What tells a list from others: a cursor of another one is refused.
fn fingerprint(list: &str) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(list).into();
    std::array::from_fn(|i| digest[i])
}

/// The place that a cursor of this list means, in `N` bytes.
///
/// # Errors
/// It is none that [`write_cursor`] writes, or that of another list.
pub(super) fn read_cursor<const N: usize>(cursor: &str, list: &str) -> Result<[u8; N], Problem> {
    let refused = |detail| Problem::parameter("cursor", detail);
    let bytes = hex::decode(cursor).map_err(|_| refused("this is no cursor of this server"))?;
    match bytes.split_first_chunk::<8>() {
        Some((of, place)) if *of == fingerprint(list) => {
            let place = place.try_into().ok().filter(|place: &[u8; N]| write_cursor(list, place) == cursor);
            place.ok_or_else(|| refused("this is no cursor of this server"))
        }
        Some(_) => Err(refused("the cursor belongs to another list, or one with other filters")),
        None => Err(refused("this is no cursor of this server")),
    }
}

pub(super) fn write_cursor(list: &str, place: &[u8]) -> String {
    hex::encode([&fingerprint(list)[..], place].concat())
}

/// Which ratings of a player.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RatingParams {
    /// Only those of this ruleset.
    ruleset: Option<RulesetId>,
    /// How many games a page has.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// List a player's ratings
///
/// What the player has now in each ruleset, and the rated games that it came from, the last first, with what everybody in them had
/// before and after. Ratings are counted when a game is finished, from what its players have at that moment. The method is that of
/// Weng and Lin (OpenSkill): a rating is a mean and a deviation, and everybody begins with 25 and 25/3.
#[utoipa::path(
    operation_id = "list_ratings", tag = "ratings",
    params(("id" = Uuid, Path, description = "The player's id"), RatingParams),
    responses((status = 200, description = "The ratings, and a page of games", body = RatingPageOut))
)]
#[get("/v1/players/{id}/ratings")]
pub(super) async fn list_ratings(
    store: web::Data<Store>,
    id: Id,
    params: Params<RatingParams>,
) -> Result<HttpResponse, Problem> {
    let RatingParams { ruleset, limit, cursor } = params.0;
    store.profile(id.0).await?.ok_or_else(Problem::not_found)?;
    let list = format!("ratings {} {ruleset:?}", id.0);
    let before = cursor.map(|cursor| read_cursor(&cursor, &list).map(i64::from_be_bytes)).transpose()?;
    let current = store.current_ratings(id.0, ruleset).await?;
    let (changes, next) = store.rating_changes(id.0, ruleset, before, limit.0).await?;
    Ok(HttpResponse::Ok().json(RatingPageOut {
        current: current.into_iter().map(Into::into).collect(),
        items: changes.into_iter().filter_map(|change| RatingChangeOut::new(change, id.0)).collect(),
        next_cursor: next.map(|number| write_cursor(&list, &number.to_be_bytes())),
    }))
}

/// Which part of a leaderboard.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LeaderParams {
    /// Whose leaderboard: humans and bots are rated apart.
    #[serde(default)]
    #[param(value_type = Option<PlayerKind>, default = "human")]
    pool: PlayerKind,
    /// How many players a page has.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// The page in whose middle this player stands: an id, or `me`. Goes without `cursor`.
    #[param(example = "me")]
    around: Option<String>,
}

/// The bytes of a place.
pub(super) fn place_bytes(place: LeaderPlace) -> Vec<u8> {
    [&place.ordinal.to_be_bytes()[..], place.player.as_bytes(), &place.lines.to_be_bytes(), &place.rank.to_be_bytes()]
        .concat()
}

/// The place of those bytes.
pub(super) fn read_place(bytes: [u8; 32]) -> Option<LeaderPlace> {
    let (ordinal, rest) = bytes.split_first_chunk()?;
    let (player, rest) = rest.split_first_chunk()?;
    let (lines, rest) = rest.split_first_chunk()?;
    let ordinal = f64::from_be_bytes(*ordinal);
    ordinal.is_finite().then_some(LeaderPlace {
        ordinal,
        player: Uuid::from_bytes(*player),
        lines: u32::from_be_bytes(*lines),
        rank: u32::from_be_bytes(rest.try_into().ok()?),
    })
}

/// Get a leaderboard
///
/// All who have finished a rated game of the ruleset, in order of `ordinal`: what they are worth almost certainly, which few games do
/// not make great. Deleted accounts are not listed.
#[utoipa::path(
    operation_id = "get_leaderboard", tag = "ratings", security((), ("token" = ["read"])),
    params(("ruleset" = RulesetId, Path, description = "The ruleset's slug"), LeaderParams),
    responses((status = 200, description = "A page of players", body = LeaderboardOut))
)]
#[get("/v1/leaderboards/{ruleset}")]
pub(super) async fn get_leaderboard(
    request: HttpRequest,
    store: web::Data<Store>,
    token: MaybeToken,
    params: Params<LeaderParams>,
) -> Result<HttpResponse, Problem> {
    let LeaderParams { pool, limit, cursor, around } = params.0;
    let slug = request.match_info().get("ruleset").unwrap_or_default();
    let ruleset = RulesetId::from_slug(slug).ok_or_else(Problem::not_found)?;
    let me = match token.0 {
        Some(token) => Some(store.authenticate(&token, Scope::Read).await?.id),
        None => None,
    };
    let around = match around.as_deref() {
        None => None,
        Some("me") => Some(me.ok_or_else(|| Problem::new(Code::Unauthenticated, "`me` needs a token"))?),
        Some(text) => {
            let refused = || Problem::parameter("around", "a player's id, which is a UUID, or `me`");
            Some(id(text).ok_or_else(refused)?)
        }
    };
    let list = format!("leaderboard {slug} {}", pool.as_str());
    let page = match (around, cursor) {
        (Some(_), Some(_)) => return Err(Problem::parameter("around", "it goes without `cursor`")),
        (Some(player), None) => store
            .leaders_around(ruleset, pool, player, limit.0)
            .await?
            .ok_or_else(|| Problem::new(Code::NotFound, "the player is not on this leaderboard"))?,
        (None, cursor) => {
            let refused = || Problem::parameter("cursor", "this is no cursor of this server");
            let after = match cursor {
                Some(cursor) => read_place(read_cursor(&cursor, &list)?).ok_or_else(refused)?,
                None => LeaderPlace::TOP,
            };
            store.leaders(ruleset, pool, after, limit.0).await?
        }
    };
    let mut response = HttpResponse::Ok();
    Ok(response.insert_header(("vary", "Authorization")).json(LeaderboardOut {
        ruleset,
        pool,
        items: page.items.into_iter().map(Into::into).collect(),
        next_cursor: page.next.map(|place| write_cursor(&list, &place_bytes(place))),
    }))
}
