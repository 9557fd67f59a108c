//! Readers of event streams.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::checks;
use crate::helpers::{Call, Player, TestApp};

/// In which form a stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    ServerSent,
    Lines,
}

impl Form {
    pub const BOTH: [Form; 2] = [Form::ServerSent, Form::Lines];

    fn accept(self) -> &'static str {
        match self {
            Form::ServerSent => "text/event-stream",
            Form::Lines => "application/x-ndjson",
        }
    }
}

/// An open stream.
pub struct Stream {
    form: Form,
    path: String,
    response: reqwest::Response,
    buffer: String,
}

impl Stream {
    /// The next event; none once the server has ended the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.take() {
                checks::part_of_stream("GET", &self.path, self.form.accept(), &event);
                return Some(event);
            }
            let chunk = tokio::time::timeout(Duration::from_secs(50), self.response.chunk());
            let chunk = chunk.await.expect("a stream is never silent for so long").ok().flatten()?;
            self.buffer += std::str::from_utf8(&chunk).expect("events are sent whole");
        }
    }

    /// So many events.
    pub async fn some(&mut self, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.next().await.expect("the stream goes on"));
        }
        events
    }

    /// Events up to and with the first of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.next().await.expect("the stream goes on"));
            if events.last().is_some_and(|event| event["type"] == kind) {
                return events;
            }
        }
    }

    /// An event that has arrived whole; heartbeats are no events.
    fn take(&mut self) -> Option<Value> {
        match self.form {
            Form::Lines => loop {
                let (line, rest) = self.buffer.split_once('\n')?;
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.buffer = rest;
                if !line.is_empty() {
                    return Some(serde_json::from_str(&line).expect("a line is JSON"));
                }
            },
            Form::ServerSent => loop {
                let (block, rest) = self.buffer.split_once("\n\n")?;
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.buffer = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
                let Some(data) = field("data: ") else { continue };
                let event: Value = serde_json::from_str(&data).expect("data is JSON");
                assert_eq!(field("id: ").as_deref(), event["id"].as_str());
                assert_eq!(field("event: ").as_deref(), event["type"].as_str());
                return Some(event);
            },
        }
    }
}

impl Call<'_> {
    /// Opens a stream.
    pub async fn stream(self, form: Form) -> Stream {
        let path = self.path().to_owned();
        let response = self.header("accept", form.accept()).open().await;
        assert_eq!(response.status().as_u16(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with(form.accept()), "{kind}");
        assert!(!response.headers().contains_key("content-encoding"), "a stream is not held back to be compressed");
        Stream { form, path, response, buffer: String::new() }
    }
}

impl TestApp {
    /// Opens the stream of a game, after the event with this id or from the present on.
    pub async fn follow(&self, game: &str, viewer: Option<&Player>, after: Option<&str>, form: Form) -> Stream {
        let call = self.get(format!("/v1/games/{game}/events")).by_some(viewer);
        match after {
            Some(id) => call.header("last-event-id", id).stream(form).await,
            None => call.stream(form).await,
        }
    }

    /// All events of a game as pages have them.
    pub async fn events(&self, game: &str, viewer: Option<&Player>, limit: usize) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let after =
                events.last().map_or(String::new(), |event| format!("&after={}", event["id"].as_str().unwrap()));
            let path = format!("/v1/games/{game}/events?limit={limit}{after}");
            let page = self.get(path).by_some(viewer).ok(200).await;
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= limit);
            events.extend(items.iter().cloned());
            if page["next_after"].is_null() {
                return events;
            }
            assert_eq!(page["next_after"], items.last().unwrap()["id"]);
        }
    }
}

/// A client that does as the documentation says: takes snapshots as they are and puts changes over what it has.
#[derive(Default)]
pub struct Folded {
    pub games: BTreeMap<String, Map<String, Value>>,
}

impl Folded {
    pub fn take(&mut self, event: &Value) {
        let members = |value: &Value| value.as_object().expect("an object").clone();
        match event["type"].as_str().expect("an event has a type") {
            "resync" => self.games.clear(),
            "snapshot" => {
                let games = event["games"].as_array().into_iter().flatten().chain(event.get("game"));
                for game in games {
                    self.games.insert(game["id"].as_str().unwrap().to_owned(), members(game));
                }
            }
            _ => {
                if let (Some(id), Some(changes)) = (event["game_id"].as_str(), event.get("changes")) {
                    self.games.entry(id.to_owned()).or_default().extend(members(changes));
                }
            }
        }
    }

    pub fn game(&self, id: &str) -> Value {
        self.games.get(id).cloned().map_or(Value::Null, Value::Object)
    }
}
