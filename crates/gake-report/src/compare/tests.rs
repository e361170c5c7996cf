//! Comparisons against golden files.

use std::path::Path;

use gake_core::record::{Run, Tally};
use gake_judge::compare::{
    CompareOptions, ComparedRun, Comparison, FigureSelection, RunMetrics, RunObservations, compare,
};

use super::json::ComparisonJson;
use super::{CompareReport, json, markdown, text};
use crate::Style;
use crate::testing::{bless, plan, run, tallies};

fn sample(trouble: bool) -> ComparedRun {
    let tallies: Vec<Tally> = tallies(12, 0, trouble);
    let mut run = run(plan(), &tallies);
    run.generator.busiest = 0.1;
    let mut observations = RunObservations::new(&run, &FigureSelection::usual());
    for (at, tally) in (0..).zip(&tallies) {
        observations.add(at, Some(1_000.0), tally, &[]);
    }
    ComparedRun { run, observations }
}

fn report<'a>(comparison: &'a Comparison, a: &'a Run, b: &'a Run) -> CompareReport<'a> {
    CompareReport { comparison, sides: [a, b], names: ["before.hlog", "after | <b>.hlog"] }
}

fn kept(name: &str, text: &str) {
    bless(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name), text);
}

#[test]
fn a_comparison_in_every_format() {
    let (a, mut b) = (sample(false), sample(true));
    b.run.plan.connections = 32;
    let comparison = compare(&a, &b, &FigureSelection::usual(), &CompareOptions::default());
    let report = report(&comparison, &a.run, &b.run);
    let page = text(&report, Style::default());
    kept("compare.txt", &page);
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    kept("compare.md", &markdown(&report));
    let value: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
    assert_eq!(value["schema"], "gake.compare/1");
    assert_eq!(value["outcome"], "worse");
    let errors = &value["figures"][3];
    assert_eq!((&errors["name"], &errors["verdict"]), (&"errors".into(), &"worse".into()));
    assert!(errors["change"]["low"].as_f64().unwrap() > 0.0, "{errors}");
}

#[test]
fn a_comparison_is_a_page_too() {
    let (a, b) = (sample(false), sample(true));
    let mut comparison = compare(&a, &b, &FigureSelection::usual(), &CompareOptions::default());
    comparison.warnings = vec!["<".repeat(10_000); 200];
    let html = crate::html::compare(&report(&comparison, &a.run, &b.run));
    assert!(html.len() <= 500_000, "{}", html.len());
    let data = html.split_once("id=\"page\">").unwrap().1.split_once("</script").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(
        (&data["kind"], &data["comparison"]["outcome"]),
        (&"compare".into(), &"worse".into())
    );
    assert_eq!(data["run"]["figures"]["failed"], b.run.tally.counts.failed);
    assert_eq!(data["run"]["over"]["run"]["figures"]["failed"], a.run.tally.counts.failed);
    assert_eq!(data["run"]["over"]["name"], "before.hlog");
}

#[test]
fn a_run_against_itself() {
    let a = sample(false);
    let question = CompareOptions { tolerance: 0.3, figures: vec!["service.p50".to_owned()] };
    let known = RunMetrics { plan: &a.run.plan, series: &a.run.tally.series };
    let figures = FigureSelection::of(&question, [known; 2]).unwrap();
    let comparison = compare(&a, &a, &figures, &question);
    let page = text(&report(&comparison, &a.run, &a.run), Style::default());
    assert!(page.starts_with("✔ no difference"), "{page}");
}

#[test]
fn the_schema_in_docs_is_that_of_the_types() {
    let schema = schemars::schema_for!(ComparisonJson);
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gake.compare.1.schema.json");
    bless(&path, &text);
}
