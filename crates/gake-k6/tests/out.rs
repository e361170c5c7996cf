//! Outputs compared with the JSON and CSV of k6 1.8.1 for one run.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::collections::BTreeMap;
use std::sync::Arc;

use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_k6::duration::GoDuration;
use gake_k6::options::ThresholdOptions;
use gake_k6::out::{CsvLines, JsonLines, TimeFormat};
use gake_k6::test::RawSample;
use jiff::Timestamp;
use serde_json::Value;

/// k6's samples.
fn samples() -> Vec<RawSample> {
    let mut metrics: BTreeMap<String, Arc<Definition>> = BTreeMap::new();
    let mut samples = Vec::new();
    for line in include_str!("data/out.json").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (name, data) = (line["metric"].as_str().unwrap().to_owned(), &line["data"]);
        if line["type"] == "Metric" {
            let kinds = MetricKind::ALL;
            let kind = kinds.into_iter().find(|kind| data["type"] == kind.name()).unwrap();
            let unit = match data["contains"].as_str().unwrap() {
                "time" => MetricUnit::Time,
                "data" => MetricUnit::Bytes,
                _ => MetricUnit::Number,
            };
            metrics.insert(name.clone(), Arc::new(Definition { name, kind, unit }));
            continue;
        }
        let metric = metrics[&name].clone();
        let scale = if metric.unit == MetricUnit::Time { 1e6 } else { 1.0 };
        let tags = data["tags"].as_object().unwrap().iter();
        let time: Timestamp = data["time"].as_str().unwrap().parse().unwrap();
        let metadata =
            |key: &'static str| (key, data["metadata"][key].as_str().unwrap().to_owned());
        samples.push(RawSample {
            tags: Tags::new(tags.map(|(key, value)| (key.clone(), value.as_str().unwrap()))),
            metadata: Tags::new([metadata("vu"), metadata("iter")]),
            value: data["value"].as_f64().unwrap() * scale,
            unix_ns: time.as_nanosecond(),
            metric,
        });
    }
    samples
}

/// The system tags of the run.
fn system_tags() -> Vec<String> {
    ["group", "url", "status", "check", "error", "vu", "iter"].map(ToOwned::to_owned).to_vec()
}

fn thresholds() -> BTreeMap<String, Vec<ThresholdOptions>> {
    let plain = |text: &str| ThresholdOptions { expression: text.to_owned(), ..Default::default() };
    let aborting = ThresholdOptions {
        abort_on_fail: true,
        delay_abort_eval: Some(GoDuration::from_secs(10)),
        ..plain("max<1000")
    };
    BTreeMap::from([
        ("my_trend".to_owned(), vec![plain("avg<100"), aborting]),
        ("my_trend{a:b}".to_owned(), vec![plain("avg>0")]),
        ("my_counter{\"a\":\"b\",c:d}".to_owned(), vec![plain("count>=0")]),
    ])
}

#[test]
fn json_lines_are_those_of_k6() {
    let mut lines = JsonLines::new(thresholds(), &system_tags());
    let mut written = Vec::new();
    for sample in samples() {
        lines.write(&mut written, &sample).unwrap();
    }
    let written = String::from_utf8(written).unwrap();
    // The order of metadata changes from line to line in k6; here it is that of the names.
    let expected = include_str!("data/out.json");
    let in_order =
        |line: &str| line.replace(r#"{"vu":"1","iter":"0"}"#, r#"{"iter":"0","vu":"1"}"#);
    for (made, expected) in written.lines().zip(expected.lines()) {
        assert_eq!(in_order(made), in_order(expected));
    }
    assert_eq!(written.lines().count(), expected.lines().count());
}

#[test]
fn csv_lines_are_those_of_k6() {
    let mut lines = CsvLines::new(&system_tags(), TimeFormat::Unix);
    let mut written = Vec::new();
    lines.begin(&mut written).unwrap();
    for sample in samples() {
        lines.write(&mut written, &sample).unwrap();
    }
    let expected = include_str!("data/out.csv").replace("vu=1&iter=0", "iter=0&vu=1");
    assert_eq!(String::from_utf8(written).unwrap(), expected);
}

#[test]
fn times_have_the_format_asked_for() {
    let unix_ns = 1_795_370_935_078_822_153;
    let sample = RawSample { unix_ns, ..samples().remove(0) };
    let time = |format: &str| {
        let mut written = Vec::new();
        let mut lines = CsvLines::new(&[], TimeFormat::parse(format).unwrap());
        lines.write(&mut written, &sample).unwrap();
        String::from_utf8(written).unwrap().split(',').nth(1).unwrap().to_owned()
    };
    for (format, expected) in [
        ("unix", "1795370935"),
        ("unix_milli", "1795370935078"),
        ("unix_micro", "1795370935078822"),
        ("unix_nano", "1795370935078822153"),
        ("rfc3339", "2026-11-22T18:08:55Z"),
        ("rfc3339_nano", "2026-11-22T18:08:55.078822153Z"),
    ] {
        assert_eq!(time(format), expected);
    }
    assert_eq!(TimeFormat::parse("x"), None);
}

#[test]
fn expected_responses_have_a_submetric_if_samples_have_the_tag() {
    let metric = Definition {
        name: "http_req_duration".to_owned(),
        kind: MetricKind::Trend,
        unit: MetricUnit::Time,
    };
    let (metric, tags, metadata) = (Arc::new(metric), Tags::default(), Tags::default());
    let sample = RawSample { metric, tags, metadata, value: 1e6, unix_ns: 0 };
    let described = |system_tags: &[&str]| {
        let tags: Vec<_> = system_tags.iter().map(|tag| (*tag).to_owned()).collect();
        let mut written = Vec::new();
        JsonLines::new(BTreeMap::new(), &tags).write(&mut written, &sample).unwrap();
        let text = String::from_utf8(written).unwrap();
        let mut lines = text.lines();
        assert_eq!(
            lines.nth(1).unwrap(),
            r#"{"metric":"http_req_duration","type":"Point","data":{"time":"1970-01-01T00:00:00Z","value":1,"tags":{}}}"#
        );
        serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap()["data"]["submetrics"]
            .clone()
    };
    assert_eq!(described(&["url"]), Value::Null);
    assert_eq!(described(&["expected_response"])[0]["suffix"], "expected_response:true");
}
