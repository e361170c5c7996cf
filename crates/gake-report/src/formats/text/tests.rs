//! The page against kept files.

use std::path::Path;

use gake_core::record::{Run, Tally};
use gake_judge::Summary;

use super::page::WIDTH;
use super::{Style, render};
use crate::testing::{bless, counting, healthy, several, troubled, watched};

fn summary(run: Run, objectives: &[&str]) -> Summary {
    let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
    Summary::new(run, &objectives)
}

fn compare(name: &str, text: &str) {
    bless(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name), text);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "too wide: {line}");
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn a_healthy_run() {
    let summary = summary(healthy(), &["p99<50ms", "errors<0.1%", "rate>=990/s"]);
    compare("healthy.txt", &render(&summary, Style::default()));
}

#[test]
fn a_run_in_trouble() {
    let summary = summary(troubled(), &["p99<5ms", "errors<1%", "checkout:p50<10ms"]);
    compare("troubled.txt", &render(&summary, Style::default()));
}

#[test]
fn several_scenarios() {
    compare("scenarios.txt", &render(&summary(several(), &[]), Style::default()));
}

#[test]
fn metrics_of_the_runs_own() {
    let summary = summary(counting(), &["checks>99%", "waits{name:login}:p95<20ms", "items:avg<3"]);
    compare("metrics.txt", &render(&summary, Style::default()));
}

#[test]
fn a_watched_target() {
    let mut run = healthy();
    run.watched = watched();
    compare("watched.txt", &render(&summary(run, &[]), Style::default()));
}

#[test]
fn a_run_of_nothing() {
    let mut run = healthy();
    run.tally = Tally::new(0);
    let summary = summary(run, &["p99<5ms"]);
    compare("nothing.txt", &render(&summary, Style::default()));
}

#[test]
fn colours_do_not_move_anything() {
    let summary = summary(troubled(), &["p99<5ms"]);
    let coloured = render(&summary, Style { colour: true });
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed: String = plain.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
    assert_eq!(trimmed, render(&summary, Style::default()));
}
