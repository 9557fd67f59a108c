//! Events: pages and streams of games and of players, resumed everywhere, made for their viewers.

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tavola::store::Store;
use tavola::workers::feed;

use crate::database::BACKGROUND;
use crate::follow::{Folded, Form};
use crate::helpers::{Player, TestApp};
use crate::play::{Chance, Table, short};

const RULESETS: [(&str, usize); 4] = [("leonardo", 3), ("quintis-fontis", 2), ("leopard", 2), ("siggil", 2)];

/// Everybody who looks: the players, a stranger, nobody.
async fn viewers(app: &TestApp, table: &Table) -> Vec<Option<Player>> {
    let stranger = app.players(1).await.remove(0);
    table.players.iter().cloned().map(Some).chain([Some(stranger), None]).collect()
}

fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| event["id"].as_str().expect("an event has an id").to_owned()).collect()
}

#[tokio::test]
async fn folded_events_are_the_game_for_every_viewer_at_every_version() {
    let app = TestApp::new().await;
    for (slug, seats) in RULESETS {
        let table = app.table(slug, &short(slug), seats).await;
        let viewers = viewers(&app, &table).await;
        // What each was answered at each version.
        let mut seen: Vec<Vec<Value>> = vec![Vec::new(); viewers.len()];
        let mut chance = Chance(7);
        for _ in 0..15 {
            for (viewer, seen) in viewers.iter().zip(&mut seen) {
                seen.push(app.game(&table.id, viewer.as_ref()).await);
            }
            if app.to_move(&table).await.is_none() {
                break;
            }
            app.play_one(&table, &mut chance).await;
        }
        for player in &table.players {
            app.post(table.path("/resignation")).by(player).send().await;
        }
        for (viewer, seen) in viewers.iter().zip(&mut seen) {
            seen.push(app.game(&table.id, viewer.as_ref()).await);
            assert_eq!(seen.last().unwrap()["status"], "finished");
            let mut folded = Folded::default();
            let mut compared = 0;
            let events = app.events(&table.id, viewer.as_ref(), 7).await;
            for (place, event) in events.iter().enumerate() {
                folded.take(event);
                let last_of_version = events.get(place + 1).is_none_or(|next| next["version"] != event["version"]);
                let answered = seen.iter().find(|game| game["version"] == event["version"]);
                if let Some(answered) = answered.filter(|_| last_of_version) {
                    assert_eq!(&folded.game(&table.id), answered, "{slug}, version {}", event["version"]);
                    compared += 1;
                }
            }
            assert!(compared >= seen.len() - 1, "{slug}: {compared} of {}", seen.len());
        }
    }
}

#[tokio::test]
async fn a_stream_cut_after_any_event_goes_on_with_the_next() {
    let app = TestApp::new().await;
    let table = app.table("leonardo", &json!({"turn_limit": 9}), 3).await;
    let (one, two) = (&table.players[0], &table.players[1]);
    app.play_random(&table, 3, 4).await;
    app.post(table.path("/resignation")).by(two).expect(200).await;
    while tavola::workers::clocks::run_once(&app.store).await.unwrap() > 0 || {
        let game = app.game(&table.id, None).await;
        match game["to_move"]["seat"].as_u64() {
            Some(seat) if seat != 1 => {
                let mover = &table.players[seat as usize];
                let moves = app.legal_moves(&table.id, mover).await;
                app.play(&table, mover, &moves[0]).await;
                true
            }
            _ => game["status"] == "active",
        }
    } {}
    let whole = app.events(&table.id, Some(one), 100).await;
    let all = ids(&whole);
    assert!(whole.len() > 12 && all.len() == all.iter().collect::<std::collections::BTreeSet<_>>().len());
    assert_eq!(whole.last().unwrap()["type"], "game_finished");
    for (place, id) in all.iter().enumerate() {
        let rest = &whole[place + 1..];
        let mut stream = app.follow(&table.id, Some(one), Some(id), Form::BOTH[place % 2]).await;
        assert_eq!(stream.some(rest.len()).await, rest, "after {id}");
        let page = app.get(table.path(&format!("/events?limit=100&after={id}"))).by(one).ok(200).await;
        assert_eq!(page["items"].as_array().unwrap(), rest, "after {id}");
    }
}

#[tokio::test]
async fn pages_of_any_size_hold_the_whole_log() {
    let app = TestApp::new().await;
    let table = app.table("leonardo", &json!({"turn_limit": 4}), 2).await;
    app.play_to_the_end(&table, 1).await;
    let whole = app.events(&table.id, None, 100).await;
    // The last two are of one version: a page can end between them.
    let [.., last_move, end] = whole.as_slice() else { panic!("{whole:?}") };
    assert_eq!((&last_move["type"], &end["type"]), (&json!("move_played"), &json!("game_finished")));
    assert_eq!(last_move["version"], end["version"]);
    for limit in 1..=whole.len() {
        assert_eq!(ids(&app.events(&table.id, None, limit).await), ids(&whole), "{limit} a page");
    }
}

#[tokio::test]
async fn a_stream_begins_with_a_snapshot_and_tells_of_everything_from_then_on() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let open = app.create(&ada, &json!({"ruleset": "leopard", "options": {"hands": 1}})).await;
    let id = open["id"].as_str().unwrap();
    let mut streams = Vec::new();
    for form in Form::BOTH {
        for viewer in [Some(&ada), Some(&bo), None] {
            let mut stream = app.follow(id, viewer, None, form).await;
            let snapshot = stream.next().await.unwrap();
            assert_eq!((&snapshot["type"], &snapshot["game"]), (&json!("snapshot"), &app.game(id, viewer).await));
            let mut folded = Folded::default();
            folded.take(&snapshot);
            streams.push((viewer, stream, folded));
        }
    }
    app.join(id, &bo).await;
    let table = Table { id: id.to_owned(), ruleset: "leopard".parse_slug(), players: vec![ada.clone(), bo.clone()] };
    app.play_random(&table, 5, 6).await;
    app.post(table.path("/resignation")).by(&ada).expect(200).await;
    for (viewer, stream, folded) in &mut streams {
        let events = stream.until("game_finished").await;
        events.iter().for_each(|event| folded.take(event));
        assert_eq!(folded.game(id), app.game(id, *viewer).await);
        let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let moves = ["move_played"; 6];
        let expected = [&["player_joined", "game_started"][..], &moves, &["player_resigned", "game_finished"]].concat();
        assert_eq!(kinds, expected);
    }
}

/// A slug that is known to be one.
trait ParseSlug {
    fn parse_slug(&self) -> tavola::rulesets::registry::RulesetId;
}

impl ParseSlug for str {
    fn parse_slug(&self) -> tavola::rulesets::registry::RulesetId {
        tavola::rulesets::registry::RulesetId::from_slug(self).expect("a ruleset")
    }
}

#[tokio::test]
async fn a_place_that_the_log_does_not_have_gets_one_resync_and_a_snapshot() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let one = &table.players[0];
    for place in ["99", "900.1", "x", "1.", ".1", "-1", "1.0.0", "99999999999", "1.99999999", "+1"] {
        for form in Form::BOTH {
            let mut stream = app.follow(&table.id, Some(one), Some(place), form).await;
            let kinds: Vec<Value> = stream.some(2).await.iter().map(|event| event["type"].clone()).collect();
            assert_eq!(kinds, ["resync", "snapshot"], "{place}");
            app.post(table.path("/abort")).by(one).expect(200).await;
            assert_eq!(stream.next().await.unwrap()["type"], "abort_requested", "{place}");
            app.call("DELETE", table.path("/abort")).by(one).expect(200).await;
        }
    }
    app.get(table.path("/events?after=99")).by(one).refused(400, "invalid-parameter").await;
    app.get(table.path("/events?after=x")).by(one).refused(400, "invalid-parameter").await;
}

#[tokio::test]
async fn whoever_may_not_read_any_more_reads_nothing_more() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let (one, two) = (&table.players[0], &table.players[1]);
    let refused = app.get(table.path("/events")).token("nonsense").header("accept", "text/event-stream");
    refused.refused(401, "unauthenticated").await;
    app.get("/v1/me/events")
        .token("nonsense")
        .header("accept", "text/event-stream")
        .refused(401, "unauthenticated")
        .await;
    let nowhere = format!("/v1/games/{}/events", uuid::Uuid::nil());
    app.get(nowhere).by(one).header("accept", "text/event-stream").refused(404, "not-found").await;

    let mut of_game = app.follow(&table.id, Some(one), None, Form::ServerSent).await;
    let mut of_player = app.get("/v1/me/events").by(one).stream(Form::Lines).await;
    assert!(of_game.next().await.is_some() && of_player.next().await.is_some());
    let token = app.get("/v1/me/token").by(one).ok(200).await["id"].as_str().unwrap().to_owned();
    app.call("DELETE", format!("/v1/me/tokens/{token}")).by(one).expect(204).await;
    app.post(table.path("/abort")).by(two).expect(200).await;
    assert!(of_game.next().await.is_none() && of_player.next().await.is_none());

    // A code that is revoked opens the stream no longer.
    let [host, guest] = app.players(2).await.try_into().unwrap();
    let private = app.create(&host, &json!({"ruleset": "leopard", "visibility": "private"})).await;
    let (id, code) = (private["id"].as_str().unwrap(), private["invite"].as_str().unwrap());
    let path = format!("/v1/games/{id}/events?invite={code}");
    let mut stream = app.get(path).by(&guest).stream(Form::Lines).await;
    assert!(stream.next().await.unwrap()["game"]["invite"].is_null());
    app.call("DELETE", format!("/v1/games/{id}/invite")).by(&host).expect(200).await;
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_player_follows_all_their_games_in_one_stream() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let first = app.table_of("leopard", &json!({"hands": 1}), vec![ada.clone(), bo.clone()]).await;
    let mut stream = app.get("/v1/me/events").by(&ada).stream(Form::ServerSent).await;
    let mut folded = Folded::default();
    let snapshot = stream.next().await.unwrap();
    folded.take(&snapshot);
    assert_eq!(folded.game(&first.id)["status"], "active");
    let mut events = Vec::new();
    let second = app.table_of("leonardo", &json!({}), vec![cy.clone(), ada.clone(), bo.clone()]).await;
    events.extend(stream.until("game_started").await);
    app.play_random(&first, 2, 3).await;
    app.play_random(&second, 2, 3).await;
    app.post(first.path("/resignation")).by(&bo).expect(200).await;
    events.extend(stream.until("game_finished").await);
    // A game of others is nothing to Ada.
    let other = app.table_of("leopard", &json!({}), vec![bo.clone(), cy.clone()]).await;
    events.iter().for_each(|event| folded.take(event));
    assert!(events.iter().all(|event| event["game_id"] != other.id.as_str()));
    assert_eq!(ids(&events).iter().collect::<std::collections::BTreeSet<_>>().len(), events.len());
    let list = app.get("/v1/games?player=me").by(&ada).ok(200).await;
    for game in list["items"].as_array().unwrap() {
        assert_eq!(&folded.game(game["id"].as_str().unwrap()), game);
    }
    for event in events.iter().filter(|event| event["type"] == "move_played") {
        let path = format!("/v1/games/{}/moves/{}", event["game_id"].as_str().unwrap(), event["move"]["number"]);
        let entry = app.get(path).by(&ada).ok(200).await;
        let over = app.game(event["game_id"].as_str().unwrap(), None).await["status"] == "finished";
        assert!(over || entry == event["move"]);
    }

    // Cut anywhere, it goes on with the next.
    let all: Vec<Value> = std::iter::once(snapshot).chain(events).collect();
    for (place, id) in ids(&all).iter().enumerate() {
        let rest = &all[place + 1..];
        let call = app.get("/v1/me/events").by(&ada).header("last-event-id", id.as_str());
        let mut again = call.stream(Form::BOTH[place % 2]).await;
        let read = again.some(rest.len()).await;
        let known = |events: &[Value]| -> Vec<Value> {
            events
                .iter()
                .map(|event| json!([event["game_id"], event["version"], event["type"], event["changes"]]))
                .collect()
        };
        assert_eq!(known(&read), known(rest), "after {id}");
        for limit in [1, 3, 100] {
            let (mut after, mut paged) = (id.clone(), Vec::new());
            loop {
                let page = app.get(format!("/v1/me/events?limit={limit}&after={after}")).by(&ada).ok(200).await;
                let items = page["items"].as_array().unwrap().clone();
                let Some(last) = items.last() else { break };
                after = last["id"].as_str().unwrap().to_owned();
                paged.extend(items);
            }
            assert_eq!(known(&paged), known(rest), "after {id} by {limit}");
        }
    }

    // An invitation that is withdrawn is told of, but nothing of the game any more.
    let private = app.create(&cy, &json!({"ruleset": "leopard", "visibility": "private"})).await;
    let private = format!("/v1/games/{}", private["id"].as_str().unwrap());
    app.post(format!("{private}/invitations")).by(&cy).json(&json!({"player": ada.id})).expect(201).await;
    app.call("DELETE", format!("{private}/invitations/{}", ada.id)).by(&cy).expect(200).await;
    let events = stream.until("invitation_withdrawn").await;
    assert!(events.last().unwrap().get("changes").is_none(), "the game is hers to know no more");
}

#[tokio::test]
async fn a_place_of_another_player_or_too_old_or_foreign_gets_a_resync() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let (one, two) = (&table.players[0], &table.players[1]);
    let cursor = |player: &Player| {
        let call = app.get("/v1/me/events").by(player);
        async move { call.ok(200).await["items"][0]["id"].as_str().unwrap().to_owned() }
    };
    let own = cursor(one).await;
    let words: Vec<&str> = own.split('.').collect();
    let with = |place: usize, word: &str| {
        let mut words = words.clone();
        words[place] = word;
        words.join(".")
    };
    let eight_days_ago = (words[1].parse::<i64>().unwrap() - 8 * 86_400_000_000).to_string();
    let places = [
        cursor(two).await,
        with(1, &eight_days_ago),
        with(1, "99999999999999999999"),
        with(2, "999999999:999999999:"),
        with(2, "5:1:"),
        with(2, "1:5:9"),
        with(2, ""),
        with(2, ":::"),
        format!("{own}.1:1:.0.x.0.0"),
        format!("{own}.{}", "1".repeat(200)),
        "x".into(),
        "..".into(),
    ];
    for place in places {
        for form in Form::BOTH {
            let call = app.get("/v1/me/events").by(one).header("last-event-id", place.as_str());
            let mut stream = call.stream(form).await;
            let kinds: Vec<Value> = stream.some(2).await.iter().map(|event| event["type"].clone()).collect();
            assert_eq!(kinds, ["resync", "snapshot"], "{place}");
        }
        let page = app.get(format!("/v1/me/events?after={place}")).by(one).ok(200).await;
        let kinds: Vec<&Value> = page["items"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, ["resync", "snapshot"], "{place}");
    }
    let mut stream = app.get("/v1/me/events").by(one).header("last-event-id", own.as_str()).stream(Form::Lines).await;
    app.post(table.path("/abort")).by(two).expect(200).await;
    assert_eq!(stream.next().await.unwrap()["type"], "abort_requested", "its own place is good");
}

#[tokio::test]
async fn what_commits_late_is_not_lost_and_nothing_comes_twice() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let slow = app.table_of("leopard", &json!({}), vec![ada.clone(), bo.clone()]).await;
    let fast = app.table_of("leopard", &json!({}), vec![bo.clone(), ada.clone()]).await;
    let start = app.get("/v1/me/events").by(&ada).ok(200).await["items"][0]["id"].as_str().unwrap().to_owned();
    // A change of one game that has begun, and so has an older number, but commits after those of the other game.
    let mut late = PgConnection::connect_with(app.database()).await.unwrap();
    let mut transaction = late.begin().await.unwrap();
    let id = uuid::Uuid::parse_str(&slow.id).unwrap();
    sqlx::query("update positions set version = version + 1, xid = pg_current_xact_id() where game_id = $1")
        .bind(id)
        .execute(&mut *transaction)
        .await
        .unwrap();
    sqlx::query(
        "insert into game_events (game_id, version, index, type, facts, at)
         select game_id, version + 1, 0, 'abort_withdrawn', facts, now()
         from game_events where game_id = $1 order by version desc, index desc limit 1",
    )
    .bind(id)
    .execute(&mut *transaction)
    .await
    .unwrap();
    app.play_random(&fast, 1, 2).await;
    let read = |after: String| {
        let call = app.get(format!("/v1/me/events?after={after}")).by(&ada);
        async move { call.ok(200).await["items"].as_array().unwrap().clone() }
    };
    let before = read(start).await;
    assert_eq!(before.iter().filter(|event| event["type"] == "move_played").count(), 2);
    assert!(before.iter().all(|event| event["game_id"] == fast.id.as_str()));
    let middle = before[0]["id"].as_str().unwrap().to_owned();
    let end = before[1]["id"].as_str().unwrap().to_owned();
    assert!(read(end.clone()).await.is_empty());
    transaction.commit().await.unwrap();
    let after = read(end).await;
    let told: Vec<(&Value, &Value)> = after.iter().map(|event| (&event["game_id"], &event["type"])).collect();
    assert_eq!(told, [(&json!(slow.id), &json!("abort_withdrawn"))]);
    // From the middle of what was read together first the rest of that, then what came late.
    let rest = read(middle).await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["move"]["number"], 2);
    let last = read(rest[0]["id"].as_str().unwrap().to_owned()).await;
    assert_eq!(last.len(), 1);
    assert_eq!(last[0]["type"], "abort_withdrawn");
}

#[tokio::test]
async fn streams_at_one_server_tell_of_what_happens_at_another() {
    let here = TestApp::new().await;
    let there = here.another().await;
    for app in [&here, &there] {
        let store = app.store.clone();
        BACKGROUND.spawn(async move { feed::run(&store).await });
    }
    let table = here.table("leopard", &json!({}), 2).await;
    let (one, two) = (&table.players[0], &table.players[1]);
    let mut of_game = there.follow(&table.id, Some(two), None, Form::ServerSent).await;
    let mut of_player = there.get("/v1/me/events").by(two).stream(Form::Lines).await;
    assert!(of_game.next().await.is_some() && of_player.next().await.is_some());
    let mut chance = Chance(4);
    for number in 1..=5 {
        here.play_one(&table, &mut chance).await;
        for stream in [&mut of_game, &mut of_player] {
            let event = stream.next().await.unwrap();
            assert_eq!((&event["type"], &event["move"]["number"]), (&json!("move_played"), &json!(number)));
        }
    }
    // What ends at one server goes on at the other.
    let last = of_game_id(&there, &table, one).await;
    let mut resumed = here.follow(&table.id, Some(one), Some(&last), Form::Lines).await;
    there.post(table.path("/resignation")).by(one).expect(200).await;
    assert_eq!(resumed.next().await.unwrap()["type"], "player_resigned");
    assert_eq!(resumed.next().await.unwrap()["type"], "game_finished");
}

async fn of_game_id(app: &TestApp, table: &Table, viewer: &Player) -> String {
    let events = app.events(&table.id, Some(viewer), 100).await;
    events.last().unwrap()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams() {
    let app = TestApp::new().await;
    let table = app.table("leopard", &json!({}), 2).await;
    let mut stream = app.follow(&table.id, None, None, Form::ServerSent).await;
    assert!(stream.next().await.is_some());
    app.store.close_streams();
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn every_turn_is_queued_for_webhooks_once() {
    let app = TestApp::new().await;
    for (slug, seats) in RULESETS {
        let table = app.table(slug, &short(slug), seats).await;
        // The webhooks come after the start: only what follows is told.
        for player in &table.players {
            sqlx::query("insert into webhooks (id, player_id, url, secret) values (gen_random_uuid(), $1, $2, '')")
                .bind(uuid::Uuid::parse_str(&player.id).unwrap())
                .bind(format!("https://example.com/{}", player.id))
                .execute(app.sql())
                .await
                .unwrap();
        }
        let mut at = app.to_move(&table).await;
        let mut turns = Vec::new();
        let mut chance = Chance(11);
        while let Some(seat) = at {
            let answer = app.play_one(&table, &mut chance).await.json();
            at = crate::play::seat_to_move(&answer["game"]);
            if let Some(next) = at.filter(|next| *next != seat) {
                turns.push((next as i16, answer["game"]["version"].as_i64().unwrap() as i32));
            }
        }
        let id = uuid::Uuid::parse_str(&table.id).unwrap();
        let rows: Vec<(i16, i32, uuid::Uuid)> = sqlx::query_as(
            "select d.seat, d.version, w.player_id from webhook_deliveries d join webhooks w on w.id = d.webhook_id
             where d.game_id = $1 and d.type = 'your_turn' order by d.version",
        )
        .bind(id)
        .fetch_all(app.sql())
        .await
        .unwrap();
        assert_eq!(rows.iter().map(|(seat, version, _)| (*seat, *version)).collect::<Vec<_>>(), turns, "{slug}");
        assert!(rows.iter().all(|(seat, _, player)| table.players[*seat as usize].id == player.to_string()));
        let ended: i64 = sqlx::query_scalar(
            "select count(*) from webhook_deliveries where game_id = $1 and type = 'game_finished' and deadline is null",
        )
        .bind(id)
        .fetch_one(app.sql())
        .await
        .unwrap();
        assert_eq!(ended as usize, seats, "{slug}");
    }
}

#[tokio::test]
async fn many_readers_and_a_store_that_listens_anew_miss_nothing() {
    let app = TestApp::new().await;
    let other: Store = app.store.clone();
    let table = app.table("siggil", &json!({}), 2).await;
    let mut streams = Vec::new();
    for place in 0..30 {
        let viewer = [Some(&table.players[0]), Some(&table.players[1]), None][place % 3];
        let mut stream = app.follow(&table.id, viewer, None, Form::BOTH[place % 2]).await;
        stream.next().await.unwrap();
        streams.push(stream);
    }
    other.wake_all();
    app.play_random(&table, 9, 5).await;
    other.wake_all();
    for stream in &mut streams {
        let numbers: Vec<Value> = stream.some(5).await.iter().map(|event| event["move"]["number"].clone()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
}
