//! Custom metrics and scenarios in run files.

use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::SECOND;
use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Run, ScenarioRun, Tally};

use super::tests::{read_clean, same, written};
use super::*;
use crate::testing::{plan, run, second, tallies, troubled};

/// A tally with a check, a trend of fractions and one of times.
fn with_series(second: u64) -> Tally {
    let mut tally = tallies(second + 1, 0, false).pop().unwrap();
    for (name, kind, unit) in [
        ("checks", MetricKind::Rate, MetricUnit::Number),
        ("items", MetricKind::Trend, MetricUnit::Number),
        ("waits", MetricKind::Trend, MetricUnit::Time),
        ("hits", MetricKind::Counter, MetricUnit::Bytes),
        ("users", MetricKind::Gauge, MetricUnit::Number),
    ] {
        let metric = Arc::new(Definition { name: name.to_owned(), kind, unit });
        let series = tally.series.intern(&metric, &Tags::new([("check", "a, \"b\"")]));
        (0..100).for_each(|n| tally.series.add(series, f64::from(n) / 8.0 - 1.0, second));
    }
    tally
}

#[test]
fn metrics_of_the_runs_own_come_back() {
    let parts: Vec<_> = (0..3).map(with_series).collect();
    let whole = run(plan(), &parts);
    assert_eq!(whole.tally.series.series().count(), 5);
    same(&whole, &read_clean(&written(&whole, &parts, true)));
    let twice = merge_runs(vec![whole.clone(), troubled()]).unwrap();
    assert_eq!(twice.tally.series, whole.tally.series);
}

/// A run of two scenarios, with the tallies of its seconds.
fn of_scenarios() -> (Run, Vec<[Tally; 2]>) {
    let named = |name: &str| Plan { name: name.to_owned(), ..plan() };
    let seconds: Vec<_> =
        (0..2).map(|at| [with_series(at), tallies(at + 1, 0, true).remove(0)]).collect();
    let sum = |second: &[Tally; 2]| {
        let mut sum = second[0].clone();
        sum.merge(&second[1]);
        sum
    };
    let sums: Vec<_> = seconds.iter().map(sum).collect();
    let plans = vec![named("buy"), Plan { start: Duration::from_secs(1), ..named("look") }];
    let mut whole = run(Plan { load: plans.clone().into(), ..plan() }, &sums);
    let scenario = |(number, plan): (usize, Plan)| {
        let mut tally = Tally::default();
        seconds.iter().for_each(|second| tally.merge(&second[number]));
        let warmup = Counts { sent: 3, ok: 3, ..Counts::default() };
        let (measured, asked_rate) = (SECOND, Some(5.0));
        let (sending, completing) = (SECOND, 2 * SECOND);
        ScenarioRun { plan, measured, sending, completing, asked_rate, tally, warmup }
    };
    whole.scenarios = plans.into_iter().enumerate().map(scenario).collect();
    (whole, seconds)
}

fn written_scenarios(whole: &Run, seconds: &[[Tally; 2]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &whole.plan, whole.started_unix_ns).unwrap();
    for (at, scenarios) in (0..).zip(seconds) {
        let mut sum = scenarios[0].clone();
        sum.merge(&scenarios[1]);
        writer.second(&Second { scenarios, ..second(at, &sum) }).unwrap();
    }
    writer.finish(whole).unwrap();
    bytes
}

fn same_scenarios(a: &Run, b: &Run) {
    assert_eq!(a.scenarios.len(), b.scenarios.len());
    for (a, b) in a.scenarios.iter().zip(&b.scenarios) {
        assert_eq!((&a.plan, &a.tally, a.warmup), (&b.plan, &b.tally, b.warmup));
        let times = |run: &ScenarioRun| (run.measured, run.sending, run.completing);
        assert_eq!((times(a), a.asked_rate), (times(b), b.asked_rate));
    }
}

#[test]
fn each_scenario_comes_back() {
    let (whole, seconds) = of_scenarios();
    let bytes = written_scenarios(&whole, &seconds);
    let back = read_clean(&bytes);
    same(&whole, &back);
    same_scenarios(&whole, &back);
    // A truncated file has the scenarios of its complete seconds.
    let end = bytes.iter().rposition(|byte| *byte == b'#').unwrap();
    let (cut, _) = read(&bytes[..end]).unwrap();
    assert_eq!(cut.scenarios[1].tally, whole.scenarios[1].tally);
}

#[test]
fn scenarios_are_joined_by_name() {
    let (whole, seconds) = of_scenarios();
    let mut plain = run(Plan { name: "look".to_owned(), ..plan() }, &tallies(2, 0, false));
    plain.started_unix_ns += 60 * SECOND;
    let joined = merge_runs(vec![plain.clone(), whole.clone()]).unwrap();
    let names: Vec<_> = joined.plan.scenarios().iter().map(|plan| plan.name.as_str()).collect();
    assert_eq!(names, ["buy", "look"]);
    assert_eq!(joined.scenarios[0].tally, whole.scenarios[0].tally);
    let sent = |run: &ScenarioRun| run.tally.counts.sent;
    assert_eq!(sent(&joined.scenarios[1]), sent(&whole.scenarios[1]) + plain.tally.counts.sent);
    assert_eq!(joined.scenarios[1].measured, SECOND + plain.measured);
    // And as a file.
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    std::fs::write(&paths[0], written_scenarios(&whole, &seconds)).unwrap();
    std::fs::write(&paths[1], written(&plain, &tallies(2, 0, false), true)).unwrap();
    let mut bytes = Vec::new();
    let files = [(paths[0].as_path(), &whole), (paths[1].as_path(), &plain)];
    join_files(&joined, &files, &mut bytes).unwrap();
    same_scenarios(&joined, &read_clean(&bytes));
}
