//! Where webhooks may be sent. A name is resolved and what it resolves to is checked when a webhook is made and again at every
//! delivery, which connects to the address that was checked: a name can mean another machine a moment later.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use url::{Host, Url};

use super::address::is_public;

/// Longest address of a webhook, in bytes.
const LONGEST: usize = 2048;

/// How long the resolution of a name may take when a webhook is made.
const PATIENCE: Duration = Duration::from_secs(5);

/// Finds the addresses of a host's name.
pub trait Lookup: Send + Sync {
    /// All addresses of the name, in the order in which to try them.
    fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
struct System;

impl Lookup for System {
    fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Why nothing is sent to an address. The words are for whoever made the webhook: they tell nothing of the server's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no URL, or not of the kind that webhooks have.
    #[error("{0}")]
    Malformed(&'static str),
    /// What is told is for the player alone, and can be read on the way.
    #[error("an https URL is needed")]
    Insecure,
    /// It is not on the public internet.
    #[error("the address is not allowed")]
    NotAllowed,
    /// The name has no address.
    #[error("no such host")]
    Unresolved,
}

/// What an operator allows.
#[derive(Clone)]
pub struct Targets {
    allow_private: bool,
    lookup: Arc<dyn Lookup>,
}

impl Targets {
    /// The public internet by https; with `allow_private` every address, and plain http too, since machines of tests and intranets
    /// seldom have certificates.
    pub fn new(allow_private: bool) -> Self {
        Self::with_lookup(allow_private, Arc::new(System))
    }

    /// As [`Targets::new`], with another resolver.
    pub fn with_lookup(allow_private: bool, lookup: Arc<dyn Lookup>) -> Self {
        Self { allow_private, lookup }
    }

    /// Reads the address of a webhook. What comes out is in the one form that equal addresses have.
    ///
    /// # Errors
    /// It is no address that a webhook can have; it is an IP address that is not allowed. Names are not resolved here.
    pub fn parse(&self, text: &str) -> Result<Url, Refusal> {
        if text.len() > LONGEST {
            return Err(Refusal::Malformed("a URL has at most 2048 characters"));
        }
        let url = Url::parse(text).map_err(|_| Refusal::Malformed("this is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Malformed("only http and https URLs are possible"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Malformed("a URL has no user and no password here"));
        }
        if url.fragment().is_some() {
            return Err(Refusal::Malformed("a URL has no fragment here"));
        }
        if url.as_str().len() > LONGEST {
            return Err(Refusal::Malformed("a URL has at most 2048 characters"));
        }
        if url.scheme() != "https" && !self.allow_private {
            return Err(Refusal::Insecure);
        }
        match url.host() {
            Some(Host::Ipv4(address)) if !self.allows(address.into()) => Err(Refusal::NotAllowed),
            Some(Host::Ipv6(address)) if !self.allows(address.into()) => Err(Refusal::NotAllowed),
            Some(_) => Ok(url),
            None => Err(Refusal::Malformed("a URL has a host")),
        }
    }

    /// Checks that the host of a parsed address can be sent to as things are now.
    ///
    /// # Errors
    /// Its name has no address, or none that is allowed.
    pub async fn check(&self, url: &Url) -> Result<(), Refusal> {
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        let resolved = tokio::time::timeout(PATIENCE, self.resolve(name)).await;
        resolved.unwrap_or(Err(Refusal::Unresolved)).map(|_| ())
    }

    /// The addresses of a name that may be connected to. Others that it has are left out, not held against it: some networks
    /// give every name an address of their own besides its real ones (DNS64).
    ///
    /// # Errors
    /// It has no address, or none that is allowed.
    pub async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
        let mut addresses = self.lookup.lookup(name).await.map_err(|_| Refusal::Unresolved)?;
        if addresses.is_empty() {
            return Err(Refusal::Unresolved);
        }
        addresses.retain(|address| self.allows(*address));
        if addresses.is_empty() { Err(Refusal::NotAllowed) } else { Ok(addresses) }
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name has these addresses.
    struct Fixed(&'static [&'static str]);

    impl Lookup for Fixed {
        fn lookup(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let addresses = self.0.iter().map(|address| address.parse().unwrap()).collect();
            Box::pin(async move { Ok(addresses) })
        }
    }

    #[test]
    fn equal_addresses_have_one_form() {
        let targets = Targets::new(false);
        let form = |text: &str| targets.parse(text).unwrap().to_string();
        assert_eq!(form("HTTPS://Example.COM:443"), "https://example.com/");
        assert_eq!(form(" https://example.com/a/../b?x=1 "), "https://example.com/b?x=1");
        assert_eq!(form("https://bücher.example/"), "https://xn--bcher-kva.example/");
        assert_eq!(form("https://example.com:8443/"), "https://example.com:8443/");
    }

    #[test]
    fn other_urls_are_malformed() {
        let long = format!("https://example.com/{}", "x".repeat(2048));
        // Longer only once it is written out.
        let unicode = format!("https://example.com/{}", "ü".repeat(1000));
        for text in [
            "",
            "example.com",
            "/hook",
            "ftp://example.com/",
            "file:///etc/passwd",
            "unix:/run/docker.sock",
            "https://",
            "https://user@example.com/",
            "https://:secret@example.com/",
            "https://example.com/#part",
            "https://example.com:99999/",
            "https://exa mple.com/",
            long.as_str(),
            unicode.as_str(),
        ] {
            for allow_private in [false, true] {
                let refused = Targets::new(allow_private).parse(text);
                assert!(matches!(refused, Err(Refusal::Malformed(_))), "{text}: {refused:?}");
            }
        }
    }

    #[test]
    fn addresses_in_any_spelling_are_checked() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "0",
            "%31%32%37.0.0.1",
            "127.0.0.1.",
            "１２７.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "[::1]",
            "[::]",
            "[::ffff:10.0.0.1]",
            "[::ffff:a00:1]",
            "[0:0:0:0:0:ffff:7f00:1]",
            "[64:ff9b::a00:1]",
            "[fd00:ec2::254]",
            "[fe80::1]",
        ] {
            let text = format!("https://{host}/");
            assert_eq!(Targets::new(false).parse(&text), Err(Refusal::NotAllowed), "{text}");
            assert!(Targets::new(true).parse(&text).is_ok(), "{text}");
        }
        assert!(Targets::new(false).parse("https://93.184.215.14/").is_ok());
    }

    #[test]
    fn plain_http_is_for_those_who_allow_private_addresses() {
        assert_eq!(Targets::new(false).parse("http://example.com/"), Err(Refusal::Insecure));
        assert!(Targets::new(true).parse("http://example.com/").is_ok());
    }

    #[tokio::test]
    async fn only_allowed_addresses_come_out_of_a_name() {
        let resolve = async |addresses, allow_private| {
            let targets = Targets::with_lookup(allow_private, Arc::new(Fixed(addresses)));
            let url = targets.parse("https://name.example/").unwrap();
            let resolved = targets.resolve("name.example").await;
            assert_eq!(targets.check(&url).await, resolved.clone().map(|_| ()));
            resolved.map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(resolve(&["127.0.0.1"], false).await, Err(Refusal::NotAllowed));
        assert_eq!(resolve(&["::ffff:10.0.0.1", "fd00::1"], false).await, Err(Refusal::NotAllowed));
        assert_eq!(resolve(&["10.0.0.1", "93.184.215.14"], false).await, Ok(vec!["93.184.215.14".to_owned()]));
        assert_eq!(resolve(&["127.0.0.1"], true).await, Ok(vec!["127.0.0.1".to_owned()]));
        assert_eq!(resolve(&[], true).await, Err(Refusal::Unresolved));
    }
}
