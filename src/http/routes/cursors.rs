//! The only way from outside to the texts of places in lists and logs, which are nobody's but their operations'. It is there for
//! fuzzing, which has to reach every reader of what strangers write; no code of the server uses it.

use uuid::Uuid;

use super::{events, listing, ratings, turns, webhooks};
use crate::store::{Filter, Sort, SortKey};

/// What is paged: each has cursors of its own.
pub const KINDS: [&str; 7] = ["games", "turns", "deliveries", "ratings", "leaderboard", "events", "feed"];

/// Of which list, or of whose, a cursor has to be.
const LIST: &str = "ratings 00000000-0000-0000-0000-000000000000 None";

/// Reads a text as a cursor of that kind (one of a list without filters, of a player whose id is all zeros) and writes the place
/// that it means; none if it is refused, or there is no such kind.
pub fn rewritten(kind: &str, text: &str) -> Option<String> {
    let (filter, sort) = (Filter::default(), Sort { key: SortKey::LastMove, descending: true });
    match kind {
        "games" => {
            let place = listing::read_cursor(text, &filter, sort).ok()?;
            Some(listing::write_cursor(place, &filter, sort))
        }
        "turns" => turns::read_cursor(text).ok().map(turns::write_cursor),
        "deliveries" => {
            let place = webhooks::read_cursor(text).ok()?;
            Some(webhooks::write_cursor(place.created_at, place.id))
        }
        "ratings" => ratings::read_cursor::<8>(text, LIST).ok().map(|place| ratings::write_cursor(LIST, &place)),
        "leaderboard" => {
            let place = ratings::read_place(ratings::read_cursor(text, LIST).ok()?)?;
            Some(ratings::write_cursor(LIST, &ratings::place_bytes(place)))
        }
        "events" => events::read_place(text).map(events::write_place),
        "feed" => {
            let place = events::read_cursor(Uuid::nil(), text)?;
            Some(events::write_cursor(Uuid::nil(), &place))
        }
        _ => None,
    }
}
