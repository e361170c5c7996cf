//! Local ports: how many connections there can be from one address to one target.

use std::fs::read_to_string;

/// Ports in the system's range for outgoing connections, when it says.
pub fn local() -> Option<u64> {
    let text = read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(last.checked_sub(first)? + 1)
}
