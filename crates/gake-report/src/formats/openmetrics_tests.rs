//! Checks the rules of the format line by line.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gake_core::record::{Run, Tally};
use gake_judge::Summary;

use super::render;
use crate::testing::{bless, healthy, troubled};

fn rendered(run: Run, objectives: &[&str]) -> String {
    let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
    render(&Summary::new(run, &objectives))
}

/// The suffixes allowed for the samples of a family.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total"],
        "gauge" => &[""],
        "histogram" => &["_bucket", "_count", "_sum"],
        "summary" => &["", "_count", "_sum"],
        _ => panic!("what is a {kind}?"),
    }
}

/// The labels and value after a sample's name.
fn sample(rest: &str) -> (Vec<(String, String)>, f64) {
    let mut labels = Vec::new();
    let Some(mut rest) = rest.strip_prefix('{') else {
        return (labels, rest.trim_start().parse().unwrap());
    };
    loop {
        let (key, after) = rest.split_once("=\"").unwrap();
        assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{key}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("a label's value ends") {
                (_, '\\') => match chars.next().unwrap().1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("\\{c} is no escape"),
                },
                (at, '"') => break at,
                (_, c) => value.push(c),
            }
        };
        labels.push((key.to_owned(), value));
        rest = &after[end + 1..];
        match rest.split_at(1) {
            (",", more) => rest = more,
            ("}", more) => return (labels, more.strip_prefix(' ').unwrap().parse().unwrap()),
            other => panic!("{other:?}"),
        }
    }
}

/// Validates a text and returns its samples by name and labels.
fn read(text: &str) -> HashMap<String, f64> {
    assert!(text.ends_with("# EOF\n") && !text.contains("\n\n"));
    let mut families = HashSet::new();
    let mut family = ("", "");
    let mut samples = HashMap::new();
    for line in text.lines().take_while(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split_once(' ').unwrap();
            assert!(families.insert(family.0), "{line}: a second time");
            suffixes(family.1);
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name == family.0 && name.ends_with(&format!("_{unit}")), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(family.0), "{line}");
        } else {
            let name_end = line.find(['{', ' ']).unwrap();
            let (name, rest) = line.split_at(name_end);
            let suffix = name.strip_prefix(family.0).unwrap();
            assert!(suffixes(family.1).contains(&suffix), "{line} in {family:?}");
            let (labels, value) = sample(rest);
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(samples.insert(format!("{name} {labels:?}"), value).is_none(), "{line}");
        }
    }
    samples
}

#[test]
fn the_rules_of_the_format_are_kept() {
    let objectives = ["p99<50ms", "p99<50ms", "errors<0.1%"];
    let text = rendered(troubled(), &objectives);
    read(&text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected/troubled.openmetrics");
    bless(&path, &text);
    let mut empty = healthy();
    empty.tally = Tally::new(0);
    read(&rendered(empty, &[]));
}

#[test]
fn the_figures_are_those_of_the_run() {
    let run = troubled();
    let response = run.tally.latency.response().into_owned();
    let samples = read(&rendered(run.clone(), &[]));
    let of = |name: &str, labels: &[(&str, &str)]| {
        let labels: Vec<_> = labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        samples[&format!("{name} {labels:?}")]
    };
    assert_eq!(of("gake_requests_total", &[("outcome", "ok")]), run.tally.counts.ok as f64);
    assert_eq!(of("gake_responses_total", &[("status", "503")]), 200.0);
    let bucket = |le| of("gake_latency_seconds_bucket", &[("metric", "response"), ("le", le)]);
    assert_eq!(bucket("+Inf"), response.count() as f64);
    assert_eq!(bucket("0.01"), response.count_up_to(10_000_000) as f64);
    assert!(bucket("0.0001") <= bucket("1.0") && bucket("1.0") <= bucket("100.0"));
    let labels = [("metric", "response"), ("quantile", "0.99")];
    let p99 = of("gake_latency_quantile_seconds", &labels);
    assert_eq!(p99, response.quantile(0.99) as f64 / 1e9);
}

#[test]
fn labels_may_have_any_name() {
    let mut run = troubled();
    let hostile = "a\\b\"c\nd{e=\"f\"} 1";
    run.plan.labels = vec![hostile.to_owned(), hostile.to_owned(), String::new()];
    let samples = read(&rendered(run, &[]));
    let key = format!("{:?}", vec![("label".to_owned(), hostile.to_owned())]);
    assert!(samples.contains_key(&format!("gake_label_response_seconds_count {key}")));
}
