//! Taking games away: any number of them in one answer, which is made as it is read.

use std::io;

use actix_web::http::header;
use actix_web::{HttpResponse, get, web};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::listing::{FilterParams, Query, SortParam, read_cursor, write_cursor};
use crate::game::{Record, Status, Summary};
use crate::http::auth::MaybeToken;
use crate::http::dto::GameSummaryOut;
use crate::http::problem::Problem;

use crate::store::{Access, Filter, List, Scope, Sort, Store, StoreError, TimeKey};

/// How many games are read at once, and at the beginning: whoever asks does not wait for all of a batch.
const BATCH: u32 = 50;
const FIRST_BATCH: u32 = 1;

/// The form of the last line of an export.
const TRAILER: &str = "tavola-export-trailer/1";

/// In which form games are exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExportFormat)]
enum Format {
    /// One record a line, of finished games.
    #[default]
    Ndjson,
    /// One game a line, of any status, without its moves.
    Csv,
}

/// Order, form and beginning of an export.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportParams {
    /// The order, `finished` unless it is said: what ends later is then appended.
    #[param(inline, value_type = Option<SortParam>)]
    sort: Option<SortParam>,
    /// `ndjson` or `csv`.
    #[serde(default)]
    #[param(inline, value_type = Option<Format>)]
    format: Format,
    /// Begin after this game, the last that an export cut off had whole. Goes with the same filters and the same order.
    after: Option<Uuid>,
    /// Begin where an earlier export ended: the `cursor` of its trailer. Goes with the same filters and the same order.
    cursor: Option<String>,
}

/// The last line of an export; without it the export was cut off.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ExportTrailer)]
pub struct TrailerOut {
    /// The form of this line, which tells it from records: `tavola-export-trailer/1`.
    #[schema(example = "tavola-export-trailer/1")]
    format: &'static str,
    /// How many records come before it.
    count: u64,
    /// SHA-256 (lowercase hex) of all bytes before this line, as they are without compression.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    sha256: String,
    /// Send it as `cursor`, with the same filters and order, for what has come after since; null if nothing was exported.
    #[schema(required)]
    cursor: Option<String>,
}

impl TrailerOut {
    /// The end of an export of so many records, of which these are all bytes.
    pub fn new(count: u64, hash: Sha256, cursor: Option<String>) -> Self {
        Self { format: TRAILER, count, sha256: hex::encode(hash.finalize()), cursor }
    }
}

/// A table of these games, as an export has it, with its head or without.
///
/// # Errors
/// A line cannot be written.
pub fn table(with_head: bool, games: Vec<Summary>) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::Writer::from_writer(Vec::new());
    if with_head {
        table.write_record(head())?;
    }
    for game in games {
        table.write_record(line(game))?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}

/// Export games
///
/// All games of a filter in one answer, however many: as `application/x-ndjson` the records of finished games, one a line and in
/// the form of `get_record`, then one line that ends the export, `{"format": "tavola-export-trailer/1", "count", "sha256",
/// "cursor"}`: how many records there are, the SHA-256 of all bytes before this line, and where an export later can go on. An export
/// without that line was cut off: ask for the rest with `after`, the `game_id` of the last whole line. As `text/csv` the
/// list without moves, one game a line, with a line of column names first; it has no last line: whether it is whole is told by
/// HTTP (the end of a chunked body). Send `Accept-Encoding: gzip` to have it compressed.
#[utoipa::path(
    operation_id = "export_games", tag = "history", security((), ("token" = ["read"])),
    params(FilterParams, ExportParams),
    responses((status = 200, description = "The games", content(
        (String = "application/x-ndjson"), (String = "text/csv"))))
)]
#[get("/v1/games/export")]
pub(super) async fn export_games(
    store: web::Data<Store>,
    token: MaybeToken,
    query: Query<ExportParams>,
) -> Result<HttpResponse, Problem> {
    let me = match &token.0 {
        Some(token) => Some(store.authenticate(token, Scope::Read).await?.id),
        None => None,
    };
    let mut filter = query.filter(me)?;
    let params = query.rest;
    if params.format == Format::Ndjson {
        if filter.status.is_some_and(|status| status != Status::Finished) {
            return Err(Problem::parameter(
                "status",
                "only finished games have records; with `format=csv` all are listed",
            ));
        }
        filter.status = Some(Status::Finished);
    }
    let sort = params.sort.unwrap_or(SortParam::Finished).into();
    let after = match (&params.cursor, params.after) {
        (Some(_), Some(_)) => return Err(Problem::parameter("after", "give either `after` or `cursor`, not both")),
        (Some(cursor), None) => Some(read_cursor(cursor, &filter, sort)?),
        (None, Some(game)) => Some(place(&store, game, &token, sort).await?),
        (None, None) => None,
    };
    let mut export =
        Export { store, filter, sort, me, after, begun: false, ended: false, count: 0, hash: Sha256::new() };
    // What is refused is refused by its status: the first games are read before the answer begins.
    let (kind, first) = match params.format {
        Format::Ndjson => ("application/x-ndjson", export.records().await?),
        Format::Csv => ("text/csv; charset=utf-8", export.lines().await?),
    };
    let body = stream::unfold((first, export), move |(next, mut export)| async move {
        let bytes = match next {
            Some(bytes) => bytes,
            None => {
                let read = match params.format {
                    Format::Ndjson => export.records().await,
                    Format::Csv => export.lines().await,
                };
                match read {
                    Ok(bytes) => bytes?,
                    // There is no other way to tell than to break off.
                    Err(error) => {
                        tracing::warn!(%error, "an export was broken off");
                        export.ended = true;
                        return Some((Err(io::Error::other("broken off")), (None, export)));
                    }
                }
            }
        };
        Some((Ok::<_, io::Error>(web::Bytes::from(bytes)), (None, export)))
    });
    Ok(HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::VARY, "Authorization"))
        .content_type(kind)
        .streaming(body))
}

/// The place of a game in a list, if the caller may know of it.
async fn place(store: &Store, game: Uuid, token: &MaybeToken, sort: Sort) -> Result<TimeKey, Problem> {
    let access = Access { token: token.0, invite: None };
    match store.load_game(game, &access, Scope::Read, None).await {
        Ok(loaded) => Ok(sort.place(&loaded.game)),
        Err(StoreError::NotFound) => Err(Problem::parameter("after", "there is no such game")),
        Err(error) => Err(error.into()),
    }
}

/// An export under way: what of it has been made, and what is next.
struct Export {
    store: web::Data<Store>,
    filter: Filter,
    sort: Sort,
    me: Option<Uuid>,
    after: Option<TimeKey>,
    begun: bool,
    ended: bool,
    count: u64,
    hash: Sha256,
}

impl Export {
    fn batch(&mut self) -> u32 {
        if std::mem::replace(&mut self.begun, true) { BATCH } else { FIRST_BATCH }
    }

    /// The next records, or the trailer; none after that.
    async fn records(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        let batch = self.batch();
        let list = List { filter: &self.filter, sort: self.sort, caller: self.me };
        let page = self.store.games_with_moves(&list, self.after, batch).await?;
        let mut bytes = Vec::new();
        for (game, moves, rating) in page.items {
            self.after = Some(self.sort.place(&game));
            // The list has finished games only, each of which has a record.
            let Some(record) = Record::new(&game, moves, rating) else { continue };
            serde_json::to_writer(&mut bytes, &record).map_err(|error| StoreError::Corrupt(error.to_string()))?;
            bytes.push(b'\n');
            self.count += 1;
        }
        self.hash.update(&bytes);
        if page.next.is_none() {
            self.ended = true;
            let cursor = self.after.map(|after| write_cursor(after, &self.filter, self.sort));
            let trailer = TrailerOut::new(self.count, self.hash.clone(), cursor);
            serde_json::to_writer(&mut bytes, &trailer).map_err(|error| StoreError::Corrupt(error.to_string()))?;
            bytes.push(b'\n');
        }
        Ok(Some(bytes))
    }

    /// The next lines of a table, after its head; none after the last.
    async fn lines(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        let with_head = !self.begun;
        let batch = self.batch();
        let list = List { filter: &self.filter, sort: self.sort, caller: self.me };
        let page = self.store.list_games(&list, self.after, batch).await?;
        if let Some(last) = page.items.last() {
            self.after = Some(self.sort.place(last));
        }
        self.ended = page.next.is_none();
        table(with_head, page.items).map(Some).map_err(|error| StoreError::Corrupt(error.to_string()))
    }
}

/// Most seats that a game can have, each with columns of its own.
const SEATS: u8 = 4;

/// The columns about a game, and those about each of its seats.
const OF_GAME: [&str; 15] = [
    "id",
    "ruleset",
    "rules_version",
    "options",
    "status",
    "visibility",
    "spectators",
    "rated",
    "seat_count",
    "moves_count",
    "created_at",
    "started_at",
    "last_move_at",
    "finished_at",
    "end_reason",
];
const OF_SEAT: [&str; 7] = ["player_id", "player_name", "player_kind", "status", "rank", "score", "result"];

fn head() -> Vec<String> {
    let of_seats = (0..SEATS).flat_map(|seat| OF_SEAT.iter().map(move |column| format!("seat{seat}_{column}")));
    OF_GAME.iter().map(|column| (*column).to_owned()).chain(of_seats).collect()
}

/// The columns of a game as its resource has them; empty where that is null.
fn line(game: Summary) -> Vec<String> {
    let results: Vec<_> = (0..SEATS).map(|seat| game.result_of(seat)).collect();
    let resource = serde_json::to_value(GameSummaryOut::from(game)).unwrap_or_default();
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut line: Vec<String> = OF_GAME
        .iter()
        .map(
            |column| {
                if *column == "end_reason" { text(&resource["outcome"]["reason"]) } else { text(&resource[*column]) }
            },
        )
        .collect();
    for (seat, result) in (0..SEATS).zip(results) {
        let of_seat = |lines: &serde_json::Value| {
            let lines = lines.as_array().into_iter().flatten();
            lines.into_iter().find(|line| line["seat"] == seat).cloned().unwrap_or_default()
        };
        let (taken, ranked) = (of_seat(&resource["seats"]), of_seat(&resource["outcome"]["ranking"]));
        let result = result.filter(|_| !taken.is_null()).map(|result| result.as_str().to_owned());
        line.extend([&taken["player"]["id"], &taken["player"]["name"], &taken["player"]["kind"]].map(text));
        line.extend([&taken["status"], &ranked["rank"], &ranked["score"]].map(text));
        line.push(result.unwrap_or_default());
    }
    line
}
