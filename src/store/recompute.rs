//! Computes all ratings anew from the finished rated games, to compare or to replace what is kept.

use std::collections::BTreeMap;

use sqlx::types::Json;
use sqlx::{Connection, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use super::games::{ruleset, word};
use super::{Store, StoreError};
use crate::game::PlayerKind;
use crate::game::rating::{Ledger, Rating};
use crate::rulesets::Outcome;
use crate::rulesets::registry::RulesetId;

/// How many games are read at once.
const BATCH: i64 = 1_000;

/// Something that is not as the games say, in words for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(pub String);

/// A finished rated game, counted or not.
struct Row {
    id: Uuid,
    number: Option<i64>,
    ruleset: String,
    pool: Option<String>,
    outcome: Option<Json<Outcome>>,
    finished_at: Option<OffsetDateTime>,
    players: Option<Vec<Uuid>>,
    before_ratings: Option<Vec<f64>>,
    before_deviations: Option<Vec<f64>>,
    after_ratings: Option<Vec<f64>>,
    after_deviations: Option<Vec<f64>>,
}

impl Row {
    /// What is kept of each seat, before and after; none if nothing is.
    fn kept(&self) -> Option<Vec<(Rating, Rating)>> {
        let pairs = |ratings: &Option<Vec<f64>>, deviations: &Option<Vec<f64>>| -> Option<Vec<Rating>> {
            let pairs = ratings.as_ref()?.iter().zip(deviations.as_ref()?);
            Some(pairs.map(|(rating, deviation)| Rating { rating: *rating, deviation: *deviation }).collect())
        };
        let before = pairs(&self.before_ratings, &self.before_deviations)?;
        let after = pairs(&self.after_ratings, &self.after_deviations)?;
        Some(before.into_iter().zip(after).collect())
    }
}

impl Store {
    /// Computes all ratings from the finished rated games alone, in the order in which they were counted (those that were not, after
    /// all others, in order of their end); `differs` is told of everything that is kept otherwise. With `rewrite` that is replaced,
    /// in the same transaction; rated games that end meanwhile wait for it, or are refused as if the database were away.
    ///
    /// # Errors
    /// The database fails; nothing has changed then.
    pub async fn recompute_ratings(
        &self,
        rewrite: bool,
        mut differs: impl FnMut(Difference),
    ) -> Result<u64, StoreError> {
        // On a connection of its own, which may take as long as it takes.
        let mut connection = PgConnection::connect_with(&self.pool.connect_options()).await?;
        let mut transaction = connection.begin().await?;
        sqlx::query!("set transaction isolation level repeatable read").execute(&mut *transaction).await?;
        if rewrite {
            sqlx::query!("lock table ratings, rating_changes in exclusive mode").execute(&mut *transaction).await?;
        }
        let mut ledger = Ledger::default();
        let mut games = 0;
        let mut after = 0;
        loop {
            let rows = counted_games(&mut transaction, after).await?;
            let Some(last) = rows.last().and_then(|row| row.number) else { break };
            after = last;
            for row in rows {
                games += 1;
                count(&mut transaction, &mut ledger, row, rewrite, &mut differs).await?;
            }
        }
        for row in uncounted_games(&mut transaction).await? {
            games += 1;
            differs(Difference(format!("game {}: it is rated and finished, and was never counted", row.id)));
            if rewrite {
                count(&mut transaction, &mut ledger, row, true, &mut |_| ()).await?;
            }
        }
        compare_totals(&mut transaction, &ledger, rewrite, &mut differs).await?;
        transaction.commit().await?;
        connection.close().await?;
        Ok(games)
    }
}

async fn counted_games(connection: &mut PgConnection, after: i64) -> Result<Vec<Row>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select c.game_id as "id!", c.number as "number?", min(c.ruleset) as "ruleset!", min(c.pool) as pool,
                  (select g.outcome from games g where g.id = c.game_id and g.rated and g.status = 'finished')
                      as "outcome: Json<Outcome>",
                  min(c.at) as finished_at,
                  array_agg(c.player_id order by c.seat) as "players: Vec<Uuid>",
                  array_agg(c.rating_before order by c.seat) as "before_ratings: Vec<f64>",
                  array_agg(c.deviation_before order by c.seat) as "before_deviations: Vec<f64>",
                  array_agg(c.rating_after order by c.seat) as "after_ratings: Vec<f64>",
                  array_agg(c.deviation_after order by c.seat) as "after_deviations: Vec<f64>"
           from rating_changes c
           where c.number in (select distinct number from rating_changes where number > $1 order by number limit $2)
           group by c.game_id, c.number order by c.number"#,
        after,
        BATCH,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows)
}

async fn uncounted_games(connection: &mut PgConnection) -> Result<Vec<Row>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select g.id, null::bigint as number, g.ruleset, min(p.kind) as pool, g.outcome as "outcome: Json<Outcome>",
                  g.finished_at, array_agg(s.player_id order by s.seat) as "players: Vec<Uuid>",
                  null::double precision[] as before_ratings, null::double precision[] as before_deviations,
                  null::double precision[] as after_ratings, null::double precision[] as after_deviations
           from games g join seats s on s.game_id = g.id join players p on p.id = s.player_id
           where g.rated and g.status = 'finished'
             and not exists (select from rating_changes c where c.game_id = g.id)
           group by g.id order by g.finished_at, g.id"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows)
}

/// Counts one game; compares what is kept of it, and with `rewrite` replaces that.
async fn count(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    row: Row,
    rewrite: bool,
    differs: &mut impl FnMut(Difference),
) -> Result<(), StoreError> {
    let of = ruleset(&row.ruleset)?;
    let pool = word("a pool", row.pool.as_deref().unwrap_or_default(), PlayerKind::parse)?;
    let kept = row.kept();
    let players = row.players.unwrap_or_default();
    let ranking = row.outcome.map(|outcome| outcome.0.ranking).unwrap_or_default();
    let Some(computed) = ledger.count(of, pool, &players, &ranking) else {
        differs(Difference(format!("game {}: it was counted, and is no finished rated game of its players", row.id)));
        if rewrite {
            sqlx::query!("delete from rating_changes where game_id = $1", row.id).execute(connection).await?;
        }
        return Ok(());
    };
    if kept.as_ref() == Some(&computed) {
        return Ok(());
    }
    for (seat, (kept, computed)) in kept.iter().flatten().zip(&computed).enumerate() {
        if kept != computed {
            differs(Difference(format!("game {}, seat {seat}: kept {kept:?}, computed {computed:?}", row.id)));
        }
    }
    if !rewrite {
        return Ok(());
    }
    let ranks = crate::game::rating::ranks(players.len(), &ranking).unwrap_or_default();
    let ranks: Vec<i16> = ranks.into_iter().map(i16::from).collect();
    let column = |of: fn(&(Rating, Rating)) -> f64| computed.iter().map(of).collect::<Vec<f64>>();
    sqlx::query!(
        "with number as materialized (
            select coalesce($4, nextval('rating_numbers')) as number
         )
         insert into rating_changes (game_id, seat, player_id, ruleset, pool, number, rank, rating_before, deviation_before,
                                     rating_after, deviation_after, at)
         select $1, (c.place - 1)::smallint, c.player_id, $2, $3, n.number, c.rank, c.rating_before, c.deviation_before,
                c.rating_after, c.deviation_after, coalesce($11, now())
         from unnest($5::uuid[], $6::smallint[], $7::double precision[], $8::double precision[], $9::double precision[],
                     $10::double precision[]) with ordinality
             as c (player_id, rank, rating_before, deviation_before, rating_after, deviation_after, place)
         cross join number n
         on conflict (game_id, seat) do update
         set rank = excluded.rank, rating_before = excluded.rating_before, deviation_before = excluded.deviation_before,
             rating_after = excluded.rating_after, deviation_after = excluded.deviation_after",
        row.id,
        row.ruleset,
        pool.as_str(),
        row.number,
        &players,
        &ranks,
        &column(|(before, _)| before.rating),
        &column(|(before, _)| before.deviation),
        &column(|(_, after)| after.rating),
        &column(|(_, after)| after.deviation),
        row.finished_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Compares what players have with what they would have; with `rewrite` replaces what differs.
async fn compare_totals(
    connection: &mut PgConnection,
    ledger: &Ledger,
    rewrite: bool,
    differs: &mut impl FnMut(Difference),
) -> Result<(), StoreError> {
    let rows = sqlx::query!("select player_id, ruleset, pool, rating, deviation, games_count from ratings")
        .fetch_all(&mut *connection)
        .await?;
    let mut kept: BTreeMap<(RulesetId, PlayerKind, Uuid), (Rating, u32)> = BTreeMap::new();
    for row in rows {
        let key = (ruleset(&row.ruleset)?, word("a pool", &row.pool, PlayerKind::parse)?, row.player_id);
        kept.insert(key, (Rating { rating: row.rating, deviation: row.deviation }, row.games_count as u32));
    }
    for (of, pool, player, rating, games_count) in ledger.iter() {
        let had = kept.remove(&(of, pool, player));
        if had == Some((rating, games_count)) {
            continue;
        }
        let slug = of.meta().slug;
        differs(Difference(format!("player {player} in {slug}: kept {had:?}, computed {:?}", (rating, games_count))));
        if rewrite {
            sqlx::query!(
                "insert into ratings (player_id, ruleset, pool, rating, deviation, games_count, listed)
                 select id, $2, $3, $4, $5, $6, deleted_at is null from players where id = $1
                 on conflict (player_id, ruleset, pool) do update
                 set rating = excluded.rating, deviation = excluded.deviation, games_count = excluded.games_count",
                player,
                slug,
                pool.as_str(),
                rating.rating,
                rating.deviation,
                games_count as i32,
            )
            .execute(&mut *connection)
            .await?;
        }
    }
    for (of, pool, player) in kept.into_keys() {
        let slug = of.meta().slug;
        differs(Difference(format!("player {player} in {slug}: kept a rating, and has finished no rated game")));
        if rewrite {
            sqlx::query!(
                "delete from ratings where player_id = $1 and ruleset = $2 and pool = $3",
                player,
                slug,
                pool.as_str(),
            )
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(())
}
