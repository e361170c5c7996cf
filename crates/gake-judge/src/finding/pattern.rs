//! Patterns over time: hangs, stalls, steps, delayed ACKs.

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{LatencyMetric, SeriesPoint};
use gake_text::units;

use super::Finding;
use super::facts::RunFacts;
use crate::saturation::Saturation;

const TENTH: Nanos = SECOND / 10;

/// Seconds without a response at the end of the load.
const HANG_SECONDS: usize = 2;
/// Mean responses a tenth of a second, so that a tenth without any is significant.
const TENTH_RESPONSES: f64 = 5.0;
/// Tenths in a row without a response make a stall; and the number of stalls needed.
const STALL_TENTHS: usize = 2;
const STALLS_MIN: usize = 3;
/// A stall is longer than this many times a request that meets no other.
const STALL_OVER: f64 = 1.5;
/// Stalls are periodic up to this ratio of standard deviation to mean of the times between them.
const PERIODIC: f64 = 0.2;
/// The generator stalled itself from this ratio of its lateness to the stall on.
const OWN_STALL: f64 = 0.5;

/// Seconds on each side of a step, and their responses.
const STEP_SECONDS: usize = 2;
const STEP_RESPONSES: u64 = 10;
/// Medians of one side lie within this factor of each other, ...
const STEP_LEVEL: f64 = 1.4;
/// ... and the two sides differ by this factor and this time.
const STEP_FACTOR: f64 = 2.0;
const STEP_MIN: Nanos = 2_000_000;
/// The first second alone is a level when its median is this many times that of the rest, and the
/// rest has this many seconds.
const FIRST_FACTOR: f64 = 3.0;
const FIRST_REST: usize = 5;
/// A change to faster responses within this share of the run is a warm-up.
const WARM_UP: f64 = 0.34;

/// Range of a delayed acknowledgement on Linux (40 ms).
const DELAYED_ACK: (Nanos, Nanos) = (38_000_000, 48_000_000);
/// Bytes of a body above which the rule does not apply.
const SMALL_BODY: f64 = 16_384.0;

/// Responses ceased while requests were sent or in flight.
pub(super) fn hang(facts: &RunFacts<'_>) -> Option<Finding> {
    let points = facts.run.series.points();
    let last = points.iter().rposition(|point| point.counts.completed() > point.counts.failed)?;
    let silent = &points[last + 1..];
    let fired = silent.iter().filter(|point| point.fired > 0 || point.in_flight >= 1.0).count();
    let counts = facts.counts();
    let waiting = counts.unfinished + facts.faults(|fault| fault.name() == "timeout");
    // Users who each send once leave nothing to respond to; those that wait then are few.
    let is_asked = silent.iter().any(|point| point.fired > 0)
        || matches!(facts.run.plan.load.one(), Some(Load::Closed { .. }));
    if fired < HANG_SECONDS || waiting == 0 || !is_asked || facts.generator_is_busy() {
        return None;
    }
    let end = points[last].second + points[last].seconds;
    let evidence = format!(
        "no response after {end} s: {} never ended, on {}",
        units::plural(waiting, "request"),
        units::plural(
            points[last..].iter().map(|point| point.open).max().unwrap_or(0),
            "connection"
        ),
    );
    let advice = "look for a deadlock, an exhausted pool, or a call without a time-out";
    let check = "curl -m 5 URL; then jstack, /debug/pprof/goroutine or py-spy dump";
    Some(Finding::new("target_hang", evidence, advice, check))
}

/// Repeatedly nothing completes for some tenths of a second.
pub(super) fn stalls(facts: &RunFacts<'_>) -> Option<Finding> {
    let tenths = facts.run.series.tenths();
    // What ends in the drain may wait for what else is left: a connection, a retransmitted SYN.
    let end = (facts.run.measured + facts.warmup()) / TENTH;
    let first = tenths.iter().position(|point| point.counts.completed() > 0)?;
    let last = tenths.iter().rposition(|point| point.counts.completed() > 0)?;
    let tenths = &tenths[first..=last];
    let completed: u64 = tenths.iter().map(|point| point.counts.completed()).sum();
    if facts.generator_is_busy() || (completed as f64) < TENTH_RESPONSES * tenths.len() as f64 {
        return None;
    }
    // Requests that begin together end together: between, nothing ends for the time of one.
    let least = (STALL_OVER * facts.alone() / TENTH as f64).ceil() as usize + 1;
    let least = least.max(STALL_TENTHS);
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut begun = None;
    for (at, point) in tenths.iter().enumerate() {
        match (point.counts.completed(), begun) {
            (0, None) => begun = Some(at),
            (0, Some(_)) | (_, None) => {}
            (_, Some(from)) => {
                let length = at - from;
                let own = tenths[from..=at].iter().map(|point| point.lateness_max).max();
                let is_own =
                    own.unwrap_or(0) as f64 >= OWN_STALL * (length as Nanos * TENTH) as f64;
                if length >= least && !is_own && tenths[from].second < end {
                    found.push((from, length));
                }
                begun = None;
            }
        }
    }
    if found.len() < STALLS_MIN {
        return None;
    }
    let between: Vec<f64> =
        found.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 10.0).collect();
    let mean = between.iter().sum::<f64>() / between.len() as f64;
    let spread =
        between.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / between.len() as f64;
    let when = match spread.sqrt() <= PERIODIC * mean {
        true => format!("every {} ", units::duration(mean * SECOND as f64)),
        false => String::new(),
    };
    let longest = found.iter().map(|(_, length)| *length as Nanos * TENTH).max().unwrap_or(0);
    let evidence = format!(
        "{when}the target completes nothing for up to {} ({} times), then all requests resume",
        units::duration(longest as f64),
        found.len()
    );
    let advice = "look for pauses of the whole target: GC, a checkpoint, a job, a CPU quota";
    let check = "its GC log (GODEBUG=gctrace=1, -Xlog:gc); nr_throttled in cpu.stat";
    Some(Finding::new("stalls", evidence, advice, check))
}

/// Whether rate or users are the same from the first second to the last.
pub(super) fn load_is_constant(facts: &RunFacts<'_>) -> bool {
    match facts.run.plan.load.one() {
        Some(Load::Open { stages, .. }) => {
            matches!(stages.as_slice(), [one] if one.from == one.to)
        }
        Some(_) => facts.is_closed(),
        None => false,
    }
}

/// At a constant load, response times change once from one level to another.
pub(super) fn step(facts: &RunFacts<'_>) -> Option<Finding> {
    if !load_is_constant(facts) || Saturation::of(facts.run).is_some() || facts.generator_is_busy()
    {
        return None;
    }
    // Only slow requests end in the drain.
    let end = (facts.run.measured + facts.warmup()) / SECOND;
    let is_full = |point: &&SeriesPoint| {
        point.seconds == 1 && point.counts.completed() >= STEP_RESPONSES && point.second < end
    };
    let points: Vec<&SeriesPoint> = facts.run.series.points().iter().filter(is_full).collect();
    let level = |part: &[&SeriesPoint]| -> Option<f64> {
        let mut medians: Vec<Nanos> = part.iter().map(|point| point.p50).collect();
        medians.sort_unstable();
        let (low, high) = (*medians.first()? as f64, *medians.last()? as f64);
        (high <= STEP_LEVEL * low).then(|| medians[medians.len() / 2] as f64)
    };
    // The second of the change may belong to either side, or to neither.
    let last = points.len().checked_sub(STEP_SECONDS + 1)?;
    let (at, before, after) = (STEP_SECONDS..=last).chain([1]).find_map(|at| {
        let before = level(&points[..at])?;
        let after = level(&points[at..]).or_else(|| level(points.get(at + 1..)?))?;
        let (low, high) = (before.min(after), before.max(after));
        // One second alone is a level when it is the first and slow.
        let is_first = before >= FIRST_FACTOR * after && points.len() >= at + FIRST_REST;
        let is_level = at >= STEP_SECONDS || is_first;
        let is_step = high >= STEP_FACTOR * low && high - low >= STEP_MIN as f64;
        (is_level && is_step).then_some((at, before, after))
    })?;
    let from = points[at].second;
    let (was, is) = (units::duration(before), units::duration(after));
    let is_early = (at as f64) <= WARM_UP * points.len() as f64;
    if after < before && is_early {
        let evidence = format!(
            "the median response took {was} for the first {from} s, and {is} after: the target \
             warmed up, and the run's figures mix the two"
        );
        let advice = format!("leave the first seconds out: --warmup {}s", from + 1);
        let check = "the same run again at once is fast from the start";
        return Some(Finding::new("warm_up", evidence, &advice, check));
    }
    let evidence = format!(
        "the median response took {was} until {from} s, and {is} after, with {}",
        match facts.is_closed() {
            true => "the same number of users",
            false => "the same rate of arrivals",
        }
    );
    let advice = "look for what changed then: a cache, a failover, a deployment, a neighbour";
    let check = "its log at that moment; run again: does it recur at the same time?";
    Some(Finding::new("step", evidence, advice, check))
}

/// Small bodies that arrive one delayed acknowledgement after their head.
pub(super) fn delayed_ack(facts: &RunFacts<'_>) -> Option<Finding> {
    let (first, rest) =
        (facts.latency(LatencyMetric::FirstByte), facts.latency(LatencyMetric::Download));
    let size = facts.counts().bytes_in as f64 / facts.responses().max(1) as f64;
    let median = rest.quantile(0.5);
    if rest.count() < 20 || size > SMALL_BODY || !(DELAYED_ACK.0..DELAYED_ACK.1).contains(&median) {
        return None;
    }
    let evidence = format!(
        "the body of {} arrives {} after the head (which takes {}): Nagle's algorithm holds the second write back until a delayed ACK",
        units::bytes(size),
        units::duration(median as f64),
        units::duration(first.quantile(0.5) as f64),
    );
    let advice = "set TCP_NODELAY on the server, or write head and body in one call";
    let check = "strace -f -e write,writev,sendto -p PID: two writes per response";
    Some(Finding::new("delayed_ack", evidence, advice, check))
}
