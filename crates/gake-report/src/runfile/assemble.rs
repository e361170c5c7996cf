//! Builds a run from the content of a file, complete or truncated.

use gake_core::clock::{SECOND, nanos};
use gake_core::plan::Plan;
use gake_core::record::{Counts, FailedBodies, Generator, Run, RunEnd, ScenarioRun, Tally};

use super::lines::{EndLine, ScenarioEnd};
use super::totals::{RunHead, RunTotals};

/// The run of a complete file.
pub(super) fn complete(mut head: RunHead, mut totals: RunTotals, end: EndLine) -> Run {
    if !end.agents.is_empty() {
        // The agents' threads are known only at the end.
        head.plan.threads = Generator::from(end.generator.clone()).threads;
    }
    let warmup = nanos(head.plan.warmup);
    let span = end.elapsed_ns.saturating_sub(warmup);
    totals.series.end(warmup.saturating_add(end.measured_ns));
    let whole = ScenarioEnd {
        measured_ns: end.measured_ns,
        sending_ns: end.sending_ns,
        completing_ns: end.completing_ns.unwrap_or(span),
        asked_rate: None,
        warmup: Counts::default(),
    };
    let scenarios = scenarios(&head.plan, &mut totals, end.scenarios, whole);
    Run {
        plan: head.plan,
        started_unix_ns: head.started_unix_ns,
        measured: end.measured_ns,
        sending: end.sending_ns,
        completing: end.completing_ns.unwrap_or(span),
        elapsed: end.elapsed_ns,
        ending: end.ending.into(),
        asked_rate: end.asked_rate,
        tally: totals.tally,
        warmup: totals.warmup,
        series: totals.series,
        peak_connections: end.peak_connections,
        generator: end.generator.into(),
        events: end.events.into_iter().map(Into::into).collect(),
        agents: end.agents,
        watched: totals.watched,
        bodies: end.bodies,
        scenarios,
        origin: totals.origin,
    }
}

/// The scenarios of a run, when it has several. Without an end, its figures are the whole run's.
fn scenarios(
    plan: &Plan,
    totals: &mut RunTotals,
    ends: Vec<ScenarioEnd>,
    whole: ScenarioEnd,
) -> Vec<ScenarioRun> {
    let [_, _, ..] = plan.scenarios() else { return Vec::new() };
    let mut tallies = std::mem::take(&mut totals.scenarios).into_iter();
    let mut ends = ends.into_iter();
    let labels = plan.labels.len();
    let each = plan.scenarios().iter().map(|plan| {
        let end = ends.next().unwrap_or_else(|| whole.clone());
        let mut tally = tallies.next().unwrap_or_default();
        tally.grow_labels(Tally::new(labels).labels().len());
        ScenarioRun {
            plan: plan.clone(),
            measured: end.measured_ns,
            sending: end.sending_ns,
            completing: end.completing_ns,
            asked_rate: end.asked_rate,
            tally,
            warmup: end.warmup,
        }
    });
    each.collect()
}

/// The run of a truncated file: everything comes from its complete seconds, and figures that only
/// the end contains are empty.
pub(super) fn truncated(head: RunHead, mut totals: RunTotals) -> Run {
    let plan = head.plan;
    let warmup = nanos(plan.warmup);
    let elapsed = totals.seconds.saturating_mul(SECOND);
    let measured = elapsed.saturating_sub(warmup);
    let figures = || {
        let inside = |second: u64| second.saturating_mul(SECOND) >= warmup;
        totals.series.points().iter().filter(move |point| inside(point.second))
    };
    let cpu = figures().map(|point| point.cpu).sum::<u64>();
    let seconds = figures().map(|point| point.seconds).sum::<u64>();
    let asked: Option<f64> = figures().map(|point| point.asked).sum();
    let asked_rate = asked.filter(|_| seconds > 0).map(|asked| asked / seconds as f64);
    let whole = ScenarioEnd {
        measured_ns: measured,
        sending_ns: measured,
        completing_ns: measured,
        asked_rate: None,
        warmup: Counts::default(),
    };
    let scenarios = scenarios(&plan, &mut totals, Vec::new(), whole);
    Run {
        started_unix_ns: head.started_unix_ns,
        measured,
        sending: measured,
        completing: measured,
        elapsed,
        ending: RunEnd::Interrupted,
        asked_rate,
        generator: Generator { cpu, threads: plan.threads, ..Generator::default() },
        plan,
        tally: totals.tally,
        warmup: totals.warmup,
        series: totals.series,
        peak_connections: totals.peak,
        events: totals.events,
        agents: Vec::new(),
        watched: totals.watched,
        bodies: FailedBodies::default(),
        scenarios,
        origin: totals.origin,
    }
}
