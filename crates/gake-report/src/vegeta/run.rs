//! Converts results to a run as far as possible; an event lists what Vegeta does not record.

use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::{Plan, Stage, Timeouts};
use gake_core::record::{
    Counts, Fault, Generator, LatencyMetric, Phase, Provenance, Run, RunEnd, RunEvent, Series,
    SeriesPoint, Tally, WatchRecord,
};
use gake_core::schedule::Process;

use super::read::{RecordError, ResultReader};
use super::record::VegetaRecord;

/// Most labels; the rest is counted under `other`.
const LABELS_MAX: usize = 100;

/// Most open seconds, whose figures still grow. A later result counts in the total, but not in the
/// series.
const OPEN_SECONDS: usize = 60;

/// The longest run: a result further from the first one has a broken clock.
const LENGTH_MAX: i64 = 31 * 86_400 * SECOND as i64;

/// Most warnings kept; more are counted.
const WARNINGS_MAX: usize = 10;

/// The limits of such a run.
const UNKNOWN: &str = "made from Vegeta's results: bytes count bodies only; lateness, service \
                       time, connections and what the generator itself used are not known, so \
                       whether it kept up was not judged";

/// Reads results as a run, with warnings about what was left out.
///
/// # Errors
/// When there are no results, or they cannot be read.
pub fn read_run<R: BufRead>(
    mut reader: ResultReader<R>,
) -> Result<(Run, Vec<String>), RecordError> {
    let mut builder = None;
    let mut warnings = Vec::new();
    let mut more = 0_u64;
    loop {
        let warning = match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => {
                let builder = builder.get_or_insert_with(|| RunBuilder::new(&record));
                if builder.add(&record) {
                    continue;
                }
                format!("a result of {} was left out: a month from the first", record.attack)
            }
            Err(error @ (RecordError::Foreign | RecordError::Io(_))) => return Err(error),
            Err(error) => error.to_string(),
        };
        if warnings.len() < WARNINGS_MAX {
            warnings.push(warning);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        warnings.push(format!("{more} more were left out"));
    }
    Ok((builder.ok_or(RecordError::Foreign)?.run(), warnings))
}

/// A run under construction.
pub(super) struct RunBuilder {
    name: String,
    tally: Tally,
    labels: Vec<String>,
    /// The first result's timestamp, the reference for others.
    reference: i64,
    earliest: i64,
    latest: i64,
    end: i64,
    /// The start of the series: the second of the earliest timestamp when the first point closed.
    first_second: Option<i64>,
    series: Series,
    open: BTreeMap<i64, Tally>,
    /// Seconds before this one are closed.
    closed: i64,
    /// Closed seconds and their starts, if they are collected.
    closed_seconds: Option<VecDeque<(u64, Tally)>>,
    /// The number of labels in the tally of a second.
    second_labels: usize,
}

impl RunBuilder {
    fn new(first: &VegetaRecord) -> Self {
        let at = first.timestamp.unix_ns;
        Self {
            name: first.attack.clone(),
            tally: Tally::default(),
            labels: Vec::new(),
            reference: at,
            earliest: at,
            latest: at,
            end: first.end(),
            first_second: None,
            series: Series::default(),
            open: BTreeMap::new(),
            closed: i64::MIN,
            closed_seconds: None,
            second_labels: 0,
        }
    }

    /// As [`RunBuilder::new`], and collects each second as it closes, with that many labels.
    pub(super) fn with_seconds(first: &VegetaRecord, labels: usize) -> Self {
        Self { closed_seconds: Some(VecDeque::new()), second_labels: labels, ..Self::new(first) }
    }

    pub(super) fn next_closed(&mut self) -> Option<(u64, Tally)> {
        self.closed_seconds.as_mut()?.pop_front()
    }

    /// Counts a result; false if its time is invalid.
    pub(super) fn add(&mut self, record: &VegetaRecord) -> bool {
        let (at, end) = (record.timestamp.unix_ns, record.end());
        let far =
            |instant: i64| instant.saturating_sub(self.reference).saturating_abs() > LENGTH_MAX;
        if far(at) || far(end) || record.latency < 0 {
            return false;
        }
        self.earliest = self.earliest.min(at);
        self.latest = self.latest.max(at);
        self.end = self.end.max(end);
        let result = RequestResult::of(record);
        let label = self.label(record);
        result.count(&mut self.tally, label);
        self.count_seconds(at, end, &result, label);
        true
    }

    fn label(&mut self, record: &VegetaRecord) -> u16 {
        let name = format!("{} {}", record.method, path(&record.url));
        let at = self.labels.iter().position(|known| *known == name).unwrap_or_else(|| {
            if self.labels.len() <= LABELS_MAX {
                let full = self.labels.len() == LABELS_MAX;
                self.labels.push(if full { "other".to_owned() } else { name });
                self.tally.grow_labels(self.labels.len());
            }
            self.labels.len() - 1
        });
        at as u16
    }

    fn count_seconds(&mut self, at: i64, end: i64, result: &RequestResult, label: u16) {
        let second = |instant: i64| instant.div_euclid(SECOND as i64);
        let (mut first, mut last) = (second(at), second(end));
        if self.closed_seconds.is_some() {
            // A late result counts in the next open second, so that their sum is the total.
            (first, last) = (first.max(self.closed), last.max(self.closed));
        } else if last < self.closed {
            return;
        }
        let labels = self.second_labels;
        result.count(self.open.entry(last).or_insert_with(|| Tally::new(labels)), label);
        if first >= self.closed {
            self.open.entry(first).or_insert_with(|| Tally::new(labels)).fired += 1;
        }
        // The time in flight in each open second.
        for (&second, tally) in self.open.range_mut(first..=last) {
            let start = second * SECOND as i64;
            let within = end.min(start + SECOND as i64) - at.max(start);
            tally.in_flight_ns += within.max(0) as u128;
        }
        while self.open.len() > OPEN_SECONDS {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some((second, tally)) = self.open.pop_first() else { return };
        let first = *self.first_second.get_or_insert(self.earliest.div_euclid(SECOND as i64));
        let at = second.saturating_sub(first).max(0) as u64;
        let next = self.series.points().last().map_or(0, |last| last.second + last.seconds);
        for empty in next..at {
            self.series.push(SeriesPoint { second: empty, seconds: 1, ..SeriesPoint::default() });
        }
        let at = at.max(next);
        self.series.push(SeriesPoint::new(at, &tally));
        self.closed = second + 1;
        if let Some(closed_seconds) = &mut self.closed_seconds {
            closed_seconds.push_back((at, tally));
        }
    }

    pub(super) fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
    }

    fn run(mut self) -> Run {
        self.close_all();
        let requests = self.tally.counts.sent;
        let span = self.latest.saturating_sub(self.earliest) as Nanos;
        // From the first request to where the one after the last would be.
        let sending = match requests {
            0 | 1 => SECOND,
            _ => (span as f64 * requests as f64 / (requests - 1) as f64) as Nanos,
        };
        let sending = sending.max(1);
        if self.labels.len() < 2 {
            self.labels.clear();
        }
        let elapsed = (self.end.saturating_sub(self.earliest) as Nanos).max(sending);
        Run {
            plan: plan(self.name, self.labels, requests, sending),
            started_unix_ns: self.earliest.max(0) as u64,
            measured: sending,
            sending,
            completing: elapsed,
            elapsed,
            ending: RunEnd::Done,
            asked_rate: None,
            tally: self.tally,
            warmup: Counts::default(),
            series: self.series,
            peak_connections: 0,
            generator: Generator::default(),
            agents: Vec::new(),
            watched: WatchRecord::default(),
            bodies: gake_core::record::FailedBodies::default(),
            scenarios: Vec::new(),
            origin: Provenance::default(),
            events: vec![RunEvent::new(elapsed, UNKNOWN)],
        }
    }
}

/// The plan, inferred from the results.
fn plan(name: String, labels: Vec<String>, requests: u64, sending: Nanos) -> Plan {
    let length = Duration::from_nanos(sending);
    let rate = requests as f64 / length.as_secs_f64();
    let name = if name.is_empty() { String::new() } else { format!(" {name:?}") };
    let load = Load::Open { stages: vec![Stage::step(rate, length)], process: Process::Uniform };
    Plan {
        connections: 0,
        max_in_flight: 0,
        timeouts: Timeouts { connect: Duration::MAX, first_byte: None, total: Duration::MAX },
        drain: Duration::ZERO,
        threads: 0,
        labels,
        ..Plan::new(format!("Vegeta's attack{name}"), load)
    }
}

/// The outcome of a request.
struct RequestResult {
    end: RequestEnd,
    response: Nanos,
    body_in: u64,
    body_out: u64,
}

enum RequestEnd {
    Answered { status: u16, ok: bool },
    Fault(Fault),
    Unfinished,
}

impl RequestResult {
    fn of(record: &VegetaRecord) -> Self {
        let end = match record.code {
            0 => fault(&record.error).map_or(RequestEnd::Unfinished, RequestEnd::Fault),
            status => RequestEnd::Answered { status, ok: record.is_success() },
        };
        Self {
            end,
            response: record.latency.max(0) as Nanos,
            body_in: record.bytes_in,
            body_out: record.bytes_out,
        }
    }

    fn counts(&self) -> Counts {
        let (ok, unfinished) = match self.end {
            RequestEnd::Answered { ok, .. } => (ok, false),
            RequestEnd::Fault(_) => (false, false),
            RequestEnd::Unfinished => (false, true),
        };
        Counts {
            started: 1,
            interrupted: u64::from(unfinished),
            sent: 1,
            written: u64::from(matches!(self.end, RequestEnd::Answered { .. })),
            ok: u64::from(ok),
            failed: u64::from(!ok && !unfinished),
            unfinished: u64::from(unfinished),
            bytes_in: self.body_in,
            body_bytes: self.body_in,
            bytes_out: self.body_out,
            ..Counts::default()
        }
    }

    /// The histogram of its response time, as in [`Tally::record`].
    fn metric(&self) -> LatencyMetric {
        match self.end {
            RequestEnd::Answered { ok: true, .. } => LatencyMetric::OkResponse,
            RequestEnd::Answered { .. } | RequestEnd::Unfinished => LatencyMetric::OtherResponse,
            RequestEnd::Fault(Fault::Timeout(_) | Fault::ConnectTimeout) => {
                LatencyMetric::OtherResponse
            }
            RequestEnd::Fault(_) => LatencyMetric::FaultResponse,
        }
    }

    /// Counts it, also for its label if the tally has it.
    fn count(&self, tally: &mut Tally, label: u16) {
        tally.counts.merge(&self.counts());
        tally.latency.of_mut(self.metric()).record(self.response);
        match self.end {
            RequestEnd::Answered { status, .. } => tally.add_status(status, 1),
            RequestEnd::Fault(fault) => tally.add_fault(fault, 1),
            RequestEnd::Unfinished => {}
        }
        if let Some(label) = tally.label_mut(label) {
            label.counts.merge(&self.counts());
            if self.metric() != LatencyMetric::FaultResponse {
                label.response.record(self.response);
            }
        }
    }
}

/// ENETUNREACH and EHOSTUNREACH.
const NETWORK_UNREACHABLE: i32 = 101;
const HOST_UNREACHABLE: i32 = 113;

/// The fault that Go's message means; `None` for a request cancelled by its own side.
fn fault(error: &str) -> Option<Fault> {
    let has = |words: &str| error.contains(words);
    Some(if has("context canceled") {
        return None;
    } else if has("connection refused") {
        Fault::ConnectRefused
    } else if has("no such host") {
        Fault::Dns
    } else if has("too many open files") {
        Fault::NoDescriptors
    } else if has("cannot assign requested address") {
        Fault::NoLocalPort
    } else if has("while reading body") {
        Fault::Timeout(Phase::Body)
    } else if has("awaiting headers") || has("awaiting response headers") {
        Fault::Timeout(Phase::FirstByte)
    } else if has("dial") && has("i/o timeout") {
        Fault::ConnectTimeout
    } else if has("i/o timeout") || has("deadline exceeded") {
        Fault::Timeout(Phase::FirstByte)
    } else if has("network is unreachable") {
        Fault::Unreachable(NETWORK_UNREACHABLE)
    } else if has("no route to host") {
        Fault::Unreachable(HOST_UNREACHABLE)
    } else if has("dial") && has("connection reset") {
        Fault::ConnectReset
    } else if has("connection reset") {
        Fault::Reset
    } else if has("broken pipe") {
        Fault::Write
    } else if has("tls: ") || has("x509: ") {
        Fault::Tls("as reported by Vegeta")
    } else if has("malformed") {
        Fault::Malformed("as reported by Vegeta")
    } else if has("stopped after") {
        Fault::RedirectLimit
    } else if has("unexpected EOF") {
        Fault::ClosedEarly(Phase::Body)
    } else if has("EOF") {
        Fault::ClosedEarly(Phase::FirstByte)
    } else {
        Fault::Other(0)
    })
}

/// The path of a URL, without the query.
fn path(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("/", |at| &after_scheme[at..]);
    path.split(['?', '#']).next().unwrap_or("/")
}
