//! Whole games over HTTP, with moves taken at random.

use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;

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
        let wanted = json!({"ruleset": slug, "options": options, "seats": players.len(), "entropy": "sesame"});
        let mut game = self.create(&players[0], &wanted).await;
        let id = game["id"].as_str().expect("a game has an id").to_owned();
        for player in &players[1..] {
            game = self.join(&id, player).await;
        }
        assert_eq!(game["status"], "active", "{game}");
        Table { id, ruleset: RulesetId::from_slug(slug).expect("a ruleset"), players }
    }

    /// The seat to move as everybody sees it; none when the game is over.
    pub async fn to_move(&self, table: &Table) -> Option<usize> {
        seat_to_move(&self.game(&table.id, None).await)
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
