//! What a number of connections at once would need.
//!
//! The figures are measured (a million connections on one machine, both ends on it): memory of
//! the kernel for each end, the descriptors a process needs beside its connections, the share of
//! the port range that opens at full speed, connections opened a second.

use std::time::Duration;

use gake_judge::units::{bytes, count, duration, plural};

use super::check::{Check, Group, Status};
use super::facts::Facts;

/// Memory of one end of a connection in the kernel, and what gake holds for it.
pub const REMOTE_BYTES: u64 = 4_200 + 1_500;

/// The same with both ends on this machine, and a lean server.
pub const LOCAL_BYTES: u64 = 2 * REMOTE_BYTES;

/// Descriptors of a process that are not connections.
const DESCRIPTORS_OWN: u64 = 500;

/// Connections opened a second, both ends on two cores.
const OPENED_PER_S: f64 = 30_000.0;

/// What a number of connections needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Connections at once.
    pub connections: u64,
    /// File tables: threads or processes with descriptors of their own.
    pub shards: u64,
    /// Source addresses towards one target address and port.
    pub sources: Option<u64>,
    /// Bytes of memory here when the target is another machine.
    pub remote_bytes: u64,
    /// Bytes of memory here when the target is on this machine.
    pub local_bytes: u64,
    /// Open files of the system when the target is on this machine.
    pub local_files: u64,
    /// How long opening them takes on two cores.
    pub opening: Duration,
}

/// Connections from one source address to one target that open at full speed. The kernel tries
/// ports of one parity first; when those are used up, each further connect is a long search.
pub fn ports_per_source(ports: u64) -> u64 {
    ports * 9 / 20
}

impl Demand {
    /// What `connections` need on this machine.
    pub fn new(connections: u64, facts: &Facts) -> Self {
        let table = facts.descriptors.1.saturating_sub(DESCRIPTORS_OWN).max(1);
        let sources =
            facts.ports_count().map(|ports| connections.div_ceil(ports_per_source(ports).max(1)));
        Self {
            connections,
            shards: connections.div_ceil(table),
            sources,
            remote_bytes: connections.saturating_mul(REMOTE_BYTES),
            local_bytes: connections.saturating_mul(LOCAL_BYTES),
            local_files: connections.saturating_mul(2),
            opening: Duration::try_from_secs_f64(connections as f64 / OPENED_PER_S)
                .unwrap_or(Duration::MAX),
        }
    }

    /// The same as checks, against what there is.
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
        let status = if self.shards == 1 { Status::Good } else { Status::Note };
        let value = format!(
            "{} for {}",
            plural(self.shards, "shard"),
            plural(self.connections, "connection")
        );
        Check::new("file tables for them", status, value).advise(format!(
            "a file table holds {} descriptors: raise the hard limit to {} (`ulimit -Hn`), or \
             spread the load over {} processes",
            count(facts.descriptors.1),
            count(self.connections.saturating_add(DESCRIPTORS_OWN)),
            count(self.shards)
        ))
    }

    fn addresses(&self, facts: &Facts) -> Check {
        let name = "addresses for them";
        let Some(needed) = self.sources else { return Check::unknown(name) };
        let have = facts.addresses.as_ref().map_or(1, |addresses| addresses.len() as u64);
        let status = if needed <= have.max(1) { Status::Good } else { Status::Note };
        let value = format!("{needed} to one target, {have} to other machines here");
        // 127.0.0.1 is the system's own choice, so the range starts after it.
        let last = needed.saturating_add(1);
        let range = (last < 255).then(|| format!(" 127.0.0.2-127.0.0.{last}"));
        let range = range.unwrap_or_else(|| " 127.0.0.0/16".to_owned());
        Check::new(name, status, value).advise(format!(
            "give {} source addresses with --interface (on loopback, for example,{range}), or use \
             several target ports",
            count(needed)
        ))
    }

    fn memory(&self, facts: &Facts) -> Check {
        let value = format!(
            "{} to another machine, {} within this one",
            bytes(self.remote_bytes as f64),
            bytes(self.local_bytes as f64)
        );
        let status = match facts.memory_free() {
            Some(free) if self.remote_bytes > free => Status::Bad,
            Some(free) if self.local_bytes > free => Status::Note,
            _ => Status::Good,
        };
        let free = facts.memory_free().map_or("unknown".to_owned(), |free| bytes(free as f64));
        Check::new("memory for them", status, value)
            .advise(format!("only {free} can be had: use several machines, or fewer connections"))
    }

    fn tracking(&self, now: u64, most: u64) -> Check {
        let room = Some((most.saturating_sub(now), self.connections));
        let mut check = self.table_of("tracking for them", room, "net.netfilter.nf_conntrack_max");
        if now == 0 && check.status == Status::Bad {
            // The table is there, but it may be that no rule of the firewall uses it.
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
        assert_eq!(demand.shards, 52); // 1,000,000 / 19,500
        assert_eq!(demand.sources, Some(79)); // 1,000,000 / (28,232 × 0.45)
        assert_eq!(demand.remote_bytes, 5_700_000_000);
        assert_eq!(demand.local_files, 2_000_000);
        assert_eq!(demand.opening.as_secs(), 33);
        let group = demand.group(&facts());
        let texts: Vec<_> = group.checks.iter().map(|check| check.value.as_str()).collect();
        assert!(texts[0].contains("52 shards"), "{texts:?}");
        let advice = group.checks[1].advice.as_deref().unwrap();
        assert!(advice.contains("127.0.0.2-127.0.0.80"), "{advice}");
        assert!(group.checks.iter().all(|check| check.status != Status::Bad), "{group:?}");
    }

    #[test]
    fn few_connections_need_nothing() {
        let demand = Demand::new(1, &facts());
        assert_eq!((demand.shards, demand.sources), (1, Some(1)));
        let checks = demand.group(&facts()).checks;
        assert!(checks.iter().all(|check| check.status == Status::Good), "{checks:?}");
    }

    #[test]
    fn edges_do_not_overflow() {
        let (descriptors, ports, memory) = ((1, 1), Some((9, 9)), Some(1));
        let tiny = Facts { descriptors, ports, memory, ..Facts::default() };
        let demand = Demand::new(u64::MAX, &tiny);
        assert_eq!((demand.shards, demand.sources), (u64::MAX, Some(u64::MAX)));
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
