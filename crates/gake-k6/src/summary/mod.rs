//! The end-of-test summary: its data, as text, and as JSON for scripts.

mod build;
mod collate;
mod json;
mod machine_readable;
mod ordered;
mod text;

use serde_json::Value;

pub use build::{SummaryInput, summary_data};
pub use json::export;
pub use machine_readable::{SummaryOrigin, export_machine_readable};
pub use text::SummaryMode;

use crate::threshold::ThresholdResult;
use gake_core::metric::{MetricKind, MetricUnit};

/// The data of a summary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SummaryData {
    /// The whole run.
    pub total: SummaryScope,
    /// Each scenario, with its groups, if the script has scenarios.
    pub scenarios: Vec<SummaryScope>,
    /// The tree of groups, with their checks. The root has no name.
    pub root_group: SummaryGroup,
    /// The statistics shown of trends, in order.
    pub trend_stats: Vec<String>,
    /// The unit of times: `s`, `ms`, `us`; by default it depends on each value.
    pub time_unit: Option<String>,
    /// The duration of the run in milliseconds.
    pub duration_ms: f64,
    /// Whether colours are off.
    pub no_color: bool,
    /// Whether standard output is a terminal.
    pub is_stdout_terminal: bool,
    /// Whether standard error is a terminal.
    pub is_stderr_terminal: bool,
    /// The return value of the script's `setup`.
    pub setup_data: Option<Value>,
}

/// The figures of the run, of a scenario or of a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SummaryScope {
    /// The scenario's or group's name.
    pub name: String,
    /// Metrics and sub-metrics, in the order of `localeCompare`.
    pub metrics: Vec<SummaryMetric>,
    /// Checks in order of first appearance; `None` without the metric `checks`.
    pub checks: Option<Vec<SummaryCheck>>,
    /// Its groups, with their own figures.
    pub groups: Vec<SummaryScope>,
}

/// The aggregated figures of a metric, or of its samples with some tags.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryMetric {
    /// Its name, with the tags of a sub-metric: `http_req_duration{name:login}`.
    pub name: String,
    /// The aggregation of its samples.
    pub kind: MetricKind,
    /// Their unit; times are in milliseconds.
    pub contains: MetricUnit,
    /// Its figures by name: `avg`, `p(95)`, `count`, `rate`.
    pub values: Vec<(String, f64)>,
    /// Its thresholds.
    pub thresholds: Vec<ThresholdResult>,
}

/// The results of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryCheck {
    /// Its name, without its group.
    pub name: String,
    /// The path of its group and its name, joined by `::`.
    pub path: String,
    /// How often it passed.
    pub passes: u64,
    /// How often it failed.
    pub fails: u64,
}

/// A group with its checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryGroup {
    /// Its name; the root has none.
    pub name: String,
    /// The names of its outer groups and its own, each after `::`.
    pub path: String,
    /// Checks directly in it.
    pub checks: Vec<SummaryCheck>,
    /// Its subgroups.
    pub groups: Vec<SummaryGroup>,
}

impl SummaryMetric {
    /// The figure of a name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|value| value.0 == name).map(|value| value.1)
    }

    /// The name of the metric, and the tags of a sub-metric with their braces.
    #[must_use]
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.name.find('{') {
            Some(at) if at > 0 => (&self.name[..at], Some(&self.name[at..])),
            _ => (&self.name, None),
        }
    }
}
