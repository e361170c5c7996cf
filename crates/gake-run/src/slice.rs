//! A slice of a run, for one process of several.

use std::net::IpAddr;
use std::sync::Arc;

use gake_core::plan::{Plan, TableShares, tables_for};
use gake_core::schedule::Slice;
use gake_engine::{PreparedRun, WorkerBody, WorkerContext, prepare};
use gake_wire::{Address, HttpFactory};

use crate::plan::check_memory;
use crate::{ResolvedRun, RunError, SliceLog};

/// A destination of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host as in the spec.
    pub host: String,
    /// Its addresses; none for a Unix socket.
    pub addresses: Vec<IpAddr>,
}

impl ResolvedRun {
    /// Prepares the workers for `slice` of the run, which wait for the epoch. The slices of all
    /// processes sum to the run exactly. Outcomes also go to `log`.
    ///
    /// # Errors
    /// When a worker cannot be prepared; nothing has been sent then.
    pub fn ready(&self, slice: Slice, log: Option<&mut SliceLog>) -> Result<PreparedRun, RunError> {
        check_memory(&self.plan, slice, false).map_err(RunError::cannot)?;
        let wires = self.wires.clone();
        let make = move |context: WorkerContext| {
            let wire = Arc::clone(&wires[context.scenario]);
            HttpFactory::new(wire, context.slice, context.clock)
        };
        let log = log.and_then(SliceLog::take_sender);
        prepare(&self.plan, self.seed, slice, log, WorkerBody::new(make)).map_err(RunError::cannot)
    }

    /// Limits the run to `threads` workers in this process.
    pub fn limit_threads(&mut self, threads: usize) {
        let plan = Arc::make_mut(&mut self.plan);
        plan.threads = plan.threads.min(threads).max(1);
        plan.tables = 1;
    }

    /// Checks that the descriptor table of this process is large enough for the connections of
    /// closed loops in `slice`, and the idle ones. An open loop opens connections as needed, and
    /// may never reach its limit.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub fn check_descriptors(&self, slice: Slice) -> Result<(), String> {
        fit(&self.plan, slice, gake_files::table_size())
    }

    /// Lets all threads share the descriptor table of the process, as agents do.
    pub fn keep_to_one_table(&mut self) {
        Arc::make_mut(&mut self.plan).tables = 1;
    }

    /// Destinations that are known before the run; a redirect may lead elsewhere.
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

fn fit(plan: &Plan, slice: Slice, size: usize) -> Result<(), String> {
    let kept = |plan: &Plan| {
        let own = |total| plan.slice(slice, Slice::WHOLE).map_or(0, |slice| slice.count(total));
        own(plan.kept_connections()).saturating_add(own(plan.idle_connections))
    };
    let kept = plan.scenarios().iter().map(kept).fold(0_usize, usize::saturating_add);
    match tables_for(kept, size, TableShares::Equal) {
        Some(1) => Ok(()),
        _ => Err(format!(
            "{kept} connections need more than its {size} descriptors: use more agents, or raise \
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

    use expect_test::expect;
    use gake_core::Load;
    use gake_core::schedule::Process;

    use super::*;

    #[test]
    fn a_slice_whose_connections_do_not_fit_is_refused() {
        let load = Load::Closed { users: 1_000, think: Duration::ZERO };
        let closed = Plan { connections: 1_000, ..Plan::new("http://h/", load) };
        assert_eq!(fit(&closed, Slice::WHOLE, 1_064), Ok(()));
        let why = fit(&closed, Slice::WHOLE, 1_063).unwrap_err();
        expect!["1000 connections need more than its 1063 descriptors: use more agents, or raise its limit (`ulimit -n`)"].assert_eq(&why);
        let fourth = Slice::new(3, 4);
        assert_eq!(fit(&closed, fourth, 314), Ok(()));
        assert!(fit(&Plan { idle_connections: 4, ..closed.clone() }, fourth, 314).is_err());
        // Without keep-alive, connections do not accumulate.
        assert_eq!(fit(&Plan { keepalive: false, ..closed.clone() }, Slice::WHOLE, 256), Ok(()));
        let load = Load::Open { stages: Vec::new(), process: Process::Uniform };
        assert_eq!(fit(&Plan { load: load.into(), ..closed }, Slice::WHOLE, 256), Ok(()));
    }
}
