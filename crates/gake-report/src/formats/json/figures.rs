//! Counts, rates, connections, labels and points in JSON.

use gake_core::record::{Counts, Generator, Run, SeriesPoint};
use gake_judge::stats::{RunRates, span};
use serde::Serialize;

use super::latency::HistogramJson;
use crate::formats::all_open;

/// Request counts. sent = ok + failed + unfinished; due = sent + unsent + dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RequestsJson {
    /// Requests due: those sent, those that could not be sent, and one per dropped arrival.
    due: u64,
    /// Requests that were sent, or got a socket for it.
    sent: u64,
    /// Sent requests that were written completely.
    written: u64,
    /// Responses that met the expectation.
    ok: u64,
    /// Responses that did not, and faults of sent requests.
    failed: u64,
    /// Failed requests whose response had an expected status and an unexpected body.
    wrong_bodies: u64,
    /// In flight when the drain ended.
    unfinished: u64,
    /// Never sent, because all connections were busy.
    dropped: u64,
    /// Fired and never sent, because the generator had no local port or descriptor left.
    unsent: u64,
    /// Redirects followed, as part of their arrival.
    redirects: u64,
}

impl From<&Counts> for RequestsJson {
    fn from(counts: &Counts) -> Self {
        Self {
            due: counts.due(),
            sent: counts.sent,
            written: counts.written,
            ok: counts.ok,
            failed: counts.failed,
            wrong_bodies: counts.wrong_bodies,
            unfinished: counts.unfinished,
            dropped: counts.dropped,
            unsent: counts.unsent,
            redirects: counts.redirects,
        }
    }
}

/// Arrivals per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RateJson {
    /// The rate of the plan; null in a closed loop.
    asked: Option<f64>,
    /// Sent, over the time in which arrivals were due.
    sent: f64,
    /// Completed, from the end of the warm-up to the last outcome.
    completed: f64,
    /// Completed and ok, over the same time.
    goodput: f64,
}

impl From<&Run> for RateJson {
    fn from(run: &Run) -> Self {
        let RunRates { asked, sent, completed, goodput } = RunRates::of(run);
        Self { asked, sent, completed, goodput }
    }
}

/// Bytes including heads, before TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BytesJson {
    /// Read.
    r#in: u64,
    /// Written.
    out: u64,
}

impl From<&Counts> for BytesJson {
    fn from(counts: &Counts) -> Self {
        Self { r#in: counts.bytes_in, out: counts.bytes_out }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ConnectionsJson {
    /// Total opened.
    opened: u64,
    /// Most open at the same time.
    peak: u64,
    /// When all user and idle connections were open, in seconds from the start, to a tenth in a run
    /// of up to a minute; absent if they never were, or the load has no fixed number.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_open_s: Option<f64>,
    /// Reused connections that were found closed and replaced for the same request.
    stale_reconnects: u64,
    /// Responses followed by unsolicited bytes, which closed the connection.
    excess: u64,
    /// Retransmitted TCP segments, as far as sampled.
    retransmits: u64,
    /// Idle connections held beside the load that the server closed.
    idle_lost: u64,
    /// Idle connections that could not be opened.
    idle_failed: u64,
    /// The protocols: `HTTP/1.1`, `HTTP/2`, `HTTP/3`, `WebSocket`, or several, as in `HTTP/3,
    /// HTTP/2 and HTTP/1.1`.
    protocol: &'static str,
    /// With HTTP/2 or HTTP/3.
    #[serde(skip_serializing_if = "Option::is_none")]
    http2: Option<Http2Json>,
    /// With HTTP/3.
    #[serde(skip_serializing_if = "Option::is_none")]
    quic: Option<QuicJson>,
    /// With WebSocket sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    websocket: Option<WebSocketJson>,
}

/// WebSocket sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WebSocketJson {
    /// Total opened.
    sessions: u64,
    /// Closed by the server between messages.
    ended: u64,
}

/// The QUIC layer of HTTP/3.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct QuicJson {
    /// Streams opened for requests; also counted in `http2.streams`.
    streams: u64,
    /// Packets sent, sampled about once per second and connection, and at the connection's end
    /// unless the run ends first.
    packets: u64,
    /// Sent packets detected as lost.
    lost: u64,
}

/// HTTP/2 and HTTP/3 streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Http2Json {
    /// Total opened.
    streams: u64,
    /// Requests that the server reported as unprocessed, and that were sent again.
    unhandled: u64,
    /// Streams reset by the server, refused ones included.
    stream_resets: u64,
    /// GOAWAY frames received.
    goaways: u64,
    /// Requests that waited for a stream while every connection was at its server's limit.
    stream_waits: u64,
    /// The mean limit on streams per connection that these requests met.
    #[serde(skip_serializing_if = "Option::is_none")]
    streams_allowed: Option<f64>,
    /// Request bodies that waited for the server's flow-control window.
    window_waits: u64,
    /// Total wait for the window, in seconds.
    window_wait_s: f64,
}

impl Http2Json {
    /// `None` if no stream was opened.
    fn of(counts: &Counts) -> Option<Self> {
        let allowed = counts.streams_allowed as f64 / counts.stream_waits as f64;
        (counts.streams > 0).then(|| Self {
            streams: counts.streams,
            unhandled: counts.unhandled,
            stream_resets: counts.stream_resets,
            goaways: counts.goaways,
            stream_waits: counts.stream_waits,
            streams_allowed: (counts.stream_waits > 0).then_some(allowed),
            window_waits: counts.window_waits,
            window_wait_s: counts.window_wait_time as f64 / 1e9,
        })
    }
}

impl From<&Run> for ConnectionsJson {
    fn from(run: &Run) -> Self {
        let counts = &run.tally.counts;
        Self {
            opened: counts.opened,
            peak: run.peak_connections,
            all_open_s: all_open(run).map(|after| after as f64 / 1e9),
            stale_reconnects: counts.stale_reconnects,
            excess: counts.excess,
            retransmits: counts.retransmits,
            idle_lost: counts.idle_lost,
            idle_failed: counts.idle_failed,
            protocol: counts.spoken(),
            http2: Http2Json::of(counts),
            quic: (counts.http3_streams > 0).then_some(QuicJson {
                streams: counts.http3_streams,
                packets: counts.quic_packets,
                lost: counts.quic_lost,
            }),
            websocket: (counts.sessions > 0).then_some(WebSocketJson {
                sessions: counts.sessions,
                ended: counts.sessions_ended,
            }),
        }
    }
}

/// The generator's own resource usage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GeneratorUsageJson {
    /// CPU time of the workers, after the warm-up, in seconds.
    cpu_s: f64,
    /// CPU time as a share of the workers' cores, 0 to 1.
    cpu_share: f64,
    /// The largest share of one core used by a worker, 0 to 1.
    busiest_share: f64,
    /// Time in which workers were runnable but other processes had the cores, in seconds.
    run_delay_s: f64,
    /// Peak resident memory, sampled once per second and at the end; summed over several processes,
    /// such as agents.
    rss_bytes: u64,
    /// Worker threads.
    threads: usize,
    /// Cores available to the process.
    cores: usize,
}

impl GeneratorUsageJson {
    pub(crate) fn new(run: &Run) -> Self {
        let Generator { cpu, busiest, run_delay, rss_bytes, threads, cores, .. } = run.generator;
        let time = span(run) as f64 * threads as f64;
        Self {
            cpu_s: seconds(cpu),
            cpu_share: if time > 0.0 { cpu as f64 / time } else { 0.0 },
            busiest_share: busiest,
            run_delay_s: seconds(run_delay),
            rss_bytes,
            threads,
            cores,
        }
    }
}

/// The figures of one label.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LabelJson {
    /// The label's name.
    label: String,
    /// Request counts; dropped arrivals are not counted by label.
    requests: RequestsJson,
    /// Response time.
    response_ns: HistogramJson,
    /// Service time.
    service_ns: HistogramJson,
}

/// One interval of the time series.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PointJson {
    /// Its start, in seconds since the start of the run.
    second: u64,
    /// Its length in seconds.
    seconds: u64,
    /// Arrivals due by the plan; null in a closed loop.
    asked: Option<f64>,
    /// Requests that ended in it.
    requests: RequestsJson,
    /// Bytes that its requests read and wrote.
    bytes: BytesJson,
    /// Median response time; the worst of joined seconds, as with all percentiles here.
    p50_ns: u64,
    /// 90th percentile of the response time.
    p90_ns: u64,
    /// 99th percentile of the response time.
    p99_ns: u64,
    /// The longest response time.
    max_ns: u64,
    /// 99th percentile of the service time.
    service_p99_ns: u64,
    /// 99th percentile of the generator's own delay.
    lateness_p99_ns: u64,
    /// Mean number in flight.
    in_flight: f64,
    /// Connections open at its end.
    open_connections: u64,
    /// CPU time of the workers in it.
    cpu_ns: u64,
}

impl From<&SeriesPoint> for PointJson {
    fn from(point: &SeriesPoint) -> Self {
        Self {
            second: point.second,
            seconds: point.seconds,
            asked: point.asked,
            requests: (&point.counts).into(),
            bytes: (&point.counts).into(),
            p50_ns: point.p50,
            p90_ns: point.p90,
            p99_ns: point.p99,
            max_ns: point.max,
            service_p99_ns: point.service_p99,
            lateness_p99_ns: point.lateness_p99,
            in_flight: point.in_flight,
            open_connections: point.open,
            cpu_ns: point.cpu,
        }
    }
}

pub(super) fn labels(run: &Run) -> Vec<LabelJson> {
    let names = run.plan.labels.iter().zip(run.tally.labels());
    names
        .map(|(name, label)| LabelJson {
            label: name.clone(),
            requests: (&label.counts).into(),
            response_ns: (&label.response).into(),
            service_ns: (&label.service).into(),
        })
        .collect()
}

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
