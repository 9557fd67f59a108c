//! Clocks: deadlines to the microsecond, banks, whoever is late, and time in which no server ran.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::store::Store;
use tavola::workers::clocks;
use uuid::Uuid;

use crate::helpers::TestApp;
use crate::play::{Chance, Table, micros, seat_to_move};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

fn per_move(seconds: u32) -> Value {
    json!({"kind": "per_move", "seconds": seconds})
}

fn bank(seconds: u32, increment: u32) -> Value {
    json!({"kind": "bank", "seconds": seconds, "increment": increment})
}

impl TestApp {
    /// Begins a game of players registered for it, on the clock.
    async fn on_clock(&self, slug: &str, clock: &Value, seats: usize) -> Table {
        let wanted = json!({"ruleset": slug, "options": crate::play::short(slug), "clock": clock});
        self.table_like(&wanted, self.players(seats).await).await
    }

    /// Does to a row of positions what a statement's `set` says; an earlier deadline is then noticed as one would be that was set so.
    async fn position(&self, table: &Table, set: &str) {
        let id = Uuid::parse_str(&table.id).unwrap();
        for set in [set, "check_at = least(check_at, due_at)"] {
            let sql = format!("update positions set {set} where game_id = $1");
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).execute(self.sql()).await.unwrap();
        }
    }

    /// A number that a column of positions tells of a game.
    async fn told(&self, table: &Table, what: &str) -> i64 {
        let sql = format!("select ({what})::bigint from positions where game_id = $1");
        let id = Uuid::parse_str(&table.id).unwrap();
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(id).fetch_one(self.sql()).await.unwrap()
    }

    /// Has no server run for so long, before which nothing had happened for as long; no deadline is changed.
    async fn silence(&self, how_long: &str) {
        let past = format!("update positions set changed_at = now() - 2 * interval '{how_long}'");
        let dead = format!("update heartbeats set at = now() - interval '{how_long}'");
        for sql in [past, dead] {
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(self.sql()).await.unwrap();
        }
    }
}

fn deadline(game: &Value) -> i64 {
    micros(&game["to_move"]["deadline"])
}

fn since(game: &Value) -> i64 {
    micros(&game["to_move"]["since"])
}

/// What each seat's bank holds, in milliseconds.
fn banks(game: &Value) -> Vec<i64> {
    game["seats"].as_array().unwrap().iter().map(|seat| seat["remaining_ms"].as_i64().unwrap()).collect()
}

fn count(kinds: &[String], kind: &str) -> usize {
    kinds.iter().filter(|other| *other == kind).count()
}

#[tokio::test]
async fn a_clock_out_of_range_is_refused_with_a_pointer() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let wrong = [
        (per_move(59), "/clock/seconds"),
        (per_move(1_209_601), "/clock/seconds"),
        (per_move(u32::MAX), "/clock/seconds"),
        (bank(59, 0), "/clock/seconds"),
        (bank(1_209_601, 0), "/clock/seconds"),
        (bank(60, 86_401), "/clock/increment"),
        (json!({"kind": "per_move", "seconds": 4_294_967_296_u64}), "/clock"),
        (json!({"kind": "per_move", "seconds": -60}), "/clock"),
        (json!({"kind": "per_move", "seconds": 60.5}), "/clock"),
        (json!({"kind": "per_move", "seconds": "60"}), "/clock"),
        (json!({"kind": "per_move"}), "/clock"),
        (json!({"kind": "per_move", "seconds": 60, "increment": 1}), "/clock"),
        (json!({"kind": "bank", "seconds": 60}), "/clock"),
        (json!({"kind": "bank", "increment": 60}), "/clock"),
        (json!({"kind": "blitz", "seconds": 60}), "/clock"),
        (json!({"seconds": 60}), "/clock"),
        (json!({}), "/clock"),
        (json!(60), "/clock"),
        (json!([]), "/clock"),
    ];
    for (clock, pointer) in wrong {
        let wanted = json!({"ruleset": "leopard", "clock": clock});
        let problem = app.post("/v1/games").by(&ada).json(&wanted).refused(400, "invalid-body").await;
        let found = problem["errors"][0]["pointer"].as_str().unwrap();
        assert!(found.starts_with(pointer), "{clock}: {problem}");
    }
    assert_eq!(app.count("select count(*) from games").await, 0);
    for clock in [per_move(60), per_move(1_209_600), bank(60, 0), bank(1_209_600, 86_400), Value::Null] {
        let game = app.create(&ada, &json!({"ruleset": "leopard", "clock": clock})).await;
        assert_eq!(game["clock"], clock);
        assert_eq!((&game["to_move"], &game["seats"][0]["remaining_ms"]), (&Value::Null, &Value::Null));
    }
}

#[tokio::test]
async fn a_deadline_is_the_turn_s_beginning_and_the_budget_and_nothing_else_changes_it() {
    let app = TestApp::new().await;
    let table = app.on_clock("leonardo", &per_move(61), 3).await;
    let mut chance = Chance(1);
    let game = app.game(&table.id, None).await;
    assert_eq!(since(&game), micros(&game["started_at"]));
    for number in 1..=6 {
        let (mover, other) = app.mover_and_other(&table).await;
        let game = app.game(&table.id, None).await;
        assert_eq!(deadline(&game), since(&game) + 61 * SECOND);
        for reading in 0..20 {
            assert_eq!(app.game(&table.id, Some(&table.players[reading % 3])).await["to_move"], game["to_move"]);
        }
        app.get(table.path("/legal-moves")).by(mover).expect(200).await;
        app.get("/v1/me/turns").by(mover).expect(200).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        app.post(table.path("/moves")).by(other).json(&mv).refused(409, "not-your-turn").await;
        app.post(table.path("/moves")).by(mover).json(&json!({})).refused(400, "invalid-body").await;
        app.post(table.path("/moves")).by(mover).at(99).json(&mv).refused(412, "stale-version").await;
        app.post(table.path("/abort")).by(other).expect(200).await;
        app.call("DELETE", table.path("/abort")).by(other).expect(200).await;
        clocks::run_once(&app.store).await.unwrap();
        assert_eq!(app.game(&table.id, None).await["to_move"], game["to_move"]);
        app.play_one(&table, &mut chance).await;
        let next = app.game(&table.id, None).await;
        assert_eq!(since(&next), micros(&app.log(&table, None).await[number - 1]["at"]));
    }
    let game = app.game(&table.id, None).await;
    let (_, other) = app.mover_and_other(&table).await;
    let resigned = app.post(table.path("/resignation")).by(other).ok(200).await;
    assert_eq!(resigned["to_move"], game["to_move"], "who goes takes nothing of another's time");
    assert_eq!(app.attend().await, 0);
    // Without a clock there is none, whoever leaves.
    let table = app.table("leonardo", &json!({}), 3).await;
    let (mover, other) = app.mover_and_other(&table).await;
    app.post(table.path("/resignation")).by(other).expect(200).await;
    assert_eq!(app.game(&table.id, None).await["to_move"]["deadline"], Value::Null);
    app.post(table.path("/resignation")).by(mover).expect(200).await;
    assert_eq!(app.game(&table.id, None).await["to_move"]["deadline"], Value::Null);
    app.attend().await;
    assert_eq!(app.game(&table.id, None).await["to_move"]["deadline"], Value::Null);
}

#[tokio::test]
async fn a_bank_loses_what_its_owner_took_and_gains_the_increment() {
    let app = TestApp::new().await;
    for (slug, seats) in [("leonardo", 3), ("leopard", 2), ("siggil", 2), ("siggil", 1)] {
        let table = app.on_clock(slug, &bank(100, 7), seats).await;
        let mut game = app.game(&table.id, None).await;
        let mut expected = vec![100_000; seats];
        let (mut chance, mut taken) = (Chance(9), [0, 3, 95, 12, 1, 50, 8, 20].iter().cycle());
        let mut again = 0;
        for number in 1..=16 {
            let Some(mover) = seat_to_move(&game) else { break };
            assert_eq!(banks(&game), expected, "{slug}, before move {number}");
            assert_eq!(deadline(&game), since(&game) + expected[mover] * 1_000, "{slug}, before move {number}");
            // They think for some seconds.
            let seconds = (*taken.next().unwrap()).min(expected[mover] / 1_000 - 3);
            app.position(
                &table,
                &format!(
                    "due_at = due_at - interval '{seconds} s', to_move_since = to_move_since - interval '{seconds} s'"
                ),
            )
            .await;
            let begun = since(&game) - seconds * SECOND;
            let answer = app.play_one(&table, &mut chance).await.json();
            let took = micros(&answer["move"]["at"]) - begun;
            expected[mover] = (expected[mover] * 1_000 - took).div_euclid(1_000) + 7_000;
            game = app.game(&table.id, None).await;
            again += usize::from(seat_to_move(&game) == Some(mover));
        }
        assert!(seats > 1 || again == 16, "alone one moves again and again");
        // The log tells the banks as they were then, for whoever follows it.
        let mut folded = crate::follow::Folded::default();
        app.events(&table.id, None, 100).await.iter().for_each(|event| folded.take(event));
        assert_eq!(folded.game(&table.id)["seats"], game["seats"]);
    }
}

#[tokio::test]
async fn whoever_is_late_leaves_the_game() {
    let app = TestApp::new().await;
    for clock in [per_move(60), bank(60, 60)] {
        let table = app.on_clock("leonardo", &clock, 2).await;
        app.play_random(&table, 1, 2).await;
        let late = app.to_move(&table).await.unwrap();
        assert_eq!(app.attend().await, 0, "not yet");
        app.let_time_run_out(&table.id).await;
        assert_eq!(clocks::run_once(&app.store).await.unwrap(), 1);
        assert_eq!(clocks::run_once(&app.store).await.unwrap(), 0);
        let game = app.game(&table.id, None).await;
        assert_eq!((&game["status"], &game["outcome"]["reason"]), (&json!("finished"), &json!("timeout")));
        assert_eq!((&game["to_move"], &game["seats"][late]["status"]), (&Value::Null, &json!("timed_out")));
        let ranking = &game["outcome"]["ranking"];
        assert_eq!(
            (&ranking[0]["seat"], &ranking[0]["won"], &ranking[1]["won"]),
            (&json!(1 - late), &json!(true), &json!(false))
        );
        let events = app.events(&table.id, None, 100).await;
        let [timed_out, finished] = &events[events.len() - 2..] else { panic!("two events") };
        assert_eq!((&timed_out["type"], &timed_out["seat"]), (&json!("player_timed_out"), &json!(late)));
        assert_eq!((&finished["type"], &finished["version"]), (&json!("game_finished"), &timed_out["version"]));
        let record = app.get(table.path("/record")).expect(200).await;
        tavola::game::Record::read(&record.bytes).unwrap().verify().unwrap();

        // Of three one is late: a bot plays on, the others have their time.
        let table = app.on_clock("leonardo", &clock, 3).await;
        let late = app.to_move(&table).await.unwrap();
        app.let_time_run_out(&table.id).await;
        assert!(clocks::run_once(&app.store).await.unwrap() > 1);
        let game = app.game(&table.id, None).await;
        assert_eq!((&game["status"], &game["seats"][late]["status"]), (&json!("active"), &json!("timed_out")));
        assert_eq!(deadline(&game), since(&game) + 60 * SECOND);
        let (mover, mv) = (&table.players[late], json!({"type": "discard"}));
        app.post(table.path("/resignation")).by(mover).refused(403, "has-left").await;
        app.post(table.path("/moves")).by(mover).json(&mv).send().await;
        let game = app.play_with_bots_to_the_end(&table, 2).await;
        assert_eq!(game["outcome"]["ranking"][2]["seat"], late);
        let record = app.get(table.path("/record")).expect(200).await;
        tavola::game::Record::read(&record.bytes).unwrap().verify().unwrap();
    }
    // Alone there is nobody who wins by it.
    let table = app.on_clock("siggil", &per_move(60), 1).await;
    app.let_time_run_out(&table.id).await;
    app.attend().await;
    let game = app.game(&table.id, None).await;
    assert_eq!((&game["outcome"]["reason"], &game["outcome"]["ranking"][0]["won"]), (&json!("timeout"), &json!(false)));
}

#[tokio::test]
async fn a_command_that_comes_too_late_is_judged_after_the_timeout() {
    let app = TestApp::new().await;
    let stranger = app.register("Stranger").await;
    for seats in [2, 3] {
        for what in ["move", "move at its version", "resignation", "abort", "other", "stranger"] {
            let table = app.on_clock("leonardo", &per_move(60), seats).await;
            let (mover, other) = app.mover_and_other(&table).await;
            let version = app.game(&table.id, None).await["version"].as_u64().unwrap();
            let mv = app.legal_moves(&table.id, mover).await[0].clone();
            app.let_time_run_out(&table.id).await;
            // It is only a look: the server has not come by yet.
            assert_eq!(app.game(&table.id, Some(mover)).await["version"], version);
            let gone = if seats == 2 { (409, "game-not-active") } else { (403, "has-left") };
            let (call, (status, code)) = match what {
                "move" => (app.post(table.path("/moves")).by(mover).key("k").json(&mv), gone),
                "move at its version" => {
                    (app.post(table.path("/moves")).by(mover).at(version).json(&mv), (412, "stale-version"))
                }
                "resignation" => (app.post(table.path("/resignation")).by(mover), gone),
                "abort" => (app.post(table.path("/abort")).by(mover), gone),
                "other" => (
                    app.post(table.path("/moves")).by(other).json(&mv),
                    (409, if seats == 2 { "game-not-active" } else { "not-your-turn" }),
                ),
                _ => (app.post(table.path("/seats")).by(&stranger).json(&json!({})), (409, "game-not-open")),
            };
            call.refused(status, code).await;
            let game = app.game(&table.id, None).await;
            assert_eq!((&game["version"], &game["moves_count"]), (&json!(version + 1), &json!(0)), "{what}");
            if seats == 2 {
                assert_eq!(
                    (&game["status"], &game["outcome"]["reason"]),
                    (&json!("finished"), &json!("timeout")),
                    "{what}"
                );
                assert_eq!(app.attend().await, 0, "{what}");
            } else {
                assert_eq!(game["status"], "active", "{what}");
                assert!(app.attend().await > 0, "{what}: a bot is to move");
            }
            assert_eq!(count(&app.kinds(&table.id, None).await, "player_timed_out"), 1, "{what}");
        }
    }
}

#[tokio::test]
async fn of_two_servers_one_times_out_whoever_is_late() {
    let app = TestApp::with(2, 6).await;
    let other = Store::open(app.database().clone(), 4);
    for _ in 0..5 {
        let mut tables = Vec::new();
        for seats in [2, 3, 2] {
            let table = app.on_clock("leonardo", &per_move(60), seats).await;
            app.let_time_run_out(&table.id).await;
            tables.push(table);
        }
        let sweeps = (0..6).map(|place| clocks::run_once(if place % 2 == 0 { &app.store } else { &other }));
        let done: u64 = join_all(sweeps).await.into_iter().map(Result::unwrap).sum();
        let mut expected = 0;
        for table in &tables {
            let kinds = app.kinds(&table.id, None).await;
            assert_eq!(count(&kinds, "player_timed_out"), 1);
            assert_eq!(count(&kinds, "game_finished"), usize::from(table.players.len() == 2));
            expected += 1 + count(&kinds, "move_played") as u64;
            assert_consistent(&app, table).await;
        }
        assert_eq!(done, expected, "each thing was done by one of them");
    }
    other.close().await;
}

/// Versions without a gap or a double, and a log that is the game.
async fn assert_consistent(app: &TestApp, table: &Table) -> Value {
    let game = app.game(&table.id, None).await;
    let events = app.events(&table.id, None, 100).await;
    let mut versions: Vec<u64> = events.iter().map(|event| event["version"].as_u64().unwrap()).collect();
    versions.dedup();
    assert_eq!(versions, (0..=game["version"].as_u64().unwrap()).collect::<Vec<_>>());
    let mut folded = crate::follow::Folded::default();
    events.iter().for_each(|event| folded.take(event));
    assert_eq!(folded.game(&table.id), game);
    assert_eq!(app.log(table, None).await.len(), game["moves_count"].as_u64().unwrap() as usize);
    game
}

#[tokio::test]
async fn a_move_a_resignation_and_the_clock_at_one_instant_have_one_outcome() {
    let app = TestApp::with(2, 8).await;
    let other = Store::open(app.database().clone(), 2);
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    let players = app.players(2).await;
    for round in 0..40 {
        let wanted = json!({"ruleset": "leonardo", "clock": per_move(60)});
        let table = app.table_like(&wanted, players.clone()).await;
        let (mover, waiting) = app.mover_and_other(&table).await;
        let late = app.to_move(&table).await.unwrap();
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        // In a few milliseconds, or just now.
        app.position(&table, &format!("due_at = clock_timestamp() + interval '{} ms'", round % 8 * 2)).await;
        let (played, resigned, _, _) = tokio::join!(
            app.post(table.path("/moves")).by(mover).json(&mv).send(),
            app.post(table.path("/resignation")).by(waiting).send(),
            clocks::attend_all(&app.store),
            clocks::attend_all(&other),
        );
        app.let_time_pass().await;
        clocks::attend_all(&other).await.unwrap();
        let game = assert_consistent(&app, &table).await;
        let reason = game["outcome"]["reason"].as_str().unwrap().to_owned();
        let statuses = (played.status, resigned.status, reason.as_str(), game["moves_count"].as_u64().unwrap());
        assert!(
            matches!(statuses, (201 | 409, 200, "resignation", _) | (409, 409, "timeout", 0)),
            "{statuses:?}: {}",
            played.text()
        );
        assert_eq!(u64::from(played.status == 201), statuses.3);
        let winner = if reason == "timeout" { 1 - late } else { late };
        assert_eq!(
            (&game["outcome"]["ranking"][0]["seat"], &game["outcome"]["ranking"][0]["won"]),
            (&json!(winner), &json!(true))
        );
        let kinds = app.kinds(&table.id, None).await;
        assert_eq!(count(&kinds, "game_finished"), 1);
        assert_eq!(count(&kinds, "player_timed_out") + count(&kinds, "player_resigned"), 1);
        let record = app.get(table.path("/record")).expect(200).await;
        tavola::game::Record::read(&record.bytes).unwrap().verify().unwrap();
        *seen.entry(format!("{reason} after {} moves", statuses.3)).or_default() += 1;
    }
    assert!(seen.len() > 1, "the rounds end in different ways: {seen:?}");
    other.close().await;
}

impl TestApp {
    /// Waits until the database's clock is past all deadlines of the next seconds; those of a minute are far.
    async fn let_time_pass(&self) {
        let due = "select exists (select from positions where due_at > clock_timestamp() and due_at < clock_timestamp() + interval '5 s')";
        while sqlx::query_scalar::<_, bool>(due).fetch_one(self.sql()).await.unwrap() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn time_in_which_no_server_ran_is_given_back_once() {
    let app = TestApp::new().await;
    let running = app.on_clock("leonardo", &per_move(86_400), 2).await;
    let banked = app.on_clock("siggil", &bank(86_400, 5), 2).await;
    let hidden = app.on_clock("leonardo", &per_move(86_400), 2).await;
    let overdue = app.on_clock("leonardo", &per_move(86_400), 2).await;
    let unclocked = app.table("leonardo", &json!({}), 2).await;
    let bots = app.on_clock("leonardo", &per_move(86_400), 3).await;
    let leaver = app.to_move(&bots).await.unwrap();
    app.post(bots.path("/resignation")).by(&bots.players[leaver]).expect(200).await;
    // The time of one has run out during the silence, of another before it.
    app.position(&hidden, "due_at = now() - interval '30 minutes'").await;
    app.position(&overdue, "due_at = now() - interval '90 minutes'").await;
    let mut before = Vec::new();
    for table in [&running, &banked, &hidden, &overdue, &unclocked, &bots] {
        before.push(app.game(&table.id, None).await);
    }
    assert!(app.store.beat().await.unwrap().is_none(), "there is nothing to give back");
    app.silence("1 hour").await;
    // Two servers start at once.
    let other = Store::open(app.database().clone(), 2);
    let (one, two) = tokio::join!(app.store.beat(), other.beat());
    let credits: Vec<time::Duration> = [one.unwrap(), two.unwrap()].into_iter().flatten().collect();
    assert_eq!(credits.len(), 1, "one of them gives it back: {credits:?}");
    assert!(app.store.beat().await.unwrap().is_none());
    let silence = credits[0].whole_microseconds() as i64;
    assert!((HOUR..HOUR + 60 * SECOND).contains(&silence), "{silence} µs");
    app.keep_alive().await;
    for (table, before) in [&running, &banked, &hidden].into_iter().zip(&before) {
        let game = app.game(&table.id, None).await;
        // PostgreSQL tells how long it was in seconds, as a float.
        let put_off = deadline(&game) - deadline(before);
        assert!((put_off - silence).abs() <= 1, "{put_off} and {silence} µs");
        assert_eq!(game["version"], before["version"].as_u64().unwrap() + 1);
        assert_eq!(game["to_move"]["since"], before["to_move"]["since"]);
        assert_eq!((&game["seats"], &game["state"]), (&before["seats"], &before["state"]));
        let event = app.events(&table.id, None, 100).await.pop().unwrap();
        assert_eq!((&event["type"], &event["version"]), (&json!("clock_credited"), &game["version"]));
        assert_eq!((&event["seat"], &event["changes"]["to_move"]), (&game["to_move"]["seat"], &game["to_move"]));
        assert_consistent(&app, table).await;
    }
    for (table, before) in [&overdue, &unclocked, &bots].into_iter().zip(&before[3..]) {
        assert_eq!(&app.game(&table.id, None).await, before, "nothing of this is put off");
    }
    // The one who was late before the silence is, the other has half an hour more; the bots move.
    assert!(app.attend().await >= 2);
    assert_eq!(app.game(&overdue.id, None).await["outcome"]["reason"], "timeout");
    assert_eq!(app.game(&hidden.id, None).await["status"], "active");
    for table in [&running, &banked, &hidden, &bots] {
        app.play_one(table, &mut Chance(1)).await;
        assert_consistent(&app, table).await;
    }
    // A short silence is none: a server that is started anew is away for so long.
    sqlx::query("update heartbeats set at = now() - interval '9 seconds'").execute(app.sql()).await.unwrap();
    assert!(app.store.beat().await.unwrap().is_none());
    other.close().await;
}

#[tokio::test]
async fn a_move_before_the_time_is_given_back_is_judged_as_if_it_were() {
    let app = TestApp::new().await;
    let table = app.on_clock("leonardo", &per_move(86_400), 2).await;
    let late = app.on_clock("leonardo", &per_move(86_400), 2).await;
    let clock = bank(7_200, 0);
    let banked = app.on_clock("leonardo", &clock, 3).await;
    app.position(&table, "due_at = now() - interval '30 minutes'").await;
    app.position(&late, "due_at = now() - interval '90 minutes'").await;
    // An hour of the bank is left, and half of that when the servers went.
    app.position(&banked, "due_at = now() - interval '30 minutes'").await;
    app.silence("1 hour").await;
    // No sweeper is any stricter.
    assert_eq!(app.attend().await, 1, "the one whose time was over before");
    assert_eq!(app.game(&late.id, None).await["outcome"]["reason"], "timeout");
    app.play_one(&table, &mut Chance(1)).await;
    let first = seat_to_move(&app.game(&banked.id, None).await).unwrap();
    let game = app.play_one(&banked, &mut Chance(1)).await.json()["game"].clone();
    let left = banks(&game)[first];
    assert!((1_790_000..=1_800_000).contains(&left), "half an hour was left of the bank: {left} ms");
    // A second move before anything is given back gains nothing by the silence, and loses nothing.
    let game = app.game(&banked.id, None).await;
    let put_off = deadline(&game) - since(&game) - 7_200 * SECOND;
    assert!((0..60 * SECOND).contains(&put_off), "the turn has begun after the silence: {put_off} µs");
    let second = seat_to_move(&game).unwrap();
    let game = app.play_one(&banked, &mut Chance(2)).await.json()["game"].clone();
    assert!((7_190_000..=7_200_000).contains(&banks(&game)[second]), "{:?}", banks(&game));
    assert!(app.store.beat().await.unwrap().is_some());
    app.keep_alive().await;
    for (table, budget) in [(&table, 86_400), (&banked, 7_200)] {
        let game = assert_consistent(&app, table).await;
        let put_off = deadline(&game) - since(&game) - budget * SECOND;
        assert!((0..60 * SECOND).contains(&put_off), "the hour is not given back again: {put_off} µs");
    }
}

#[tokio::test]
async fn who_was_to_move_since_just_before_the_servers_died_gets_the_time_back_too() {
    let app = TestApp::new().await;
    let tables = [
        app.on_clock("leonardo", &per_move(86_400), 2).await,
        app.on_clock("leonardo", &bank(86_400, 0), 2).await,
        app.on_clock("leonardo", &bank(86_400, 0), 2).await,
    ];
    app.silence("1 hour").await;
    // The last move came between two signs of life, of which there was no other; the time would have run out since.
    let sql = "update positions set changed_at = at + interval '500 ms', due_at = now() - interval '30 minutes',
                                    check_at = now() - interval '30 minutes' from heartbeats";
    sqlx::query(sql).execute(app.sql()).await.unwrap();
    assert_eq!(app.attend().await, 0);
    let late = seat_to_move(&app.game(&tables[2].id, None).await).unwrap();
    let game = app.play_one(&tables[2], &mut Chance(1)).await.json()["game"].clone();
    assert!((1_790_000..=1_800_000).contains(&banks(&game)[late]), "half an hour was left: {:?}", banks(&game));
    let due = "select min(extract(epoch from due_at) * 1000000)::bigint from positions where due_at < now()";
    let before = app.count(due).await;
    let silence = app.store.beat().await.unwrap().unwrap().whole_microseconds() as i64;
    app.keep_alive().await;
    assert_eq!(app.attend().await, 0);
    for table in &tables[..2] {
        let game = assert_consistent(&app, table).await;
        assert_eq!(game["status"], "active");
        let put_off = deadline(&game) - before;
        assert!((put_off - (silence - SECOND / 2)).abs() <= 1, "{put_off} of {silence} µs");
    }
}

#[tokio::test]
async fn who_leaves_while_time_is_given_back_is_given_none() {
    let app = TestApp::new().await;
    let table = app.on_clock("leonardo", &per_move(86_400), 3).await;
    let id = Uuid::parse_str(&table.id).unwrap();
    app.silence("1 hour").await;
    let mut leaving = app.sql().begin().await.unwrap();
    let lock = "select to_move_seat from positions where game_id = $1 for update";
    let seat: i16 = sqlx::query_scalar(lock).bind(id).fetch_one(&mut *leaving).await.unwrap();
    let store = app.store.clone();
    let beating = tokio::spawn(async move { store.beat().await });
    crate::concurrency::until_blocked(&app, true).await;
    // As a resignation does it that was read before.
    let left = "update seats set status = 'resigned' where game_id = $1 and seat = $2";
    sqlx::query(left).bind(id).bind(seat).execute(&mut *leaving).await.unwrap();
    let bot = "update positions set version = version + 1, due_at = now(), check_at = now() where game_id = $1";
    sqlx::query(bot).bind(id).execute(&mut *leaving).await.unwrap();
    leaving.commit().await.unwrap();
    assert!(beating.await.unwrap().unwrap().is_some());
    assert_eq!(app.count("select count(*) from game_events where type = 'clock_credited'").await, 0);
}

#[tokio::test]
async fn what_is_no_move_puts_a_deadline_off_by_the_silence_once() {
    let app = TestApp::new().await;
    let table = app.on_clock("leonardo", &per_move(86_400), 4).await;
    let before = app.game(&table.id, None).await;
    let mover = seat_to_move(&before).unwrap();
    app.silence("1 hour").await;
    let seats = (0..4).filter(|seat| *seat != mover);
    for seat in seats {
        app.post(table.path("/abort")).by(&table.players[seat]).expect(200).await;
        let put_off = deadline(&app.game(&table.id, None).await) - deadline(&before);
        assert!((HOUR..HOUR + 60 * SECOND).contains(&put_off), "{put_off} µs");
    }
    app.store.beat().await.unwrap();
    app.keep_alive().await;
    let put_off = deadline(&app.game(&table.id, None).await) - deadline(&before);
    assert!((HOUR..HOUR + 60 * SECOND).contains(&put_off), "{put_off} µs");
    assert_consistent(&app, &table).await;
}

#[tokio::test]
async fn the_sweeper_that_comes_too_early_comes_again_when_a_turn_is_due() {
    let app = TestApp::new().await;
    let [table, locked] =
        [app.on_clock("leonardo", &per_move(86_400), 2).await, app.on_clock("siggil", &bank(86_400, 5), 2).await];
    let (due, check) = ("extract(epoch from due_at) * 1000000", "extract(epoch from check_at) * 1000000");
    let first = app.told(&table, check).await;
    assert_eq!(app.told(&table, due).await, first);
    app.play_random(&table, 1, 3).await;
    // Moves have put off when the turn is due, and not when the game is looked at.
    assert_eq!(app.told(&table, check).await, first);
    assert!(app.told(&table, due).await > first);
    for table in [&table, &locked] {
        app.position(table, "check_at = now() - interval '1 second'").await;
    }
    // A move that is under way keeps nobody waiting.
    let mut other = app.sql().begin().await.unwrap();
    let id = Uuid::parse_str(&locked.id).unwrap();
    sqlx::query("select from positions where game_id = $1 for update").bind(id).execute(&mut *other).await.unwrap();
    let early = app.told(&locked, check).await;
    assert_eq!(app.attend().await, 0);
    assert_eq!(app.told(&table, check).await, app.told(&table, due).await);
    assert_eq!(app.told(&locked, check).await, early);
    other.rollback().await.unwrap();
    assert_eq!(app.attend().await, 0);
    for table in [&table, &locked] {
        assert_eq!(app.told(table, check).await, app.told(table, due).await);
        assert_eq!(app.game(&table.id, None).await["status"], "active");
        app.let_time_run_out(&table.id).await;
        assert_eq!(app.attend().await, 1);
        let game = app.game(&table.id, None).await;
        assert_eq!(game["outcome"]["reason"], "timeout");
    }
    assert_eq!(app.count("select count(*) from positions where check_at is not null").await, 0);
    // What comes after a timeout is not looked at before it is due.
    let table = app.on_clock("leonardo", &per_move(86_400), 3).await;
    app.let_time_run_out(&table.id).await;
    assert_eq!(app.attend().await, 2, "the timeout, and the bot's move");
    assert_eq!(app.told(&table, check).await, app.told(&table, due).await);
}

#[tokio::test]
async fn a_game_that_cannot_be_read_does_not_stop_the_clocks_of_others() {
    let app = TestApp::new().await;
    let broken = app.on_clock("leonardo", &per_move(60), 2).await;
    let whole = app.on_clock("leonardo", &per_move(60), 2).await;
    app.play_random(&broken, 1, 2).await;
    app.position(&broken, "snapshot = ''").await;
    let id = Uuid::parse_str(&broken.id).unwrap();
    sqlx::query("delete from moves where game_id = $1 and number = 1").bind(id).execute(app.sql()).await.unwrap();
    app.position(&broken, "due_at = now() - interval '1 hour'").await;
    let deadline = "extract(epoch from due_at) * 1000000";
    let before = app.told(&broken, deadline).await;
    app.let_time_run_out(&whole.id).await;
    let ada = &whole.players[0];
    let path = app.open(ada, &json!({"ruleset": "leopard"})).await;
    let invitation = json!({"player": whole.players[1].id});
    app.post(format!("{path}/invitations")).by(ada).json(&invitation).expect(201).await;
    let sql = "update seats set expires_at = now() - interval '1 second' where status = 'invited'";
    sqlx::query(sql).execute(app.sql()).await.unwrap();
    for _ in 0..3 {
        let swept = tokio::time::timeout(Duration::from_secs(20), clocks::run_once(&app.store)).await;
        swept.expect("it comes to an end").expect("the database answers");
    }
    assert_eq!(app.told(&broken, deadline).await, before, "it is looked at later, and due as it was");
    // Nobody is told that the clocks are late, because it is looked at once a minute.
    sqlx::query("update positions set check_at = now() where game_id = $1").bind(id).execute(app.sql()).await.unwrap();
    let delay = app.store.sample().await.unwrap().clock_delay;
    assert!(delay > 0.0 && delay < 600.0, "{delay}");
    assert_eq!(app.game(&whole.id, None).await["outcome"]["reason"], "timeout");
    assert_eq!(app.get(&path).ok(200).await["invitations"], json!([]));
}
