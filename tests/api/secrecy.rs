//! Nobody sees what they may not. Whole games are played, and at every ply everybody looks at everything.
//!
//! What each viewer may see is computed here from the full state as the database holds it and from the visibility lines
//! of the rules, not by the server's own views: an answer must be exactly that, no more and no less.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tavola::rulesets::Viewer;
use tavola::rulesets::random::game_seed;
use tavola::rulesets::registry::RulesetId;

use crate::durability::{assert_replays_from_its_seed, stored};
use crate::helpers::{Player, TestApp};
use crate::play::{Chance, Table, seat_to_move};

/// Who laid each face-down card of a game of `leopard`: by owner of the square, cell, place in the stack.
type Laid = BTreeMap<(u64, u64, u64), u64>;

/// A game under watch.
struct Watch<'a> {
    app: &'a TestApp,
    table: Table,
    stranger: Player,
    laid: Laid,
    hand_number: Value,
}

/// A state as the viewer in that seat, or a spectator, may see it: of the full state hands but their own and cards that
/// lie face down are null; a face-down card in `leopard` is seen by the player who laid it.
fn redact(mut state: Value, viewer: Option<u64>, laid: &Laid) -> Value {
    for (seat, line) in (0..).zip(state["seats"].as_array_mut().expect("a state has seats")) {
        if viewer != Some(seat) {
            line["hand"] = Value::Null;
        }
        for (cell, stack) in (1..).zip(line.get_mut("square").and_then(Value::as_array_mut).into_iter().flatten()) {
            for (place, card) in (0..).zip(stack.as_array_mut().expect("a cell is a stack")) {
                let by = laid.get(&(seat, cell, place)).copied();
                assert_eq!(card["face"] == "down", by.is_some(), "just jacks and queens lie face down");
                if by.is_some() && by != viewer {
                    card["card"] = Value::Null;
                }
            }
        }
    }
    for slot in state.get_mut("sigil").and_then(Value::as_array_mut).into_iter().flatten() {
        if slot["face"] == "down" {
            slot["card"] = Value::Null;
        }
    }
    state
}

/// Whether this is the code of a jack or queen of `leopard`.
fn goes_face_down(card: &Value) -> bool {
    card.as_str().is_some_and(|code| code.len() == 2 && (code.starts_with('J') || code.starts_with('Q')))
}

/// A log entry as that viewer may see it: drawn and dealt cards are the drawer's, face-down cards are the layer's.
fn redact_entry(
    ruleset: RulesetId,
    mover: u64,
    mut mv: Value,
    mut events: Value,
    viewer: Option<u64>,
) -> (Value, Value) {
    let leopard = ruleset.meta().slug == "leopard";
    if leopard && mv["type"] == "lay" && goes_face_down(&mv["card"]) && viewer != Some(mover) {
        mv["card"] = Value::Null;
    }
    for event in events.as_array_mut().expect("events are a list") {
        let own = event["seat"].as_u64().is_some_and(|seat| viewer == Some(seat));
        match event["type"].as_str().expect("an event has a type") {
            "card_drawn" if !own => event["card"] = Value::Null,
            "hand_dealt" if !own => event["cards"] = Value::Null,
            "card_played" if !own && leopard && goes_face_down(&event["card"]) => event["card"] = Value::Null,
            _ => {}
        }
    }
    (mv, events)
}

/// A number of bytes in the alphabet of MIME, without padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let words = bits.chunks(6).map(|six| six.iter().fold(0, |word, bit| word << 1 | bit) << (6 - six.len()));
    words.map(|word| char::from(ALPHABET[usize::from(word)])).collect()
}

/// 32 bytes in every spelling that an answer could have.
fn spellings(bytes: &[u8]) -> Vec<String> {
    let code = base64(bytes);
    let decimal = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    vec![hex::encode(bytes), code.replace('+', "-").replace('/', "_"), code, decimal]
}

/// Forbids a game's seed, and the seed of its chance if its seats are final, in every spelling.
async fn forbid_seeds(app: &TestApp, game: &Value) {
    let id = uuid::Uuid::parse_str(game["id"].as_str().unwrap()).unwrap();
    let seed: Vec<u8> =
        sqlx::query_scalar("select server_seed from games where id = $1").bind(id).fetch_one(app.sql()).await.unwrap();
    let seats = game["seats"].as_array().unwrap().iter();
    let entropies = seats.map(|seat| seat["entropy"].as_str().unwrap());
    let seed: [u8; 32] = seed.try_into().unwrap();
    let chance = game_seed(&seed, &id.to_string(), game["ruleset"].as_str().unwrap(), entropies);
    for spelling in spellings(&seed).iter().chain(&spellings(&chance)) {
        app.forbid(spelling);
    }
}

impl<'a> Watch<'a> {
    async fn begin(app: &'a TestApp, slug: &str, options: &Value, seats: usize) -> Self {
        let table = app.table(slug, options, seats).await;
        let stranger = app.players(1).await.remove(0);
        forbid_seeds(app, &app.game(&table.id, None).await).await;
        Self { app, table, stranger, laid: Laid::new(), hand_number: Value::Null }
    }

    /// Everybody who looks: by seat, then a stranger, then nobody.
    fn viewers(&self) -> Vec<(Option<u64>, Option<&Player>)> {
        let seated = (0..).zip(&self.table.players).map(|(seat, player)| (Some(seat), Some(player)));
        seated.chain([(None, Some(&self.stranger)), (None, None)]).collect()
    }

    /// The full state, and who laid what is face down in it.
    async fn truth(&mut self) -> Value {
        let truth = serde_json::to_value(stored(self.app, &self.table).await.view(Viewer::Everything)).unwrap();
        if truth["hand_number"] != self.hand_number {
            self.hand_number = truth["hand_number"].clone();
            self.laid.clear();
        }
        truth
    }

    /// The log as the database holds it: number, seat, move, events.
    async fn raw_log(&self, after: usize) -> Vec<(i32, u64, Value, Value)> {
        let id = uuid::Uuid::parse_str(&self.table.id).unwrap();
        let rows: Vec<(i32, i16, Value, Value)> = sqlx::query_as(
            "select number, seat, move, events from moves where game_id = $1 and number > $2 order by number",
        )
        .bind(id)
        .bind(after as i32)
        .fetch_all(self.app.sql())
        .await
        .unwrap();
        rows.into_iter().map(|(number, seat, mv, events)| (number, seat as u64, mv, events)).collect()
    }

    /// Everybody looks at the game.
    async fn look(&mut self) {
        let truth = self.truth().await;
        let mut public = None;
        for (seat, player) in self.viewers() {
            let mut game = self.app.game(&self.table.id, player).await;
            self.check_game(&game, &truth, seat);
            // All but table and viewer is the same for everybody.
            game["state"] = Value::Null;
            game["viewer"] = Value::Null;
            assert_eq!(*public.get_or_insert_with(|| game.clone()), game);
        }
    }

    fn check_game(&self, game: &Value, truth: &Value, seat: Option<u64>) {
        assert_eq!(game["viewer"]["seat"].as_u64(), seat);
        assert_eq!(game["state"], redact(truth.clone(), seat, &self.laid), "seat {seat:?}");
        assert!(game["server_seed"].is_null());
    }

    /// Everybody looks at one entry of the log.
    async fn look_at_entry(&self, raw: &(i32, u64, Value, Value)) {
        let (number, mover, mv, events) = raw;
        for (seat, player) in self.viewers() {
            let path = self.table.path(&format!("/moves/{number}"));
            let entry = self.app.get(path).by_some(player).ok(200).await;
            let expected = redact_entry(self.table.ruleset, *mover, mv.clone(), events.clone(), seat);
            assert_eq!((entry["move"].clone(), entry["events"].clone()), expected, "seat {seat:?}");
            // The event that tells of it says the same, and what it changed is the game as this viewer is answered.
            let game = self.app.game(&self.table.id, player).await;
            let before = entry["version"].as_u64().unwrap() - 1;
            let path = self.table.path(&format!("/events?limit=1&after={before}"));
            let event = self.app.get(path).by_some(player).ok(200).await["items"][0].clone();
            assert_eq!((&event["type"], &event["move"]), (&json!("move_played"), &entry));
            assert_eq!(event["changes"]["state"], game["state"], "seat {seat:?}");
        }
    }

    /// Everybody, and one who has just come, reads the whole log and the list of games.
    async fn look_at_lists(&self) {
        let late = self.app.players(1).await.remove(0);
        let raw = self.raw_log(0).await;
        let mut summaries = Vec::new();
        for (seat, player) in self.viewers().into_iter().chain([(None, Some(&late))]) {
            let log = self.app.log(&self.table, player).await;
            assert_eq!(log.len(), raw.len());
            for (entry, (_, mover, mv, events)) in log.iter().zip(&raw) {
                let expected = redact_entry(self.table.ruleset, *mover, mv.clone(), events.clone(), seat);
                assert_eq!((entry["move"].clone(), entry["events"].clone()), expected, "seat {seat:?}");
            }
            summaries.push(self.app.get("/v1/games").by_some(player).ok(200).await);
        }
        assert!(summaries.windows(2).all(|two| two[0] == two[1]), "a list is the same for everybody");
    }

    /// What is refused says nothing of where cards are: a card that another holds is refused in the words in which one is
    /// that lies in the deck.
    async fn try_what_is_not_allowed(&mut self, mover: usize) {
        let truth = self.truth().await;
        let codes = self.table.ruleset.catalogue().cards.into_iter().map(|card| card.code);
        // Spirits are never in a hand.
        let codes: Vec<&str> = codes.filter(|code| !code.starts_with("spirit:")).collect();
        let hand = |seat: usize| truth["seats"][seat]["hand"].as_array().unwrap().clone();
        let own = hand(mover);
        let others: Vec<Value> = (0..self.table.players.len()).filter(|seat| *seat != mover).flat_map(hand).collect();
        let missing = codes.iter().map(|code| json!(code)).filter(|card| !own.contains(card));
        let (held, elsewhere): (Vec<Value>, Vec<Value>) = missing.partition(|card| others.contains(card));
        let tries = held.first().into_iter().chain(held.last()).chain(elsewhere.first()).chain(elsewhere.last());
        let mut told = BTreeMap::new();
        for card in tries {
            let mv = match self.table.ruleset.meta().slug {
                "leonardo" => json!({"type": "play", "card": card, "position": "center"}),
                "quintis-fontis" => json!({"type": "swap", "card": card, "x": 0, "y": 0}),
                "leopard" => json!({"type": "discard", "card": card}),
                _ => json!({"type": "capture", "spirit": "moon", "cards": [card, card, card]}),
            };
            for (_, player) in self.viewers() {
                let reply = self.app.post(self.table.path("/moves")).by_some(player).json(&mv).send().await;
                assert!(matches!(reply.status, 400 | 401 | 403 | 409 | 422), "{mv}: {}", reply.text());
                let mut problem = reply.json();
                problem["instance"] = Value::Null;
                let text = problem.to_string().replace(card.as_str().unwrap(), "CARD");
                let named = codes
                    .iter()
                    .find(|code| text.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == **code));
                assert!(named.is_none(), "a refusal names {named:?}: {problem}");
                let who = player.map(|player| player.id.clone());
                assert_eq!(*told.entry(who).or_insert_with(|| text.clone()), text, "for {mv}");
            }
        }
    }

    /// Plays a move and checks what the mover is answered.
    async fn play(&mut self, mover: usize, mv: &Value, number: usize) -> Value {
        let hand_number = self.hand_number.clone();
        let before = serde_json::to_value(stored(self.app, &self.table).await.view(Viewer::Everything)).unwrap();
        // The seed may be told with the last move; which one is that nobody knows before.
        let secrets = self.app.take_secrets();
        let answer = self.app.play(&self.table, &self.table.players[mover], mv).await.json();
        if answer["game"]["status"] == "finished" {
            return answer;
        }
        self.app.put_secrets(secrets, &answer);
        if self.table.ruleset.meta().slug == "leopard" && mv["type"] == "lay" && goes_face_down(&mv["card"]) {
            let owner = if mv["square"] == "own" { mover } else { 1 - mover };
            let cell = mv["cell"].as_u64().unwrap();
            let place = before["seats"][owner]["square"][cell as usize - 1].as_array().unwrap().len();
            self.laid.insert((owner as u64, cell, place as u64), mover as u64);
        }
        let truth = self.truth().await;
        assert!(hand_number.is_null() || hand_number == truth["hand_number"] || self.laid.is_empty());
        self.check_game(&answer["game"], &truth, Some(mover as u64));
        let raw = self.raw_log(number - 1).await.remove(0);
        let expected = redact_entry(self.table.ruleset, raw.1, raw.2.clone(), raw.3.clone(), Some(mover as u64));
        assert_eq!((answer["move"]["move"].clone(), answer["move"]["events"].clone()), expected);
        if number % 4 == 1 {
            self.look_at_entry(&raw).await;
        }
        answer
    }

    /// Now that it is over everything is open to everybody.
    async fn look_at_the_end(&mut self) {
        self.app.allow_all();
        let truth = self.truth().await;
        let raw = self.raw_log(0).await;
        for (seat, player) in self.viewers() {
            let game = self.app.game(&self.table.id, player).await;
            assert_eq!((&game["state"], game["viewer"]["seat"].as_u64()), (&truth, seat));
            assert!(game["server_seed"].is_string());
            let log = self.app.log(&self.table, player).await;
            assert!(log.iter().zip(&raw).all(|(entry, raw)| entry["move"] == raw.2 && entry["events"] == raw.3));
        }
        assert_replays_from_its_seed(self.app, &self.table).await;
    }
}

/// Plays a game under watch, to its end or until somebody resigns after so many moves.
async fn watch(app: &TestApp, slug: &str, options: &Value, seats: usize, seed: u64, resign_after: Option<usize>) {
    let mut watch = Watch::begin(app, slug, options, seats).await;
    let mut chance = Chance(seed);
    let mut game = app.game(&watch.table.id, None).await;
    for number in 1.. {
        watch.look().await;
        if resign_after.is_some_and(|most| number > most) {
            app.allow_all();
            // Of more than two all have to.
            let first = chance.below(seats);
            for place in 0..seats {
                let leaver = &watch.table.players[(first + place) % seats];
                let left = app.post(watch.table.path("/resignation")).by(leaver).ok(200).await;
                if left["status"] == "finished" {
                    break;
                }
            }
            break;
        }
        let mover = seat_to_move(&game).expect("the game goes on");
        if number % 20 == 2 {
            watch.look_at_lists().await;
        }
        if number % 8 == 1 {
            watch.try_what_is_not_allowed(mover).await;
        }
        let moves = app.legal_moves(&watch.table.id, &watch.table.players[mover]).await;
        // A hand that can be ended is ended: the next one is what is of interest then.
        let ending = moves.iter().find(|mv| mv["type"] == "end_hand");
        let mv = ending.unwrap_or_else(|| chance.pick(&moves)).clone();
        game = watch.play(mover, &mv, number).await["game"].clone();
        if game["status"] == "finished" {
            break;
        }
    }
    watch.look_at_the_end().await;
}

/// Games of a ruleset for all numbers of seats: to the end, but resigned after some moves where `whole` says no; and one
/// that is resigned soon.
async fn watch_all(slug: &str, options: impl Fn(usize) -> Value, whole: impl Fn(usize) -> bool) {
    let app = TestApp::new().await;
    let ruleset = RulesetId::from_slug(slug).expect("a ruleset");
    for seats in ruleset.meta().seats.clone() {
        let seats = usize::from(seats);
        let resigned = if whole(seats) { None } else { Some(16) };
        watch(&app, slug, &options(seats), seats, 100 + seats as u64, resigned).await;
    }
    watch(&app, slug, &json!({}), usize::from(*ruleset.meta().seats.end()), 200, Some(3)).await;
}

#[tokio::test]
async fn leonardo_shows_nobody_more_than_they_may_see() {
    // The deck of two players is shuffled anew after 52 draws.
    watch_all("leonardo", |seats| json!({"turn_limit": if seats == 2 { 56 } else { 12 }}), |_| true).await;
}

#[tokio::test]
async fn quintis_fontis_shows_nobody_more_than_they_may_see() {
    watch_all("quintis-fontis", |seats| json!({"turn_limit": if seats == 2 { 40 } else { 12 }}), |_| true).await;
}

#[tokio::test]
async fn leopard_shows_nobody_more_than_they_may_see() {
    watch_all("leopard", |_| json!({"hands": 1}), |_| true).await;
}

#[tokio::test]
async fn siggil_shows_nobody_more_than_they_may_see() {
    // Its games have no option that makes them short: alone and with three to the end.
    let layout = |seats| if seats == 1 { json!({"layout": "turtle"}) } else { json!({}) };
    watch_all("siggil", layout, |seats| matches!(seats, 1 | 3)).await;
}

#[tokio::test]
async fn every_ruleset_is_watched() {
    let watched = ["leonardo", "quintis-fontis", "leopard", "siggil"];
    assert!(RulesetId::ALL.iter().all(|ruleset| watched.contains(&ruleset.meta().slug)), "watch the new one too");
}

#[tokio::test]
async fn hands_of_a_match_that_are_over_stay_hidden_until_the_match_ends() {
    let app = TestApp::new().await;
    // Two hands: moves are quick, and everybody looks only now and then.
    let mut watch = Watch::begin(&app, "leopard", &json!({"hands": 2}), 2).await;
    let mut chance = Chance(77);
    let mut hands = 1;
    let mut after = 0;
    while after < 3 {
        let game = app.game(&watch.table.id, None).await;
        let mover = seat_to_move(&game).expect("the match goes on");
        let moves = app.legal_moves(&watch.table.id, &watch.table.players[mover]).await;
        // Jacks and queens first.
        let hidden = moves.iter().find(|mv| mv["type"] == "lay" && goes_face_down(&mv["card"]));
        let mv =
            hidden.or(moves.iter().find(|mv| mv["type"] == "end_hand")).unwrap_or_else(|| chance.pick(&moves)).clone();
        app.play(&watch.table, &watch.table.players[mover], &mv).await;
        let hand = app.game(&watch.table.id, None).await["state"]["hand_number"].as_u64().unwrap();
        after += usize::from(hand == 2);
        hands = hands.max(hand);
    }
    let laid =
        watch.raw_log(0).await.iter().filter(|raw| raw.2["type"] == "lay" && goes_face_down(&raw.2["card"])).count();
    assert!(hands == 2 && laid > 0);
    watch.look_at_lists().await;
    app.allow_all();
    app.post(watch.table.path("/resignation")).by(&watch.table.players[0]).expect(200).await;
    watch.look_at_the_end().await;
}

#[tokio::test]
async fn a_game_that_has_not_started_never_shows_its_seed() {
    let app = TestApp::new().await;
    let [ada, bo] = app.players(2).await.try_into().unwrap();
    let stranger = app.register("Eve").await;
    for ruleset in RulesetId::ALL {
        let seats = ruleset.meta().seats.end();
        let game = app.create(&ada, &json!({"ruleset": ruleset.meta().slug, "seats": seats, "entropy": "x"})).await;
        forbid_seeds(&app, &game).await;
        let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
        let look = async || {
            for player in [None, Some(&ada), Some(&bo), Some(&stranger)] {
                let seen = app.get(&path).by_some(player).ok(200).await;
                assert!(seen["server_seed"].is_null() && seen["state"].is_null() && seen["outcome"].is_null());
                assert_eq!(seen["commitment"], game["commitment"], "the commitment stays from the first answer on");
                app.get("/v1/games").by_some(player).expect(200).await;
                app.get(format!("{path}/moves")).by_some(player).expect(200).await;
            }
        };
        look().await;
        if *seats > 2 {
            app.post(format!("{path}/seats")).by(&bo).expect(201).await;
            look().await;
            app.call("DELETE", format!("{path}/seats/me")).by(&bo).expect(200).await;
        }
        // Called off before it was dealt, it has nothing to prove, and its seed stays secret.
        let gone = app.call("DELETE", format!("{path}/seats/me")).by(&ada).ok(200).await;
        assert_eq!(gone["status"], "aborted");
        look().await;
    }
}

#[tokio::test]
async fn asking_for_another_view_gives_ones_own() {
    let app = TestApp::new().await;
    let table = app.table("leonardo", &json!({}), 2).await;
    let own = app.game(&table.id, Some(&table.players[0])).await;
    let nobodys = app.game(&table.id, None).await;
    assert_ne!(own["state"], nobodys["state"]);
    for query in ["viewer=1", "seat=1", "perspective=all", "perspective=1", "viewer=everything", "as=1", "token=x"] {
        let asked = app.get(table.path(&format!("?{query}"))).by(&table.players[0]).send().await;
        assert!(asked.status == 400 || asked.json() == own, "{query}");
        let asked = app.get(table.path(&format!("?{query}"))).send().await;
        assert!(asked.status == 400 || asked.json() == nobodys, "{query}");
        let asked = app.get(table.path(&format!("/legal-moves?{query}"))).by(&table.players[0]).send().await;
        assert!(asked.status == 400 || asked.json()["seat"] == 0, "{query}");
    }
    for (name, value) in [("x-seat", "1"), ("x-player", table.players[1].id.as_str()), ("x-forwarded-user", "admin")] {
        assert_eq!(app.get(table.path("")).header(name, value).ok(200).await, nobodys);
    }
}

#[tokio::test]
async fn a_player_who_left_is_a_stranger() {
    let app = TestApp::new().await;
    let [ada, bo, cy] = app.players(3).await.try_into().unwrap();
    let game = app.create(&ada, &json!({"ruleset": "leonardo", "seats": 3})).await;
    let path = format!("/v1/games/{}", game["id"].as_str().unwrap());
    app.post(format!("{path}/seats")).by(&bo).expect(201).await;
    app.call("DELETE", format!("{path}/seats/me")).by(&ada).expect(200).await;
    app.post(format!("{path}/seats")).by(&cy).expect(201).await;
    app.post(format!("{path}/start")).by(&bo).expect(200).await;
    let seen = app.get(&path).by(&ada).ok(200).await;
    assert!(seen["viewer"]["seat"].is_null());
    assert!(seen["state"]["seats"].as_array().unwrap().iter().all(|seat| seat["hand"].is_null()));
    app.get(format!("{path}/legal-moves")).by(&ada).refused(403, "not-seated").await;
}
