//! The metrics of a script by remote write, under k6's names.

use gake_core::metric::{Definition, MetricUnit, SeriesTable, SeriesValue};
use gake_core::record::Histogram;

use super::native::native;
use super::protobuf::ProtoMessage;
use super::remote_write::{compressed, label};
use crate::carrier::FigureBatch;

/// The resolution of k6's native histograms: buckets grow by 9 %.
const SCHEMA: i32 = 3;

/// A figure of a trend, as in `K6_PROMETHEUS_RW_TREND_STATS`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TrendFigure {
    Avg,
    Min,
    Max,
    Med,
    Count,
    Sum,
    /// A percentile, and its name without the point: `p999`.
    Percentile(f64, String),
}

/// The form of trends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trends {
    Figures(Vec<TrendFigure>),
    Native,
}

impl TrendFigure {
    /// The figures in a list such as `p(99),avg`; `None` when one is unknown.
    pub(crate) fn list(text: &str) -> Option<Vec<Self>> {
        text.split(',').map(|name| Self::parse(name.trim())).collect()
    }

    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "avg" => Self::Avg,
            "min" => Self::Min,
            "max" => Self::Max,
            "med" => Self::Med,
            "count" => Self::Count,
            "sum" => Self::Sum,
            _ => {
                let number = name.strip_prefix("p(")?.strip_suffix(')')?;
                let percentile: f64 = number.parse().ok()?;
                let is_one = (0.0..=100.0).contains(&percentile);
                is_one.then(|| {
                    Self::Percentile(percentile, format!("p{}", number.replace('.', "")))
                })?
            }
        })
    }

    fn name(&self) -> &str {
        match self {
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Med => "med",
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Percentile(_, name) => name,
        }
    }

    /// The figure's value; all but the count are divided by `unit`.
    fn of(&self, trend: &Histogram, unit: f64) -> f64 {
        let number = match self {
            Self::Count => return trend.count() as f64,
            Self::Avg => trend.mean(),
            Self::Min => trend.min_number(),
            Self::Max => trend.max_number(),
            Self::Med => trend.interpolated(0.5),
            Self::Sum => trend.sum_number(),
            Self::Percentile(p, _) => trend.interpolated(p / 100.0),
        };
        number / unit
    }
}

/// The divisor of a unit: times are written in seconds.
fn divisor(unit: MetricUnit) -> f64 {
    if unit == MetricUnit::Time { 1e9 } else { 1.0 }
}

/// Prometheus's value of a series that has ended, a NaN of its own.
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// A request with every series at an instant; with `is_stale` the mark that it has ended.
pub(crate) fn request(
    table: &SeriesTable,
    tags: &[(String, String)],
    (trends, is_stale): (&Trends, bool),
    unix_ms: u64,
) -> FigureBatch {
    let mut request = ProtoMessage::default();
    let mut rows = 0;
    for (key, value) in table.series() {
        let Definition { name, unit, .. } = &*key.metric;
        let mut add = |suffix: &str, content: SeriesContent| {
            let name = format!("k6_{name}{suffix}");
            let content = if is_stale { SeriesContent::Number(STALE) } else { content };
            request.message(1, &series(&name, tags, key.tags.pairs(), &content, unix_ms));
            rows += 1;
        };
        let divisor = divisor(*unit);
        // k6 converts only trends to seconds; other times stay in milliseconds.
        let plain = if *unit == MetricUnit::Time { 1e6 } else { 1.0 };
        match (value, trends) {
            (SeriesValue::Counter { sum, .. }, _) => {
                add("_total", SeriesContent::Number(sum.value() / plain));
            }
            (SeriesValue::Gauge { last, .. }, _) => add("", SeriesContent::Number(last / plain)),
            (SeriesValue::Rate { passed, samples }, _) => {
                add("_rate", SeriesContent::Number(*passed as f64 / (*samples).max(1) as f64));
            }
            (SeriesValue::Trend(trend), Trends::Native) => {
                let suffix = if *unit == MetricUnit::Time { "_seconds" } else { "" };
                add(suffix, SeriesContent::Histogram(native(trend, divisor, SCHEMA, unix_ms)));
            }
            (SeriesValue::Trend(trend), Trends::Figures(figures)) => {
                for figure in figures {
                    let number = figure.of(trend, divisor);
                    add(&format!("_{}", figure.name()), SeriesContent::Number(number));
                }
            }
        }
    }
    FigureBatch { bytes: compressed(&request.bytes), rows }
}

enum SeriesContent {
    Number(f64),
    Histogram(ProtoMessage),
}

/// One series with sorted labels. Names of tags are unchanged, as in k6.
fn series(
    name: &str,
    common: &[(String, String)],
    tags: &[(String, String)],
    content: &SeriesContent,
    unix_ms: u64,
) -> ProtoMessage {
    let pairs = common.iter().chain(tags).map(|(name, value)| (name.as_str(), value.as_str()));
    let mut labels: std::collections::BTreeMap<&str, &str> = pairs.collect();
    labels.insert("__name__", name);
    let mut series = ProtoMessage::default();
    for (name, value) in labels.into_iter().filter(|(_, value)| !value.is_empty()) {
        series.message(1, &label(name, value));
    }
    match content {
        SeriesContent::Number(number) => {
            let mut sample = ProtoMessage::default();
            sample.double(1, *number);
            sample.int64(2, unix_ms);
            series.message(2, &sample);
        }
        SeriesContent::Histogram(histogram) => series.message(4, histogram),
    }
    series
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gake_core::metric::{MetricKind, Tags};

    use super::*;

    /// The labels and values of the written series.
    fn written(table: &SeriesTable, trends: (&Trends, bool)) -> Vec<(String, f64)> {
        const PROTO: &str = r#"
            syntax = "proto3";
            message Request { repeated Series timeseries = 1; }
            message Series { repeated Label labels = 1; repeated Sample samples = 2; }
            message Label { string name = 1; string value = 2; }
            message Sample { double value = 1; int64 timestamp = 2; }
            service S { rpc Decode(Request) returns (Request); }
        "#;
        let schema =
            gake_wire::GrpcSchema::compile(&["w.proto".to_owned()], |_| Some(PROTO.into()));
        let batch = request(table, &[("env".to_owned(), "t".to_owned())], trends, 5);
        let bytes = snap::raw::Decoder::new().decompress_vec(&batch.bytes).unwrap();
        let json = schema.unwrap().method("/S/Decode").unwrap().decode(&bytes).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let all = json["timeseries"].as_array().unwrap();
        let labels = |series: &serde_json::Value| {
            let labels = series["labels"].as_array().unwrap().iter();
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            let labels = labels.map(|label| text(&label["name"]) + "=" + &text(&label["value"]));
            labels.collect::<Vec<_>>().join(" ")
        };
        let value = |series: &serde_json::Value| series["samples"][0]["value"].as_f64();
        all.iter().map(|series| (labels(series), value(series).unwrap_or(f64::NAN))).collect()
    }

    fn table() -> SeriesTable {
        let mut table = SeriesTable::default();
        let mut add = |name: &str, kind, unit, values: &[f64]| {
            let metric = Arc::new(Definition { name: name.to_owned(), kind, unit });
            let series = table.intern(&metric, &Tags::new([("odd-tag", "v"), ("group", "")]));
            values.iter().for_each(|value| table.add(series, *value, 0));
        };
        add("http_reqs", MetricKind::Counter, MetricUnit::Number, &[1.0, 1.0]);
        add("vus", MetricKind::Gauge, MetricUnit::Number, &[3.0]);
        add("checks", MetricKind::Rate, MetricUnit::Number, &[1.0, 0.0]);
        add("http_req_duration", MetricKind::Trend, MetricUnit::Time, &[2e9, 4e9]);
        add("lag", MetricKind::Gauge, MetricUnit::Time, &[1.5e9]);
        table
    }

    #[test]
    fn names_and_units_are_as_in_k6() {
        let figures = TrendFigure::list("p(99.9), avg,count").unwrap();
        let series_written = written(&table(), (&Trends::Figures(figures.clone()), false));
        let expected = [
            ("k6_http_reqs_total", 2.0),
            ("k6_vus", 3.0),
            ("k6_checks_rate", 0.5),
            ("k6_http_req_duration_p999", 3.998),
            ("k6_http_req_duration_avg", 3.0),
            ("k6_http_req_duration_count", 2.0),
            ("k6_lag", 1_500.0),
        ];
        assert_eq!(series_written.len(), expected.len(), "{series_written:?}");
        for ((labels, value), (name, number)) in series_written.iter().zip(expected) {
            assert_eq!(*labels, format!("__name__={name} env=t odd-tag=v"));
            assert!((value - number).abs() < 0.005, "{labels} {value}");
        }
        let ended = written(&table(), (&Trends::Figures(figures), true)).into_iter();
        assert!(ended.zip(&series_written).all(|(end, one)| end.0 == one.0 && end.1.is_nan()));
        let native = written(&table(), (&Trends::Native, false));
        assert!(native[3].0.starts_with("__name__=k6_http_req_duration_seconds "), "{native:?}");
        assert!(TrendFigure::list("p(101)").is_none() && TrendFigure::list("p95").is_none());
    }
}
