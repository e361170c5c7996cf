//! From flags to a recorded run: what every command that fires shares.
//!
//! [`Prepared`] is what is known before the first request, [`drive`] follows a run to its end,
//! [`Outputs`] are the files written meanwhile, and [`record`] does both and watches the target.
//! What is shown, and what the exit code is, each command decides.

mod asks;
mod drive;
mod outputs;
mod plan;
mod record;
mod replay;
mod watching;

use std::sync::Arc;

use gake_core::plan::{Load, Plan};
use gake_wire::{Address, Resolver, Settings, TlsOptions, Wire};

pub use asks::{Bodies, Sent};
pub use drive::{Job, Moment, drive};
pub use outputs::{Outputs, unix_now};
pub use plan::{OPEN_CONNECTIONS, connection_settings, threads_for};
pub use record::record;
pub use watching::Watching;

use crate::cli::{ConnectionArgs, RequestArgs, RunArgs};
use crate::console::Console;
use crate::exit::Failure;
use crate::ports;

/// Descriptors that are not connections: the standard streams, timers, files, the lab's own.
const OTHER_DESCRIPTORS: u64 = 64;

/// What is sent and where, read once for any number of runs.
#[derive(Debug)]
pub struct Target {
    sent: Sent,
    resolver: Resolver,
    tls: TlsOptions,
}

impl Target {
    /// Reads what is to be sent to `target`.
    ///
    /// # Errors
    /// When something cannot be read.
    pub fn read(
        request: &RequestArgs,
        connection: &ConnectionArgs,
        target: &str,
    ) -> Result<Self, Failure> {
        Self::of(asks::asks(request, target)?, connection)
    }

    fn of(sent: Sent, connection: &ConnectionArgs) -> Result<Self, Failure> {
        let (resolver, tls) = plan::ways(connection)?;
        Ok(Self { sent, resolver, tls })
    }

    /// Everything about the wire for runs with these settings. Blocks for name resolution.
    ///
    /// # Errors
    /// When a request is not HTTP or a name has no address.
    pub fn wire(&self, settings: Settings) -> Result<Wire, Failure> {
        Wire::prepare(&self.sent.asks, &self.resolver, &self.tls, settings)
            .map_err(|error| asks::wire_failure(error, &self.sent))
    }

    /// What the user named.
    pub fn name(&self) -> &str {
        &self.sent.name
    }

    /// Whether the URL had no scheme.
    pub fn scheme_assumed(&self) -> bool {
        self.sent.scheme_assumed
    }
}

/// A run that is ready to start.
#[derive(Debug)]
pub struct Prepared {
    /// What is asked.
    pub plan: Arc<Plan>,
    /// What is sent, and where.
    pub wire: Arc<Wire>,
    /// Whether the URL had no scheme.
    pub scheme_assumed: bool,
}

impl Prepared {
    /// Reads what is to be sent to `target` and plans the run. Blocks for name resolution.
    ///
    /// # Errors
    /// When flags contradict each other, or something cannot be read or resolved.
    pub fn new(args: &RunArgs, target: &str) -> Result<Self, Failure> {
        match replay::read(args, target)? {
            Some(replay) => Self::replay(args, replay),
            None => Self::of(args, asks::asks(&args.request, target)?),
        }
    }

    /// Plans the run of what is to be sent. Blocks for name resolution.
    ///
    /// # Errors
    /// When flags contradict each other, or something cannot be read or resolved.
    pub fn of(args: &RunArgs, sent: Sent) -> Result<Self, Failure> {
        let settings = plan::settings(&args.load, &args.connection)?;
        let target = Target::of(sent, &args.connection)?;
        let wire = target.wire(settings)?;
        let scheme_assumed = target.scheme_assumed();
        let plan = Arc::new(plan::plan(args, target.sent.name, &wire)?);
        Ok(Self { plan, wire: Arc::new(wire), scheme_assumed })
    }

    /// Plans the replay of a recording.
    fn replay(args: &RunArgs, replay: replay::Replay) -> Result<Self, Failure> {
        let connections = args.load.connections.unwrap_or(OPEN_CONNECTIONS);
        let settings = connection_settings(&args.connection, true, connections)?;
        let (resolver, tls) = plan::ways(&args.connection)?;
        let wire = Wire::prepare(&replay.asks, &resolver, &tls, settings)
            .and_then(|wire| wire.in_order(replay.order));
        let mut wire =
            wire.map_err(|error| Failure::could_not(format!("{}: {error}", replay.name)))?;
        wire.notes.extend(replay.notes);
        let plan = plan::of_load(args, replay.name, &wire, Load::Replay(replay.trace));
        Ok(Self { plan: Arc::new(plan), wire: Arc::new(wire), scheme_assumed: false })
    }

    /// Says what will be done, and what will probably get in its way.
    pub fn announce(&self, args: &RunArgs, descriptors: u64, console: &Console) {
        if self.scheme_assumed {
            console.note(&format!("{} has no scheme: http is assumed", args.target));
        }
        for note in &self.wire.notes {
            console.note(note);
        }
        self.warn(args, descriptors, console);
        console.note(&self.plan.to_string());
    }

    /// Warns of what will probably get in the way of so many connections.
    pub fn warn(&self, args: &RunArgs, descriptors: u64, console: &Console) {
        let connections = (self.plan.connections + self.plan.idle_connections) as u64;
        if connections + OTHER_DESCRIPTORS > descriptors {
            console.warn(&format!(
                "{connections} connections need more than the {descriptors} file descriptors of \
                 this process; those over it will fail as no_descriptors (raise `ulimit -Hn`)"
            ));
        }
        let ports = self.local_ports(args);
        if connections > ports {
            console.warn(&format!(
                "{connections} connections need more than the {ports} local ports that there are \
                 from one address to this target; those over it will fail as no_local_port (widen \
                 net.ipv4.ip_local_port_range, or give more addresses: gake run --interface)"
            ));
        }
    }

    /// Local ports towards everything that is loaded; [`u64::MAX`] when they are not the bound.
    fn local_ports(&self, args: &RunArgs) -> u64 {
        let addresses = || self.wire.origins.iter().flat_map(|origin| &origin.addresses);
        let is_tcp = addresses().all(|address| matches!(address, Address::Tcp(_)));
        if !is_tcp || !args.connection.interface.is_empty() {
            return u64::MAX;
        }
        ports::local().map_or(u64::MAX, |ports| ports.saturating_mul(addresses().count() as u64))
    }
}
