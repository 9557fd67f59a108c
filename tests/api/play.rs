//! Whole games over HTTP, with moves taken at random.

use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;
use tavola::workers::clocks;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::helpers::{Player, Reply, TestApp};

/// A choice that is the same in every run (SplitMix64).
pub struct Chance(pub u64);

impl Chance {
    /// A number from 0 to `n` − 1.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A game that has begun.
pub struct Table {
    pub id: String,
    pub ruleset: RulesetId,
    /// By seat.
    pub players: Vec<Player>,
}

impl Table {
    /// Its URL and what follows.
    pub fn path(&self, rest: &str) -> String {
        format!("/v1/games/{}{rest}", self.id)
    }
}

/// Short games for tests that are not about what is in them.
pub fn short(slug: &str) -> Value {
    match slug {
        "leonardo" | "quintis-fontis" => json!({"turn_limit": 12}),
        "leopard" => json!({"hands": 1}),
        _ => json!({}),
    }
}

impl TestApp {
    /// Begins a game of so many players, who are registered for it.
    pub async fn table(&self, slug: &str, options: &Value, seats: usize) -> Table {
        let players = self.players(seats).await;
        self.table_of(slug, options, players).await
    }

    /// Begins a game of these players, in this order.
    pub async fn table_of(&self, slug: &str, options: &Value, players: Vec<Player>) -> Table {
        self.table_like(&json!({"ruleset": slug, "options": options, "entropy": "sesame"}), players).await
    }

    /// Begins a game like that, with as many seats as there are players, who sit in this order.
    pub async fn table_like(&self, wanted: &Value, players: Vec<Player>) -> Table {
        let mut wanted = wanted.clone();
        wanted["seats"] = json!(players.len());
        let mut game = self.create(&players[0], &wanted).await;
        let id = game["id"].as_str().expect("a game has an id").to_owned();
        let code = game["invite"].as_str().map_or(json!({}), |code| json!({"invite": code}));
        for player in &players[1..] {
            game = self.post(format!("/v1/games/{id}/seats")).by(player).json(&code).ok(201).await;
        }
        assert_eq!(game["status"], "active", "{game}");
        Table { id, ruleset: ruleset(wanted["ruleset"].as_str().unwrap_or_default()), players }
    }

    /// Creates a game that waits for players; its path.
    pub async fn open(&self, creator: &Player, game: &Value) -> String {
        let game = self.create(creator, game).await;
        assert_eq!(game["status"], "open", "{game}");
        format!("/v1/games/{}", game["id"].as_str().expect("a game has an id"))
    }

    /// Does what is due in all games, as servers do each second; of how many that was.
    pub async fn attend(&self) -> u64 {
        clocks::attend_all(&self.store).await.expect("the database answers")
    }

    /// Sets a game's deadline so that it has just passed.
    pub async fn let_time_run_out(&self, id: &str) {
        let sql = "update positions set due_at = past, check_at = past from (values (now() - interval '1 microsecond')) as t (past)
                   where game_id = $1 and due_at is not null";
        let id = uuid::Uuid::parse_str(id).expect("an id is a UUID");
        let done = sqlx::query(sql).bind(id).execute(self.sql()).await.unwrap();
        assert_eq!(done.rows_affected(), 1, "the game has a deadline");
    }

    /// Plays at random until the game is over, bots included; the game as everybody sees it.
    pub async fn play_with_bots_to_the_end(&self, table: &Table, seed: u64) -> Value {
        let mut chance = Chance(seed);
        for _ in 0..4_000 {
            self.attend().await;
            let game = self.game(&table.id, None).await;
            let Some(seat) = seat_to_move(&game) else { return game };
            let moves = self.legal_moves(&table.id, &table.players[seat]).await;
            self.play(table, &table.players[seat], chance.pick(&moves)).await;
        }
        panic!("the game ends")
    }

    /// The seat to move; none when the game is over.
    pub async fn to_move(&self, table: &Table) -> Option<usize> {
        seat_to_move(&self.game(&table.id, table.players.first()).await)
    }

    /// The player to move and one who is not.
    pub async fn mover_and_other<'a>(&self, table: &'a Table) -> (&'a Player, &'a Player) {
        let seat = self.to_move(table).await.expect("the game is active");
        (&table.players[seat], &table.players[(seat + 1) % table.players.len()])
    }

    pub async fn play(&self, table: &Table, player: &Player, mv: &Value) -> Reply {
        self.post(table.path("/moves")).by(player).json(mv).expect(201).await
    }

    /// Plays one random move of whoever's turn it is.
    pub async fn play_one(&self, table: &Table, chance: &mut Chance) -> Reply {
        let (mover, _) = self.mover_and_other(table).await;
        let moves = self.legal_moves(&table.id, mover).await;
        self.play(table, mover, chance.pick(&moves)).await
    }

    /// Plays at random until the game is over or so many moves have been made; the game as its last mover sees it.
    pub async fn play_random(&self, table: &Table, seed: u64, most: usize) -> Value {
        let mut chance = Chance(seed);
        let mut game = self.game(&table.id, Some(&table.players[0])).await;
        for _ in 0..most {
            let Some(seat) = seat_to_move(&game) else { break };
            let mover = &table.players[seat];
            let moves = self.legal_moves(&table.id, mover).await;
            game = self.play(table, mover, chance.pick(&moves)).await.json()["game"].clone();
        }
        game
    }

    /// Plays a random game to its end.
    pub async fn play_to_the_end(&self, table: &Table, seed: u64) -> Value {
        let game = self.play_random(table, seed, 2_000).await;
        assert_eq!(game["status"], "finished", "the game ends");
        game
    }

    /// The types of a game's events, in order.
    pub async fn kinds(&self, id: &str, viewer: Option<&Player>) -> Vec<String> {
        let events = self.events(id, viewer, 100).await;
        events.iter().map(|event| event["type"].as_str().expect("an event has a type").to_owned()).collect()
    }

    /// The whole log as this player, or nobody, sees it.
    pub async fn log(&self, table: &Table, viewer: Option<&Player>) -> Vec<Value> {
        let mut items = Vec::new();
        let mut after = Value::from(0);
        while !after.is_null() {
            let page = self.get(table.path(&format!("/moves?limit=100&after={after}"))).by_some(viewer).ok(200).await;
            items.extend(page["items"].as_array().expect("a page has items").iter().cloned());
            after = page["next_after"].clone();
        }
        items
    }
}

/// The seat to move of a game.
pub fn seat_to_move(game: &Value) -> Option<usize> {
    game["to_move"]["seat"].as_u64().map(|seat| seat as usize)
}

/// The ruleset of that slug.
pub fn ruleset(slug: &str) -> RulesetId {
    RulesetId::from_slug(slug).expect("a ruleset")
}

/// An instant of an answer in microseconds since 1970.
pub fn micros(instant: &Value) -> i64 {
    let text = instant.as_str().unwrap_or_else(|| panic!("{instant} is no instant"));
    let nanos = OffsetDateTime::parse(text, &Rfc3339).expect("an instant is RFC 3339").unix_timestamp_nanos();
    assert_eq!(nanos % 1_000, 0, "{instant}: the database keeps microseconds");
    i64::try_from(nanos / 1_000).expect("an instant of our days")
}
