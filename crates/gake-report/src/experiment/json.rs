//! JSON, schema `gake.experiment/1`. Rates are per second, times in nanoseconds.
//!
//! The fields are documented on the types; `docs/gake.experiment.1.schema.json` is generated from
//! them.

use std::collections::BTreeMap;

use gake_core::clock::nanos;
use serde::Serialize;

use super::{ExperimentReport, ExperimentStep};
use crate::formats::json::{FailedBodiesJson, GeneratorUsageJson};
use crate::json_types::watched::WatchedTargetJson;

/// The report as one JSON object over several lines.
///
/// # Errors
/// When a figure is not finite.
pub fn json(report: &ExperimentReport) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&ExperimentJson::from(report))? + "\n")
}

/// An experiment.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ExperimentJson {
    /// Always `gake.experiment/1`.
    schema: &'static str,
    /// The experiment's name on the command line.
    experiment: String,
    /// Its purpose.
    about: String,
    /// The target.
    target: String,
    /// Whether times and numbers were scaled down.
    quick: bool,
    /// Whether every step is as theory expects; null without theory, or when a step is missing or
    /// not judged and no other is unexpected.
    as_expected: Option<bool>,
    /// Whether all steps ran: none is missing because the experiment failed or was interrupted, or
    /// because the step could not run.
    complete: bool,
    /// What was left out.
    notes: Vec<String>,
    /// The steps, in order.
    steps: Vec<ExperimentStepJson>,
}

/// One step of an experiment.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ExperimentStepJson {
    /// The setting that changes in it.
    name: String,
    /// The command that starts the same server; null for the user's own server.
    server: Option<String>,
    /// Whether it is as theory expects; null without theory, or when they differ and the generator
    /// did not get its cores.
    as_expected: Option<bool>,
    /// What theory expects.
    expectations: Vec<ExpectationJson>,
    /// Requests sent: ok + failed + unfinished.
    sent: u64,
    /// Responses that met the expectation.
    ok: u64,
    /// Other responses, and faults.
    failed: u64,
    /// In flight at the end.
    unfinished: u64,
    /// Due and never fired.
    dropped: u64,
    /// Fired and never sent: the generator had no descriptor or local port left.
    unsent: u64,
    /// Failures by fault and status.
    problems: BTreeMap<String, u64>,
    /// The most frequent bodies of failed responses; null when there are none or they were not
    /// recorded.
    failed_bodies: Option<FailedBodiesJson>,
    /// Ok responses per second.
    goodput: f64,
    /// Response times.
    response_ns: ResponseJson,
    /// The most connections open at the same time.
    peak_connections: u64,
    /// Whether the figures are believable: `valid`, `suspect` or `invalid`.
    validity: &'static str,
    /// Findings, causes first.
    findings: Vec<StepFindingJson>,
    /// Samples of the target, including a database's counters; null when it was not watched.
    target: Option<WatchedTargetJson>,
    /// The generator's own resource usage.
    generator: GeneratorUsageJson,
    /// The step over time.
    series: Vec<SecondJson>,
}

/// An expectation of theory.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ExpectationJson {
    what: String,
    /// The predicted value, with its formula.
    theory: String,
    /// The measured value.
    seen: String,
    /// Whether they agree.
    met: bool,
}

/// Response times from the due instant, in nanoseconds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ResponseJson {
    /// The mean.
    mean: f64,
    /// The median.
    p50: u64,
    /// The 99th percentile.
    p99: u64,
    /// The maximum.
    max: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StepFindingJson {
    /// Its stable id.
    id: &'static str,
    /// `cause`, `symptom` or `context`.
    rank: &'static str,
    /// The measured facts.
    evidence: String,
    /// The recommended action.
    advice: String,
}

/// One second of a step.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SecondJson {
    /// Since the start of the step.
    second: u64,
    /// Connections open at its end.
    open_connections: u64,
    /// The mean number of requests in flight.
    in_flight: f64,
    /// Ok responses.
    ok: u64,
}

impl From<&ExperimentReport> for ExperimentJson {
    fn from(report: &ExperimentReport) -> Self {
        Self {
            schema: "gake.experiment/1",
            experiment: report.name.clone(),
            about: report.about.clone(),
            target: report.target.clone(),
            quick: report.quick,
            as_expected: report.is_as_expected(),
            complete: report.is_complete,
            notes: report.notes.clone(),
            steps: report.steps.iter().map(ExperimentStepJson::from).collect(),
        }
    }
}

impl From<&ExperimentStep> for ExperimentStepJson {
    fn from(step: &ExperimentStep) -> Self {
        let (run, verdict) = (&step.summary.run, &step.summary.verdict);
        let (counts, response) = (step.tally().counts, step.tally().latency.response());
        let expectation = |one: &super::Expectation| ExpectationJson {
            what: one.what.clone(),
            theory: one.theory.clone(),
            seen: one.seen.clone(),
            met: one.met,
        };
        let finding = |one: &gake_judge::Finding| StepFindingJson {
            id: one.id,
            rank: one.rank.name(),
            evidence: one.evidence.clone(),
            advice: one.advice.clone(),
        };
        let moment = |point: &gake_core::record::SeriesPoint| SecondJson {
            second: point.second,
            open_connections: point.open,
            in_flight: point.in_flight,
            ok: point.counts.ok,
        };
        Self {
            name: step.name.clone(),
            server: (!step.server.is_empty()).then(|| step.server.clone()),
            as_expected: step.is_as_expected(),
            expectations: step.expectations.iter().map(expectation).collect(),
            sent: counts.sent,
            ok: counts.ok,
            failed: counts.failed,
            unfinished: counts.unfinished,
            dropped: counts.dropped,
            unsent: counts.unsent,
            problems: step.problems(ToString::to_string).into_iter().collect(),
            failed_bodies: FailedBodiesJson::new(&run.bodies),
            goodput: step.goodput(),
            response_ns: ResponseJson {
                mean: response.mean(),
                p50: response.quantile(0.5),
                p99: response.quantile(0.99),
                max: response.max(),
            },
            peak_connections: run.peak_connections,
            validity: verdict.validity.name(),
            findings: verdict.findings.iter().map(finding).collect(),
            target: WatchedTargetJson::new(&run.watched, nanos(run.plan.warmup)),
            generator: GeneratorUsageJson::new(run),
            series: run.series.points().iter().map(moment).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect;
    use gake_core::record::{GaugeReading, LevelUnit, TargetSetting, WatchRecord};
    use gake_judge::{Finding, Rank, Summary};

    use super::super::{Expectation, text};
    use super::*;
    use crate::testing::{bless, healthy, troubled};

    fn report(met: bool) -> ExperimentReport {
        let expectation = |met| Expectation {
            what: "ok".to_owned(),
            theory: "2 + 2 = 4".to_owned(),
            seen: if met { "4" } else { "<5>" }.to_owned(),
            met,
            range: None,
        };
        let step = |name: &str, run, met| ExperimentStep {
            name: name.to_owned(),
            server: "gake serve --threads 2".to_owned(),
            summary: Summary::new(run, &[]),
            subject: None,
            expectations: vec![expectation(met)],
        };
        ExperimentReport {
            name: "spike".to_owned(),
            about: "what is shown".to_owned(),
            target: "the built-in lab".to_owned(),
            started_unix_ns: 0,
            quick: true,
            notes: vec!["one step was left out".to_owned()],
            is_complete: true,
            steps: vec![step("first", healthy(), true), step("second", troubled(), met)],
        }
    }

    #[test]
    fn the_schema_in_docs_is_that_of_the_types() {
        let schema = schemars::schema_for!(ExperimentJson);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gake.experiment.1.schema.json");
        bless(&path, &text);
    }

    #[test]
    fn every_format_shows_what_is_not_as_expected() {
        let rendered = |met| {
            let report = report(met);
            let form: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
            (form, text(&report, crate::Style::default()), super::super::html(&report))
        };
        let (form, text, html) = rendered(false);
        assert_eq!(form["as_expected"], false);
        assert_eq!(form["steps"][0]["as_expected"], true);
        assert_eq!(form["steps"][1]["expectations"][0]["met"], false);
        assert!(text.contains("1 of 2 steps not as expected"), "{text}");
        assert!(text.contains("saw <5>, but theory says 2 + 2 = 4"), "{text}");
        assert!(html.contains("saw &lt;5&gt;, but theory says 2 + 2 = 4"), "{html}");
        let (form, text, html) = rendered(true);
        assert_eq!(form["as_expected"], true);
        for page in [&text, &html] {
            assert_eq!(page.matches("ok 100 % → ").count(), 1, "of the second step: {page}");
            assert!(page.contains("all 2 steps as expected"), "{page}");
            assert!(page.contains("one step was left out"), "{page}");
        }
    }

    #[test]
    fn an_incomplete_experiment_is_not_as_expected() {
        let rendered = |met| {
            let report = ExperimentReport { is_complete: false, ..report(met) };
            let form: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
            assert_eq!(form["complete"], false);
            let html = super::super::html(&report);
            assert!(html.contains(&report.verdict()), "{html}");
            (form["as_expected"].clone(), report.verdict())
        };
        let (as_expected, verdict) = rendered(true);
        assert!(as_expected.is_null(), "{as_expected}");
        expect!["incomplete, steps are missing: 2 steps as expected"].assert_eq(&verdict);
        let (as_expected, verdict) = rendered(false);
        assert_eq!(as_expected, false);
        expect!["incomplete, steps are missing: 1 of 2 steps as expected"].assert_eq(&verdict);
    }

    #[test]
    fn every_format_has_the_most_frequent_bodies_of_failed_responses() {
        let mut report = report(true);
        for (count, body) in [(1, "d"), (2, "c"), (3, "b"), (4, "<Too many>")] {
            for _ in 0..count {
                report.steps[1].summary.run.bodies.add(500, body.as_bytes());
            }
        }
        let form: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
        assert!(form["steps"][0]["failed_bodies"].is_null(), "{form}");
        assert_eq!(form["steps"][1]["failed_bodies"]["bodies"][0]["text"], "<Too many>");
        let text = text(&report, crate::Style::default());
        assert!(text.contains("4 × 500  <Too many>\n  3 × 500  b\n  2 × 500  c\n"), "{text}");
        assert!(text.contains("and 1 with other bodies"), "{text}");
        let html = super::super::html(&report);
        assert!(html.contains("4 × 500 <code>&lt;Too many&gt;</code>"), "{html}");
    }

    #[test]
    fn sockets_are_shown_over_time_where_the_process_was_sampled() {
        let mut report = report(true);
        assert_eq!(report.steps[0].sockets(), None);
        let mut watched = WatchRecord::default();
        let reading = |name: &str, value| GaugeReading {
            source: "port:80".to_owned(),
            name: name.to_owned(),
            unit: LevelUnit::Count,
            value,
        };
        let at = |second: u64| second * 1_000_000_000;
        watched.add(at(1), &[reading("established", 300.0), reading("syn_sent", 40.0)]);
        watched.add(at(2), &[reading("established", 310.0)]);
        watched.add(at(3), &[reading("established", 0.0), reading("time_wait", 310.0)]);
        report.steps[0].summary.run.watched = watched;
        let expected =
            "established 300 at 1 s and 40 in SYN, 310 at 2 s, 0 at 3 s and 310 in TIME_WAIT";
        assert_eq!(report.steps[0].sockets().as_deref(), Some(expected));
        let text = text(&report, crate::Style::default());
        assert!(text.contains("  sockets     established 300 at 1 s"), "{text}");
        assert!(super::super::html(&report).contains(expected));
    }

    #[test]
    fn the_cause_that_theory_names_is_shown_before_others() {
        let mut step = report(true).steps.remove(0);
        let finding = |id| {
            let (evidence, advice, check) = (String::new(), String::new(), String::new());
            Finding { id, evidence, advice, check, rank: Rank::Cause, served: None }
        };
        step.summary.verdict.findings = vec![finding("target_pool"), finding("target_connections")];
        assert_eq!(step.shown_cause(), Some("target_pool"));
        let theory = "connection_limit or target_connections".to_owned();
        let seen = String::new();
        step.expectations.push(Expectation {
            what: "cause".to_owned(),
            theory,
            seen,
            met: true,
            range: None,
        });
        assert_eq!(step.shown_cause(), Some("target_connections"));
    }

    #[test]
    fn every_format_has_what_was_sampled_of_the_target() {
        let mut report = report(true);
        let mut watched = WatchRecord::default();
        let reading = |value| GaugeReading {
            source: "prometheus:http://h".to_owned(),
            name: "db_open".to_owned(),
            unit: LevelUnit::Count,
            value,
        };
        watched.add(0, &[reading(100.0)]);
        watched.add(1, &[reading(150.0)]);
        let (source, name) = ("actuator:http://h".to_owned(), "threads.max".to_owned());
        watched.settings.push(TargetSetting { source, name, value: "<200>".to_owned() });
        report.steps[0].summary.run.watched = watched;
        let form: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
        assert_eq!(form["steps"][0]["target"]["gauges"][0]["max"], 150.0);
        assert!(form["steps"][0]["generator"]["rss_bytes"].is_u64());
        let html = super::super::html(&report);
        for page in [&text(&report, crate::Style::default()), &html] {
            assert!(page.contains("db open 125 (max 150)"), "{page}");
            assert!(page.contains("threads.max="), "{page}");
            assert!(page.contains("CPU/request, busiest worker"), "{page}");
        }
        assert!(html.contains("threads.max=&lt;200&gt;"), "{html}");
    }

    #[test]
    fn only_a_limit_of_the_generator_excuses_a_step_and_never_its_rows() {
        let is_disturbed = |rank, what| {
            let mut step = report(true).steps.remove(0);
            step.expectations[0].met = false;
            step.expectations[0].what = String::from(what);
            let (evidence, advice, check) = (String::new(), String::new(), String::new());
            let finding = Finding { id: "run_delay", evidence, advice, check, rank, served: None };
            step.summary.verdict.findings.push(finding);
            assert_eq!(step.is_as_expected().is_none(), step.is_disturbed());
            step.is_disturbed()
        };
        assert!(is_disturbed(Rank::Cause, "ok"));
        assert!(!is_disturbed(Rank::Context, "ok"));
        assert!(!is_disturbed(Rank::Cause, "rows"));
    }

    #[test]
    fn the_parts_of_a_step_add_up() {
        let form: serde_json::Value = serde_json::from_str(&json(&report(true)).unwrap()).unwrap();
        for step in form["steps"].as_array().unwrap() {
            let of = |name: &str| step[name].as_u64().unwrap();
            assert_eq!(of("sent"), of("ok") + of("failed") + of("unfinished"));
        }
    }
}
