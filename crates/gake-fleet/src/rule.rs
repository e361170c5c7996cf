//! Rules for the targets of an agent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

const fn v4(a: u8, b: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, 0, 0))
}

const fn v6(first: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0))
}

/// Networks that a rule must name explicitly, with their kind.
const RESERVED: [(IpAddr, u8, &str); 13] = [
    (v4(0, 0), 8, "an address of this machine"),
    (v4(127, 0), 8, LOOPBACK),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128, "an address of this machine"),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128, LOOPBACK),
    (v4(169, 254), 16, LINK_LOCAL),
    (v6(0xfe80), 10, LINK_LOCAL),
    (v4(10, 0), 8, PRIVATE),
    (v4(172, 16), 12, PRIVATE),
    (v4(192, 168), 16, PRIVATE),
    (v6(0xfc00), 7, PRIVATE),
    (v6(0xfec0), 10, PRIVATE),
    (v4(100, 64), 10, "a shared address (RFC 6598)"),
    // Behind NAT64 an address may be in any of these networks.
    (IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0)), 32, "an address behind NAT64"),
];

const LOOPBACK: &str = "a loopback address";
const LINK_LOCAL: &str = "a link-local address";
const PRIVATE: &str = "a private address";

/// A rule for targets that an agent may load: an address, a network, or a host name.
///
/// Addresses of this machine and of private networks need a rule that names them: a network within
/// such a range, or `localhost` for loopback. Neither `0.0.0.0/0` nor a host name is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowRule {
    /// A network: an address and the length of its prefix.
    Network(IpAddr, u8),
    /// A host name.
    Host(String),
}

impl FromStr for AllowRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        match (address.parse::<IpAddr>(), bits) {
            (Ok(address), None) => Ok(Self::Network(address, width(address))),
            (Ok(address), Some(bits)) => {
                let bits = bits.parse().ok().filter(|bits| *bits <= width(address));
                let bits =
                    bits.ok_or(format!("{text:?}: a prefix has 0 to {} bits", width(address)))?;
                Ok(Self::Network(address, bits))
            }
            (Err(_), None) if is_host(text) => Ok(Self::Host(text.to_ascii_lowercase())),
            _ => Err(format!("{text:?} is neither a network, such as 10.0.0.0/8, nor a host")),
        }
    }
}

fn is_host(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first `bits` bits of an address.
fn prefix(address: IpAddr, bits: u8) -> u128 {
    let (value, width) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    value.checked_shr(width - u32::from(bits)).unwrap_or(0)
}

/// Whether an address is in a network. IPv4-mapped addresses count as IPv4.
fn is_within(address: IpAddr, (network, bits): (IpAddr, u8)) -> bool {
    let address = address.to_canonical();
    network.is_ipv4() == address.is_ipv4() && prefix(network, bits) == prefix(address, bits)
}

impl AllowRule {
    fn allows(&self, address: IpAddr) -> bool {
        let Self::Network(network, bits) = self else { return false };
        // A network names a reserved range if it lies within it.
        let is_named = reserved_range(address)
            .is_none_or(|(range, of, _)| *bits >= of && is_within(*network, (range, of)));
        is_named && is_within(address, (*network, *bits))
    }

    fn names(&self, host: &str) -> bool {
        matches!(self, Self::Host(name) if host.eq_ignore_ascii_case(name))
    }

    /// The text of rules that together allow every address.
    pub fn anywhere() -> impl Iterator<Item = String> {
        let all = ["0.0.0.0/0", "::/0"].map(str::to_owned);
        let reserved = RESERVED.iter().map(|(range, bits, _)| format!("{range}/{bits}"));
        all.into_iter().chain(reserved)
    }
}

/// The reserved range of an address, with its kind.
fn reserved_range(address: IpAddr) -> Option<(IpAddr, u8, &'static str)> {
    RESERVED.iter().find(|(range, bits, _)| is_within(address, (*range, *bits))).copied()
}

/// The kind of a reserved address: of this machine, or of a private network.
pub(crate) fn reserved(address: IpAddr) -> Option<&'static str> {
    reserved_range(address).map(|(_, _, kind)| kind)
}

/// Whether rules allow an address of a host. `by_name`: host names count.
pub(crate) fn allows(rules: &[AllowRule], by_name: bool, host: &str, address: IpAddr) -> bool {
    let is_named = match reserved(address) {
        None => true,
        // The owner of a name may point it anywhere; only `localhost` is the machine's own.
        Some(kind) => kind == LOOPBACK && host.eq_ignore_ascii_case("localhost"),
    };
    let by_name = by_name && is_named;
    rules.iter().any(|rule| by_name && rule.names(host) || rule.allows(address))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn rules(texts: &[&str]) -> Vec<AllowRule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_allows_only_its_addresses() {
        for (rule, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("fd00::/8", "fd12::1", "fe00::1"),
            ("192.168.0.0/24", "::ffff:192.168.0.9", "::ffff:192.168.1.9"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            let rule: AllowRule = rule.parse().unwrap();
            assert!(rule.allows(inside.parse().unwrap()), "{rule:?} {inside}");
            assert!(!rule.allows(outside.parse().unwrap()), "{rule:?} {outside}");
        }
        for bad in ["10.0.0.0/33", "::/129", "10.0.0.0/x", "a b", "", "host/8"] {
            assert!(bad.parse::<AllowRule>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_is_enough_unless_the_run_resolves_it() {
        let rules = rules(&["api.test", "198.51.100.0/24"]);
        assert!(allows(&rules, true, "API.test", ip("203.0.113.1")));
        assert!(!allows(&rules, false, "api.test", ip("203.0.113.1")));
        assert!(allows(&rules, false, "other.test", ip("198.51.100.1")));
        assert!(!allows(&rules, true, "other.test", ip("203.0.113.1")));
    }

    #[test]
    fn loopback_and_private_ranges_need_to_be_named() {
        let wide = rules(&["0.0.0.0/0", "::/0", "api.test", "localhost"]);
        for (address, narrow) in [
            ("127.0.0.1", "127.0.0.0/8"),
            ("::1", "::1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("0.0.0.0", "0.0.0.0"),
            ("::", "::"),
            ("169.254.169.254", "169.254.0.0/16"),
            ("fe80::1", "fe80::/10"),
            ("10.0.0.9", "10.0.0.0/24"),
            ("172.31.255.255", "172.16.0.0/12"),
            ("192.168.1.1", "192.168.1.1"),
            ("100.64.0.1", "100.64.0.0/10"),
            ("fd12::1", "fd00::/8"),
            ("64:ff9b::7f00:1", "64:ff9b::/96"),
        ] {
            let address = ip(address);
            assert!(!allows(&wide, true, "api.test", address), "{address}");
            assert!(allows(&rules(&[narrow]), false, "api.test", address), "{address} {narrow}");
            let anywhere: Vec<_> = AllowRule::anywhere().collect();
            let anywhere: Vec<_> = anywhere.iter().map(String::as_str).collect();
            assert!(allows(&rules(&anywhere), false, "api.test", address), "{address}");
        }
        // A larger network does not name a range within it.
        let around = rules(&["8.0.0.0/5", "126.0.0.0/7", "fc00::/6"]);
        for address in ["10.0.0.1", "127.0.0.1", "fd00::1"] {
            assert!(!allows(&around, true, "api.test", ip(address)), "{address}");
        }
        for address in ["11.0.0.1", "126.0.0.1", "172.32.0.1", "100.128.0.1", "2001:db8::1"] {
            assert!(allows(&wide, false, "api.test", ip(address)), "{address}");
        }
        assert!(allows(&wide, true, "LocalHost", ip("127.0.0.1")), "localhost names loopback");
        assert!(!allows(&wide, true, "localhost", ip("10.0.0.1")));
    }
}
