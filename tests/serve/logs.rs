//! The log: one line for each request, and at no level anything that is secret.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::server::{Folder, Server};

/// What a server that logs in this way says while it is asked for all kinds of things; and the secrets that it has heard.
async fn log_of(data: &Path, environment: &[(&str, &str)]) -> (String, Vec<String>) {
    let environment = [&[("TAVOLA_ALLOW_PRIVATE_WEBHOOKS", "yes")], environment].concat();
    let mut server = Server::start_with(data, &environment).await;
    let mut stderr = server.process.stderr.take().unwrap();
    let reading = tokio::spawn(async move {
        let mut log = String::new();
        stderr.read_to_string(&mut log).await.unwrap();
        log
    });
    let (game, tokens) = server.table("leonardo").await;
    server.play(&game, &tokens).await;
    let private = json!({"ruleset": "leonardo", "visibility": "private", "entropy": "my-own-entropy-8261"});
    let private = server.call("POST", "/v1/games", &tokens[0], Some(private)).await;
    let (id, code) = (private["id"].as_str().unwrap(), private["invite"].as_str().unwrap());
    server.call("GET", &format!("/v1/invites/{code}"), "", None).await;
    server.call("GET", &format!("/v1/%69nvites/{code}"), "", None).await;
    server.call("GET", &format!("/v1/games/{id}?invite={code}"), "", None).await;
    server.call("POST", &format!("/v1/games/{id}/seats"), &tokens[1], Some(json!({"invite": code}))).await;
    let hook = json!({"url": "http://127.0.0.1:9/path?key=key-5177"});
    let hook = server.call("POST", "/v1/me/webhooks", &tokens[0], Some(hook)).await;
    server.call("POST", &format!("/v1/me/webhooks/{}/ping", hook["id"].as_str().unwrap()), &tokens[0], None).await;
    server.call("POST", &format!("/v1/games/{id}/resignation"), &tokens[0], None).await;
    let fairness = server.call("GET", &format!("/v1/games/{id}/fairness"), &tokens[0], None).await;
    // What is refused, bodies that cannot be read, and a token in the wrong place.
    for (path, body) in
        [("/v1/games", r#"{"ruleset": "body-9034"}"#), ("/v1/games", r#"{"body-9034"#), ("/v1/me", "{}")]
    {
        let request = server.client.post(format!("{}{path}?query-6620=1", server.url)).bearer_auth("wrong-token-4471");
        let request = request.header("content-type", "application/json").body(body);
        assert!(request.send().await.unwrap().status().is_client_error());
    }
    kill(server.pid(), Signal::SIGTERM).unwrap();
    assert!(server.process.wait().await.unwrap().success());
    let mut secrets = tokens;
    secrets.extend([code.to_owned(), hook["secret"].as_str().unwrap().to_owned()]);
    secrets.push(fairness["server_seed"].as_str().expect("the game is over").to_owned());
    let words = ["my-own-entropy-8261", "body-9034", "wrong-token-4471", "query-6620", "key-5177"];
    secrets.extend(words.map(str::to_owned));
    (reading.await.unwrap(), secrets)
}

#[tokio::test]
async fn each_request_has_a_line_and_none_a_secret() {
    let folder = Folder::new("serve-log-json");
    let (log, secrets) = log_of(&folder.0, &[("TAVOLA_LOG_FORMAT", "json")]).await;
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "{secret} is in the log:\n{log}");
    }
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let answered: Vec<&Value> = lines.iter().filter(|line| line["target"] == "tavola::requests").collect();
    let moves: Vec<&&Value> = answered.iter().filter(|line| line["http.route"] == "/v1/games/{id}/moves").collect();
    assert_eq!(moves.len(), 1, "{log}");
    let line = moves[0];
    assert_eq!((&line["level"], &line["http.status_code"]), (&json!("INFO"), &json!(201)));
    assert!(line["duration_ms"].as_f64().is_some_and(|duration| duration > 0.0), "{line}");
    assert_eq!(line["span"]["http.method"], "POST");
    assert!(line["span"]["http.path"].as_str().unwrap().ends_with("/moves"));
    let ids: std::collections::BTreeSet<&str> =
        answered.iter().map(|line| line["span"]["request_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), answered.len(), "each has an id of its own");
    assert!(answered.len() > 15, "{log}");
}

#[tokio::test]
async fn no_level_tells_secrets() {
    let folder = Folder::new("serve-log-trace");
    let (log, secrets) = log_of(&folder.0, &[("TAVOLA_LOG", "trace")]).await;
    assert!(log.contains("TRACE") && log.contains("sqlx"), "{log}");
    for secret in &secrets {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(secret.as_str())).take(3).collect();
        assert!(lines.is_empty(), "{secret} is in the log: {lines:#?}");
    }
}
