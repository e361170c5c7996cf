//! TCP sockets of a listener by state, its accept queue, and what the kernel turned away.

use std::collections::HashSet;
use std::time::Instant;

use gake_core::record::Unit;
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::Process;

use crate::rates::Rates;
use crate::sampler::Level;

/// The states told apart, by the names of `ss`.
const STATES: &[(TcpState, &str)] = &[
    (TcpState::Established, "established"),
    (TcpState::SynRecv, "syn_recv"),
    (TcpState::NewSynRecv, "syn_recv"),
    (TcpState::FinWait1, "fin_wait1"),
    (TcpState::FinWait2, "fin_wait2"),
    (TcpState::TimeWait, "time_wait"),
    (TcpState::CloseWait, "close_wait"),
    (TcpState::LastAck, "last_ack"),
    (TcpState::Closing, "closing"),
];

/// Every TCP socket of the process's network namespace.
pub(crate) fn table(process: &Process) -> Vec<TcpNetEntry> {
    // A machine without one of the families has no such file.
    let mut entries = process.tcp().unwrap_or_default();
    entries.extend(process.tcp6().unwrap_or_default());
    entries
}

/// The sockets that listen and are among `inodes`, or on `port` when there is one.
pub(crate) fn listeners<'a>(
    table: &'a [TcpNetEntry],
    port: Option<u16>,
    inodes: &HashSet<u64>,
) -> Vec<&'a TcpNetEntry> {
    let wanted = |entry: &&TcpNetEntry| match port {
        Some(port) => entry.local_address.port() == port,
        None => inodes.contains(&entry.inode),
    };
    table.iter().filter(|entry| entry.state == TcpState::Listen).filter(wanted).collect()
}

/// Levels of what is connected to `listeners`.
pub(crate) fn levels(table: &[TcpNetEntry], listeners: &[&TcpNetEntry]) -> Vec<Level> {
    let ports: HashSet<u16> = listeners.iter().map(|entry| entry.local_address.port()).collect();
    let mut levels = Vec::new();
    for (name, count) in by_state(table, &ports) {
        levels.push(Level::new(name, Unit::Count, count as f64));
    }
    if !listeners.is_empty() {
        // Of a listener, the receive queue holds connections that nobody has accepted yet.
        let waiting: u64 = listeners.iter().map(|entry| u64::from(entry.rx_queue)).sum();
        levels.push(Level::new("accept_queue", Unit::Count, waiting as f64));
    }
    levels
}

/// Sockets on the ports by state; states that no socket is in are left out, but for
/// `established`.
fn by_state(table: &[TcpNetEntry], ports: &HashSet<u16>) -> Vec<(&'static str, u64)> {
    let mut counts = vec![("established", 0)];
    for entry in table.iter().filter(|entry| ports.contains(&entry.local_address.port())) {
        let Some((_, name)) = STATES.iter().find(|(state, _)| *state == entry.state) else {
            continue;
        };
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

/// Connections a second that the namespace's listeners turned away because their accept queue was
/// full, and for any reason (`ListenOverflows` and `ListenDrops` of /proc/net/netstat).
pub(crate) fn turned_away(netstat: &str, now: Instant, rates: &mut Rates) -> Vec<Level> {
    [("ListenOverflows", "listen_overflows"), ("ListenDrops", "listen_drops")]
        .into_iter()
        .filter_map(|(field, name)| {
            let rate = rates.rate(name, now, extension(netstat, field)? as f64)?;
            Some(Level::new(name, Unit::PerSecond, rate))
        })
        .collect()
}

/// A field of the `TcpExt` lines: one line of names, one of values.
fn extension(netstat: &str, field: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let at = lines.next()?.split_whitespace().position(|name| name == field)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn overflows_are_rates() {
        let text = |overflows: u64| {
            format!(
                "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 {overflows} 7\n\
                 IpExt: InNoRoutes\nIpExt: 0\n"
            )
        };
        let (now, mut rates) = (Instant::now(), Rates::default());
        assert!(turned_away(&text(5), now, &mut rates).is_empty());
        let levels = turned_away(&text(25), now + Duration::from_secs(2), &mut rates);
        assert_eq!((levels[0].name.as_str(), levels[0].value), ("listen_overflows", 10.0));
        assert_eq!((levels[1].name.as_str(), levels[1].value), ("listen_drops", 0.0));
        assert_eq!(extension("nonsense", "ListenDrops"), None);
    }
}
