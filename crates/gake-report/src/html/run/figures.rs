//! The figures of a whole run.

use gake_core::record::{Histogram, LatencyMetric, Run};
use gake_judge::stats::{Rates, span};
use gake_judge::trusted;
use serde::Serialize;

/// Quantiles of the table.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Counts, rates, and what the generator used.
#[derive(Serialize)]
pub(super) struct Figures {
    due: u64,
    sent: u64,
    ok: u64,
    failed: u64,
    unfinished: u64,
    dropped: u64,
    unsent: u64,
    asked_rate: Option<f64>,
    sent_rate: f64,
    completed_rate: f64,
    goodput: f64,
    bytes_in: u64,
    bytes_out: u64,
    /// From the end of the warm-up to the last outcome.
    span_ns: u64,
    opened: u64,
    peak: u64,
    stale_reconnects: u64,
    retransmits: u64,
    excess: u64,
    idle_failed: u64,
    idle_lost: u64,
    redirects: u64,
    /// What the connections spoke.
    protocol: &'static str,
    streams: u64,
    unhandled: u64,
    stream_resets: u64,
    goaways: u64,
    quic_lost: u64,
    stream_waits: u64,
    window_waits: u64,
    cpu_ns: u64,
    /// Of the workers' cores, 0 to 1.
    cpu_share: f64,
    busiest: f64,
    run_delay_ns: u64,
    rss_bytes: u64,
    threads: usize,
    cores: usize,
}

impl Figures {
    pub(super) fn new(run: &Run) -> Self {
        let counts = &run.tally.counts;
        let rates = Rates::of(run);
        let generator = &run.generator;
        let time = span(run) as f64 * generator.threads as f64;
        Self {
            due: counts.due(),
            sent: counts.sent,
            ok: counts.ok,
            failed: counts.failed,
            unfinished: counts.unfinished,
            dropped: counts.dropped,
            unsent: counts.unsent,
            asked_rate: rates.asked,
            sent_rate: rates.sent,
            completed_rate: rates.completed,
            goodput: rates.goodput,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            span_ns: run.completing,
            opened: counts.opened,
            peak: run.peak_connections,
            stale_reconnects: counts.stale_reconnects,
            retransmits: counts.retransmits,
            excess: counts.excess,
            idle_failed: counts.idle_failed,
            idle_lost: counts.idle_lost,
            redirects: counts.redirects,
            protocol: counts.spoken(),
            streams: counts.streams,
            unhandled: counts.unhandled,
            stream_resets: counts.stream_resets,
            goaways: counts.goaways,
            quic_lost: counts.quic_lost,
            stream_waits: counts.stream_waits,
            window_waits: counts.window_waits,
            cpu_ns: generator.cpu,
            cpu_share: if time > 0.0 { generator.cpu as f64 / time } else { 0.0 },
            busiest: generator.busiest,
            run_delay_ns: generator.run_delay,
            rss_bytes: generator.rss_bytes,
            threads: generator.threads,
            cores: generator.cores,
        }
    }
}

/// One row of the table of latencies, in nanoseconds.
#[derive(Serialize)]
pub(super) struct LatencyForm {
    metric: &'static str,
    count: u64,
    mean: f64,
    max: u64,
    /// p50, p90, p95, p99, p99.9.
    quantiles: [u64; QUANTILES.len()],
    /// How many of these have enough samples beyond them to be believed.
    trusted: usize,
}

impl LatencyForm {
    pub(super) fn new(metric: &'static str, histogram: &Histogram) -> Self {
        Self {
            metric,
            count: histogram.count(),
            mean: histogram.mean().round(),
            max: histogram.max(),
            quantiles: QUANTILES.map(|quantile| histogram.quantile(quantile)),
            trusted: QUANTILES.iter().filter(|q| trusted(**q, histogram.count())).count(),
        }
    }
}

/// The latencies that were seen; response time, the headline, always and first.
pub(super) fn latencies(run: &Run) -> Vec<LatencyForm> {
    let latency = &run.tally.latency;
    let parts = [
        LatencyMetric::OkResponse,
        LatencyMetric::Service,
        LatencyMetric::FirstByte,
        LatencyMetric::Download,
        LatencyMetric::Connect,
        LatencyMetric::Tls,
        LatencyMetric::Blocked,
        LatencyMetric::Lateness,
        LatencyMetric::FaultResponse,
        LatencyMetric::Rtt,
    ];
    // TCP's estimate counts acknowledgements that the peer delays: above the time to the first byte
    // of an answer it is not the network's round trip.
    let median = |metric| latency.of(metric).quantile(0.5);
    let is_network = median(LatencyMetric::Rtt) <= median(LatencyMetric::FirstByte);
    let seen = parts.iter().filter(|metric| !latency.of(**metric).is_empty());
    let seen = seen.filter(|metric| **metric != LatencyMetric::Rtt || is_network);
    let rows = seen.map(|metric| LatencyForm::new(metric.name(), latency.of(*metric)));
    std::iter::once(LatencyForm::new("response", &latency.response())).chain(rows).collect()
}
