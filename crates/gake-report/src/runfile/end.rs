//! A run from what a file holds, whether it ended or was cut off.

use gake_core::clock::SECOND;
use gake_core::record::{Ending, Generator, Run};

use super::lines::EndLine;
use super::read::{Body, Head};

/// The run of a file with its end.
pub(super) fn ended(head: Head, body: Body, end: EndLine) -> Run {
    let warmup = u64::try_from(head.plan.warmup.as_nanos()).unwrap_or(u64::MAX);
    let span = end.elapsed_ns.saturating_sub(warmup);
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
        watched: body.watched,
    }
}

/// The run of a file whose writer never came to its end: everything is taken from the whole
/// seconds, and what only the end would have told is left at nothing.
pub(super) fn cut_off(head: Head, body: Body) -> Run {
    let plan = head.plan;
    let warmup = u64::try_from(plan.warmup.as_nanos()).unwrap_or(u64::MAX);
    let elapsed = body.seconds.saturating_mul(SECOND);
    let measured = elapsed.saturating_sub(warmup);
    let figures = || {
        let inside = |second: u64| second.saturating_mul(SECOND) >= warmup;
        body.series.points().iter().filter(move |point| inside(point.second))
    };
    let cpu = figures().map(|point| point.cpu).sum::<u64>();
    let seconds = figures().map(|point| point.seconds).sum::<u64>();
    let asked: Option<f64> = figures().map(|point| point.asked).sum();
    Run {
        started_unix_ns: head.started_unix_ns,
        measured,
        sending: measured,
        completing: measured,
        elapsed,
        ending: Ending::Interrupted,
        asked_rate: asked.filter(|_| seconds > 0).map(|asked| asked / seconds as f64),
        generator: Generator { cpu, threads: plan.threads, ..Generator::default() },
        plan,
        tally: body.tally,
        warmup: body.warmup,
        series: body.series,
        peak_connections: body.peak,
        events: body.events,
        watched: body.watched,
    }
}
