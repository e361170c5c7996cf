//! The figures to compare: the usual ones, or those that a user names.
//!
//! A figure is named as an objective is, without its bound: `response.p99`,
//! `response{name:login}:p99`, `checks{group:cart}`, `my_trend:p95`.

use gake_core::metric::{CHECKS, Definition, MetricKind, MetricUnit, SeriesTable, Tags};
use gake_core::plan::Plan;
use gake_core::record::Counts;

use super::CompareOptions;
use super::kind::{Direction, FigureKind, FigureSource, MeasuredFigure, RateBase, TimeKind};
use super::order::rank;
use super::scope::FigureScope;
use crate::objective::{listed, missing_scenario, split_selector};

/// Maximum number of a run's own metrics compared by default: the more figures are compared, the
/// wider each confidence interval.
pub const OWN_MAX: usize = 8;

struct BuiltinFigure {
    name: &'static str,
    kind: FigureKind,
    direction: Direction,
    source: FigureSource,
}

/// The names of the figures that every run has, in order of display.
pub const NAMES: [&str; 16] = {
    let mut names = [""; 16];
    let mut i = 0;
    while i < names.len() {
        names[i] = BUILTIN[i].name;
        i += 1;
    }
    names
};

const fn rate(name: &'static str, count: fn(&Counts) -> u64, flow: RateBase) -> BuiltinFigure {
    let source = FigureSource::RateBase(count, flow);
    BuiltinFigure { name, kind: FigureKind::Rate, direction: Direction::Up, source }
}

const fn time(name: &'static str, source: FigureSource) -> BuiltinFigure {
    BuiltinFigure { name, kind: FigureKind::Time, direction: Direction::Down, source }
}

static BUILTIN: [BuiltinFigure; 16] = [
    rate("sent", |counts| counts.sent, RateBase::Sending),
    rate("completed", Counts::completed, RateBase::Completing),
    rate("goodput", |counts| counts.ok, RateBase::Completing),
    BuiltinFigure {
        name: "errors",
        kind: FigureKind::Share,
        direction: Direction::Down,
        source: FigureSource::Errors,
    },
    time("response.mean", FigureSource::Mean(TimeKind::Response)),
    time("response.p50", FigureSource::Quantile(TimeKind::Response, 0)),
    time("response.p90", FigureSource::Quantile(TimeKind::Response, 1)),
    time("response.p95", FigureSource::Quantile(TimeKind::Response, 2)),
    time("response.p99", FigureSource::Quantile(TimeKind::Response, 3)),
    time("response.p99.9", FigureSource::Quantile(TimeKind::Response, 4)),
    time("service.mean", FigureSource::Mean(TimeKind::Service)),
    time("service.p50", FigureSource::Quantile(TimeKind::Service, 0)),
    time("service.p90", FigureSource::Quantile(TimeKind::Service, 1)),
    time("service.p95", FigureSource::Quantile(TimeKind::Service, 2)),
    time("service.p99", FigureSource::Quantile(TimeKind::Service, 3)),
    time("service.p99.9", FigureSource::Quantile(TimeKind::Service, 4)),
];

const DIRECTIONS: [(&str, Direction); 6] = [
    (CHECKS, Direction::Up),
    ("http_reqs", Direction::Up),
    ("iterations", Direction::Up),
    ("http_req_failed", Direction::Down),
    ("dropped_iterations", Direction::Down),
    ("vus", Direction::Unknown),
];

/// Statistics of a trend by name: an index into `QUANTILES`, or `None` for the mean.
const STATISTICS: [(&str, Option<usize>); 8] = [
    ("avg", None),
    ("mean", None),
    ("med", Some(0)),
    ("p50", Some(0)),
    ("p90", Some(1)),
    ("p95", Some(2)),
    ("p99", Some(3)),
    ("p99.9", Some(4)),
];

/// Why a figure cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FigureError(String);

/// A run's plan and its metrics with samples, as known before the comparison.
#[derive(Debug, Clone, Copy)]
pub struct RunMetrics<'a> {
    /// The run's plan.
    pub plan: &'a Plan,
    /// The run's own metrics.
    pub series: &'a SeriesTable,
}

/// The figures to compare.
#[derive(Debug, Clone)]
pub struct FigureSelection {
    scopes: Vec<FigureScope>,
    measured: Vec<MeasuredFigure>,
    /// Metrics over [`OWN_MAX`], which are not compared.
    left_out: Vec<String>,
}

impl FigureSelection {
    /// The figures that every run has.
    #[must_use]
    pub fn usual() -> Self {
        let mut all =
            Self { scopes: vec![FigureScope::Whole], measured: Vec::new(), left_out: Vec::new() };
        for builtin in &BUILTIN {
            all.add(FigureScope::Whole, builtin.name.to_owned(), builtin);
        }
        all
    }

    /// The figures named in `options`; without names, the usual ones and the metrics that both
    /// runs have samples of.
    ///
    /// # Errors
    /// When a name is no figure of these runs; the message lists the figures.
    pub fn of(options: &CompareOptions, runs: [RunMetrics<'_>; 2]) -> Result<Self, FigureError> {
        if options.figures.is_empty() {
            let mut all = Self::usual();
            all.add_own(runs);
            return Ok(all);
        }
        let mut all =
            Self { scopes: vec![FigureScope::Whole], measured: Vec::new(), left_out: Vec::new() };
        for name in &options.figures {
            all.read(name.trim(), runs).map_err(|problem| {
                FigureError(format!("{name:?} is not a figure of these runs: {problem}"))
            })?;
        }
        Ok(all)
    }

    pub(super) fn scopes(&self) -> &[FigureScope] {
        &self.scopes
    }

    pub(super) fn measured(&self) -> &[MeasuredFigure] {
        &self.measured
    }

    /// Metrics of both runs that are compared only by name.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Adds the metrics with samples in both runs, over all tags.
    fn add_own(&mut self, runs: [RunMetrics<'_>; 2]) {
        let mut compared = 0;
        let mut own = metrics(runs[0]);
        own.sort_by_key(|metric| rank(&metric.name));
        for metric in own {
            let is_gauge = metric.kind == MetricKind::Gauge;
            if is_gauge || !metrics(runs[1]).iter().any(|other| **other == *metric) {
                continue;
            }
            if compared == OWN_MAX {
                self.left_out.push(metric.name.clone());
                continue;
            }
            compared += 1;
            match metric.kind {
                MetricKind::Trend => {
                    for statistic in ["avg", "p50", "p95", "p99"] {
                        let name = format!("{}:{statistic}", metric.name);
                        // Valid statistics of an existing trend do not fail.
                        let _ = self.series(name, metric, Tags::default(), statistic);
                    }
                }
                _ => {
                    let _ = self.series(metric.name.clone(), metric, Tags::default(), "");
                }
            }
        }
    }

    fn read(&mut self, text: &str, runs: [RunMetrics<'_>; 2]) -> Result<(), String> {
        let name = text.to_owned();
        if let Some(builtin) = builtin(text) {
            self.add(FigureScope::Whole, name, builtin);
            return Ok(());
        }
        if let Some((metric, tags, rest)) = split_selector(text) {
            let statistic = rest.strip_prefix([':', '.']).unwrap_or(rest).trim();
            let full_name = if statistic.is_empty() {
                metric.to_owned()
            } else {
                format!("{metric}.{}", usual_name(statistic))
            };
            let Some(builtin) = builtin(&full_name) else {
                let metric = find(metric, runs)?;
                return self.series(name, metric, tags, statistic);
            };
            self.add(builtin_scope(&tags, runs)?, name, builtin);
            return Ok(());
        }
        let Some((head, statistic)) = text.rsplit_once(':') else {
            return self.series(name, find(text, runs)?, Tags::default(), "");
        };
        let (head, statistic) = (head.trim(), statistic.trim());
        if runs.iter().any(|run| run.plan.labels.iter().any(|label| label == head)) {
            let short = format!("response.{}", usual_name(statistic));
            let builtin = builtin(statistic).or_else(|| builtin(&short));
            let builtin =
                builtin.ok_or_else(|| format!("the figures of a label are {}", names()))?;
            self.add(FigureScope::Label(head.to_owned()), name, builtin);
            return Ok(());
        }
        self.series(name, find(head, runs)?, Tags::default(), statistic)
    }

    fn add(&mut self, scope: FigureScope, name: String, builtin: &BuiltinFigure) {
        let BuiltinFigure { kind, direction, source, .. } = *builtin;
        self.push(MeasuredFigure { name, kind, direction, source, scope, number: 0 });
    }

    /// Adds a statistic of a metric; "" is the default of its kind.
    fn series(
        &mut self,
        name: String,
        metric: &Definition,
        tags: Tags,
        statistic: &str,
    ) -> Result<(), String> {
        let has =
            |what: &str| format!("{:?} is a {}: it has {what}", metric.name, metric.kind.name());
        let (source, kind) = match (metric.kind, statistic) {
            (MetricKind::Counter, "" | "rate" | "count") => {
                (FigureSource::Counter, FigureKind::Rate)
            }
            (MetricKind::Rate, "" | "rate") => (FigureSource::Passed, FigureKind::Share),
            (MetricKind::Trend, _) => {
                let index = STATISTICS.iter().find(|known| known.0 == bare(statistic));
                let index = index.ok_or_else(|| has("avg, p50, p90, p95, p99 and p99.9"))?.1;
                let source = index.map_or(FigureSource::Mean(TimeKind::Response), |i| {
                    FigureSource::Quantile(TimeKind::Response, i)
                });
                let kind = match metric.unit {
                    MetricUnit::Time => FigureKind::Time,
                    MetricUnit::Bytes => FigureKind::Bytes,
                    MetricUnit::Number => FigureKind::Number,
                };
                (source, kind)
            }
            (MetricKind::Counter, _) => return Err(has("a rate")),
            (MetricKind::Rate, _) => return Err(has("its rate")),
            (MetricKind::Gauge, _) => {
                return Err(has("levels and no samples, so no confidence interval"));
            }
        };
        let known = DIRECTIONS.iter().find(|known| known.0 == metric.name);
        let direction = known.map_or(
            if kind == FigureKind::Time { Direction::Down } else { Direction::Unknown },
            |known| known.1,
        );
        let scope = FigureScope::Series { metric: metric.name.clone(), tags };
        self.push(MeasuredFigure { name, kind, direction, source, scope, number: 0 });
        Ok(())
    }

    fn push(&mut self, measured: MeasuredFigure) {
        if self.measured.iter().any(|other| other.name == measured.name) {
            return;
        }
        let known = self.scopes.iter().position(|scope| *scope == measured.scope);
        let number = known.unwrap_or_else(|| {
            self.scopes.push(measured.scope.clone());
            self.scopes.len() - 1
        });
        self.measured.push(MeasuredFigure { number, ..measured });
    }
}

fn builtin(name: &str) -> Option<&'static BuiltinFigure> {
    BUILTIN.iter().find(|builtin| builtin.name == name)
}

fn names() -> String {
    NAMES.join(", ")
}

/// `p(95)` as `p95`.
fn bare(statistic: &str) -> String {
    statistic.replace(['(', ')'], "")
}

/// The name of a statistic among the built-in figures.
fn usual_name(statistic: &str) -> String {
    match bare(statistic).as_str() {
        "avg" => "mean".to_owned(),
        "med" => "p50".to_owned(),
        other => other.to_owned(),
    }
}

/// The scope that the tags of a built-in figure select.
fn builtin_scope(tags: &Tags, runs: [RunMetrics<'_>; 2]) -> Result<FigureScope, String> {
    let one = |all: Vec<&str>, value: &str, scope: fn(String) -> FigureScope, what: &str| {
        if all.contains(&value) {
            return Ok(scope(value.to_owned()));
        }
        let there = listed(all.into_iter());
        Err(match there.is_empty() {
            true => format!("the runs have no {what}"),
            false => format!("there is no {what} {value:?}; there are {there}"),
        })
    };
    let both = |of: fn(&Plan) -> Vec<&str>| {
        let mut all: Vec<&str> = runs.iter().flat_map(|run| of(run.plan)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    match tags.pairs() {
        [] => Ok(FigureScope::Whole),
        [(key, value)] if key == "name" => {
            let labels = both(|plan| plan.labels.iter().map(String::as_str).collect());
            one(labels, value, FigureScope::Label, "label")
        }
        _ if tags.get("name").is_some() => {
            Err("figures of a label cover all scenarios: leave out the other tags".to_owned())
        }
        _ if runs.iter().any(|run| run.plan.scenarios().iter().any(|plan| plan.carries(tags))) => {
            Ok(FigureScope::Scenarios(tags.clone()))
        }
        _ => Err(missing_scenario(tags, runs.iter().flat_map(|run| run.plan.scenarios()))),
    }
}

fn find<'a>(name: &str, runs: [RunMetrics<'a>; 2]) -> Result<&'a Definition, String> {
    let [a, b] = runs.map(metrics);
    let all: Vec<_> = a.into_iter().chain(b).collect();
    all.iter().find(|metric| metric.name == name).copied().ok_or_else(|| {
        let own = listed(all.iter().map(|metric| metric.name.as_str()));
        let own = if own.is_empty() { String::new() } else { format!(", and their own {own}") };
        format!("there are {}{own}", names())
    })
}

fn metrics(run: RunMetrics<'_>) -> Vec<&Definition> {
    let mut all: Vec<&Definition> = run.series.series().map(|(key, _)| &*key.metric).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Splits the name of a figure for a table: its subject, and its statistic.
pub(super) fn heading(name: &str) -> (&str, &str) {
    let braces = name.rfind('}').map_or(0, |end| end + 1);
    if let Some(colon) = name[braces..].rfind(':') {
        let (head, statistic) = name.split_at(braces + colon);
        return (head, &statistic[1..]);
    }
    match name.split_once('.') {
        Some(split) if builtin(name).is_some() => split,
        _ => ("", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::kind::QUANTILES;

    #[test]
    fn statistics_are_indexes_of_quantiles() {
        for (name, index) in STATISTICS {
            let Some(index) = index else { continue };
            let percent = QUANTILES[index] * 100.0;
            let number = name.trim_start_matches('p');
            assert!(name == "med" || number.parse::<f64>().unwrap() == percent, "{name} {percent}");
        }
    }

    #[test]
    fn a_name_has_a_heading_and_a_statistic() {
        for (name, expected) in [
            ("sent", ("", "sent")),
            ("response.p99.9", ("response", "p99.9")),
            ("response{name:a:b}:p99", ("response{name:a:b}", "p99")),
            ("GET /a:errors", ("GET /a", "errors")),
            ("checks{group:x.y}", ("", "checks{group:x.y}")),
            ("my.trend:p95", ("my.trend", "p95")),
        ] {
            assert_eq!(heading(name), expected, "{name}");
        }
    }
}
