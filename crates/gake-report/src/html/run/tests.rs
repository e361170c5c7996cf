//! The page of a run: it contains the run, stays small, and no text can break out of its element.

use std::time::Duration;

use gake_core::Load;
use gake_core::clock::SECOND;
use gake_core::plan::Stage;
use gake_core::record::{
    AgentRecord, Fault, GaugeReading, LatencyMetric, LevelUnit, Phase, RunEvent, Series,
    SeriesPoint, TargetSetting,
};
use gake_core::schedule::Process;
use gake_judge::Summary;
use serde_json::{Value, json};

use super::*;
use crate::html::PAGE;
use crate::testing::{counting, healthy, plan, run as run_of, tallies, troubled};

/// The data inlined in a page.
fn data(html: &str) -> Value {
    let begin = "<script type=\"application/json\" id=\"page\">";
    let json = html.split_once(begin).unwrap().1.split_once("</script").unwrap().0;
    serde_json::from_str(json).unwrap()
}

fn sum(values: &Value) -> u64 {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

#[test]
fn the_charts_hold_the_figures_of_the_run() {
    let summary = Summary::new(troubled(), &["p50<1us".parse().unwrap()]);
    let data = data(&run(&summary));
    assert_eq!((&data["schema"], &data["kind"]), (&"gake.page/1".into(), &"run".into()));
    let (figures, series) = (&data["figures"], &data["series"]);
    for name in ["ok", "failed", "unfinished", "dropped", "unsent", "bytes_in", "bytes_out"] {
        assert_eq!(sum(&series[name]), figures[name].as_u64().unwrap(), "{name}");
    }
    assert_eq!(sum(&series["fired"]), figures["sent"].as_u64().unwrap());
    let errors = series["errors"].as_array().unwrap();
    let kinds: u64 = errors.iter().map(|kind| sum(&kind["counts"])).sum();
    assert_eq!(kinds, figures["failed"].as_u64().unwrap());
    assert_eq!(errors[0]["kind"], "status 503");
    let response = &data["latencies"][0];
    assert_eq!(response["metric"], "response");
    assert_eq!(sum(&data["histogram"]["response"]), response["count"].as_u64().unwrap());
    let cells = series["heat"].as_array().unwrap().iter().flat_map(|point| {
        point.as_array().unwrap().chunks(2).map(|cell| cell[1].as_u64().unwrap())
    });
    assert_eq!(cells.sum::<u64>(), response["count"].as_u64().unwrap());
    let max = data["curves"][0]["values"].as_array().unwrap().last().unwrap().as_f64().unwrap();
    assert!((max * 1e3 / response["max"].as_f64().unwrap() - 1.0).abs() < 1e-3);
    assert_eq!(data["objectives"][0]["met"], false);
    assert_eq!(data["labels"].as_array().unwrap().len(), 3);
}

#[test]
fn the_agents_of_a_fleet_are_a_table() {
    let agent = |number: usize| AgentRecord {
        name: format!("agent-{number}"),
        lost_ns: (number == 1).then_some(5_300_000_000),
        validity: if number == 1 { "invalid" } else { "valid" }.to_owned(),
        reasons: if number == 1 { vec!["it was lost".to_owned()] } else { Vec::new() },
        sent: 375,
        lateness_p99_ns: 72_000,
    };
    let run_with = |agents| {
        let whole = Run { agents: (0..agents).map(agent).collect(), ..healthy() };
        data(&run(&Summary::new(whole, &[])))
    };
    let of_two = run_with(2);
    let lost = json!({
        "name": "agent-1", "validity": "invalid", "reasons": ["it was lost"], "sent": 375,
        "lateness_p99_ns": 72_000, "lost_s": 5.3,
    });
    assert_eq!((&of_two["agents"][1], &of_two["agents"][0]["lost_s"]), (&lost, &Value::Null));
    let of_many = run_with(1_000);
    assert_eq!(of_many["agents"].as_array().unwrap().len(), AGENTS_MAX);
    assert_eq!(of_many["more_agents"], 1_000 - AGENTS_MAX);
}

#[test]
fn the_runs_own_metrics_are_a_table() {
    let summary = Summary::new(counting(), &[]);
    let data = data(&run(&summary));
    let rows = data["metrics"].as_array().unwrap();
    assert_eq!(rows.len(), summary.run.tally.series.series().count());
    let checks = rows.iter().find(|row| row["name"].as_str().unwrap().starts_with("checks"));
    let figures = checks.unwrap()["figures"].as_str().unwrap();
    assert!(figures.contains("99 of 100"), "{figures}");
    assert_eq!(data["more_metrics"], 0);
}

#[test]
fn a_short_run_is_drawn_by_its_tenths() {
    let mut short = healthy();
    for (n, second) in (0..).zip(tallies(2, 3, false)) {
        for tenth in 0..10 {
            let tally = if tenth == 4 { second.clone() } else { gake_core::record::Tally::new(3) };
            let mut point = SeriesPoint::of_tenths(n * 10 + tenth, 1, &tally);
            point.cpu = SECOND / 20;
            short.series.push_tenth(point);
        }
    }
    let data = data(&run(&Summary::new(short, &[])));
    let (series, labels) = (&data["series"], &data["label_series"]);
    let starts: Vec<_> = series["second"].as_array().unwrap().iter().collect();
    assert_eq!((starts.len(), starts[13]), (20, &json!(1.3)));
    assert_eq!((&series["seconds"][13], &series["cpu"][13]), (&json!(0.1), &json!(0.25)));
    assert_eq!((&labels["second"][13], &labels["seconds"][13]), (&json!(1.3), &json!(0.1)));
}

/// An hour in which everything happens in every second.
fn worst_hour() -> Run {
    let parts = tallies(10, 3, true);
    let mut run = run_of(plan(), &parts);
    let mut series = Series::default();
    let mut second = parts[0].clone();
    for n in 0..4_000_u64 {
        second.latency.of_mut(LatencyMetric::OkResponse).record(1 << (10 + n % 36));
        second
            .latency
            .of_mut(LatencyMetric::OkResponse)
            .record((1 << (10 + n % 36)) + (1 << (9 + n % 36)));
    }
    for status in 400..420 {
        second.add_status(status, 1_234_567);
    }
    for fault in
        [Fault::Dns, Fault::Write, Fault::ClosedEarly(Phase::Body), Fault::TooLarge("head")]
    {
        second.add_fault(fault, 7_654_321);
    }
    for n in 0..3_600 {
        let mut point = SeriesPoint::new(n, &second);
        (point.asked, point.open, point.cpu) = (Some(987_654.321), 123_456, 1_234_567_890);
        series.push(point);
    }
    (run.series, run.elapsed, run.measured) = (series, 3_600 * SECOND, 3_600 * SECOND);
    run.plan.duration = Some(Duration::from_secs(3_600));
    run
}

#[test]
fn an_hour_is_under_500_kb_however_bad_it_is() {
    let points = |run_of_hour: Run| {
        let html = run(&Summary::new(run_of_hour, &[]));
        assert!(html.len() <= 500_000, "{}", html.len());
        let data = data(&html);
        let lengths = data["series"]["seconds"].as_array().unwrap().iter();
        assert_eq!(lengths.map(|length| length.as_f64().unwrap()).sum::<f64>(), 3_600.0);
        data["series"]["second"].as_array().unwrap().len()
    };
    let mut bad = worst_hour();
    assert!(points(bad.clone()) >= 400);
    bad.plan.target = "<".repeat(100_000);
    bad.plan.labels = (0..300).map(|n| format!("{n}{}", "<".repeat(10_000))).collect();
    bad.tally.grow_labels(300);
    bad.events = vec![RunEvent::new(1, &"<".repeat(1_000)); 1_000];
    for (at, n) in
        (0..1_800).flat_map(|at| (0..if at == 0 { 300 } else { 50 }).map(move |n| (at, n)))
    {
        let (source, name) = ("<".repeat(200), format!("{n}{}", "<".repeat(200)));
        let reading =
            GaugeReading { source, name, unit: LevelUnit::Share, value: (at * n) as f64 / 7e3 };
        bad.watched.add(2 * at * SECOND, &[reading]);
    }
    bad.watched.settings = (0..300)
        .map(|n| {
            let text = format!("{n}{}", "<".repeat(1_000));
            TargetSetting { source: text.clone(), name: text.clone(), value: text }
        })
        .collect();
    assert!(points(bad) >= 10);
}

#[test]
fn text_from_outside_is_no_markup() {
    let mut hostile = troubled();
    let text = "</script><script>alert('x')</script><!--";
    hostile.plan.target = format!("http://h/{text}");
    hostile.plan.labels = vec![text.to_owned(), "b".to_owned(), "c".to_owned()];
    hostile.events = vec![RunEvent::new(0, text)];
    let html = run(&Summary::new(hostile, &[]));
    for mark in ["<script", "</script", "<!--"] {
        assert_eq!(html.matches(mark).count(), PAGE.matches(mark).count(), "{mark}");
    }
    assert_eq!(data(&html)["labels"][0]["name"], text);
}

#[test]
fn an_empty_run_is_a_page_too() {
    let mut nothing = run_of(plan(), &[]);
    (nothing.elapsed, nothing.measured, nothing.sending) = (0, 0, 0);
    let data = data(&run(&Summary::new(nothing, &[])));
    assert_eq!(data["validity"], "invalid");
    assert_eq!(data["series"]["second"], Value::Array(Vec::new()));
    assert!(data["curves"].as_array().unwrap().is_empty());
    assert_eq!(data["latencies"][0]["count"], 0);
}

#[test]
fn a_page_does_not_change_by_itself() {
    let summary = Summary::new(healthy(), &[]);
    assert_eq!(run(&summary), run(&summary));
}

#[test]
fn charts_know_stages_bounds_and_labels() {
    let mut run = troubled();
    let seconds = Duration::from_secs;
    run.plan.warmup = seconds(1);
    run.plan.load = gake_core::plan::PlanLoad::One(Load::Open {
        stages: vec![
            Stage::step(5.0, seconds(2)),
            Stage { from: 5.0, to: 9.0, duration: seconds(3) },
        ],
        process: Process::Uniform,
    });
    let objectives = ["p99<50ms", "errors<50%", "basket:p95<1s"].map(|text| text.parse().unwrap());
    let summary = Summary::new(run, &objectives);
    let data = data(&super::run(&summary));
    let stages = [(1.0, 3.0, 5.0, 5.0), (3.0, 6.0, 5.0, 9.0)]
        .map(|(start, end, from, to)| json!({"start": start, "end": end, "from": from, "to": to}));
    assert_eq!(data["stages"], json!(stages));
    let limit = |i: usize| &data["objectives"][i]["limit"];
    let part = |i: usize, name: &str| limit(i)[name].clone();
    assert_eq!([part(0, "metric"), part(0, "statistic")], [json!("response"), json!("p99")]);
    assert_eq!([part(1, "metric"), part(1, "bound")], [json!("errors"), json!(0.5)]);
    assert_eq!(part(2, "label"), "basket");
    let used = data["objectives"][1]["used"].as_f64().unwrap();
    let counts = &summary.run.tally.counts;
    let share = 1.0 - counts.ok as f64 / counts.due() as f64;
    assert!((used - share / 0.5).abs() < 1e-3, "{used}");
    for label in data["labels"].as_array().unwrap() {
        let line = &data["label_series"]["labels"][label["index"].as_u64().unwrap() as usize];
        assert_eq!(sum(&line["sent"]), label["sent"].as_u64().unwrap());
        assert_eq!(sum(&line["failed"]), label["failed"].as_u64().unwrap());
    }
}

#[test]
fn a_run_lies_over_another() {
    let (before, after) = (Summary::new(healthy(), &[]), Summary::new(troubled(), &[]));
    let page = data(&run_over(&after, "before.hlog", &before));
    assert_eq!(page["over"]["name"], "before.hlog");
    let (own, behind) = (&page["figures"], &page["over"]["run"]["figures"]);
    assert_eq!(own["sent"], after.run.tally.counts.sent);
    assert_eq!(behind["sent"], before.run.tally.counts.sent);
    let worst = Summary::new(worst_hour(), &[]);
    let html = run_over(&worst, &"<".repeat(9_000), &worst);
    assert!(html.len() <= 500_000, "{}", html.len());
    assert!(data(&html)["series"]["second"].as_array().unwrap().len() >= 100);
}
