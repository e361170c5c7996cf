//! Merges the scenarios of several runs by name.

use gake_core::plan::Plan;
use gake_core::record::{Counts, Run, ScenarioRun, Tally};

use super::labels::add;
use super::plan::plan;
use super::spans::{asked_rate, covered, figures_from};

/// The scenarios of all runs, merged by name; empty when no run has several. A run with a single
/// load is one scenario where others have several.
pub(super) fn scenarios(runs: &[Run], labels: &[String]) -> Vec<ScenarioRun> {
    if runs.iter().all(|run| run.scenarios.is_empty()) {
        return Vec::new();
    }
    let parts: Vec<_> = runs.iter().flat_map(parts).collect();
    let mut names: Vec<&str> = Vec::new();
    for part in &parts {
        if !names.contains(&part.plan.name.as_str()) {
            names.push(&part.plan.name);
        }
    }
    let of = |name: &&str| parts.iter().filter(|part| part.plan.name == **name).collect();
    names.iter().map(of).filter_map(|parts: Vec<_>| joined(&parts, labels)).collect()
}

/// The plan of a run with several scenarios.
pub(super) fn several(whole: Plan, scenarios: &[ScenarioRun]) -> Plan {
    match scenarios {
        [] => whole,
        all => {
            let plans: Vec<_> = all.iter().map(|scenario| scenario.plan.clone()).collect();
            Plan { load: plans.into(), ..whole }
        }
    }
}

/// A scenario of one run.
struct RunScenario<'a> {
    run: &'a Run,
    plan: &'a Plan,
    tally: &'a Tally,
    warmup: &'a Counts,
    /// Measured, sending and completing time.
    times: [u64; 3],
    asked_rate: Option<f64>,
}

impl<'a> RunScenario<'a> {
    fn of(run: &'a Run, scenario: &'a ScenarioRun) -> Self {
        let times = [scenario.measured, scenario.sending, scenario.completing];
        let ScenarioRun { plan, tally, warmup, asked_rate, .. } = scenario;
        Self { run, plan, tally, warmup, times, asked_rate: *asked_rate }
    }
}

fn parts(run: &Run) -> Vec<RunScenario<'_>> {
    if !run.scenarios.is_empty() {
        return run.scenarios.iter().map(|scenario| RunScenario::of(run, scenario)).collect();
    }
    let times = [run.measured, run.sending, run.completing];
    let Run { plan, tally, warmup, asked_rate, .. } = run;
    vec![RunScenario { run, plan, tally, warmup, times, asked_rate: *asked_rate }]
}

fn joined(parts: &[&RunScenario<'_>], labels: &[String]) -> Option<ScenarioRun> {
    let plans: Vec<_> = parts.iter().map(|part| (part.run, part.plan)).collect();
    let mut tally = Tally::new(labels.len());
    let mut warmup = Counts::default();
    for part in parts {
        add(&mut tally, part.plan, part.tally, labels);
        warmup.merge(part.warmup);
    }
    let time = |which: usize| {
        covered(parts.iter().map(|part| (figures_from(part.run, part.plan), part.times[which])))
    };
    let measured = time(0);
    let asked = parts.iter().map(|part| (part.asked_rate, part.times[0]));
    Some(ScenarioRun {
        plan: plan(&plans, labels)?,
        measured,
        sending: time(1),
        completing: time(2),
        asked_rate: asked_rate(asked, measured),
        tally,
        warmup,
    })
}
