//! From a spec and its requests to a plan for the engine.

use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Plan, TableShares, WorkKind, tables_for, tables_hold};
use gake_core::schedule::{Slice, Trace};
use gake_core::spec::{RequestSource, RunSpec, ScenarioSpec};

/// Arrivals a second that one thread can pace easily. Few threads share connections better, and
/// pace better, than many.
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
            // A user of HTTP/1 needs its own connection; users of HTTP/2 can share some.
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

/// The load with its trace, and without users beyond the number of requests.
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

/// The plan of the run: that of its only scenario, or one that joins several.
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
    // Measurement begins after the first warm-up.
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

/// Maximum requests in flight, or users, of a run: each takes memory before anything is sent.
const LANES_MAX: usize = 10_000_000;

/// Connections that are tried even if descriptors run out: the faults of a run name them.
const CONNECTIONS_TRIED: usize = 100_000;

/// Checks that a process with descriptor tables of `size` could hold what `plans` may open.
///
/// # Errors
/// Why not, in a sentence with the number that would do.
pub(crate) fn check_size(plans: &[Plan], size: usize) -> Result<(), String> {
    let connections = plans.iter().map(|plan| plan.connections).fold(0, usize::saturating_add);
    let most = tables_hold(size);
    if connections > most.max(CONNECTIONS_TRIED) {
        return Err(format!(
            "{connections} connections do not fit into this process: {most} do, with tables of \
             {size} descriptors (`ulimit -n`)"
        ));
    }
    check_lanes(plans, "requests in flight")
}

/// Checks the number of `what`: requests in flight, or users of scripts.
///
/// # Errors
/// As [`check_size`].
pub(crate) fn check_lanes(plans: &[Plan], what: &str) -> Result<(), String> {
    let lanes = plans.iter().map(Plan::lanes).fold(0, usize::saturating_add);
    match lanes > LANES_MAX {
        true => Err(format!("{lanes} {what} do not fit into a run: {LANES_MAX} do")),
        false => Ok(()),
    }
}

/// Bytes that a request in flight takes before it is sent, at least.
const LANE_BYTES: u64 = 400;

/// Bytes that a user of a script takes, at least: its stack, its runtime and its globals.
const USER_BYTES: u64 = 32 << 10;

/// Checks that the users or requests in flight of a slice fit into half of the memory of the
/// machine.
///
/// # Errors
/// Why not, in a sentence with the number that would do.
pub(crate) fn check_memory(plan: &Plan, slice: Slice, of_scripts: bool) -> Result<(), String> {
    let part = |plan: &Plan| {
        let lanes = plan.lanes();
        slice.among(lanes).map_or(0, |slice| slice.count(lanes))
    };
    let lanes = plan.scenarios().iter().map(part).fold(0, usize::saturating_add);
    fit_into(lanes, gake_files::memory().unwrap_or(u64::MAX), of_scripts)
}

fn fit_into(lanes: usize, memory: u64, of_scripts: bool) -> Result<(), String> {
    let (each, what) = match of_scripts {
        true => (USER_BYTES, "users"),
        false => (LANE_BYTES, "requests in flight"),
    };
    let most = memory / 2 / each;
    match lanes as u64 > most {
        true => Err(format!("{lanes} {what} do not fit into half of the memory here: {most} do")),
        false => Ok(()),
    }
}

/// Number of descriptor tables of `size` that the connections of a plan need; 1 if no number of
/// them would do.
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

/// Threads for a load with this peak rate (infinite for a closed loop): the requested number, or as
/// many as the load needs, but no more than requests in flight.
fn threads_for(requested: Option<usize>, peak: f64, in_flight: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let needed = || ((peak / RATE_PER_THREAD).ceil() as usize).clamp(1, cores);
    requested.unwrap_or_else(needed).clamp(1, in_flight.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_requests_in_flight_fit_into_half_of_the_memory() {
        let memory = 1 << 30;
        assert_eq!(fit_into(16_384, memory, true), Ok(()));
        let why = fit_into(16_385, memory, true).unwrap_err();
        assert_eq!(why, "16385 users do not fit into half of the memory here: 16384 do");
        assert_eq!(fit_into(1_000_000, memory, false), Ok(()));
        assert!(fit_into(usize::MAX, memory, false).unwrap_err().ends_with(": 1342177 do"));
        let load = Load::External { users: 1, max: usize::MAX };
        let plan = Plan { max_in_flight: usize::MAX, ..Plan::new("", load) };
        assert!(check_memory(&plan, Slice::WHOLE, true).is_err());
        let slice = Slice::new(0, usize::MAX / 4);
        assert_eq!(check_memory(&plan, slice, true), Ok(()), "an agent has only its slice");
    }
}
