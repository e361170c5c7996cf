//! What a search judges of a run: its requests, or the iterations of its scripts.

use std::borrow::Cow;

use gake_core::metric::SeriesValue;
use gake_core::plan::{Plan, WorkKind};
use gake_core::record::{Counts, LatencyMetric, Run, Tally};

/// The metric of a script's iterations.
const ITERATIONS: &str = "iteration_duration";

/// What a search judges of the tally of a run of `plan`: requests, or, where only scripts are
/// fired, iterations as if each were one.
pub(super) fn judged<'t>(plan: &Plan, tally: &'t Tally) -> Cow<'t, Tally> {
    match plan.scenarios().iter().all(|plan| plan.fires == WorkKind::Iterations) {
        true => Cow::Owned(of_iterations(tally)),
        false => Cow::Borrowed(tally),
    }
}

/// The same of a whole run.
pub(super) fn judged_run(run: &Run) -> Cow<'_, Run> {
    match judged(&run.plan, &run.tally) {
        Cow::Owned(tally) => Cow::Owned(Run { tally, ..run.clone() }),
        Cow::Borrowed(_) => Cow::Borrowed(run),
    }
}

/// A tally in which an iteration is what a request is elsewhere: it is ok when it ended, and its
/// response time is from its start to its end. The metrics stay as they are.
fn of_iterations(tally: &Tally) -> Tally {
    let Counts { started, interrupted, dropped, .. } = tally.counts;
    let counts = Counts {
        started,
        interrupted,
        dropped,
        sent: started,
        written: started,
        ok: started - interrupted,
        unfinished: interrupted,
        ..Counts::default()
    };
    let mut judged = Tally::default();
    for metric in [LatencyMetric::Lateness, LatencyMetric::Blocked] {
        judged.latency.of_mut(metric).merge(tally.latency.of(metric));
    }
    for (key, value) in tally.series.series() {
        if let (ITERATIONS, SeriesValue::Trend(times)) = (key.metric.name.as_str(), value) {
            judged.latency.of_mut(LatencyMetric::OkResponse).merge(times);
            judged.latency.of_mut(LatencyMetric::Service).merge(times);
        }
    }
    (judged.counts, judged.series) = (counts, tally.series.clone());
    (judged.in_flight_ns, judged.fired) = (tally.in_flight_ns, tally.fired);
    judged
}
