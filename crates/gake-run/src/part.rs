//! A part of a run: what one process of several does.

use std::net::IpAddr;
use std::sync::Arc;

use gake_core::schedule::Slice;
use gake_engine::{Ready, WorkerContext, prepare};
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
    pub fn ready(&self, slice: Slice, log: Option<&mut PartLog>) -> Result<Ready, RunError> {
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

fn ip(address: &Address) -> Option<IpAddr> {
    match address {
        Address::Tcp(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}
