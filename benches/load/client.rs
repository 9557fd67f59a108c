//! An ordinary HTTP client: one connection that is kept alive, one request at a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A connection to a server.
pub struct Client(SendRequest<Full<Bytes>>);

/// What came back.
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
}

impl Client {
    /// Connects.
    pub async fn connect(addr: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Sends a request and reads all of the answer.
    pub async fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> anyhow::Result<Answer> {
        let response = self.begin(method, path, headers, body).await?;
        let status = response.status().as_u16();
        Ok(Answer { status, body: response.into_body().collect().await?.to_bytes() })
    }

    /// Sends a request whose answer may never end.
    pub async fn begin(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.0.ready().await?;
        Ok(self.0.send_request(request.body(Full::new(Bytes::from(body)))?).await?)
    }

    /// A command that has to succeed, with a JSON body; answers what it answers.
    pub async fn command(&mut self, path: &str, token: Option<&str>, body: &str) -> anyhow::Result<serde_json::Value> {
        let bearer = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
        let mut headers = vec![("content-type", "application/json")];
        if token.is_some() {
            headers.push(("authorization", &bearer));
        }
        let answer = self.ask(Method::POST, path, &headers, body.as_bytes().to_vec()).await?;
        if answer.status >= 300 {
            bail!("POST {path}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        serde_json::from_slice(&answer.body).context("an answer that is no JSON")
    }
}

/// Waits until a server says that it is ready, asking each millisecond.
pub async fn wait_until_ready(addr: SocketAddr) -> anyhow::Result<()> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        if let Ok(mut client) = Client::connect(addr).await
            && let Ok(answer) = client.ask(Method::GET, "/readyz", &[], Vec::new()).await
            && answer.status == 200
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bail!("{addr} did not get ready")
}
