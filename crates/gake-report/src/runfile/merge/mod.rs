//! Merges concurrent or consecutive runs.

mod labels;
mod plan;
mod scenarios;
mod series;
mod spans;

use gake_core::clock::Nanos;
use gake_core::record::{
    AgentRecord, FailedBodies, Generator, Provenance, Run, RunEnd, RunEvent, Tally, WatchRecord,
};

pub(super) use labels::add;
use spans::{end, peak_sum};

/// Merges runs exactly: every count and histogram is the sum. `None` without runs.
///
/// Times cover the periods in which at least one of them ran, so that the rates of concurrent
/// generators add up, and consecutive runs follow on each other. Peaks of overlapping runs add up
/// to an upper bound. Percentiles of the series are the worst of the joined seconds.
#[must_use]
pub fn merge_runs(mut runs: Vec<Run>) -> Option<Run> {
    runs.sort_by_key(|run| run.started_unix_ns);
    if runs.len() < 2 {
        return runs.pop();
    }
    let first = runs.first()?;
    let started = first.started_unix_ns;
    let ended = runs.iter().map(end).max()?;
    let labels = labels::union_of_labels(&runs);
    let mut tally = Tally::new(labels.len());
    let mut warmup = first.warmup;
    for (i, run) in runs.iter().enumerate() {
        add(&mut tally, &run.plan, &run.tally, &labels);
        if i > 0 {
            warmup.merge(&run.warmup);
        }
    }
    let covered = |length: fn(&Run) -> Nanos| {
        spans::covered(runs.iter().map(|run| (spans::figures_from(run, &run.plan), length(run))))
    };
    let measured = covered(|run| run.measured);
    let asked = runs.iter().map(|run| (run.asked_rate, run.measured));
    let ending = runs.iter().map(|run| &run.ending).find(|ending| **ending != RunEnd::Done);
    let scenarios = scenarios::scenarios(&runs, &labels);
    let parts: Vec<_> = runs.iter().map(|run| (run, &run.plan)).collect();
    Some(Run {
        plan: scenarios::several(plan::plan(&parts, &labels)?, &scenarios),
        started_unix_ns: started,
        measured,
        sending: covered(|run| run.sending),
        completing: covered(|run| run.completing),
        elapsed: ended - started,
        ending: ending.cloned().unwrap_or(RunEnd::Done),
        asked_rate: spans::asked_rate(asked, measured),
        tally,
        warmup,
        series: series::series(&runs, started, &labels),
        peak_connections: peak_sum(runs.iter(), |run| run.peak_connections),
        generator: generator(&runs),
        events: events(&runs, started),
        agents: agents(&runs, started),
        watched: watched(&runs, started),
        bodies: bodies(&runs),
        scenarios,
        origin: origin(&runs),
    })
}

fn agents(runs: &[Run], started: u64) -> Vec<AgentRecord> {
    let of = |run: &Run| {
        let later = run.started_unix_ns - started;
        let shift = |agent: &AgentRecord| {
            let lost_ns = agent.lost_ns.map(|at| at.saturating_add(later));
            AgentRecord { lost_ns, ..agent.clone() }
        };
        run.agents.iter().map(shift).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of).collect()
}

/// The samples of all generators; of a gauge that several have, the first one's.
fn watched(runs: &[Run], started: u64) -> WatchRecord {
    let mut all = WatchRecord::default();
    for run in runs {
        all.absorb(&run.watched, run.started_unix_ns - started);
    }
    all
}

/// The most frequent bodies of failed responses.
fn bodies(runs: &[Run]) -> FailedBodies {
    let mut all = FailedBodies::default();
    runs.iter().for_each(|run| all.merge(&run.bodies));
    all
}

/// Each command, host, version and objective once.
fn origin(runs: &[Run]) -> Provenance {
    let mut all = Provenance::default();
    runs.iter().for_each(|run| all.absorb(&run.origin));
    all
}

/// The generators' usage: total CPU time, the rest at one instant.
fn generator(runs: &[Run]) -> Generator {
    let peak_sum = |of: fn(&Generator) -> u64| peak_sum(runs.iter(), |run| of(&run.generator));
    let sum = |of: fn(&Generator) -> u64| {
        runs.iter().fold(0, |sum: u64, run| sum.saturating_add(of(&run.generator)))
    };
    Generator {
        cpu: sum(|one| one.cpu),
        busiest: runs.iter().map(|run| run.generator.busiest).fold(0.0, f64::max),
        run_delay: sum(|one| one.run_delay),
        rss_bytes: peak_sum(|one| one.rss_bytes),
        threads: peak_sum(|one| one.threads as u64) as usize,
        cores: peak_sum(|one| one.cores as u64) as usize,
        miscounted: sum(|one| one.miscounted),
        abandoned: sum(|one| one.abandoned),
    }
}

fn events(runs: &[Run], started: u64) -> Vec<RunEvent> {
    let of = |run: &Run| {
        let offset = run.started_unix_ns - started;
        let shift = move |event: &RunEvent| RunEvent {
            at: event.at.saturating_add(offset),
            text: event.text.clone(),
        };
        run.events.iter().map(shift).collect::<Vec<_>>()
    };
    let mut events: Vec<_> = runs.iter().flat_map(of).collect();
    events.sort_by_key(|event| event.at);
    events
}
