//! Builds the summary's data from the record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gake_core::metric::{CHECKS, Definition, Registry, SeriesTable, SeriesValue, Tags};
use serde_json::Value;

use super::collate::{compare, compare_metrics};
use super::{SummaryCheck, SummaryData, SummaryGroup, SummaryMetric, SummaryScope};
use crate::aggregation::Aggregation;
use crate::options::{DEFAULT_SCENARIO, K6Options};
use crate::threshold::{ThresholdResults, Thresholds};
use crate::values::{figure, per_second, scaled, share};

/// Separates the names of a group's path.
const SEPARATOR: &str = "::";

/// The groups of setup and teardown; k6 shows them only if they contain a check or a group.
const STAGES: [&str; 2] = ["::setup", "::teardown"];

/// The sub-metrics that k6 always defines: a metric and a tag.
const AUTOMATIC: [(&str, &str, &str); 1] = [("http_req_duration", "expected_response", "true")];

/// The input of a summary.
#[derive(Debug, Clone, Copy)]
pub struct SummaryInput<'a> {
    /// All series, with at least the tags `scenario`, `group` and `check`.
    pub series: &'a SeriesTable,
    /// The defined metrics.
    pub metrics: &'a Registry,
    /// The thresholds.
    pub thresholds: &'a Thresholds,
    /// The results of the thresholds.
    pub results: &'a ThresholdResults,
    /// The options of the run.
    pub options: &'a K6Options,
    /// How long the run took.
    pub elapsed: Duration,
    /// The return value of the script's `setup`.
    pub setup_data: Option<&'a Value>,
    /// Whether colours are off.
    pub no_color: bool,
    /// Whether standard output is a terminal.
    pub is_stdout_terminal: bool,
    /// Whether standard error is a terminal.
    pub is_stderr_terminal: bool,
}

/// The summary of a run.
#[must_use]
pub fn summary_data(input: &SummaryInput<'_>) -> SummaryData {
    let builder = SummaryBuilder {
        input,
        stats: input.options.summary_trend_stats.clone().unwrap_or_default(),
    };
    let paths = group_paths(input.series);
    let scenarios = input.options.scenarios.iter().flatten().map(|scenario| scenario.0.as_str());
    let mut scenarios: Vec<_> = scenarios.collect();
    scenarios.sort_by(|a, b| compare(a, b));
    let is_plain = scenarios == [DEFAULT_SCENARIO] || scenarios.is_empty();
    let named = if is_plain { Vec::new() } else { scenarios };
    let scenario = |name: &str| builder.scope(name, &Tags::new([("scenario", name)]), "", &paths);
    SummaryData {
        total: builder.total(&paths),
        scenarios: named.into_iter().map(scenario).collect(),
        root_group: builder.group("", "", &paths),
        trend_stats: builder.stats.clone(),
        time_unit: input.options.summary_time_unit.clone().filter(|unit| !unit.is_empty()),
        duration_ms: input.elapsed.as_secs_f64() * 1e3,
        no_color: input.no_color,
        is_stdout_terminal: input.is_stdout_terminal,
        is_stderr_terminal: input.is_stderr_terminal,
        setup_data: input.setup_data.cloned(),
    }
}

struct SummaryBuilder<'a> {
    input: &'a SummaryInput<'a>,
    stats: Vec<String>,
}

/// The paths of all groups in samples, and of their outer groups, in order of first appearance.
fn group_paths(series: &SeriesTable) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for (key, _) in series.series() {
        let group = group_path(key.tags.get("group").unwrap_or_default());
        for (end, _) in group.match_indices(SEPARATOR).skip(1).chain([(group.len(), "")]) {
            let path = group[..end].to_owned();
            if !path.is_empty() && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

/// The path of a group by its tag: as in k6, what precedes the first separator is the root, also in
/// a tag that the script sets.
fn group_path(tag: &str) -> &str {
    tag.find(SEPARATOR).map_or("", |at| &tag[at..])
}

/// The names and paths of the direct subgroups of a path.
fn inner<'a>(path: &'a str, paths: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
    paths.iter().filter_map(move |one| {
        let name = one.strip_prefix(path)?.strip_prefix(SEPARATOR)?;
        (!name.contains(SEPARATOR)).then_some((name, one.as_str()))
    })
}

impl SummaryBuilder<'_> {
    fn total(&self, paths: &[String]) -> SummaryScope {
        let everything = Tags::default();
        let metrics = self.all_metrics();
        let is_about_checks = metrics.iter().any(|metric| metric.name == CHECKS);
        SummaryScope {
            metrics,
            checks: is_about_checks.then(|| self.checks(&everything, None)),
            ..self.scope("", &everything, "", paths)
        }
    }

    /// All metrics that have samples or thresholds, and their sub-metrics.
    fn all_metrics(&self) -> Vec<SummaryMetric> {
        let input = self.input;
        let mut all: BTreeMap<String, (Arc<Definition>, SeriesValue)> = BTreeMap::new();
        for (name, (metric, value)) in self.sums(&Tags::default()) {
            all.insert(name, (metric, value));
        }
        for (metric, key, tag) in AUTOMATIC {
            let Some(metric) = input.metrics.get(metric) else { continue };
            let value = self.sum(metric, &Tags::new([(key, tag)]));
            if value.samples() > 0 {
                let name = format!("{}{{{key}:{tag}}}", metric.name);
                all.insert(name, (Arc::clone(metric), value));
            }
        }
        for (key, on) in input.thresholds.metrics() {
            let value = on.value(&[input.series]);
            if input.thresholds.is_off() && value.samples() == 0 {
                continue;
            }
            all.entry(key.to_owned()).or_insert_with(|| (Arc::clone(&on.metric), value));
            // A sub-metric is listed below its metric, even one without samples.
            all.entry(on.metric.name.clone())
                .or_insert_with(|| (Arc::clone(&on.metric), SeriesValue::new(on.metric.kind)));
        }
        let all = all.into_iter();
        let metrics = all.map(|(name, (metric, value))| self.metric(name, &metric, &value));
        let mut metrics: Vec<_> = metrics.collect();
        metrics.sort_by(|a, b| compare_metrics(&a.name, &b.name));
        metrics
    }

    /// The merged values of samples with these tags, by metric.
    fn sums(&self, tags: &Tags) -> BTreeMap<String, (Arc<Definition>, SeriesValue)> {
        let mut sums = BTreeMap::new();
        for (key, value) in self.input.series.series().filter(|(key, _)| key.tags.contains(tags)) {
            sums.entry(key.metric.name.clone())
                .or_insert_with(|| (Arc::clone(&key.metric), SeriesValue::new(key.metric.kind)))
                .1
                .merge(value);
        }
        sums
    }

    fn sum(&self, metric: &Definition, tags: &Tags) -> SeriesValue {
        let mut sum = SeriesValue::new(metric.kind);
        for (_, value) in self.input.series.select(&metric.name, tags) {
            sum.merge(value);
        }
        sum
    }

    fn metric(&self, name: String, metric: &Definition, value: &SeriesValue) -> SummaryMetric {
        let thresholds = self.input.results.metrics.get(&name).cloned().unwrap_or_default();
        let values = self.values(metric, value);
        SummaryMetric { name, kind: metric.kind, contains: metric.unit, values, thresholds }
    }

    /// The figures of a metric in k6's units.
    fn values(&self, metric: &Definition, value: &SeriesValue) -> Vec<(String, f64)> {
        let named = |name: &str, value: f64| (name.to_owned(), value);
        match value {
            SeriesValue::Counter { sum, .. } => {
                let count = scaled(metric.unit, sum.value());
                vec![named("count", count), named("rate", per_second(count, self.input.elapsed))]
            }
            SeriesValue::Gauge { samples: 0, .. } => {
                ["value", "min", "max"].map(|name| named(name, 0.0)).to_vec()
            }
            SeriesValue::Gauge { last, min, max, .. } => {
                let one = |name, number: &f64| named(name, scaled(metric.unit, *number));
                vec![one("value", last), one("min", min), one("max", max)]
            }
            SeriesValue::Rate { passed, samples } => vec![
                named("rate", share(*passed, *samples)),
                named("passes", *passed as f64),
                named("fails", samples.saturating_sub(*passed) as f64),
            ],
            SeriesValue::Trend(_) => {
                let stats = self.stats.iter();
                stats.map(|stat| (stat.clone(), self.trend(stat, metric, value))).collect()
            }
        }
    }

    fn trend(&self, stat: &str, metric: &Definition, value: &SeriesValue) -> f64 {
        if stat == "count" {
            return value.samples() as f64;
        }
        let aggregation = stat.parse::<Aggregation>().ok();
        let shown = |one| figure(one, value, metric.unit, self.input.elapsed);
        aggregation.and_then(shown).unwrap_or(0.0)
    }

    /// The metrics and checks of samples with these tags, and the subgroups of a path.
    fn scope(&self, name: &str, tags: &Tags, path: &str, paths: &[String]) -> SummaryScope {
        let metrics = self.sums(tags).into_iter();
        let metrics = metrics.map(|(name, (metric, value))| SummaryMetric {
            values: self.values(&metric, &value),
            name,
            kind: metric.kind,
            contains: metric.unit,
            thresholds: Vec::new(),
        });
        let mut metrics: Vec<_> = metrics.collect();
        metrics.sort_by(|a, b| compare_metrics(&a.name, &b.name));
        let groups = inner(path, paths).filter_map(|(name, path)| {
            let mut pairs = tags.pairs().to_vec();
            pairs.push(("group".to_owned(), path.to_owned()));
            let group = self.scope(name, &Tags::new(pairs), path, paths);
            (!group.metrics.is_empty() || !group.groups.is_empty()).then_some(group)
        });
        let is_about_checks = metrics.iter().any(|metric| metric.name == CHECKS);
        SummaryScope {
            name: name.to_owned(),
            checks: is_about_checks.then(|| self.checks(tags, None)),
            metrics,
            groups: groups.collect(),
        }
    }

    fn group(&self, name: &str, path: &str, paths: &[String]) -> SummaryGroup {
        SummaryGroup {
            name: name.to_owned(),
            path: path.to_owned(),
            checks: self.checks(&Tags::default(), Some(path)),
            groups: inner(path, paths)
                .map(|(name, path)| self.group(name, path, paths))
                .filter(|group| {
                    let is_empty = group.checks.is_empty() && group.groups.is_empty();
                    !(is_empty && STAGES.contains(&group.path.as_str()))
                })
                .collect(),
        }
    }

    /// The checks of samples with these tags, or only one group's checks, in order of first
    /// appearance.
    fn checks(&self, tags: &Tags, only: Option<&str>) -> Vec<SummaryCheck> {
        let mut checks: Vec<SummaryCheck> = Vec::new();
        for (key, value) in self.input.series.select(CHECKS, tags) {
            let SeriesValue::Rate { passed, samples } = value else { continue };
            // Without the system tag they have no name.
            let Some(name) = key.tags.get("check") else { continue };
            let group = key.tags.get("group").map(group_path);
            // Without the system tag they are in no group.
            if only.is_some_and(|only| group != Some(only)) {
                continue;
            }
            let group = group.unwrap_or_default();
            let path = format!("{group}{SEPARATOR}{name}");
            let at = checks.iter().position(|check| check.path == path).unwrap_or_else(|| {
                checks.push(SummaryCheck { name: name.to_owned(), path, ..Default::default() });
                checks.len() - 1
            });
            checks[at].passes += passed;
            checks[at].fails += samples.saturating_sub(*passed);
        }
        checks
    }
}
