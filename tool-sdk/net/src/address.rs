//! Which IP addresses are public: reachable on the internet by everyone.
//!
//! The table has every range of the IANA special-purpose registries that is not globally reachable,
//! and the forms of IPv6 that carry an IPv4 address, which are judged by that address.
//!
//! **Invariant:** an address that the table does not know as public is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is public.
///
/// Not public are private, shared (RFC 6598), loopback, link-local (with the metadata services of
/// clouds), documentation, benchmark, multicast and reserved addresses, and IPv6 addresses that
/// carry such an IPv4 address.
///
/// # Examples
///
/// ```
/// use tool_sdk::net::is_public_address;
///
/// assert!(is_public_address("93.184.216.34".parse()?));
/// assert!(!is_public_address("169.254.169.254".parse()?));
/// assert!(!is_public_address("::ffff:10.0.0.1".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The ranges of IPv4 that are not public: the first address and the length of the prefix.
const SPECIAL_V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    // AS112 and 6to4 relays.
    ([192, 31, 196, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The ranges of IPv6 that are not public, without those that carry an IPv4 address.
const SPECIAL_V6: [([u16; 4], u32); 12] = [
    // Translation to IPv4 within a network.
    ([0x64, 0xff9b, 1, 0], 48),
    ([0x100, 0, 0, 0], 64),
    // Teredo.
    ([0x2001, 0, 0, 0], 32),
    ([0x2001, 2, 0, 0], 48),
    ([0x2001, 0x10, 0, 0], 27),
    ([0x2001, 0xdb8, 0, 0], 32),
    ([0x3fff, 0, 0, 0], 20),
    ([0x5f00, 0, 0, 0], 16),
    ([0xfc00, 0, 0, 0], 7),
    ([0xfe80, 0, 0, 0], 10),
    ([0xfec0, 0, 0, 0], 10),
    ([0xff00, 0, 0, 0], 8),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let is_in = |&(start, length): &([u8; 4], u32)| {
        let start = Ipv4Addr::from(start).to_bits();
        (bits ^ start) >> (32 - length) == 0
    };
    !SPECIAL_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_v4(address) {
        return is_public_v4(inner);
    }
    let bits = address.to_bits();
    // `::`, `::1`, and IPv4-compatible addresses, which are deprecated.
    if bits >> 32 == 0 {
        return false;
    }
    let is_in = |&([a, b, c, d], length): &([u16; 4], u32)| {
        let start = Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_bits();
        (bits ^ start) >> (128 - length) == 0
    };
    !SPECIAL_V6.iter().any(is_in)
}

/// Returns the IPv4 address that the address stands for: mapped (`::ffff:0:0/96`), translated
/// (`::ffff:0:0:0/96`), NAT64 (`64:ff9b::/96`) or 6to4 (`2002::/16`).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let last = || Some(from_halves(g, h));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => last(),
        [0x2002, ..] => Some(from_halves(b, c)),
        _ => None,
    }
}

fn from_halves(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first and the last address of each range, and their neighbours.
    #[test]
    fn ranges_end_where_they_end() {
        for (address, is_public) in [
            ("0.255.255.255", false),
            ("1.0.0.0", true),
            ("9.255.255.255", true),
            ("11.0.0.0", true),
            ("100.63.255.255", true),
            ("100.64.0.0", false),
            ("100.127.255.255", false),
            ("100.128.0.0", true),
            ("126.255.255.255", true),
            ("128.0.0.0", true),
            ("169.253.255.255", true),
            ("169.255.0.0", true),
            ("172.15.255.255", true),
            ("172.31.255.255", false),
            ("172.32.0.0", true),
            ("192.0.1.0", true),
            ("192.167.255.255", true),
            ("192.169.0.0", true),
            ("198.17.255.255", true),
            ("198.20.0.0", true),
            ("223.255.255.255", true),
            ("239.1.2.3", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::7f00:1", false),
            ("::808:808", false),
            ("::ffff:0:7f00:1", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("64:ff9b::808:808", true),
            ("64:ff9b:1::808:808", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2001:4860:4860::8888", true),
            ("2002:7f00:1::1", false),
            ("2002:808:808::1", true),
            ("3fff:fff::1", false),
            ("5f00::1", false),
            ("fdff::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
            ("2606:4700::1111", true),
        ] {
            assert_eq!(is_public_address(address.parse().unwrap()), is_public, "{address}");
        }
    }
}
