//! When runs took place, and which of them were concurrent.

use gake_core::clock::{Nanos, nanos};
use gake_core::plan::Plan;
use gake_core::record::Run;

/// The start and end of a span in Unix nanoseconds.
type Span = (u64, u64);

/// The end of a run, in Unix nanoseconds. Values from a file may be arbitrary.
pub(super) fn end(run: &Run) -> u64 {
    run.started_unix_ns.saturating_add(run.elapsed)
}

/// Whether a run was in progress at an instant; one of zero length was when it started.
pub(super) fn is_on(run: &Run, at: u64) -> bool {
    run.started_unix_ns <= at && at < end(run).max(run.started_unix_ns.saturating_add(1))
}

/// The highest sum over concurrent runs.
pub(super) fn peak_sum<'a>(
    runs: impl Iterator<Item = &'a Run> + Clone,
    of: impl Fn(&Run) -> u64,
) -> u64 {
    // The maximum occurs when a run has just started.
    let sums = runs.clone().map(|run| {
        let on = runs.clone().filter(|other| is_on(other, run.started_unix_ns));
        on.fold(0_u64, |sum, run| sum.saturating_add(of(run)))
    });
    sums.max().unwrap_or(0)
}

/// The end of a plan's warm-up in this run, in Unix nanoseconds.
pub(super) fn figures_from(run: &Run, plan: &Plan) -> u64 {
    let before = nanos(plan.start).saturating_add(nanos(plan.warmup));
    run.started_unix_ns.saturating_add(before)
}

/// Nanoseconds covered by at least one of the spans, given as start and length.
pub(super) fn covered(spans: impl Iterator<Item = (u64, Nanos)>) -> Nanos {
    let mut spans: Vec<Span> =
        spans.map(|(from, length)| (from, from.saturating_add(length))).collect();
    spans.sort_unstable();
    let (mut sum, mut reached) = (0, 0);
    for (from, to) in spans {
        sum += to.saturating_sub(from.max(reached));
        reached = reached.max(to);
    }
    sum
}

/// Arrivals due per second of joint time, from the rate and time of each; `None` as soon as one has
/// no rate.
pub(super) fn asked_rate(
    parts: impl Iterator<Item = (Option<f64>, Nanos)>,
    measured: Nanos,
) -> Option<f64> {
    let asked: Option<f64> = parts.map(|(rate, measured)| Some(rate? * measured as f64)).sum();
    asked.filter(|_| measured > 0).map(|asked| asked / measured as f64)
}
