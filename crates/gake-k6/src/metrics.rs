//! k6's built-in metrics.

use std::sync::Arc;

use gake_core::metric::{Definition, MetricKind, MetricUnit, Registry};

/// A built-in metric of k6, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinMetric {
    /// Active users.
    Vus,
    /// Users that were initialised.
    VusMax,
    /// Completed iterations.
    Iterations,
    /// Durations of completed iterations.
    IterationDuration,
    /// Iterations not started because no user was free.
    DroppedIterations,
    /// Checks that passed.
    Checks,
    /// Durations of groups.
    GroupDuration,
    /// Requests.
    HttpReqs,
    /// The share of requests with an unexpected status.
    HttpReqFailed,
    /// From the first byte written to the last byte read.
    HttpReqDuration,
    /// The wait for a connection.
    HttpReqBlocked,
    /// TCP handshakes.
    HttpReqConnecting,
    /// TLS handshakes.
    HttpReqTlsHandshaking,
    /// Writing requests.
    HttpReqSending,
    /// Waiting for the first byte of responses.
    HttpReqWaiting,
    /// Reading responses.
    HttpReqReceiving,
    /// Attempts to open a WebSocket.
    WsSessions,
    /// Durations of those attempts.
    WsConnecting,
    /// Durations of WebSocket sessions.
    WsSessionDuration,
    /// WebSocket messages sent.
    WsMsgsSent,
    /// WebSocket messages received.
    WsMsgsReceived,
    /// From a ping to its pong.
    WsPing,
    /// From sending a gRPC call to its status.
    GrpcReqDuration,
    /// gRPC streams.
    GrpcStreams,
    /// Messages sent in gRPC streams.
    GrpcStreamsMsgsSent,
    /// Messages received in gRPC streams.
    GrpcStreamsMsgsReceived,
    /// Bytes written.
    DataSent,
    /// Bytes read.
    DataReceived,
}

impl BuiltinMetric {
    /// All built-in metrics, by number.
    pub const ALL: [(Self, &str, MetricKind, MetricUnit); 28] = {
        use BuiltinMetric::*;
        use MetricKind::{Counter, Gauge, Rate, Trend};
        use MetricUnit::{Bytes, Number, Time};
        [
            (Vus, "vus", Gauge, Number),
            (VusMax, "vus_max", Gauge, Number),
            (Iterations, "iterations", Counter, Number),
            (IterationDuration, "iteration_duration", Trend, Time),
            (DroppedIterations, "dropped_iterations", Counter, Number),
            (Checks, "checks", Rate, Number),
            (GroupDuration, "group_duration", Trend, Time),
            (HttpReqs, "http_reqs", Counter, Number),
            (HttpReqFailed, "http_req_failed", Rate, Number),
            (HttpReqDuration, "http_req_duration", Trend, Time),
            (HttpReqBlocked, "http_req_blocked", Trend, Time),
            (HttpReqConnecting, "http_req_connecting", Trend, Time),
            (HttpReqTlsHandshaking, "http_req_tls_handshaking", Trend, Time),
            (HttpReqSending, "http_req_sending", Trend, Time),
            (HttpReqWaiting, "http_req_waiting", Trend, Time),
            (HttpReqReceiving, "http_req_receiving", Trend, Time),
            (WsSessions, "ws_sessions", Counter, Number),
            (WsConnecting, "ws_connecting", Trend, Time),
            (WsSessionDuration, "ws_session_duration", Trend, Time),
            (WsMsgsSent, "ws_msgs_sent", Counter, Number),
            (WsMsgsReceived, "ws_msgs_received", Counter, Number),
            (WsPing, "ws_ping", Trend, Time),
            (GrpcReqDuration, "grpc_req_duration", Trend, Time),
            (GrpcStreams, "grpc_streams", Counter, Number),
            (GrpcStreamsMsgsSent, "grpc_streams_msgs_sent", Counter, Number),
            (GrpcStreamsMsgsReceived, "grpc_streams_msgs_received", Counter, Number),
            (DataSent, "data_sent", Counter, Bytes),
            (DataReceived, "data_received", Counter, Bytes),
        ]
    };

    /// Its number: built-in metrics come first.
    #[must_use]
    pub fn number(self) -> MetricNumber {
        MetricNumber(self as u16)
    }
}

/// The index of a metric in a script's [`SeriesIndex`](crate::user::series_index::SeriesIndex).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricNumber(pub(crate) u16);

impl From<MetricNumber> for usize {
    fn from(number: MetricNumber) -> Self {
        Self::from(number.0)
    }
}

/// k6's own metrics, by number.
#[must_use]
pub fn builtin() -> Vec<Arc<Definition>> {
    let each = BuiltinMetric::ALL.iter().map(|&(_, name, kind, unit)| Definition {
        name: name.to_owned(),
        kind,
        unit,
    });
    each.map(Arc::new).collect()
}

/// The registry of `metrics`.
#[must_use]
pub fn registry(metrics: &[Arc<Definition>]) -> Registry {
    let mut registry = Registry::default();
    for metric in metrics {
        // Names were checked when the metrics were created; a duplicate is the first one.
        let _ = registry.define((**metric).clone());
    }
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_indices() {
        for (index, (metric, ..)) in BuiltinMetric::ALL.iter().enumerate() {
            assert_eq!(metric.number(), MetricNumber(index as u16));
        }
        assert_eq!(registry(&builtin()).metrics().count(), BuiltinMetric::ALL.len());
    }
}
