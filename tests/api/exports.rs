//! Exports: all records of a filter in one answer, whole or known to be cut off; the list as a table.

use std::io::Read;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tavola::game::Record;
use tavola::rulesets::registry::RulesetId;

use crate::helpers::{Player, TestApp};
use crate::play::{Table, short};

/// The records of an export, and its trailer, which must fit them.
fn checked(bytes: &[u8]) -> (Vec<Value>, Value) {
    let text = std::str::from_utf8(bytes).expect("an export is UTF-8");
    assert!(text.ends_with('\n'), "the last line is whole");
    let mut lines: Vec<&str> = text.lines().collect();
    let trailer = lines.pop().expect("an export has a trailer");
    let before = &text.as_bytes()[..text.len() - trailer.len() - 1];
    let trailer: Value = serde_json::from_str(trailer).unwrap();
    assert_eq!(trailer["format"], "tavola-export-trailer/1");
    assert_eq!(trailer["count"], lines.len());
    assert_eq!(trailer["sha256"], hex::encode(Sha256::digest(before)));
    let records = lines.iter().map(|line| {
        Record::read(line.as_bytes()).unwrap().verify().unwrap();
        serde_json::from_str(line).unwrap()
    });
    (records.collect(), trailer)
}

async fn export(app: &TestApp, caller: Option<&Player>, query: &str) -> (Vec<Value>, Value) {
    let reply = app.get(format!("/v1/games/export?{query}")).by_some(caller).expect(200).await;
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    checked(&reply.bytes)
}

fn ids(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["game_id"].as_str().unwrap()).collect()
}

/// So many finished games of two players, of each ruleset in turn, in the order in which they ended.
async fn finished(app: &TestApp, players: &[Player], count: usize) -> Vec<Table> {
    let mut tables = Vec::new();
    for number in 0..count {
        let slug = RulesetId::ALL[number % RulesetId::ALL.len()].meta().slug;
        let table = app.table_of(slug, &short(slug), players.to_vec()).await;
        app.post(table.path("/resignation")).by(&table.players[number % 2]).expect(200).await;
        tables.push(table);
    }
    tables
}

#[tokio::test]
async fn an_export_is_every_record_and_a_trailer() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let mut tables = finished(&app, &players, 60).await;
    for slug in RulesetId::ALL.iter().map(|id| id.meta().slug) {
        let table = app.table_of(slug, &short(slug), players.clone()).await;
        app.play_to_the_end(&table, 3).await;
        tables.push(table);
    }
    // What has no record is not in it.
    app.table_of("leonardo", &json!({}), players.clone()).await;
    app.create(&players[0], &json!({"ruleset": "leopard"})).await;
    let (records, trailer) = export(&app, None, "").await;
    assert_eq!(
        ids(&records),
        tables.iter().map(|table| table.id.as_str()).collect::<Vec<_>>(),
        "in the order of their ends"
    );
    for (record, table) in records.iter().zip(&tables).rev().take(6) {
        assert_eq!(*record, app.get(table.path("/record")).ok(200).await);
    }
    // Filters and orders are those of the list.
    let queries = [
        "ruleset=siggil",
        "sort=-created&end_reason=resignation",
        "sort=-last_move",
        "sort=last_move&moves_min=1",
        "option.hands=1",
        &format!("player={}&result=won&sort=-finished", players[1].id),
        "rated=true",
    ];
    for query in queries {
        let (records, _) = export(&app, None, query).await;
        let query = if query.contains("sort=") { query.to_owned() } else { format!("{query}&sort=finished") };
        let mut expected: Vec<String> = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = app.get(format!("/v1/games?{query}&status=finished&limit=100&fields=id{cursor}")).ok(200).await;
            expected
                .extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(ids(&records), expected, "{query}");
    }
    // Later there is only what ended since.
    let cursor = trailer["cursor"].as_str().unwrap();
    let (none, again) = export(&app, None, &format!("cursor={cursor}")).await;
    assert!(none.is_empty());
    assert_eq!(again["cursor"], trailer["cursor"]);
    let more = finished(&app, &players, 2).await;
    let (records, _) = export(&app, None, &format!("cursor={cursor}")).await;
    assert_eq!(ids(&records), [more[0].id.as_str(), &more[1].id]);
}

#[tokio::test]
async fn an_export_of_nothing_is_whole_too() {
    let app = TestApp::new().await;
    let (records, trailer) = export(&app, None, "").await;
    assert!(records.is_empty());
    assert_eq!(trailer["cursor"], Value::Null);
    assert_eq!(trailer["sha256"], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[tokio::test]
async fn an_export_that_was_cut_off_is_known_and_resumed() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    finished(&app, &players, 130).await;
    for sort in ["finished", "-finished", "created", "-last_move"] {
        let whole = app.get(format!("/v1/games/export?sort={sort}")).expect(200).await.bytes;
        let (all, _) = checked(&whole);
        // The reader goes away in the middle.
        let mut answer = app.get(format!("/v1/games/export?sort={sort}")).open().await;
        let mut part = Vec::new();
        while part.len() < whole.len() / 3 {
            part.extend(answer.chunk().await.unwrap().expect("there is more"));
        }
        drop(answer);
        part.truncate(whole.len() / 3);
        let text = String::from_utf8(part).unwrap();
        assert!(!text.contains("tavola-export-trailer/1"), "what is cut off has no trailer");
        // The last line may be half a one.
        let whole_lines = &text[..text.rfind('\n').unwrap() + 1];
        let had: Vec<Value> = whole_lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(had.len() > 10 && had.len() < all.len() - 10);
        let last = had.last().unwrap()["game_id"].as_str().unwrap();
        let (rest, _) = export(&app, None, &format!("sort={sort}&after={last}")).await;
        assert_eq!([had, rest].concat(), all, "{sort}");
    }
}

#[tokio::test]
async fn an_export_breaks_off_where_the_server_fails() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let tables = finished(&app, &players, 60).await;
    // One of the second batch cannot be read.
    sqlx::query("update games set options = '7' where id = $1::uuid")
        .bind(&tables[55].id)
        .execute(app.sql())
        .await
        .unwrap();
    let answer = app.get("/v1/games/export").open().await;
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err(), "the answer has no end");
    // What fails at the beginning is refused.
    app.get(format!("/v1/games/export?after={}", tables[54].id)).expecting_a_fault().expect(500).await;
}

#[tokio::test]
async fn an_export_is_compressed_on_request() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    finished(&app, &players, 5).await;
    let plain = app.get("/v1/games/export").expect(200).await;
    assert_eq!(plain.header("content-encoding"), None);
    let reply = app.get("/v1/games/export").header("accept-encoding", "gzip").expect(200).await;
    assert_eq!(reply.header("content-encoding"), Some("gzip"));
    let vary: Vec<&str> = reply.headers.get_all("vary").iter().map(|line| line.to_str().unwrap()).collect();
    assert!(vary.join(",").to_lowercase().contains("accept-encoding"), "{vary:?}");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(reply.bytes.as_slice()).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, plain.bytes);
    assert!(reply.bytes.len() < plain.bytes.len());
}

#[tokio::test]
async fn exports_have_what_their_reader_may_know() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let stranger = app.players(1).await.remove(0);
    let hidden =
        app.table_like(&json!({"ruleset": "leopard", "seats": 2, "visibility": "private"}), players.clone()).await;
    app.post(hidden.path("/resignation")).by(&players[0]).expect(200).await;
    let late =
        app.table_like(&json!({"ruleset": "siggil", "seats": 2, "spectators": "after_end"}), players.clone()).await;
    for caller in [None, Some(&stranger), Some(&players[0])] {
        let (records, _) = export(&app, caller, "").await;
        let known: Vec<&str> =
            if caller.is_some_and(|caller| caller.id == players[0].id) { vec![&hidden.id] } else { vec![] };
        assert_eq!(ids(&records), known);
        for query in ["format=csv", "format=csv&sort=-created", "format=csv&status=finished"] {
            let table = app.get(format!("/v1/games/export?{query}")).by_some(caller).expect(200).await.text();
            assert_eq!(table.contains(&hidden.id), !known.is_empty());
            assert!(!table.contains("seed"), "{table}");
        }
    }
    // A place that one may not know of is as good as none.
    for game in [hidden.id.as_str(), "01a22b42-3b82-7a5e-9983-d2a178674330"] {
        let path = format!("/v1/games/export?after={game}");
        let problem = app.get(path).by(&stranger).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0], json!({"pointer": "after", "detail": "there is no such game"}));
    }
    app.post(late.path("/resignation")).by(&players[1]).expect(200).await;
    let (records, _) = export(&app, None, "").await;
    assert_eq!(ids(&records), [late.id.as_str()], "what spectators see after the end");
}

#[tokio::test]
async fn the_list_is_exported_as_a_table() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    finished(&app, &players, 58).await;
    let ada = app.register("Ada, \"the\" 1st").await;
    let solo = app.create(&ada, &json!({"ruleset": "siggil", "seats": 1})).await;
    let open = app.create(&players[0], &json!({"ruleset": "leopard"})).await;
    let reply = app.get("/v1/games/export?format=csv&sort=created").expect(200).await;
    assert_eq!(reply.header("content-type"), Some("text/csv; charset=utf-8"));
    let mut table = csv::Reader::from_reader(reply.bytes.as_slice());
    let head = table.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 60);
    let list = app.get("/v1/games?sort=created&limit=100").ok(200).await;
    for (row, game) in rows.iter().zip(list["items"].as_array().unwrap()) {
        let cell = |name: &str| &row[head.iter().position(|column| column == name).unwrap()];
        let same = |name: &str, value: &Value| match value {
            Value::Null => assert_eq!(cell(name), "", "{name}"),
            Value::String(text) => assert_eq!(cell(name), text, "{name}"),
            other => assert_eq!(cell(name), other.to_string(), "{name}"),
        };
        for member in [
            "id",
            "ruleset",
            "status",
            "rated",
            "moves_count",
            "created_at",
            "started_at",
            "last_move_at",
            "finished_at",
            "options",
        ] {
            same(member, &game[member]);
        }
        same("end_reason", &game["outcome"]["reason"]);
        for seat in 0..4 {
            same(&format!("seat{seat}_player_id"), &game["seats"][seat]["player"]["id"]);
            same(&format!("seat{seat}_player_name"), &game["seats"][seat]["player"]["name"]);
            same(&format!("seat{seat}_status"), &game["seats"][seat]["status"]);
            let ranking = game["outcome"]["ranking"].as_array().cloned().unwrap_or_default();
            let line = ranking.iter().find(|line| line["seat"] == seat).cloned().unwrap_or_default();
            same(&format!("seat{seat}_score"), &line["score"]);
            let result = match (&line["won"], game["status"].as_str()) {
                (Value::Bool(true), Some("finished")) => "won",
                (Value::Bool(false), Some("finished")) => "lost",
                _ => "",
            };
            assert_eq!(cell(&format!("seat{seat}_result")), result);
        }
    }
    assert_eq!(&rows[58][0], solo["id"].as_str().unwrap());
    assert_eq!(&rows[59][0], open["id"].as_str().unwrap());
    let names: Vec<&str> = rows.iter().flat_map(csv::StringRecord::iter).filter(|cell| *cell == ada.name).collect();
    assert_eq!(names.len(), 1);
}

#[tokio::test]
async fn exports_that_cannot_be_meant_are_refused() {
    let app = TestApp::new().await;
    for (query, parameter) in [
        ("status=active", "status"),
        ("status=aborted&format=ndjson", "status"),
        ("format=xml", "format"),
        ("limit=5", "limit"),
        ("after=17", "after"),
        ("cursor=17", "cursor"),
        ("after=01a22b42-3b82-7a5e-9983-d2a178674330&cursor=00", "after"),
        ("finished_after=0", "finished_after"),
    ] {
        let problem = app.get(format!("/v1/games/export?{query}")).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], parameter, "{query}: {problem}");
    }
    app.get("/v1/games/export?player=me").refused(401, "unauthenticated").await;
    app.get("/v1/games/export").token("x").refused(401, "unauthenticated").await;
    let table = app.get("/v1/games/export?status=active&format=csv").expect(200).await.text();
    assert_eq!(table.lines().count(), 1, "the head alone");
}

#[tokio::test]
async fn a_stream_is_not_made_for_who_wants_its_head() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    let table = app.table_of("leonardo", &json!({}), players).await;
    for (path, kind) in [("/v1/games/export".to_owned(), "*/*"), (table.path("/events"), "text/event-stream")] {
        // The next answer on the same connection comes once the first is done with.
        let requests = format!(
            "HEAD {path} HTTP/1.1\r\nHost: x\r\nAccept: {kind}\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        );
        let addr = app.addr;
        let exchange = move || {
            let mut stream = std::net::TcpStream::connect(addr).unwrap();
            stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
            std::io::Write::write_all(&mut stream, requests.as_bytes()).unwrap();
            let mut answers = String::new();
            stream.read_to_string(&mut answers).map(|_| answers)
        };
        let answers = tokio::task::spawn_blocking(exchange).await.unwrap().expect("both answers come");
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
        assert!(!answers.contains("tavola-export-trailer") && !answers.contains("snapshot"), "{answers}");
    }
}
