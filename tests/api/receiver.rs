//! A receiver of webhooks, on this machine: keeps what it is sent and answers as it is told.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// With this status and these header lines, and no body.
    Status(u16, &'static str),
    /// With a header line made for this test.
    To(u16, String),
    /// Never.
    Silence,
    /// With 200 and a body that does not end.
    Flood,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    /// Method and path.
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body is JSON")
    }

    /// Whether the signature at that place is that by this secret.
    pub fn is_signed(&self, place: usize, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("secrets have a prefix")).unwrap();
        let mut content = format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp")).into_bytes();
        content.extend(&self.body);
        let expected = format!("v1,{}", STANDARD.encode(hmac_sha256(&key, &content)));
        self.header("webhook-signature").split(' ').nth(place) == Some(&expected)
    }

    pub fn signatures(&self) -> usize {
        self.header("webhook-signature").split(' ').count()
    }
}

/// By hand (RFC 2104), so that the test does not trust what it tests.
fn hmac_sha256(key: &[u8], content: &[u8]) -> [u8; 32] {
    assert!(key.len() <= 64);
    let pad = |byte: u8| std::array::from_fn::<u8, 64, _>(|i| key.get(i).copied().unwrap_or(0) ^ byte);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(content).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[derive(Default)]
struct Inner {
    received: Mutex<Vec<Received>>,
    replies: Mutex<VecDeque<Reply>>,
    /// Bytes of floods that the system has taken.
    flooded: AtomicU64,
}

pub struct Receiver {
    pub addr: SocketAddr,
    inner: Arc<Inner>,
}

impl Receiver {
    /// One that answers 204 unless it is told otherwise.
    pub async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let (addr, inner) = (listener.local_addr().unwrap(), Arc::<Inner>::default());
        let shared = inner.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { addr, inner }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.addr)
    }

    /// How the next request is answered that has no answer yet.
    pub fn reply(&self, reply: Reply) {
        self.inner.replies.lock().unwrap().push_back(reply);
    }

    pub fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    pub fn last(&self) -> Received {
        self.received().pop().expect("something has been received")
    }

    pub fn flooded(&self) -> u64 {
        self.inner.flooded.load(Ordering::Relaxed)
    }
}

async fn serve(mut stream: TcpStream, inner: Arc<Inner>) {
    let Some(received) = read(&mut stream).await else { return };
    inner.received.lock().unwrap().push(received);
    let reply = inner.replies.lock().unwrap().pop_front().unwrap_or(Reply::Status(204, ""));
    match reply {
        Reply::Status(status, headers) => answer(&mut stream, status, headers).await,
        Reply::To(status, headers) => answer(&mut stream, status, &headers).await,
        Reply::Silence => drop(stream.read(&mut [0]).await),
        Reply::Flood => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n").await;
            while stream.write_all(&[b'x'; 65_536]).await.is_ok() {
                inner.flooded.fetch_add(65_536, Ordering::Relaxed);
            }
        }
    }
}

async fn answer(stream: &mut TcpStream, status: u16, headers: &str) {
    let length = if status == 204 { "" } else { "content-length: 0\r\n" };
    let _ = stream.write_all(format!("HTTP/1.1 {status} x\r\n{length}{headers}\r\n").as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let (mut received, length) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let mut lines = head.lines();
        let line = lines.next()?.rsplit_once(' ')?.0.to_owned();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers: BTreeMap<String, String> =
            headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let length: usize = headers.get("content-length")?.parse().ok()?;
        bytes.drain(..end + 4);
        break (Received { line, headers, body: Vec::new() }, length);
    };
    while bytes.len() < length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    received.body = bytes;
    Some(received)
}
