//! Lists of games: reading their filters, orders and cursors from a query.

use std::collections::BTreeMap;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcOffset};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::game::{GameResult, Status};
use crate::http::problem::{Code, Problem};
use crate::http::request::{id, number, pairs, typed};
use crate::rulesets::EndReason;
use crate::rulesets::registry::RulesetId;
use crate::store::{Filter, Sort, SortKey, Span, TimeKey};

/// By what a list is in order: `-` in front for the latest first. Games that have no such time come last, either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = GameSort)]
pub(super) enum SortParam {
    #[serde(rename = "created")]
    Created,
    #[default]
    #[serde(rename = "-created")]
    CreatedLatest,
    #[serde(rename = "finished")]
    Finished,
    #[serde(rename = "-finished")]
    FinishedLatest,
    #[serde(rename = "last_move")]
    LastMove,
    #[serde(rename = "-last_move")]
    LastMoveLatest,
}

impl From<SortParam> for Sort {
    fn from(sort: SortParam) -> Self {
        let (key, descending) = match sort {
            SortParam::Created => (SortKey::Created, false),
            SortParam::CreatedLatest => (SortKey::Created, true),
            SortParam::Finished => (SortKey::Finished, false),
            SortParam::FinishedLatest => (SortKey::Finished, true),
            SortParam::LastMove => (SortKey::LastMove, false),
            SortParam::LastMoveLatest => (SortKey::LastMove, true),
        };
        Sort { key, descending }
    }
}

/// Filters of a list of games; all that are given must hold.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FilterParams {
    /// Only games of this status.
    status: Option<Status>,
    /// Only games of this ruleset.
    ruleset: Option<RulesetId>,
    /// Only games in which this player has a seat: an id, or `me`.
    #[param(example = "me")]
    player: Option<String>,
    /// Only games in which this other player has a seat too: an id, or `me`. Goes with `player`.
    opponent: Option<String>,
    /// Only finished games that went like this for `player`.
    #[param(inline)]
    result: Option<GameResult>,
    /// Only games in which it is this player's turn: an id, or `me`.
    #[param(example = "me")]
    to_move: Option<String>,
    /// `true`: only games that count for ratings; `false`: only those that do not.
    #[param(value_type = Option<bool>)]
    rated: Option<Flag>,
    /// Only games that ended so.
    end_reason: Option<EndReason>,
    /// Only games of at least so many moves.
    #[param(value_type = Option<u32>, maximum = 2147483647)]
    moves_min: Option<Count>,
    /// Only games of at most so many moves.
    #[param(value_type = Option<u32>, maximum = 2147483647)]
    moves_max: Option<Count>,
    /// Only games created at this instant (RFC 3339, `+` written as `%2B`) or later.
    #[param(value_type = Option<String>, format = DateTime)]
    created_after: Option<Instant>,
    /// Only games created before this instant.
    #[param(value_type = Option<String>, format = DateTime)]
    created_before: Option<Instant>,
    /// Only games that were over at this instant or later.
    #[param(value_type = Option<String>, format = DateTime)]
    finished_after: Option<Instant>,
    /// Only games that were over before this instant.
    #[param(value_type = Option<String>, format = DateTime)]
    finished_before: Option<Instant>,
    /// Only games whose last move so far was played at this instant or later.
    #[param(value_type = Option<String>, format = DateTime)]
    last_move_after: Option<Instant>,
    /// Only games whose last move so far was played before this instant.
    #[param(value_type = Option<String>, format = DateTime)]
    last_move_before: Option<Instant>,
}

/// `true` or `false`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag(bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "true" => Ok(Flag(true)),
            "false" => Ok(Flag(false)),
            _ => Err(serde::de::Error::custom("`true` or `false`")),
        }
    }
}

/// A number of moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count(u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number(deserializer, 0..=i32::MAX as u32).map(Count)
    }
}

/// An instant, written as in RFC 3339 and in no other way; in UTC, and rounded up to the microsecond, which is what times of games are
/// in: they are before the one exactly if they are before the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instant(OffsetDateTime);

impl Instant {
    /// None if that is after the year 9999.
    fn new(at: OffsetDateTime) -> Option<Self> {
        let at = at.checked_to_offset(UtcOffset::UTC)?;
        let beyond = at.nanosecond() % 1_000;
        let rest = if beyond == 0 { 0 } else { 1_000 - beyond };
        at.checked_add(Duration::nanoseconds(rest.into())).map(Self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        OffsetDateTime::parse(&text, &Rfc3339).ok().and_then(Instant::new).ok_or_else(|| {
            let form = "an instant as in RFC 3339, such as 2026-01-31T12:00:00Z";
            let hint =
                if text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.')) && !text.is_empty() {
                    "; a bare number or date is none: seconds, or milliseconds? in which zone?"
                } else if text.contains(' ') {
                    "; in a URL the `+` of an offset is written %2B"
                } else {
                    ""
                };
            serde::de::Error::custom(format!("{form}{hint}"))
        })
    }
}

/// What a query asks for: which games, and whatever else the operation takes.
#[derive(Debug)]
pub(super) struct Query<T> {
    filters: FilterParams,
    /// `option.<name>`, as they are written.
    options: BTreeMap<String, String>,
    pub rest: T,
}

/// The names of [`FilterParams`].
const FILTERS: [&str; 16] = [
    "status",
    "ruleset",
    "player",
    "opponent",
    "result",
    "to_move",
    "rated",
    "end_reason",
    "moves_min",
    "moves_max",
    "created_after",
    "created_before",
    "finished_after",
    "finished_before",
    "last_move_after",
    "last_move_before",
];

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(read(request.query_string()))
    }
}

fn read<T: DeserializeOwned>(query: &str) -> Result<Query<T>, Problem> {
    let (mut filters, mut options, mut rest) = (Map::new(), BTreeMap::new(), Map::new());
    for (name, value) in pairs(query)? {
        match (name.strip_prefix("option."), &value) {
            (Some(option), Value::String(value)) => drop(options.insert(option.to_owned(), value.clone())),
            _ if FILTERS.contains(&name.as_str()) => drop(filters.insert(name, value)),
            _ => drop(rest.insert(name, value)),
        }
    }
    Ok(Query { filters: typed(filters)?, options, rest: typed(rest)? })
}

impl<T> Query<T> {
    /// The filter that is meant by this caller.
    ///
    /// # Errors
    /// As [`filter`].
    pub fn filter(&self, me: Option<Uuid>) -> Result<Filter, Problem> {
        filter(&self.filters, &self.options, me)
    }
}

/// The filter that these parameters mean to somebody.
///
/// # Errors
/// `me` needs an account; an id is none; filters that only go together are not; no ruleset has such an option.
fn filter(params: &FilterParams, options: &BTreeMap<String, String>, me: Option<Uuid>) -> Result<Filter, Problem> {
    let player = |name: &str, text: &Option<String>| match text.as_deref() {
        None => Ok(None),
        Some("me") => me.map(Some).ok_or_else(|| Problem::new(Code::Unauthenticated, "`me` needs a token")),
        Some(text) => {
            id(text).map(Some).ok_or_else(|| Problem::parameter(name, "a player's id, which is a UUID, or `me`"))
        }
    };
    let span =
        |from: Option<Instant>, until: Option<Instant>| Span { from: from.map(|at| at.0), until: until.map(|at| at.0) };
    let filter = Filter {
        status: params.status,
        ruleset: params.ruleset,
        player: player("player", &params.player)?,
        opponent: player("opponent", &params.opponent)?,
        result: params.result,
        to_move: player("to_move", &params.to_move)?,
        rated: params.rated.map(|flag| flag.0),
        end_reason: params.end_reason,
        options: option_values(options, params.ruleset)?,
        moves_min: params.moves_min.map(|count| count.0),
        moves_max: params.moves_max.map(|count| count.0),
        created: span(params.created_after, params.created_before),
        finished: span(params.finished_after, params.finished_before),
        last_move: span(params.last_move_after, params.last_move_before),
    };
    if filter.player.is_none() {
        for (name, given) in [("opponent", filter.opponent.is_some()), ("result", filter.result.is_some())] {
            if given {
                return Err(Problem::parameter(name, "it goes with `player`: whose opponent, or result, it is"));
            }
        }
    }
    if filter.opponent.is_some() && filter.opponent == filter.player {
        return Err(Problem::parameter("opponent", "nobody is their own opponent"));
    }
    Ok(filter)
}

/// The values that options are to have, each as its ruleset writes it: `2` is the number, unless the option takes words.
fn option_values(
    options: &BTreeMap<String, String>,
    ruleset: Option<RulesetId>,
) -> Result<Map<String, Value>, Problem> {
    let rulesets = RulesetId::ALL.iter().filter(|id| ruleset.is_none_or(|wanted| wanted == **id));
    let takes = |name: &str, value: &Value| {
        rulesets.clone().any(|id| {
            let given: Map<String, Value> = [(name.to_owned(), value.clone())].into_iter().collect();
            id.meta().seats.clone().any(|seats| id.options(&given, seats).is_ok())
        })
    };
    let mut values = Map::new();
    for (name, text) in options {
        let plain = serde_json::from_str(text).ok().filter(|value: &Value| !value.is_array() && !value.is_object());
        let word = Some(Value::from(text.as_str()));
        let value = [plain, word].into_iter().flatten().find(|value| takes(name, value));
        let refused = || {
            let whose = ruleset.map_or("no ruleset has".to_owned(), |id| format!("{} does not have", id.meta().slug));
            Problem::parameter(&format!("option.{name}"), format!("{whose} an option of this name with this value"))
        };
        values.insert(name.clone(), value.ok_or_else(refused)?);
    }
    Ok(values)
}

/// What tells a list from others, in eight bytes: a cursor of another list is refused.
fn fingerprint(filter: &Filter, sort: Sort) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(format!("{filter:?} {sort:?}")).into();
    std::array::from_fn(|i| digest[i])
}

/// A cursor: which list, and the place in it.
pub(super) fn write_cursor(after: TimeKey, filter: &Filter, sort: Sort) -> String {
    // Microseconds are what the database has; none of its times comes near the end of them.
    let micros = after.at.map_or(i64::MAX, |at| (at.unix_timestamp_nanos() / 1_000) as i64);
    hex::encode([&fingerprint(filter, sort)[..], &micros.to_be_bytes(), after.game_id.as_bytes()].concat())
}

/// The place that a cursor means.
///
/// # Errors
/// It is none that [`write_cursor`] writes, or that of another list.
pub(super) fn read_cursor(cursor: &str, filter: &Filter, sort: Sort) -> Result<TimeKey, Problem> {
    let refused = |detail| Problem::parameter("cursor", detail);
    let none = "this is no cursor of this server";
    let mut bytes = [0; 32];
    hex::decode_to_slice(cursor, &mut bytes).map_err(|_| refused(none))?;
    let (list, micros, id) = (&bytes[..8], &bytes[8..16], &bytes[16..]);
    if list != fingerprint(filter, sort) {
        return Err(refused("the cursor belongs to a list with other filters or another order"));
    }
    let micros = i64::from_be_bytes(micros.try_into().map_err(|_| refused(none))?);
    let at = match micros {
        i64::MAX => None,
        // PostgreSQL's times begin after Rust's do; no game is older than 1970 or ends after the year 2200.
        0..7_258_118_400_000_000 => {
            Some(OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).map_err(|_| refused(none))?)
        }
        _ => return Err(refused(none)),
    };
    let game_id = Uuid::from_slice(id).map_err(|_| refused(none))?;
    let key = TimeKey { at, game_id };
    Some(key).filter(|key| write_cursor(*key, filter, sort) == cursor).ok_or_else(|| refused(none))
}
