//! The log is the truth: what it says is what the game is, also when the snapshot is lost.

use serde_json::json;
use tavola::rulesets::Viewer;
use tavola::rulesets::random::{Random, commitment, game_seed};
use tavola::rulesets::registry::{AnyState, RulesetId};

use crate::helpers::TestApp;
use crate::play::{Table, short};

// Games of every ruleset and number of seats are replayed where they are watched, in `secrecy`.

/// Replays a game that is over from nothing but what everybody can read over HTTP: the seed that was revealed, the
/// entropies, the options and the log. All must fit: commitment, events, state, outcome.
pub async fn assert_replays_from_its_seed(app: &TestApp, table: &Table) {
    let game = app.game(&table.id, None).await;
    let log = app.log(table, None).await;
    let seed = game["server_seed"].as_str().expect("the seed of a game that is over is revealed");
    let seed: [u8; 32] = hex::decode(seed).unwrap().try_into().unwrap();
    assert_eq!(hex::encode(commitment(&seed)), game["commitment"]);
    let seats = game["seats"].as_array().unwrap();
    let entropies = seats.iter().map(|seat| seat["entropy"].as_str().unwrap());
    let slug = game["ruleset"].as_str().unwrap();
    let random = Random::new(game_seed(&seed, game["id"].as_str().unwrap(), slug, entropies));
    let options = table.ruleset.options(game["options"].as_object().unwrap(), seats.len() as u8).unwrap();
    let mut state = options.deal(seats.len() as u8, &random);
    for entry in &log {
        let mv = table.ruleset.read_move(entry["move"].to_string().as_bytes()).unwrap();
        let seat = entry["seat"].as_u64().unwrap() as u8;
        let events = state.apply(seat, &mv, &random).unwrap_or_else(|error| panic!("{error}: {entry}"));
        assert_eq!(entry["events"], serde_json::to_value(&events).unwrap());
    }
    assert_eq!(game["state"], serde_json::to_value(state.view(Viewer::Everything)).unwrap());
    assert_eq!(game["moves_count"], log.len());
    if game["outcome"]["reason"] != "resignation" {
        assert_eq!(game["outcome"], serde_json::to_value(state.outcome()).unwrap());
    }
    assert_eq!(stored(app, table).await, state, "the snapshot is what the log says");
}

/// The full state as the database holds it.
pub async fn stored(app: &TestApp, table: &Table) -> AnyState {
    let id = uuid::Uuid::parse_str(&table.id).unwrap();
    let snapshot: Vec<u8> = sqlx::query_scalar("select snapshot from positions where game_id = $1")
        .bind(id)
        .fetch_one(app.sql())
        .await
        .unwrap();
    table.ruleset.read_snapshot(&snapshot).expect("a snapshot can be read")
}

#[tokio::test]
async fn games_of_unusual_options_replay_from_their_seeds() {
    let app = TestApp::new().await;
    let games = [
        ("quintis-fontis", json!({"diagonals": true, "turn_limit": 15}), 2),
        ("siggil", json!({"layout": "river", "difficulty": "hard"}), 1),
        ("leonardo", json!({"turn_limit": 1}), 4),
    ];
    for (slug, options, seats) in games {
        let table = app.table(slug, &options, seats).await;
        app.play_to_the_end(&table, 11).await;
        assert_replays_from_its_seed(&app, &table).await;
    }
}

#[tokio::test]
async fn a_damaged_snapshot_is_rebuilt_from_the_log() {
    let app = TestApp::new().await;
    let sql = app.sql();
    for ruleset in RulesetId::ALL.iter().filter(|ruleset| ruleset.meta().seats.contains(&2)) {
        let table = app.table(ruleset.meta().slug, &short(ruleset.meta().slug), 2).await;
        app.play_random(&table, 21, 5).await;
        let id = uuid::Uuid::parse_str(&table.id).unwrap();
        let whole = stored(&app, &table).await.snapshot();
        let seen = app.game(&table.id, Some(&table.players[0])).await;
        let other: Vec<u8> = [&[255], &whole[1..]].concat();
        for damaged in [vec![], vec![1], vec![0; 40], other, whole[..whole.len() / 2].to_vec(), vec![255; 300]] {
            sqlx::query("update positions set snapshot = $2 where game_id = $1")
                .bind(id)
                .bind(&damaged)
                .execute(sql)
                .await
                .unwrap();
            assert_eq!(app.game(&table.id, Some(&table.players[0])).await, seen);
        }
        // It can be played on, and the next move writes a whole one.
        app.play_one(&table, &mut crate::play::Chance(2)).await;
        assert_ne!(stored(&app, &table).await.snapshot(), whole);
        app.play_random(&table, 22, 3).await;
        app.post(table.path("/resignation")).by(&table.players[1]).expect(200).await;
        assert_replays_from_its_seed(&app, &table).await;
    }
}

#[tokio::test]
async fn a_log_that_is_damaged_too_is_a_fault_that_tells_nothing() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    app.play_random(&table, 1, 3).await;
    let sql = app.sql();
    sqlx::query("update positions set snapshot = ''").execute(sql).await.unwrap();
    sqlx::query("delete from moves where number = 2").execute(sql).await.unwrap();
    let reply = app.get(table.path("")).expecting_a_fault().expect(500).await;
    assert_eq!((&reply.json()["code"], &reply.json()["detail"]), (&json!("internal"), &json!("the server failed")));
    sqlx::query("update moves set move = '{}' where number = 1").execute(sql).await.unwrap();
    app.get(table.path("/moves")).expecting_a_fault().expect(500).await;
    app.get("/v1/games").expect(200).await;
}

#[tokio::test]
async fn what_was_acknowledged_is_there_for_another_server() {
    let app = TestApp::new().await;
    let table = app.table("siggil", &json!({}), 3).await;
    app.play_random(&table, 8, 9).await;
    let seen = app.game(&table.id, Some(&table.players[1])).await;
    let log = app.log(&table, Some(&table.players[1])).await;
    // Another store on the same database, as another process has it.
    let other = tavola::store::Store::open(app.database().clone(), 1);
    let id = uuid::Uuid::parse_str(&table.id).unwrap();
    let token = tavola::store::TokenHash::of(&table.players[1].token);
    let loaded =
        other.load_game(id, &tavola::store::Access::of(token), tavola::store::Scope::Read, None).await.unwrap();
    assert_eq!(loaded.game.version, seen["version"].as_u64().unwrap() as u32);
    let view =
        loaded.game.state.as_ref().unwrap().view(loaded.game.viewer(loaded.caller.map(|player| player.id)).unwrap());
    assert_eq!(serde_json::to_value(view).unwrap(), seen["state"]);
    assert_eq!(other.entries(&loaded.game, 0, 100).await.unwrap().len(), log.len());
    other.close().await;
}

#[tokio::test]
async fn the_log_is_plain_json_that_people_can_query() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({"hands": 1}), 2).await;
    app.play_random(&table, 1, 10).await;
    let typed =
        "select count(*) from moves where move->>'type' in ('lay', 'discard') and json_array_length(events) > 0";
    assert_eq!(app.count(typed).await, 10);
}
