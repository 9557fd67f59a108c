//! What statements cost when there are many games: neither lists nor moves read a table from end to end, and a page reads
//! as many rows as it has, however many there are.
//!
//! The server's own statements are measured as they run, by PostgreSQL's counters: which scans there were and how many
//! rows they read. A sort of all games that fit, or a scan of a whole index, shows there as surely as a scan of a table.

use sqlx::{Connection, PgConnection};
use tavola::game::Status;
use tavola::rulesets::registry::RulesetId;
use tavola::store::{Filter, List, Sort, Store, TimeKey};
use uuid::Uuid;

use crate::helpers::TestApp;
use crate::play::Chance;

const TABLES: [&str; 6] = ["games", "seats", "positions", "moves", "players", "tokens"];

/// 20,000 games of 2,000 players, of all rulesets and statuses, two seats each; as many log entries.
const GAMES: [&str; 7] = [
    "insert into players (id, name, name_key, kind)
     select md5('p' || n)::uuid, 'player ' || n, 'player ' || n, 'human' from generate_series(1, 2000) as n",
    "insert into tokens (hash, player_id) select sha256(('t' || n)::bytea), md5('p' || n)::uuid from generate_series(1, 2000) as n",
    "insert into games (id, ruleset, rules_version, options, seat_count, status, creator_id, server_seed)
     select md5('g' || n)::uuid, (array['leonardo', 'quintis-fontis', 'leopard', 'siggil'])[1 + n % 4], 1, '{}', 2,
            (array['open', 'active', 'finished', 'finished', 'finished', 'aborted'])[1 + n / 4 % 6], md5('p' || 1 + n % 800)::uuid,
            sha256(n::text::bytea)
     from generate_series(1, 20000) as n",
    "insert into seats (game_id, seat, player_id, entropy, status)
     select md5('g' || n)::uuid, seat, md5('p' || 1 + (n + seat * 7) % 800)::uuid, '', 'playing'
     from generate_series(1, 20000) as n, generate_series(0, 1) as seat",
    "insert into positions (game_id, version, moves_count, to_move_seat, to_move_player_id, changed_at)
     select id, 1, 0, case when status = 'active' then 0 end, case when status = 'active' then creator_id end, now() from games",
    "insert into moves (game_id, number, version, seat, move, events, at)
     select id, number, number + 1, 0, '{}', '[]', now() from games, generate_series(1, 4) as number",
    "analyze",
];

/// Scans of a table since its counters were reset: of the whole table, and rows read by all scans.
#[derive(Debug, Default, PartialEq)]
struct Read {
    whole: i64,
    rows: i64,
}

/// What a database's tables tell, once everybody else has left it: a connection's counts are there when it has ended.
async fn read(app: &TestApp) -> std::collections::BTreeMap<String, Read> {
    let mut connection = PgConnection::connect_with(app.database()).await.unwrap();
    loop {
        let others: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
             and backend_type = 'client backend'",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        if others == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "select t.relname::text, t.seq_scan, t.seq_tup_read + coalesce(t.idx_tup_fetch, 0)
                + coalesce((select sum(i.idx_tup_read) from pg_stat_user_indexes i where i.relid = t.relid), 0)::bigint
         from pg_stat_user_tables t",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    // Waits for the connection's end too, or it would be among the others next time.
    connection.close().await.unwrap();
    rows.into_iter().map(|(table, whole, rows)| (table, Read { whole, rows })).collect()
}

async fn many_games(app: &TestApp) {
    let mut connection = PgConnection::connect_with(app.database()).await.unwrap();
    for statement in GAMES {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    sqlx::query("select pg_stat_reset()").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// How often a list is asked for in one session: PostgreSQL may plan it otherwise from the sixth time on.
const TIMES: i64 = 7;

#[tokio::test]
async fn neither_lists_nor_moves_read_more_than_they_show() {
    let app = TestApp::new().await;
    many_games(&app).await;
    pages_read_no_more_than_a_page(&app).await;
    moves_read_a_game_and_nothing_else(&app).await;
}

async fn pages_read_no_more_than_a_page(app: &TestApp) {
    // md5 of `p17`, as the database makes an id of it.
    let player = Uuid::parse_str("e9257cc1-4147-de69-00b8-f5c69aadb9df").unwrap();
    let middle = Uuid::parse_str("80000000-0000-7000-8000-000000000000").unwrap();
    let none = Filter::default;
    let status = |status| Filter { status: Some(status), ..none() };
    let (leopard, siggil) = (RulesetId::from_slug("leopard"), RulesetId::from_slug("siggil"));
    // With the most rows that one page of 20 may read of one table and its indexes: of a list by one condition a few times
    // its length; a player's games number 50, and those that are filtered out are read as well.
    let lists = [
        (none(), 140),
        (status(Status::Open), 140),
        (status(Status::Finished), 140),
        (Filter { ruleset: leopard, ..none() }, 140),
        (Filter { ruleset: siggil, status: Some(Status::Active), ..none() }, 140),
        (Filter { player: Some(player), ..none() }, 140),
        (Filter { player: Some(player), status: Some(Status::Active), ..none() }, 500),
        (Filter { player: Some(player), ruleset: leopard, status: Some(Status::Finished), ..none() }, 500),
        (Filter { to_move: Some(player), ..none() }, 140),
        (Filter { to_move: Some(player), ruleset: siggil, ..none() }, 140),
        (Filter { to_move: Some(player), player: Some(player), status: Some(Status::Active), ..none() }, 250),
    ];
    let mut before = read(app).await;
    for (filter, most) in lists {
        // The first page and a later one, of the lists without joins; elsewhere a later one does for both.
        let first = filter.player.is_none() && filter.to_move.is_none();
        for after in [None, Some(middle)].into_iter().skip(usize::from(!first)) {
            let store = Store::open(app.database().clone(), 1);
            let after = after.map(|game_id| TimeKey { at: None, game_id });
            let list = List { filter: &filter, sort: Sort::default(), caller: None };
            for _ in 0..TIMES {
                store.list_games(&list, after, 20).await.unwrap();
            }
            store.close().await;
            let now = read(app).await;
            for table in ["games", "seats", "positions"] {
                let (whole, rows) = (now[table].whole - before[table].whole, now[table].rows - before[table].rows);
                assert_eq!(whole, 0, "{filter:?} after {after:?} reads all of {table}");
                assert!(
                    rows <= most * TIMES,
                    "{filter:?} after {after:?} reads {rows} rows of {table} in {TIMES} pages"
                );
            }
            before = now;
        }
    }
    // Of `p21`, who is to move in some games.
    let player = Uuid::parse_str("22119ec7-6d92-563d-121d-645530848a2f").unwrap();
    for invitations in [false, true] {
        let store = Store::open(app.database().clone(), 1);
        for _ in 0..TIMES {
            let page = match invitations {
                false => store.list_turns(player, None, 20).await,
                true => store.list_invitations(player, None, 20).await,
            };
            assert_eq!(page.unwrap().items.is_empty(), invitations);
        }
        store.close().await;
        let now = read(app).await;
        for table in ["games", "seats", "positions"] {
            let (whole, rows) = (now[table].whole - before[table].whole, now[table].rows - before[table].rows);
            assert!(whole == 0 && rows <= 140 * TIMES, "{rows} rows of {table}, {whole} times all of it");
        }
        before = now;
    }
}

async fn moves_read_a_game_and_nothing_else(app: &TestApp) {
    let before = read(app).await;
    let table = app.table("leopard", &serde_json::json!({}), 2).await;
    let moves = 10;
    let mut chance = Chance(3);
    for number in 0..moves {
        let (mover, _) = app.mover_and_other(&table).await;
        let legal = app.legal_moves(&table.id, mover).await;
        let key = format!("k{number}");
        let mv = chance.pick(&legal);
        app.post(table.path("/moves")).by(mover).key(&key).json(mv).expect(201).await;
        app.post(table.path("/moves")).by(mover).key(&key).json(mv).expect(201).await;
        app.get(table.path("/moves?limit=5")).by(mover).expect(200).await;
    }
    app.store.close().await;
    let now = read(app).await;
    for table in TABLES {
        let (whole, rows) = (now[table].whole - before[table].whole, now[table].rows - before[table].rows);
        assert_eq!(whole, 0, "{table} is read from end to end");
        // Each round is some ten requests; a repeated move reads the log up to it.
        assert!(rows <= moves * 80, "{rows} rows of {table} for {moves} moves");
    }
}
