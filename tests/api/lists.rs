//! Lists of games: every filter and order, page by page, against what a look at every single game says.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::helpers::{Player, TestApp};
use crate::play::Chance;

const SORTS: [&str; 6] = ["created", "-created", "finished", "-finished", "last_move", "-last_move"];
const SIZES: [usize; 7] = [1, 2, 19, 20, 21, 99, 100];

/// 2026-01-01T00:00:00Z in milliseconds.
const EPOCH: i64 = 1_767_225_600_000;

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(EPOCH / 1000 + seconds).unwrap()
}

/// Games of every kind, in all states, with times of which many are equal; each consistent in itself.
async fn arrange(app: &TestApp, players: &[Player], count: usize) {
    let mut chance = Chance(7);
    let mut transaction = app.sql().begin().await.unwrap();
    let ids: Vec<Uuid> = players.iter().map(|player| player.id.parse().unwrap()).collect();
    for number in 0..count {
        let rulesets = [
            ("leonardo", json!({"turn_limit": 30})),
            ("leonardo", json!({"turn_limit": 60})),
            ("leopard", json!({"hands": 2, "scoring": "1962"})),
            ("leopard", json!({"hands": 3, "scoring": "2008"})),
            ("siggil", json!({})),
        ];
        let (slug, options) = chance.pick(&rulesets).clone();
        let status = *chance.pick(&["open", "active", "finished", "finished", "finished", "aborted"]);
        let over = ["finished", "aborted"].contains(&status);
        let millis = EPOCH + *chance.pick(&[0, 0, 1, 1000, 60_000, 60_000, 120_000]);
        let mut bytes = [0u8; 16];
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
        (bytes[6], bytes[8]) = (0x70 | bytes[6] & 0x0f, 0x80 | bytes[8] & 0x3f);
        let id = Uuid::from_bytes(bytes);
        let created_at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).unwrap();
        let started = status != "open" && !(status == "aborted" && number % 2 == 0);
        let moves = if started { *chance.pick(&[0, 1, 7, 7, 40]) } else { 0 };
        // Of games that are over before they end; of the others in the same ten minutes or in others.
        let spread: &[i64] = if over { &[0, 0, 5, 100] } else { &[0, 0, 5, 399, 400, 800, 801, 90_000] };
        let last_move_at = (moves > 0).then(|| at(200 + *chance.pick(spread)));
        let finished_at = over.then(|| at(400 + *chance.pick(&[0, 0, 0, 3, 50])));
        let seated: Vec<usize> = (0..players.len()).filter(|_| chance.below(2) == 0).take(3).collect();
        let seated = if seated.is_empty() { vec![number % players.len()] } else { seated };
        let reason = match status {
            "finished" => Some(*chance.pick(&["completed", "completed", "turn_limit", "resignation", "timeout"])),
            "aborted" if started => Some("aborted"),
            _ => None,
        };
        let winners: Vec<usize> = match (status, chance.below(4)) {
            ("finished", 0) => vec![],
            ("finished", 1) => (0..seated.len().min(2)).collect(),
            ("finished", n) => vec![n % seated.len()],
            _ => vec![],
        };
        let ranking: Vec<Value> = (0..seated.len())
            .map(|seat| json!({"seat": seat, "rank": 1 + u8::from(!winners.contains(&seat)), "score": 3, "won": winners.contains(&seat)}))
            .collect();
        let outcome = reason.map(|reason| json!({"reason": reason, "ranking": ranking}));
        let visibility = if chance.below(6) == 0 { "private" } else { "public" };
        sqlx::query(
            "insert into games (id, ruleset, rules_version, options, open_options, seat_count, status, visibility, rated, creator_id,
                                server_seed, outcome, created_at, started_at, finished_at, end_reason, moves_count, last_move_at)
             values ($1, $2, 1, $3, $4, $5, $6, $7, $8, $9, sha256('x'), $10, $11, $12, $13, $14, $15, $16)",
        )
        .bind(id)
        .bind(slug)
        .bind(&options)
        .bind((!started).then_some(&options))
        .bind(seated.len() as i16)
        .bind(status)
        .bind(visibility)
        .bind(visibility == "public" && chance.below(3) == 0)
        .bind(ids[seated[0]])
        .bind(outcome)
        .bind(created_at)
        .bind(started.then_some(created_at))
        .bind(finished_at)
        .bind(reason)
        .bind(over.then_some(moves))
        .bind(last_move_at.filter(|_| over))
        .execute(&mut *transaction)
        .await
        .unwrap();
        let to_move = (status == "active").then_some(0i16);
        sqlx::query(
            "insert into positions (game_id, version, moves_count, last_move_at, to_move_seat, changed_at)
             values ($1, 1, $2, $3, $4, $5)",
        )
        .bind(id)
        .bind(moves)
        .bind(last_move_at)
        .bind(to_move)
        .bind(created_at)
        .execute(&mut *transaction)
        .await
        .unwrap();
        for (seat, player) in seated.iter().enumerate() {
            let result = (status == "finished").then_some(match (winners.contains(&seat), winners.len()) {
                (false, _) => "lost",
                (true, 1) => "won",
                (true, _) => "shared",
            });
            sqlx::query(
                "insert into seats (game_id, seat, player_id, entropy, status, over_at, finished_at, last_move_at, result)
                 values ($1, $2, $3, '', 'playing', $4, $4, $5, $6)",
            )
            .bind(id)
            .bind(seat as i16)
            .bind(ids[*player])
            .bind(finished_at)
            .bind(last_move_at.filter(|_| over))
            .bind(result)
            .execute(&mut *transaction)
            .await
            .unwrap();
        }
    }
    transaction.commit().await.unwrap();
}

fn time(game: &Value, member: &str) -> Option<OffsetDateTime> {
    game[member].as_str().map(|text| OffsetDateTime::parse(text, &Rfc3339).unwrap())
}

fn has_seat(game: &Value, player: &str) -> bool {
    game["seats"].as_array().unwrap().iter().any(|seat| seat["player"]["id"] == player)
}

/// How a game went for a player, by the outcome alone.
fn result(game: &Value, player: &str) -> Option<&'static str> {
    let seat = game["seats"].as_array().unwrap().iter().find(|seat| seat["player"]["id"] == player)?["seat"].clone();
    if game["status"] != "finished" {
        return None;
    }
    let ranking = game["outcome"]["ranking"].as_array().unwrap();
    let winners: Vec<&Value> = ranking.iter().filter(|line| line["won"] == true).collect();
    Some(match (winners.iter().any(|line| line["seat"] == seat), winners.len()) {
        (false, _) => "lost",
        (true, 1) => "won",
        (true, _) => "shared",
    })
}

/// Whether a game fits a query, by a look at its resource.
fn fits(game: &Value, query: &[(&str, String)]) -> bool {
    let player = query.iter().find(|(name, _)| *name == "player").map(|(_, player)| player.as_str());
    query.iter().all(|(name, value)| {
        let within = |member: &str, is: fn(OffsetDateTime, OffsetDateTime) -> bool| {
            let bound = OffsetDateTime::parse(value, &Rfc3339).unwrap();
            time(game, member).is_some_and(|time| is(time, bound))
        };
        let moves = game["moves_count"].as_u64().unwrap();
        match *name {
            "status" | "ruleset" => game[*name] == value.as_str(),
            "rated" => game["rated"] == (value == "true"),
            "player" | "opponent" => has_seat(game, value),
            "result" => result(game, player.unwrap()) == Some(value.as_str()),
            "to_move" => {
                let seat = &game["to_move"]["seat"];
                let taken = game["seats"].as_array().unwrap().iter().find(|taken| taken["seat"] == *seat);
                taken.is_some_and(|taken| taken["player"]["id"] == value.as_str())
            }
            "end_reason" => game["outcome"]["reason"] == value.as_str(),
            "moves_min" => moves >= value.parse().unwrap(),
            "moves_max" => moves <= value.parse().unwrap(),
            "option.hands" | "option.turn_limit" => game["options"][&name[7..]] == json!(value.parse::<u32>().unwrap()),
            "option.scoring" => game["options"]["scoring"] == value.as_str(),
            "created_after" => within("created_at", |time, bound| time >= bound),
            "created_before" => within("created_at", |time, bound| time < bound),
            "finished_after" => within("finished_at", |time, bound| time >= bound),
            "finished_before" => within("finished_at", |time, bound| time < bound),
            "last_move_after" => within("last_move_at", |time, bound| time >= bound),
            "last_move_before" => within("last_move_at", |time, bound| time < bound),
            other => panic!("{other}"),
        }
    })
}

/// The order of a list: by the time, those without it last; then by id.
fn order(sort: &str, a: &Value, b: &Value) -> Ordering {
    let (key, descending) = sort.strip_prefix('-').map_or((sort, false), |key| (key, true));
    let member = format!("{key}_at");
    let turned = |ordering: Ordering| if descending { ordering.reverse() } else { ordering };
    let ids = turned(a["id"].as_str().cmp(&b["id"].as_str()));
    match (time(a, &member), time(b, &member)) {
        (Some(a), Some(b)) => turned(a.cmp(&b)).then(ids),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => ids,
    }
}

fn path(query: &[(&str, String)], rest: &str) -> String {
    let filters: String = query.iter().map(|(name, value)| format!("{name}={}&", value.replace('+', "%2B"))).collect();
    format!("/v1/games?{filters}{rest}")
}

/// All pages of a list, put together.
async fn walk(app: &TestApp, caller: Option<&Player>, query: &[(&str, String)], sort: &str, size: usize) -> Vec<Value> {
    let (mut games, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let cursor_part = cursor.map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let page =
            app.get(path(query, &format!("sort={sort}&limit={size}{cursor_part}"))).by_some(caller).ok(200).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= size);
        assert!(page["next_cursor"].is_null() || items.len() == size, "only the last page is short");
        games.extend(items.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return games,
        }
    }
}

fn ids(games: &[Value]) -> Vec<&str> {
    games.iter().map(|game| game["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_list_is_what_a_look_at_every_game_says() {
    let app = TestApp::new().await;
    let players = app.players(5).await;
    const GAMES: usize = 150;
    arrange(&app, &players, GAMES).await;
    // Every game, one by one, as each caller may know of it.
    let rows: Vec<Uuid> = sqlx::query_scalar("select id from games").fetch_all(app.sql()).await.unwrap();
    let (ada, bob) = (&players[0], &players[1]);
    let mut known: BTreeMap<bool, Vec<Value>> = BTreeMap::new();
    for signed_in in [false, true] {
        for id in &rows {
            let reply = app.get(format!("/v1/games/{id}")).by_some(signed_in.then_some(ada)).send().await;
            if reply.status == 200 {
                known.entry(signed_in).or_default().push(reply.json());
            }
        }
    }
    assert!(known[&false].len() < known[&true].len() && known[&true].len() < GAMES, "some games are private");
    let text = |seconds: i64| at(seconds).format(&Rfc3339).unwrap();
    let one = |name: &'static str, value: &str| vec![(name, value.to_owned())];
    let of_ada = |rest: Vec<(&'static str, String)>| [one("player", &ada.id), rest].concat();
    let mut queries: Vec<Vec<(&str, String)>> = vec![vec![]];
    queries.extend(["open", "active", "finished", "aborted"].map(|status| one("status", status)));
    queries.extend(["leonardo", "leopard", "quintis-fontis"].map(|ruleset| one("ruleset", ruleset)));
    queries.extend(["true", "false"].map(|rated| one("rated", rated)));
    let reasons = ["completed", "turn_limit", "resignation", "timeout", "aborted"];
    queries.extend(reasons.map(|reason| one("end_reason", reason)));
    queries.extend(["0", "1", "8", "41"].map(|moves| one("moves_min", moves)));
    queries.extend(["0", "7", "39"].map(|moves| one("moves_max", moves)));
    queries.push([one("option.hands", "3")].concat());
    queries.push([one("option.scoring", "1962")].concat());
    queries.push([one("option.turn_limit", "30"), one("ruleset", "leonardo"), one("status", "open")].concat());
    for (after, before) in [
        ("created_after", "created_before"),
        ("finished_after", "finished_before"),
        ("last_move_after", "last_move_before"),
    ] {
        let (low, high) = match after {
            "created_after" => (1, 60),
            "finished_after" => (400, 403),
            _ => (200, 205),
        };
        queries.push(one(after, &text(low)));
        queries.push(one(before, &text(high)));
        queries.push([one(after, &text(low)), one(before, &text(high))].concat());
        // To the nanosecond, and with an offset.
        queries.push(one(after, &(at(low) + time::Duration::nanoseconds(1)).format(&Rfc3339).unwrap()));
        queries.push(one(before, &(at(high) + time::Duration::nanoseconds(1)).format(&Rfc3339).unwrap()));
        let offset = time::UtcOffset::from_hms(5, 30, 0).unwrap();
        queries.push(one(after, &at(high).to_offset(offset).format(&Rfc3339).unwrap()));
    }
    queries.push(of_ada(vec![]));
    queries.extend(["won", "lost", "shared"].map(|result| of_ada(one("result", result))));
    queries.push(of_ada(one("opponent", &bob.id)));
    queries.push(of_ada([one("opponent", &bob.id), one("result", "won"), one("ruleset", "leopard")].concat()));
    queries.push(of_ada(one("status", "active")));
    queries.push(of_ada(one("end_reason", "aborted")));
    queries.push(of_ada([one("moves_min", "7"), one("finished_after", &text(403))].concat()));
    queries.push(of_ada([one("rated", "true"), one("last_move_before", &text(300))].concat()));
    queries.push(one("to_move", &ada.id));
    queries.push([one("to_move", &bob.id), one("player", &ada.id)].concat());
    queries.push([one("status", "aborted"), one("end_reason", "completed")].concat());
    queries.push(
        [one("ruleset", "leopard"), one("rated", "true"), one("status", "finished"), one("moves_min", "1")].concat(),
    );
    let (mut turn, mut found) = (0, BTreeSet::new());
    for query in &queries {
        // Everything for a player who sees more than others, the rest by turns for somebody without an account too.
        for (signed_in, games) in known.iter().filter(|(signed_in, _)| **signed_in || query.len() < 2) {
            let caller = signed_in.then_some(ada);
            for sort in SORTS {
                let mut expected: Vec<Value> = games.iter().filter(|game| fits(game, query)).cloned().collect();
                expected.sort_by(|a, b| order(sort, a, b));
                // All sizes for the list of everything and for a player's; elsewhere each in turn.
                let sizes: Vec<usize> = match query.as_slice() {
                    [] | [("player", _)] => SIZES.to_vec(),
                    // Long lists by twos are many pages that show nothing else.
                    _ => vec![SIZES[if expected.len() > 30 { 2 + turn % 5 } else { 1 + turn % 6 }]],
                };
                for size in sizes {
                    let pages = walk(&app, caller, query, sort, size).await;
                    assert_eq!(ids(&pages), ids(&expected), "{query:?} sort={sort} limit={size}");
                }
                turn += 1;
                found.insert(expected.len());
            }
        }
    }
    assert!(found.len() > 20, "the filters leave very different numbers of games: {found:?}");
}

#[tokio::test]
async fn ids_alone_are_the_ids_of_the_list() {
    let app = TestApp::new().await;
    let players = app.players(3).await;
    arrange(&app, &players, 60).await;
    for sort in SORTS {
        let whole = walk(&app, None, &[], sort, 100).await;
        let page = app.get(format!("/v1/games?fields=id&limit=100&sort={sort}")).ok(200).await;
        let expected: Vec<Value> = ids(&whole).into_iter().map(|id| json!({"id": id})).collect();
        assert_eq!(page["items"], json!(expected));
        // A cursor of one form goes on in the other: it is the same list.
        let first = app.get(format!("/v1/games?fields=id&limit=7&sort={sort}")).ok(200).await;
        let cursor = first["next_cursor"].as_str().unwrap();
        let rest = app.get(format!("/v1/games?limit=100&sort={sort}&cursor={cursor}")).ok(200).await;
        assert_eq!(ids(rest["items"].as_array().unwrap()), ids(&whole)[7..]);
    }
}

#[tokio::test]
async fn queries_that_cannot_be_meant_are_refused() {
    let app = TestApp::new().await;
    let ada = app.register("Ada").await;
    let refused = async |query: &str, parameter: &str, hint: &str| {
        let problem = app.get(format!("/v1/games?{query}")).by(&ada).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], parameter, "{query}: {problem}");
        assert!(problem.to_string().contains(hint), "{query}: {problem}");
    };
    for name in
        ["created_after", "created_before", "finished_after", "finished_before", "last_move_after", "last_move_before"]
    {
        for value in ["1764483000", "1764483000000", "-5", "17.5", "2026-11-30"] {
            refused(&format!("{name}={value}"), name, "a bare number or date is none").await;
        }
        refused(&format!("{name}=2026-11-30T12:00:00+02:00"), name, "%2B").await;
        let after_all = ["9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59-01:00"];
        let wrong = ["", "yesterday", "2026-11-30T12:00:00", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z"];
        for value in wrong.into_iter().chain(after_all) {
            refused(&format!("{name}={value}"), name, "RFC 3339").await;
        }
    }
    for value in ["-1", "1.5", "2147483648", "9007199254740993", "18446744073709551616", "many", ""] {
        refused(&format!("moves_min={value}"), "moves_min", "a whole number").await;
        refused(&format!("moves_max={value}"), "moves_max", "a whole number").await;
    }
    refused("rated=yes", "rated", "`true` or `false`").await;
    refused("rated=1", "rated", "`true` or `false`").await;
    refused("sort=newest", "sort", "unknown variant").await;
    refused("end_reason=won", "end_reason", "unknown variant").await;
    refused("result=won", "result", "player").await;
    refused(&format!("opponent={}", ada.id), "opponent", "player").await;
    refused(&format!("player=me&opponent={}", ada.id), "opponent", "own opponent").await;
    refused("player=me&result=drawn", "result", "unknown variant").await;
    refused("player=Ada", "player", "UUID").await;
    refused("option.hands=two", "option.hands", "no ruleset has").await;
    refused("option.colour=red", "option.colour", "no ruleset has").await;
    refused("option.=1", "option.", "no ruleset has").await;
    refused("ruleset=siggil&option.hands=2", "option.hands", "siggil does not have").await;
    refused("option.hands=2&option.hands=3", "option.hands", "twice").await;
    refused("fields=name", "fields", "unknown variant").await;
    refused("page=2", "page", "unknown field").await;
    refused("limit=101", "limit", "1 to 100").await;
    app.get("/v1/games?player=me").refused(401, "unauthenticated").await;
    // Instants that no game comes near.
    let times = ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.9999999Z"];
    for (value, sort) in times.into_iter().flat_map(|time| SORTS.map(|sort| (time, sort))) {
        for name in ["created_after", "created_before", "finished_after", "last_move_after", "last_move_before"] {
            app.get(format!("/v1/games?{name}={value}&sort={sort}")).ok(200).await;
        }
    }
}

#[tokio::test]
async fn a_cursor_is_of_one_list() {
    let app = TestApp::new().await;
    let players = app.players(2).await;
    arrange(&app, &players, 20).await;
    let page = app.get("/v1/games?limit=2&sort=finished&moves_min=0").ok(200).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    app.get(format!("/v1/games?limit=3&sort=finished&moves_min=0&cursor={cursor}")).ok(200).await;
    for other in [
        "sort=-finished&moves_min=0",
        "sort=finished",
        "sort=finished&moves_min=1",
        "moves_min=0",
        "sort=finished&moves_min=0&status=finished",
    ] {
        let problem = app.get(format!("/v1/games?{other}&cursor={cursor}")).refused(400, "invalid-parameter").await;
        assert_eq!(problem["errors"][0]["pointer"], "cursor", "{other}");
    }
    // What is no cursor at all, and what only looks like one.
    let forged = |micros: i64| {
        let mut forged = cursor.to_owned();
        forged.replace_range(16..32, &format!("{micros:016x}"));
        forged
    };
    // Times that Rust does not have, and one that the database does not have: it would fail.
    let (beyond, before) = (forged(i64::MAX - 1), forged(-300_000_000_000_000_000));
    for bad in [
        "",
        "x",
        "00",
        &cursor[..62],
        &format!("{cursor}00"),
        &cursor.to_uppercase(),
        &beyond,
        &forged(i64::MIN),
        &before,
    ] {
        let list = format!("/v1/games?sort=finished&moves_min=0&cursor={bad}");
        app.get(list).refused(400, "invalid-parameter").await;
    }
}

#[tokio::test]
async fn walks_go_on_while_games_come_and_go() {
    let app = TestApp::new().await;
    let players = app.players(3).await;
    arrange(&app, &players, 40).await;
    let before = walk(&app, None, &[], "-created", 100).await;
    let first = app.get("/v1/games?limit=10").ok(200).await;
    let mut seen: Vec<String> = ids(first["items"].as_array().unwrap()).into_iter().map(str::to_owned).collect();
    // The very game at which the next page begins is called off, and others are made.
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    for player in &players {
        app.create(player, &json!({"ruleset": "leonardo"})).await;
    }
    let id: Uuid = seen.last().unwrap().parse().unwrap();
    sqlx::query("update games set status = 'aborted', finished_at = now(), moves_count = 0 where id = $1")
        .bind(id)
        .execute(app.sql())
        .await
        .unwrap();
    let mut next = Some(cursor);
    while let Some(cursor) = next {
        let page = app.get(format!("/v1/games?limit=10&cursor={cursor}")).ok(200).await;
        seen.extend(ids(page["items"].as_array().unwrap()).into_iter().map(str::to_owned));
        next = page["next_cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, ids(&before));
}

#[tokio::test]
async fn what_commands_write_is_what_lists_find() {
    let app = TestApp::new().await;
    // One finished by its rules, one by resignation, one called off in play, one before, one running, one open.
    let done = app.table("leopard", &json!({"hands": 1}), 2).await;
    app.play_to_the_end(&done, 5).await;
    let resigned = app.table("siggil", &json!({}), 3).await;
    app.play_one(&resigned, &mut Chance(1)).await;
    for player in &resigned.players {
        app.post(resigned.path("/resignation")).by(player).send().await;
    }
    let called_off = app.table("leonardo", &json!({}), 2).await;
    for player in &called_off.players {
        app.post(called_off.path("/abort")).by(player).expect(200).await;
    }
    // A private one, whose code changes after its end.
    let private = json!({"ruleset": "leopard", "seats": 2, "visibility": "private"});
    let hidden = app.table_like(&private, app.players(2).await).await;
    app.post(hidden.path("/resignation")).by(&hidden.players[0]).expect(200).await;
    app.post(hidden.path("/invite")).by(&hidden.players[0]).expect(200).await;
    let own = walk(&app, Some(&hidden.players[1]), &[("player", hidden.players[1].id.clone())], "finished", 5).await;
    let finished_at = own[0]["finished_at"].as_str().unwrap().to_owned();
    let query = [("player", hidden.players[1].id.clone()), ("finished_after", finished_at.clone())];
    assert_eq!(walk(&app, Some(&hidden.players[1]), &query, "finished", 5).await.len(), 1);
    let query = [
        ("player", hidden.players[1].id.clone()),
        (
            "finished_after",
            (OffsetDateTime::parse(&finished_at, &Rfc3339).unwrap() + time::Duration::microseconds(1))
                .format(&Rfc3339)
                .unwrap(),
        ),
    ];
    assert_eq!(walk(&app, Some(&hidden.players[1]), &query, "finished", 5).await.len(), 0);
    let running = app.table("leonardo", &json!({"turn_limit": 77}), 2).await;
    app.play_one(&running, &mut Chance(2)).await;
    let ada = app.register("Ada").await;
    let open = app.create(&ada, &json!({"ruleset": "leopard", "rated": true})).await;
    let closed = app.create(&ada, &json!({"ruleset": "leopard"})).await;
    app.post(format!("/v1/games/{}/abort", closed["id"].as_str().unwrap())).by(&ada).expect(200).await;

    let all = walk(&app, None, &[], "created", 100).await;
    assert_eq!(all.len(), 6);
    let players: Vec<&Player> =
        [&done, &resigned, &called_off, &running].iter().flat_map(|table| &table.players).chain([&ada]).collect();
    let mut queries: Vec<Vec<(&str, String)>> = vec![vec![]];
    for (name, values) in [
        ("status", &["open", "active", "finished", "aborted"][..]),
        ("rated", &["true", "false"]),
        ("end_reason", &["completed", "resignation", "aborted"]),
        ("option.hands", &["1", "2"]),
        ("option.turn_limit", &["77"]),
        ("moves_min", &["1", "2"]),
        ("moves_max", &["0", "1"]),
    ] {
        queries.extend(values.iter().map(|value| vec![(name, (*value).to_owned())]));
    }
    for player in players {
        queries.push(vec![("player", player.id.clone())]);
        for result in ["won", "lost", "shared"] {
            queries.push(vec![("player", player.id.clone()), ("result", result.to_owned())]);
        }
    }
    for query in &queries {
        for sort in SORTS {
            let mut expected: Vec<Value> = all.iter().filter(|game| fits(game, query)).cloned().collect();
            expected.sort_by(|a, b| order(sort, a, b));
            assert_eq!(ids(&walk(&app, None, query, sort, 2).await), ids(&expected), "{query:?} {sort}");
        }
    }
    assert_eq!(
        walk(&app, None, &[("option.hands", "2".into()), ("status", "open".into())], "created", 5).await.len(),
        1,
        "by default"
    );
    // Ids are in the order of creation, and begin with its millisecond.
    for game in [&all[0], &open] {
        let id: Uuid = game["id"].as_str().unwrap().parse().unwrap();
        let millis = i128::from(u64::from_be_bytes(id.as_bytes()[..8].try_into().unwrap()) >> 16);
        assert_eq!(time(game, "created_at").unwrap().unix_timestamp_nanos(), millis * 1_000_000);
    }
}
