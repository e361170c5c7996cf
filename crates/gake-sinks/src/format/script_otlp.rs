//! The metrics of a script for OpenTelemetry, under k6's names and with its instruments: counters,
//! gauges, histograms with the boundaries of OpenTelemetry's SDK, and two counts for a rate. In
//! protobuf; field numbers are from `opentelemetry/proto/metrics/v1/metrics.proto`.

use std::collections::BTreeMap;

use gake_core::metric::{MetricUnit, SeriesKey, SeriesTable, SeriesValue};
use gake_core::record::Histogram;

use super::otlp::CUMULATIVE;
use super::otlp_grpc::attribute;
use super::protobuf::ProtoMessage;

/// The boundaries of histograms.
const BOUNDS: [f64; 15] = [
    0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1_000.0, 2_500.0, 5_000.0,
    7_500.0, 10_000.0,
];

/// The attribute by which the counts of a rate differ.
const CONDITION: &str = "condition";

/// What the metrics are of.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptResource {
    pub(crate) service: String,
    pub(crate) version: String,
    /// The start of every metric's name.
    pub(crate) prefix: String,
}

/// The fields of a metric for its data, by the kind of its instrument.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Instrument {
    Gauge = 5,
    Sum = 7,
    Histogram = 9,
}

/// A request with every series: `started` and `now` in Unix nanoseconds. Returns the message, and the
/// number of points.
pub(crate) fn request(
    table: &SeriesTable,
    resource: &ScriptResource,
    (started, now): (u64, u64),
) -> (Vec<u8>, u64) {
    let mut metrics: BTreeMap<(String, Instrument), (&str, ProtoMessage)> = BTreeMap::new();
    let mut rows = 0;
    for (key, value) in table.series() {
        let name = format!("{}{}", resource.prefix, key.metric.name);
        let (unit, divisor) = match key.metric.unit {
            MetricUnit::Time => ("ms", 1e6),
            MetricUnit::Bytes => ("By", 1.0),
            _ => ("", 1.0),
        };
        let mut add = |name: &str, unit, instrument, point: &ProtoMessage| {
            let known = metrics.entry((name.to_owned(), instrument));
            known.or_insert_with(|| (unit, ProtoMessage::default())).1.message(1, point);
            rows += 1;
        };
        let number = |number: f64| {
            let mut point = begun(7, key, None, (started, now));
            point.double(4, number / divisor);
            point
        };
        match value {
            SeriesValue::Counter { sum, .. } => {
                add(&name, unit, Instrument::Sum, &number(sum.value()));
            }
            SeriesValue::Gauge { last, .. } => add(&name, unit, Instrument::Gauge, &number(*last)),
            SeriesValue::Rate { passed, samples } => {
                let counts = [("nonzero", *passed), ("zero", samples.saturating_sub(*passed))];
                for (condition, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                    let mut point = begun(7, key, Some(condition), (started, now));
                    point.fixed64(6, count);
                    add(&format!("{name}.total"), "", Instrument::Sum, &point);
                }
            }
            SeriesValue::Trend(trend) => {
                let mut point = begun(9, key, None, (started, now));
                distribution(&mut point, trend, divisor);
                add(&name, unit, Instrument::Histogram, &point);
            }
        }
    }
    (export(resource, metrics), rows)
}

fn export(
    resource: &ScriptResource,
    metrics: BTreeMap<(String, Instrument), (&str, ProtoMessage)>,
) -> Vec<u8> {
    let mut scope = ProtoMessage::default();
    scope.bytes(1, b"k6");
    let mut scoped = ProtoMessage::default();
    scoped.message(1, &scope);
    for ((name, instrument), (unit, mut data)) in metrics {
        if instrument != Instrument::Gauge {
            data.int64(2, CUMULATIVE.into());
        }
        if instrument == Instrument::Sum {
            data.flag(3, true);
        }
        let mut metric = ProtoMessage::default();
        metric.bytes(1, name.as_bytes());
        if !unit.is_empty() {
            metric.bytes(3, unit.as_bytes());
        }
        metric.message(instrument as u32, &data);
        scoped.message(2, &metric);
    }
    let mut attributes = ProtoMessage::default();
    attribute(&mut attributes, 1, "service.name", &resource.service);
    attribute(&mut attributes, 1, "service.version", &resource.version);
    let mut all = ProtoMessage::default();
    all.message(1, &attributes);
    all.message(2, &scoped);
    let mut request = ProtoMessage::default();
    request.message(1, &all);
    request.bytes
}

/// A point with the attributes of a series, which are in `field`, and its times.
fn begun(
    field: u32,
    key: &SeriesKey,
    condition: Option<&str>,
    (started, now): (u64, u64),
) -> ProtoMessage {
    let mut point = ProtoMessage::default();
    let own = key.tags.pairs().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let own = own.filter(|(name, value)| !name.is_empty() && !value.is_empty());
    for (name, value) in own.chain(condition.map(|value| (CONDITION, value))) {
        attribute(&mut point, field, name, value);
    }
    point.fixed64(2, started);
    point.fixed64(3, now);
    point
}

fn distribution(point: &mut ProtoMessage, trend: &Histogram, divisor: f64) {
    let mut counts = [0_u64; BOUNDS.len() + 1];
    for (low, high, count) in trend.number_buckets() {
        let value = f64::midpoint(low, high) / divisor;
        // A bound belongs to the bucket below it.
        counts[BOUNDS.partition_point(|bound| *bound < value)] += count;
    }
    let packed = |words: &mut dyn Iterator<Item = [u8; 8]>| words.flatten().collect::<Vec<u8>>();
    point.fixed64(4, trend.count());
    point.double(5, trend.sum_number() / divisor);
    point.bytes(6, &packed(&mut counts.iter().map(|count| count.to_le_bytes())));
    point.bytes(7, &packed(&mut BOUNDS.iter().map(|bound| bound.to_le_bytes())));
    if !trend.is_empty() {
        point.double(11, trend.min_number() / divisor);
        point.double(12, trend.max_number() / divisor);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gake_core::metric::{Definition, MetricKind, Tags};

    use super::*;

    const PROTO: &str = r#"
        syntax = "proto3";
        message Request { repeated Resource resource_metrics = 1; }
        message Resource { Attributes resource = 1; repeated Scoped scope_metrics = 2; }
        message Attributes { repeated Pair attributes = 1; }
        message Scoped { Scope scope = 1; repeated Metric metrics = 2; }
        message Scope { string name = 1; }
        message Metric {
          string name = 1; string unit = 3; Data gauge = 5; Data sum = 7; Data histogram = 9;
        }
        message Data { repeated Point points = 1; int32 temporality = 2; bool monotonic = 3; }
        message Point {
          fixed64 start = 2; fixed64 time = 3; repeated Pair attributes = 7;
          oneof value { double number = 4; sfixed64 whole = 6; }
        }
        message Pair { string key = 1; Value value = 2; }
        message Value { string text = 1; }
        service S { rpc Decode(Request) returns (Request); }
    "#;

    #[test]
    fn metrics_have_the_names_and_instruments_of_k6() {
        let mut table = SeriesTable::default();
        let mut add = |name: &str, kind, unit, values: &[f64]| {
            let metric = Arc::new(Definition { name: name.to_owned(), kind, unit });
            let series = table.intern(&metric, &Tags::new([("method", "GET"), ("group", "")]));
            values.iter().for_each(|value| table.add(series, *value, 0));
        };
        add("http_reqs", MetricKind::Counter, MetricUnit::Number, &[1.0, 1.0]);
        add("data_sent", MetricKind::Counter, MetricUnit::Bytes, &[7.0]);
        add("vus", MetricKind::Gauge, MetricUnit::Number, &[3.0]);
        add("checks", MetricKind::Rate, MetricUnit::Number, &[1.0, 1.0, 0.0]);
        let resource = ScriptResource {
            service: "shop".to_owned(),
            version: "1".to_owned(),
            prefix: "k6_".to_owned(),
        };
        let (bytes, rows) = request(&table, &resource, (1, 2));
        let schema =
            gake_wire::GrpcSchema::compile(&["o.proto".to_owned()], |_| Some(PROTO.into()));
        let json = schema.unwrap().method("/S/Decode").unwrap().decode(&bytes).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let all = &json["resourceMetrics"][0];
        assert_eq!(all["resource"]["attributes"][0]["value"]["text"], "shop");
        let metrics = all["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let names: Vec<_> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["k6_checks.total", "k6_data_sent", "k6_http_reqs", "k6_vus"]);
        let checks = metrics[0]["sum"]["points"].as_array().unwrap();
        let attributes = checks[0]["attributes"].as_array().unwrap();
        assert_eq!((attributes.len(), &attributes[1]["value"]["text"]), (2, &"nonzero".into()));
        assert_eq!((&checks[0]["whole"], &checks[1]["whole"]), (&"2".into(), &"1".into()));
        assert_eq!(metrics[1]["unit"], "By");
        assert_eq!((&metrics[2]["sum"]["points"][0]["number"], rows), (&2.0.into(), 5));
        assert_eq!(metrics[3]["gauge"]["points"][0]["number"], 3.0);
    }

    #[test]
    fn times_are_counted_up_to_each_bound() {
        let mut trend = Histogram::new();
        for milliseconds in [0.0, 4.0, 60.0, 60.0, 20_000.0] {
            trend.record_number(milliseconds * 1e6);
        }
        let mut point = ProtoMessage::default();
        distribution(&mut point, &trend, 1e6);
        // count, sum, and the tag and length of the counts take 21 bytes.
        let counts: Vec<u64> = point.bytes[21..149]
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(counts, [1, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
