//! How many connections a step can have on this machine, and what allows no more.

use gake_core::plan::{OTHER_DESCRIPTORS, TableShares, connections_within};
use gake_files::can_own_table;
use gake_text::units::{bytes, count};

/// Descriptors of a table that are not connections.
const OTHERS: u64 = OTHER_DESCRIPTORS as u64;
/// Memory of a connection with both ends here, of the kernel and of both processes: a million were
/// measured at 14 KB while their users paused; a request takes more for as long as it waits.
const LOCAL_BYTES: u64 = 20_000;
/// The same with the other end elsewhere.
const REMOTE_BYTES: u64 = 10_000;

/// Who has the load, and where the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// This process, and a lab here.
    Both,
    /// This process; the server is the user's.
    One,
    /// A number of agents, here or elsewhere.
    Agents(u64),
}

/// What this machine has for connections; `None` where it does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineLimits {
    /// Open files of the whole system: now, and at most.
    pub files: Option<(u64, u64)>,
    /// Connections from one source address to one target that open at full speed.
    pub ports_per_source: Option<u64>,
    /// Bytes of free memory.
    pub memory: Option<u64>,
}

/// What bounds the connections of an experiment.
#[derive(Debug)]
pub struct ConnectionBudget {
    ends: Ends,
    /// Descriptors of a table.
    table: u64,
    /// Whether threads can have a table each.
    has_own_tables: bool,
    limits: MachineLimits,
}

/// What there is room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fits {
    /// Connections at once, at most those that were asked for.
    pub connections: u64,
    /// What allows no more, and what to do about it; empty when all fit.
    pub why: String,
}

impl ConnectionBudget {
    /// On this machine, with tables of this number of descriptors.
    pub fn new(ends: Ends, table: u64, limits: MachineLimits) -> Self {
        Self { ends, table, has_own_tables: can_own_table(), limits }
    }

    /// As many of `asked` connections as there can be at once.
    pub fn fits(&self, asked: u64) -> Fits {
        let is_local = self.ends == Ends::Both;
        let bytes_each = if is_local { LOCAL_BYTES } else { REMOTE_BYTES };
        // Agents may be elsewhere.
        let here = |most: Option<u64>| most.filter(|_| !matches!(self.ends, Ends::Agents(_)));
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
                Fits { connections, why: format!("{bound} {most} connections at once{advice}") }
            }
            _ => Fits { connections: asked, why: String::new() },
        }
    }

    /// Whether this number of connections needs more than the table of a process.
    pub fn needs_tables(&self, connections: u64) -> bool {
        connections.saturating_add(OTHERS) > self.table
    }

    /// Connections that the descriptors allow.
    fn descriptors(&self, asked: u64) -> u64 {
        // The lab's tables need more: the kernel chooses among their listeners at random.
        let shares = match self.ends {
            Ends::Both => TableShares::Random,
            Ends::One => TableShares::Equal,
            Ends::Agents(agents) => {
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
    use super::*;

    fn budget(ends: Ends) -> ConnectionBudget {
        let limits = MachineLimits {
            files: Some((1_000, 2_465_620)),
            ports_per_source: Some(12_704),
            memory: Some(24_000_000_000),
        };
        ConnectionBudget { ends, table: 20_000, has_own_tables: true, limits }
    }

    #[test]
    fn the_smallest_bound_is_named() {
        assert_eq!(budget(Ends::Both).fits(500_000).connections, 500_000);
        assert_eq!(budget(Ends::Both).fits(500_000).why, "");
        let without_tables = ConnectionBudget { has_own_tables: false, ..budget(Ends::Both) };
        let fits = without_tables.fits(500_000);
        assert_eq!(fits.connections, 19_936);
        assert!(fits.why.contains("file descriptors, 20,000 in a table, allow"), "{}", fits.why);
        let with = |change: fn(&mut MachineLimits)| {
            let mut budget = budget(Ends::Both);
            change(&mut budget.limits);
            budget.fits(500_000)
        };
        let fits = with(|limits| limits.files = Some((100_000, 400_000)));
        assert!(fits.connections == 150_000 && fits.why.contains("fs.file-max"), "{fits:?}");
        let fits = with(|limits| limits.memory = Some(4_000_000_000));
        assert!(fits.why.starts_with("4.00 GB of free memory allow 200,000"), "{fits:?}");
        // A range of 1,001 ports, of which half opens soon, from 250 addresses.
        let fits = with(|limits| limits.ports_per_source = Some(450));
        assert!(fits.connections == 112_500 && fits.why.contains("local ports"), "{fits:?}");
    }

    #[test]
    fn agents_have_a_table_each() {
        let fits = budget(Ends::Agents(4)).fits(500_000);
        assert_eq!(fits.connections, 4 * 19_936);
        assert!(fits.why.contains("allow the agents 79,744 connections"), "{}", fits.why);
        assert_eq!(budget(Ends::One).fits(500_000).connections, 500_000);
    }

    #[test]
    fn the_lab_needs_tables_beyond_that_of_its_process() {
        assert!(!budget(Ends::Both).needs_tables(19_936));
        assert!(budget(Ends::Both).needs_tables(19_937));
    }
}
