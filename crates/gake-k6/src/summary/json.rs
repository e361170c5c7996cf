//! The summary as the argument of `handleSummary`, and as the content of `--summary-export`.

use md5::{Digest, Md5};
use serde_json::Number;

use super::ordered::OrderedJson;
use super::{SummaryCheck, SummaryData, SummaryGroup, SummaryMetric};
use crate::threshold::ThresholdResult;
use crate::values::contains;

impl SummaryData {
    /// The argument of `handleSummary`, as JSON.
    #[must_use]
    pub fn for_script(&self) -> String {
        let metrics = self.total.metrics.iter();
        let metrics = metrics.map(|metric| (metric.name.as_str(), metric.json()));
        let stats = self.trend_stats.iter().map(|stat| OrderedJson::text(stat));
        let mut members = vec![
            ("root_group", self.root_group.json()),
            (
                "options",
                OrderedJson::object([
                    ("summaryTrendStats", OrderedJson::List(stats.collect())),
                    (
                        "summaryTimeUnit",
                        OrderedJson::text(self.time_unit.as_deref().unwrap_or_default()),
                    ),
                    ("noColor", OrderedJson::Bool(self.no_color)),
                ]),
            ),
            (
                "state",
                OrderedJson::object([
                    ("isStdOutTTY", OrderedJson::Bool(self.is_stdout_terminal)),
                    ("isStdErrTTY", OrderedJson::Bool(self.is_stderr_terminal)),
                    ("testRunDurationMs", number(self.duration_ms)),
                ]),
            ),
            ("metrics", OrderedJson::object(metrics)),
        ];
        // Undefined without `setup`.
        members.extend(self.setup_data.clone().map(|data| ("setup_data", data.into())));
        // Cannot fail: keys are strings.
        serde_json::to_string(&OrderedJson::object(members)).unwrap_or_default()
    }
}

/// The content of `--summary-export` for the argument of `handleSummary` after the call; `None` if
/// it is not JSON.
#[must_use]
pub fn export(data: &str) -> Option<String> {
    let data: OrderedJson = serde_json::from_str(data).ok()?;
    let members = data.members().iter().filter(|(name, _)| name != "options" && name != "state");
    let exported = members.map(|(name, value)| match name.as_str() {
        "metrics" => {
            let metrics = value.members().iter();
            let metrics = metrics.map(|(name, metric)| (name.as_str(), exported_metric(metric)));
            ("metrics", OrderedJson::object(metrics))
        }
        "root_group" => ("root_group", exported_group(value)),
        name => (name, value.clone()),
    });
    Some(OrderedJson::object(exported).pretty())
}

/// A flat object of a metric's figures. The share of a rate is named `value`; a failed threshold is
/// `true`.
fn exported_metric(metric: &OrderedJson) -> OrderedJson {
    let is_rate = metric.get("type") == Some(&OrderedJson::text("rate"));
    let values = metric.get("values").map(OrderedJson::members).unwrap_or_default().iter();
    let mut members: Vec<(&str, OrderedJson)> = values
        .map(|(name, value)| {
            let is_share = is_rate && name == "rate";
            (if is_share { "value" } else { name.as_str() }, value.clone())
        })
        .collect();
    let thresholds = metric.get("thresholds").map(OrderedJson::members).unwrap_or_default();
    if !thresholds.is_empty() {
        let has_failed =
            |threshold: &OrderedJson| threshold.get("ok") != Some(&OrderedJson::Bool(true));
        let thresholds = thresholds.iter();
        let thresholds = thresholds
            .map(|(source, result)| (source.as_str(), OrderedJson::Bool(has_failed(result))));
        members.push(("thresholds", OrderedJson::object(thresholds)));
    }
    OrderedJson::object(members)
}

/// A group with its groups and checks by name.
fn exported_group(group: &OrderedJson) -> OrderedJson {
    let named = |list: &OrderedJson, export: fn(&OrderedJson) -> OrderedJson| {
        let OrderedJson::List(list) = list else { return list.clone() };
        let mut members: Vec<(String, OrderedJson)> = Vec::new();
        for item in list {
            let Some(OrderedJson::Text(name)) = item.get("name") else { continue };
            match members.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = export(item),
                None => members.push((name.clone(), export(item))),
            }
        }
        OrderedJson::Object(members)
    };
    let members = group.members().iter().map(|(name, value)| match name.as_str() {
        "groups" => ("groups", named(value, exported_group)),
        "checks" => ("checks", named(value, OrderedJson::clone)),
        name => (name, value.clone()),
    });
    OrderedJson::object(members)
}

/// A number as JavaScript writes it: integers without a point.
pub(super) fn number(value: f64) -> OrderedJson {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= LARGEST {
        OrderedJson::Number((value as i64).into())
    } else {
        Number::from_f64(value).map_or(OrderedJson::Null, OrderedJson::Number)
    }
}

impl SummaryMetric {
    fn json(&self) -> OrderedJson {
        let values = self.values.iter().map(|(name, value)| (name.as_str(), number(*value)));
        let mut members = vec![
            ("type", OrderedJson::text(self.kind.name())),
            ("contains", OrderedJson::text(contains(self.contains))),
            ("values", OrderedJson::object(values)),
        ];
        if !self.thresholds.is_empty() {
            let result = |threshold: &ThresholdResult| {
                OrderedJson::object([("ok", OrderedJson::Bool(threshold.ok))])
            };
            let thresholds = self.thresholds.iter();
            let thresholds =
                thresholds.map(|threshold| (threshold.source.as_str(), result(threshold)));
            members.push(("thresholds", OrderedJson::object(thresholds)));
        }
        OrderedJson::object(members)
    }
}

/// k6's id of a group or check: the MD5 of its path.
fn id(path: &str) -> String {
    Md5::digest(path.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl SummaryCheck {
    fn json(&self) -> OrderedJson {
        OrderedJson::object([
            ("name", OrderedJson::text(&self.name)),
            ("path", OrderedJson::text(&self.path)),
            ("id", OrderedJson::Text(id(&self.path))),
            ("passes", OrderedJson::Number(self.passes.into())),
            ("fails", OrderedJson::Number(self.fails.into())),
        ])
    }
}

impl SummaryGroup {
    fn json(&self) -> OrderedJson {
        OrderedJson::object([
            ("name", OrderedJson::text(&self.name)),
            ("path", OrderedJson::text(&self.path)),
            ("id", OrderedJson::Text(id(&self.path))),
            ("groups", OrderedJson::List(self.groups.iter().map(Self::json).collect())),
            ("checks", OrderedJson::List(self.checks.iter().map(SummaryCheck::json).collect())),
        ])
    }
}
