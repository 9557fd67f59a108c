//! A running binary, and a client for it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// A folder for one test, removed at the end. Not in a folder that the account which runs PostgreSQL cannot enter.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tavola-{name}-{}", std::process::id()));
        let _ = tavola::embedded::remove(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = tavola::embedded::remove(&self.0);
    }
}

/// A running `tavola`.
pub struct Server {
    pub process: Child,
    pub url: String,
    pub client: reqwest::Client,
    /// Where metrics are told.
    pub metrics: String,
}

impl Server {
    pub fn command(data: &Path, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tavola"));
        command
            .args(["--addr", &format!("127.0.0.1:{port}"), "--data-dir"])
            .arg(data)
            .env_remove("DATABASE_URL")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Starts one and waits until it says that it is ready.
    pub async fn start(data: &Path) -> Self {
        Self::start_with(data, &[]).await
    }

    /// Starts one in this environment.
    pub async fn start_with(data: &Path, environment: &[(&str, &str)]) -> Self {
        let (port, metrics) = (free_port(), format!("127.0.0.1:{}", free_port()));
        let mut command = Self::command(data, port);
        command.env("TAVOLA_METRICS_ADDR", &metrics).envs(environment.iter().copied());
        let mut process = command.spawn().unwrap();
        let mut said = String::new();
        let stdout = process.stdout.as_mut().unwrap();
        let mut buffer = [0; 1024];
        while !said.contains("Stop with Ctrl-C") {
            match stdout.read(&mut buffer).await.unwrap() {
                0 => {
                    let mut problem = String::new();
                    process.stderr.as_mut().unwrap().read_to_string(&mut problem).await.unwrap();
                    panic!("the server did not start: {problem}");
                }
                read => said.push_str(&String::from_utf8_lossy(&buffer[..read])),
            }
        }
        assert!(said.contains(&format!("http://127.0.0.1:{port}/docs/")), "{said}");
        // The client wants to know who does TLS, although it does none here: it trusts nobody either.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).timeout(Duration::from_secs(60));
        let client = client.build().unwrap();
        let metrics = format!("http://{metrics}/metrics");
        Self { process, url: format!("http://127.0.0.1:{port}"), client, metrics }
    }

    pub async fn call(&self, method: &str, path: &str, token: &str, body: Option<Value>) -> Value {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    /// Plays the first legal move of whoever's turn it is; the answer.
    pub async fn play(&self, game: &str, tokens: &[String]) -> Value {
        let state = self.call("GET", &format!("/v1/games/{game}"), "", None).await;
        let token = &tokens[state["to_move"]["seat"].as_u64().unwrap() as usize];
        let legal = self.call("GET", &format!("/v1/games/{game}/legal-moves"), token, None).await;
        self.call("POST", &format!("/v1/games/{game}/moves"), token, Some(legal["moves"][0].clone())).await
    }

    /// A game of two; its id and the players' tokens.
    pub async fn table(&self, ruleset: &str) -> (String, Vec<String>) {
        let mut tokens = Vec::new();
        for name in ["Ada", "Bob"] {
            let name = format!("{name} {ruleset}");
            let answer = self.call("POST", "/v1/players", "", Some(json!({"name": name}))).await;
            tokens.push(answer["token"].as_str().unwrap().to_owned());
        }
        let game = self.call("POST", "/v1/games", &tokens[0], Some(json!({"ruleset": ruleset}))).await;
        let id = game["id"].as_str().unwrap().to_owned();
        self.call("POST", &format!("/v1/games/{id}/seats"), &tokens[1], Some(json!({}))).await;
        (id, tokens)
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id().unwrap() as i32)
    }

    /// Ends it by a signal that it can catch; it must end well.
    pub async fn stop(mut self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
        let status = self.process.wait().await.unwrap();
        assert!(status.success(), "{signal}: {status}");
    }
}

/// The process of a private cluster, if one runs.
pub fn postmaster(data: &Path) -> Option<Pid> {
    let text = std::fs::read_to_string(data.join("cluster/postmaster.pid")).ok()?;
    let pid = Pid::from_raw(text.lines().next()?.parse().ok()?);
    kill(pid, None).is_ok().then_some(pid)
}

/// A port that is free a moment ago; nobody else takes ports at random here but the kernel, which goes round.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
