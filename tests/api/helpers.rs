//! A server with a database of its own, and a client that checks every answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use serde_json::{Value, json};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};
use tavola::app::Application;
use tavola::http::Limits;
use tavola::store::Store;
use tavola::webhook::Targets;

use crate::asked::Asked;
use crate::checks;
use crate::database::{self, BACKGROUND};

/// A page somewhere else, as a browser tells it.
pub const ORIGIN: &str = "https://client.example";

/// An account of a test.
#[derive(Clone, Debug)]
pub struct Player {
    pub id: String,
    pub name: String,
    pub token: String,
}

/// A running server. Dropping it stops the server and drops its database, in the background.
pub struct TestApp {
    pub addr: SocketAddr,
    /// The server's own store.
    pub store: Store,
    options: PgConnectOptions,
    owns_database: bool,
    sql: PgPool,
    handle: ServerHandle,
    client: reqwest::Client,
    /// What no answer may contain now.
    secrets: Mutex<Vec<String>>,
}

impl TestApp {
    pub async fn new() -> Self {
        Self::with(1, 6).await
    }

    /// A server with so many threads and connections.
    pub async fn with(threads: usize, connections: u32) -> Self {
        Self::serve(database::create().await, true, threads, connections, Limits::none(), Targets::new(false)).await
    }

    /// A server that limits what its clients may ask; the others do not.
    pub async fn limited(limits: Limits) -> Self {
        Self::serve(database::create().await, true, 1, 6, limits, Targets::new(false)).await
    }

    /// A server whose webhooks may have these addresses.
    pub async fn with_targets(targets: Targets) -> Self {
        Self::serve(database::create().await, true, 1, 6, Limits::none(), targets).await
    }

    /// Has clocks run however long a test takes: nobody here gives signs of life each second, as servers do of themselves.
    pub async fn keep_alive(&self) {
        // Over a connection that ends at once: some tests wait until nobody is connected.
        let mut connection = PgConnection::connect_with(&self.options).await.unwrap();
        let sql = "update heartbeats set at = now() + interval '1 day'";
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Another server on the same database.
    pub async fn another(&self) -> Self {
        Self::serve(self.options.clone(), false, 1, 6, Limits::none(), Targets::new(false)).await
    }

    async fn serve(
        options: PgConnectOptions,
        owns_database: bool,
        threads: usize,
        connections: u32,
        limits: Limits,
        targets: Targets,
    ) -> Self {
        let store = Store::open(options.clone(), connections);
        let server_store = store.clone();
        let started = BACKGROUND.spawn(async move {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let application =
                Application::build(server_store, limits, targets, listener, Some(threads)).expect("the server starts");
            let (addr, handle) = (application.addr(), application.handle());
            tokio::spawn(application.run());
            (addr, handle)
        });
        let (addr, handle) = started.await.expect("the server starts");
        // The client wants to know who does TLS, although it does none here: it trusts nobody either.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Nothing here takes long; a test that waits for ever tells less than one that fails.
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(60))
            // The server hangs up after five seconds in which it is asked nothing; checking an answer can take long.
            .pool_idle_timeout(Duration::from_secs(2))
            .build()
            .expect("a client needs nothing");
        let sql = PgPoolOptions::new().max_connections(2).connect_lazy_with(options.clone());
        let app = Self { addr, store, options, owns_database, sql, handle, client, secrets: Mutex::default() };
        if owns_database {
            app.keep_alive().await;
        }
        app
    }

    /// How to connect to its database.
    pub fn database(&self) -> &PgConnectOptions {
        &self.options
    }

    /// A pool of the test's own, to arrange by SQL.
    pub fn sql(&self) -> &PgPool {
        &self.sql
    }

    /// From now on no answer may contain this.
    pub fn forbid(&self, secret: &str) {
        self.secrets.lock().unwrap().push(secret.to_lowercase());
    }

    /// Everything may be said again.
    pub fn allow_all(&self) {
        self.secrets.lock().unwrap().clear();
    }

    pub fn call(&self, method: &str, path: impl Into<String>) -> Call<'_> {
        Call { app: self, method: method.to_owned(), path: path.into(), headers: Vec::new(), body: None, fault: false }
    }

    /// Allows everything for one request that may rightly tell it; [`TestApp::put_secrets`] forbids it again.
    pub fn take_secrets(&self) -> Vec<String> {
        std::mem::take(&mut self.secrets.lock().unwrap())
    }

    /// Forbids again what was allowed, in what has been answered too.
    pub fn put_secrets(&self, secrets: Vec<String>, answered: &Value) {
        let answered = answered.to_string().to_lowercase();
        assert!(secrets.iter().all(|secret| !answered.contains(secret)), "a secret is out: {answered}");
        *self.secrets.lock().unwrap() = secrets;
    }

    pub fn get(&self, path: impl Into<String>) -> Call<'_> {
        self.call("GET", path)
    }

    pub fn post(&self, path: impl Into<String>) -> Call<'_> {
        self.call("POST", path)
    }

    /// Sends bytes as they are over a connection of their own; answers what comes back. For what no client library sends.
    pub async fn raw(&self, request: Vec<u8>, method: &str, path: &str) -> Reply {
        let addr = self.addr;
        let asked = request.clone();
        let exchange = move || {
            let mut stream = TcpStream::connect(addr).expect("the server listens");
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            // A server that refuses early may stop reading.
            let _ = stream.write_all(&request);
            let mut answer = Vec::new();
            let mut part = [0; 4096];
            // To the end of the body: a server that has not read all of the request is slow to hang up.
            while let Ok(read @ 1..) = stream.read(&mut part) {
                answer.extend(&part[..read]);
                if is_whole(&answer) {
                    break;
                }
            }
            answer
        };
        let answer = tokio::task::spawn_blocking(exchange).await.unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head") + 4;
        let head = String::from_utf8(answer[..end].to_vec()).expect("a head is text");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|word| word.parse().ok());
        let mut headers = reqwest::header::HeaderMap::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').expect("a header has a colon");
            let name = reqwest::header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.trim().parse().unwrap());
        }
        let reply = Reply { status: status.expect("an answer has a status"), headers, bytes: answer[end..].to_vec() };
        let (headers, body) = parts(&asked);
        let asked = Asked { method, path, headers: &headers, body: Some(body) };
        checks::every_answer(&reply, &asked, false);
        reply
    }

    /// The one value of a statement.
    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.sql).await.unwrap()
    }
}

/// The headers and the body of a request as it is sent, as far as they can be read.
fn parts(request: &[u8]) -> (Vec<(String, Vec<u8>)>, &[u8]) {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
    let (head, body) = request.split_at(end);
    let head = String::from_utf8_lossy(head);
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.trim().as_bytes().to_vec())).collect();
    (headers, body.strip_prefix(b"\r\n\r\n").unwrap_or_default())
}

/// Whether bytes are an answer with all of the body that its head tells of.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}

impl Drop for TestApp {
    fn drop(&mut self) {
        let (handle, store, options) = (self.handle.clone(), self.store.clone(), self.options.clone());
        let owns_database = self.owns_database;
        BACKGROUND.spawn(async move {
            store.close_streams();
            handle.stop(false).await;
            store.close().await;
            if owns_database {
                database::drop(&options).await;
            }
        });
    }
}

/// A request in the making.
pub struct Call<'a> {
    app: &'a TestApp,
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
    fault: bool,
}

impl<'a> Call<'a> {
    /// With the token of this player.
    pub fn by(self, player: &Player) -> Self {
        self.token(&player.token)
    }

    /// With the token of this player, or with none.
    pub fn by_some(self, player: Option<&Player>) -> Self {
        match player {
            Some(player) => self.by(player),
            None => self,
        }
    }

    pub fn token(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With an Idempotency-Key.
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// With an If-Match of that version.
    pub fn at(self, version: u64) -> Self {
        self.header("if-match", format!("\"{version}\""))
    }

    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    /// With a body that is called JSON, whatever it is.
    pub fn text(self, body: impl Into<Vec<u8>>) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// With a body of no said type.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// A 500 is what the test is about.
    pub fn expecting_a_fault(mut self) -> Self {
        self.fault = true;
        self
    }

    /// Where it goes, with its query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sends it and does not wait for the answer's body, which may have no end.
    pub async fn open(&self) -> reqwest::Response {
        self.request().send().await.expect("the server answers")
    }

    fn request(&self) -> reqwest::RequestBuilder {
        let url = format!("http://{}{}", self.app.addr, self.path);
        let method = reqwest::Method::from_bytes(self.method.as_bytes()).unwrap();
        let mut request = self.app.client.request(method, url).header("origin", ORIGIN);
        for (name, value) in &self.headers {
            request = request.header(name, value.as_slice());
        }
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        request
    }

    pub async fn send(self) -> Reply {
        let answer = self.open().await;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let bytes = answer.bytes().await.expect("an answer arrives whole").to_vec();
        let reply = Reply { status, headers, bytes };
        let body = self.body.as_deref();
        let asked = Asked { method: &self.method, path: &self.path, headers: &self.headers, body };
        checks::every_answer(&reply, &asked, self.fault);
        checks::no_secret(&reply, &self.app.secrets.lock().unwrap());
        reply
    }

    /// Sends it; the answer must have this status.
    pub async fn expect(self, status: u16) -> Reply {
        let what = format!("{} {}", self.method, self.path);
        let reply = self.send().await;
        assert_eq!(reply.status, status, "{what}: {}", reply.text());
        reply
    }

    /// Sends it; it must succeed with this status. The body.
    pub async fn ok(self, status: u16) -> Value {
        self.expect(status).await.json()
    }

    /// Sends it; it must be refused like that. The problem.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> impl Future<Output = Value> + use<'a> {
        let (code, place) = (code.to_owned(), std::panic::Location::caller());
        async move {
            let what = format!("{place}: {} {}", self.method, self.path);
            let reply = self.send().await;
            assert_eq!(reply.status, status, "{what}: {}", reply.text());
            let problem = reply.json();
            assert_eq!(problem["code"], code.as_str(), "{what}: {problem}");
            problem
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("headers are ASCII"))
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// What must be the same in the answer to a repeated request: all but what belongs to the exchange itself.
    pub fn lasting(&self) -> (u16, Vec<(String, String)>, String) {
        let own = ["date", "x-request-id", "idempotent-replayed", "access-control-expose-headers"];
        let headers = self.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
        let mut headers: Vec<(String, String)> =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        headers.sort();
        (self.status, headers, self.text())
    }
}

impl TestApp {
    /// Registers a player of that name.
    pub async fn register(&self, name: &str) -> Player {
        let answer = self.post("/v1/players").json(&json!({"name": name})).ok(201).await;
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Player {
            id: text(&answer["player"]["id"]),
            name: text(&answer["player"]["name"]),
            token: text(&answer["token"]),
        }
    }

    /// Registers so many players.
    pub async fn players(&self, count: usize) -> Vec<Player> {
        let mut players = Vec::new();
        for _ in 0..count {
            players.push(self.register(&format!("p-{}", &uuid::Uuid::new_v4().simple().to_string()[..20])).await);
        }
        players
    }

    /// Creates a game.
    pub async fn create(&self, creator: &Player, game: &Value) -> Value {
        self.post("/v1/games").by(creator).json(game).ok(201).await
    }

    /// Takes the lowest free seat of a game.
    pub async fn join(&self, game: &str, player: &Player) -> Value {
        self.post(format!("/v1/games/{game}/seats")).by(player).json(&json!({})).ok(201).await
    }

    /// A game as this player, or nobody, sees it.
    pub async fn game(&self, id: &str, viewer: Option<&Player>) -> Value {
        self.get(format!("/v1/games/{id}")).by_some(viewer).ok(200).await
    }

    pub async fn legal_moves(&self, id: &str, player: &Player) -> Vec<Value> {
        let answer = self.get(format!("/v1/games/{id}/legal-moves")).by(player).ok(200).await;
        answer["moves"].as_array().expect("a list of moves").clone()
    }
}
