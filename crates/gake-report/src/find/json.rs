//! JSON, schema `gake.find/1`. Rates are per second, times in seconds unless the name says
//! otherwise.

use std::collections::BTreeMap;

use gake_judge::search::{CapacityResult, Rung, SearchResult, SearchStep, StopReason};
use gake_judge::{Cause, Finding};
use serde::Serialize;

use super::FindReport;
use super::models::{OverloadMapJson, PoolJson, ScalingJson};
use crate::formats::json::FailedBodiesJson;

/// The report as one JSON object over several lines.
///
/// # Errors
/// When a figure is not finite.
pub fn json(report: &FindReport) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&FindJson::from(report))? + "\n")
}

/// A finished capacity search.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FindJson {
    /// Always `gake.find/1`.
    schema: &'static str,
    /// The target: a URL or a targets file.
    target: String,
    /// The dimension: `rate`, `users`, `connections`, `connect-rate`, `tls-handshakes` or
    /// `streams`. Every level below is in its unit: requests per second, or a number.
    dimension: &'static str,
    /// The arrival process: `uniform` or `poisson`.
    arrivals: String,
    /// The objectives.
    objectives: Vec<String>,
    /// The time budget.
    budget_s: f64,
    /// The requested precision: half the width of the 95 % interval, as a share of the capacity.
    precision: f64,
    /// The result.
    answer: CapacityJson,
    /// Every step, in order.
    steps: Vec<SearchStepJson>,
    /// How throughput grows with concurrency: the universal scalability law; null when the ladder
    /// has too few rungs.
    scaling: Option<ScalingJson>,
    /// The pool that explains the ladder's plateau; null without a plateau.
    pool: Option<PoolJson>,
    /// The behaviour beyond the capacity; null when it was not mapped.
    map: Option<OverloadMapJson>,
    /// Causes that limited the target, the most frequent first.
    causes: Vec<CauseJson>,
    /// Steps in which the target was at its limit, and causes were sought.
    overloaded_steps: u64,
    /// The most frequent bodies of failed responses over all steps; absent when there are none or
    /// they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_bodies: Option<FailedBodiesJson>,
}

/// A cause that limited the target.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CauseJson {
    /// Its stable id, as in the findings of a run.
    id: &'static str,
    /// The measured facts under the highest load.
    evidence: String,
    /// The recommended action.
    advice: String,
    /// Where another tool shows the same number.
    check: String,
    /// The number of overloaded steps with this cause.
    steps: u64,
}

impl From<&Cause> for CauseJson {
    fn from(cause: &Cause) -> Self {
        let Finding { id, evidence, advice, check, .. } = cause.finding.clone();
        Self { id, evidence, advice, check, steps: cause.runs }
    }
}

/// The result of a search.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CapacityJson {
    /// `capacity`: it is within an interval. `at_least`: it is `capacity` or higher, see `why`.
    /// `infeasible`: the objectives do not hold even at `capacity`, the lowest level tried.
    /// `unknown`.
    found: &'static str,
    /// The capacity (the posterior median), or the level to which `found` refers.
    capacity: Option<f64>,
    /// The lower end of the 95 % interval.
    low: Option<f64>,
    /// The upper end of the 95 % interval.
    high: Option<f64>,
    /// The level to plan with: the capacity is higher in at least 95 % of searches.
    safe: Option<f64>,
    /// Why the result is not more precise.
    why: Option<String>,
    /// When the budget ran out: the budget that would probably suffice, with steps of minimal
    /// length; null when nothing responded, or the budget sufficed.
    budget_needed_s: Option<f64>,
    /// Why the search ended: `precision`, `ceiling`, `budget`, `interrupted`, `infeasible`,
    /// `target_gone` or `generator`.
    ended: &'static str,
    /// The objective that bounds the capacity.
    bound_by: Option<String>,
    /// Steepness: the bad share grows like the load to this power.
    steepness: Option<f64>,
    /// Whether the load hardly changes how often the objective is missed.
    flat: bool,
    /// Variation of the capacity from step to step, as a share of it.
    noise: f64,
    /// Set when the target was in another state for a while: it failed where it had passed.
    hysteresis: Option<HysteresisJson>,
    /// The most ok responses per second of a closed loop.
    throughput_max: f64,
    /// Mean response time without load.
    unloaded_s: f64,
    /// The ladder: throughput against concurrency.
    ladder: Vec<RungJson>,
    /// Total time of trials and rests.
    spent_s: f64,
}

/// A period in which the target was in another state.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HysteresisJson {
    /// The number of such periods.
    times: u32,
    /// A level that had passed ...
    passed: f64,
    /// ... when this lower level failed badly.
    failed: f64,
    /// Rest until it had recovered.
    rested_s: f64,
    /// Whether it recovered.
    recovered: bool,
}

/// A rung of the ladder.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RungJson {
    /// Users, or the mean number in flight of an open loop.
    users: f64,
    /// Ok responses per second.
    throughput: f64,
    /// Mean response time of the ok responses.
    response_s: f64,
}

/// One trial of a search.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SearchStepJson {
    /// Its purpose: `ladder`, `floor`, `bracket`, `refine`, `probe` or `map`.
    purpose: &'static str,
    /// `rate`, `users` or `connections`.
    load: &'static str,
    /// The requested level.
    asked: f64,
    /// The level that counts: the rate actually due, or the number requested.
    level: f64,
    /// The warm-up, which figures exclude.
    warmup_s: f64,
    /// The measured time.
    measured_s: f64,
    /// The whole step, including its drain.
    took_s: f64,
    /// Arrivals due.
    due: u64,
    /// Arrivals that ended ok.
    ok: u64,
    /// Arrivals that did not.
    errors: u64,
    /// Errors that were never finished or never sent.
    unfinished: u64,
    /// Ok responses per second.
    throughput: f64,
    /// Mean response time of the ok responses.
    response_s: f64,
    /// Mean number in flight.
    in_flight: f64,
    /// For each objective, the missed or used share of its allowance; above 1 it failed.
    of_allowed: Vec<f64>,
    /// For each objective on a percentile of a latency, its value over all requests due; null for
    /// other objectives, and where so many failed that no response has its rank.
    percentiles_s: Vec<Option<f64>>,
    /// The mean of each bounded level of the target, by name and in its own unit (shares from 0
    /// to 1); absent without such objectives.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    levels: BTreeMap<String, f64>,
    /// `pass`, `fail`, `inconclusive`, `limited` (by the generator), `contaminated` (while the
    /// target was in another state) or `cold` (while it was warming up).
    outcome: &'static str,
    /// How the generator may have decided it.
    limited: Option<String>,
}

impl From<&FindReport> for FindJson {
    fn from(report: &FindReport) -> Self {
        Self {
            schema: "gake.find/1",
            target: report.target.clone(),
            dimension: report.dimension.name(),
            arrivals: report.arrivals.to_string(),
            objectives: report.objectives(),
            budget_s: report.budget.as_secs_f64(),
            precision: report.precision,
            answer: CapacityJson::from(&report.result),
            steps: report.steps.iter().map(|step| SearchStepJson::new(report, step)).collect(),
            scaling: report.result.scaling().map(ScalingJson::from),
            pool: report.result.pool().map(PoolJson::from),
            map: report.map.as_ref().map(OverloadMapJson::from),
            causes: report.causes.iter().map(CauseJson::from).collect(),
            overloaded_steps: report.overloaded,
            failed_bodies: FailedBodiesJson::new(&report.bodies),
        }
    }
}

impl From<&SearchResult> for CapacityJson {
    fn from(result: &SearchResult) -> Self {
        let (found, capacity) = match &result.found {
            CapacityResult::Capacity(e) => ("capacity", Some(e.capacity)),
            CapacityResult::AtLeast { level, .. } => ("at_least", Some(*level)),
            CapacityResult::Infeasible { level } => ("infeasible", Some(*level)),
            CapacityResult::Unknown => ("unknown", None),
        };
        let estimate =
            if let CapacityResult::Capacity(e) = &result.found { Some(*e) } else { None };
        let why = match &result.found {
            CapacityResult::AtLeast { why, .. } => Some(why.clone()),
            CapacityResult::Unknown => result.ceiling.clone(),
            _ => None,
        };
        Self {
            found,
            capacity,
            low: estimate.map(|e| e.low),
            high: estimate.map(|e| e.high),
            safe: estimate.map(|e| e.safe),
            why,
            budget_needed_s: result.budget_needed,
            ended: StopReason::name(result.ended),
            bound_by: result.binding.as_ref().map(|clause| clause.text.clone()),
            steepness: result.steepness,
            flat: result.flat,
            noise: result.noise,
            hysteresis: result.hysteresis.map(|h| HysteresisJson {
                times: h.times,
                passed: h.passed,
                failed: h.failed,
                rested_s: h.rested,
                recovered: h.recovered,
            }),
            throughput_max: result.throughput_max,
            unloaded_s: result.unloaded,
            ladder: result.rungs.iter().map(RungJson::from).collect(),
            spent_s: result.spent,
        }
    }
}

impl From<&Rung> for RungJson {
    fn from(rung: &Rung) -> Self {
        Self { users: rung.users, throughput: rung.throughput, response_s: rung.response }
    }
}

impl SearchStepJson {
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
            percentiles_s: seen
                .clauses
                .iter()
                .map(|clause| clause.percentile.map(|ns| ns as f64 / 1e9))
                .collect(),
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

    use expect_test::expect;
    use gake_core::schedule::Process;
    use gake_judge::overload;
    use gake_judge::search::Dimension;

    use super::super::formula::searched;
    use super::*;
    use crate::testing::bless;

    /// A finished search on a target that holds 100/s and no more.
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
            result: search.result(),
            steps: search.steps().to_vec(),
            causes: Vec::new(),
            overloaded: 0,
            bodies: gake_core::record::FailedBodies::default(),
            map: Some(overload::judge(&stairs, &[])),
        }
    }

    #[test]
    fn the_schema_in_docs_is_that_of_the_types() {
        let schema = schemars::schema_for!(FindJson);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gake.find.1.schema.json");
        bless(&path, &text);
    }

    #[test]
    fn a_search_as_json_and_text() {
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
        expect![[r#"
            capacity      holds 98.2/s with p99<50ms   (95 %: 94.8/s to 102/s)
            plan with     94.8/s: the true capacity is higher with 95 % confidence
            objectives    p99<50ms
            ended         after 71.1 s: the requested precision is reached (5.0 %)

            target        20.0 ms without load; 120/s at most in a closed loop
            scaling       52.4/s with one request in flight, serialised share σ 0.054 (0.000
                          to 0.336), coordination κ 0.03894 (universal scalability law): the
                          steps do not determine a peak

            beyond        unknown: no overload was reached (the data do not exclude another
                          class)
            recovery      unknown: there was no overload

            stair          load         ok    in time    refused  response

            step               load    time   requests       p99    missed   allowed
            ladder           1 user  750 ms         38         –       0 %
            ladder          2 users  750 ms         75         –     1.3 %     1.0 %
            ladder          4 users  750 ms         90         –     100 %     1.0 %
            ladder          8 users  750 ms         90         –     100 %     1.0 %
            floor              30/s  4.00 s        120         –       0 %            inconclusive
            bracket            84/s  4.00 s        336         –       0 %            pass
            bracket           105/s  4.00 s        420         –     4.3 %     1.0 %  fail
            refine           91.8/s  8.00 s        735         –    0.14 %     1.0 %  pass
            refine           93.7/s  8.00 s        750         –    0.13 %     1.0 %  pass
            refine            103/s  8.00 s        820         –     2.1 %     1.0 %  fail
            refine           95.2/s  8.00 s        761         –    0.26 %     1.0 %  pass
            refine            102/s  8.00 s        812         –     1.6 %     1.0 %  fail
              inconclusive: as likely within the bound as beyond it
              ladder: users or rates that grow; floor: the lightest load; bracket: loads
              around the limit; refine: loads at it
              missed: the share of requests beyond the bound, and how many it allows
        "#]]
        .assert_eq(&page);
    }
}
