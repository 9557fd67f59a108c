//! The binary as people run it: one command, a private cluster, real signals. What was acknowledged is there afterwards.

mod logs;
mod metrics;
mod server;
mod stops;

use std::net::TcpListener;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use server::{Folder, Server, postmaster};

#[tokio::test]
async fn what_was_acknowledged_survives_stops_and_kills() {
    let folder = Folder::new("serve-kills");
    let data = &folder.0;
    let server = Server::start(data).await;
    let mut games = Vec::new();
    for ruleset in ["leonardo", "leopard"] {
        let (id, tokens) = server.table(ruleset).await;
        let answer = server.play(&id, &tokens).await;
        games.push((id, tokens, vec![answer["move"].clone()]));
    }

    // A second server on the same data says so and ends.
    let second = Server::command(data, 0).output().await.unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("already running"), "{said}");

    server.stop(Signal::SIGTERM).await;
    assert_eq!(postmaster(data), None, "a clean stop leaves nothing running");

    for round in 0..2 {
        let mut server = Server::start(data).await;
        for (id, tokens, moves) in &mut games {
            for _ in 0..3 {
                moves.push(server.play(id, tokens).await["move"].clone());
            }
        }
        let cluster = postmaster(data).expect("the cluster runs");
        kill(server.pid(), Signal::SIGKILL).unwrap();
        // The first time the cluster is left behind without its server, the second time it is killed too.
        if round == 1 {
            kill(cluster, Signal::SIGKILL).unwrap();
        }
        server.process.wait().await.unwrap();
    }

    let server = Server::start(data).await;
    for (id, tokens, moves) in &games {
        for acknowledged in moves {
            let number = &acknowledged["number"];
            let seat = acknowledged["seat"].as_u64().unwrap() as usize;
            let logged = server.call("GET", &format!("/v1/games/{id}/moves/{number}"), &tokens[seat], None).await;
            assert_eq!(&logged, acknowledged);
        }
        let game = server.call("GET", &format!("/v1/games/{id}"), "", None).await;
        assert_eq!(game["moves_count"], moves.len());
        server.play(id, tokens).await;
    }
    server.stop(Signal::SIGINT).await;
    assert_eq!(postmaster(data), None);
}

#[tokio::test]
async fn a_server_whose_private_postgresql_is_killed_says_so_and_ends() {
    let folder = Folder::new("serve-orphaned");
    let mut server = Server::start(&folder.0).await;
    kill(postmaster(&folder.0).expect("the cluster runs"), Signal::SIGKILL).unwrap();
    assert_eq!(server.process.wait().await.unwrap().code(), Some(1));
}

/// The loop that delivers, and the setting that lets it send to this machine.
#[tokio::test]
async fn what_is_on_its_way_to_a_webhook_is_finished_before_a_stop() {
    let folder = Folder::new("serve-webhooks");
    let receiver = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::start_with(&folder.0, &[("TAVOLA_ALLOW_PRIVATE_WEBHOOKS", "yes")]).await;
    let answer = server.call("POST", "/v1/players", "", Some(json!({"name": "Ada"}))).await;
    let token = answer["token"].as_str().unwrap();
    let url = format!("http://{}/", receiver.local_addr().unwrap());
    let hook = server.call("POST", "/v1/me/webhooks", token, Some(json!({"url": url}))).await;
    let path = format!("/v1/me/webhooks/{}", hook["id"].as_str().unwrap());
    server.call("POST", &format!("{path}/ping"), token, None).await;
    let (mut stream, _) = receiver.accept().await.unwrap();
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"POST");

    let addr = server.url.trim_start_matches("http://").to_owned();
    let stopping = tokio::spawn(server.stop(Signal::SIGTERM));
    // It answers only when the server has taken the signal, and takes no more requests.
    while tokio::net::TcpStream::connect(&addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    stopping.await.unwrap();

    let server = Server::start(&folder.0).await;
    let log = server.call("GET", &format!("{path}/deliveries"), token, None).await;
    assert_eq!(
        (&log["items"][0]["status"], &log["items"][0]["attempts"][0]["status"]),
        (&json!("delivered"), &json!(204))
    );
    server.stop(Signal::SIGTERM).await;
}

#[tokio::test]
async fn an_address_in_use_is_told_and_leaves_nothing_running() {
    let folder = Folder::new("serve-address");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = Server::command(&folder.0, taken.local_addr().unwrap().port()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("cannot listen on"), "{said}");
    assert_eq!(postmaster(&folder.0), None);
}

#[tokio::test]
async fn a_database_that_is_away_is_told() {
    let output = Server::command(Path::new("unused"), 0)
        .env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("database"), "{said}");
}
