//! Local ports, which bound the connections from one address to one target.

use std::fs::read_to_string;

/// Size of the system's range of local ports, if it can be read.
pub fn local() -> Option<u64> {
    let text = read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(last.checked_sub(first)? + 1)
}
