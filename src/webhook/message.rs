//! What a delivery says: what has happened in which game, and nothing of the game itself, which the receiver then reads as its
//! player may see it.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::rulesets::Seat;

/// Something that a webhook tells of. It stays the same however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What receivers know a repetition by.
    pub id: Uuid,
    pub webhook_id: Uuid,
    /// What has happened, as in `your_turn`.
    pub kind: String,
    /// Where; none for a ping.
    pub game: Option<GameRef>,
    pub created_at: OffsetDateTime,
}

/// A game as it was when something happened in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GameRef {
    #[serde(rename = "game_id")]
    pub id: Uuid,
    pub version: u32,
    /// The seat of the webhook's player, if it is told.
    pub seat: Option<Seat>,
    /// When the player's time is over, if there is a limit.
    #[serde(with = "time::serde::rfc3339::option")]
    pub deadline: Option<OffsetDateTime>,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'a str,
    #[serde(with = "time::serde::rfc3339")]
    timestamp: OffsetDateTime,
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Game(&'a GameRef),
    Ping { webhook_id: Uuid },
}

impl Message {
    /// The body of its deliveries: the same bytes each time.
    pub fn body(&self) -> Vec<u8> {
        let data = match &self.game {
            Some(game) => Data::Game(game),
            None => Data::Ping { webhook_id: self.webhook_id },
        };
        let body = Body { r#type: &self.kind, timestamp: self.created_at, data };
        // Plain data, and times of years that RFC 3339 can write: the database gave them.
        serde_json::to_vec(&body).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_message_tells_where_to_look_and_no_more() {
        let game = GameRef {
            id: Uuid::from_u128(7),
            version: 17,
            seat: Some(1),
            deadline: Some(datetime!(2026-12-01 12:00 UTC)),
        };
        let turn = Message {
            id: Uuid::from_u128(1),
            webhook_id: Uuid::from_u128(2),
            kind: "your_turn".into(),
            game: Some(game.clone()),
            created_at: datetime!(2026-11-30 12:00:00.25 UTC),
        };
        let text = |message: &Message| String::from_utf8(message.body()).unwrap();
        assert_eq!(
            text(&turn),
            r#"{"type":"your_turn","timestamp":"2026-11-30T12:00:00.25Z","data":{"game_id":"00000000-0000-0000-0000-000000000007","version":17,"seat":1,"deadline":"2026-12-01T12:00:00Z"}}"#
        );
        let over = Message {
            kind: "game_finished".into(),
            game: Some(GameRef { seat: None, deadline: None, ..game }),
            ..turn.clone()
        };
        assert!(text(&over).ends_with(r#""version":17,"seat":null,"deadline":null}}"#), "{}", text(&over));
        let ping = Message { kind: "ping".into(), game: None, ..turn };
        assert!(text(&ping).ends_with(r#""data":{"webhook_id":"00000000-0000-0000-0000-000000000002"}}"#));
    }
}
