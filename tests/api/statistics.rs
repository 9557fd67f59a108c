//! Statistics: equal to what anybody can count from lists of games, and every game counted exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;
use tavola::workers::statistics;

use crate::helpers::{Player, TestApp};
use crate::play::{Table, short};

/// The store's advisory lock, held by whoever counts everything anew.
const LOCK: &str = "127961947665268";

const EMPTY: [&str; 4] = ["by_ruleset", "by_seats", "by_opponent", "by_month"];

impl TestApp {
    /// Counts what has finished, as servers do each second; how many games that was.
    async fn count_games(&self) -> u64 {
        statistics::run_once(&self.store).await.expect("the database answers")
    }

    async fn player_stats(&self, player: &Player, query: &str, viewer: Option<&Player>) -> Value {
        self.get(format!("/v1/players/{}/stats{query}", player.id)).by_some(viewer).ok(200).await
    }

    /// All finished games of a player that this viewer may list.
    async fn finished_of(&self, player: &Player, viewer: Option<&Player>) -> Vec<Value> {
        let path = format!("/v1/games?status=finished&player={}&limit=100", player.id);
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(format!("{path}{cursor}")).by_some(viewer).ok(200).await;
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    async fn give_up(&self, table: &Table, seat: usize) -> Value {
        self.post(table.path("/resignation")).by(&table.players[seat]).ok(200).await
    }

    /// A game of two that is over at once.
    async fn resigned(&self, ada: &Player, bo: &Player) -> Table {
        let table = self.table_of("leopard", &short("leopard"), vec![ada.clone(), bo.clone()]).await;
        self.give_up(&table, 1).await;
        table
    }

    /// The statistics of everything that a test looks at, as everybody sees them and as each player.
    async fn everything(&self, players: &[Player]) -> Vec<Value> {
        let mut all = Vec::new();
        for player in players {
            for viewer in [None, Some(player), Some(&players[0])] {
                all.push(self.player_stats(player, "", viewer).await);
            }
        }
        for ruleset in RulesetId::ALL {
            all.push(self.get(format!("/v1/rulesets/{}/stats", ruleset.meta().slug)).ok(200).await);
        }
        all
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// How a game went for a seat, from its ranking.
fn result(game: &Value, seat: u64) -> &'static str {
    let ranking = game["outcome"]["ranking"].as_array().unwrap();
    let winners: Vec<&Value> = ranking.iter().filter(|line| line["won"] == true).map(|line| &line["seat"]).collect();
    match (winners.contains(&&json!(seat)), winners.len()) {
        (false, _) => "lost",
        (true, 1) => "won",
        (true, _) => "shared",
    }
}

/// Games by what they have in common, the slow way.
fn tally<'a>(games: &[&'a Value], player: &str, key: impl Fn(&'a Value) -> Vec<String>) -> BTreeMap<String, Value> {
    let mut sums: BTreeMap<String, BTreeMap<&str, u64>> = BTreeMap::new();
    for game in games {
        let own = game["seats"].as_array().unwrap().iter().find(|seat| seat["player"]["id"] == player).unwrap();
        let left = own["status"] != "playing";
        for key in key(game) {
            let sum = sums.entry(key).or_insert_with(|| {
                ["games", "won", "lost", "shared", "left", "moves"].into_iter().map(|name| (name, 0)).collect()
            });
            *sum.get_mut("games").unwrap() += 1;
            *sum.get_mut(result(game, number(&own["seat"]))).unwrap() += 1;
            *sum.get_mut("left").unwrap() += u64::from(left);
            *sum.get_mut("moves").unwrap() += number(&game["moves_count"]);
        }
    }
    sums.into_iter().map(|(key, sum)| (key, json!(sum))).collect()
}

/// Lines of a list: each sum with what it is of.
fn lines(sums: BTreeMap<String, Value>, member: &str, of: impl Fn(&str) -> Value) -> Vec<Value> {
    let line = |(key, mut sum): (String, Value)| {
        sum[member] = of(&key);
        sum
    };
    sums.into_iter().map(line).collect()
}

/// A player's statistics, counted from lists of games.
fn player_stats_of(games: &[Value], player: &Player, with_private: bool, ruleset: Option<&str>) -> Value {
    let counts = |game: &&Value| {
        (with_private || game["visibility"] == "public") && ruleset.is_none_or(|wanted| game["ruleset"] == wanted)
    };
    let games: Vec<&Value> = games.iter().filter(counts).collect();
    let text = |value: &Value| vec![value.as_str().unwrap().to_owned()];
    let others = |game: &Value| {
        let seats = game["seats"].as_array().unwrap().iter();
        seats.map(|seat| seat["player"].to_string()).filter(|other| !other.contains(&player.id)).collect()
    };
    let zero = json!({"games": 0, "won": 0, "lost": 0, "shared": 0, "left": 0, "moves": 0});
    let total = tally(&games, &player.id, |_| vec![String::new()]).remove("").unwrap_or(zero);
    let mut by_opponent = lines(tally(&games, &player.id, others), "player", |key| serde_json::from_str(key).unwrap());
    by_opponent.sort_by_key(|line| (std::cmp::Reverse(number(&line["games"])), line["player"]["id"].to_string()));
    json!({
        "player": {"id": player.id, "name": player.name, "kind": "human"},
        "total": total,
        "by_ruleset": lines(tally(&games, &player.id, |game| text(&game["ruleset"])), "ruleset", |key| json!(key)),
        "by_seats": lines(tally(&games, &player.id, |game| vec![game["seat_count"].to_string()]), "seats",
                          |key| json!(key.parse::<u8>().unwrap())),
        "by_opponent": by_opponent,
        // Answers have times in UTC.
        "by_month": lines(tally(&games, &player.id, |game| text(&json!(&game["finished_at"].as_str().unwrap()[..7]))),
                          "month", |key| json!(key)),
    })
}

fn count(values: impl IntoIterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    values.into_iter().for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

/// A ruleset's statistics, counted from its games, each with the seat that moved first.
fn ruleset_stats_of(games: &[(Value, u64)], slug: &str, seats: Option<u64>) -> Value {
    let counts = |(game, _): &&(Value, u64)| {
        game["visibility"] == "public"
            && game["ruleset"] == slug
            && seats.is_none_or(|seats| game["seat_count"] == seats)
    };
    let games: Vec<&(Value, u64)> = games.iter().filter(counts).collect();
    let by_seats = count(games.iter().map(|(game, _)| game["seat_count"].to_string()));
    let mut ends: Vec<(String, u64)> =
        count(games.iter().map(|(game, _)| game["outcome"]["reason"].as_str().unwrap().to_owned()))
            .into_iter()
            .collect();
    let order = ["completed", "turn_limit", "resignation", "timeout"];
    ends.sort_by_key(|(reason, games)| (std::cmp::Reverse(*games), order.iter().position(|known| known == reason)));
    let mut lengths: Vec<u64> = games.iter().map(|(game, _)| number(&game["moves_count"])).collect();
    lengths.sort_unstable();
    let n = lengths.len();
    let length = match n {
        0 => json!({"count": 0, "min": null, "max": null, "mean": null, "median": null, "p90": null}),
        _ => json!({
            "count": n, "min": lengths[0], "max": lengths[n - 1],
            "mean": rounded(lengths.iter().sum::<u64>() as f64 / n as f64, 100.0),
            "median": (lengths[(n - 1) / 2] + lengths[n / 2]) as f64 / 2.0,
            "p90": lengths[(n * 9).div_ceil(10) - 1],
        }),
    };
    let mut first_seat = Vec::new();
    for seats in by_seats.keys().map(|seats| seats.parse::<u64>().unwrap()).filter(|seats| *seats > 1) {
        let decided: Vec<bool> = games
            .iter()
            .filter(|(game, _)| game["seat_count"] == seats)
            .filter(|(game, _)| (0..seats).any(|seat| result(game, seat) == "won"))
            .map(|(game, first)| result(game, *first) == "won")
            .collect();
        if decided.is_empty() {
            continue;
        }
        let (n, won) = (decided.len() as f64, decided.iter().filter(|won| **won).count());
        let (p, z) = (won as f64 / n, 1.959_963_984_540_054_f64);
        let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        let of = |end: f64| rounded(((p + z * z / (2.0 * n) + end) / (1.0 + z * z / n)).clamp(0.0, 1.0), 10_000.0);
        first_seat.push(json!({
            "seats": seats, "games": decided.len(), "won": won, "share": rounded(p, 10_000.0),
            "expected": rounded(1.0 / seats as f64, 10_000.0), "low": of(-half), "high": of(half),
        }));
    }
    let scores = games.iter().flat_map(|(game, _)| game["outcome"]["ranking"].as_array().unwrap());
    let mut scores: Vec<(i64, u64)> = count(scores.map(|line| line["score"].to_string()))
        .into_iter()
        .map(|(score, seats)| (score.parse().unwrap(), seats))
        .collect();
    scores.sort_unstable();
    json!({
        "ruleset": slug, "games": n,
        "by_seats": by_seats.iter().map(|(seats, games)| json!({"seats": seats.parse::<u8>().unwrap(), "games": games}))
            .collect::<Vec<_>>(),
        "end_reasons": ends.iter().map(|(reason, games)| json!({"reason": reason, "games": games})).collect::<Vec<_>>(),
        "length": length, "first_seat": first_seat,
        "scores": scores.iter().map(|(score, count)| json!({"score": score, "count": count})).collect::<Vec<_>>(),
    })
}

/// Plays dozens of games of these players, of all rulesets and numbers of seats, that end in every way.
async fn play_many(app: &TestApp, players: &[Player]) {
    let mut round = 0_usize;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        for seats in ruleset.meta().seats.clone() {
            let seats = usize::from(seats);
            for way in ["played", "left", "resigned", "private", "resigned", "aborted", "timed out", "resigned"] {
                round += 1;
                let own: Vec<Player> = players.iter().cycle().skip(round * 5).take(seats).cloned().collect();
                let visibility = if way == "private" { "private" } else { "public" };
                let clock = if way == "timed out" { json!({"kind": "per_move", "seconds": 600}) } else { Value::Null };
                let wanted = json!({"ruleset": slug, "options": short(slug), "visibility": visibility, "clock": clock});
                let table = app.table_like(&wanted, own).await;
                let seed = round as u64;
                match way {
                    "played" => drop(app.play_to_the_end(&table, seed).await),
                    // Of three or four, the others play on.
                    "left" if seats > 2 => {
                        app.play_random(&table, seed, 4).await;
                        app.give_up(&table, round % seats).await;
                        app.play_with_bots_to_the_end(&table, seed).await;
                    }
                    "aborted" => {
                        app.play_random(&table, seed, 2).await;
                        for player in &table.players {
                            app.post(table.path("/abort")).by(player).expect(200).await;
                        }
                    }
                    "timed out" if seats > 1 => {
                        app.play_random(&table, seed, 1 + round % 5).await;
                        while app.to_move(&table).await.is_some() {
                            app.let_time_run_out(&table.id).await;
                            app.attend().await;
                        }
                    }
                    _ => {
                        app.play_random(&table, seed, 1 + round % 4).await;
                        // Of three or four the first ones leave, until nobody is left.
                        for seat in 0..seats {
                            if app.give_up(&table, seat).await["status"] == "finished" {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn statistics_are_what_the_lists_of_games_add_up_to() {
    let app = TestApp::with(2, 6).await;
    let players = app.players(6).await;
    let stranger = app.players(1).await.remove(0);
    play_many(&app, &players).await;
    // Months of the past, to the last moment of one and the first of another in UTC.
    for (part, at) in
        [(1, "2025-12-31T23:59:59.999999Z"), (2, "2026-01-01T01:00:00+01:00"), (3, "1999-07-01T00:00:00Z")]
    {
        for sql in [
            "update games set finished_at = $1::text::timestamptz
             where status = 'finished' and id in (select game_id from seats where seat = 0) and hashtext(id::text) % 5 = $2",
            "update seats s set finished_at = g.finished_at from games g
             where g.id = s.game_id and $1 <> '' and $2 > 0 and g.status = 'finished'",
        ] {
            sqlx::query(sql).bind(at).bind(part).execute(app.sql()).await.unwrap();
        }
    }
    let before = app.everything(&players).await;
    assert!(before.iter().all(|stats| stats["total"]["games"] == 0 || stats["games"] == 0), "nothing is counted yet");
    let finished = app.count("select count(*) from games where status = 'finished'").await;
    assert!(finished >= 50, "{finished}");
    assert_eq!(app.count_games().await, finished as u64);

    let mut games: BTreeMap<String, Value> = BTreeMap::new();
    let (mut months, mut results) = (BTreeSet::new(), BTreeSet::new());
    for player in &players {
        let own = app.finished_of(player, Some(player)).await;
        games.extend(own.iter().map(|game| (game["id"].to_string(), game.clone())));
        let seen: Vec<Value> = app.finished_of(player, None).await;
        assert!(seen.len() < own.len(), "some are private");
        for ruleset in [None].into_iter().chain(RulesetId::ALL.iter().map(|id| Some(id.meta().slug))) {
            let query = ruleset.map(|slug| format!("?ruleset={slug}")).unwrap_or_default();
            let all = app.player_stats(player, &query, Some(player)).await;
            assert_eq!(all, player_stats_of(&own, player, true, ruleset), "{ruleset:?}");
            let public = player_stats_of(&seen, player, false, ruleset);
            let other = players.iter().find(|other| other.id != player.id);
            // One who sat in private games with the player, too, is told of public ones.
            for viewer in [None, Some(&stranger), other] {
                assert_eq!(app.player_stats(player, &query, viewer).await, public, "{ruleset:?}");
            }
            let sum = &all["total"];
            assert_eq!(number(&sum["won"]) + number(&sum["lost"]) + number(&sum["shared"]), number(&sum["games"]));
            for list in ["by_ruleset", "by_seats", "by_month"] {
                let games: u64 = all[list].as_array().unwrap().iter().map(|line| number(&line["games"])).sum();
                assert_eq!(games, number(&sum["games"]), "{list}");
            }
            months.extend(all["by_month"].as_array().unwrap().iter().map(|line| line["month"].to_string()));
            results.extend(["won", "lost", "shared", "left"].into_iter().filter(|name| number(&sum[name]) > 0));
        }
    }
    assert_eq!(games.len() as i64, finished);
    assert!(months.len() > 2 && months.contains("\"2025-12\"") && months.contains("\"2026-01\""), "{months:?}");
    assert!(results.contains("won") && results.contains("lost") && results.contains("left"), "{results:?}");

    let mut with_first = Vec::new();
    for game in games.into_values() {
        let path = format!("/v1/games/{}/states/0", game["id"].as_str().unwrap());
        let member = game["seats"][0]["player"]["id"].as_str().unwrap();
        let viewer = players.iter().find(|player| player.id == member);
        let first = number(&app.get(path).by_some(viewer).ok(200).await["to_move"]);
        with_first.push((game, first));
    }
    let mut advantages = 0;
    for ruleset in RulesetId::ALL {
        let slug = ruleset.meta().slug;
        let all = app.get(format!("/v1/rulesets/{slug}/stats")).ok(200).await;
        assert_eq!(all, ruleset_stats_of(&with_first, slug, None), "{slug}");
        advantages += all["first_seat"].as_array().unwrap().len();
        for seats in 1..=5_u64 {
            let some = app.get(format!("/v1/rulesets/{slug}/stats?seats={seats}")).by(&stranger).ok(200).await;
            assert_eq!(some, ruleset_stats_of(&with_first, slug, Some(seats)), "{slug}, {seats}");
        }
    }
    assert!(advantages >= 4, "hardly any games were decided: {advantages}");

    // Counting again finds nothing, and counting everything anew comes to the same.
    let counted = app.everything(&players).await;
    assert_eq!(app.count_games().await, 0);
    assert_eq!(app.everything(&players).await, counted);
    for _ in 0..2 {
        assert_eq!(app.store.rebuild_statistics().await.unwrap(), finished as u64);
        assert_eq!(app.everything(&players).await, counted);
        assert_eq!(app.count_games().await, 0);
    }
    rebuilds_by_command(&app, finished).await;
    assert_eq!(app.everything(&players).await, counted);

    // Names are those of today.
    app.call("PATCH", "/v1/me").by(&players[1]).json(&json!({"name": "Another name"})).expect(200).await;
    let seen = app.player_stats(&players[0], "", None).await;
    let names: Vec<&Value> =
        seen["by_opponent"].as_array().unwrap().iter().map(|line| &line["player"]["name"]).collect();
    assert!(names.contains(&&json!("Another name")), "{names:?}");
}

/// Counts anew as operators do.
async fn rebuilds_by_command(app: &TestApp, finished: i64) {
    let options = app.database();
    let socket = options.get_socket().map(|path| path.display().to_string());
    let host = socket.unwrap_or_else(|| options.get_host().to_owned());
    let database = options.get_database().unwrap();
    let url = format!("postgres://{}@localhost:{}/{database}?host={host}", options.get_username(), options.get_port());
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_tavola"));
    let output = command.arg("rebuild-stats").env("DATABASE_URL", url).stdin(Stdio::null()).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{finished} games counted\n"));
}

#[tokio::test]
async fn where_no_game_has_finished_there_are_zeros_and_nulls() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let stats = app.player_stats(&ada, "", None).await;
    assert_eq!(stats["total"], json!({"games": 0, "won": 0, "lost": 0, "shared": 0, "left": 0, "moves": 0}));
    for list in EMPTY {
        assert_eq!(stats[list], json!([]));
    }
    assert_eq!(stats["player"], json!({"id": ada.id, "name": "Ada", "kind": "human"}));
    assert_eq!(app.player_stats(&ada, "?ruleset=siggil", Some(&ada)).await, stats);
    let nothing = ruleset_stats_of(&[], "leopard", None);
    assert_eq!(app.get("/v1/rulesets/leopard/stats").ok(200).await, nothing);
    assert_eq!(app.get("/v1/rulesets/leopard/stats?seats=255").ok(200).await, nothing);
    assert_eq!((app.count_games().await, app.store.rebuild_statistics().await.unwrap()), (0, 0));
    assert_eq!(app.get("/v1/rulesets/leopard/stats").ok(200).await, nothing);
}

#[tokio::test]
async fn what_is_malformed_is_refused_and_what_is_unknown_is_not_found() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let path = format!("/v1/players/{}/stats", ada.id);
    for query in ["ruleset=chess", "ruleset=", "seats=2", "ruleset=leopard&ruleset=leopard", "ruleset=%00", "%ff=1"] {
        app.get(format!("{path}?{query}")).refused(400, "invalid-parameter").await;
    }
    for id in ["me", "1", "00000000-0000-0000-0000-00000000000g"] {
        app.get(format!("/v1/players/{id}/stats")).refused(400, "invalid-parameter").await;
    }
    app.get(format!("/v1/players/{}/stats", uuid::Uuid::now_v7())).refused(404, "not-found").await;
    app.get(path.as_str()).token("tavola_unknown").refused(401, "unauthenticated").await;
    for query in
        ["seats=0", "seats=256", "seats=-1", "seats=%2B2", "seats=two", "seats=", "seats=2&seats=2", "ruleset=leopard"]
    {
        app.get(format!("/v1/rulesets/leopard/stats?{query}")).refused(400, "invalid-parameter").await;
    }
    for slug in ["chess", "LEOPARD", "%00", "leopard%20"] {
        app.get(format!("/v1/rulesets/{slug}/stats")).refused(404, "not-found").await;
    }
    app.post(path.as_str()).json(&json!({})).refused(405, "method-not-allowed").await;
    let reply = app.get(path.as_str()).by(&ada).expect(200).await;
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    assert!(reply.header("vary").is_some_and(|vary| vary.contains("Authorization")), "private games are in it");
}

#[tokio::test]
async fn a_game_is_counted_once_whoever_counts_and_whatever_breaks_off() {
    let app = TestApp::with(2, 6).await;
    let other = app.another().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    for _ in 0..30 {
        app.resigned(&ada, &bo).await;
    }
    let games = || async { number(&app.player_stats(&ada, "", None).await["total"]["games"]) };

    // One that holds its claim keeps the others from it, and no longer than it lasts.
    let mut claim = app.sql().begin().await.unwrap();
    let ids: Vec<uuid::Uuid> =
        sqlx::query_scalar("delete from uncounted_games returning game_id").fetch_all(&mut *claim).await.unwrap();
    assert_eq!(ids.len(), 30);
    assert_eq!((app.count_games().await, games().await), (0, 0));
    claim.rollback().await.unwrap();

    // One that fails in the middle leaves everything as it was.
    let broken = "alter table ruleset_histograms add constraint broken check (kind <> 'score')";
    sqlx::query(broken).execute(app.sql()).await.unwrap();
    assert!(statistics::run_once(&app.store).await.is_err());
    assert_eq!(games().await, 0);
    assert_eq!(app.count("select count(*) from uncounted_games").await, 30);
    assert_eq!(app.count("select count(*) from opponent_statistics").await, 0);
    sqlx::query("alter table ruleset_histograms drop constraint broken").execute(app.sql()).await.unwrap();

    // Many at once, each a few.
    let counts =
        join_all((0..20).map(|n| if n % 2 == 0 { &app } else { &other }).map(|app| app.store.count_finished(4)));
    let counted: u64 = counts.await.into_iter().map(|counted| counted.expect("nobody waits in a circle")).sum();
    assert_eq!(counted + app.count_games().await, 30);
    assert_eq!(games().await, 30);
    assert_eq!(app.count("select count(*) from uncounted_games").await, 0);

    // What changes of a game that is over does not finish it again.
    let wanted = json!({"ruleset": "leopard", "options": short("leopard"), "visibility": "private"});
    let table = app.table_like(&wanted, vec![ada.clone(), bo.clone()]).await;
    app.give_up(&table, 1).await;
    app.post(table.path("/invite")).by(&ada).send().await;
    app.post(table.path("/rematch")).by(&ada).json(&json!({})).expect(201).await;
    assert_eq!(app.count_games().await, 1);
    for call in [app.post(table.path("/invite")), app.call("DELETE", table.path("/invite"))] {
        call.by(&ada).send().await;
    }
    assert_eq!((app.count_games().await, games().await), (0, 30));
    assert_eq!(app.player_stats(&ada, "", Some(&ada)).await["total"]["games"], 31);
}

#[tokio::test]
async fn games_go_on_while_everything_is_counted_anew() {
    let app = TestApp::with(2, 8).await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    for _ in 0..5 {
        app.resigned(&ada, &bo).await;
    }
    assert_eq!(app.count_games().await, 5);
    // While one counts anew, nobody else counts, and games end all the same.
    let mut holder = app.sql().acquire().await.unwrap();
    sqlx::query("select pg_advisory_lock($1::text::bigint)").bind(LOCK).execute(&mut *holder).await.unwrap();
    app.resigned(&ada, &bo).await;
    assert_eq!(app.count_games().await, 0);
    let rebuild = tokio::spawn({
        let store = app.store.clone();
        async move { store.rebuild_statistics().await }
    });
    app.resigned(&ada, &bo).await;
    assert!(!rebuild.is_finished(), "it waits for those who count");
    sqlx::query("select pg_advisory_unlock($1::text::bigint)").bind(LOCK).execute(&mut *holder).await.unwrap();
    assert_eq!(rebuild.await.unwrap().unwrap(), 7);
    drop(holder);
    assert_eq!(app.count("select count(*) from uncounted_games").await, 0);

    // Everything at once.
    let play = async {
        for _ in 0..25 {
            app.resigned(&ada, &bo).await;
        }
    };
    let rebuild = async {
        for _ in 0..12 {
            app.store.rebuild_statistics().await.unwrap();
        }
    };
    let count = async {
        for _ in 0..60 {
            app.count_games().await;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(play, rebuild, count);
    app.count_games().await;
    let stats = app.player_stats(&ada, "", None).await;
    assert_eq!(stats["total"], json!({"games": 32, "won": 32, "lost": 0, "shared": 0, "left": 0, "moves": 0}));
    let ruleset = app.get("/v1/rulesets/leopard/stats").ok(200).await;
    assert_eq!((&ruleset["games"], &ruleset["length"]["count"]), (&json!(32), &json!(32)));
    // Who was to move first is known although nobody has moved.
    assert_eq!(ruleset["first_seat"][0]["games"], 32);
    assert_eq!(app.count("select count(*) from uncounted_games").await, 0);
}

#[tokio::test]
async fn lists_are_bounded_and_wide_numbers_are_told_whole() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    // 150 opponents, of whom the later ones are the more frequent, and 130 months; with counts beyond 32 bits.
    for sql in [
        "insert into players (id, name, name_key, kind)
         select ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'o' || n, 'o' || n, 'bot' from generate_series(1, 150) n
         on conflict do nothing",
        "insert into opponent_statistics
         select $1::text::uuid, ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'public', r, 2000000000 + n / 2, 0,
                2000000000 + n / 2, 0, 0, 4503599627370496
         from generate_series(1, 150) n, unnest(array['leonardo', 'leopard']) r",
        "insert into player_statistics
         select $1::text::uuid, 'public', 'leopard', 2, ('2000-01-01'::timestamp + n * interval '1 month')::date,
                10000000000, 10000000000, 0, 0, 0, 60000000000000
         from generate_series(0, 129) n",
    ] {
        let query = sqlx::query(sql);
        let query = if sql.contains("$1") { query.bind(&ada.id) } else { query };
        query.execute(app.sql()).await.unwrap();
    }
    let stats = app.player_stats(&ada, "", None).await;
    let total = json!({"games": 1_300_000_000_000_u64, "won": 1_300_000_000_000_u64, "lost": 0, "shared": 0, "left": 0,
                       "moves": 7_800_000_000_000_000_u64});
    assert_eq!(stats["total"], total);
    let opponents = stats["by_opponent"].as_array().unwrap();
    assert_eq!(opponents.len(), 100);
    let names: Vec<&str> = opponents.iter().map(|line| line["player"]["name"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[1], names[2], names[99]), ("o150", "o148", "o149", "o50"), "equal ones by id");
    assert_eq!(opponents[0]["games"], 4_000_000_150_u64);
    let months = stats["by_month"].as_array().unwrap();
    assert_eq!((months.len(), &months[0]["month"], &months[119]["month"]), (120, &json!("2000-11"), &json!("2010-10")));

    for sql in [
        "insert into ruleset_statistics values ('leopard', 2, 'completed', 3000000000000000, 3000000000000000, 1500000000000000)",
        "insert into ruleset_histograms values ('leopard', 2, 'moves', 2147483647, 3000000000000000)",
        "insert into ruleset_histograms values ('leopard', 2, 'score', 504, 6000000000000000)",
    ] {
        sqlx::query(sql).execute(app.sql()).await.unwrap();
    }
    let stats = app.get("/v1/rulesets/leopard/stats").ok(200).await;
    assert_eq!(
        (&stats["games"], &stats["scores"][0]["count"]),
        (&json!(3_000_000_000_000_000_u64), &json!(6_000_000_000_000_000_u64))
    );
    assert_eq!((&stats["length"]["mean"], &stats["length"]["p90"]), (&json!(2_147_483_647.0), &json!(2_147_483_647)));
    assert_eq!((&stats["first_seat"][0]["share"], &stats["first_seat"][0]["low"]), (&json!(0.5), &json!(0.5)));
}
