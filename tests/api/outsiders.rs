//! Every operation of the document, asked by those who have no business there: what each is answered, and that it changes
//! nothing. Operations that no line of the table covers stand in `outsiders.txt`, a list that should stay empty.

use serde_json::{Value, json};

use crate::checks::DOCUMENT;
use crate::helpers::{Player, TestApp};
use crate::play::Chance;

/// An operation and what is answered to nobody (no token), a stranger (an account that has never sat anywhere), a
/// spectator (a player of another game) and the wrong seat (a player of the game whose turn, or game, it is not).
type Line = (&'static str, [(u16, &'static str); 4]);

const OK: (u16, &str) = (200, "");
const MADE: (u16, &str) = (201, "");
const GONE: (u16, &str) = (204, "");
const UNKNOWN: (u16, &str) = (401, "unauthenticated");
const UNSEATED: (u16, &str) = (403, "not-seated");
const MISSING: (u16, &str) = (404, "not-found");
const UNOWNED: (u16, &str) = (403, "not-owner");
/// Its parameter is missing.
const UNREADABLE: (u16, &str) = (400, "invalid-parameter");
const UNFINISHED: (u16, &str) = (409, "game-not-finished");
const HIDDEN: (u16, &str) = (404, "not-found");
const INSIDE: (u16, &str) = (422, "target-not-allowed");
const STARTED: (u16, &str) = (409, "game-not-open");

const TABLE: &[Line] = &[
    ("register_player", [MADE, MADE, MADE, MADE]),
    ("get_me", [UNKNOWN, OK, OK, OK]),
    ("update_me", [UNKNOWN, OK, OK, OK]),
    ("delete_me", [UNKNOWN, GONE, GONE, GONE]),
    ("find_players", [UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE]),
    ("get_player", [OK, OK, OK, OK]),
    ("list_ratings", [OK, OK, OK, OK]),
    ("get_leaderboard", [OK, OK, OK, OK]),
    ("get_token", [UNKNOWN, OK, OK, OK]),
    ("list_tokens", [UNKNOWN, OK, OK, OK]),
    ("create_token", [UNKNOWN, MADE, MADE, MADE]),
    ("delete_token", [UNKNOWN, MISSING, MISSING, MISSING]),
    ("create_game", [UNKNOWN, MADE, MADE, MADE]),
    ("list_games", [OK, OK, OK, OK]),
    ("export_games", [OK, OK, OK, OK]),
    ("get_game", [OK, OK, OK, OK]),
    ("take_seat", [UNKNOWN, STARTED, STARTED, (409, "already-seated")]),
    ("leave_seat", [UNKNOWN, UNSEATED, UNSEATED, STARTED]),
    ("start_game", [UNKNOWN, UNOWNED, UNOWNED, UNOWNED]),
    // Giving up is the one thing that a player may do at any time.
    ("resign", [UNKNOWN, UNSEATED, UNSEATED, OK]),
    ("abort_game", [UNKNOWN, UNSEATED, UNSEATED, OK]),
    ("withdraw_abort", [UNKNOWN, UNSEATED, UNSEATED, OK]),
    ("invite_player", [UNKNOWN, UNOWNED, UNOWNED, UNOWNED]),
    ("decline_invitation", [UNKNOWN, MISSING, MISSING, MISSING]),
    ("withdraw_invitation", [UNKNOWN, UNOWNED, UNOWNED, UNOWNED]),
    ("change_invite", [UNKNOWN, UNOWNED, UNOWNED, UNOWNED]),
    ("revoke_invite", [UNKNOWN, UNOWNED, UNOWNED, UNOWNED]),
    ("get_invite", [MISSING, MISSING, MISSING, MISSING]),
    ("create_rematch", [UNKNOWN, UNSEATED, UNSEATED, UNFINISHED]),
    ("list_turns", [UNKNOWN, OK, OK, OK]),
    ("list_invitations", [UNKNOWN, OK, OK, OK]),
    ("list_events", [OK, OK, OK, OK]),
    ("list_my_events", [UNKNOWN, OK, OK, OK]),
    ("list_legal_moves", [UNKNOWN, UNSEATED, UNSEATED, OK]),
    ("play_move", [UNKNOWN, UNSEATED, UNSEATED, (409, "not-your-turn")]),
    ("list_moves", [OK, OK, OK, OK]),
    ("get_move", [OK, OK, OK, OK]),
    ("list_rulesets", [OK, OK, OK, OK]),
    ("get_ruleset", [OK, OK, OK, OK]),
    ("get_state", [OK, OK, OK, OK]),
    ("get_fairness", [OK, OK, OK, OK]),
    ("get_record", [UNFINISHED, UNFINISHED, UNFINISHED, UNFINISHED]),
    ("get_player_stats", [OK, OK, OK, OK]),
    ("get_ruleset_stats", [OK, OK, OK, OK]),
    // One's webhooks are nobody else's to know of; that of the table is its creator's.
    ("create_webhook", [UNKNOWN, INSIDE, INSIDE, INSIDE]),
    ("list_webhooks", [UNKNOWN, OK, OK, OK]),
    ("get_webhook", [UNKNOWN, HIDDEN, HIDDEN, HIDDEN]),
    ("update_webhook", [UNKNOWN, HIDDEN, HIDDEN, HIDDEN]),
    ("delete_webhook", [UNKNOWN, HIDDEN, HIDDEN, HIDDEN]),
    ("rotate_webhook_secret", [UNKNOWN, HIDDEN, HIDDEN, HIDDEN]),
    ("ping_webhook", [UNKNOWN, HIDDEN, HIDDEN, HIDDEN]),
    ("list_deliveries", [UNKNOWN, HIDDEN, HIDDEN, HIDDEN]),
    ("redeliver", [UNKNOWN, HIDDEN, HIDDEN, HIDDEN]),
    ("healthz", [OK, OK, OK, OK]),
    ("readyz", [OK, OK, OK, OK]),
    ("get_openapi", [OK, OK, OK, OK]),
    ("get_problem", [OK, OK, OK, OK]),
];

/// The operations of the document: id, method, path.
pub fn operations() -> Vec<(String, String, String)> {
    let paths = DOCUMENT["paths"].as_object().expect("a document has paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().into_iter().flatten();
        item.map(|(method, operation)| {
            (operation["operationId"].as_str().unwrap_or_default().to_owned(), method.to_uppercase(), path.clone())
        })
    });
    operations.collect()
}

/// A body for operations that want one; `name` for those that take a name, which must be new each time.
pub fn body(operation: &str, name: &str, mv: &Value, player: &str) -> Option<Value> {
    match operation {
        "register_player" | "update_me" => Some(json!({"name": name})),
        "create_token" => Some(json!({"name": name, "scopes": ["manage"]})),
        "create_game" => Some(json!({"ruleset": "leopard"})),
        "take_seat" | "create_rematch" => Some(json!({})),
        "invite_player" => Some(json!({"player": player})),
        "create_webhook" => Some(json!({"url": "https://127.0.0.1/"})),
        "update_webhook" => Some(json!({"enabled": false})),
        "play_move" => Some(mv.clone()),
        _ => None,
    }
}

/// A path of the document for this game and this player, with ids of nobody's where it is about neither.
pub fn path_of(template: &str, game: &str, player: &str) -> String {
    let nobody = uuid::Uuid::nil().to_string();
    let id = match template.split('/').nth(2) {
        Some("players") => player,
        Some("me") => &nobody,
        _ => game,
    };
    template
        .replace("{id}", id)
        .replace("{number}", "1")
        .replace("{code}", "internal")
        .replace("{slug}", "leonardo")
        .replace("{ruleset}", "leonardo")
        .replace("{delivery}", &nobody)
        .replace("{player}", player)
}

/// A webhook of a player with a delivery; the ids of both.
async fn webhook(app: &TestApp, player: &Player) -> (String, String) {
    sqlx::query_as(
        "with w as (insert into webhooks (id, player_id, url, secret)
                    values (gen_random_uuid(), $1::uuid, 'https://hooks.example/', sha256('x')) returning id),
              d as (insert into webhook_deliveries (webhook_id, type) select id, 'ping' from w returning id)
         select w.id::text, d.id::text from w, d",
    )
    .bind(&player.id)
    .fetch_one(app.sql())
    .await
    .unwrap()
}

#[tokio::test]
async fn outsiders_are_answered_as_the_table_says() {
    let app = TestApp::new().await;
    let [stranger, spectator] = app.players(2).await.try_into().unwrap();
    app.create(&spectator, &json!({"ruleset": "siggil", "seats": 1})).await;
    for (operation, method, template) in operations() {
        let Some((_, expected)) = TABLE.iter().find(|(known, _)| *known == operation) else { continue };
        // The creator is to move: the other player has neither the turn nor the game.
        let table = loop {
            let table = app.table("leonardo", &json!({}), 2).await;
            app.play_one(&table, &mut Chance(1)).await;
            if app.to_move(&table).await == Some(0) {
                break table;
            }
        };
        let (creator, wrong) = (&table.players[0], &table.players[1]);
        let mv = app.legal_moves(&table.id, creator).await[0].clone();
        let (webhook, delivery) = webhook(&app, creator).await;
        let path =
            path_of(&template.replace("/webhooks/{id}", &format!("/webhooks/{webhook}")), &table.id, &creator.id);
        let path = path.replace(&format!("/deliveries/{}", uuid::Uuid::nil()), &format!("/deliveries/{delivery}"));
        // Who deletes their account has none for the other operations.
        let leaving = if operation == "delete_me" { app.players(2).await } else { Vec::new() };
        let (some, other) = match leaving.as_slice() {
            [some, other] => (some, other),
            _ => (&stranger, &spectator),
        };
        let viewers =
            [("nobody", None), ("stranger", Some(some)), ("spectator", Some(other)), ("wrong seat", Some(wrong))];
        for ((who, player), (status, code)) in viewers.into_iter().zip(expected) {
            let before = app.game(&table.id, Some(creator)).await;
            let mut call = app.call(&method, &path).by_some(player);
            if let Some(body) = body(&operation, &format!("{operation} {who}"), &mv, &stranger.id) {
                call = call.json(&body);
            }
            let reply = call.send().await;
            assert_eq!(reply.status, *status, "{operation}, {who}: {}", reply.text());
            if *status >= 400 {
                assert_eq!(reply.json()["code"], *code, "{operation}, {who}");
                assert_eq!(app.game(&table.id, Some(creator)).await, before, "{operation}, {who}: it changed the game");
            }
            // Whatever it is, no hand but one's own is in it; the game is over once its player has resigned.
            let over = ["resign", "delete_me"].contains(&operation.as_str()) && who == "wrong seat";
            let hand = before["state"]["seats"][0]["hand"].as_array().unwrap();
            let shown = Value::from(hand.clone()).to_string();
            assert!(over || !reply.text().contains(&shown), "{operation}, {who}: another's hand");
        }
    }
}

#[test]
fn operations_that_are_not_covered_stand_in_the_list() {
    let covered = |id: &str| TABLE.iter().any(|(known, _)| *known == id);
    let missing: Vec<String> = operations().into_iter().map(|(id, ..)| id).filter(|id| !covered(id)).collect();
    let listed: Vec<&str> = include_str!("outsiders.txt").lines().collect();
    assert_eq!(missing, listed, "cover the new operation in the table (or strike what is covered now from the list)");
    let known: Vec<String> = operations().into_iter().map(|(id, ..)| id).collect();
    assert!(TABLE.iter().all(|(id, _)| known.iter().any(|other| other == id)), "the table has no other operations");
}
