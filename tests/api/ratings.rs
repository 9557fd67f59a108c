//! Ratings: counted once, from the values of the moment, recomputable to the last digit; histories and leaderboards.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::game::Record;
use tavola::game::rating::{Ledger, Rating};
use uuid::Uuid;

use crate::helpers::{Player, TestApp};
use crate::play::{Table, short};

/// A row of `rating_changes`.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Change {
    game_id: Uuid,
    seat: i16,
    player_id: Uuid,
    number: i64,
    rank: i16,
    rating_before: f64,
    deviation_before: f64,
    rating_after: f64,
    deviation_after: f64,
}

impl Change {
    fn before(&self) -> Rating {
        Rating { rating: self.rating_before, deviation: self.deviation_before }
    }

    fn after(&self) -> Rating {
        Rating { rating: self.rating_after, deviation: self.deviation_after }
    }
}

impl TestApp {
    async fn rated_table(&self, slug: &str, players: Vec<Player>) -> Table {
        let wanted = json!({"ruleset": slug, "options": short(slug), "rated": true, "entropy": "sesame"});
        self.table_like(&wanted, players).await
    }

    async fn bots(&self, count: usize) -> Vec<Player> {
        let mut bots = Vec::new();
        for _ in 0..count {
            let name = format!("b-{}", &Uuid::new_v4().simple().to_string()[..20]);
            let answer = self.post("/v1/players").json(&json!({"name": name, "kind": "bot"})).ok(201).await;
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            bots.push(Player { id: text(&answer["player"]["id"]), name, token: text(&answer["token"]) });
        }
        bots
    }

    async fn resign(&self, table: &Table, seat: usize) -> Value {
        self.post(table.path("/resignation")).by(&table.players[seat]).ok(200).await
    }

    /// All changes, by number and seat.
    async fn changes(&self) -> Vec<Change> {
        let sql = "select game_id, seat, player_id, number, rank, rating_before, deviation_before, rating_after, deviation_after
                   from rating_changes order by number, seat";
        sqlx::query_as(sql).fetch_all(self.sql()).await.unwrap()
    }

    /// What differs from what the games say.
    async fn differences(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.store.recompute_ratings(false, |difference| all.push(difference.0)).await.unwrap();
        all
    }

    async fn ratings(&self, player: &Player, query: &str) -> Value {
        self.get(format!("/v1/players/{}/ratings{query}", player.id)).ok(200).await
    }

    /// Puts so many players of random names on a leaderboard, with these means and deviations.
    async fn arrange(&self, slug: &str, ratings: &[(f64, f64, i32)]) -> Vec<Player> {
        let players = self.players(ratings.len()).await;
        for (player, (rating, deviation, games)) in players.iter().zip(ratings) {
            sqlx::query(
                "insert into ratings (player_id, ruleset, pool, rating, deviation, games_count)
                 values ($1::uuid, $2, 'human', $3, $4, $5)",
            )
            .bind(&player.id)
            .bind(slug)
            .bind(rating)
            .bind(deviation)
            .bind(games)
            .execute(self.sql())
            .await
            .unwrap();
        }
        players
    }

    /// A whole leaderboard, page by page.
    async fn board(&self, slug: &str, query: &str) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(format!("/v1/leaderboards/{slug}?{query}{cursor}")).ok(200).await;
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }
}

fn lines(items: &[Value]) -> Vec<(u64, String)> {
    let line = |item: &Value| (item["rank"].as_u64().unwrap(), item["player"]["id"].as_str().unwrap().to_owned());
    items.iter().map(line).collect()
}

#[tokio::test]
async fn a_rated_game_is_counted_for_both_and_shown() {
    let app = TestApp::new().await;
    let table = app.rated_table("leopard", app.players(2).await).await;
    let nothing = app.ratings(&table.players[0], "").await;
    assert_eq!(nothing, json!({"current": [], "items": [], "next_cursor": null}));
    app.resign(&table, 1).await;
    let [ada, bo] = [&table.players[0], &table.players[1]];
    let page = app.ratings(ada, "").await;
    let (current, item) = (&page["current"][0], &page["items"][0]);
    assert_eq!(
        (&item["game_id"], &item["ruleset"], &item["pool"]),
        (&json!(table.id), &json!("leopard"), &json!("human"))
    );
    assert_eq!((&item["seat"], &item["rank"]), (&json!(0), &json!(1)));
    assert_eq!(item["before"], json!({"rating": 25.0, "deviation": 25.0 / 3.0}));
    assert!(item["after"]["rating"].as_f64().unwrap() > 25.0);
    assert_eq!((&current["rating"], &current["deviation"]), (&item["after"]["rating"], &item["after"]["deviation"]));
    assert_eq!((&current["games_count"], &current["provisional"]), (&json!(1), &json!(true)));
    let opponent = &item["opponents"][0];
    assert_eq!(opponent["player"], json!({"id": bo.id, "name": bo.name, "kind": "human"}));
    assert_eq!((&opponent["seat"], &opponent["rank"]), (&json!(1), &json!(2)), "leavers lose");
    assert!(opponent["after"]["rating"].as_f64().unwrap() < 25.0);
    let game = app.game(&table.id, None).await;
    assert_eq!(item["at"], game["finished_at"]);
    // The record has it too, and it is checked to the last digit.
    let reply = app.get(table.path("/record")).expect(200).await;
    let record = Record::read(&reply.bytes).unwrap();
    record.verify().unwrap();
    assert_eq!(app.changes().await[0].after(), record.rating.as_ref().unwrap().seats[0].after);
    let forge = |change: &dyn Fn(&mut Record)| {
        let mut forged = record.clone();
        change(&mut forged);
        forged.digest = forged.compute_digest();
        forged.verify()
    };
    forge(&|_| ()).unwrap();
    for change in [
        (&|record: &mut Record| record.rating = None) as &dyn Fn(&mut Record),
        &|record| record.rated = false,
        &|record| {
            let after = &mut record.rating.as_mut().unwrap().seats[0].after.rating;
            *after = f64::from_bits(after.to_bits() + 1);
        },
        &|record| record.rating.as_mut().unwrap().pool = tavola::game::PlayerKind::Bot,
        &|record| record.rating.as_mut().unwrap().seats.truncate(1),
    ] {
        assert!(forge(change).is_err());
    }
    assert_eq!(app.differences().await, Vec::<String>::new());
}

#[tokio::test]
async fn unrated_and_aborted_games_change_nothing() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let casual = app.table_of("leopard", &short("leopard"), players.clone()).await;
    app.resign(&casual, 0).await;
    let aborted = app.rated_table("leopard", players.clone()).await;
    for player in &players {
        app.post(aborted.path("/abort")).by(player).expect(200).await;
    }
    assert_eq!(app.game(&aborted.id, None).await["status"], "aborted");
    assert_eq!((app.changes().await, app.count("select count(*) from ratings").await), (Vec::new(), 0));
    let reply = app.get(casual.path("/record")).expect(200).await;
    assert!(!reply.text().contains("\"rating\"") && !reply.text().contains("\"rated\""));
    Record::read(&reply.bytes).unwrap().verify().unwrap();
}

#[tokio::test]
async fn a_game_is_counted_once_when_everything_ends_it_at_once() {
    let app = TestApp::with(2, 8).await;
    for round in 0..6 {
        let wanted = json!({"ruleset": "leonardo", "options": {"turn_limit": 1}, "rated": true,
                            "clock": {"kind": "per_move", "seconds": 60}});
        let table = app.table_like(&wanted, app.players(2).await).await;
        let (mover, other) = app.mover_and_other(&table).await;
        let mv = app.legal_moves(&table.id, mover).await[0].clone();
        // In every other round the time is over too.
        if round % 2 == 0 {
            app.let_time_run_out(&table.id).await;
        }
        let moves = join_all((0..8).map(|_| app.post(table.path("/moves")).by(mover).json(&mv).send()));
        let resignations = join_all(
            (0..4).flat_map(|_| [mover, other].map(|player| app.post(table.path("/resignation")).by(player).send())),
        );
        tokio::join!(moves, resignations, app.attend(), app.attend());
        let mut game = app.game(&table.id, None).await;
        while game["status"] != "finished" {
            app.play_one(&table, &mut crate::play::Chance(1)).await;
            game = app.game(&table.id, None).await;
        }
        let id = Uuid::parse_str(&table.id).unwrap();
        let rows: Vec<Change> = app.changes().await.into_iter().filter(|change| change.game_id == id).collect();
        assert_eq!(rows.iter().map(|row| row.seat).collect::<Vec<_>>(), [0, 1]);
        for row in &rows {
            let ranking = game["outcome"]["ranking"].as_array().unwrap();
            let line = ranking.iter().find(|line| line["seat"] == row.seat).unwrap();
            assert_eq!(line["rank"], row.rank);
        }
    }
    assert_eq!(app.count("select count(*) from ratings where games_count <> 1").await, 0);
    assert_eq!(app.differences().await, Vec::<String>::new());
}

#[tokio::test]
async fn many_games_of_the_same_players_that_end_at_once_are_counted_one_after_another() {
    let app = TestApp::with(2, 12).await;
    let players = app.players(4).await;
    let mut tables = Vec::new();
    for n in 0..12 {
        // Pairs and all four, in all orders.
        let some: Vec<Player> = match n % 3 {
            0 => (0..4).map(|seat| players[(n + seat) % 4].clone()).collect(),
            1 => vec![players[n % 4].clone(), players[(n + 1) % 4].clone()],
            _ => vec![players[(n + 1) % 4].clone(), players[n % 4].clone()],
        };
        tables.push(app.rated_table("leonardo", some).await);
    }
    // Of four all leave, at the same time in all games; some by timeouts' way, by bots.
    let end = |table: &Table| {
        let path = table.path("/resignation");
        let players = table.players.clone();
        let app = &app;
        async move {
            for player in players.iter().rev() {
                app.post(&path).by(player).send().await;
            }
        }
    };
    join_all(tables.iter().map(end)).await;
    app.attend().await;
    let changes = app.changes().await;
    assert_eq!(changes.len(), 4 * 4 + 8 * 2);
    // From nothing but who came in where, in order of number.
    let mut ledger = Ledger::default();
    let numbers: BTreeSet<i64> = changes.iter().map(|change| change.number).collect();
    assert_eq!(numbers.len(), 12);
    for number in numbers {
        let of_game: Vec<&Change> = changes.iter().filter(|change| change.number == number).collect();
        let ids: Vec<Uuid> = of_game.iter().map(|change| change.player_id).collect();
        let game = app.game(&of_game[0].game_id.to_string(), None).await;
        let outcome: tavola::rulesets::Outcome = serde_json::from_value(game["outcome"].clone()).unwrap();
        let ruleset = crate::play::ruleset("leonardo");
        let computed = ledger.count(ruleset, tavola::game::PlayerKind::Human, &ids, &outcome.ranking).unwrap();
        let kept: Vec<(Rating, Rating)> = of_game.iter().map(|change| (change.before(), change.after())).collect();
        assert_eq!(kept, computed);
    }
    assert_eq!(app.differences().await, Vec::<String>::new());
    // And from the records alone.
    let mut export = String::new();
    for table in tables.iter().rev() {
        export += &app.get(table.path("/record")).expect(200).await.text();
        export.push('\n');
    }
    export += "{\"format\":\"tavola-export-trailer/1\",\"count\":12}\n";
    let file = std::env::temp_dir().join(format!("tavola-{}.ndjson", Uuid::new_v4()));
    std::fs::write(&file, &export).unwrap();
    let check = || {
        let mut differences = Vec::new();
        let games = tavola::recompute::check_export(&file, |what| differences.push(what.to_owned())).unwrap();
        (games, differences)
    };
    assert_eq!(check(), (12, Vec::new()));
    // One digit of one record, and one game left out, are found.
    let first = app.changes().await[0].after().rating.to_string();
    assert!(export.contains(&first));
    std::fs::write(&file, export.replace(&first, "26.5")).unwrap();
    assert!(!check().1.is_empty());
    let first = format!("\"number\":{},\"seats\"", changes[0].number);
    let without = export.lines().filter(|line| !line.contains(&first));
    std::fs::write(&file, without.collect::<Vec<_>>().join("\n")).unwrap();
    assert!(!check().1.is_empty());
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn the_values_are_those_of_the_end_not_of_the_start() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let first = app.rated_table("leopard", players.clone()).await;
    let second = app.rated_table("leopard", players.clone()).await;
    // The one that began later ends earlier.
    app.resign(&second, 0).await;
    app.resign(&first, 0).await;
    let page = app.ratings(&players[0], "").await;
    let items = page["items"].as_array().unwrap();
    assert_eq!((&items[0]["game_id"], &items[1]["game_id"]), (&json!(first.id), &json!(second.id)));
    assert_eq!(items[0]["before"], items[1]["after"]);
    assert_eq!(page["current"][0]["games_count"], 2);
}

#[tokio::test]
async fn games_of_three_and_four_are_rated_with_shared_ranks_and_leavers_last() {
    let app = TestApp::with(2, 6).await;
    let mut ties = 0;
    for seed in 0..4 {
        for seats in [3, 4] {
            let table = app.rated_table("quintis-fontis", app.players(seats).await).await;
            if seed % 2 == 1 {
                app.resign(&table, 1).await;
            }
            let game = app.play_with_bots_to_the_end(&table, seed).await;
            let id = Uuid::parse_str(&table.id).unwrap();
            let rows: Vec<Change> = app.changes().await.into_iter().filter(|row| row.game_id == id).collect();
            assert_eq!(rows.len(), seats);
            for one in &rows {
                for other in &rows {
                    // They were all equal before.
                    match one.rank.cmp(&other.rank) {
                        std::cmp::Ordering::Less => assert!(one.rating_after > other.rating_after, "{game}"),
                        std::cmp::Ordering::Equal => assert_eq!(one.after(), other.after()),
                        std::cmp::Ordering::Greater => {}
                    }
                    ties += usize::from(one.rank == other.rank && one.seat != other.seat);
                }
            }
            if seed % 2 == 1 {
                assert_eq!(rows[1].rank, seats as i16, "who left is last");
            }
            let reply = app.get(table.path("/record")).expect(200).await;
            Record::read(&reply.bytes).unwrap().verify().unwrap();
        }
    }
    assert!(ties > 0, "some shared a rank");
    assert_eq!(app.differences().await, Vec::<String>::new());
}

#[tokio::test]
async fn humans_and_bots_are_rated_apart() {
    let app = TestApp::new().await;
    let (humans, bots) = (app.players(2).await, app.bots(2).await);
    let rated = json!({"ruleset": "leopard", "rated": true});
    let open = app.open(&humans[0], &rated).await;
    app.post(format!("{open}/seats")).by(&bots[0]).json(&json!({})).refused(403, "wrong-pool").await;
    let invite = json!({"player": bots[0].id});
    app.post(format!("{open}/invitations")).by(&humans[0]).json(&invite).refused(403, "wrong-pool").await;
    let of_bots = app.open(&bots[0], &rated).await;
    app.post(format!("{of_bots}/seats")).by(&humans[0]).json(&json!({})).refused(403, "wrong-pool").await;
    for wrong in [
        json!({"ruleset": "leopard", "rated": true, "visibility": "private"}),
        json!({"ruleset": "siggil", "rated": true, "seats": 1}),
    ] {
        let problem = app.post("/v1/games").by(&humans[0]).json(&wrong).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], "/rated");
    }
    let alone = app.open(&humans[0], &json!({"ruleset": "siggil", "rated": true, "seats": 2})).await;
    app.post(format!("{alone}/start")).by(&humans[0]).refused(409, "too-few-players").await;

    let table = app.rated_table("leopard", bots.clone()).await;
    app.resign(&table, 0).await;
    let page = app.ratings(&bots[1], "").await;
    assert_eq!((&page["current"][0]["pool"], &page["items"][0]["pool"]), (&json!("bot"), &json!("bot")));
    assert_eq!(app.board("leopard", "").await, Vec::<Value>::new());
    let board = app.board("leopard", "pool=bot").await;
    assert_eq!(lines(&board), [(1, bots[1].id.clone()), (2, bots[0].id.clone())]);
    assert_eq!(board[0]["player"]["kind"], "bot");
}

#[tokio::test]
async fn a_history_is_paged_and_filtered() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let mut played = Vec::new();
    for n in 0..7 {
        let slug = if n % 3 == 0 { "leonardo" } else { "leopard" };
        let table = app.rated_table(slug, players.clone()).await;
        app.resign(&table, n % 2).await;
        played.insert(0, (slug, table.id));
    }
    for (filter, wanted) in [("", None), ("&ruleset=leonardo", Some("leonardo")), ("&ruleset=leopard", Some("leopard"))]
    {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = app.ratings(&players[0], &format!("?limit=2{filter}{cursor}")).await;
            assert_eq!(page["current"].as_array().unwrap().len(), if wanted.is_some() { 1 } else { 2 });
            let items = page["items"].as_array().unwrap();
            seen.extend(items.iter().map(|item| item["game_id"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let expected: Vec<String> = played
            .iter()
            .filter(|(slug, _)| wanted.is_none_or(|wanted| wanted == *slug))
            .map(|(_, id)| id.clone())
            .collect();
        assert_eq!(seen, expected, "{filter}");
    }
    // A cursor is of one list.
    let page = app.ratings(&players[0], "?limit=2").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = |rest: &str| format!("/v1/players/{}/ratings{rest}", players[0].id);
    let other = format!("/v1/players/{}/ratings?cursor={cursor}", players[1].id);
    for wrong in [
        path(&format!("?ruleset=leopard&cursor={cursor}")),
        other,
        path("?cursor=zz"),
        path("?cursor=00"),
        path(&format!("?cursor={cursor}00")),
        path("?limit=0"),
        path("?limit=101"),
        path("?ruleset=chess"),
        path("?pool=human"),
        "/v1/players/nobody/ratings".to_owned(),
    ] {
        app.get(wrong).refused(400, "invalid-parameter").await;
    }
    app.get(format!("/v1/players/{}/ratings", Uuid::new_v4())).refused(404, "not-found").await;
}

#[tokio::test]
async fn a_leaderboard_is_paged_with_ranks_that_equals_share() {
    let app = TestApp::new().await;
    let ratings: Vec<(f64, f64, i32)> = (0..11)
        // Pairs of equals, and one who has a higher mean but is uncertain.
        .map(|n| if n == 10 { (45.0, 8.0, 3) } else { (40.0 - f64::from(n / 2), 2.0, 20) })
        .collect();
    let players = app.arrange("leopard", &ratings).await;
    let whole = app.board("leopard", "limit=100").await;
    let ranks: Vec<u64> = lines(&whole).into_iter().map(|(rank, _)| rank).collect();
    assert_eq!(ranks, [1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11]);
    assert_eq!(whole.iter().map(|line| line["player"]["id"].as_str().unwrap()).collect::<BTreeSet<_>>().len(), 11);
    let last = &whole[10];
    assert_eq!((last["player"]["id"].as_str(), &last["provisional"]), (Some(players[10].id.as_str()), &json!(true)));
    assert_eq!((&whole[0]["provisional"], &whole[0]["ordinal"]), (&json!(false), &json!(34.0)));
    for limit in 1..=11 {
        assert_eq!(app.board("leopard", &format!("limit={limit}")).await, whole, "in pages of {limit}");
    }
    assert_eq!(app.board("leonardo", "").await, Vec::<Value>::new());

    // Around each player: the same lines, with them in the middle unless there are too few above.
    for (place, line) in whole.iter().enumerate() {
        let id = line["player"]["id"].as_str().unwrap();
        let page = app.get(format!("/v1/leaderboards/leopard?limit=5&around={id}")).ok(200).await;
        let from = place.saturating_sub(2);
        assert_eq!(page["items"].as_array().unwrap()[..], whole[from..(from + 5).min(11)]);
        let rest = page["next_cursor"].as_str().map(|cursor| format!("limit=100&cursor={cursor}"));
        if let Some(rest) = rest {
            assert_eq!(app.board("leopard", &rest).await[..], whole[from + 5..], "it goes on from there");
        }
    }
    let me = app.get("/v1/leaderboards/leopard?limit=1&around=me").by(&players[4]).ok(200).await;
    assert_eq!(
        (me["items"][0]["player"]["id"].as_str(), &me["items"][0]["rank"]),
        (Some(players[4].id.as_str()), &json!(5))
    );
    app.get("/v1/leaderboards/leopard?around=me").refused(401, "unauthenticated").await;
    app.get("/v1/leaderboards/leonardo?around=me").by(&players[4]).refused(404, "not-found").await;
    app.get("/v1/leaderboards/chess").refused(404, "not-found").await;

    // Who deletes their account is on it no more, and the others move up.
    app.call("DELETE", "/v1/me").by(&players[0]).expect(204).await;
    let after = app.board("leopard", "").await;
    assert_eq!(after.len(), 10);
    assert_eq!(lines(&after)[0], (1, players[1].id.clone()));
    assert_eq!(lines(&after)[1].0, 2);
    app.get(format!("/v1/leaderboards/leopard?around={}", players[0].id)).refused(404, "not-found").await;
}

#[tokio::test]
async fn a_leaderboard_refuses_what_it_cannot_read() {
    let app = TestApp::new().await;
    app.arrange("leopard", &[(30.0, 2.0, 20), (29.0, 2.0, 20)]).await;
    let page = app.get("/v1/leaderboards/leopard?limit=1").ok(200).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let nan = format!("{}{}{}", &cursor[..16], "7ff8000000000000", &cursor[32..]);
    let around = Uuid::new_v4();
    for wrong in [
        "limit=0".to_owned(),
        "limit=x".into(),
        "pool=cyborg".into(),
        "around=you".into(),
        "cursor=".into(),
        "cursor=00".into(),
        format!("cursor={nan}"),
        format!("pool=bot&cursor={cursor}"),
        format!("around={around}&cursor={cursor}"),
        "sort=rating".into(),
        "limit=1&limit=2".into(),
    ] {
        app.get(format!("/v1/leaderboards/leopard?{wrong}")).refused(400, "invalid-parameter").await;
    }
    app.get(format!("/v1/leaderboards/leonardo?cursor={cursor}")).refused(400, "invalid-parameter").await;
    app.get("/v1/leaderboards/leopard").token("wrong").refused(401, "unauthenticated").await;
}

#[tokio::test]
async fn what_is_kept_otherwise_is_found_and_rewritten() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    for n in 0..4 {
        let table = app.rated_table("leopard", players.clone()).await;
        app.resign(&table, n % 2).await;
    }
    let before = app.changes().await;
    for sql in [
        "update rating_changes set rating_after = rating_after + 1 where number = (select min(number) from rating_changes)",
        "update ratings set games_count = 7",
    ] {
        sqlx::query(sql).execute(app.sql()).await.unwrap();
        assert!(!app.differences().await.is_empty());
    }
    // And a game that was never counted.
    sqlx::query("delete from rating_changes where number = (select max(number) from rating_changes)")
        .execute(app.sql())
        .await
        .unwrap();
    let mut told = 0;
    let games = app.store.recompute_ratings(true, |_| told += 1).await.unwrap();
    assert_eq!((games, told > 0), (4, true));
    assert_eq!(app.differences().await, Vec::<String>::new());
    let after = app.changes().await;
    assert_eq!(after[..6], before[..6]);
    let numberless = |change: &Change| Change { number: 0, ..change.clone() };
    assert_eq!(
        after[6..].iter().map(numberless).collect::<Vec<_>>(),
        before[6..].iter().map(numberless).collect::<Vec<_>>()
    );
}
