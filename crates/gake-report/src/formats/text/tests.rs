//! Text summaries against golden files.

use std::path::Path;

use gake_core::record::{Run, Tally};
use gake_judge::Summary;

use super::{Style, render};
use crate::testing::{bless, counting, healthy, several, troubled, watched};

fn summary(run: Run, objectives: &[&str]) -> Summary {
    let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
    Summary::new(run, &objectives)
}

fn compare(name: &str, text: &str) {
    bless(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name), text);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line}");
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
fn a_target_that_stops_responding_leads_the_headline() {
    let mut summary = summary(healthy(), &["p99<50ms"]);
    let hang = gake_judge::Finding {
        id: "target_hang",
        evidence: "no response after 1 s".to_owned(),
        advice: "look for a deadlock".to_owned(),
        check: "curl".to_owned(),
        rank: gake_judge::Rank::Cause,
        served: None,
    };
    summary.verdict.findings.push(hang);
    let text = render(&summary, Style::default());
    let headline = text.lines().next().unwrap();
    assert!(headline.starts_with("✘ target stopped responding · "), "{headline}");
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
fn an_empty_run() {
    let mut run = healthy();
    run.tally = Tally::new(0);
    let summary = summary(run, &["p99<5ms"]);
    compare("nothing.txt", &render(&summary, Style::default()));
}

#[test]
fn colours_do_not_move_anything() {
    let summary = summary(troubled(), &["p99<5ms"]);
    let coloured = render(&summary, Style { colour: true, ..Style::default() });
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

#[test]
fn every_width_is_kept() {
    let runs =
        [(troubled(), &["p99<5ms", "errors<1%"][..]), (several(), &[]), (healthy(), &["p99<50ms"])];
    for (run, objectives) in runs {
        let summary = summary(run, objectives);
        let longest = |columns: usize| {
            let text = render(&summary, Style::default().wide(columns));
            let width = |line: &&str| line.chars().count();
            let longest = text.lines().max_by_key(width).unwrap_or_default();
            assert!(longest.chars().count() <= columns.clamp(50, 160), "{columns}: {longest}");
            longest.chars().count()
        };
        for columns in [10, 50, 60, 72, 100, 160, 1_000] {
            longest(columns);
        }
        assert!(longest(160) > 100, "the width is used");
    }
}

#[test]
fn a_narrow_page_keeps_the_figures_that_matter() {
    let summary = summary(healthy(), &["p99<50ms"]);
    let text = render(&summary, Style::default().wide(50));
    let head = text.lines().find(|line| line.starts_with("latency")).unwrap();
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>(),
        ["latency", "p50", "p90", "p99", "max"]
    );
    for part in ["10,000 due", "1,000/s asked", "1,000/s ok", "kB/s) out"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_text_longer_than_the_window_ends_with_the_verdict() {
    let summary = summary(troubled(), &["p99<5ms"]);
    let whole = render(&summary, Style::default());
    let brief = render(&summary, Style { brief: true, ..Style::default() });
    assert!(whole.starts_with(&brief) && !whole.ends_with(&brief));
    let lines = whole.lines().count();
    let fits = render(&summary, Style { window: Some(lines + 1), ..Style::default() });
    assert_eq!(fits, whole);
    let longer = render(&summary, Style { window: Some(lines), ..Style::default() });
    assert_eq!(longer, format!("{whole}\n{brief}"));
    assert!(brief.contains("objective missed") && brief.contains("✘ p99<5ms"), "{brief}");
}
