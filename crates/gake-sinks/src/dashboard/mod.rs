//! Grafana dashboards for the figures that sinks send.

mod influxdb;
mod prometheus;

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// The version of Grafana's dashboard format; newer Grafanas migrate it.
const SCHEMA: u32 = 39;

const COLUMNS: u32 = 24;

/// Height of a panel, in rows of the grid.
const HEIGHT: u32 = 8;

/// Height of a panel of single numbers.
const STAT_HEIGHT: u32 = 4;

/// The database that a dashboard reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashboardSource {
    /// `--sink influxdb`, queried in InfluxQL.
    InfluxDb,
    /// `--sink prometheus-rw` or `prometheus`, queried in PromQL.
    Prometheus,
}

impl DashboardSource {
    fn name(self) -> &'static str {
        match self {
            Self::InfluxDb => "influxdb",
            Self::Prometheus => "prometheus",
        }
    }

    fn panels(self) -> Vec<DashboardPanel> {
        match self {
            Self::InfluxDb => influxdb::panels(),
            Self::Prometheus => prometheus::panels(),
        }
    }
}

impl fmt::Display for DashboardSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DashboardSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::InfluxDb, Self::Prometheus]
            .into_iter()
            .find(|source| source.name() == text)
            .ok_or_else(|| "influxdb or prometheus".to_owned())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visualization {
    /// A time series.
    Series,
    /// The last values.
    Stat,
}

struct DashboardPanel {
    title: &'static str,
    about: &'static str,
    view: Visualization,
    unit: &'static str,
    width: u32,
    queries: Vec<PanelQuery>,
    /// Texts shown instead of numbers: value, text, colour.
    texts: &'static [(u32, &'static str, &'static str)],
}

struct PanelQuery {
    legend: &'static str,
    text: String,
}

const VERDICTS: &[(u32, &str, &str)] = &[
    (0, "valid", "green"),
    (1, "suspect", "orange"),
    (2, "invalid", "red"),
    (3, "nothing ok", "red"),
];

impl DashboardPanel {
    fn new(
        view: Visualization,
        title: &'static str,
        unit: &'static str,
        about: &'static str,
    ) -> Self {
        Self { title, about, view, unit, width: 12, queries: Vec::new(), texts: &[] }
    }

    fn width(self, width: u32) -> Self {
        Self { width, ..self }
    }

    fn query(mut self, legend: &'static str, text: impl Into<String>) -> Self {
        self.queries.push(PanelQuery { legend, text: text.into() });
        self
    }

    fn texts(self, texts: &'static [(u32, &'static str, &'static str)]) -> Self {
        Self { texts, ..self }
    }

    fn height(&self) -> u32 {
        if self.view == Visualization::Stat { STAT_HEIGHT } else { HEIGHT }
    }
}

/// The dashboard for a database, as Grafana imports it.
#[must_use]
pub fn grafana(source: DashboardSource) -> Value {
    let mut panels = Vec::new();
    let (mut x, mut y, mut lowest) = (0, 0, 0);
    for (id, panel) in (1..).zip(source.panels()) {
        if x + panel.width > COLUMNS {
            (x, y) = (0, lowest);
        }
        let place = json!({ "x": x, "y": y, "w": panel.width, "h": panel.height() });
        x += panel.width;
        lowest = lowest.max(y + panel.height());
        panels.push(rendered(source, id, &panel, &place));
    }
    json!({
        "title": format!("gake ({source})"),
        "uid": format!("gake-{source}"),
        "description": "Runs of gake. Made by `gake dashboard grafana`.",
        "tags": ["gake", "load test"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": true,
        "refresh": "5s",
        "time": { "from": "now-15m", "to": "now" },
        "timezone": "browser",
        "graphTooltip": 1,
        "templating": { "list": [{
            "name": "source",
            "label": "Data source",
            "type": "datasource",
            "query": source.name(),
        }] },
        "annotations": { "list": annotations(source) },
        "panels": panels,
    })
}

/// A reference to the data source chosen by the reader.
fn chosen(source: DashboardSource) -> Value {
    json!({ "type": source.name(), "uid": "${source}" })
}

/// Annotations of runs on all panels, if the database has events.
fn annotations(source: DashboardSource) -> Vec<Value> {
    match source {
        DashboardSource::Prometheus => Vec::new(),
        DashboardSource::InfluxDb => vec![json!({
            "name": "Runs",
            "datasource": chosen(source),
            "enable": true,
            "iconColor": "blue",
            "query": influxdb::EVENTS,
            "titleColumn": "title",
            "textColumn": "text",
        })],
    }
}

fn rendered(source: DashboardSource, id: u32, panel: &DashboardPanel, place: &Value) -> Value {
    let (kind, options) = match panel.view {
        Visualization::Series => (
            "timeseries",
            json!({
                "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true },
                "tooltip": { "mode": "multi", "sort": "none" },
            }),
        ),
        Visualization::Stat => (
            "stat",
            json!({
                "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
                "textMode": "value_and_name",
                "colorMode": "value",
                "graphMode": "none",
            }),
        ),
    };
    let queries = ('A'..).zip(&panel.queries);
    let targets: Vec<Value> =
        queries.map(|(id, query)| target(source, id, panel.view, query)).collect();
    let texts = panel.texts.iter().map(|(value, text, colour)| {
        (value.to_string(), json!({ "text": text, "color": colour, "index": value }))
    });
    let texts: serde_json::Map<String, Value> = texts.collect();
    let mappings =
        if texts.is_empty() { json!([]) } else { json!([{ "type": "value", "options": texts }]) };
    json!({
        "id": id,
        "type": kind,
        "title": panel.title,
        "description": panel.about,
        "gridPos": place,
        "datasource": chosen(source),
        "interval": "1s",
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "mappings": mappings,
                "custom": { "fillOpacity": 8, "lineWidth": 1, "spanNulls": false },
            },
            "overrides": [],
        },
        "options": options,
        "targets": targets,
    })
}

fn target(source: DashboardSource, id: char, view: Visualization, query: &PanelQuery) -> Value {
    let common = json!({ "refId": id.to_string(), "datasource": chosen(source) });
    let own = match source {
        DashboardSource::InfluxDb => json!({
            "query": query.text,
            "rawPanelQuery": true,
            "resultFormat": "time_series",
            "alias": query.legend,
        }),
        DashboardSource::Prometheus => json!({
            "expr": query.text,
            "legendFormat": query.legend,
            "instant": view == Visualization::Stat,
            "range": view == Visualization::Series,
        }),
    };
    match (common, own) {
        (Value::Object(mut all), Value::Object(own)) => {
            all.extend(own);
            Value::Object(all)
        }
        (common, _) => common,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_do_not_overlap() {
        for source in [DashboardSource::InfluxDb, DashboardSource::Prometheus] {
            let dashboard = grafana(source);
            let panels = dashboard["panels"].as_array().unwrap();
            let mut taken = std::collections::BTreeSet::new();
            for panel in panels {
                let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
                assert!(at("x") + at("w") <= u64::from(COLUMNS), "{panel}");
                for x in at("x")..at("x") + at("w") {
                    for y in at("y")..at("y") + at("h") {
                        assert!(taken.insert((x, y)), "{panel}");
                    }
                }
                assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
            }
            let titles: std::collections::BTreeSet<_> =
                panels.iter().map(|panel| panel["title"].as_str().unwrap()).collect();
            assert_eq!(titles.len(), panels.len());
            assert_eq!(source.to_string().parse(), Ok(source));
        }
    }
}
