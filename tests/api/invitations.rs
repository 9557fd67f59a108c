//! Seats that are kept for somebody by name.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tavola::workers::clocks;

use crate::helpers::{Player, TestApp};
use crate::play::micros;

/// Who is invited to which seat.
fn invited(game: &Value) -> Vec<(u64, String)> {
    let kept = game["invitations"].as_array().unwrap().iter();
    kept.map(|kept| (kept["seat"].as_u64().unwrap(), kept["player"]["id"].as_str().unwrap().to_owned())).collect()
}

/// Who sits where.
fn seated(game: &Value) -> Vec<(u64, String)> {
    let seats = game["seats"].as_array().unwrap().iter();
    seats.map(|seat| (seat["seat"].as_u64().unwrap(), seat["player"]["id"].as_str().unwrap().to_owned())).collect()
}

async fn invite(app: &TestApp, path: &str, creator: &Player, body: Value) -> Value {
    app.post(format!("{path}/invitations")).by(creator).json(&body).ok(201).await
}

/// The ids of the games to which a player is invited, as pages of so many have them.
async fn invitations(app: &TestApp, player: &Player, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(format!("/v1/me/invitations?limit={limit}{cursor}")).by(player).ok(200).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= limit);
        ids.extend(items.iter().map(|game| game["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// Has all invitations of a game run out.
async fn let_expire(app: &TestApp, path: &str) {
    let sql =
        "update seats set expires_at = now() - interval '1 microsecond' where game_id = $1 and status = 'invited'";
    let id = uuid::Uuid::parse_str(path.rsplit('/').next().unwrap()).unwrap();
    sqlx::query(sql).bind(id).execute(app.sql()).await.unwrap();
}

#[tokio::test]
async fn a_seat_is_kept_for_who_is_invited_and_for_nobody_else() {
    let app = TestApp::new().await;
    let [ada, bo, cy, dee, eve] = app.players(5).await.try_into().unwrap();
    let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 4})).await;
    let seats = format!("{path}/seats");
    // From above by itself, or the seat that is named.
    let game = invite(&app, &path, &ada, json!({"player": bo.id})).await;
    assert_eq!((invited(&game), &game["version"]), (vec![(3, bo.id.clone())], &json!(1)));
    let game = invite(&app, &path, &ada, json!({"player": cy.id, "seat": 1, "expires_in": 60})).await;
    assert_eq!(invited(&game), [(1, cy.id.clone()), (3, bo.id.clone())]);
    let left = micros(&game["invitations"][0]["expires_at"]) - micros(&game["created_at"]);
    assert!((60_000_000..120_000_000).contains(&left), "{left} µs");
    // To the invited it is among their invitations, not among their games.
    for player in [&bo, &cy] {
        assert_eq!(invitations(&app, player, 20).await, [path.rsplit('/').next().unwrap()]);
        assert_eq!(app.get("/v1/games?player=me").by(player).ok(200).await["items"], json!([]));
    }
    assert_eq!(invitations(&app, &dee, 20).await, Vec::<String>::new());
    for seat in [1, 3] {
        app.post(&seats).by(&dee).json(&json!({"seat": seat})).refused(409, "seat-taken").await;
    }
    let game = app.post(&seats).by(&dee).json(&json!({})).ok(201).await;
    assert_eq!(game["viewer"]["seat"], 2, "the lowest free seat that is kept for nobody");
    app.post(&seats).by(&eve).json(&json!({})).refused(409, "seat-taken").await;
    // The invited get their own seat.
    let game = app.post(&seats).by(&bo).json(&json!({})).ok(201).await;
    assert_eq!((&game["viewer"]["seat"], invited(&game)), (&json!(3), vec![(1, cy.id.clone())]));
    app.post(&seats).by(&eve).json(&json!({"seat": 1})).refused(409, "seat-taken").await;
    let game = app.post(&seats).by(&cy).json(&json!({"seat": 1})).ok(201).await;
    assert_eq!((&game["status"], &game["invitations"]), (&json!("active"), &json!([])));
    assert_eq!(seated(&game), [(0, ada.id.clone()), (1, cy.id.clone()), (2, dee.id), (3, bo.id.clone())]);
    assert_eq!(invitations(&app, &cy, 20).await, Vec::<String>::new());
    let id = path.rsplit('/').next().unwrap();
    let kinds = [
        "game_created",
        "player_invited",
        "player_invited",
        "player_joined",
        "player_joined",
        "player_joined",
        "game_started",
    ];
    assert_eq!(app.kinds(id, None).await, kinds);
}

#[tokio::test]
async fn who_is_invited_may_take_another_seat_and_gives_up_the_kept_one() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
    invite(&app, &path, &ada, json!({"player": bo.id, "seat": 1})).await;
    app.post(format!("{path}/seats")).by(&bo).json(&json!({"seat": 0})).refused(409, "seat-taken").await;
    app.post(format!("{path}/seats")).by(&bo).json(&json!({"seat": 3})).refused(400, "invalid-body").await;
    let game = app.post(format!("{path}/seats")).by(&bo).json(&json!({"seat": 2})).ok(201).await;
    assert_eq!(game["invitations"], json!([]));
    let game = app.post(format!("{path}/seats")).by(&cy).ok(201).await;
    assert_eq!((&game["viewer"]["seat"], &game["status"]), (&json!(1), &json!("active")));
}

#[tokio::test]
async fn an_invitation_is_declined_or_withdrawn_and_the_seat_is_free_again() {
    let app = TestApp::new().await;
    let [ada, bo, cy, dee] = app.players(4).await.try_into().unwrap();
    let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 2})).await;
    let (own, of_bo) = (format!("{path}/invitations/me"), format!("{path}/invitations/{}", bo.id));
    invite(&app, &path, &ada, json!({"player": bo.id})).await;
    app.call("DELETE", &own).refused(401, "unauthenticated").await;
    app.call("DELETE", &own).by(&cy).refused(404, "not-found").await;
    app.call("DELETE", &own).by(&ada).refused(404, "not-found").await;
    app.call("DELETE", &own).by(&bo).at(7).refused(412, "stale-version").await;
    app.call("DELETE", &own).by(&bo).expect(204).await;
    app.call("DELETE", &own).by(&bo).refused(404, "not-found").await;
    app.call("DELETE", &of_bo).by(&ada).refused(404, "not-found").await;
    assert_eq!(invitations(&app, &bo, 20).await, Vec::<String>::new());

    invite(&app, &path, &ada, json!({"player": bo.id})).await;
    app.call("DELETE", &of_bo).refused(401, "unauthenticated").await;
    app.call("DELETE", &of_bo).by(&bo).refused(403, "not-owner").await;
    app.call("DELETE", &of_bo).by(&cy).refused(403, "not-owner").await;
    app.call("DELETE", format!("{path}/invitations/nobody")).by(&ada).refused(400, "invalid-parameter").await;
    app.call("DELETE", format!("{path}/invitations/{}", cy.id)).by(&ada).refused(404, "not-found").await;
    let game = app.call("DELETE", &of_bo).by(&ada).ok(200).await;
    assert_eq!((&game["invitations"], &game["version"]), (&json!([]), &json!(4)));
    app.post(format!("{path}/seats")).by(&dee).expect(201).await;
    let kinds = app.kinds(path.rsplit('/').next().unwrap(), Some(&bo)).await;
    assert_eq!(kinds[1..5], ["player_invited", "invitation_declined", "player_invited", "invitation_withdrawn"]);
}

#[tokio::test]
async fn an_invitation_that_makes_no_sense_is_refused() {
    let app = TestApp::new().await;
    let [ada, bo, cy, dee] = app.players(4).await.try_into().unwrap();
    let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
    app.join(path.rsplit('/').next().unwrap(), &bo).await;
    let list = format!("{path}/invitations");
    let ask = |body: Value| app.post(&list).by(&ada).json(&body);
    app.post(&list).json(&json!({"player": cy.id})).refused(401, "unauthenticated").await;
    app.post(&list).by(&bo).json(&json!({"player": cy.id})).refused(403, "not-owner").await;
    app.post(&list).by(&cy).json(&json!({"player": cy.id})).refused(403, "not-owner").await;
    ask(json!({"player": ada.id})).refused(409, "already-seated").await;
    ask(json!({"player": bo.id})).refused(409, "already-seated").await;
    for seat in [0, 1] {
        ask(json!({"player": cy.id, "seat": seat})).refused(409, "seat-taken").await;
    }
    let wrong = [
        (json!({}), ""),
        (json!({"player": uuid::Uuid::now_v7()}), "/player"),
        (json!({"player": "Bo"}), "/player"),
        (json!({"player": null}), "/player"),
        (json!({"player": cy.id, "seat": 3}), "/seat"),
        (json!({"player": cy.id, "seat": -1}), "/seat"),
        (json!({"player": cy.id, "seat": null}), "/seat"),
        (json!({"player": cy.id, "expires_in": 59}), "/expires_in"),
        (json!({"player": cy.id, "expires_in": 2_592_001}), "/expires_in"),
        (json!({"player": cy.id, "expires_in": 4_294_967_296_u64}), "/expires_in"),
        (json!({"player": cy.id, "expires_in": null}), "/expires_in"),
        (json!({"player": cy.id, "until": "tomorrow"}), "/until"),
    ];
    for (body, pointer) in wrong {
        let problem = ask(body.clone()).refused(400, "invalid-body").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
    }
    assert_eq!(app.get(&path).ok(200).await["version"], 1, "nothing has changed");
    // Twice: the later one counts, and there is one.
    ask(json!({"player": cy.id, "expires_in": 60})).expect(201).await;
    let game = ask(json!({"player": cy.id, "expires_in": 3_600})).expect(201).await.json();
    assert_eq!((invited(&game), &game["version"]), (vec![(2, cy.id.clone())], &json!(3)));
    assert!(micros(&game["invitations"][0]["expires_at"]) - micros(&game["created_at"]) > 3_000_000_000);
    // No seat is left for another.
    ask(json!({"player": dee.id})).refused(409, "seat-taken").await;
    ask(json!({"player": dee.id, "seat": 2})).refused(409, "seat-taken").await;
    // The same request is carried out once.
    app.call("DELETE", format!("{list}/{}", cy.id)).by(&ada).expect(200).await;
    let keyed = || app.post(&list).by(&ada).key("once").json(&json!({"player": dee.id})).expect(201);
    let first = keyed().await;
    assert_eq!(keyed().await.lasting(), first.lasting());
    assert_eq!(app.get(&path).ok(200).await["version"], 5);
    app.post(format!("{path}/seats")).by(&dee).expect(201).await;
    ask(json!({"player": cy.id})).refused(409, "game-not-open").await;
    app.call("DELETE", format!("{list}/me")).by(&dee).refused(404, "not-found").await;
}

#[tokio::test]
async fn an_invitation_that_is_over_keeps_no_seat_whether_a_server_has_noticed_or_not() {
    let app = TestApp::new().await;
    let [ada, bo, cy, dee] = app.players(4).await.try_into().unwrap();
    for noticed in [false, true] {
        let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 4})).await;
        let id = path.rsplit('/').next().unwrap();
        invite(&app, &path, &ada, json!({"player": bo.id, "seat": 1})).await;
        invite(&app, &path, &ada, json!({"player": cy.id, "seat": 2})).await;
        let_expire(&app, &path).await;
        if noticed {
            assert!(app.store.expire_next().await.unwrap(), "both of one game at once");
            assert!(!app.store.expire_next().await.unwrap());
            let game = app.game(id, None).await;
            assert_eq!((&game["invitations"], &game["version"]), (&json!([]), &json!(3)));
        }
        assert_eq!(invitations(&app, &bo, 20).await, Vec::<String>::new());
        let game = app.post(format!("{path}/seats")).by(&dee).ok(201).await;
        assert_eq!(game["viewer"]["seat"], 1, "the lowest seat, which was kept for another");
        // Who comes too late has a seat if there is one.
        let game = app.post(format!("{path}/seats")).by(&cy).ok(201).await;
        assert_eq!(game["viewer"]["seat"], 2);
        clocks::run_once(&app.store).await.unwrap();
        let game = app.game(id, None).await;
        assert_eq!((&game["invitations"], &game["status"]), (&json!([]), &json!("open")));
        // Whoever follows the game, or is invited, is told of it in either case, once each.
        let events = app.events(id, None, 100).await;
        let expired = |player: &Player| {
            let of =
                |event: &&Value| event["type"] == "invitation_expired" && event["player"]["id"] == player.id.as_str();
            events.iter().filter(of).count()
        };
        assert_eq!(expired(&bo), 1, "noticed: {noticed}");
        assert_eq!(expired(&cy), if noticed { 1 } else { 0 }, "noticed: {noticed}: she came after all");
        let mut folded = crate::follow::Folded::default();
        events.iter().for_each(|event| folded.take(event));
        assert_eq!(folded.game(id), game);
    }
}

#[tokio::test]
async fn who_was_invited_to_a_private_game_too_long_ago_knows_of_it_no_more() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let path = app.open(&ada, &json!({"ruleset": "leopard", "visibility": "private"})).await;
    app.get(&path).by(&bo).refused(404, "not-found").await;
    invite(&app, &path, &ada, json!({"player": bo.id})).await;
    let seen = app.get(&path).by(&bo).ok(200).await;
    assert_eq!((&seen["invite"], &seen["viewer"]["seat"]), (&Value::Null, &Value::Null));
    app.get(format!("{path}/events")).by(&bo).expect(200).await;
    app.get(format!("{path}/fairness")).by(&bo).expect(200).await;
    assert_eq!(app.get("/v1/games").by(&bo).ok(200).await["items"].as_array().unwrap().len(), 1);
    let_expire(&app, &path).await;
    app.post(format!("{path}/seats")).by(&bo).refused(404, "not-found").await;
    clocks::run_once(&app.store).await.unwrap();
    app.get(&path).by(&bo).refused(404, "not-found").await;
    assert_eq!(app.get("/v1/games").by(&bo).ok(200).await["items"], json!([]));
    // Invited again they take the seat without a code.
    invite(&app, &path, &ada, json!({"player": bo.id})).await;
    let game = app.post(format!("{path}/seats")).by(&bo).ok(201).await;
    assert_eq!(game["status"], "active");
}

#[tokio::test]
async fn a_start_or_the_end_drops_all_invitations() {
    let app = TestApp::new().await;
    let [ada, bo, cy, dee] = app.players(4).await.try_into().unwrap();
    for how in ["start", "abort", "leave"] {
        let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 4})).await;
        let id = path.rsplit('/').next().unwrap();
        invite(&app, &path, &ada, json!({"player": bo.id, "seat": 1})).await;
        invite(&app, &path, &ada, json!({"player": dee.id})).await;
        app.post(format!("{path}/start")).by(&ada).refused(409, "too-few-players").await;
        let game = match how {
            "start" => {
                app.post(format!("{path}/seats")).by(&cy).expect(201).await;
                app.post(format!("{path}/start")).by(&bo).refused(403, "not-owner").await;
                app.post(format!("{path}/start")).by(&ada).ok(200).await
            }
            "abort" => app.post(format!("{path}/abort")).by(&ada).ok(200).await,
            _ => app.call("DELETE", format!("{path}/seats/me")).by(&ada).ok(200).await,
        };
        assert_eq!(game["invitations"], json!([]), "{how}");
        if how == "start" {
            assert_eq!(
                (seated(&game), &game["seat_count"]),
                (vec![(0, ada.id.clone()), (1, cy.id.clone())], &json!(2))
            );
        }
        for player in [&bo, &dee] {
            assert_eq!(invitations(&app, player, 20).await, Vec::<String>::new());
            app.post(format!("{path}/seats")).by(player).refused(409, "game-not-open").await;
            app.call("DELETE", format!("{path}/invitations/me")).by(player).refused(404, "not-found").await;
        }
        app.post(format!("{path}/invitations")).by(&ada).json(&json!({"player": bo.id})).send().await;
        let kinds = app.kinds(id, None).await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "invitation_withdrawn").count(), 2, "{how}: {kinds:?}");
        let (starts, ends) = if how == "start" { ("game_started", 0) } else { ("game_aborted", 1) };
        assert_eq!(kinds.last().unwrap(), starts);
        assert_eq!(kinds.iter().filter(|kind| *kind == "game_aborted").count(), ends);
    }
    let left: i64 = app.count("select count(*) from seats where status = 'invited'").await;
    assert_eq!(left, 0);
}

#[tokio::test]
async fn invitations_come_in_pages_that_expire_first_at_the_head() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let mut games = Vec::new();
    for place in 0..7 {
        let path = app.open(&ada, &json!({"ruleset": "leopard"})).await;
        // Some at the same instant, to the microsecond.
        let seconds = [500, 300, 300, 300, 100, 900, 100][place];
        invite(&app, &path, &ada, json!({"player": bo.id, "expires_in": 600})).await;
        let id = uuid::Uuid::parse_str(path.rsplit('/').next().unwrap()).unwrap();
        sqlx::query("update seats set expires_at = date_trunc('hour', now()) + interval '1 day' + $2 * interval '1 microsecond' where game_id = $1 and status = 'invited'")
            .bind(id)
            .bind(f64::from(seconds))
            .execute(app.sql())
            .await
            .unwrap();
        games.push((seconds, id.to_string()));
    }
    games.sort();
    let expected: Vec<String> = games.into_iter().map(|(_, id)| id).collect();
    for limit in [1, 2, 3, 6, 7, 8, 100] {
        assert_eq!(invitations(&app, &bo, limit).await, expected, "by {limit}");
    }
    app.get("/v1/me/invitations").refused(401, "unauthenticated").await;
    let long = "0".repeat(50);
    for query in [
        "cursor=x",
        "cursor=",
        "cursor=00",
        &format!("cursor={long}"),
        &format!("cursor={}", "f".repeat(48)),
        "limit=0",
        "limit=101",
        "status=open",
    ] {
        app.get(format!("/v1/me/invitations?{query}")).by(&bo).refused(400, "invalid-parameter").await;
    }
}

#[tokio::test]
async fn a_creator_who_leaves_hands_the_invitations_over() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
    app.join(path.rsplit('/').next().unwrap(), &bo).await;
    invite(&app, &path, &ada, json!({"player": cy.id})).await;
    app.call("DELETE", format!("{path}/seats/me")).by(&ada).expect(200).await;
    let of_cy = format!("{path}/invitations/{}", cy.id);
    app.call("DELETE", &of_cy).by(&ada).refused(403, "not-owner").await;
    assert_eq!(app.call("DELETE", &of_cy).by(&bo).ok(200).await["invitations"], json!([]));
    // Who was the creator can be invited like anybody.
    let game = invite(&app, &path, &bo, json!({"player": ada.id})).await;
    assert_eq!(invited(&game), [(2, ada.id.clone())]);
}

#[tokio::test]
async fn of_two_who_take_the_last_free_seat_at_once_one_has_it_and_the_kept_seat_stays() {
    let app = TestApp::with(2, 8).await;
    let [ada, bo, cy, dee] = app.players(4).await.try_into().unwrap();
    for _ in 0..8 {
        let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
        invite(&app, &path, &ada, json!({"player": bo.id})).await;
        let sit = |player| app.post(format!("{path}/seats")).by(player).json(&json!({})).send();
        let (one, two) = tokio::join!(sit(&cy), sit(&dee));
        let mut answers = [one.status, two.status];
        answers.sort_unstable();
        assert_eq!(answers, [201, 409]);
        assert_eq!(if one.status == 409 { one } else { two }.json()["code"], "seat-taken");
        assert_eq!(app.get(&path).ok(200).await["status"], "open");
        assert_eq!(sit(&bo).await.json()["status"], "active");
    }
}

#[tokio::test]
async fn the_invited_and_a_stranger_at_once_do_not_get_in_each_other_s_way() {
    let app = TestApp::with(2, 8).await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    for round in 0..8 {
        let path = app.open(&ada, &json!({"ruleset": "leonardo", "seats": 2})).await;
        invite(&app, &path, &ada, json!({"player": bo.id})).await;
        let sit = |player, body: Value| app.post(format!("{path}/seats")).by(player).json(&body).send();
        let body = if round % 2 == 0 { json!({}) } else { json!({"seat": 1}) };
        let (own, other) = tokio::join!(sit(&bo, json!({})), sit(&cy, body));
        assert_eq!((own.status, other.status), (201, 409), "{}", other.text());
        let game = app.get(&path).ok(200).await;
        assert_eq!((&game["status"], seated(&game)[1].1.as_str()), (&json!("active"), bo.id.as_str()));
    }
}

#[tokio::test]
async fn an_invitation_that_expires_while_it_is_taken_leaves_nobody_waiting() {
    let app = TestApp::with(2, 8).await;
    let players = app.players(6).await;
    let (ada, bo) = (&players[0], &players[1]);
    for round in 0..25 {
        let mut paths = Vec::new();
        for _ in 0..3 {
            let path = app.open(ada, &json!({"ruleset": "leonardo", "seats": 4})).await;
            invite(&app, &path, ada, json!({"player": bo.id})).await;
            let_expire(&app, &path).await;
            paths.push(path);
        }
        let wanted = paths.iter().flat_map(|path| players[1..4].iter().map(move |player| (path, player)));
        let calls = wanted.map(|(path, player)| app.post(format!("{path}/seats")).by(player).send());
        let sweeps = (0..3).map(|_| async { while app.store.expire_next().await.expect("a sweep does not fail") {} });
        let (replies, _) = tokio::join!(join_all(calls), join_all(sweeps));
        for reply in replies {
            assert_eq!(reply.status, 201, "round {round}: {}", reply.text());
        }
        for path in &paths {
            let game = app.get(path).ok(200).await;
            assert_eq!((&game["status"], &game["invitations"]), (&json!("active"), &json!([])));
        }
    }
}
