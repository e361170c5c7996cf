//! The summary at the end: what it holds, as text, and as the data that scripts are given.

mod build;
mod json;
mod text;

use serde_json::Value;

pub use build::{SummaryInput, summary_data};
pub use text::SummaryMode;

use crate::threshold::ThresholdResult;
use gake_core::metric::{MetricKind, MetricUnit};

/// Everything that a summary shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SummaryData {
    /// Of the whole run.
    pub total: SummaryScope,
    /// Of each scenario, where the script has any; their groups are in there.
    pub scenarios: Vec<SummaryScope>,
    /// Groups as they are inside each other, with their checks. The outermost has no name.
    pub root_group: SummaryGroup,
    /// What is shown of trends, in order.
    pub trend_stats: Vec<String>,
    /// The unit of times: `s`, `ms`, `us`; without one, the one that fits.
    pub time_unit: Option<String>,
    /// How long the run took, in milliseconds.
    pub duration_ms: f64,
    /// Whether nothing has colours.
    pub no_color: bool,
    /// Whether standard output is a terminal.
    pub is_stdout_terminal: bool,
    /// Whether standard error is a terminal.
    pub is_stderr_terminal: bool,
    /// What the script's `setup` returned.
    pub setup_data: Option<Value>,
}

/// What a part of the run recorded: all of it, a scenario, a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SummaryScope {
    /// The scenario's or group's name.
    pub name: String,
    /// Metrics and sub-metrics, in the order of their names.
    pub metrics: Vec<SummaryMetric>,
    /// Checks, in the order in which they came first.
    pub checks: Vec<SummaryCheck>,
    /// Its groups.
    pub groups: Vec<SummaryScope>,
}

/// What a metric, or its samples with some tags, added up to.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryMetric {
    /// Its name, with the tags of a sub-metric: `http_req_duration{name:login}`.
    pub name: String,
    /// How its samples add up.
    pub kind: MetricKind,
    /// What they are; times are in milliseconds here.
    pub contains: MetricUnit,
    /// Its figures by name: `avg`, `p(95)`, `count`, `rate`.
    pub values: Vec<(String, f64)>,
    /// Its thresholds.
    pub thresholds: Vec<ThresholdResult>,
}

/// A check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryCheck {
    /// Its name.
    pub name: String,
    /// The path of its group, with its name.
    pub path: String,
    /// How often it passed.
    pub passes: u64,
    /// How often it did not.
    pub fails: u64,
}

/// A group with its checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryGroup {
    /// Its name.
    pub name: String,
    /// Its name with those of the groups around it, each after `::`.
    pub path: String,
    /// Its checks.
    pub checks: Vec<SummaryCheck>,
    /// The groups in it.
    pub groups: Vec<SummaryGroup>,
}

impl SummaryMetric {
    /// A figure.
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
