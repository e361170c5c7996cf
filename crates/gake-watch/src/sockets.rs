//! TCP sockets of a target: listeners with their queues, connections by state, and outgoing
//! connections.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Instant;

use gake_core::record::LevelUnit;
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::Process;

use crate::diag::{self, DiagSocket};
use crate::level::Level;
use crate::rates::CounterRates;

const UPSTREAMS_MAX: usize = 4;

/// States, with the names of `ss`.
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
    // The file of a disabled address family is missing.
    let mut entries = process.tcp().unwrap_or_default();
    entries.extend(process.tcp6().unwrap_or_default());
    entries
}

/// The listening sockets on `ports`, or those among `inodes` without `ports`.
pub(crate) fn listeners<'a>(
    table: &'a [TcpNetEntry],
    ports: Option<&[u16]>,
    inodes: &HashSet<u64>,
) -> Vec<&'a TcpNetEntry> {
    let wanted = |entry: &&TcpNetEntry| match ports {
        Some(ports) => ports.contains(&entry.local_address.port()),
        None => inodes.contains(&entry.inode),
    };
    table.iter().filter(|entry| entry.state == TcpState::Listen).filter(wanted).collect()
}

pub(crate) fn levels(table: &[TcpNetEntry], listeners: &[&TcpNetEntry]) -> Vec<Level> {
    let ports = ports_of(listeners);
    let mut levels = Vec::new();
    for (name, count) in by_state(table, &ports) {
        levels.push(Level::new(name, LevelUnit::Count, count as f64));
    }
    let ports: Vec<u16> = ports.into_iter().collect();
    levels.extend(unread(&ports));
    let waiting = unanswered(table, listeners);
    if waiting > 0 {
        levels.push(Level::new("syn_sent", LevelUnit::Count, waiting as f64));
    }
    if !listeners.is_empty() {
        // A listener's receive queue holds the connections not yet accepted.
        let waiting: u64 = listeners.iter().map(|entry| u64::from(entry.rx_queue)).sum();
        levels.push(Level::new("accept_queue", LevelUnit::Count, waiting as f64));
    }
    levels
}

/// The connections to local ports that have bytes that nothing has read.
pub(crate) fn unread(ports: &[u16]) -> Option<Level> {
    let count = diag::unread(ports).ok()?;
    Some(Level::new("unread_connections", LevelUnit::Count, count as f64))
}

/// Sockets on the ports by state, without empty states except `established`.
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

/// Clients in the same network namespace with an unanswered SYN to `listeners`.
fn unanswered(table: &[TcpNetEntry], listeners: &[&TcpNetEntry]) -> u64 {
    let is_there = |to: SocketAddr| {
        let mut addresses = listeners.iter().map(|entry| entry.local_address);
        addresses.any(|own| {
            let is_any = own.ip().is_unspecified() && to.ip().to_canonical().is_loopback();
            own.port() == to.port() && (is_any || own.ip() == to.ip())
        })
    };
    let sent = table.iter().filter(|entry| entry.state == TcpState::SynSent);
    sent.filter(|entry| is_there(entry.remote_address)).count() as u64
}

/// The ports on which sockets with these inodes listen.
pub(crate) fn listening_ports(table: &[TcpNetEntry], inodes: &HashSet<u64>) -> HashSet<u16> {
    let own = table.iter().filter(|e| e.state == TcpState::Listen && inodes.contains(&e.inode));
    own.map(|entry| entry.local_address.port()).collect()
}

fn ports_of(listeners: &[&TcpNetEntry]) -> HashSet<u16> {
    listeners.iter().map(|entry| entry.local_address.port()).collect()
}

/// The upstream servers of a target with these sockets: for each, connections in use, and those in
/// TIME-WAIT, which it closed in the last minute. A socket in TIME-WAIT belongs to no process, so
/// the remote address identifies it.
pub(crate) fn upstream(
    table: &[TcpNetEntry],
    listeners: &[&TcpNetEntry],
    inodes: &HashSet<u64>,
) -> Vec<Level> {
    // Connections accepted on any port of the process lead to no other server.
    let own = listening_ports(table, inodes);
    let ports: HashSet<u16> = ports_of(listeners).union(&own).copied().collect();
    let outgoing = || table.iter().filter(|entry| !ports.contains(&entry.local_address.port()));
    let mut counts: HashMap<SocketAddr, (u64, u64)> = HashMap::new();
    for entry in outgoing().filter(|entry| entry.state == TcpState::Established) {
        if inodes.contains(&entry.inode) {
            counts.entry(entry.remote_address).or_default().0 += 1;
        }
    }
    for entry in outgoing().filter(|entry| entry.state == TcpState::TimeWait) {
        if let Some(count) = counts.get_mut(&entry.remote_address) {
            count.1 += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(to, (open, closed))| (std::cmp::Reverse(open + closed), *to));
    counts.truncate(UPSTREAMS_MAX);
    let levels = counts.into_iter().flat_map(|(to, (open, closed))| {
        [("established", open), ("time_wait", closed)].map(|(state, count)| {
            Level::new(format!("{to} {state}"), LevelUnit::Count, count as f64)
        })
    });
    levels.collect()
}

/// The kernel's figures of the target's own listening sockets.
#[derive(Debug, Default)]
pub(crate) struct ListenerQueues {
    /// Drops of each socket at the first reading, by inode.
    first: HashMap<u64, u32>,
}

impl ListenerQueues {
    /// Levels of the listeners with these inodes; none if they are in another network namespace.
    pub(crate) fn levels(&mut self, all: &[DiagSocket], inodes: &HashSet<u64>) -> Vec<Level> {
        let ours: Vec<_> = all.iter().filter(|one| inodes.contains(&one.inode)).collect();
        if ours.is_empty() {
            return Vec::new();
        }
        let backlog: u64 = ours.iter().map(|one| u64::from(one.backlog)).sum();
        let mut levels = vec![Level::new("backlog", LevelUnit::Count, backlog as f64)];
        let dropped = |one: &&DiagSocket| {
            let drops = one.drops?;
            let first = *self.first.entry(one.inode).or_insert(drops);
            Some(u64::from(drops.wrapping_sub(first)))
        };
        let dropped: Option<Vec<_>> = ours.iter().map(dropped).collect();
        if let Some(dropped) = dropped {
            let sum: u64 = dropped.into_iter().sum();
            levels.push(Level::new("listener_dropped", LevelUnit::Count, sum as f64));
        }
        levels
    }
}

/// Connections a second dropped by the namespace's listeners because of a full accept queue, and
/// for any reason (`ListenOverflows` and `ListenDrops` of /proc/net/netstat).
pub(crate) fn overflows(netstat: &str, now: Instant, rates: &mut CounterRates) -> Vec<Level> {
    [("ListenOverflows", "listen_overflows"), ("ListenDrops", "listen_drops")]
        .into_iter()
        .filter_map(|(field, name)| {
            let rate = rates.rate(name, now, extension(netstat, field)? as f64)?;
            Some(Level::new(name, LevelUnit::PerSecond, rate))
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
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use super::*;

    #[test]
    fn upstream_connections_by_address() {
        // A unique address, since another server may have used the port in the last minute.
        let server = TcpListener::bind("127.9.8.7:0").unwrap();
        let to = server.local_addr().unwrap();
        let me = Process::myself().unwrap();
        let closed = TcpStream::connect(to).unwrap();
        let open = TcpStream::connect(to).unwrap();
        // The side that closes first enters TIME-WAIT.
        drop(closed);
        drop(server.accept().unwrap());
        let inodes = [sockets_inode(&open)].into();
        let found = |name: &str| {
            let levels = upstream(&table(&me), &[], &inodes);
            let name = format!("{to} {name}");
            levels.into_iter().find(|level| level.name == name).map(|level| level.value)
        };
        let begun = Instant::now();
        while found("time_wait") != Some(1.0) {
            let count = found("time_wait");
            assert!(begun.elapsed() < Duration::from_secs(30), "{count:?} in TIME-WAIT");
        }
        assert_eq!(found("established"), Some(1.0));
    }

    #[test]
    fn clients_wait_at_a_full_backlog() {
        let server = TcpListener::bind("127.9.8.6:0").unwrap();
        let to = server.local_addr().unwrap();
        // No accept, and a queue of one.
        rustix::net::listen(&server, 0).unwrap();
        // Two simultaneous handshakes would both succeed.
        let _first = TcpStream::connect(to).unwrap();
        for _ in 0..2 {
            std::thread::spawn(move || TcpStream::connect_timeout(&to, Duration::from_secs(20)));
        }
        let me = Process::myself().unwrap();
        let begun = Instant::now();
        loop {
            let all = table(&me);
            let listeners = listeners(&all, Some(&[to.port()]), &HashSet::new());
            let levels = levels(&all, &listeners);
            let value =
                |name: &str| levels.iter().find(|level| level.name == name).map(|l| l.value);
            if value("syn_sent") == Some(2.0) && value("accept_queue") == Some(1.0) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{levels:?}");
        }
    }

    fn sockets_inode(stream: &TcpStream) -> u64 {
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let link = std::fs::read_link(path).unwrap().to_string_lossy().into_owned();
        link.trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
    }

    #[test]
    fn drops_are_counted_from_the_first_reading() {
        let listener = |inode, drops| DiagSocket {
            local: "127.0.0.1:80".parse().unwrap(),
            inode,
            queue: 3,
            backlog: 10,
            drops,
        };
        let mut queues = ListenerQueues::default();
        let inodes = [1, 2].into();
        let values = |levels: Vec<Level>| levels.iter().map(|l| l.value).collect::<Vec<_>>();
        let first = [listener(1, Some(7)), listener(2, Some(0)), listener(3, Some(0))];
        assert_eq!(values(queues.levels(&first, &inodes)), [20.0, 0.0]);
        let later = [listener(1, Some(9)), listener(2, Some(1)), listener(3, Some(90))];
        assert_eq!(values(queues.levels(&later, &inodes)), [20.0, 3.0]);
        assert_eq!(queues.levels(&later, &[4].into()), []);
        assert_eq!(values(queues.levels(&[listener(1, None)], &inodes)), [10.0]);
    }

    #[test]
    fn overflows_are_rates() {
        let text = |overflows: u64| {
            format!(
                "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 {overflows} 7\n\
                 IpExt: InNoRoutes\nIpExt: 0\n"
            )
        };
        let (now, mut rates) = (Instant::now(), CounterRates::default());
        assert!(overflows(&text(5), now, &mut rates).is_empty());
        let levels = overflows(&text(25), now + Duration::from_secs(2), &mut rates);
        assert_eq!((levels[0].name.as_str(), levels[0].value), ("listen_overflows", 10.0));
        assert_eq!((levels[1].name.as_str(), levels[1].value), ("listen_drops", 0.0));
        assert_eq!(extension("nonsense", "ListenDrops"), None);
    }
}
