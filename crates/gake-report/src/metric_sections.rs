//! The metrics of a run for people: a script's checks, requests, groups and iterations, then its
//! custom metrics. k6's other series are left to the formats for programs.

use std::collections::{BTreeMap, BTreeSet};

use gake_core::clock::Nanos;
use gake_core::metric::{Definition, MetricUnit, SeriesValue, Tags};
use gake_core::plan::Plan;
use gake_core::record::Run;
use gake_judge::stats::{per_second, share};
use gake_text::units;

pub(crate) struct MetricSection {
    pub(crate) heading: &'static str,
    pub(crate) rows: Vec<MetricRow>,
}

/// A metric, or its samples under some tags.
pub(crate) struct MetricRow {
    pub(crate) name: String,
    pub(crate) samples: u64,
    /// The aggregate of the samples.
    pub(crate) figures: String,
    /// Whether a check always passed.
    pub(crate) passed: Option<bool>,
}

/// Metrics of k6 that have sections or lines of their own, or repeat others.
const K6: [&str; 21] = [
    "checks",
    "data_received",
    "data_sent",
    "dropped_iterations",
    "group_duration",
    "http_req_blocked",
    "http_req_connecting",
    "http_req_duration",
    "http_req_failed",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
    "http_reqs",
    "iteration_duration",
    "iterations",
    "vus",
    "vus_max",
    "ws_connecting",
    "ws_msgs_received",
    "ws_msgs_sent",
];

/// The metrics of a load on several addresses.
const ADDRESS_TIME: &str = "address_time";
const ADDRESS_FAILED: &str = "address_failed";

/// Tags by which k6 splits series for thresholds, not for readers.
const QUIET: [&str; 5] = ["group", "expected_response", "method", "status", "proto"];

pub(crate) fn sections(run: &Run) -> Vec<MetricSection> {
    let all = match run.plan.fires_iterations() {
        true => of_script(run),
        false => vec![
            MetricSection { heading: "addresses", rows: addresses(run) },
            MetricSection { heading: "metrics", rows: plain(run) },
        ],
    };
    all.into_iter().filter(|section| !section.rows.is_empty()).collect()
}

/// The load by address, if there was more than one.
fn addresses(run: &Run) -> Vec<MetricRow> {
    let address = |tags: &Tags| tags.get("address").map(str::to_owned);
    let mut rows = requests(run, [ADDRESS_TIME, ADDRESS_FAILED], &address);
    if rows.len() < 2 {
        rows.clear();
    }
    rows
}

fn plain(run: &Run) -> Vec<MetricRow> {
    let row = |(key, value): (&gake_core::metric::SeriesKey, &SeriesValue)| {
        row(format!("{}{}", key.metric.name, key.tags), value, key.metric.unit, run)
    };
    let own = [ADDRESS_TIME, ADDRESS_FAILED];
    let all = run.tally.series.sorted().into_iter();
    all.filter(|(key, _)| !own.contains(&key.metric.name.as_str())).map(row).collect()
}

/// Requests with their times and failures by what `name` makes of their tags.
fn requests(
    run: &Run,
    [time, failed]: [&str; 2],
    name: &dyn Fn(&Tags) -> Option<String>,
) -> Vec<MetricRow> {
    let (times, failed) = (merged(run, time, name), merged(run, failed, name));
    let names: BTreeSet<&String> = times.keys().chain(failed.keys()).collect();
    let row = |name: &String| {
        let mut figures = Vec::new();
        let times = times.get(name);
        let counted = failed.get(name).map_or(0, SeriesValue::samples);
        let samples = times.map_or(0, SeriesValue::samples).max(counted);
        figures.push(units::count(samples));
        figures.extend(times.map(|times| series_figures(times, MetricUnit::Time, run.completing)));
        if let Some(SeriesValue::Rate { passed, samples }) = failed.get(name)
            && *passed > 0
        {
            let part = units::percent(share(*passed, *samples));
            figures.push(format!("{} failed ({part})", units::count(*passed)));
        }
        MetricRow { name: name.clone(), samples, figures: figures.join("  "), passed: None }
    };
    names.into_iter().map(row).collect()
}

fn row(name: String, value: &SeriesValue, unit: MetricUnit, run: &Run) -> MetricRow {
    let figures = series_figures(value, unit, run.completing);
    MetricRow { name, samples: value.samples(), figures, passed: None }
}

fn of_script(run: &Run) -> Vec<MetricSection> {
    let by = |metric: &str, name: &dyn Fn(&Tags) -> Option<String>| merged(run, metric, name);
    let checks = by("checks", &|tags| {
        let check = tags.get("check").unwrap_or_default();
        Some(match group(tags) {
            "" => check.to_owned(),
            group => format!("{group}: {check}"),
        })
    });
    let checks = checks.into_iter().map(|(name, value)| {
        let passed = match value {
            SeriesValue::Rate { passed, samples } => passed == samples,
            _ => true,
        };
        MetricRow { passed: Some(passed), ..row(name, &value, MetricUnit::Number, run) }
    });
    let named = |tags: &Tags| Some(tags.get("name").unwrap_or_default().to_owned());
    let groups = by("group_duration", &|tags| Some(group(tags).to_owned()));
    let groups = groups.into_iter().map(|(name, value)| row(name, &value, MetricUnit::Time, run));
    let iterations = by("iteration_duration", &|tags| match run.plan.scenarios() {
        [_] => Some("duration".to_owned()),
        _ => tags.get(Plan::NAME_TAG).map(str::to_owned),
    });
    let iterations =
        iterations.into_iter().map(|(name, value)| row(name, &value, MetricUnit::Time, run));
    vec![
        MetricSection { heading: "checks", rows: checks.collect() },
        MetricSection {
            heading: "requests by name",
            rows: requests(run, ["http_req_duration", "http_req_failed"], &named),
        },
        MetricSection { heading: "groups", rows: groups.collect() },
        MetricSection { heading: "iterations", rows: iterations.collect() },
        MetricSection { heading: "metrics", rows: own(run) },
    ]
}

/// The group of a sample without k6's mark of the root; empty outside of groups.
fn group(tags: &Tags) -> &str {
    tags.get("group").unwrap_or_default().trim_start_matches("::")
}

/// The series of a metric, merged by what `name` makes of their tags; `None` omits one.
fn merged(
    run: &Run,
    metric: &str,
    name: &dyn Fn(&Tags) -> Option<String>,
) -> BTreeMap<String, SeriesValue> {
    let mut joined: BTreeMap<String, SeriesValue> = BTreeMap::new();
    for (key, value) in run.tally.series.select(metric, &Tags::default()) {
        if let Some(name) = name(&key.tags) {
            joined.entry(name).and_modify(|sum| sum.merge(value)).or_insert_with(|| value.clone());
        }
    }
    joined
}

/// The metrics that are not k6's own, by the tags that a script sets.
fn own(run: &Run) -> Vec<MetricRow> {
    let has_one = run.plan.scenarios().len() == 1;
    let is_shown = |key: &str| !(QUIET.contains(&key) || has_one && key == Plan::NAME_TAG);
    let mut joined: BTreeMap<String, (&Definition, SeriesValue)> = BTreeMap::new();
    for (key, value) in run.tally.series.sorted() {
        if K6.contains(&key.metric.name.as_str()) {
            continue;
        }
        let tags = key.tags.pairs().iter().filter(|(key, _)| is_shown(key));
        let tags = Tags::new(tags.map(|(key, value)| (key.as_str(), value.as_str())));
        let name = format!("{}{tags}", key.metric.name);
        let own =
            joined.entry(name).or_insert_with(|| (&key.metric, SeriesValue::new(key.metric.kind)));
        own.1.merge(value);
    }
    joined.into_iter().map(|(name, (metric, value))| row(name, &value, metric.unit, run)).collect()
}

/// The aggregate of a series over `span`.
pub(crate) fn series_figures(value: &SeriesValue, unit: MetricUnit, span: Nanos) -> String {
    let show = |value: f64| shown(value, unit);
    match value {
        SeriesValue::Counter { sum, .. } if span > 0 => {
            let rate = per_second(sum.value(), span);
            format!("{}  {}/s", show(sum.value()), show(rate))
        }
        SeriesValue::Counter { sum, .. } => show(sum.value()),
        SeriesValue::Gauge { last, min, max, .. } => {
            format!("{}  min {}  max {}", show(*last), show(*min), show(*max))
        }
        SeriesValue::Rate { passed, samples } => {
            let part = units::percent(share(*passed, *samples));
            format!("{part}  {} of {}", units::count(*passed), units::count(*samples))
        }
        SeriesValue::Trend(trend) => {
            let [p50, p95] = [0.5, 0.95].map(|quantile| show(trend.quantile_number(quantile)));
            format!("p50 {p50}  p95 {p95}  max {}", show(trend.max_number()))
        }
    }
}

fn shown(value: f64, unit: MetricUnit) -> String {
    match unit {
        // No time is negative, but a difference may be.
        _ if value < 0.0 => format!("-{}", shown(-value, unit)),
        MetricUnit::Time => units::duration(value),
        MetricUnit::Bytes => units::bytes(value),
        MetricUnit::Number => units::number(value),
    }
}
