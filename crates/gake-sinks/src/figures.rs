//! Seconds, readings and whole runs as rows, the form that all line formats share.

use std::borrow::Cow;

use gake_core::record::{
    ExchangeEnd, GaugeReading, Histogram, Latency, LatencyMetric, Outcome, Tally,
};

/// A run that is about to start.
#[derive(Debug, Clone, Copy)]
pub struct ExportStart<'a> {
    /// The name of the target.
    pub target: &'a str,
    /// The names of its endpoints.
    pub labels: &'a [String],
    /// When it starts, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// The command, without secrets.
    pub command: &'a str,
}

/// One second of a run.
#[derive(Debug, Clone, Copy)]
pub struct ExportSecond<'a> {
    /// Its number, from 0.
    pub at: u64,
    /// What was recorded in it, after the warm-up.
    pub tally: &'a Tally,
    /// Arrivals that the plan asked for in it; `None` in a closed loop.
    pub asked: Option<f64>,
    /// Connections open.
    pub open: u64,
    /// The names of the tally's labels.
    pub labels: &'a [String],
}

/// The verdict of a run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportVerdict {
    /// `valid`, `suspect` or `invalid`.
    pub validity: &'static str,
    /// The same as a number, from 0 for a valid run.
    pub level: u64,
    /// Objectives that were met.
    pub met: u64,
    /// Objectives that were missed.
    pub missed: u64,
}

/// A measurement with its tags and fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row<'a> {
    pub(crate) measurement: &'static str,
    pub(crate) tags: Vec<(&'static str, Cow<'a, str>)>,
    pub(crate) fields: Vec<(&'static str, Field<'a>)>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field<'a> {
    Count(u64),
    Number(f64),
    Text(Cow<'a, str>),
}

/// What rows are of: names of their measurements.
#[derive(Debug, Clone, Copy)]
struct Names {
    requests: &'static str,
    latency: &'static str,
    statuses: &'static str,
    faults: &'static str,
}

const OF_SECOND: Names = Names {
    requests: "gake_requests",
    latency: "gake_latency",
    statuses: "gake_statuses",
    faults: "gake_faults",
};

const OF_RUN: Names = Names {
    requests: "gake_run_requests",
    latency: "gake_run_latency",
    statuses: "gake_run_statuses",
    faults: "gake_run_faults",
};

/// The percentiles that line formats carry.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// The parts of a response time that are told beside it.
const PARTS: [LatencyMetric; 7] = [
    LatencyMetric::Service,
    LatencyMetric::Lateness,
    LatencyMetric::Blocked,
    LatencyMetric::Connect,
    LatencyMetric::Tls,
    LatencyMetric::FirstByte,
    LatencyMetric::Download,
];

/// Milliseconds in a nanosecond.
const MS: f64 = 1e-6;

/// The rows of a second.
pub(crate) fn of_second<'a>(second: &ExportSecond<'a>) -> Vec<Row<'a>> {
    let mut rows = of_tally(second.tally, second.labels, OF_SECOND);
    if let Some(total) = rows.first_mut() {
        total.fields.extend(second.asked.map(|asked| ("asked", Field::Number(asked))));
        total.fields.push(("fired", Field::Count(second.tally.fired)));
        let in_flight = second.tally.in_flight_ns as f64 / 1e9;
        total.fields.push(("in_flight", Field::Number(in_flight)));
        total.fields.push(("connections", Field::Count(second.open)));
    }
    rows
}

/// The rows of a whole run: its percentiles are the run's, which those of its seconds do not give.
pub(crate) fn of_run<'a>(tally: &'a Tally, labels: &'a [String]) -> Vec<Row<'a>> {
    of_tally(tally, labels, OF_RUN)
}

/// The row of a run's verdict.
pub(crate) fn of_verdict(verdict: &ExportVerdict) -> Row<'static> {
    Row {
        measurement: "gake_run_verdict",
        tags: Vec::new(),
        fields: vec![
            ("validity", Field::Text(Cow::Borrowed(verdict.validity))),
            ("level", Field::Count(verdict.level)),
            ("met", Field::Count(verdict.met)),
            ("missed", Field::Count(verdict.missed)),
        ],
    }
}

/// What a watched target said.
pub(crate) fn of_readings(readings: &[GaugeReading]) -> Vec<Row<'_>> {
    let row = |reading: &'_ GaugeReading| Row {
        measurement: "gake_target",
        tags: vec![
            ("source", Cow::Owned(reading.source.clone())),
            ("level", Cow::Owned(reading.name.clone())),
        ],
        fields: vec![("value", Field::Number(reading.value))],
    };
    readings.iter().map(row).collect()
}

/// Something that happened at an instant.
pub(crate) fn event<'a>(title: &'static str, text: impl Into<Cow<'a, str>>) -> Row<'a> {
    Row {
        measurement: "gake_events",
        tags: Vec::new(),
        fields: vec![
            ("title", Field::Text(Cow::Borrowed(title))),
            ("text", Field::Text(text.into())),
        ],
    }
}

fn of_tally<'a>(tally: &'a Tally, labels: &'a [String], names: Names) -> Vec<Row<'a>> {
    let mut rows = vec![requests(tally, names)];
    rows.push(latency("response", &tally.latency.response(), names));
    for metric in PARTS {
        let histogram = tally.latency.of(metric);
        if !histogram.is_empty() {
            rows.push(latency(metric.name(), histogram, names));
        }
    }
    let count = |measurement, tag, value: Cow<'a, str>, count| Row {
        measurement,
        tags: vec![(tag, value)],
        fields: vec![("count", Field::Count(count))],
    };
    let status = |&(status, n): &(u16, u64)| {
        count(names.statuses, "status", Cow::Owned(status.to_string()), n)
    };
    rows.extend(tally.statuses().iter().map(status));
    let faults = tally.faults().iter();
    rows.extend(faults.map(|&(f, n)| count(names.faults, "fault", Cow::Borrowed(f.name()), n)));
    for (name, label) in labels.iter().zip(tally.labels()) {
        if label.counts.due() == 0 {
            continue;
        }
        let tag = || ("name", Cow::Borrowed(name.as_str()));
        let of_label = |mut row: Row<'a>| {
            row.tags.push(tag());
            row
        };
        let counts = Row {
            measurement: names.requests,
            tags: vec![tag()],
            fields: vec![
                ("due", Field::Count(label.counts.due())),
                ("sent", Field::Count(label.counts.sent)),
                ("ok", Field::Count(label.counts.ok)),
                ("failed", Field::Count(label.counts.failed)),
            ],
        };
        rows.push(counts);
        rows.push(of_label(latency("response", &label.response, names)));
        rows.push(of_label(latency("service", &label.service, names)));
    }
    rows
}

fn requests<'a>(tally: &Tally, names: Names) -> Row<'a> {
    let counts = &tally.counts;
    let fields = [
        ("due", counts.due()),
        ("sent", counts.sent),
        ("ok", counts.ok),
        ("failed", counts.failed),
        ("unfinished", counts.unfinished),
        ("dropped", counts.dropped),
        ("bytes_in", counts.bytes_in),
        ("bytes_out", counts.bytes_out),
        ("opened", counts.opened),
    ];
    let fields = fields.map(|(name, count)| (name, Field::Count(count))).to_vec();
    Row { measurement: names.requests, tags: Vec::new(), fields }
}

/// A histogram in milliseconds. An empty one has its count alone.
fn latency<'a>(metric: &'static str, histogram: &Histogram, names: Names) -> Row<'a> {
    let mut fields = vec![("count", Field::Count(histogram.count()))];
    if !histogram.is_empty() {
        let ms = |nanos: f64| Field::Number(nanos * MS);
        fields.push(("sum", ms(histogram.sum() as f64)));
        fields.push(("min", ms(histogram.min() as f64)));
        fields.push(("max", ms(histogram.max() as f64)));
        let quantile = |q| ms(histogram.quantile(q) as f64);
        fields.extend(PERCENTILES.map(|(name, q)| (name, quantile(q))));
    }
    let tags = vec![("metric", Cow::Borrowed(metric))];
    Row { measurement: names.latency, tags, fields }
}

/// The histograms that monitoring systems are given whole, in seconds, with their names.
pub(crate) fn histograms(latency: &Latency) -> Vec<(&'static str, Cow<'_, Histogram>)> {
    let mut all = vec![("response", latency.response())];
    let parts = [LatencyMetric::Service, LatencyMetric::Lateness];
    all.extend(parts.map(|metric| (metric.name(), Cow::Borrowed(latency.of(metric)))));
    all
}

/// The points of one request, as k6 writes them: times in milliseconds.
pub(crate) fn raw_points<'a>(outcome: &'a Outcome, labels: &'a [String]) -> Vec<Row<'a>> {
    let exchange = &outcome.exchange;
    let mut tags: Vec<(&'static str, Cow<'a, str>)> = Vec::new();
    if let Some(name) = labels.get(usize::from(exchange.label)) {
        tags.push(("name", Cow::Borrowed(name)));
    }
    let is_expected = match exchange.end {
        ExchangeEnd::Response(answer) => {
            tags.push(("status", Cow::Owned(answer.status.to_string())));
            (200..400).contains(&answer.status) && !exchange.wrong_body
        }
        ExchangeEnd::Fault(fault) => {
            tags.push(("error", Cow::Borrowed(fault.name())));
            false
        }
        ExchangeEnd::Unfinished => {
            tags.push(("error", Cow::Borrowed("unfinished")));
            false
        }
    };
    tags.push(("expected_response", Cow::Borrowed(if is_expected { "true" } else { "false" })));
    let point = |measurement, value| Row {
        measurement,
        tags: tags.clone(),
        fields: vec![("value", Field::Number(value))],
    };
    let ms = |nanos: u64| nanos as f64 * MS;
    let mut points = vec![
        point("http_reqs", 1.0),
        point("http_req_failed", f64::from(u8::from(!is_expected))),
        point("gake_response", ms(outcome.response())),
    ];
    if matches!(exchange.end, ExchangeEnd::Response(_)) {
        let first = exchange.first_byte.unwrap_or(exchange.done);
        points.extend([
            point("http_req_duration", ms(exchange.service())),
            point("http_req_waiting", ms(first.saturating_sub(exchange.write))),
            point("http_req_receiving", ms(exchange.done.saturating_sub(first))),
            point("http_req_blocked", ms(exchange.blocked)),
            point("http_req_connecting", ms(exchange.connect.unwrap_or(0))),
            point("http_req_tls_handshaking", ms(exchange.tls.unwrap_or(0))),
        ]);
    }
    points
}
