//! From flags to a plan: defaults, and what contradicts itself.

use std::time::Duration;

use gake_core::plan::{Load, Overflow, Plan, Rate, Stage, Timeouts};
use gake_core::schedule::Process;
use gake_wire::http1::Limits;
use gake_wire::{Resolver, Settings, Sources, TlsOptions, Wire};

use crate::cli::{Arrivals, ConnectionArgs, LoadArgs, Mode, OverflowArg, RunArgs};
use crate::exit::Failure;

/// How long a run lasts when nothing says so.
const DURATION: Duration = Duration::from_secs(10);

/// Users of a closed loop when nothing says so, as in hey.
const USERS: usize = 50;

/// Most connections of an open loop when nothing says so: enough for a second's stall at 1,000/s.
pub const OPEN_CONNECTIONS: usize = 1_000;

/// How long the answers in flight may take at the end when nothing says so.
const DRAIN: Duration = Duration::from_secs(5);

/// Arrivals a second that one thread paces with ease; few threads share connections better and
/// pace better than many.
const RATE_PER_THREAD: f64 = 10_000.0;

/// Builds the plan.
///
/// # Errors
/// When flags contradict each other.
pub fn plan(args: &RunArgs, name: String, wire: &Wire) -> Result<Plan, Failure> {
    check(&args.load)?;
    Ok(of_load(args, name, wire, arrivals(&args.load)))
}

/// Builds the plan of a load.
pub fn of_load(args: &RunArgs, name: String, wire: &Wire, how: Load) -> Plan {
    let load = &args.load;
    let connections = wire.settings.connections;
    let max_in_flight = load.max_in_flight.unwrap_or(connections);
    let timed = load.duration.is_some() || load.stages.is_some();
    let counted_only = !timed && load.requests.is_some();
    let threads = threads(load, &how, connections.min(max_in_flight));
    Plan {
        target: name,
        duration: match how {
            Load::Open { .. } | Load::Replay(_) => None,
            Load::Closed { .. } | Load::Paced { .. } => {
                load.duration.or((!counted_only).then_some(DURATION))
            }
        },
        requests: load.requests,
        warmup: load.warmup,
        connections,
        max_in_flight,
        overflow: match load.overflow {
            OverflowArg::Wait => Overflow::Wait,
            OverflowArg::Drop => Overflow::Drop,
        },
        connect_rate: args.connection.connect_rate,
        idle_connections: args.connection.idle_connections,
        keepalive: !args.connection.no_keepalive,
        timeouts: wire.settings.timeouts,
        // Whoever asks for a count wants all of them answered; each is bounded by its time-out.
        drain: load.drain.unwrap_or(if counted_only {
            wire.settings.timeouts.total
        } else {
            DRAIN
        }),
        threads,
        load: how,
        spin: load.spin,
        expect: args.request.expect.clone(),
        labels: wire.labels.clone(),
    }
}

/// How connections are made and used.
///
/// # Errors
/// When a source cannot be read.
pub fn settings(load: &LoadArgs, args: &ConnectionArgs) -> Result<Settings, Failure> {
    connection_settings(args, load.mode() == Mode::Open, connections(load))
}

/// How up to so many connections are made and used: by all (`pooled`), or each by its own user.
///
/// # Errors
/// When a source cannot be read.
pub fn connection_settings(
    args: &ConnectionArgs,
    pooled: bool,
    connections: usize,
) -> Result<Settings, Failure> {
    let mut sources = Sources::default();
    for list in &args.interface {
        sources.add(list).map_err(Failure::usage)?;
    }
    Ok(Settings {
        timeouts: Timeouts {
            connect: args.connect_timeout,
            first_byte: args.first_byte_timeout,
            total: args.timeout,
        },
        keepalive: !args.no_keepalive,
        max_redirects: args.max_redirs,
        keep: args.keep,
        max_idle: args.max_idle,
        feed: args.feed.clone(),
        pooled,
        connections,
        version: args.version,
        idle_connections: args.idle_connections,
        connect_rate: args.connect_rate,
        sources,
        limits: Limits::default(),
    })
}

/// How names become addresses, and what TLS trusts.
///
/// # Errors
/// When a rule cannot be read.
pub fn ways(args: &ConnectionArgs) -> Result<(Resolver, TlsOptions), Failure> {
    let mut resolver = Resolver::default();
    resolver.unix_socket.clone_from(&args.unix_socket);
    resolver.family = match (args.ipv4, args.ipv6) {
        (true, _) => Some(4),
        (_, true) => Some(6),
        _ => None,
    };
    for rule in &args.resolve {
        resolver.fix(rule).map_err(Failure::usage)?;
    }
    for rule in &args.connect_to {
        resolver.connect_to.push(rule.parse().map_err(Failure::usage)?);
    }
    let tls = TlsOptions {
        insecure: args.insecure,
        cacert: args.cacert.clone(),
        session_tickets: args.session_tickets,
        cert: args.cert.clone(),
        key: args.key.clone(),
    };
    Ok((resolver, tls))
}

fn check(load: &LoadArgs) -> Result<(), Failure> {
    match load.mode() {
        Mode::Open if load.think.is_some() => {
            Err(Failure::usage("--think belongs to a closed loop; a rate makes the loop open"))
        }
        Mode::Closed if load.arrivals == Arrivals::Poisson => {
            Err(Failure::usage("--arrivals needs a --rate: in a closed loop the answers decide"))
        }
        Mode::Closed if load.overflow == OverflowArg::Drop => {
            Err(Failure::usage("--overflow needs a --rate: a closed loop never overflows"))
        }
        Mode::Closed if load.max_in_flight.is_some() => {
            Err(Failure::usage("--max-in-flight needs a --rate: a user has one request in flight"))
        }
        Mode::Closed if load.spin => {
            Err(Failure::usage("--spin needs a --rate: a closed loop has nothing to wait for"))
        }
        _ => Ok(()),
    }
}

fn connections(load: &LoadArgs) -> usize {
    let users = match load.mode() {
        Mode::Open => load.connections.unwrap_or(OPEN_CONNECTIONS),
        Mode::Closed => load.connections.unwrap_or(USERS),
    };
    match (load.mode(), load.requests) {
        // A user without a request to send is none.
        (Mode::Closed, Some(requests)) if load.warmup.is_zero() => {
            users.min(usize::try_from(requests).unwrap_or(usize::MAX))
        }
        _ => users,
    }
}

fn arrivals(load: &LoadArgs) -> Load {
    let process = match load.arrivals {
        Arrivals::Uniform => Process::Uniform,
        Arrivals::Poisson => Process::Poisson,
    };
    match (load.rate, &load.stages) {
        (_, Some(stages)) => Load::Open { stages: stages.0.clone(), process },
        (Some(Rate::PerSecond(rate)), None) => {
            let forever = if load.requests.is_some() { Duration::MAX } else { DURATION };
            let stage = Stage::step(rate, load.duration.unwrap_or(forever));
            Load::Open { stages: vec![stage], process }
        }
        _ if load.pace.is_some_and(|pace| !pace.is_zero()) => {
            Load::Paced { pace: load.pace.unwrap_or_default() }
        }
        _ => Load::Closed { think: load.think.unwrap_or_default() },
    }
}

fn threads(load: &LoadArgs, how: &Load, in_flight: usize) -> usize {
    let peak = match how {
        Load::Open { stages, .. } => {
            stages.iter().map(|stage| stage.from.max(stage.to)).fold(0.0, f64::max)
        }
        Load::Replay(trace) => trace.peak() as f64,
        Load::Closed { .. } | Load::Paced { .. } => f64::INFINITY,
    };
    threads_for(load.threads, peak, in_flight)
}

/// Threads for a load with this peak rate (infinite for a closed loop): as many as are asked for,
/// or as the load needs, and no more than there can be requests in flight.
pub fn threads_for(asked: Option<usize>, peak: f64, in_flight: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let needed = || ((peak / RATE_PER_THREAD).ceil() as usize).clamp(1, cores);
    asked.unwrap_or_else(needed).clamp(1, in_flight.max(1))
}
