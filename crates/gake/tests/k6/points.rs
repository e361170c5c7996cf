//! What `--out json` writes, without what differs from run to run.

use std::collections::BTreeSet;

use serde_json::Value;

/// Levels of users: what they are when a second begins is chance.
const LEVELS: [&str; 2] = ["vus", "vus_max"];

/// Bytes, which heads of other lengths make others.
const SIZES: [&str; 2] = ["data_sent", "data_received"];

/// Each metric's definition, and each kind of point once: its metric, its tags, and its value
/// unless that depends on time.
pub fn points(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> =
        lines.filter(|line| !LEVELS.iter().any(|level| line["metric"] == *level)).collect();
    let of_type = |wanted: &'static str| lines.iter().filter(move |line| line["type"] == wanted);
    let is_counted = |metric: &Value| {
        let mut metrics = of_type("Metric").filter(|line| line["metric"] == *metric);
        let is_trend = metrics.any(|line| line["data"]["type"] == "trend");
        !is_trend && !SIZES.iter().any(|size| metric == size)
    };
    let metrics = of_type("Metric").map(|line| {
        let data = &line["data"];
        let what = [&data["type"], &data["contains"], &data["thresholds"]];
        let what = what.map(ToString::to_string).join(" ");
        format!("metric {}: {what}", line["metric"].as_str().unwrap_or_default())
    });
    let points = of_type("Point").map(|line| {
        let (metric, data) = (&line["metric"], &line["data"]);
        let value = if is_counted(metric) { format!("={}", data["value"]) } else { String::new() };
        let metadata = data.get("metadata").map(|found| format!(" {found}")).unwrap_or_default();
        let metric = metric.as_str().unwrap_or_default();
        format!("{metric}{value} {}{metadata}", data["tags"])
    });
    metrics.chain(points).collect::<BTreeSet<_>>().into_iter().collect()
}
