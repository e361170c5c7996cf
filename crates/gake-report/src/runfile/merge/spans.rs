//! When runs were on, and which of them at once.

use gake_core::clock::{Nanos, nanos};
use gake_core::plan::Plan;
use gake_core::record::Run;

/// A span on the clock of the day: the start and end in Unix nanoseconds.
type Span = (u64, u64);

/// When a run ended, in Unix nanoseconds. What a file says may be any number.
pub(super) fn end(run: &Run) -> u64 {
    run.started_unix_ns.saturating_add(run.elapsed)
}

/// Whether a run was on at an instant; one of no length was on when it started.
pub(super) fn is_on(run: &Run, at: u64) -> bool {
    run.started_unix_ns <= at && at < end(run).max(run.started_unix_ns.saturating_add(1))
}

/// The highest sum of what runs had that were on at one instant.
pub(super) fn at_once<'a>(
    runs: impl Iterator<Item = &'a Run> + Clone,
    of: impl Fn(&Run) -> u64,
) -> u64 {
    // A sum is highest when another run has just started.
    let sums = runs.clone().map(|run| {
        let on = runs.clone().filter(|other| is_on(other, run.started_unix_ns));
        on.fold(0_u64, |sum, run| sum.saturating_add(of(run)))
    });
    sums.max().unwrap_or(0)
}

/// From when on the figures of a plan of this run count, in Unix nanoseconds.
pub(super) fn figures_from(run: &Run, plan: &Plan) -> u64 {
    let before = nanos(plan.start).saturating_add(nanos(plan.warmup));
    run.started_unix_ns.saturating_add(before)
}

/// Nanoseconds in at least one of the spans, each told by where it starts and its length.
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

/// Arrivals asked for over the joint time, from the rate asked for over each part's; unknown as
/// soon as one asked for no rate.
pub(super) fn asked_rate(
    parts: impl Iterator<Item = (Option<f64>, Nanos)>,
    measured: Nanos,
) -> Option<f64> {
    let asked: Option<f64> = parts.map(|(rate, measured)| Some(rate? * measured as f64)).sum();
    asked.filter(|_| measured > 0).map(|asked| asked / measured as f64)
}
