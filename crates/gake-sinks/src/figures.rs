//! Seconds, readings and whole runs as rows, shared by all line formats.

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
    /// The start, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// The command, without secrets.
    pub command: &'a str,
}

/// One second of a run.
#[derive(Debug, Clone, Copy)]
pub struct ExportSecond<'a> {
    /// The number, from 0.
    pub at: u64,
    /// The records of the second, after the warm-up.
    pub tally: &'a Tally,
    /// Arrivals asked for in this second; `None` in a closed loop.
    pub asked: Option<f64>,
    /// Connections open.
    pub open: u64,
    /// The names of the tally's labels.
    pub labels: &'a [String],
}

/// The verdict of a finished run.
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

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FigureRow<'a> {
    pub(crate) measurement: &'static str,
    pub(crate) tags: Vec<(&'static str, Cow<'a, str>)>,
    pub(crate) fields: Vec<(&'static str, FigureField<'a>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FigureField<'a> {
    Count(u64),
    Number(f64),
    Text(Cow<'a, str>),
}

#[derive(Debug, Clone, Copy)]
struct Measurements {
    requests: &'static str,
    latency: &'static str,
    statuses: &'static str,
    faults: &'static str,
}

const OF_SECOND: Measurements = Measurements {
    requests: "gake_requests",
    latency: "gake_latency",
    statuses: "gake_statuses",
    faults: "gake_faults",
};

const OF_RUN: Measurements = Measurements {
    requests: "gake_run_requests",
    latency: "gake_run_latency",
    statuses: "gake_run_statuses",
    faults: "gake_run_faults",
};

/// The percentiles that line formats carry.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// The phases of a response time that are exported.
const PHASES: [LatencyMetric; 7] = [
    LatencyMetric::Service,
    LatencyMetric::Lateness,
    LatencyMetric::Blocked,
    LatencyMetric::Connect,
    LatencyMetric::Tls,
    LatencyMetric::FirstByte,
    LatencyMetric::Download,
];

const MS: f64 = 1e-6;

pub(crate) fn of_second<'a>(second: &ExportSecond<'a>) -> Vec<FigureRow<'a>> {
    let mut rows = of_tally(second.tally, second.labels, OF_SECOND);
    if let Some(total) = rows.first_mut() {
        total.fields.extend(second.asked.map(|asked| ("asked", FigureField::Number(asked))));
        total.fields.push(("fired", FigureField::Count(second.tally.fired)));
        let in_flight = second.tally.in_flight_ns as f64 / 1e9;
        total.fields.push(("in_flight", FigureField::Number(in_flight)));
        total.fields.push(("connections", FigureField::Count(second.open)));
    }
    rows
}

/// The rows of a whole run, with its own percentiles.
pub(crate) fn of_run<'a>(tally: &'a Tally, labels: &'a [String]) -> Vec<FigureRow<'a>> {
    of_tally(tally, labels, OF_RUN)
}

pub(crate) fn of_verdict(verdict: &ExportVerdict) -> FigureRow<'static> {
    FigureRow {
        measurement: "gake_run_verdict",
        tags: Vec::new(),
        fields: vec![
            ("validity", FigureField::Text(Cow::Borrowed(verdict.validity))),
            ("level", FigureField::Count(verdict.level)),
            ("met", FigureField::Count(verdict.met)),
            ("missed", FigureField::Count(verdict.missed)),
        ],
    }
}

pub(crate) fn of_readings(readings: &[GaugeReading]) -> Vec<FigureRow<'_>> {
    let row = |reading: &'_ GaugeReading| FigureRow {
        measurement: "gake_target",
        tags: vec![
            ("source", Cow::Owned(reading.source.clone())),
            ("level", Cow::Owned(reading.name.clone())),
        ],
        fields: vec![("value", FigureField::Number(reading.value))],
    };
    readings.iter().map(row).collect()
}

pub(crate) fn event<'a>(title: &'static str, text: impl Into<Cow<'a, str>>) -> FigureRow<'a> {
    FigureRow {
        measurement: "gake_events",
        tags: Vec::new(),
        fields: vec![
            ("title", FigureField::Text(Cow::Borrowed(title))),
            ("text", FigureField::Text(text.into())),
        ],
    }
}

fn of_tally<'a>(tally: &'a Tally, labels: &'a [String], names: Measurements) -> Vec<FigureRow<'a>> {
    let mut rows = vec![requests(tally, names)];
    rows.push(latency("response", &tally.latency.response(), names));
    for metric in PHASES {
        let histogram = tally.latency.of(metric);
        if !histogram.is_empty() {
            rows.push(latency(metric.name(), histogram, names));
        }
    }
    let count = |measurement, tag, value: Cow<'a, str>, count| FigureRow {
        measurement,
        tags: vec![(tag, value)],
        fields: vec![("count", FigureField::Count(count))],
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
        let of_label = |mut row: FigureRow<'a>| {
            row.tags.push(tag());
            row
        };
        let counts = FigureRow {
            measurement: names.requests,
            tags: vec![tag()],
            fields: vec![
                ("due", FigureField::Count(label.counts.due())),
                ("sent", FigureField::Count(label.counts.sent)),
                ("ok", FigureField::Count(label.counts.ok)),
                ("failed", FigureField::Count(label.counts.failed)),
            ],
        };
        rows.push(counts);
        rows.push(of_label(latency("response", &label.response, names)));
        rows.push(of_label(latency("service", &label.service, names)));
    }
    rows
}

fn requests<'a>(tally: &Tally, names: Measurements) -> FigureRow<'a> {
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
    let fields = fields.map(|(name, count)| (name, FigureField::Count(count))).to_vec();
    FigureRow { measurement: names.requests, tags: Vec::new(), fields }
}

/// A histogram in milliseconds. An empty one has only its count.
fn latency<'a>(metric: &'static str, histogram: &Histogram, names: Measurements) -> FigureRow<'a> {
    let mut fields = vec![("count", FigureField::Count(histogram.count()))];
    if !histogram.is_empty() {
        let ms = |nanos: f64| FigureField::Number(nanos * MS);
        fields.push(("sum", ms(histogram.sum() as f64)));
        fields.push(("min", ms(histogram.min() as f64)));
        fields.push(("max", ms(histogram.max() as f64)));
        let quantile = |q| ms(histogram.quantile(q) as f64);
        fields.extend(PERCENTILES.map(|(name, q)| (name, quantile(q))));
    }
    let tags = vec![("metric", Cow::Borrowed(metric))];
    FigureRow { measurement: names.latency, tags, fields }
}

/// The histograms exported as such, with their names.
pub(crate) fn histograms(latency: &Latency) -> Vec<(&'static str, Cow<'_, Histogram>)> {
    let mut all = vec![("response", latency.response())];
    let parts = [LatencyMetric::Service, LatencyMetric::Lateness];
    all.extend(parts.map(|metric| (metric.name(), Cow::Borrowed(latency.of(metric)))));
    all
}

/// The points of one request in k6's form: times in milliseconds.
pub(crate) fn raw_points<'a>(outcome: &'a Outcome, labels: &'a [String]) -> Vec<FigureRow<'a>> {
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
    let point = |measurement, value| FigureRow {
        measurement,
        tags: tags.clone(),
        fields: vec![("value", FigureField::Number(value))],
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
