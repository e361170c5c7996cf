//! What `nighthawk_client` prints: its own result, and the same in four formats.

mod console;
mod fortio;
mod json;

use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{ExchangeEnd, Histogram, Outcome};

use crate::spectrum::{Level, levels};
use crate::tool_run::is_connect_fault;
pub use console::{csv, human};
pub use fortio::fortio;
pub use json::json;

/// What a run was asked to do, as the structured formats repeat it.
#[derive(Debug, Clone, Default)]
pub struct NighthawkSettings {
    /// The target.
    pub uri: String,
    /// Requests a second of a worker.
    pub rps: u32,
    /// Connections of a worker.
    pub connections: u32,
    /// How long; `None` when only a predicate or a signal ends the run.
    pub duration: Option<Duration>,
    /// For opening a connection.
    pub timeout: Duration,
    /// What was given as concurrency.
    pub concurrency: String,
    /// The output format's name.
    pub output_format: String,
    /// The verbosity's name.
    pub verbosity: String,
    /// The address family's name.
    pub address_family: String,
    /// The sequencer's idle strategy.
    pub idle_strategy: String,
    /// The method.
    pub method: String,
    /// Header lines.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body.
    pub body_size: u32,
    /// Whether overflow is dropped.
    pub open_loop: bool,
    /// Requests at once.
    pub burst_size: u32,
    /// The longest random delay.
    pub jitter: Duration,
    /// Most requests of a worker that wait for a connection.
    pub max_pending: u32,
    /// Most requests of a worker in flight.
    pub max_active: u32,
    /// Most requests of a connection.
    pub max_per_connection: u32,
    /// With HTTP/2 and HTTP/3, most requests at once on a connection.
    pub max_streams: Option<u32>,
    /// Whether the protocol is HTTP/3.
    pub is_http3: bool,
    /// Counters that end the run, with what they must exceed.
    pub termination: Vec<(String, u64)>,
    /// Counters that fail it.
    pub failure: Vec<(String, u64)>,
    /// Labels.
    pub labels: Vec<String>,
}

/// What a histogram of a [`Worker`] measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Time,
    Bytes,
}

/// The statistics in Nighthawk's order, with their names for people.
const STATISTICS: [(&str, &str, Unit); 12] = [
    ("benchmark_http_client.latency_1xx", "benchmark_http_client.latency_1xx", Unit::Time),
    ("benchmark_http_client.latency_2xx", "benchmark_http_client.latency_2xx", Unit::Time),
    ("benchmark_http_client.latency_3xx", "benchmark_http_client.latency_3xx", Unit::Time),
    ("benchmark_http_client.latency_4xx", "benchmark_http_client.latency_4xx", Unit::Time),
    ("benchmark_http_client.latency_5xx", "benchmark_http_client.latency_5xx", Unit::Time),
    ("benchmark_http_client.latency_xxx", "benchmark_http_client.latency_xxx", Unit::Time),
    ("benchmark_http_client.queue_to_connect", "Queueing and connection setup latency", Unit::Time),
    ("benchmark_http_client.request_to_response", "Request start to response end", Unit::Time),
    ("benchmark_http_client.response_body_size", "Response body size in bytes", Unit::Bytes),
    ("benchmark_http_client.response_header_size", "Response header size in bytes", Unit::Bytes),
    (
        "sequencer.blocking",
        "Blocking. Results are skewed when significant numbers are reported here.",
        Unit::Time,
    ),
    ("sequencer.callback", "Initiation to completion", Unit::Time),
];

const QUEUE_TO_CONNECT: usize = 6;
const REQUEST_TO_RESPONSE: usize = 7;
const BODY_SIZE: usize = 8;
const HEADER_SIZE: usize = 9;
const BLOCKING: usize = 10;
const CALLBACK: usize = 11;

/// The counters, in Nighthawk's order. Those that stay at 0 are not shown.
pub const COUNTERS: [&str; 17] = [
    "benchmark.http_1xx",
    "benchmark.http_2xx",
    "benchmark.http_3xx",
    "benchmark.http_4xx",
    "benchmark.http_5xx",
    "benchmark.http_xxx",
    "benchmark.pool_connection_failure",
    "benchmark.pool_overflow",
    "benchmark.stream_resets",
    "upstream_cx_http1_total",
    "upstream_cx_http2_total",
    "upstream_cx_http3_total",
    "upstream_cx_rx_bytes_total",
    "upstream_cx_total",
    "upstream_cx_tx_bytes_total",
    "upstream_rq_pending_overflow",
    "upstream_rq_total",
];

const POOL_FAILURE: usize = 6;
const OVERFLOW: usize = 7;
const RESETS: usize = 8;
const CX_HTTP1: usize = 9;
const CX_HTTP2: usize = 10;
const CX_HTTP3: usize = 11;
const RX_BYTES: usize = 12;
const CX_TOTAL: usize = 13;
const TX_BYTES: usize = 14;
const PENDING_OVERFLOW: usize = 15;
const RQ_TOTAL: usize = 16;

/// What one worker saw.
#[derive(Debug, Clone, Default)]
pub struct Worker {
    statistics: [Histogram; STATISTICS.len()],
    counters: [u64; COUNTERS.len()],
    /// The counter of connections, unless they speak HTTP/1.1.
    connections: Option<usize>,
}

impl Worker {
    /// A worker that has seen nothing.
    pub fn new(settings: &NighthawkSettings) -> Self {
        let connections = match (settings.is_http3, settings.max_streams) {
            (true, _) => Some(CX_HTTP3),
            (false, Some(_)) => Some(CX_HTTP2),
            (false, None) => None,
        };
        Self { connections, ..Self::default() }
    }

    /// Adds the outcome of one request. A request whose wait for a connection `queues` has it in its
    /// queueing; otherwise the wait blocked the sequencer, and it starts after it.
    pub fn record(&mut self, outcome: &Outcome, queues: bool) {
        let exchange = &outcome.exchange;
        let blocked = if queues { 0 } else { outcome.blocked };
        let start = outcome.arrival.due + blocked;
        if blocked > 0 {
            self.statistics[BLOCKING].record(blocked);
        }
        self.counters[RX_BYTES] += exchange.bytes_in;
        self.counters[TX_BYTES] += exchange.bytes_out;
        if exchange.connect.is_some() {
            self.counters[CX_TOTAL] += 1;
            self.counters[self.connections.unwrap_or(CX_HTTP1)] += 1;
        }
        match exchange.end {
            ExchangeEnd::Response(answer) => {
                let class = match answer.status {
                    status @ 100..=599 => usize::from(status / 100) - 1,
                    _ => 5,
                };
                let service = exchange.service();
                self.counters[class] += 1;
                self.counters[RQ_TOTAL] += 1;
                self.statistics[class].record(service);
                self.statistics[QUEUE_TO_CONNECT].record(exchange.write.saturating_sub(start));
                self.statistics[REQUEST_TO_RESPONSE].record(service);
                self.statistics[BODY_SIZE].record(answer.body_bytes);
                let head = exchange.bytes_in.saturating_sub(answer.body_bytes);
                self.statistics[HEADER_SIZE].record(head);
                self.statistics[CALLBACK].record(exchange.done.saturating_sub(start));
            }
            ExchangeEnd::Fault(fault) => {
                let is_pool = is_connect_fault(fault);
                self.counters[if is_pool { POOL_FAILURE } else { RESETS }] += 1;
                self.counters[RQ_TOTAL] += u64::from(!is_pool);
                self.statistics[CALLBACK].record(exchange.done.saturating_sub(start));
            }
            ExchangeEnd::Unfinished => self.counters[RQ_TOTAL] += u64::from(exchange.written),
        }
    }

    /// Counts requests that were never sent because every connection was busy.
    pub fn overflow(&mut self, requests: u64) {
        self.counters[OVERFLOW] += requests;
        self.counters[PENDING_OVERFLOW] += requests;
    }

    /// The value of a counter, when there is one of that name.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let at = COUNTERS.iter().position(|known| *known == name)?;
        Some(self.counters[at])
    }

    /// Adds what another saw.
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.statistics.iter_mut().zip(&other.statistics) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            *mine += theirs;
        }
    }

    /// The counters that were used.
    fn shown_counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        COUNTERS.into_iter().zip(self.counters).filter(|(_, value)| *value > 0)
    }
}

/// A whole result.
#[derive(Debug, Clone)]
pub struct Output {
    /// What was asked.
    pub settings: NighthawkSettings,
    /// What each worker saw.
    pub workers: Vec<Worker>,
    /// How long requests were sent.
    pub execution: Duration,
    /// When it started, in Unix nanoseconds.
    pub started_unix_ns: u64,
}

impl Output {
    /// What all workers saw.
    fn global(&self) -> Worker {
        let mut all = Worker::default();
        self.workers.iter().for_each(|worker| all.merge(worker));
        all
    }

    /// A value each second of the execution.
    fn a_second(&self, value: u64) -> f64 {
        let seconds = self.execution.as_secs_f64();
        if seconds > 0.0 { value as f64 / seconds } else { 0.0 }
    }

    fn timestamp(&self) -> String {
        jiff::Timestamp::from_nanosecond(i128::from(self.started_unix_ns))
            .unwrap_or_default()
            .to_string()
    }
}

/// The percentiles that the formats for people show: the first of the list at or above each.
fn main_levels(histogram: &Histogram) -> Vec<Level> {
    let mut shown: Vec<Level> = Vec::new();
    let all = levels(histogram);
    for quantile in [0.0, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0] {
        let last = shown.last().map_or(-1.0, |level| level.quantile);
        let fits = |level: &&Level| level.quantile >= quantile && level.quantile > last;
        shown.extend(all.iter().find(fits));
    }
    // The smallest and the largest stand apart.
    shown.retain(|level| level.quantile > 0.0 && level.quantile < 1.0);
    shown
}

/// A time as people are shown it: `0s 001ms 234us`.
fn shown_time(nanos: f64) -> String {
    let us = (nanos / 1e3) as Nanos;
    format!("{}s {:03}ms {:03}us", us / 1_000_000, us / 1_000 % 1_000, us % 1_000)
}

#[cfg(test)]
mod tests;
