//! The number of connections that a step can have on this machine, and what limits it.

use gake_core::plan::{OTHER_DESCRIPTORS, TableShares, connections_within};
use gake_files::can_own_table;
use gake_text::units::{bytes, count};

/// Descriptors of a table for other uses than connections.
const OTHERS: u64 = OTHER_DESCRIPTORS as u64;
/// Memory of a connection with both ends on this machine, in the kernel and both processes: a
/// million took 14 KB each with idle users; a request in flight takes more.
const LOCAL_BYTES: u64 = 20_000;
/// The same with the other end on another machine.
const REMOTE_BYTES: u64 = 10_000;

/// Where the load and the server run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadTopology {
    /// This process has the load, and a lab on this machine is the server.
    Both,
    /// This process has the load; the server is the user's.
    One,
    /// This many agents have the load, on this machine or others.
    Agents(u64),
}

/// This machine's limits on connections; `None` where unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineLimits {
    /// Open files of the whole system: the current number and the maximum.
    pub files: Option<(u64, u64)>,
    /// Connections per source address and target that open at full speed.
    pub ports_per_source: Option<u64>,
    /// Bytes of free memory.
    pub memory: Option<u64>,
}

/// The limits on the connections of an experiment.
#[derive(Debug)]
pub struct ConnectionBudget {
    ends: LoadTopology,
    /// Size of a descriptor table.
    table: u64,
    /// Whether threads can have their own tables.
    has_own_tables: bool,
    limits: MachineLimits,
}

/// How many of the requested connections are possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionAllowance {
    /// Concurrent connections, at most the requested number.
    pub connections: u64,
    /// The limit and how to raise it; empty when all are possible.
    pub why: String,
}

impl ConnectionBudget {
    /// The budget of this machine, with descriptor tables of this size.
    pub fn new(ends: LoadTopology, table: u64, limits: MachineLimits) -> Self {
        Self { ends, table, has_own_tables: can_own_table(), limits }
    }

    /// How many of `asked` concurrent connections are possible.
    pub fn fits(&self, asked: u64) -> ConnectionAllowance {
        let is_local = self.ends == LoadTopology::Both;
        let bytes_each = if is_local { LOCAL_BYTES } else { REMOTE_BYTES };
        // Agents may be on other machines.
        let here =
            |most: Option<u64>| most.filter(|_| !matches!(self.ends, LoadTopology::Agents(_)));
        let free_files = self.limits.files.map(|(open, most)| most.saturating_sub(open));
        let sources = gake_wire::LOOPBACK_MAX as u64;
        let ports = self.limits.ports_per_source.map(|ports| ports.saturating_mul(sources));
        let memory = self.limits.memory;
        let who = if here(Some(0)).is_some() { "this machine" } else { "the agents" };
        let table = count(self.table);
        let bounds = [
            (
                Some(self.descriptors(asked)),
                format!("file descriptors, {table} in a table, allow {who}"),
                " (raise `ulimit -Hn`)".to_owned(),
            ),
            (
                here(free_files).map(|free| if is_local { free / 2 } else { free }),
                "the open files of the system allow".to_owned(),
                " (raise fs.file-max)".to_owned(),
            ),
            (
                ports.filter(|_| is_local),
                "local ports allow".to_owned(),
                " to one port of loopback (widen net.ipv4.ip_local_port_range)".to_owned(),
            ),
            (
                here(memory).map(|memory| memory / bytes_each),
                format!("{} of free memory allow", bytes(memory.unwrap_or(0) as f64)),
                format!(", {} each", bytes(bytes_each as f64)),
            ),
        ];
        let known =
            bounds.into_iter().filter_map(|(most, bound, advice)| Some((most?, bound, advice)));
        match known.min_by_key(|(most, ..)| *most) {
            Some((connections, bound, advice)) if connections < asked => {
                let most = count(connections);
                ConnectionAllowance {
                    connections,
                    why: format!("{bound} {most} connections at once{advice}"),
                }
            }
            _ => ConnectionAllowance { connections: asked, why: String::new() },
        }
    }

    /// Whether this number of connections needs more than one descriptor table.
    pub fn needs_tables(&self, connections: u64) -> bool {
        connections.saturating_add(OTHERS) > self.table
    }

    /// Connections within the limit on descriptors.
    fn descriptors(&self, asked: u64) -> u64 {
        // The lab's tables need a margin: the kernel picks among their listeners at random.
        let shares = match self.ends {
            LoadTopology::Both => TableShares::Random,
            LoadTopology::One => TableShares::Equal,
            LoadTopology::Agents(agents) => {
                return self.table.saturating_sub(OTHERS).saturating_mul(agents);
            }
        };
        if !self.has_own_tables {
            return self.table.saturating_sub(OTHERS);
        }
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        connections_within(size(asked), size(self.table), shares) as u64
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn budget(ends: LoadTopology) -> ConnectionBudget {
        let limits = MachineLimits {
            files: Some((1_000, 2_465_620)),
            ports_per_source: Some(12_704),
            memory: Some(24_000_000_000),
        };
        ConnectionBudget { ends, table: 20_000, has_own_tables: true, limits }
    }

    #[test]
    fn the_smallest_bound_is_named() {
        assert_eq!(budget(LoadTopology::Both).fits(500_000).connections, 500_000);
        assert_eq!(budget(LoadTopology::Both).fits(500_000).why, "");
        let without_tables =
            ConnectionBudget { has_own_tables: false, ..budget(LoadTopology::Both) };
        let fits = without_tables.fits(500_000);
        assert_eq!(fits.connections, 19_936);
        expect!["file descriptors, 20,000 in a table, allow this machine 19,936 connections at once (raise `ulimit -Hn`)"].assert_eq(&fits.why);
        let with = |change: fn(&mut MachineLimits)| {
            let mut budget = budget(LoadTopology::Both);
            change(&mut budget.limits);
            budget.fits(500_000)
        };
        let fits = with(|limits| limits.files = Some((100_000, 400_000)));
        assert_eq!(fits.connections, 150_000);
        expect![
            "the open files of the system allow 150,000 connections at once (raise fs.file-max)"
        ]
        .assert_eq(&fits.why);
        let fits = with(|limits| limits.memory = Some(4_000_000_000));
        expect!["4.00 GB of free memory allow 200,000 connections at once, 20.0 kB each"]
            .assert_eq(&fits.why);
        // A range of 1,001 ports, of which half open fast, from 250 addresses.
        let fits = with(|limits| limits.ports_per_source = Some(450));
        assert_eq!(fits.connections, 112_500);
        expect!["local ports allow 112,500 connections at once to one port of loopback (widen net.ipv4.ip_local_port_range)"].assert_eq(&fits.why);
    }

    #[test]
    fn agents_have_a_table_each() {
        let fits = budget(LoadTopology::Agents(4)).fits(500_000);
        assert_eq!(fits.connections, 4 * 19_936);
        expect!["file descriptors, 20,000 in a table, allow the agents 79,744 connections at once (raise `ulimit -Hn`)"].assert_eq(&fits.why);
        assert_eq!(budget(LoadTopology::One).fits(500_000).connections, 500_000);
    }

    #[test]
    fn the_lab_needs_tables_beyond_that_of_its_process() {
        assert!(!budget(LoadTopology::Both).needs_tables(19_936));
        assert!(budget(LoadTopology::Both).needs_tables(19_937));
    }
}
