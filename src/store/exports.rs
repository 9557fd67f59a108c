//! Games with all that their records need, some at a time.

use std::collections::HashMap;

use serde_json::value::RawValue;
use sqlx::types::Json;
use uuid::Uuid;

use super::games::ruleset;
use super::list::{List, Page};
use super::moves::read_move;
use super::turns::TimeKey;
use super::{Store, StoreError};
use crate::game::{Game, RecordedMove, RecordedRating, ServerSeed};
use crate::rulesets::Seat;

impl Store {
    /// The next games of a list with their moves and what they did to ratings, without their tables; at most `limit`. The list is to have only games that
    /// are over, whose seeds are no secret.
    ///
    /// # Errors
    /// The database fails, or a game or its log cannot be read.
    pub async fn games_with_moves(
        &self,
        list: &List<'_>,
        after: Option<TimeKey>,
        limit: u32,
    ) -> Result<Page<(Game, Vec<RecordedMove>, Option<RecordedRating>)>, StoreError> {
        let page = self.list_games(list, after, limit).await?;
        let ids: Vec<Uuid> = page.items.iter().map(|game| game.id).collect();
        let mut moves = self.recorded_moves(&ids).await?;
        let mut ratings = self.rating_of_games(&ids).await?;
        let rows =
            sqlx::query!("select id, server_seed from games where id = any($1)", &ids).fetch_all(&self.pool).await?;
        let mut seeds: HashMap<Uuid, Vec<u8>> = rows.into_iter().map(|row| (row.id, row.server_seed)).collect();
        let mut items = Vec::with_capacity(ids.len());
        for summary in page.items {
            let seed = seeds.remove(&summary.id).and_then(|seed| seed.try_into().ok());
            let seed = seed.ok_or_else(|| StoreError::Corrupt("a seed that is not 32 bytes".into()))?;
            let moves = moves.remove(&summary.id).unwrap_or_default();
            let rating = ratings.remove(&summary.id);
            let game = Game { summary, invite: None, server_seed: ServerSeed(seed), state: None };
            items.push((game, moves, rating));
        }
        Ok(Page { items, next: page.next })
    }

    /// All moves of these games, in order, as records have them; nothing of a game without any.
    ///
    /// # Errors
    /// The database fails, or a log cannot be read.
    pub async fn recorded_moves(&self, games: &[Uuid]) -> Result<HashMap<Uuid, Vec<RecordedMove>>, StoreError> {
        let rows = sqlx::query!(
            r#"select m.game_id, g.ruleset, m.number, m.seat, m.move as "mv: Json<Box<RawValue>>", m.at
               from games g join moves m on m.game_id = g.id
               where g.id = any($1) order by m.game_id, m.number"#,
            games,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut moves: HashMap<Uuid, Vec<RecordedMove>> = HashMap::new();
        for row in rows {
            // Read by the rules and written again: the database does not keep the order of members.
            let mv = read_move(ruleset(&row.ruleset)?, &row.mv)?;
            let played = RecordedMove::new(row.number as u32, row.seat as Seat, &mv, row.at);
            moves.entry(row.game_id).or_default().push(played);
        }
        Ok(moves)
    }
}
