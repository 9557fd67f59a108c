//! Where a request comes from.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use actix_web::http::header::{HeaderMap, X_FORWARDED_FOR};

/// The address whose budget a request draws on: the peer's, or behind `proxies` trusted proxies the one that the outermost of
/// them saw. Each of them appends to X-Forwarded-For whom it was asked by; what stands further to the left came with the
/// request and can be anything.
pub fn of(headers: &HeaderMap, peer: Option<SocketAddr>, proxies: usize) -> IpAddr {
    let forwarded = proxies.checked_sub(1).and_then(|place| {
        // Bytes that are no text must not move the others to another place.
        let lines: Vec<Cow<'_, str>> =
            headers.get_all(X_FORWARDED_FOR).map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
        lines.iter().rev().flat_map(|line| line.rsplit(',')).nth(place).and_then(parse)
    });
    let peer = peer.map(|peer| peer.ip());
    network(forwarded.or(peer).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
}

/// An address, which some proxies give with the port.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(with_port).or_else(bare)
}

/// What one client can be expected to have to itself: an IPv4 address, or of IPv6 a whole network (/64).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn address(lines: &[&[u8]], proxies: usize) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
        }
        of(&headers, Some("192.0.2.1:4711".parse().unwrap()), proxies).to_string()
    }

    #[test]
    fn the_header_counts_only_behind_proxies() {
        for (lines, proxies, expected) in [
            (&[b"203.0.113.7".as_slice()][..], 0, "192.0.2.1"),
            (&[b"203.0.113.7"], 1, "203.0.113.7"),
            (&[b"6.6.6.6, 203.0.113.7"], 1, "203.0.113.7"),
            (&[b"6.6.6.6, 203.0.113.7,198.51.100.2"], 2, "203.0.113.7"),
            (&[b"6.6.6.6", b"203.0.113.7", b"198.51.100.2"], 2, "203.0.113.7"),
            // One that has not come through all of them, or of which the proxy says nothing that can be read.
            (&[b"203.0.113.7"], 2, "192.0.2.1"),
            (&[], 1, "192.0.2.1"),
            (&[b"6.6.6.6, unknown"], 1, "192.0.2.1"),
            (&[b"6.6.6.6,"], 1, "192.0.2.1"),
            (&[b"6.6.6.6", b"\xff, 203.0.113.7"], 1, "203.0.113.7"),
            (&[b"6.6.6.6", b"\xff"], 1, "192.0.2.1"),
        ] {
            assert_eq!(address(lines, proxies), expected, "{lines:?} {proxies}");
        }
    }

    #[test]
    fn addresses_are_read_however_proxies_write_them() {
        for (text, expected) in [
            ("203.0.113.7:80", "203.0.113.7"),
            (" 203.0.113.7 ", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::"),
            ("[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::"),
        ] {
            assert_eq!(address(&[text.as_bytes()], 1), expected, "{text}");
        }
    }

    #[test]
    fn a_request_from_nowhere_has_an_address_too() {
        assert_eq!(of(&HeaderMap::new(), None, 0).to_string(), "0.0.0.0");
    }
}
