//! Local ports: the number of connections from one source address to one target.
//!
//! connect() first searches the ports of one parity, so that past half of the range each call takes
//! milliseconds, and at its end fails. A socket with `IP_LOCAL_PORT_RANGE` (Linux 6.3) searches the
//! whole range. More connections need more source addresses; loopback has 16 million.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::net::sockopt;

/// The share of a range up to which a free port is found quickly.
const USABLE: f64 = 0.9;

/// Maximum number of loopback addresses used as sources by default.
pub const LOOPBACK_MAX: usize = 250;

/// The system's range for outgoing connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalPorts {
    first: u16,
    last: u16,
    /// Whether the system has `IP_LOCAL_PORT_RANGE`.
    has_option: bool,
}

impl LocalPorts {
    pub(crate) fn read() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
        let (first, last) = parse(&text)?;
        Some(Self { first, last, has_option: sockopt::has_local_port_range(first, last) })
    }

    /// The first and last port, if the system has `IP_LOCAL_PORT_RANGE`.
    pub(crate) fn own_range(self) -> Option<(u16, u16)> {
        self.has_option.then_some((self.first, self.last))
    }

    /// Connections from one source address to one target without a slow port search.
    pub(crate) fn per_source(self) -> usize {
        let ports = usize::from(self.last - self.first) + 1;
        let searched = if self.has_option { ports } else { ports / 2 };
        ((searched as f64 * USABLE) as usize).max(1)
    }

    /// The loopback addresses needed as sources for this many connections to one target on loopback;
    /// empty if the system's default is enough.
    pub(crate) fn loopback_sources(self, connections: usize) -> Vec<IpAddr> {
        let count = connections.div_ceil(self.per_source()).min(LOOPBACK_MAX);
        if count < 2 || !is_ours(loopback(count)) {
            return Vec::new();
        }
        (1..=count).map(loopback).collect()
    }
}

/// Whether the system has `IP_LOCAL_PORT_RANGE`, so that nine tenths of the port range are found
/// quickly instead of half of that.
#[must_use]
pub fn has_socket_port_ranges() -> bool {
    LocalPorts::read().is_some_and(|ports| ports.has_option)
}

fn parse(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split_whitespace().map(str::parse::<u16>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (first > 0 && first <= last).then_some((first, last))
}

/// Loopback address `number`, from 1.
fn loopback(number: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 0, 0).to_bits() + number as u32))
}

/// Linux has all of 127.0.0.0/8; others have one address.
fn is_ours(address: IpAddr) -> bool {
    std::net::UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read() {
        assert_eq!(parse("32768\t60999\n"), Some((32_768, 60_999)));
        for text in ["", "1", "2 1", "0 9", "1 70000"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_source_has_90_percent_of_its_range_or_of_half_of_it() {
        let ports = |has_option| LocalPorts { first: 32_768, last: 60_999, has_option };
        let sources =
            |has_option, connections| ports(has_option).loopback_sources(connections).len();
        // 28,232 ports; one source is the system's own choice.
        assert_eq!((sources(true, 15_000), sources(true, 25_000)), (0, 0));
        assert_eq!((sources(true, 26_000), sources(true, 1_000_000)), (2, 40));
        assert_eq!((sources(false, 12_000), sources(false, 15_000)), (0, 2));
        assert_eq!(
            ports(false).loopback_sources(15_000),
            [[127, 0, 0, 1], [127, 0, 0, 2]].map(IpAddr::from)
        );
    }
}
