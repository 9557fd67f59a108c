//! Events on the wire: the one log of everything visible that happens to a game, and to a player anywhere.

use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{GameOut, GameSummaryOut, MoveOut, PlayerOut};
use crate::game::{EventKind, Game, LogRow, Player, Summary};
use crate::rulesets::Seat;

/// Something that happened, as its viewer may see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventOut {
    /// Send it as `after` or `Last-Event-ID` for what follows. It means something only in the log that it comes from.
    #[schema(example = "17.0")]
    pub id: String,
    pub r#type: EventKind,
    /// Null for what is no game's: the `snapshot` of a player's events, `resync`, `webhook_disabled`.
    #[schema(required)]
    pub game_id: Option<Uuid>,
    /// The game's version once it had happened. A version can have several events, one after the other.
    #[schema(required, example = 17)]
    pub version: Option<u32>,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Whose it is, if anybody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub seat: Option<Seat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub player: Option<PlayerOut>,
    /// With `move_played`: the entry of the log. Not there for who may not see the table yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub r#move: Option<MoveOut>,
    /// Members of the game resource with the values that they had then. Put them in the place of those that you have
    /// (`Object.assign(game, event.changes)`), and you have the game as it was answered then. In a player's events `state`
    /// and what else lists do not show are not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub changes: Option<Map<String, Value>>,
    /// With `snapshot` of a game: the game.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub game: Option<Box<GameOut>>,
    /// With `snapshot` of a player's events: the games in which something can still happen, those that changed last first, 100 at
    /// most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub games: Option<Vec<GameSummaryOut>>,
    /// With `webhook_disabled`: which.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub webhook_id: Option<Uuid>,
}

impl EventOut {
    /// An event of no game, with nothing to it.
    pub fn bare(id: String, kind: EventKind, at: OffsetDateTime) -> Self {
        Self {
            id,
            r#type: kind,
            game_id: None,
            version: None,
            at,
            seat: None,
            player: None,
            r#move: None,
            changes: None,
            game: None,
            games: None,
            webhook_id: None,
        }
    }

    fn of_row(id: String, game: Uuid, row: &LogRow, player: impl Fn(Uuid) -> Option<Player>) -> Self {
        let (kind, seat, concerned) = match row {
            LogRow::Move(entry) => (EventKind::MovePlayed, Some(entry.seat), None),
            LogRow::Occurrence(occurrence) => {
                let happening = occurrence.happening;
                (happening.kind, happening.seat, happening.player.and_then(player))
            }
        };
        Self {
            game_id: Some(game),
            version: Some(row.place().version),
            seat,
            player: concerned.map(PlayerOut::from),
            ..Self::bare(id, kind, row.at())
        }
    }

    /// A row of a game's log for a viewer of that game. `game` is the game once it had happened.
    pub fn in_game(
        id: String,
        game: &Game,
        row: &LogRow,
        viewer: Option<Uuid>,
        player: impl Fn(Uuid) -> Option<Player>,
    ) -> Self {
        let mut changes = members(&GameOut::new(game, viewer));
        let mut event = Self::of_row(id, game.id, row, player);
        match row {
            LogRow::Move(entry) => {
                event.r#move = game.viewer(viewer).map(|viewer| MoveOut::new(entry, viewer));
                keep_what_a_move_changes(&mut changes, game);
            }
            LogRow::Occurrence(occurrence) => {
                use EventKind::{GameAborted, GameCreated, GameFinished, GameStarted};
                let with_table = [GameCreated, GameStarted, GameFinished, GameAborted];
                if !with_table.contains(&occurrence.happening.kind) {
                    changes.shift_remove("state");
                }
            }
        }
        event.changes = Some(changes);
        event
    }

    /// A row of a game's log for one of its players, among what happens to them anywhere: all but the table. `game` is what
    /// everybody knew of it once it had happened; none if the player may know of the game no more.
    pub fn in_feed(
        id: String,
        game: Uuid,
        summary: Option<&Summary>,
        row: &LogRow,
        viewer: Option<crate::rulesets::Viewer>,
        player: impl Fn(Uuid) -> Option<Player>,
    ) -> Self {
        let mut event = Self::of_row(id, game, row, player);
        let Some(summary) = summary else { return event };
        let mut changes = members(&GameSummaryOut::from(summary.clone()));
        if let LogRow::Move(entry) = row {
            event.r#move = viewer.map(|viewer| MoveOut::new(entry, viewer));
            keep_what_a_move_changes(&mut changes, summary);
        }
        event.changes = Some(changes);
        event
    }

    /// Where a game stands.
    pub fn snapshot(id: String, game: &Game, viewer: Option<Uuid>, at: OffsetDateTime) -> Self {
        Self {
            game_id: Some(game.id),
            version: Some(game.version),
            game: Some(Box::new(GameOut::new(game, viewer))),
            ..Self::bare(id, EventKind::Snapshot, at)
        }
    }
}

/// The members of a resource.
fn members(resource: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(resource) {
        Ok(Value::Object(members)) => members,
        // Wire types are plain data: writing them cannot fail.
        _ => Map::new(),
    }
}

fn keep_what_a_move_changes(changes: &mut Map<String, Value>, game: &Summary) {
    let banks = game.remaining_ms.is_some();
    changes.retain(|name, _| {
        matches!(name.as_str(), "version" | "moves_count" | "last_move_at" | "to_move" | "state")
            || (banks && name == "seats")
    });
}

/// A page of events, in order.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = EventPage)]
pub struct EventPageOut {
    pub items: Vec<EventOut>,
    /// Send it as `after` for what follows; null if nothing does yet: ask again with the `id` of the last item then.
    #[schema(required)]
    pub next_after: Option<String>,
}
