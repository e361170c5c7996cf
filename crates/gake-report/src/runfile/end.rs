//! A run from what a file holds, whether it ended or was cut off.

use gake_core::clock::{SECOND, nanos};
use gake_core::plan::Plan;
use gake_core::record::{Counts, FailedBodies, Generator, Run, RunEnd, ScenarioRun, Tally};

use super::body::{Body, Head};
use super::lines::{EndLine, ScenarioEnd};

/// The run of a file with its end.
pub(super) fn ended(mut head: Head, mut body: Body, end: EndLine) -> Run {
    if !end.agents.is_empty() {
        // How many threads agents have is known once they are there.
        head.plan.threads = Generator::from(end.generator.clone()).threads;
    }
    let warmup = nanos(head.plan.warmup);
    let span = end.elapsed_ns.saturating_sub(warmup);
    body.series.end(warmup.saturating_add(end.measured_ns));
    let whole = ScenarioEnd {
        measured_ns: end.measured_ns,
        sending_ns: end.sending_ns,
        completing_ns: end.completing_ns.unwrap_or(span),
        asked_rate: None,
        warmup: Counts::default(),
    };
    let scenarios = scenarios(&head.plan, &mut body, end.scenarios, whole);
    Run {
        plan: head.plan,
        started_unix_ns: head.started_unix_ns,
        measured: end.measured_ns,
        sending: end.sending_ns,
        completing: end.completing_ns.unwrap_or(span),
        elapsed: end.elapsed_ns,
        ending: end.ending.into(),
        asked_rate: end.asked_rate,
        tally: body.tally,
        warmup: body.warmup,
        series: body.series,
        peak_connections: end.peak_connections,
        generator: end.generator.into(),
        events: end.events.into_iter().map(Into::into).collect(),
        agents: end.agents,
        watched: body.watched,
        bodies: end.bodies,
        scenarios,
        origin: body.origin,
    }
}

/// The scenarios of a run, when it has several. What only the end would have told is, without it,
/// that of the whole run.
fn scenarios(
    plan: &Plan,
    body: &mut Body,
    ends: Vec<ScenarioEnd>,
    whole: ScenarioEnd,
) -> Vec<ScenarioRun> {
    let [_, _, ..] = plan.scenarios() else { return Vec::new() };
    let mut tallies = std::mem::take(&mut body.scenarios).into_iter();
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

/// The run of a file whose writer never came to its end: everything is taken from the whole
/// seconds, and what only the end would have told is left at nothing.
pub(super) fn cut_off(head: Head, mut body: Body) -> Run {
    let plan = head.plan;
    let warmup = nanos(plan.warmup);
    let elapsed = body.seconds.saturating_mul(SECOND);
    let measured = elapsed.saturating_sub(warmup);
    let figures = || {
        let inside = |second: u64| second.saturating_mul(SECOND) >= warmup;
        body.series.points().iter().filter(move |point| inside(point.second))
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
    let scenarios = scenarios(&plan, &mut body, Vec::new(), whole);
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
        tally: body.tally,
        warmup: body.warmup,
        series: body.series,
        peak_connections: body.peak,
        events: body.events,
        agents: Vec::new(),
        watched: body.watched,
        bodies: FailedBodies::default(),
        scenarios,
        origin: body.origin,
    }
}
