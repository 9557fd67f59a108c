//! How long a stop takes while there is something in the way of it.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::server::{Folder, Server, postmaster};

/// What most that stops a server waits for before it kills.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tells a server to stop and answers how long that took.
async fn stopped(mut server: Server, folder: &Folder) -> Duration {
    let begun = Instant::now();
    kill(server.pid(), Signal::SIGTERM).unwrap();
    let status = server.process.wait().await.unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(postmaster(&folder.0), None, "a clean stop leaves nothing running");
    begun.elapsed()
}

async fn begin(server: &Server, request: String) -> TcpStream {
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn readers_of_streams_do_not_hold_up_a_stop() {
    let folder = Folder::new("serve-streams");
    let server = Server::start(&folder.0).await;
    let (game, tokens) = server.table("siggil").await;
    let mut streams = Vec::new();
    for token in &tokens {
        for path in [format!("/v1/games/{game}/events"), "/v1/me/events".to_owned()] {
            let head = format!("Host: x\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream");
            let mut stream = begin(&server, format!("GET {path} HTTP/1.1\r\n{head}\r\n\r\n")).await;
            let mut start = [0; 12];
            stream.read_exact(&mut start).await.unwrap();
            assert_eq!(&start, b"HTTP/1.1 200");
            streams.push(stream);
        }
    }
    let took = stopped(server, &folder).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    for mut stream in streams {
        // Each is ended as it should be, and not broken off.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert!(rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    }
}

#[tokio::test]
async fn nothing_holds_up_a_stop_for_long() {
    let folder = Folder::new("serve-slow");
    let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::start_with(&folder.0, &[("TAVOLA_ALLOW_PRIVATE_WEBHOOKS", "yes")]).await;
    let answer = server.call("POST", "/v1/players", "", Some(json!({"name": "Ada"}))).await;
    let token = answer["token"].as_str().unwrap().to_owned();
    let url = format!("http://{}/", receiver.local_addr().unwrap());
    let hook = server.call("POST", "/v1/me/webhooks", &token, Some(json!({"url": url}))).await;
    // A request whose body never comes, one that is not even a whole head, a connection on which nothing is asked any more, and
    // a reader who does not read.
    let head = format!("POST /v1/games HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n");
    let body = begin(&server, format!("{head}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{")).await;
    let half = begin(&server, head).await;
    let mut idle = begin(&server, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()).await;
    idle.read_exact(&mut [0; 12]).await.unwrap();
    let events =
        format!("GET /v1/me/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream");
    let reader = begin(&server, format!("{events}\r\n\r\n")).await;
    // And a receiver that does not answer, last: the server waits for it no longer than this test does.
    server.call("POST", &format!("/v1/me/webhooks/{}/ping", hook["id"].as_str().unwrap()), &token, None).await;
    let delivery = receiver.accept().await.unwrap();
    let took = stopped(server, &folder).await;
    assert!(took < PATIENCE, "{took:?}");
    println!("stopped after {took:?}");
    drop((body, half, idle, reader, delivery));
}
