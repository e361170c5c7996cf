//! Whether a few requests after the load would tell more about its limit.

use gake_core::clock::Nanos;
use gake_core::record::{LatencyMetric, Run};

use crate::saturation::Saturation;
use crate::stats::{generator_is_busy, mean_in_flight, per_second, share};
use crate::together::group_size;
use crate::unloaded::{EXCESS_MIN, Unloaded};

/// Responses needed to judge a queue.
const RESPONSES_MIN: u64 = 100;
/// Failures are no service.
const FAILED_MAX: f64 = 0.05;
/// Requests in flight that may wait for each other.
const IN_FLIGHT_MIN: f64 = 1.9;
/// The load must last long compared with a probe.
const MEASURED_MIN: u64 = 2_000_000_000;

/// An overloaded target is idle again after at most this time.
const BACKLOG_MAX: f64 = 5e9;
/// It may complete what the run left behind this many times slower than before.
const BACKLOG_SLOWER: f64 = 1.5;

/// Whether requests sent one at a time after `run` would tell more about its limit: its requests may
/// have waited for each other, and the target is idle after the time returned, in nanoseconds.
#[must_use]
pub fn probe_after(run: &Run) -> Option<Nanos> {
    let counts = &run.tally.counts;
    let first = run.tally.latency.of(LatencyMetric::FirstByte);
    let saturation = Saturation::suspected(run);
    let is_pushed = run.plan.load.is_back_to_back() || saturation.is_some();
    let backlog = match (counts.unfinished, saturation) {
        (0, _) => 0.0,
        (left, Some(saturation)) => BACKLOG_SLOWER * left as f64 * 1e9 / saturation.completed,
        (_, None) => f64::INFINITY,
    };
    let wants = is_pushed
        && !generator_is_busy(run)
        && run.measured >= MEASURED_MIN
        && mean_in_flight(run) >= IN_FLIGHT_MIN
        && first.count() >= RESPONSES_MIN
        && first.quantile(0.5) as f64 >= EXCESS_MIN
        && backlog <= BACKLOG_MAX
        && share(counts.failed, counts.sent) < FAILED_MAX;
    wants.then_some(backlog as Nanos)
}

/// How many requests to send at the same moment after those sent one at a time, if that would tell
/// whether as many are served at once as these say.
#[must_use]
pub fn probe_together(run: &Run, alone: &Unloaded) -> Option<u64> {
    let first = run.tally.latency.of(LatencyMetric::FirstByte);
    let rate = Saturation::suspected(run).map_or_else(
        || per_second(first.count() as f64, run.completing),
        |saturation| saturation.completed,
    );
    group_size(rate, alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunBuilder};

    #[test]
    fn only_pushed_targets_are_probed() {
        let closed = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0);
        let after = |builder: RunBuilder| probe_after(&builder.run());
        assert_eq!(after(closed.clone()), Some(0));
        assert_eq!(after(closed.clone().in_flight(1.0)), None);
        assert_eq!(after(closed.clone().status(503, 200)), None, "failures are no service");
        assert_eq!(after(RunBuilder::of(1_000, 60 * MS)), None, "an open loop that keeps up");
        let mut hung = closed.run();
        hung.tally.counts.unfinished = 1;
        assert_eq!(probe_after(&hung), None, "a request that does not end");
    }
}
