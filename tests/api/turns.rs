//! What waits for a player: the nearest deadline first, in pages that together are the whole.

use serde_json::{Value, json};

use crate::helpers::{Player, TestApp};
use crate::play::{Chance, Table, micros, ruleset};

/// Whose turn it is, read in pages of so many.
async fn turns(app: &TestApp, player: &Player, limit: usize) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(format!("/v1/me/turns?limit={limit}{cursor}")).by(player).ok(200).await;
        let part = page["items"].as_array().unwrap();
        assert!(part.len() <= limit && (page["next_cursor"].is_null() || part.len() == limit));
        items.extend(part.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

fn ids(games: &[Value]) -> Vec<String> {
    games.iter().map(|game| game["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_hundred_and_twenty_turns_are_in_order_and_complete_in_pages_of_any_size() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let mut games = Vec::new();
    for number in 0..120_u32 {
        let mut wanted = json!({"ruleset": "siggil", "seats": 1});
        if number % 4 != 0 {
            wanted["clock"] = json!({"kind": "per_move", "seconds": 86_400 + number % 7});
        }
        let game = app.create(&ada, &wanted).await;
        games.push(game["id"].as_str().unwrap().to_owned());
        // What waits for others is not hers.
        if number < 3 {
            app.create(&bo, &wanted).await;
        }
    }
    // Many at the very same instant.
    let sql = "update positions set due_at = date_trunc('hour', now()) + interval '1 day'
                   + extract(microseconds from due_at)::integer % 9 * interval '1 microsecond' where due_at is not null";
    sqlx::query(sql).execute(app.sql()).await.unwrap();
    let mut expected = Vec::new();
    for id in games {
        let deadline = app.game(&id, None).await["to_move"]["deadline"].clone();
        expected.push((if deadline.is_null() { i64::MAX } else { micros(&deadline) }, id));
    }
    expected.sort();
    assert!(expected[..90].windows(2).filter(|two| two[0].0 == two[1].0).count() > 70, "ties");
    let expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
    for limit in [1, 2, 3, 7, 60, 100] {
        assert_eq!(ids(&turns(&app, &ada, limit).await), expected, "by {limit}");
    }
    assert_eq!(turns(&app, &bo, 2).await.len(), 3);
    // A list shows each as the game does.
    let first = &turns(&app, &ada, 20).await[0];
    let game = app.game(&expected[0], Some(&ada)).await;
    for (member, value) in first.as_object().unwrap() {
        assert_eq!(&game[member], value, "{member}");
    }
    assert!(first.get("state").is_none());
    // What is over waits for nobody, and a page goes on where it was also if the game before it has gone.
    let page = app.get("/v1/me/turns?limit=2").by(&ada).ok(200).await;
    for id in &expected[..2] {
        app.post(format!("/v1/games/{id}/resignation")).by(&ada).expect(200).await;
    }
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = app.get(format!("/v1/me/turns?limit=100&cursor={cursor}")).by(&ada).ok(200).await;
    assert_eq!(ids(next["items"].as_array().unwrap()), expected[2..102]);
    assert_eq!(turns(&app, &ada, 100).await.len(), 118);
}

#[tokio::test]
async fn a_turn_is_there_exactly_while_it_is_theirs_to_move() {
    let app = TestApp::new().await;
    let players = app.players(3).await;
    let open = app.create(&players[0], &json!({"ruleset": "leonardo", "seats": 3})).await;
    let table =
        Table { id: open["id"].as_str().unwrap().to_owned(), ruleset: ruleset("leonardo"), players: players.clone() };
    let waits = || async {
        let mut waits = Vec::new();
        for player in &players {
            let turns = turns(&app, player, 1).await;
            assert!(turns.len() <= 1);
            let listed = app.get(format!("/v1/games?to_move={}", player.id)).by(player).ok(200).await;
            assert_eq!(ids(listed["items"].as_array().unwrap()), ids(&turns));
            waits.push(turns.first().is_some_and(|game| game["id"] == table.id.as_str()));
        }
        waits
    };
    assert_eq!(waits().await, [false; 3], "nothing has begun");
    for player in &players[1..] {
        app.join(&table.id, player).await;
    }
    let mut chance = Chance(3);
    for _ in 0..6 {
        let mover = app.to_move(&table).await;
        assert_eq!(waits().await, [0, 1, 2].map(|seat| mover == Some(seat)));
        app.play_one(&table, &mut chance).await;
    }
    let mover = app.to_move(&table).await.unwrap();
    app.post(table.path("/resignation")).by(&players[mover]).expect(200).await;
    assert_eq!(waits().await, [false; 3], "a bot is to move");
    app.attend().await;
    let mover = app.to_move(&table).await;
    assert_eq!(waits().await, [0, 1, 2].map(|seat| mover == Some(seat)));
    for player in &players {
        app.post(table.path("/abort")).by(player).send().await;
    }
    assert_eq!(waits().await, [false; 3]);
}

#[tokio::test]
async fn a_cursor_that_is_none_is_refused() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    for _ in 0..3 {
        app.create(&ada, &json!({"ruleset": "siggil", "seats": 1})).await;
    }
    app.get("/v1/me/turns").refused(401, "unauthenticated").await;
    let good = app.get("/v1/me/turns?limit=1").by(&ada).ok(200).await["next_cursor"].as_str().unwrap().to_owned();
    let before_1970 = format!("{}{}", &good[..32], "f".repeat(16));
    let after_2200 = format!("{}{}", &good[..32], hex::encode(7_258_118_400_000_000_i64.to_be_bytes()));
    let last = format!("{}{}", &good[..32], hex::encode((i64::MAX - 1).to_be_bytes()));
    let wrong = [
        String::new(),
        "x".into(),
        "00".into(),
        good[1..].into(),
        format!("{good}0"),
        format!("{good}00"),
        good.replace(&good[..1], "g"),
        before_1970,
        after_2200,
        last,
        "%00".into(),
    ];
    for cursor in wrong {
        let problem = app.get(format!("/v1/me/turns?cursor={cursor}")).by(&ada).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], "cursor", "{cursor}");
    }
    for query in ["limit=0", "limit=101", "limit=-1", "limit=x", "status=active", "player=me"] {
        app.get(format!("/v1/me/turns?{query}")).by(&ada).refused(400, "invalid-parameter").await;
    }
    // A place in a list is nothing secret: of another's turns there is nothing to see with it.
    let page = app.get(format!("/v1/me/turns?cursor={good}")).by(&bo).ok(200).await;
    assert_eq!(page["items"], json!([]));
    assert_eq!(
        app.get(format!("/v1/me/turns?cursor={good}")).by(&ada).ok(200).await["items"].as_array().unwrap().len(),
        2
    );
}
