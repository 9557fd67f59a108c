//! Events: what happens to a game, and to a player anywhere; as pages or as streams.

use actix_web::{HttpRequest, HttpResponse, get, web};
use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::game::{EventKind, Game, LogRow, Place, Summary};
use crate::http::auth::{Asking, Token};
use crate::http::dto::{EventOut, EventPageOut};
use crate::http::problem::{Code, Problem};
use crate::http::request::{Id, Limit, Params, last_event_id};
use crate::http::stream::{self, Form, Source};
use crate::store::{Access, FeedCursor, FeedKey, Loaded, Names, Scope, Store, TokenHash};

/// How many events a stream reads at once.
const BATCH: u32 = 50;

/// How many games the first event of a player's stream shows.
const SNAPSHOT_GAMES: u32 = 100;

/// Which part of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventParams {
    /// Only events after the one with this `id`. For a stream `Last-Event-ID` means the same and goes before.
    #[param(example = "17.0")]
    after: Option<String>,
    /// How many events a page has; a stream has no end.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
    /// The code of a private game.
    #[serde(default)]
    #[allow(dead_code, reason = "it is read with the token")]
    invite: Option<String>,
}

/// Which part of a player's events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FeedParams {
    /// Only events after the one with this `id`. For a stream `Last-Event-ID` means the same and goes before.
    after: Option<String>,
    /// How many events a page has; a stream has no end.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100, default = 20)]
    limit: Limit,
}

pub(super) fn write_place(place: Place) -> String {
    match place.index {
        u16::MAX => place.version.to_string(),
        index => format!("{}.{index}", place.version),
    }
}

/// The place that a text means, if it is written as [`write_place`] does.
pub(super) fn read_place(text: &str) -> Option<Place> {
    let (version, index) = match text.split_once('.') {
        Some((version, index)) => (version, Some(index)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(version) || !index.is_none_or(digits) {
        return None;
    }
    let version = version.parse().ok().filter(|version| *version <= i32::MAX as u32)?;
    let index = index.map_or(Some(u16::MAX), |index| index.parse().ok().filter(|index| *index <= i16::MAX as u16))?;
    Some(Place { version, index }).filter(|place| write_place(*place) == text)
}

/// A game as a reader of its log goes along it.
struct GameReader {
    store: web::Data<Store>,
    id: Uuid,
    access: Access,
    /// The game as of the last event that was read, and its place; none before the first.
    at: Option<(Game, Place)>,
    /// The place after which the reader wants to read on, until it is known to be one.
    wanted: Option<String>,
}

impl GameReader {
    async fn load(&self) -> Result<Loaded, Problem> {
        Ok(self.store.load_game(self.id, &self.access, Scope::Read, None).await?)
    }

    /// The events after the last one that was read, up to `limit`.
    async fn read_on(&mut self, loaded: &Loaded, limit: u32) -> Result<Vec<EventOut>, Problem> {
        let viewer = loaded.caller.as_ref().map(|player| player.id);
        let place = self.at.as_ref().map(|(_, place)| *place);
        if place.is_some_and(|place| place >= Place::after(loaded.game.version)) {
            return Ok(Vec::new());
        }
        let rows = self.store.log_after(&loaded.game, place, limit).await?;
        let names = names(&self.store, &loaded.game, &rows).await?;
        let player = |id| names.get(&id).cloned();
        let mut events = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut game = match self.at.take() {
                Some((game, _)) => game,
                // The first row tells everything.
                None => Game { state: None, ..loaded.game.clone() },
            };
            game.advance(row, player).map_err(|error| {
                tracing::error!(game = %self.id, %error, "the log cannot be replayed");
                Problem::new(Code::Internal, "the server failed")
            })?;
            // Codes are no part of the log: only the present one is of any use, and it is for the present creator.
            game.invite = loaded.game.invite.clone().filter(|_| viewer == Some(loaded.game.creator));
            events.push(EventOut::in_game(write_place(row.place()), &game, row, viewer, player));
            self.at = Some((game, row.place()));
        }
        // That was all of the version that was loaded: its number is enough to see whether there is more.
        let end = Place::after(loaded.game.version);
        if rows.len() < limit as usize
            && let Some((_, place)) = &mut self.at
        {
            *place = end.max(*place);
        }
        Ok(events)
    }

    /// Goes to the place that was wanted; answers whether it is one of this game's log.
    async fn go(&mut self, loaded: &Loaded, wanted: &str) -> Result<bool, Problem> {
        let Some(place) = read_place(wanted) else { return Ok(false) };
        let Some(game) = self.store.game_at(&loaded.game, place).await? else { return Ok(false) };
        self.at = Some((game, place));
        Ok(true)
    }

    fn snapshot(&mut self, loaded: &Loaded) -> EventOut {
        let place = Place::after(loaded.game.version);
        self.at = Some((loaded.game.clone(), place));
        let viewer = loaded.caller.as_ref().map(|player| player.id);
        EventOut::snapshot(write_place(place), &loaded.game, viewer, loaded.now)
    }
}

async fn names(store: &Store, game: &Game, rows: &[LogRow]) -> Result<Names, Problem> {
    let facts = rows.iter().filter_map(|row| match row {
        LogRow::Move(_) => None,
        LogRow::Occurrence(occurrence) => Some(&occurrence.facts),
    });
    let concerned = rows.iter().filter_map(|row| match row {
        LogRow::Move(_) => None,
        LogRow::Occurrence(occurrence) => occurrence.happening.player,
    });
    Ok(store.names(game, facts, concerned).await?)
}

impl Source for GameReader {
    async fn next(&mut self) -> Result<Vec<EventOut>, Problem> {
        // Most of the time there is nothing new, which takes less to find out than to load the game.
        if let Some((_, place)) = &self.at
            && let Some(version) = self.store.version(self.id, &self.access, Scope::Read).await?
            && *place >= Place::after(version)
        {
            return Ok(Vec::new());
        }
        let loaded = self.load().await?;
        if self.at.is_some() {
            return self.read_on(&loaded, BATCH).await;
        }
        let Some(wanted) = self.wanted.take() else { return Ok(vec![self.snapshot(&loaded)]) };
        if self.go(&loaded, &wanted).await? {
            return self.read_on(&loaded, BATCH).await;
        }
        let resync = EventOut {
            game_id: Some(self.id),
            version: Some(loaded.game.version),
            ..EventOut::bare(write_place(Place::after(loaded.game.version)), EventKind::Resync, loaded.now)
        };
        Ok(vec![resync, self.snapshot(&loaded)])
    }
}

/// Follow a game
///
/// The one log of everything visible that happens to a game, made for you. With `Accept: text/event-stream` (server-sent
/// events) or `Accept: application/x-ndjson` (a JSON object a line) the answer is a stream: first a `snapshot` with the whole
/// game, then each event when it happens; with `Last-Event-ID` (or `after`) instead of the snapshot everything since that event,
/// nothing lost and nothing doubled, at whichever server. A place that this log does not have gets `resync` and a snapshot. Every
/// 15 s there is a heartbeat (a comment, or an empty line); a reader who does not read for 30 s is cut off. With any other `Accept`
/// the answer is a page of the log, from the beginning or from `after` on.
#[utoipa::path(
    operation_id = "list_events", tag = "events", security((), ("token" = ["read"])),
    params(("id" = Uuid, Path, description = "The game's id"), EventParams,
           ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that you have; for streams")),
    responses((status = 200, description = "A page of events, or a stream of them",
               content((EventPageOut = "application/json"), (String = "text/event-stream"), (String = "application/x-ndjson"))))
)]
#[get("/v1/games/{id}/events")]
pub(super) async fn list_events(
    store: web::Data<Store>,
    request: HttpRequest,
    asking: Asking,
    id: Id,
    params: Params<EventParams>,
) -> Result<HttpResponse, Problem> {
    let form = Form::of(&request);
    let wanted = last_event_id(&request, form).or(params.0.after);
    // Waits before it looks: what happens in between is not missed.
    let watch = store.watch(id.0);
    let mut reader = GameReader { store: store.clone(), id: id.0, access: asking.0, at: None, wanted };
    if form != Form::Page {
        return stream::answer(&store, form, watch, reader).await;
    }
    let loaded = reader.load().await?;
    if let Some(wanted) = reader.wanted.take()
        && !reader.go(&loaded, &wanted).await?
    {
        return Err(Problem::parameter("after", "this is no event of this game"));
    }
    let Limit(limit) = params.0.limit;
    // One more than asked for tells whether there is another page: a version can have events on both sides of a page's end.
    let mut items = reader.read_on(&loaded, limit + 1).await?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    Ok(page(items, more))
}

fn page(items: Vec<EventOut>, more: bool) -> HttpResponse {
    let next_after = items.last().filter(|_| more).map(|event| event.id.clone());
    HttpResponse::Ok()
        .insert_header(("cache-control", "no-cache"))
        .insert_header(("vary", "Accept, Authorization"))
        .json(EventPageOut { items, next_after })
}

/// A place in a player's feed as text: whose it is, when and at which snapshots it was taken, and where in between.
pub(super) fn write_cursor(player: Uuid, cursor: &FeedCursor) -> String {
    let mut text = format!("{}.{}.{}", owner(player), micros(cursor.taken_at), cursor.seen);
    if let Some((upto, key)) = &cursor.part {
        let FeedKey { at, game_id, version, index } = key;
        text += &format!(".{upto}.{}.{}.{version}.{index}", micros(*at), game_id.simple());
    }
    text
}

/// The place in this player's feed that a text means, if it is written as [`write_cursor`] does.
pub(super) fn read_cursor(player: Uuid, text: &str) -> Option<FeedCursor> {
    let snapshot = |text: &str| {
        let known = |byte: u8| byte.is_ascii_digit() || byte == b':' || byte == b',';
        (text.bytes().all(known) && text.len() <= 4_000).then(|| text.to_owned())
    };
    let words: Vec<&str> = text.split('.').collect();
    let [whose, taken_at, seen, part @ ..] = words.as_slice() else { return None };
    if *whose != owner(player) {
        return None;
    }
    let part = match part {
        [] => None,
        [upto, at, game_id, version, index] => {
            let key = FeedKey {
                at: read_micros(at)?,
                game_id: Uuid::try_parse(game_id).ok()?,
                version: version.parse().ok()?,
                index: index.parse().ok()?,
            };
            Some((snapshot(upto)?, key))
        }
        _ => return None,
    };
    let cursor = FeedCursor { taken_at: read_micros(taken_at)?, seen: snapshot(seen)?, part };
    Some(cursor).filter(|cursor| write_cursor(player, cursor) == text)
}

/// What tells a player's places from those of others; not a secret, so a part of the id will do.
fn owner(player: Uuid) -> String {
    player.simple().to_string()[20..].to_owned()
}

fn micros(at: OffsetDateTime) -> i128 {
    at.unix_timestamp_nanos() / 1_000
}

fn read_micros(text: &str) -> Option<OffsetDateTime> {
    let micros: i128 = text.parse().ok()?;
    // PostgreSQL's times end before Rust's do; nobody's feed goes beyond the year 2200.
    let range = 0..7_258_118_400_000_000;
    range.contains(&micros).then(|| OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).ok())?
}

/// A player as a reader of what happens to them goes along it.
struct FeedReader {
    store: web::Data<Store>,
    token: TokenHash,
    cursor: Option<FeedCursor>,
    /// The place after which the reader wants to read on, until it is known to be one.
    wanted: Option<String>,
}

impl FeedReader {
    /// The events after the last ones that were read, and whether there are more; none if the place is not known.
    async fn read_on(&mut self, player: Uuid, limit: u32) -> Result<Option<(Vec<EventOut>, bool)>, Problem> {
        let Some(cursor) = self.cursor.clone() else { return Ok(None) };
        let Some(page) = self.store.feed_after(player, &cursor, limit).await? else { return Ok(None) };
        let mut events = Vec::with_capacity(page.keys.len());
        let mut keys = page.keys.as_slice();
        let last = keys.last().copied();
        while let Some(first) = keys.first() {
            // Neighbours of one game are read together.
            let count = keys.iter().take_while(|key| key.game_id == first.game_id).count();
            let (group, rest) = keys.split_at(count);
            keys = rest;
            let id = |key: &FeedKey| {
                let place = if Some(*key) == last {
                    page.next.clone()
                } else {
                    FeedCursor { part: Some((page.upto.clone(), *key)), ..cursor.clone() }
                };
                write_cursor(player, &place)
            };
            if first.game_id.is_nil() {
                for key in group {
                    if let Some(event) = self.store.account_event(player, key.version).await? {
                        let webhook_id = event.webhook_id;
                        events.push(EventOut { webhook_id, ..EventOut::bare(id(key), event.kind, key.at) });
                    }
                }
            } else {
                self.read_game(player, group, id, &mut events).await?;
            }
        }
        self.cursor = Some(page.next);
        Ok(Some((events, page.more)))
    }

    /// The events of one game.
    async fn read_game(
        &self,
        player: Uuid,
        keys: &[FeedKey],
        id: impl Fn(&FeedKey) -> String,
        events: &mut Vec<EventOut>,
    ) -> Result<(), Problem> {
        let Some(first) = keys.first() else { return Ok(()) };
        let game = self.store.game_unchecked(first.game_id).await?;
        let place = |key: &FeedKey| Place { version: key.version as u32, index: key.index as u16 };
        let before = place(first).before();
        let mut summary = match before {
            Some(before) => self.store.summary_at(&game, before).await?.unwrap_or_else(|| game.summary.clone()),
            None => game.summary.clone(),
        };
        let known = game.is_known_to(Some(player), None);
        let mut after = before;
        let mut keys = keys.iter().peekable();
        while keys.peek().is_some() {
            let rows = self.store.log_after(&game, after, keys.len() as u32).await?;
            if rows.is_empty() {
                break;
            }
            let names = names(&self.store, &game, &rows).await?;
            let named = |id| names.get(&id).cloned();
            for row in &rows {
                after = Some(row.place());
                summary = summary.after(row, named);
                // In games to which the player does not belong any more not every row concerns them.
                let Some(key) = keys.next_if(|key| place(key) <= row.place()) else { continue };
                // As whom the player saw the table then.
                let viewer = game.as_of(summary.clone(), None).viewer(Some(player));
                let shown = known.then_some(&summary);
                events.push(EventOut::in_feed(id(key), game.id, shown, row, viewer, named));
            }
        }
        Ok(())
    }

    async fn snapshot(&mut self, player: Uuid) -> Result<EventOut, Problem> {
        // The place first: what happens in between is in the games and comes once more rather than not at all.
        let cursor = self.store.feed_now().await?;
        let games: Vec<Summary> = self.store.live_games(player, SNAPSHOT_GAMES).await?;
        let event = EventOut::bare(write_cursor(player, &cursor), EventKind::Snapshot, cursor.taken_at);
        self.cursor = Some(cursor);
        Ok(EventOut { games: Some(games.into_iter().map(Into::into).collect()), ..event })
    }

    /// What a reader gets whose place is not known.
    async fn resync(&mut self, player: Uuid) -> Result<Vec<EventOut>, Problem> {
        let snapshot = self.snapshot(player).await?;
        Ok(vec![EventOut::bare(snapshot.id.clone(), EventKind::Resync, snapshot.at), snapshot])
    }
}

impl Source for FeedReader {
    async fn next(&mut self) -> Result<Vec<EventOut>, Problem> {
        let player = self.store.authenticate(&self.token, Scope::Read).await?.id;
        if self.cursor.is_none() {
            let Some(wanted) = self.wanted.take() else { return Ok(vec![self.snapshot(player).await?]) };
            self.cursor = read_cursor(player, &wanted);
        }
        loop {
            match self.read_on(player, BATCH).await? {
                Some((events, true)) if events.is_empty() => {}
                Some((events, _)) => return Ok(events),
                None => return self.resync(player).await,
            }
        }
    }
}

/// Follow all your games
///
/// Everything that happens in your games, those to which you are invited, and to your account, in one log. Pages and streams as
/// for the events of one game, but that a `snapshot` shows where your games stand and `changes` leave out the table: read a game
/// when you show it. Without `after` a page holds the `snapshot` alone, from which you go on. A place is good for seven days.
#[utoipa::path(
    operation_id = "list_my_events", tag = "events", security(("token" = ["read"])),
    params(FeedParams,
           ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that you have; for streams")),
    responses((status = 200, description = "A page of events, or a stream of them",
               content((EventPageOut = "application/json"), (String = "text/event-stream"), (String = "application/x-ndjson"))))
)]
#[get("/v1/me/events")]
pub(super) async fn list_my_events(
    store: web::Data<Store>,
    request: HttpRequest,
    token: Token,
    params: Params<FeedParams>,
) -> Result<HttpResponse, Problem> {
    let player = store.authenticate(&token.0, Scope::Read).await?.id;
    let form = Form::of(&request);
    let wanted = last_event_id(&request, form).or(params.0.after);
    let watch = store.watch(player);
    let mut reader = FeedReader { store: store.clone(), token: token.0, cursor: None, wanted };
    if form != Form::Page {
        return stream::answer(&store, form, watch, reader).await;
    }
    let Some(wanted) = reader.wanted.take() else { return Ok(page(vec![reader.snapshot(player).await?], false)) };
    reader.cursor = read_cursor(player, &wanted);
    loop {
        match reader.read_on(player, params.0.limit.0).await? {
            Some((events, true)) if events.is_empty() => {}
            Some((events, more)) => return Ok(page(events, more)),
            None => return Ok(page(reader.resync(player).await?, false)),
        }
    }
}
