//! Checks of a decoded run: lists of the length of a recorded run, and numbers whose sums do not
//! overflow.

use super::{NUMBER_MAX, SECOND_MAX};
use crate::clock::Nanos;
use crate::record::{Counts, Generator, Run, ScenarioRun, SeriesPoint};

pub(super) fn is_plausible(run: &Run) -> bool {
    let Generator { cpu, run_delay, rss_bytes, miscounted, abandoned, .. } = run.generator;
    let times = [
        run.started_unix_ns >> 8,
        run.measured,
        run.sending,
        run.completing,
        run.elapsed,
        run.peak_connections,
        cpu,
        run_delay,
        rss_bytes,
        miscounted,
        abandoned,
    ];
    are_small(&times)
        && run.plan.scenarios().len() >= run.scenarios.len()
        && run.series.is_plausible()
        && run.series.points().iter().all(point)
        && run.watched.is_plausible()
        && counts(&run.warmup)
        && run.scenarios.iter().all(scenario)
}

fn scenario(run: &ScenarioRun) -> bool {
    are_small(&[run.measured, run.sending, run.completing]) && counts(&run.warmup)
}

fn point(point: &SeriesPoint) -> bool {
    let SeriesPoint { second, seconds, fired, cpu, open, .. } = *point;
    let listed = point.statuses.iter().chain(&point.heat).map(|entry| entry.1);
    let faults = point.faults.iter().map(|entry| entry.1);
    let labels = point.labels.iter().flat_map(|label| [label.sent, label.failed]);
    second <= SECOND_MAX
        && (1..=SECOND_MAX).contains(&seconds)
        && are_small(&[fired, cpu, open])
        && listed.chain(faults).chain(labels).all(|count| count <= NUMBER_MAX)
        && counts(&point.counts)
}

fn counts(counts: &Counts) -> bool {
    counts.add_up()
}

fn are_small(numbers: &[Nanos]) -> bool {
    numbers.iter().all(|number| *number <= NUMBER_MAX)
}
