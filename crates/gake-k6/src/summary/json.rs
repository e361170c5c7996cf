//! The summary as the data that `handleSummary` is given, and as `--summary-export` writes it.

use gake_core::metric::{MetricKind, MetricUnit};
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};

use super::{SummaryCheck, SummaryData, SummaryGroup, SummaryMetric};

impl SummaryData {
    /// The argument of `handleSummary`.
    #[must_use]
    pub fn for_script(&self) -> Value {
        let metrics = self.total.metrics.iter();
        let metrics: Map<_, _> =
            metrics.map(|metric| (metric.name.clone(), metric.for_script())).collect();
        json!({
            "root_group": self.root_group.for_script(),
            "options": {
                "summaryTrendStats": self.trend_stats,
                "summaryTimeUnit": self.time_unit.as_deref().unwrap_or_default(),
                "noColor": self.no_color,
            },
            "state": {
                "isStdOutTTY": self.is_stdout_terminal,
                "isStdErrTTY": self.is_stderr_terminal,
                "testRunDurationMs": number(self.duration_ms),
            },
            "metrics": metrics,
            "setup_data": self.setup_data,
        })
    }

    /// The content of `--summary-export`.
    #[must_use]
    pub fn for_export(&self) -> Value {
        let metrics = self.total.metrics.iter();
        let metrics: Map<_, _> =
            metrics.map(|metric| (metric.name.clone(), metric.for_export())).collect();
        let mut data = json!({ "root_group": self.root_group.for_export(), "metrics": metrics });
        if let Some(setup_data) = &self.setup_data {
            data["setup_data"] = setup_data.clone();
        }
        data
    }
}

/// A number as JavaScript would write it: whole ones without a point.
fn number(value: f64) -> Value {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= LARGEST {
        Value::from(value as i64)
    } else {
        Value::from(value)
    }
}

impl SummaryMetric {
    fn for_script(&self) -> Value {
        let values: Map<_, _> =
            self.values.iter().map(|(name, value)| (name.clone(), number(*value))).collect();
        let contains = match self.contains {
            MetricUnit::Number => "default",
            MetricUnit::Time => "time",
            MetricUnit::Bytes => "data",
        };
        let mut data = json!({ "type": self.kind.name(), "contains": contains, "values": values });
        if !self.thresholds.is_empty() {
            let thresholds = self.thresholds.iter();
            let thresholds: Map<_, _> = thresholds
                .map(|threshold| (threshold.source.clone(), json!({ "ok": threshold.ok })))
                .collect();
            data["thresholds"] = Value::Object(thresholds);
        }
        data
    }

    /// Its figures beside each other; of a rate, the share is called `value`. A threshold is true
    /// when it failed.
    fn for_export(&self) -> Value {
        let mut data = Map::new();
        for (name, value) in &self.values {
            let is_share = self.kind == MetricKind::Rate && name == "rate";
            let name = if is_share { "value" } else { name };
            data.insert(name.to_owned(), number(*value));
        }
        if !self.thresholds.is_empty() {
            let thresholds = self.thresholds.iter();
            let thresholds: Map<_, _> = thresholds
                .map(|threshold| (threshold.source.clone(), Value::Bool(!threshold.ok)))
                .collect();
            data.insert("thresholds".to_owned(), Value::Object(thresholds));
        }
        Value::Object(data)
    }
}

/// What k6 knows groups and checks by.
fn id(path: &str) -> String {
    Md5::digest(path.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl SummaryCheck {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "path": self.path,
            "id": id(&self.path),
            "passes": self.passes,
            "fails": self.fails,
        })
    }
}

impl SummaryGroup {
    fn for_script(&self) -> Value {
        let groups: Vec<_> = self.groups.iter().map(Self::for_script).collect();
        let checks: Vec<_> = self.checks.iter().map(SummaryCheck::json).collect();
        self.json(Value::Array(groups), Value::Array(checks))
    }

    fn for_export(&self) -> Value {
        let groups = self.groups.iter().map(|group| (group.name.clone(), group.for_export()));
        let checks = self.checks.iter().map(|check| (check.name.clone(), check.json()));
        self.json(Value::Object(groups.collect()), Value::Object(checks.collect()))
    }

    fn json(&self, groups: Value, checks: Value) -> Value {
        json!({
            "name": self.name,
            "path": self.path,
            "id": id(&self.path),
            "groups": groups,
            "checks": checks,
        })
    }
}
