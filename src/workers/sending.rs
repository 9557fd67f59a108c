//! Sends one message to its webhook, to nobody but who was checked, and waits for no more than the head of the answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, redirect};
use time::OffsetDateTime;

use crate::store::{Due, Outcome, Verdict};
use crate::webhook::{Refusal, Targets, delay, retry_after, sign};

/// How long a receiver may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To be connected to, its name's resolution included.
    pub connect: Duration,
    /// For everything, up to the head of its answer.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), total: Duration::from_secs(10) }
    }
}

/// Gives a client those addresses of a name that may be connected to, and no others: what it connects to has been checked.
struct Checked(Targets);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let targets = self.0.clone();
        Box::pin(async move {
            let found = targets.resolve(name.as_str()).await?;
            // The client puts the port of the URL in the place of 0.
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// What sends messages.
#[derive(Clone)]
pub struct Sender {
    client: Client,
    targets: Targets,
}

impl Sender {
    /// A sender to what `targets` allows.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn new(targets: Targets, timeouts: Timeouts) -> anyhow::Result<Self> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .user_agent(concat!("Tavola/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(Checked(targets.clone())))
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.total)
            // Each message on a connection of its own, whose address is checked for it.
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self { client, targets })
    }

    /// Sends a message, signed as of now, and says what came of it.
    pub async fn send(&self, due: &Due) -> Outcome {
        let begun = Instant::now();
        // The answer's body is never read: dropping the answer ends the connection, however much there is to come.
        let answer = self.post(due).await.map(|answer| (answer.status(), wanted_pause(&answer)));
        let retry = |pause: Option<Duration>| Verdict::Failed {
            retry: delay(due.attempt, rand::random()).max(pause.unwrap_or_default()),
        };
        let verdict = match answer {
            Ok((status, _)) if status.is_success() => Verdict::Delivered,
            Ok((StatusCode::GONE, _)) => Verdict::Gone,
            Ok((_, pause)) => retry(pause),
            Err(_) => retry(None),
        };
        Outcome {
            status: answer.ok().map(|(status, _)| status.as_u16()),
            error: answer.err(),
            duration: begun.elapsed(),
            verdict,
        }
    }

    async fn post(&self, due: &Due) -> Result<Response, &'static str> {
        // The client asks no resolver about an address that is one already. What was allowed when the webhook was made may not be
        // so any more.
        let url = self.targets.parse(&due.url).map_err(words)?;
        let (id, body, now) = (due.message.id, due.message.body(), OffsetDateTime::now_utc().unix_timestamp());
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id.to_string())
            .header("webhook-timestamp", now)
            .header("webhook-signature", sign(&due.secrets, id, now, &body))
            .body(body);
        request.send().await.map_err(|error| explain(&error))
    }
}

/// How long the receiver asks to be left alone, where that means something.
fn wanted_pause(answer: &Response) -> Option<Duration> {
    let asked = matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let value = answer.headers().get(RETRY_AFTER).filter(|_| asked)?;
    retry_after(value.to_str().ok()?, SystemTime::now())
}

/// TLS by ring, and by the certificates that the system trusts. Without any of those nothing can be sent by https; all else the
/// server can do without them.
fn tls() -> anyhow::Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        tracing::warn!("the system trusts no certificates: webhooks cannot be sent by https");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Why there was no answer, in words that tell nothing of the server's network or of its libraries.
fn explain(error: &reqwest::Error) -> &'static str {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return words(*refusal);
        }
        if error.is::<rustls::Error>() {
            return "no secure connection could be agreed on";
        }
        cause = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            // `source` would pass over the error that this one is made of.
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    match error {
        error if error.is_timeout() => "timed out",
        error if error.is_connect() => "connection failed",
        _ => "the answer cannot be read",
    }
}

fn words(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Malformed(_) => "the address cannot be used",
        Refusal::Insecure => "an https URL is needed",
        Refusal::NotAllowed => "the address is not allowed",
        Refusal::Unresolved => "no such host",
    }
}
