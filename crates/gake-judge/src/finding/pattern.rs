//! Shapes in time that name what happened, whatever the target is.

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{LatencyMetric, SeriesPoint};
use gake_text::units;

use super::Finding;
use super::facts::Facts;
use crate::saturation::Saturation;

const TENTH: Nanos = SECOND / 10;

/// Points without a response at the end of the load, of a target that responded before.
const HANG_SECONDS: usize = 2;
/// Responses in the mean tenth, so that one without any says something.
const TENTH_RESPONSES: f64 = 5.0;
/// Tenths in a row without a response, and how often that must come.
const STALL_TENTHS: usize = 2;
const STALLS_MIN: usize = 3;
/// Standard deviation of the times between stalls, of their mean, in which they are periodic.
const PERIODIC: f64 = 0.2;
/// Delay of a stalled generator, as a share of the stall, from which on it was its own.
const OWN_STALL: f64 = 0.5;

/// Seconds on each side of a step, and their responses.
const STEP_SECONDS: usize = 2;
const STEP_RESPONSES: u64 = 10;
/// Medians of one side lie within this factor of each other; those of the sides are apart by more.
const STEP_LEVEL: f64 = 1.4;
const STEP_FACTOR: f64 = 2.0;
const STEP_MIN: Nanos = 2_000_000;
/// The first part of a run, in which slow responses are those of a target that warms up.
const WARM_UP: f64 = 0.34;

/// Time of a delayed acknowledgement on Linux, and its tolerance.
const DELAYED_ACK: (Nanos, Nanos) = (38_000_000, 48_000_000);
/// Bodies that fit into a segment or two.
const SMALL_BODY: f64 = 16_384.0;

/// The target responded, and then no more, while requests came.
pub(super) fn hang(facts: &Facts<'_>) -> Option<Finding> {
    let points = facts.run.series.points();
    let last = points.iter().rposition(|point| point.counts.completed() > point.counts.failed)?;
    let silent = &points[last + 1..];
    let fired = silent.iter().filter(|point| point.fired > 0 || point.in_flight >= 1.0).count();
    let counts = facts.counts();
    let waiting = counts.unfinished + facts.faults(|fault| fault.name() == "timeout");
    if fired < HANG_SECONDS || waiting == 0 || facts.generator_is_busy() {
        return None;
    }
    let end = points[last].second + points[last].seconds;
    let evidence = format!(
        "no response since {end} s: {} did not end, on {}",
        units::plural(waiting, "request"),
        units::plural(
            points[last..].iter().map(|point| point.open).max().unwrap_or(0),
            "connection"
        ),
    );
    let advice = "the target accepts connections and does not respond: look for a deadlock, a pool \
                  whose members are all lost, or a dependency without a time-out";
    let check = "curl -m 5 the URL now; the stacks of its threads: jstack, /debug/pprof/goroutine, \
                 py-spy dump";
    Some(Finding::new("target_hang", evidence, advice, check))
}

/// Nothing is completed for some tenths of a second, again and again.
pub(super) fn stalls(facts: &Facts<'_>) -> Option<Finding> {
    let tenths = facts.run.series.tenths();
    let first = tenths.iter().position(|point| point.counts.completed() > 0)?;
    let last = tenths.iter().rposition(|point| point.counts.completed() > 0)?;
    let tenths = &tenths[first..=last];
    let completed: u64 = tenths.iter().map(|point| point.counts.completed()).sum();
    if facts.generator_is_busy() || (completed as f64) < TENTH_RESPONSES * tenths.len() as f64 {
        return None;
    }
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
                if length >= STALL_TENTHS && !is_own {
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
        "{when}the target completes nothing for up to {} ({} times): all requests wait, then all go on",
        units::duration(longest as f64),
        found.len()
    );
    let advice = "look for what stops the whole target: a garbage collection, a checkpoint, a lock \
                  that a periodic job holds, a CPU quota";
    let check = "the target's log of collections (GODEBUG=gctrace=1, -Xlog:gc), cpu.stat's \
                 nr_throttled, its scheduled jobs";
    Some(Finding::new("stalls", evidence, advice, check))
}

/// Response times change once from one level to another, at the same load.
pub(super) fn step(facts: &Facts<'_>) -> Option<Finding> {
    let is_constant = match facts.run.plan.load.one()? {
        Load::Open { stages, .. } => matches!(stages.as_slice(), [one] if one.from == one.to),
        _ => facts.is_closed(),
    };
    if !is_constant || Saturation::of(facts.run).is_some() || facts.generator_is_busy() {
        return None;
    }
    // What ends in the drain is what takes long.
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
    // The second in which it changes may be of either side, or of none.
    let last = points.len().checked_sub(STEP_SECONDS + 1)?;
    let (at, before, after) = (STEP_SECONDS..=last).find_map(|at| {
        let before = level(&points[..at])?;
        let after = level(&points[at..]).or_else(|| level(points.get(at + 1..)?))?;
        let (low, high) = (before.min(after), before.max(after));
        (high >= STEP_FACTOR * low && high - low >= STEP_MIN as f64).then_some((at, before, after))
    })?;
    let from = points[at].second;
    let (was, is) = (units::duration(before), units::duration(after));
    let is_early = (at as f64) <= WARM_UP * points.len() as f64;
    if after < before && is_early {
        let evidence = format!(
            "responses take {was} in the median for the first {from} s, and {is} from then on: the \
             target warmed up, and figures of the whole run mix the two"
        );
        let advice = format!("leave the first seconds out: --warmup {}s", from + 1);
        let check = "caches, pools and compiled code that are filled by the first requests";
        return Some(Finding::new("warm_up", evidence, &advice, check));
    }
    let evidence = format!(
        "responses take {was} in the median until {from} s, and {is} from then on, with {}",
        match facts.is_closed() {
            true => "the same number of users",
            false => "the same rate of arrivals",
        }
    );
    let advice = "look for what changed at that moment: a cache that expired, a failover, a \
                  deployment, another load on the target's machine or on what it calls";
    let check = "the target's log and dashboards at that moment; run again: does it come at the same \
                 time?";
    Some(Finding::new("step", evidence, advice, check))
}

/// Small bodies that come a delayed acknowledgement after their head.
pub(super) fn delayed_ack(facts: &Facts<'_>) -> Option<Finding> {
    let (first, rest) =
        (facts.latency(LatencyMetric::FirstByte), facts.latency(LatencyMetric::Download));
    let size = facts.counts().bytes_in as f64 / facts.answers().max(1) as f64;
    let median = rest.quantile(0.5);
    if rest.count() < 20 || size > SMALL_BODY || !(DELAYED_ACK.0..DELAYED_ACK.1).contains(&median) {
        return None;
    }
    let evidence = format!(
        "the body of {} comes {} after the head (which takes {}): the server writes them apart, and \
         Nagle's algorithm holds the second back until a delayed ACK",
        units::bytes(size),
        units::duration(median as f64),
        units::duration(first.quantile(0.5) as f64),
    );
    let advice = "set TCP_NODELAY on the server's connections, or write head and body at once";
    let check =
        "strace -e trace=network on the server shows two writes a response; ss -tino, ato:40";
    Some(Finding::new("delayed_ack", evidence, advice, check))
}
