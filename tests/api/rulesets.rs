//! The catalogue: rulesets in both languages, and a client that knows nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tavola::rulesets::registry::RulesetId;

use crate::helpers::{Player, TestApp};
use crate::play::Chance;

fn texts<'a>(value: &'a Value, member: &str) -> BTreeSet<&'a str> {
    value.as_array().expect("a list").iter().map(|item| item[member].as_str().expect("a text")).collect()
}

#[tokio::test]
async fn the_list_has_every_ruleset_in_the_language_that_is_preferred() {
    let app = TestApp::new().await;
    let plain = app.get("/v1/rulesets").expect(200).await;
    assert_eq!(
        (plain.header("content-language"), plain.header("vary").map(|v| v.contains("Accept-Language"))),
        (Some("en"), Some(true))
    );
    let slugs: BTreeSet<&str> = RulesetId::ALL.iter().map(|id| id.meta().slug).collect();
    assert_eq!(texts(&plain.json()["items"], "slug"), slugs);
    for (accepted, language) in [
        ("ru", "ru"),
        ("de, ru;q=0.5, en;q=0.1", "ru"),
        ("en-GB, ru;q=0.9", "en"),
        ("ru-RU", "ru"),
        ("fr", "en"),
        ("*", "en"),
        ("???", "en"),
    ] {
        let reply = app.get("/v1/rulesets").header("accept-language", accepted).expect(200).await;
        assert_eq!(reply.header("content-language"), Some(language), "{accepted}");
        let cyrillic = reply.text().contains("Загадка Леонардо");
        assert_eq!(cyrillic, language == "ru", "{accepted}");
    }
    // What the URL says goes before what the browser prefers.
    let asked = app.get("/v1/rulesets?lang=ru").header("accept-language", "en").expect(200).await;
    assert_eq!(asked.header("content-language"), Some("ru"));
    for query in ["lang=de", "lang=", "language=ru"] {
        app.get(format!("/v1/rulesets?{query}")).refused(400, "invalid-parameter").await;
    }
}

#[tokio::test]
async fn a_ruleset_tells_everything_in_both_languages() {
    let app = TestApp::new().await;
    for ruleset in RulesetId::ALL {
        let meta = ruleset.meta();
        let path = format!("/v1/rulesets/{}", meta.slug);
        let en = app.get(path.as_str()).ok(200).await;
        let ru = app.get(format!("{path}?lang=ru")).ok(200).await;
        assert_eq!((&en["language"], &ru["language"]), (&json!("en"), &json!("ru")));
        assert_eq!(en["seats"], json!({"min": meta.seats.start(), "max": meta.seats.end()}));
        assert!(en["rules"].as_str().unwrap().len() > 2_000 && ru["rules"].as_str().unwrap().len() > 2_000);
        let russian = |value: &Value| value.as_str().unwrap().chars().any(|c| ('а'..='я').contains(&c));
        assert!(russian(&ru["name"]) && russian(&ru["summary"]) && russian(&ru["rules"]), "{ru}");
        assert!(ru["end_reasons"].as_array().unwrap().iter().all(|reason| russian(&reason["name"])));
        // All but the words is the same.
        assert_eq!(texts(&en["cards"], "code"), texts(&ru["cards"], "code"));
        for kind in ["options_schema", "move_schema"] {
            assert_eq!(en[kind], ru[kind]);
            assert_eq!(en[kind]["$schema"], "https://json-schema.org/draft/2020-12/schema");
            jsonschema::meta::validate(&en[kind]).unwrap_or_else(|error| panic!("{kind} of {path}: {error}"));
        }
        // What a card shows is a term, and every name is there.
        let terms: BTreeSet<&str> =
            en["terms"].as_object().unwrap().values().flat_map(|terms| texts(terms, "code")).collect();
        for card in en["cards"].as_array().unwrap() {
            let shown = card["shows"].as_object().unwrap().values().map(|code| code.as_str().unwrap());
            assert!(shown.into_iter().all(|code| terms.contains(code)), "{card}");
            assert!(!card["name"].as_str().unwrap().is_empty() && card["copies"].as_u64().unwrap() > 0);
        }
        for (name, options) in [("default", json!({})), ("unknown", json!({"no_such_option": 1}))] {
            let validator = jsonschema::validator_for(&en["options_schema"]).unwrap();
            assert_eq!(validator.is_valid(&options), name == "default", "{path}: {name}");
        }
    }
    app.get("/v1/rulesets/chess").refused(404, "not-found").await;
    app.get("/v1/rulesets/LEOPARD").refused(404, "not-found").await;
}

/// A client without a word about any ruleset. What it knows of a game it has read from the catalogue.
struct GenericClient {
    moves: jsonschema::Validator,
    /// Names by code, of cards, terms and layouts.
    names: std::collections::BTreeMap<String, String>,
    cards: BTreeSet<String>,
}

impl GenericClient {
    fn new(ruleset: &Value) -> Self {
        let mut names = std::collections::BTreeMap::new();
        let mut learn = |items: &Value| {
            for item in items.as_array().unwrap() {
                let text = |member: &str| item[member].as_str().unwrap().to_owned();
                names.insert(text("code"), text("name"));
            }
        };
        ruleset["terms"].as_object().unwrap().values().for_each(&mut learn);
        learn(&ruleset["cards"]);
        learn(&ruleset["layouts"]);
        let cards = texts(&ruleset["cards"], "code").into_iter().map(str::to_owned).collect();
        Self { moves: jsonschema::validator_for(&ruleset["move_schema"]).unwrap(), names, cards }
    }

    /// Draws a state: every card, face up or hidden, with its name; other texts as they are. Answers the drawing and how many
    /// cards it shows.
    fn draw(&self, state: &Value, indent: usize, drawing: &mut String) -> usize {
        match state {
            Value::Array(items) => items.iter().map(|item| self.draw(item, indent + 1, drawing)).sum(),
            Value::Object(members) => {
                let mut shown = 0;
                for (name, member) in members {
                    drawing.push_str(&format!("\n{:indent$}{name}: ", ""));
                    shown += self.draw(member, indent + 1, drawing);
                }
                shown
            }
            Value::String(code) => {
                // A kind of thing before a colon is not a name of its own.
                let name = self.names.get(code).or_else(|| self.names.get(code.rsplit(':').next()?));
                drawing.push_str(name.unwrap_or(code));
                drawing.push(' ');
                usize::from(self.cards.contains(code))
            }
            Value::Null => {
                drawing.push_str("? ");
                0
            }
            other => {
                drawing.push_str(&format!("{other} "));
                0
            }
        }
    }

    /// Plays a game to its end; answers how many moves it took.
    async fn play(&self, app: &TestApp, players: &[Player], slug: &str, seed: u64) -> u64 {
        let wanted = json!({"ruleset": slug, "seats": players.len()});
        let mut game = app.create(&players[0], &wanted).await;
        let id = game["id"].as_str().unwrap().to_owned();
        for player in &players[1..] {
            game = app.join(&id, player).await;
        }
        let mut chance = Chance(seed);
        while let Some(seat) = game["to_move"]["seat"].as_u64() {
            let me = &players[seat as usize];
            let moves = app.legal_moves(&id, me).await;
            for mv in &moves {
                assert!(self.moves.is_valid(mv), "the schema does not know {mv}");
            }
            let answer = app.post(format!("/v1/games/{id}/moves")).by(me).json(chance.pick(&moves)).ok(201).await;
            game = answer["game"].clone();
            let mut drawing = String::new();
            let shown = self.draw(&game["state"], 0, &mut drawing);
            assert!(shown > 0 || game["status"] != "active", "nothing to see: {drawing}");
        }
        assert_eq!(game["status"], "finished");
        game["moves_count"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn one_generic_client_plays_every_ruleset_to_its_end() {
    let app = TestApp::new().await;
    let list = app.get("/v1/rulesets").ok(200).await;
    for summary in list["items"].as_array().unwrap() {
        let slug = summary["slug"].as_str().unwrap();
        let ruleset = app.get(format!("/v1/rulesets/{slug}?lang=ru")).ok(200).await;
        let client = GenericClient::new(&ruleset);
        let longest = ruleset["longest_game"].as_u64().unwrap();
        let (fewest, most) = (ruleset["seats"]["min"].as_u64().unwrap(), ruleset["seats"]["max"].as_u64().unwrap());
        for seats in BTreeSet::from([fewest, most]) {
            let players = app.players(seats as usize).await;
            let moves = client.play(&app, &players, slug, seats).await;
            assert!((1..=longest).contains(&moves), "{slug}: {moves} moves");
        }
    }
}
