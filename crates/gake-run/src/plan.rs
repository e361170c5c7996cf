//! From a spec and what is sent to a plan for the engine.

use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Plan, TableShares, WorkKind, tables_for};
use gake_core::schedule::Trace;
use gake_core::spec::{RequestSource, RunSpec, ScenarioSpec};

/// Arrivals a second that one thread paces with ease; few threads share connections better and
/// pace better than many.
const RATE_PER_THREAD: f64 = 10_000.0;

/// The plan of one scenario, without its labels and threads.
pub(crate) fn of_scenario(
    run: &RunSpec,
    spec: &ScenarioSpec,
    target: String,
    trace: Option<&Trace>,
) -> Plan {
    let load = load(run, spec, trace);
    let users = load.users();
    let is_multiplexed = run.connection.http.is_multiplexed();
    Plan {
        name: spec.name.clone(),
        fires: match spec.source {
            RequestSource::Script(_) => WorkKind::Iterations,
            RequestSource::WebSocket(_) => WorkKind::Messages,
            RequestSource::Grpc(_) => WorkKind::Calls,
            _ => WorkKind::Requests,
        },
        start: spec.start,
        tags: spec.tags.clone(),
        duration: spec.duration.filter(|_| !load.is_open()),
        requests: spec.requests,
        stripes: spec.stripes.clone(),
        warmup: run.warmup,
        connections: match users {
            // A user of HTTP/1 has a connection; those of HTTP/2 can share them.
            Some(users) if is_multiplexed => spec.connections.min(users),
            Some(users) => users,
            None => spec.connections,
        },
        streams: spec.streams(&run.connection),
        max_in_flight: match is_multiplexed {
            true => users.unwrap_or(spec.max_in_flight),
            false => users.unwrap_or(spec.max_in_flight.min(spec.connections)),
        },
        overflow: spec.overflow,
        connect_rate: run.connection.connect_rate,
        idle_connections: run.connection.idle_connections,
        keepalive: run.connection.keepalive,
        timeouts: run.connection.timeouts(),
        drain: spec.graceful_stop,
        spin: run.spin,
        max_series: run.max_series,
        expect: spec.expect.clone(),
        ..Plan::new(target, load)
    }
}

/// The load with its trace, and without the users that have no request to send.
fn load(run: &RunSpec, spec: &ScenarioSpec, trace: Option<&Trace>) -> Load {
    let mut load = spec.load.clone();
    let count = match load {
        Load::Shared { iterations, .. } => Some(iterations),
        _ => spec.requests,
    };
    match &mut load {
        Load::Replay { trace: due, .. } => *due = Some(trace.cloned().unwrap_or_default()),
        Load::Closed { users, .. } | Load::Paced { users, .. } | Load::Shared { users, .. }
            if run.warmup.is_zero() =>
        {
            let count = count.and_then(|count| usize::try_from(count).ok());
            *users = count.map_or(*users, |count| count.min(*users));
        }
        _ => {}
    }
    load
}

/// The plan of the whole run: of one scenario its own.
pub(crate) fn whole(run: &RunSpec, mut plans: Vec<Plan>, labels: &[String]) -> Plan {
    for plan in &mut plans {
        plan.labels = labels.to_vec();
    }
    let peak = plans.iter().map(|plan| peak(plan.load.one())).sum();
    // A connection belongs to one thread, with all of its streams.
    let lanes = plans.iter().map(|plan| match plan.streams {
        0 | 1 => plan.max_in_flight,
        _ => plan.max_in_flight.min(plan.connections),
    });
    let lanes = lanes.max();
    let threads = threads_for(run.threads, peak, lanes.unwrap_or(1));
    if plans.len() == 1
        && let Some(plan) = plans.pop()
    {
        let target = run.name.clone().unwrap_or_else(|| plan.target.clone());
        return Plan { threads, target, ..plan };
    }
    let target = run.name.clone().unwrap_or_else(|| {
        let mut names: Vec<&str> = Vec::new();
        for plan in &plans {
            if !names.contains(&plan.target.as_str()) {
                names.push(&plan.target);
            }
        }
        names.join(" + ")
    });
    let sum = |of: fn(&Plan) -> usize| plans.iter().map(of).fold(0, usize::saturating_add);
    let longest = plans.iter().map(|plan| plan.drain).max().unwrap_or(Duration::ZERO);
    let first = plans.first().cloned();
    // The figures begin when the first warm-up is over.
    let begin = plans.iter().map(|plan| plan.start).min().filter(|_| !run.warmup.is_zero());
    let warmup = begin.map_or(Duration::ZERO, |begin| begin.saturating_add(run.warmup));
    Plan {
        warmup,
        connections: sum(|plan| plan.connections),
        max_in_flight: sum(|plan| plan.max_in_flight),
        connect_rate: run.connection.connect_rate,
        idle_connections: run.connection.idle_connections,
        keepalive: run.connection.keepalive,
        timeouts: run.connection.timeouts(),
        drain: longest,
        threads,
        spin: run.spin,
        max_series: run.max_series,
        expect: first.map(|plan| plan.expect).unwrap_or_default(),
        labels: labels.to_vec(),
        ..Plan::new(target, plans)
    }
}

/// Descriptor tables of `size` that the connections of a plan need; that of the process when none
/// of its size would do.
pub(crate) fn tables(plan: &Plan, size: usize) -> usize {
    let each = plan.scenarios().iter();
    let connections = each.fold(0_usize, |sum, plan| {
        sum.saturating_add(plan.connections).saturating_add(plan.idle_connections)
    });
    tables_for(connections, size, TableShares::Equal).unwrap_or(1)
}

/// The highest rate of a load; infinite for a closed loop.
fn peak(load: Option<&Load>) -> f64 {
    match load {
        Some(Load::Open { stages, .. }) => {
            stages.iter().map(|stage| stage.from.max(stage.to)).fold(0.0, f64::max)
        }
        Some(Load::Replay { trace: Some(trace), .. }) => trace.peak() as f64,
        _ => f64::INFINITY,
    }
}

/// Threads for a load with this peak rate (infinite for a closed loop): as many as are asked for,
/// or as the load needs, and no more than there can be requests in flight.
fn threads_for(asked: Option<usize>, peak: f64, in_flight: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let needed = || ((peak / RATE_PER_THREAD).ceil() as usize).clamp(1, cores);
    asked.unwrap_or_else(needed).clamp(1, in_flight.max(1))
}
