//! Formats on one second that every test knows.

use super::influx::Influx;
use super::otlp::Otlp;
use super::otlp_grpc::OtlpGrpc;
use super::page::OpenMetrics;
use super::rows::{CsvRows, JsonRows, RowWriter, Rows};
use super::series::SeriesFormat;
use super::statsd::{Graphite, StatsD};
use super::*;
use crate::figures::{Field, Row};
use gake_core::plan::ExpectedStatus;
use gake_core::record::{Exchange, ExchangeEnd, ResponseSummary, Tally};

#[test]
fn otlp_over_grpc_is_a_call_with_a_deadline() {
    let address = "otlp-grpc=http://127.0.0.1:4317?token=t".parse().unwrap();
    let post = post(&address);
    assert_eq!(post.protocol, Protocol::Http2);
    let has = |name: &str, value: &str| {
        post.headers.iter().any(|(known, is)| known.eq_ignore_ascii_case(name) && is == value)
    };
    assert!(has("content-type", "application/grpc") && has("te", "trailers"));
    assert!(has("grpc-timeout", "5000000u") && has("authorization", "Bearer t"));
}

const MS: u64 = 1_000_000;
const START: u64 = 1_700_000_000_000_000_000;

/// A second with `ok` answers of 200 after 10 ms and one of 503 after 20 ms.
fn tally(ok: usize) -> Tally {
    let mut tally = Tally::new(1);
    let mut add = |status, millis: u64| {
        let end = ExchangeEnd::Response(ResponseSummary { status, body_bytes: 5 });
        let done = millis * MS;
        let exchange = Exchange {
            end,
            done,
            written: true,
            bytes_out: 10,
            first_byte: Some(done),
            ..Exchange::unfinished(0)
        };
        tally.record_exchange(0, &exchange, &ExpectedStatus::default());
    };
    (0..ok).for_each(|_| add(200, 10));
    add(503, 20);
    tally
}

fn second<'a>(tally: &'a Tally, labels: &'a [String]) -> ExportSecond<'a> {
    ExportSecond { at: 2, tally, asked: Some(100.0), open: 7, labels }
}

fn started(format: &mut dyn Format) -> Batch {
    let start = ExportStart {
        target: "http://h/",
        labels: &[],
        started_unix_ns: START,
        command: "gake run http://h/",
    };
    format.begin(&start)
}

fn lines(format: &mut dyn Format, ok: usize) -> Vec<String> {
    started(format);
    let tally = tally(ok);
    let batch = format.second(&second(&tally, &[]));
    String::from_utf8(batch.bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn influx_gets_a_line_a_series_and_second() {
    let tags = vec![("env".to_owned(), "a b".to_owned())];
    let lines = lines(&mut Rows::new(Influx::new(tags), false), 3);
    assert_eq!(
        lines[0],
        "gake_requests,env=a\\ b due=4i,sent=4i,ok=3i,failed=1i,unfinished=0i,dropped=0i,\
         bytes_in=0i,bytes_out=40i,opened=0i,asked=100,fired=0i,in_flight=0,connections=7i \
         1700000002000000000"
    );
    assert!(lines[1].starts_with("gake_latency,env=a\\ b,metric=response count=4i,sum=50,"));
    assert!(
        lines.iter().any(|line| line.starts_with("gake_statuses,env=a\\ b,status=503 count=1i"))
    );
}

/// A destination of every kind that gets the figures of each second.
const EVERY_KIND: [&str; 12] = [
    "influxdb=http://h:1/d",
    "influxdb=http://h:1/d?version=3",
    "prometheus-rw=http://h:1/",
    "prometheus-rw=http://h:1/?native",
    "prometheus=h:1",
    "otlp=http://h:1",
    "otlp-grpc=http://h:1",
    "statsd=h:1",
    "graphite=h:1",
    "nats=nats://h:1",
    "json=figures.json",
    "csv=figures.csv",
];

/// A second with `requests` answers after 1 to 50 ms, one in ten of them a 503.
fn spread(requests: u64) -> Tally {
    let mut tally = Tally::new(1);
    for number in 0..requests {
        let status = if number % 10 == 0 { 503 } else { 200 };
        let done = (1 + number % 50) * MS;
        let exchange = Exchange {
            end: ExchangeEnd::Response(ResponseSummary { status, body_bytes: 5 }),
            done,
            written: true,
            bytes_out: 10,
            first_byte: Some(done),
            ..Exchange::unfinished(0)
        };
        tally.record_exchange(0, &exchange, &ExpectedStatus::default());
    }
    tally
}

#[test]
fn fifty_thousand_requests_a_second_are_as_many_points_as_fifty() {
    for text in EVERY_KIND {
        let address: SinkAddress = text.parse().unwrap();
        let points = |requests| {
            let mut format = of(&address);
            started(&mut *format);
            let tally = spread(requests);
            let batch = format.second(&second(&tally, &[]));
            (batch.rows, batch.bytes.len())
        };
        let ((few, bytes), (many, more)) = (points(50), points(50_000));
        assert!(few > 0 && few == many, "{text}: {few} and {many}");
        // Longer numbers, and no more of them.
        assert!(more < 2 * bytes, "{text}: {bytes} and {more}");
    }
}

#[test]
fn a_hostile_tag_breaks_no_line() {
    let hostile = "a,b=c d\n\"e\"\u{1b}[2J\\";
    let row = Row {
        measurement: "gake_target",
        tags: vec![("source", hostile.into()), ("level", "".into())],
        fields: vec![("value", Field::Number(1.0)), ("text", Field::Text(hostile.into()))],
    };
    let mut written = Vec::new();
    assert!(Influx::new(Vec::new()).write(&row, 1, &mut written));
    let written = String::from_utf8(written).unwrap();
    let tag = "gake_target,source=a\\,b\\=c\\ d\\n\"e\"\\u001b[2J\\u005c value=1";
    assert!(written.starts_with(tag), "{written}");
    assert!(written.ends_with("\\\\\" 1\n"), "{written}");
    for line in [
        string(|out| StatsD::new("p".to_owned(), Vec::new()).write(&row, 1, out)),
        string(|out| Graphite::new("p".to_owned(), Vec::new()).write(&row, 1_000_000_000, out)),
    ] {
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    let csv = string(|out| CsvRows::new(Vec::new()).write(&row, 1, out));
    assert!(csv.contains("\"source=a,b=c d\n\"\"e\"\""), "{csv}");
    let json = string(|out| JsonRows::new(Vec::new()).write(&row, 1, out));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["tags"]["source"], hostile);
}

fn string(write: impl FnOnce(&mut Vec<u8>) -> bool) -> String {
    let mut out = Vec::new();
    assert!(write(&mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn statsd_counts_and_graphite_has_the_time() {
    let tags = || vec![("env".to_owned(), "t".to_owned())];
    let statsd = lines(&mut Rows::new(StatsD::new("p".to_owned(), tags()), false), 3);
    assert!(statsd.contains(&"p.requests.ok:3|c|#env:t".to_owned()), "{statsd:?}");
    assert!(statsd.iter().any(|l| l.starts_with("p.latency.p99:") && l.contains("|g|#env:t,")));
    let graphite = lines(&mut Rows::new(Graphite::new("p".to_owned(), tags()), false), 3);
    assert!(graphite.contains(&"p.requests.ok;env=t 3 1700000002".to_owned()), "{graphite:?}");
}

#[test]
fn the_page_has_totals_and_buckets() {
    let mut format =
        SeriesFormat::new(OpenMetrics::new(vec![("1 env".to_owned(), "a\"b".to_owned())]));
    started(&mut format);
    let tally = tally(3);
    format.second(&second(&tally, &[]));
    let page = String::from_utf8(format.second(&second(&tally, &[])).bytes).unwrap();
    for line in [
        "gake_requests_total{_1_env=\"a\\\"b\",outcome=\"ok\"} 6",
        "gake_responses_total{_1_env=\"a\\\"b\",status=\"503\"} 2",
        "gake_response_seconds_bucket{_1_env=\"a\\\"b\",le=\"0.005\"} 0",
        "gake_response_seconds_bucket{_1_env=\"a\\\"b\",le=\"0.05\"} 8",
        "gake_response_seconds_count{_1_env=\"a\\\"b\"} 8",
        "gake_response_seconds_sum{_1_env=\"a\\\"b\"} 0.1",
        "gake_asked_rate{_1_env=\"a\\\"b\"} 100",
    ] {
        assert!(page.lines().any(|known| known == line), "{line}\n{page}");
    }
    assert!(page.ends_with("# EOF\n"));
}

#[test]
fn an_exponential_histogram_holds_every_value() {
    let mut format = SeriesFormat::new(Otlp::new("gake".to_owned(), Vec::new()));
    started(&mut format);
    let tally = tally(3);
    let request: serde_json::Value =
        serde_json::from_slice(&format.second(&second(&tally, &[])).bytes).unwrap();
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let response = metrics.iter().find(|metric| metric["name"] == "gake.response").unwrap();
    let data = &response["exponentialHistogram"]["dataPoints"][0];
    assert_eq!((&data["count"], &data["sum"]), (&"4".into(), &0.05.into()));
    let counts = data["positive"]["bucketCounts"].as_array().unwrap();
    let count = |value: &serde_json::Value| value.as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(counts.iter().map(count).sum::<u64>(), 4);
    // 10 ms lies within its bucket: base^offset < 0.01 <= base^(offset + 1), within its error.
    let offset = data["positive"]["offset"].as_f64().unwrap();
    let base = 2f64.powf(1.0 / 64.0);
    assert!(base.powf(offset) < 0.0101 && 0.0099 < base.powf(offset + 1.0), "{offset}");
    assert_eq!(count(&counts[0]), 3);
}

/// The messages of OpenTelemetry's collector, as far as they are written.
const COLLECTOR: &str = r#"
    syntax = "proto3";
    message Request { repeated ResourceMetrics resource_metrics = 1; }
    message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
    message Resource { repeated KeyValue attributes = 1; }
    message KeyValue { string key = 1; AnyValue value = 2; }
    message AnyValue { oneof value { string string_value = 1; } }
    message ScopeMetrics { Scope scope = 1; repeated Metric metrics = 2; }
    message Scope { string name = 1; string version = 2; }
    message Metric {
      string name = 1; string description = 2; string unit = 3;
      oneof data { Gauge gauge = 5; Sum sum = 7; Exponential exponential_histogram = 10; }
    }
    message Gauge { repeated Number data_points = 1; }
    message Sum { repeated Number data_points = 1; int32 aggregation_temporality = 2; bool is_monotonic = 3; }
    message Number {
      fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
      oneof value { double as_double = 4; } repeated KeyValue attributes = 7;
    }
    message Exponential { repeated Point data_points = 1; int32 aggregation_temporality = 2; }
    message Point {
      fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3; fixed64 count = 4;
      optional double sum = 5; sint32 scale = 6; fixed64 zero_count = 7; Buckets positive = 8;
      optional double min = 12; optional double max = 13;
    }
    message Buckets { sint32 offset = 1; repeated uint64 bucket_counts = 2; }
    service S { rpc Decode(Request) returns (Request); }
"#;

/// A value of JSON without what protobuf leaves out: zeros, empty texts and lists.
fn without_defaults(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    let is_default =
        |value: &Value| [0.into(), "0".into(), "".into(), Value::Array(Vec::new())].contains(value);
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, v)| *name == "asDouble" || !is_default(v));
            kept.map(|(name, value)| (name.clone(), without_defaults(value))).collect()
        }
        Value::Array(values) => values.iter().map(without_defaults).collect(),
        Value::Number(number) => number.as_f64().into(),
        other => other.clone(),
    }
}

#[test]
fn a_collector_gets_the_same_over_grpc_and_over_http() {
    let tags = || vec![("env".to_owned(), "t".to_owned())];
    let mut http = SeriesFormat::new(Otlp::new("shop".to_owned(), tags()));
    let mut grpc = SeriesFormat::new(OtlpGrpc::new("shop".to_owned(), tags()));
    let tally = tally(3);
    let [http, grpc] = [&mut http as &mut dyn Format, &mut grpc].map(|format| {
        started(format);
        format.second(&second(&tally, &[]))
    });
    assert_eq!(http.rows, grpc.rows);
    let (prefix, message) = grpc.bytes.split_at(5);
    assert_eq!(prefix[1..], u32::try_from(message.len()).unwrap().to_be_bytes());
    let schema = gake_wire::GrpcSchema::compile(&["collector.proto".to_owned()], |_| {
        Some(COLLECTOR.to_owned())
    });
    let decoded = schema.unwrap().method("/S/Decode").unwrap().decode(message).unwrap();
    let [http, grpc] = [http.bytes.as_slice(), decoded.as_bytes()]
        .map(|json| without_defaults(&serde_json::from_slice(json).unwrap()));
    assert_eq!(http, grpc);
}
