//! Which addresses are on the public internet. Whoever may name an address that the server sends requests to could otherwise
//! have it ask machines that only the server can reach: those of its operator, itself, and those that give a cloud's machines their
//! credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not, by first address and length of the prefix (IANA's registry of special-purpose addresses).
const SPECIAL_V4: [(Ipv4Addr, u32); 16] = [
    // "This network"; Linux takes 0.0.0.0 as itself.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // Private.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared by a carrier's customers; a cloud's metadata at 100.100.100.200.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Azure's own services for its machines, at an address like any public one.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local, with most clouds' metadata at 169.254.169.254.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Private.
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // IETF protocols; a cloud's metadata at 192.0.0.192.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // Relays of 6to4, as they were.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Private.
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Documentation.
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, and broadcast.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The one IPv6 block from which public addresses are given out. Everything else is refused with one stroke: loopback, link-local,
/// unique-local, multicast, and IPv4 addresses in IPv6's clothes (mapped, compatible, NAT64).
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks within it that are not public.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    // IETF protocols, Teredo among them, which has an IPv4 address inside.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4: an IPv4 address inside too.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    // Documentation.
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address is one of the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|block| is_in_v4(address, *block)),
        IpAddr::V6(address) => {
            is_in_v6(address, GLOBAL_V6) && !SPECIAL_V6.iter().any(|block| is_in_v6(address, *block))
        }
    }
}

fn is_in_v4(address: Ipv4Addr, (first, length): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) >> (u32::BITS - length) == 0
}

fn is_in_v6(address: Ipv6Addr, (first, length): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) >> (u128::BITS - length) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(addresses: &[&str]) {
        for address in addresses {
            assert!(!is_public(address.parse().unwrap()), "{address} is not public");
        }
    }

    fn allowed(addresses: &[&str]) {
        for address in addresses {
            assert!(is_public(address.parse().unwrap()), "{address} is public");
        }
    }

    /// First and last address of each block, and its neighbours unless they are in another one.
    #[test]
    fn ipv4_blocks_end_where_they_should() {
        refused(&["0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255"]);
        allowed(&["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"]);
        refused(&["127.0.0.0", "127.0.0.1", "127.255.255.255", "168.63.129.16"]);
        allowed(&["126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17"]);
        refused(&["169.254.0.0", "169.254.169.254", "169.254.255.255", "172.16.0.0", "172.31.255.255"]);
        allowed(&["169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"]);
        refused(&["192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.0", "192.0.2.255", "192.88.99.1"]);
        allowed(&["191.255.255.255", "192.0.1.0", "192.0.1.255", "192.0.3.0", "192.88.98.255", "192.88.100.0"]);
        refused(&["192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.0", "198.51.100.255"]);
        allowed(&["192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0"]);
        refused(&["203.0.113.0", "203.0.113.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255"]);
        allowed(&["203.0.112.255", "203.0.114.0", "223.255.255.255", "8.8.8.8", "93.184.215.14"]);
    }

    #[test]
    fn ipv6_is_public_within_2000_3_only() {
        allowed(&["2000::", "2600:1f18::1", "2a00:1450:4001:81b::200e", "3fff:1000::", "3ffe::1"]);
        refused(&["::", "::1", "1fff:ffff::", "4000::", "5f00::1", "100::1", "8000::"]);
        // Unique-local (with clouds' metadata), link-local, site-local as it was, multicast.
        refused(&["fc00::", "fd00:ec2::254", "fdff:ffff::", "fe80::1", "febf::", "fec0::1", "ff00::", "ff02::1"]);
        refused(&["2001:db8::", "2001:db8:ffff::", "3fff::", "3fff:fff:ffff::"]);
        allowed(&["2001:db7:ffff::", "2001:db9::"]);
    }

    #[test]
    fn ipv4_addresses_within_ipv6_are_refused_whatever_they_are() {
        // Mapped, compatible, translated, NAT64, 6to4, Teredo: public inside or not.
        refused(&["::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8"]);
        refused(&["::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1"]);
        refused(&["64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1", "64:ff9b:1:ffff::"]);
        refused(&["2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", "2002:ffff::"]);
        refused(&["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:1ff:ffff::"]);
        allowed(&["2001:200::1", "2003::1"]);
    }

    #[test]
    fn blocks_are_written_by_their_first_address() {
        for (first, length) in SPECIAL_V4 {
            assert_eq!(first.to_bits().checked_shl(length).unwrap_or(0), 0, "{first}/{length}");
        }
        for (first, length) in SPECIAL_V6.into_iter().chain([GLOBAL_V6]) {
            assert_eq!(first.to_bits() << length, 0, "{first}/{length}");
        }
    }
}
