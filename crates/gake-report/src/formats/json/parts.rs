//! The parts of a summary in JSON that are numbers.

use gake_core::record::{Counts, Generator, Run, SeriesPoint};
use gake_judge::stats::{Rates, span};
use serde::Serialize;

use super::latency::HistogramForm;
use crate::formats::all_open;

/// How many requests. sent = ok + failed + unfinished; due = sent + unsent + dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RequestsForm {
    /// Requests that were due: those sent, those that could not be, and one for each arrival that
    /// was dropped.
    due: u64,
    /// Requests that left, or tried to with a socket of their own.
    sent: u64,
    /// Of the sent, those whose request was wholly written.
    written: u64,
    /// Responses that met the expectation.
    ok: u64,
    /// Responses that did not, and faults of the sent.
    failed: u64,
    /// Of the failed, answers whose status was expected and whose body was not.
    wrong_bodies: u64,
    /// In flight when the drain ended.
    unfinished: u64,
    /// Never sent, because every connection was busy.
    dropped: u64,
    /// Fired, and never sent, because the generator had no local port or no descriptor.
    unsent: u64,
    /// Redirects followed; they are part of their arrival.
    redirects: u64,
}

impl From<&Counts> for RequestsForm {
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

/// Arrivals a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RateForm {
    /// What the plan asked for; null in a closed loop.
    asked: Option<f64>,
    /// What left, over the time in which it was sent.
    sent: f64,
    /// What came back, over the time from the end of the warm-up to the last outcome.
    completed: f64,
    /// What came back ok, over the same time.
    goodput: f64,
}

impl From<&Run> for RateForm {
    fn from(run: &Run) -> Self {
        let Rates { asked, sent, completed, goodput } = Rates::of(run);
        Self { asked, sent, completed, goodput }
    }
}

/// Bytes, heads included, before TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BytesForm {
    /// Read.
    r#in: u64,
    /// Written.
    out: u64,
}

impl From<&Counts> for BytesForm {
    fn from(counts: &Counts) -> Self {
        Self { r#in: counts.bytes_in, out: counts.bytes_out }
    }
}

/// Connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ConnectionsForm {
    /// Opened in all.
    opened: u64,
    /// Most open at once.
    peak: u64,
    /// When all that users keep and idle ones were open, in seconds after the start, to a tenth in a
    /// run of up to a minute; absent when they never were, or the load needs no certain number.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_open_s: Option<f64>,
    /// Reused ones found closed, and replaced for the same request.
    stale_reconnects: u64,
    /// Responses followed by unsolicited bytes; their connection was closed.
    excess: u64,
    /// TCP segments sent again, as far as sampled.
    retransmits: u64,
    /// Idle ones, held beside the load, that the server closed.
    idle_lost: u64,
    /// Idle ones that could not be opened.
    idle_failed: u64,
    /// What they spoke: `HTTP/1.1`, `HTTP/2`, `HTTP/3`, `WebSocket`, or several of
    /// them, as in `HTTP/3, HTTP/2 and HTTP/1.1`.
    protocol: &'static str,
    /// Where they spoke HTTP/2 or HTTP/3.
    #[serde(skip_serializing_if = "Option::is_none")]
    http2: Option<Http2Form>,
    /// Where they spoke HTTP/3.
    #[serde(skip_serializing_if = "Option::is_none")]
    quic: Option<QuicForm>,
    /// Where they had sessions of a WebSocket.
    #[serde(skip_serializing_if = "Option::is_none")]
    websocket: Option<WebSocketForm>,
}

/// Sessions of a WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WebSocketForm {
    /// Opened in all.
    sessions: u64,
    /// Ended by the server while no message was under way.
    ended: u64,
}

/// QUIC beneath HTTP/3.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct QuicForm {
    /// Streams opened for requests; `http2.streams` holds them too.
    streams: u64,
    /// Packets sent, as far as sampled: about once a second on each connection, and when it ends
    /// before the run does.
    packets: u64,
    /// Of these packets, those found lost.
    lost: u64,
}

/// Streams of HTTP/2 and HTTP/3.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Http2Form {
    /// Opened in all.
    streams: u64,
    /// Requests that the server said it had not handled, and that were sent again.
    unhandled: u64,
    /// Streams that the server reset, refused ones included.
    stream_resets: u64,
    /// GOAWAY frames received.
    goaways: u64,
    /// Requests that waited for a stream while every connection had as many as its server allows.
    stream_waits: u64,
    /// Streams that the server allowed on a connection, in the mean of these requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    streams_allowed: Option<f64>,
    /// Request bodies that waited for the server's flow-control window.
    window_waits: u64,
    /// How long they waited for it, added up, in seconds.
    window_wait_s: f64,
}

impl Http2Form {
    /// Nothing where no stream was opened.
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

impl From<&Run> for ConnectionsForm {
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
            http2: Http2Form::of(counts),
            quic: (counts.http3_streams > 0).then_some(QuicForm {
                streams: counts.http3_streams,
                packets: counts.quic_packets,
                lost: counts.quic_lost,
            }),
            websocket: (counts.sessions > 0).then_some(WebSocketForm {
                sessions: counts.sessions,
                ended: counts.sessions_ended,
            }),
        }
    }
}

/// What the generator itself used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GeneratorForm {
    /// CPU time of the workers, after the warm-up, in seconds.
    cpu_s: f64,
    /// The same as a share of the workers' cores, 0 to 1.
    cpu_share: f64,
    /// The largest share of one core that a worker used, 0 to 1.
    busiest_share: f64,
    /// Time in which workers were runnable but other processes had the cores, in seconds.
    run_delay_s: f64,
    /// The highest resident memory that was seen, once a second and at the end; of several
    /// processes, such as agents, the sum.
    rss_bytes: u64,
    /// Workers.
    threads: usize,
    /// Cores that the process might use.
    cores: usize,
}

impl GeneratorForm {
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

/// What one label saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LabelForm {
    /// Its name.
    label: String,
    /// How many arrivals; dropped ones are not told by label.
    requests: RequestsForm,
    /// Response time.
    response_ns: HistogramForm,
    /// Service time.
    service_ns: HistogramForm,
}

/// What one piece of the run saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PointForm {
    /// Where it starts, in seconds since the start of the run.
    second: u64,
    /// How many seconds it stands for.
    seconds: u64,
    /// Arrivals that the plan asked for in it; null in a closed loop.
    asked: Option<f64>,
    /// What ended in it.
    requests: RequestsForm,
    /// Bytes that its requests read and wrote.
    bytes: BytesForm,
    /// Median response time; of joined seconds the worst, as with all percentiles here.
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

impl From<&SeriesPoint> for PointForm {
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

/// What each label saw.
pub(super) fn labels(run: &Run) -> Vec<LabelForm> {
    let names = run.plan.labels.iter().zip(run.tally.labels());
    names
        .map(|(name, label)| LabelForm {
            label: name.clone(),
            requests: (&label.counts).into(),
            response_ns: (&label.response).into(),
            service_ns: (&label.service).into(),
        })
        .collect()
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
