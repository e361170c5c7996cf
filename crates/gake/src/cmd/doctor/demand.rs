//! What a number of connections at once would need.
//!
//! The figures are measured (docs/connections.md: a million connections on one machine, both ends on
//! it): memory of the kernel for each end, and of gake's; the share of the port range that opens at
//! full speed; connections opened a second.

use std::time::Duration;

use gake_core::plan::{TableShares, tables_for};
use gake_text::units::{bytes, count, duration, plural};

use super::check::{Check, Group, Status};
use super::facts::Facts;

/// Memory of one end of a connection in the kernel.
const KERNEL_BYTES: u64 = 4_200;

/// gake's memory for a user with think time and its connection.
const USER_BYTES: u64 = 3_800;

/// The same over TLS.
const TLS_USER_BYTES: u64 = 12_900;

/// gake's memory for an idle connection.
const IDLE_BYTES: u64 = 1_400;

/// The memory of `gake serve` for a connection.
const SERVE_BYTES: u64 = 2_600;

/// Memory of a user's connection whose other end is on another machine.
pub const REMOTE_BYTES: u64 = KERNEL_BYTES + USER_BYTES;

/// The same over TLS.
const REMOTE_TLS_BYTES: u64 = KERNEL_BYTES + TLS_USER_BYTES;

/// The same of an idle connection.
const REMOTE_IDLE_BYTES: u64 = KERNEL_BYTES + IDLE_BYTES;

/// Memory of a user's connection with both ends on this machine, the other one of `gake serve`.
pub const LOCAL_BYTES: u64 = REMOTE_BYTES + KERNEL_BYTES + SERVE_BYTES;

/// Connections opened a second, both ends on two cores: 18,000 to 20,000.
const OPENED_PER_S: f64 = 18_000.0;

/// What a number of connections needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Connections at once.
    pub connections: u64,
    /// Threads of gake with a descriptor table each; `None` when no number of tables of this size
    /// is enough.
    pub shards: Option<u64>,
    /// The same for a server to whose tables the kernel assigns connections at random.
    pub server_shards: Option<u64>,
    /// Source addresses towards one target address and port.
    pub sources: Option<u64>,
    /// Bytes of memory here when the target is another machine, for users with think time.
    pub remote_bytes: u64,
    /// The same over TLS.
    pub remote_tls_bytes: u64,
    /// The same for idle connections.
    pub remote_idle_bytes: u64,
    /// Bytes of memory here when the target is on this machine.
    pub local_bytes: u64,
    /// Open files of the system when the target is on this machine.
    pub local_files: u64,
    /// How long opening them takes on two cores.
    pub opening: Duration,
}

impl Demand {
    /// What `connections` need on this machine.
    pub fn new(connections: u64, facts: &Facts) -> Self {
        let size = usize::try_from(facts.descriptors.1).unwrap_or(usize::MAX);
        let shards = |shares| {
            let tables = tables_for(usize::try_from(connections).ok()?, size, shares)?;
            Some(tables as u64)
        };
        let sources = facts.ports_per_source().map(|most| connections.div_ceil(most.max(1)));
        Self {
            connections,
            shards: shards(TableShares::Equal),
            server_shards: shards(TableShares::Random),
            sources,
            remote_bytes: connections.saturating_mul(REMOTE_BYTES),
            remote_tls_bytes: connections.saturating_mul(REMOTE_TLS_BYTES),
            remote_idle_bytes: connections.saturating_mul(REMOTE_IDLE_BYTES),
            local_bytes: connections.saturating_mul(LOCAL_BYTES),
            local_files: connections.saturating_mul(2),
            opening: Duration::try_from_secs_f64(connections as f64 / OPENED_PER_S)
                .unwrap_or(Duration::MAX),
        }
    }

    /// The same as checks against the machine's limits.
    pub fn group(&self, facts: &Facts) -> Group {
        let mut checks = vec![self.tables(facts), self.addresses(facts), self.memory(facts)];
        checks.push(self.table_of(
            "open files for them",
            facts.files.map(|(open, most)| (most.saturating_sub(open), self.local_files)),
            "fs.file-max",
        ));
        checks.push(self.table_of(
            "watches for them",
            facts.epoll_watches.map(|most| (most, self.local_files)),
            "fs.epoll.max_user_watches",
        ));
        checks.extend(facts.conntrack.map(|(now, most)| self.tracking(now, most)));
        checks.push(Check::good(
            "time to open them",
            format!("about {} on two cores", duration(self.opening.as_nanos() as f64)),
        ));
        Group { name: "connections", checks }
    }

    fn tables(&self, facts: &Facts) -> Check {
        let name = "descriptor tables";
        let connections = plural(self.connections, "connection");
        let (Some(shards), Some(server)) = (self.shards, self.server_shards) else {
            let value = format!("no number of tables is enough for {connections}");
            return Check::new(name, Status::Bad, value).advise(format!(
                "a table holds {} descriptors: raise the hard limit (`ulimit -Hn`)",
                count(facts.descriptors.1)
            ));
        };
        let status = if server == 1 { Status::Good } else { Status::Note };
        let value = match server {
            1 => format!("{} for {connections}", plural(shards, "table")),
            _ => {
                format!("{} for {connections}, {server} for `gake serve`", plural(shards, "table"))
            }
        };
        Check::new(name, status, value).advise(format!(
            "a table holds {} descriptors: `gake run` takes the threads it needs, each with its \
             table; `gake serve` does with --max-connections {}",
            count(facts.descriptors.1),
            self.connections
        ))
    }

    fn addresses(&self, facts: &Facts) -> Check {
        let name = "addresses for them";
        let Some(needed) = self.sources else { return Check::unknown(name) };
        let have = facts.addresses.as_ref().map_or(1, |addresses| addresses.len() as u64);
        let status = if needed <= have.max(1) { Status::Good } else { Status::Note };
        let value = format!("{needed} to one target, {have} to other machines here");
        Check::new(name, status, value).advise(format!(
            "another machine needs {} more: add them to an interface and give all with \
             --interface, or use several target ports; on loopback gake takes them by itself",
            count(needed.saturating_sub(have))
        ))
    }

    fn memory(&self, facts: &Facts) -> Check {
        let value = format!(
            "{} to another machine ({} if idle, {} over TLS), {} within this one",
            bytes(self.remote_bytes as f64),
            bytes(self.remote_idle_bytes as f64),
            bytes(self.remote_tls_bytes as f64),
            bytes(self.local_bytes as f64)
        );
        let status = match facts.memory_free() {
            Some(free) if self.remote_bytes > free => Status::Bad,
            Some(free) if self.local_bytes > free => Status::Note,
            _ => Status::Good,
        };
        let free = facts.memory_free().unwrap_or(u64::MAX);
        let short = |needed: u64| bytes(needed.saturating_sub(free) as f64);
        Check::new("memory for them", status, value).advise(format!(
            "short by {} to another machine, by {} within this one: use several machines, or fewer \
             connections",
            short(self.remote_bytes),
            short(self.local_bytes)
        ))
    }

    fn tracking(&self, now: u64, most: u64) -> Check {
        let room = Some((most.saturating_sub(now), self.connections));
        let mut check = self.table_of("tracking for them", room, "net.netfilter.nf_conntrack_max");
        if now == 0 && check.status == Status::Bad {
            // The table exists, but perhaps no firewall rule uses it.
            check.status = Status::Note;
            check.value.push_str(", none tracked now");
        }
        check
    }

    fn table_of(&self, name: &'static str, room: Option<(u64, u64)>, setting: &str) -> Check {
        let Some((free, needed)) = room else { return Check::unknown(name) };
        let status = if needed <= free {
            Status::Good
        } else if self.connections <= free {
            Status::Note
        } else {
            Status::Bad
        };
        let local = if needed > self.connections { " with both ends here" } else { "" };
        Check::new(name, status, format!("{}{local}, {} free", count(needed), count(free)))
            .advise(format!("raise {setting} by {}", count(needed.saturating_sub(free))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            descriptors: (20_000, 20_000),
            files: Some((1_000, 2_465_620)),
            ports: Some((32_768, 60_999)),
            addresses: Some(vec!["192.0.2.2".parse().unwrap()]),
            memory: Some(24_000_000_000),
            ..Facts::default()
        }
    }

    #[test]
    fn a_million_connections() {
        let demand = Demand::new(1_000_000, &facts());
        assert_eq!((demand.shards, demand.server_shards), (Some(51), Some(53)));
        assert_eq!(demand.sources, Some(79)); // 1,000,000 / (28,232 × 0.45)
        assert_eq!((demand.remote_bytes, demand.local_bytes), (8_000_000_000, 14_800_000_000));
        assert_eq!(demand.local_files, 2_000_000);
        assert_eq!(demand.opening.as_secs(), 55);
        let group = demand.group(&facts());
        let texts: Vec<_> = group.checks.iter().map(|check| check.value.as_str()).collect();
        assert!(
            texts[0].contains("51 tables") && texts[0].contains("53 for `gake serve`"),
            "{texts:?}"
        );
        let advice = group.checks[1].advice.as_deref().unwrap();
        assert!(advice.starts_with("another machine needs 78 more"), "{advice}");
        assert_eq!(
            texts[2],
            "8.00 GB to another machine (5.60 GB if idle, 17.1 GB over TLS), 14.8 GB within this one"
        );
        assert!(group.checks.iter().all(|check| check.status != Status::Bad), "{group:?}");
        let new = Facts { has_socket_port_ranges: true, ..facts() };
        assert_eq!(Demand::new(1_000_000, &new).sources, Some(40)); // 1,000,000 / (28,232 × 0.9)
    }

    #[test]
    fn few_connections_need_nothing() {
        let demand = Demand::new(1, &facts());
        assert_eq!((demand.shards, demand.sources), (Some(1), Some(1)));
        let checks = demand.group(&facts()).checks;
        assert!(checks.iter().all(|check| check.status == Status::Good), "{checks:?}");
    }

    #[test]
    fn edges_do_not_overflow() {
        let (descriptors, ports, memory) = ((1, 1), Some((9, 9)), Some(1));
        let tiny = Facts { descriptors, ports, memory, ..Facts::default() };
        let demand = Demand::new(u64::MAX, &tiny);
        assert_eq!((demand.shards, demand.sources), (None, Some(u64::MAX)));
        assert_eq!(demand.local_bytes, u64::MAX);
        let checks = demand.group(&tiny).checks;
        let memory = checks.iter().find(|check| check.name == "memory for them").unwrap();
        assert_eq!(memory.status, Status::Bad, "{checks:?}");
    }

    #[test]
    fn a_firewall_that_tracks_nothing_is_no_obstacle() {
        let status = |now| {
            let facts = Facts { conntrack: Some((now, 262_144)), ..facts() };
            let checks = Demand::new(1_000_000, &facts).group(&facts).checks;
            checks.into_iter().find(|check| check.name == "tracking for them").unwrap().status
        };
        assert_eq!([status(0), status(500)], [Status::Note, Status::Bad]);
    }

    #[test]
    fn what_does_not_fit_is_bad() {
        let small = Facts { memory: Some(1_000_000), files: Some((90, 100)), ..facts() };
        let checks = Demand::new(1_000, &small).group(&small).checks;
        let bad: Vec<_> =
            checks.iter().filter(|c| c.status == Status::Bad).map(|c| c.name).collect();
        assert_eq!(bad, ["memory for them", "open files for them"]);
    }
}
