//! What statements cost when there are many games: neither lists nor moves read a table from end to end, and a page reads
//! as many rows as it has, however many there are.
//!
//! The server's own statements are measured as they run, by PostgreSQL's counters: which scans there were and how many
//! rows they read. A sort of all games that fit, or a scan of a whole index, shows there as surely as a scan of a table.

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tavola::game::{GameResult, Status};
use tavola::rulesets::EndReason;
use tavola::rulesets::registry::RulesetId;
use tavola::store::{Filter, List, Sort, SortKey, Span, Store, TimeKey};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::follow::Form;
use crate::helpers::TestApp;
use crate::play::Chance;

const TABLES: [&str; 6] = ["games", "seats", "positions", "moves", "players", "tokens"];

/// 20,000 games of 2,000 players, of all rulesets and statuses, two seats each; as many log entries.
const GAMES: [&str; 7] = [
    "insert into players (id, name, name_key, kind)
     select md5('p' || n)::uuid, 'player ' || n, 'player ' || n, 'human' from generate_series(1, 2000) as n",
    "insert into tokens (hash, player_id) select sha256(('t' || n)::bytea), md5('p' || n)::uuid from generate_series(1, 2000) as n",
    "insert into games (id, ruleset, rules_version, options, seat_count, status, creator_id, server_seed, rated, created_at,
                        finished_at, end_reason, moves_count, last_move_at)
     select md5('g' || n)::uuid, (array['leonardo', 'quintis-fontis', 'leopard', 'siggil'])[1 + n % 4], 1,
            jsonb_build_object('hands', 1 + n / 24 % 12), 2, status, md5('p' || 1 + n % 800)::uuid, sha256(n::text::bytea), n % 10 = 0,
            now() - n * interval '1 hour', case when over then now() - n * interval '1 hour' + interval '30 minutes' end,
            case when status = 'finished' then (array['completed', 'resignation', 'completed', 'turn_limit', 'timeout'])[1 + n / 24 % 5]
                 when status = 'aborted' then 'aborted' end,
            case when over then n % 300 end, case when over and n % 300 > 0 then now() - n * interval '1 hour' + interval '20 minutes' end
     from (select n, (array['open', 'active', 'finished', 'finished', 'finished', 'aborted'])[1 + n / 4 % 6] as status, n / 4 % 6 > 1 as over
           from generate_series(1, 20000) as n) as games",
    "insert into seats (game_id, seat, player_id, entropy, status, over_at, finished_at, last_move_at, result)
     select g.id, seat, md5('p' || 1 + (n + seat * 7) % 800)::uuid, '', 'playing', g.finished_at, g.finished_at, g.last_move_at,
            case when g.status = 'finished' then (array['won', 'lost', 'shared'])[1 + (n / 24 + seat) % 3] end
     from generate_series(1, 20000) as n join games g on g.id = md5('g' || n)::uuid, generate_series(0, 1) as seat",
    "insert into positions (game_id, version, moves_count, to_move_seat, changed_at, last_move_at)
     select id, 1, coalesce(moves_count, 3), case when status = 'active' then 0 end, now(),
            case when status = 'active' then created_at + interval '20 minutes' else last_move_at end
     from games",
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

/// Every node of a plan.
fn nodes<'a>(plan: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(plan);
    for inner in plan["Plans"].as_array().into_iter().flatten() {
        nodes(inner, visit);
    }
}

#[tokio::test]
async fn every_filter_in_every_order_is_found_by_an_index() {
    let app = TestApp::new().await;
    many_games(&app).await;
    let (player, opponent) = (id_of(&app, 17).await, id_of(&app, 24).await);
    let at = |days: i64| Some(OffsetDateTime::now_utc() - Duration::days(days));
    let none = Filter::default;
    let of_player = || Filter { player: Some(player), ..none() };
    let hands = |hands: u32| [("hands".to_owned(), json!(hands))].into_iter().collect();
    let span = |from, until| Span { from, until };
    let mut filters = vec![
        none(),
        Filter { rated: Some(true), ..none() },
        Filter { rated: Some(false), ..none() },
        Filter { options: hands(3), ..none() },
        Filter { moves_min: Some(298), ..none() },
        Filter { moves_min: Some(5), ..none() },
        Filter { moves_max: Some(2), ..none() },
        Filter { to_move: Some(player), ..none() },
        of_player(),
        Filter { opponent: Some(opponent), ..of_player() },
        Filter { moves_min: Some(100), rated: Some(true), ..of_player() },
        Filter { finished: span(at(400), at(390)), ..of_player() },
        Filter { options: hands(3), ruleset: RulesetId::from_slug("leopard"), rated: Some(true), ..none() },
    ];
    filters.extend(
        [Status::Open, Status::Active, Status::Finished, Status::Aborted]
            .map(|status| Filter { status: Some(status), ..none() }),
    );
    filters.extend(RulesetId::ALL.iter().map(|ruleset| Filter { ruleset: Some(*ruleset), ..none() }));
    let reasons =
        [EndReason::Completed, EndReason::TurnLimit, EndReason::Resignation, EndReason::Timeout, EndReason::Aborted];
    filters.extend(reasons.map(|reason| Filter { end_reason: Some(reason), ..none() }));
    filters.extend(
        [GameResult::Won, GameResult::Lost, GameResult::Shared]
            .map(|result| Filter { result: Some(result), ..of_player() }),
    );
    for (from, until) in [(at(500), None), (None, at(500)), (at(3), None), (None, at(830)), (at(500), at(499))] {
        filters.push(Filter { created: span(from, until), ..none() });
        filters.push(Filter { finished: span(from, until), ..none() });
        filters.push(Filter { last_move: span(from, until), ..none() });
    }
    let store = Store::open(app.database().clone(), 1);
    for filter in &filters {
        for key in [SortKey::Created, SortKey::Finished, SortKey::LastMove] {
            for descending in [false, true] {
                let list = List { filter, sort: Sort { key, descending }, caller: None };
                for plan in store.explain_games(&list, None, 20).await.unwrap() {
                    nodes(&plan[0]["Plan"], &mut |node| {
                        let whole = node["Node Type"] == "Seq Scan" && !node["Relation Name"].is_null();
                        assert!(!whole, "{filter:?} by {key:?}, {descending}: {plan:#}");
                    });
                }
            }
        }
    }
}

/// The id of a player, as the database makes it of a number.
async fn id_of(app: &TestApp, n: i32) -> Uuid {
    sqlx::query_scalar("select md5('p' || $1)::uuid").bind(n.to_string()).fetch_one(app.sql()).await.unwrap()
}

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
    // its length, for each of its two parts; a player's games number 50, and those that are filtered out are read as well.
    let lists = [
        (none(), 210),
        (status(Status::Open), 210),
        (status(Status::Finished), 210),
        (Filter { ruleset: leopard, ..none() }, 300),
        (Filter { ruleset: siggil, status: Some(Status::Active), ..none() }, 300),
        (Filter { player: Some(player), ..none() }, 210),
        (Filter { player: Some(player), status: Some(Status::Active), ..none() }, 500),
        (Filter { player: Some(player), ruleset: leopard, status: Some(Status::Finished), ..none() }, 500),
        (Filter { to_move: Some(player), ..none() }, 210),
        (Filter { to_move: Some(player), ruleset: siggil, ..none() }, 300),
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
    // In the order of last moves: games that are over have it in an index, running ones as near as ten minutes.
    let running = Filter { status: Some(Status::Active), ..none() };
    let long_ago = Filter {
        last_move: Span { until: Some(OffsetDateTime::now_utc() - Duration::days(400)), ..Span::default() },
        ..none()
    };
    for (filter, descending) in
        [(none(), true), (none(), false), (running.clone(), true), (running, false), (long_ago, true)]
    {
        let list = List { filter: &filter, sort: Sort { key: SortKey::LastMove, descending }, caller: None };
        let mut after = None;
        for _ in 0..2 {
            let store = Store::open(app.database().clone(), 1);
            let page = store.list_games(&list, after, 20).await.unwrap();
            assert_eq!(page.items.len(), 20);
            after = page.next;
            store.close().await;
            let now = read(app).await;
            for table in ["games", "seats", "positions"] {
                let (whole, rows) = (now[table].whole - before[table].whole, now[table].rows - before[table].rows);
                assert!(
                    whole == 0 && rows <= 300,
                    "{filter:?} {descending}: {rows} rows of {table}, {whole} times all of it"
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

#[tokio::test]
async fn whose_turn_it_is_is_found_as_fast_of_who_has_played_long() {
    let app = TestApp::new().await;
    many_games(&app).await;
    let veteran = Uuid::from_u128(1);
    let mut connection = PgConnection::connect_with(app.database()).await.unwrap();
    for statement in [
        "insert into players (id, name, name_key, kind) select '00000000-0000-0000-0000-000000000001', 'v', 'v', 'bot'",
        "insert into seats (game_id, seat, player_id, entropy, status, over_at, finished_at)
         select id, 2, '00000000-0000-0000-0000-000000000001', '', 'playing', finished_at, finished_at
         from games where status = 'finished'",
        "insert into seats (game_id, seat, player_id, entropy, status)
         select id, 2, '00000000-0000-0000-0000-000000000001', '', 'playing' from games where status = 'active' order by id limit 30",
        "update positions p set to_move_seat = 2 from seats s where s.game_id = p.game_id and s.seat = 2 and s.over_at is null",
        "update positions set due_at = now() + interval '1 day', check_at = now() - interval '1 second' where to_move_seat is not null",
        "analyze",
    ] {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    let mut before = read(&app).await;
    for what in ["turns", "list", "sweeper"] {
        let store = Store::open(app.database().clone(), 1);
        for _ in 0..TIMES {
            let filter = Filter { to_move: Some(veteran), ..Filter::default() };
            let list = List { filter: &filter, sort: Sort::default(), caller: None };
            match what {
                "turns" => assert_eq!(store.list_turns(veteran, None, 20).await.unwrap().items.len(), 20),
                "list" => assert_eq!(store.list_games(&list, None, 20).await.unwrap().items.len(), 20),
                _ => drop(store.delay_checks().await.unwrap()),
            }
        }
        store.close().await;
        let now = read(&app).await;
        for table in ["games", "seats", "positions"] {
            let (whole, rows) = (now[table].whole - before[table].whole, now[table].rows - before[table].rows);
            // The sweeper comes to each of 3,333 games once, by one index and then by another.
            let most = if what == "sweeper" { 40_000 } else { 250 * TIMES };
            assert!(whole == 0 && rows <= most, "{what}: {rows} rows of {table}, {whole} times all of it");
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

#[tokio::test]
async fn a_move_changes_nothing_that_is_indexed_of_where_a_game_stands() {
    let app = TestApp::new().await;
    let clock = json!({"kind": "per_move", "seconds": 86_400});
    let table = app.table_like(&json!({"ruleset": "siggil", "clock": clock}), app.players(2).await).await;
    let moves = 30;
    app.play_random(&table, 2, moves).await;
    app.store.close().await;
    read(&app).await;
    let mut connection = PgConnection::connect_with(app.database()).await.unwrap();
    let sql = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'positions'";
    let (updates, heap_only): (i64, i64) = sqlx::query_as(sql).fetch_one(&mut connection).await.unwrap();
    assert!(updates > moves as i64);
    // Index entries come of the start, of the first move, and of the move after which ten minutes are full, if one is.
    assert!(updates - heap_only <= 3, "{heap_only} of {updates}");
}

/// How many rows of seats are read while so many moves are played by someone who knows the game, with a stream or without.
async fn seats_read(moves: usize, followed: bool) -> i64 {
    let app = TestApp::new().await;
    let table = app.table("leopard", &serde_json::json!({}), 2).await;
    let mut stream = None;
    if followed {
        let mut following = app.follow(&table.id, None, None, Form::ServerSent).await;
        following.until("snapshot").await;
        stream = Some(following);
    }
    let mut chance = Chance(5);
    for _ in 0..moves {
        app.play_one(&table, &mut chance).await;
        if let Some(stream) = &mut stream {
            stream.some(1).await;
        }
    }
    drop(stream);
    app.store.close().await;
    read(&app).await["seats"].rows
}

#[tokio::test]
async fn a_stream_loads_its_game_once_for_each_event() {
    let moves = 12;
    let (alone, followed) = (seats_read(moves, false).await, seats_read(moves, true).await);
    // A move itself, and what is asked before it, loads the game at least three times.
    let load = alone / (3 * moves as i64);
    assert!(followed - alone <= load * (moves as i64 + 2), "{alone} rows alone, {followed} with a stream");
}
