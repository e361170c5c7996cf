//! A part of a run: what one process of several does.

use std::net::IpAddr;
use std::sync::Arc;

use gake_core::plan::{Plan, TableShares, tables_for};
use gake_core::schedule::Slice;
use gake_engine::{PreparedRun, WorkerContext, prepare};
use gake_wire::{Address, HttpFactory};

use crate::{PartLog, Prepared, RunError};

/// Where a run connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host as the spec names it.
    pub host: String,
    /// Its addresses; none for a Unix socket.
    pub addresses: Vec<IpAddr>,
}

impl Prepared {
    /// The workers for `slice` of the run, which start when they are told the epoch. The slices of
    /// all processes sum to the run exactly. What comes of each request also goes to `log`.
    ///
    /// # Errors
    /// When a worker cannot be made ready; nothing has been sent then.
    pub fn ready(&self, slice: Slice, log: Option<&mut PartLog>) -> Result<PreparedRun, RunError> {
        let wires = self.wires.clone();
        let make = move |context: WorkerContext| {
            let wire = Arc::clone(&wires[context.scenario]);
            HttpFactory::new(wire, context.slice, context.clock)
        };
        let log = log.and_then(PartLog::take_sender);
        prepare(&self.plan, self.seed, slice, log, make).map_err(RunError::cannot)
    }

    /// Gives the run at most `threads` workers in this process.
    pub fn limit_threads(&mut self, threads: usize) {
        let plan = Arc::make_mut(&mut self.plan);
        plan.threads = plan.threads.min(threads).max(1);
        plan.tables = 1;
    }

    /// Whether the descriptor table of this process holds the connections that users of `slice` keep,
    /// and the idle ones. An open loop has those that it needs, and may never reach its limit.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub fn check_descriptors(&self, slice: Slice) -> Result<(), String> {
        fit(&self.plan, slice, gake_files::table_size())
    }

    /// All threads share the descriptor table of their process, as those of agents do.
    pub fn keep_to_one_table(&mut self) {
        Arc::make_mut(&mut self.plan).tables = 1;
    }

    /// Where it connects to, as far as that is known before the run: a redirect may lead elsewhere.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        let origins = self.wires.iter().flat_map(|wire| &wire.network.origins);
        let each = origins.map(|origin| Destination {
            host: origin.host().to_owned(),
            addresses: origin.addresses.iter().filter_map(ip).collect(),
        });
        each.collect()
    }
}

/// Whether a table of `size` descriptors holds the connections that `slice` of a run keeps.
fn fit(plan: &Plan, slice: Slice, size: usize) -> Result<(), String> {
    let kept = |plan: &Plan| {
        let part = |total| plan.slice(slice, Slice::WHOLE).map_or(0, |part| part.count(total));
        part(plan.kept_connections()).saturating_add(part(plan.idle_connections))
    };
    let kept = plan.scenarios().iter().map(kept).fold(0_usize, usize::saturating_add);
    match tables_for(kept, size, TableShares::Equal) {
        Some(1) => Ok(()),
        _ => Err(format!(
            "{kept} connections are more than its {size} descriptors hold: use more agents, or raise \
             its limit (`ulimit -n`)"
        )),
    }
}

fn ip(address: &Address) -> Option<IpAddr> {
    match address {
        Address::Tcp(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::Load;
    use gake_core::schedule::Process;

    use super::*;

    #[test]
    fn a_slice_whose_connections_do_not_fit_is_refused() {
        let load = Load::Closed { users: 1_000, think: Duration::ZERO };
        let closed = Plan { connections: 1_000, ..Plan::new("http://h/", load) };
        assert_eq!(fit(&closed, Slice::WHOLE, 1_064), Ok(()));
        let why = fit(&closed, Slice::WHOLE, 1_063).unwrap_err();
        assert!(why.starts_with("1000 connections are more than its 1063 descriptors"), "{why}");
        let fourth = Slice::new(3, 4);
        assert_eq!(fit(&closed, fourth, 314), Ok(()));
        assert!(fit(&Plan { idle_connections: 4, ..closed.clone() }, fourth, 314).is_err());
        // One that is closed after each answer makes room for the next.
        assert_eq!(fit(&Plan { keepalive: false, ..closed.clone() }, Slice::WHOLE, 256), Ok(()));
        let load = Load::Open { stages: Vec::new(), process: Process::Uniform };
        assert_eq!(fit(&Plan { load: load.into(), ..closed }, Slice::WHOLE, 256), Ok(()));
    }
}
