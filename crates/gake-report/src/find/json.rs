//! JSON, schema `gake.find/1`. Rates are a second, times in seconds unless the name says more.

use std::collections::BTreeMap;

use gake_judge::search::{CapacityResult, Rung, SearchResult, SearchStep, StopReason};
use gake_judge::{Cause, Finding};
use serde::Serialize;

use super::FindReport;
use super::models::{MapForm, PoolForm, ScalingForm};
use crate::formats::json::FailedBodiesForm;

/// The report as one JSON object over several lines.
///
/// # Errors
/// When a figure is not a number.
pub fn json(report: &FindReport) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&FindForm::from(report))? + "\n")
}

/// A search that is over.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FindForm {
    /// Always `gake.find/1`.
    schema: &'static str,
    /// What was loaded: a URL or a targets file.
    target: String,
    /// What was searched: `rate`, `users`, `connections`, `connect-rate`, `tls-handshakes` or
    /// `streams`. Every level below is in its unit: requests a second, or a number.
    dimension: &'static str,
    /// How arrivals were spread: `uniform` or `poisson`.
    arrivals: String,
    /// The objectives.
    objectives: Vec<String>,
    /// The time it might take.
    budget_s: f64,
    /// The precision asked for: half the width of the 95 % interval, as a part of the capacity.
    precision: f64,
    /// The answer.
    answer: AnswerForm,
    /// Every step, in order.
    steps: Vec<StepForm>,
    /// How throughput grows with concurrency: the universal scalability law; null when the ladder
    /// has too few rungs.
    scaling: Option<ScalingForm>,
    /// The pool that explains the ladder's plateau; null without a plateau.
    pool: Option<PoolForm>,
    /// What comes after the capacity; null when it was not mapped.
    map: Option<MapForm>,
    /// What limited the target, the most frequent first.
    causes: Vec<CauseForm>,
    /// Steps in which the target was at its limit, and causes were looked for.
    overloaded_steps: u64,
    /// The most frequent bodies of failed answers of all steps; absent when none came, or they
    /// were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_bodies: Option<FailedBodiesForm>,
}

/// What limited the target.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CauseForm {
    /// Its stable name, that of a finding of a run.
    id: &'static str,
    /// What was seen, under the highest load.
    evidence: String,
    /// What to try.
    advice: String,
    /// Where the same number can be read with another tool.
    check: String,
    /// In how many of the overloaded steps.
    steps: u64,
}

impl From<&Cause> for CauseForm {
    fn from(cause: &Cause) -> Self {
        let Finding { id, evidence, advice, check, .. } = cause.finding.clone();
        Self { id, evidence, advice, check, steps: cause.runs }
    }
}

/// The answer.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AnswerForm {
    /// `capacity`: it lies in an interval. `at_least`: it is `capacity` at least, see `why`.
    /// `infeasible`: the objectives do not hold at `capacity` either, the lowest level tried.
    /// `unknown`.
    found: &'static str,
    /// The capacity (the median of what is known), or the level that `found` speaks of.
    capacity: Option<f64>,
    /// The 95 % interval: its lower end.
    low: Option<f64>,
    /// Its upper end.
    high: Option<f64>,
    /// The level to plan with: the capacity is above it in 95 % of the searches at least.
    safe: Option<f64>,
    /// Why no more can be said.
    why: Option<String>,
    /// The budget that would probably do, with steps as short as they may be, when this one was
    /// spent before enough was known; `null` too when nothing was answered.
    budget_needed_s: Option<f64>,
    /// Why the search ended: `precision`, `ceiling`, `budget`, `interrupted`, `infeasible`,
    /// `target_gone` or `generator`.
    ended: &'static str,
    /// The objective that bounds the capacity.
    bound_by: Option<String>,
    /// How steeply it turns bad: the bad share grows like the load to this power.
    steepness: Option<f64>,
    /// The load hardly changes how often the objective is missed.
    flat: bool,
    /// How much the capacity changes from step to step, as a part of it.
    noise: f64,
    /// The target was in another state for a while: it failed where it had passed.
    hysteresis: Option<HysteresisForm>,
    /// The most ok responses a second of a closed loop.
    throughput_max: f64,
    /// Mean response time without load.
    unloaded_s: f64,
    /// The ladder: throughput against concurrency.
    ladder: Vec<RungForm>,
    /// Time of trials and rests.
    spent_s: f64,
}

/// The target was in another state for a while.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HysteresisForm {
    /// How often.
    times: u32,
    /// A level that had passed ...
    passed: f64,
    /// ... when this lower one failed badly.
    failed: f64,
    /// Rest until it was as before.
    rested_s: f64,
    /// Whether it was as before in the end.
    recovered: bool,
}

/// A rung of the ladder.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RungForm {
    /// Users, or the mean number in flight of an open loop.
    users: f64,
    /// Ok responses a second.
    throughput: f64,
    /// Their mean time.
    response_s: f64,
}

/// A step.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StepForm {
    /// What it was for: `ladder`, `floor`, `bracket`, `refine`, `probe` or `map`.
    purpose: &'static str,
    /// `rate`, `users` or `connections`.
    load: &'static str,
    /// How much of it was asked.
    asked: f64,
    /// The level that counts: the rate really due, or the number asked.
    level: f64,
    /// The part left out of the figures.
    warmup_s: f64,
    /// The part that counts.
    measured_s: f64,
    /// The whole step, its drain included.
    took_s: f64,
    /// Arrivals due.
    due: u64,
    /// Those that ended ok.
    ok: u64,
    /// Those that did not.
    errors: u64,
    /// Of these, never finished or never sent.
    unfinished: u64,
    /// Ok responses a second.
    throughput: f64,
    /// Mean response time of the ok ones.
    response_s: f64,
    /// Mean number in flight.
    in_flight: f64,
    /// For each objective, what was missed or used as a part of what is allowed; over 1 it failed.
    of_allowed: Vec<f64>,
    /// The mean of each level of the target that is bounded, by its name and in its own unit
    /// (shares from 0 to 1); absent without such objectives.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    levels: BTreeMap<String, f64>,
    /// `pass`, `fail`, `inconclusive` (either by luck), `limited` (by the generator) or
    /// `contaminated` (made while the target was in another state).
    outcome: &'static str,
    /// How the generator may have decided it.
    limited: Option<String>,
}

impl From<&FindReport> for FindForm {
    fn from(report: &FindReport) -> Self {
        Self {
            schema: "gake.find/1",
            target: report.target.clone(),
            dimension: report.dimension.name(),
            arrivals: report.arrivals.to_string(),
            objectives: report.objectives(),
            budget_s: report.budget.as_secs_f64(),
            precision: report.precision,
            answer: AnswerForm::from(&report.answer),
            steps: report.steps.iter().map(|step| StepForm::new(report, step)).collect(),
            scaling: report.answer.scaling().map(ScalingForm::from),
            pool: report.answer.pool().map(PoolForm::from),
            map: report.map.as_ref().map(MapForm::from),
            causes: report.causes.iter().map(CauseForm::from).collect(),
            overloaded_steps: report.overloaded,
            failed_bodies: FailedBodiesForm::new(&report.bodies),
        }
    }
}

impl From<&SearchResult> for AnswerForm {
    fn from(answer: &SearchResult) -> Self {
        let (found, capacity) = match &answer.found {
            CapacityResult::Capacity(e) => ("capacity", Some(e.capacity)),
            CapacityResult::AtLeast { level, .. } => ("at_least", Some(*level)),
            CapacityResult::Infeasible { level } => ("infeasible", Some(*level)),
            CapacityResult::Unknown => ("unknown", None),
        };
        let estimate =
            if let CapacityResult::Capacity(e) = &answer.found { Some(*e) } else { None };
        let why = match &answer.found {
            CapacityResult::AtLeast { why, .. } => Some(why.clone()),
            CapacityResult::Unknown => answer.ceiling.clone(),
            _ => None,
        };
        Self {
            found,
            capacity,
            low: estimate.map(|e| e.low),
            high: estimate.map(|e| e.high),
            safe: estimate.map(|e| e.safe),
            why,
            budget_needed_s: answer.budget_needed,
            ended: StopReason::name(answer.ended),
            bound_by: answer.binding.as_ref().map(|clause| clause.text.clone()),
            steepness: answer.steepness,
            flat: answer.flat,
            noise: answer.noise,
            hysteresis: answer.hysteresis.map(|h| HysteresisForm {
                times: h.times,
                passed: h.passed,
                failed: h.failed,
                rested_s: h.rested,
                recovered: h.recovered,
            }),
            throughput_max: answer.throughput_max,
            unloaded_s: answer.unloaded,
            ladder: answer.rungs.iter().map(RungForm::from).collect(),
            spent_s: answer.spent,
        }
    }
}

impl From<&Rung> for RungForm {
    fn from(rung: &Rung) -> Self {
        Self { users: rung.users, throughput: rung.throughput, response_s: rung.response }
    }
}

impl StepForm {
    fn new(report: &FindReport, step: &SearchStep) -> Self {
        let (trial, seen) = (&step.trial, &step.seen);
        let levels = report.clauses.iter().enumerate().filter_map(|(number, clause)| {
            Some((clause.target_level()?.to_owned(), step.mean_level(number)?))
        });
        Self {
            purpose: trial.purpose.name(),
            load: trial.load.name(),
            asked: trial.load.level(),
            level: step.level(),
            warmup_s: trial.warmup.as_secs_f64(),
            measured_s: seen.measured,
            took_s: seen.took,
            due: seen.due,
            ok: seen.ok,
            errors: seen.errors,
            unfinished: seen.unfinished,
            throughput: seen.throughput,
            response_s: seen.response,
            in_flight: seen.in_flight,
            of_allowed: step.ratios.clone(),
            levels: levels.collect(),
            outcome: step.outcome.name(),
            limited: seen.limited.clone(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::time::Duration;

    use gake_core::schedule::Process;
    use gake_judge::overload;
    use gake_judge::search::Dimension;

    use super::super::formula::searched;
    use super::*;
    use crate::testing::bless;

    /// A target that holds 100/s and not more, searched.
    pub(crate) fn report() -> FindReport {
        let search = searched(|users| (50.0 * users).min(120.0));
        let stairs = overload::steps(100.0, None);
        FindReport {
            target: "http://localhost:8080/".to_owned(),
            started_unix_ns: 1_700_000_000_000_000_000,
            dimension: Dimension::Rate,
            arrivals: Process::Poisson,
            budget: Duration::from_secs(120),
            precision: 0.05,
            clauses: vec!["p99<50ms".parse::<gake_judge::Objective>().unwrap().clause().unwrap()],
            answer: search.result(),
            steps: search.steps().to_vec(),
            causes: Vec::new(),
            overloaded: 0,
            bodies: gake_core::record::FailedBodies::default(),
            map: Some(overload::judge(&stairs, &[])),
        }
    }

    #[test]
    fn the_schema_in_docs_is_that_of_the_types() {
        let schema = schemars::schema_for!(FindForm);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gake.find.1.schema.json");
        bless(&path, &text);
    }

    #[test]
    fn the_answer_and_its_evidence_are_told() {
        let report = report();
        let form: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
        assert_eq!(form["schema"], "gake.find/1");
        assert_eq!(form["answer"]["found"], "capacity");
        assert_eq!(form["answer"]["bound_by"], "p99<50ms");
        let of = |name: &str| form["answer"][name].as_f64().unwrap();
        assert!(of("low") <= of("safe") && of("safe") < of("capacity"));
        assert!((95.0..105.0).contains(&of("capacity")), "{}", of("capacity"));
        assert_eq!(form["steps"].as_array().unwrap().len(), report.steps.len());
        let page = crate::find::text(&report, crate::Style::default());
        for part in ["capacity ", "plan with", "95 %:", "refine", "beyond", "pass", "fail"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
