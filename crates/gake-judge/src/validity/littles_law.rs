//! Little's law, L = λ·W, on requests or iterations.
//!
//! L is the in-flight level, integrated over the measured interval by the engine. λ·W is Σ(done −
//! fired) / measured from the histograms, an independent record. In a steady state they differ only
//! at the edges: requests in flight at the end continue for one mean residual time E\[S²\]/2E\[S\]
//! (at most about one mean time for a batch), which is allowed on top of the threshold. Not judged:
//! an interval shorter than one mean time (a burst), runs with dropped arrivals, which have no time
//! in flight, and targets beyond their capacity, whose growing queue is a result.

use gake_core::clock::nanos;
use gake_core::metric::{SeriesValue, Tags};
use gake_core::plan::{Plan, WorkKind};
use gake_core::record::{Histogram, LatencyMetric, Run};
use gake_text::units;

use super::{Reason, level};
use crate::saturation::Saturation;
use crate::stats::{fired_time, mean_in_flight};

/// Off by this share.
const SUSPECT: f64 = 0.05;
const INVALID: f64 = 0.20;
/// Not judged below these.
const IN_FLIGHT_MIN: f64 = 0.1;
const COMPLETED_MIN: u64 = 100;
/// A user's own work between two iterations is in flight, but not in `iteration_duration`.
const ITERATION_OWN_NS: f64 = 25_000.0;

/// Requests or iterations, and their time in flight in nanoseconds.
struct InFlightTime {
    time: f64,
    begun: u64,
    completed: u64,
    deviation: f64,
}

impl InFlightTime {
    fn of_requests(run: &Run) -> Self {
        let counts = &run.tally.counts;
        Self {
            time: fired_time(&run.tally) as f64,
            begun: counts.begun(),
            completed: counts.completed(),
            deviation: run.tally.latency.of(LatencyMetric::Service).stddev(),
        }
    }

    /// The iterations of a script, which include think time; `None` when some have no recorded
    /// time.
    fn of_iterations(run: &Run) -> Option<Self> {
        let counts = &run.tally.counts;
        let mut times = Histogram::default();
        for (_, value) in run.tally.series.select(ITERATIONS, &Tags::default()) {
            if let SeriesValue::Trend(trend) = value {
                times.merge(trend);
            }
        }
        let is_whole = counts.interrupted == 0 && times.count() == counts.started;
        is_whole.then(|| Self {
            time: times.sum() as f64,
            begun: counts.started,
            completed: counts.started,
            deviation: times.stddev(),
        })
    }
}

const ITERATIONS: &str = "iteration_duration";

/// Whether both scripts and plain scenarios run, so that iterations and requests are in flight.
fn fires_both(plan: &Plan) -> bool {
    let is_script = |plan: &Plan| plan.fires == WorkKind::Iterations;
    plan.fires_iterations() && !plan.scenarios().iter().all(is_script)
}

pub(super) fn check(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let mean_level = mean_in_flight(run);
    let is_judged = counts.dropped == 0 && !fires_both(&run.plan) && Saturation::of(run).is_none();
    if mean_level < IN_FLIGHT_MIN || !is_judged {
        return None;
    }
    let measured = run.measured as f64;
    let InFlightTime { time, begun, completed, deviation } = match run.plan.fires_iterations() {
        true => InFlightTime::of_iterations(run)?,
        false => InFlightTime::of_requests(run),
    };
    let mean = time / begun as f64;
    if completed < COMPLETED_MIN || mean > measured {
        return None;
    }
    let residual = mean.max((mean * mean + deviation * deviation) / (2.0 * mean));
    let expected = time / measured;
    // Those that never ended were in flight until the run did.
    let after = run.elapsed.saturating_sub(nanos(run.plan.warmup) + run.measured) as f64;
    let unfinished = counts.unfinished as f64 * after / measured;
    let edge = (mean_level * residual / measured).max(unfinished);
    // Over HTTP/2 a request that waits for a stream is in flight, but that wait is not in `time`.
    let blocked = match counts.streams {
        0 => 0.0,
        _ => run.tally.latency.of(LatencyMetric::Blocked).sum() as f64 / measured,
    };
    let own = match run.plan.fires_iterations() {
        true => completed as f64 * ITERATION_OWN_NS / measured,
        false => 0.0,
    };
    let least = (expected - mean_level).max(mean_level - expected - blocked - own);
    let off = (least - edge).max(0.0) / mean_level;
    let level = level(off > SUSPECT, off > INVALID)?;
    let mut text = format!(
        "not in a steady state: {} were in flight on average, but {} of {} each make {} \
         (Little's law)",
        units::number(mean_level),
        units::rate(completed as f64 * 1e9 / measured),
        units::duration(mean),
        units::number(expected)
    );
    if counts.unfinished > 0 {
        text.push_str(&format!("; {} never finished", units::count(counts.unfinished)));
    } else if mean > measured / 20.0 {
        text.push_str("; the run is short for such long requests");
    }
    Some(Reason { rule: "littles_law", level, text })
}
