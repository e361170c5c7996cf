//! How connections are made and used.

use std::sync::Arc;
use std::time::Duration;

use gake_codec::http1::{ResponseLimits, Version};
use gake_codec::http2::ConnectionLimits;
use gake_core::plan::Timeouts;

use crate::load::check::BodyCheck;
use crate::load::feed::Feed;
use crate::load::inspect::Inspection;
use crate::net::permit::ConnectionPermit;
use crate::net::source::Sources;
use crate::tls::protocol::Protocol;

/// The settings of a network's clients, and of the load that uses them.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The time-outs.
    pub timeouts: Timeouts,
    /// Whether a connection serves more than one request.
    pub keepalive: bool,
    /// Whether any lane may use any connection (open loop), or each has its own (a user of a
    /// closed loop).
    pub pooled: bool,
    /// Maximum number of connections, over all workers, when they are pooled. Users of a closed
    /// loop have one per origin each.
    pub connections: usize,
    /// Connections opened at the start and held without a request, over all workers.
    pub idle_connections: usize,
    /// New idle connections a second, over all workers.
    pub connect_rate: Option<f64>,
    /// The source addresses of connections.
    pub sources: Sources,
    /// Limits on what a server can make the client hold.
    pub limits: ResponseLimits,
    /// Maximum redirects followed for one request; if 0, a redirect is a response like any other.
    pub max_redirects: u32,
    /// What is kept of responses, if anything is.
    pub keep: Option<Keep>,
    /// What is checked in responses besides their status, if anything is.
    pub inspect: Option<Inspection>,
    /// Whether the parts of answers are timed, as series of [`stream_metrics`](crate::stream_metrics).
    pub stream: bool,
    /// Idle connections kept to an origin, over all workers, when that is bounded.
    pub max_idle: Option<usize>,
    /// If set, makes each request when it is fired, instead of those known beforehand.
    pub feed: Option<Arc<dyn Feed>>,
    /// The version in the request line of HTTP/1.
    pub version: Version,
    /// The protocol of connections.
    pub protocol: Protocol,
    /// Maximum concurrent exchanges on a multiplexed connection, whatever the server allows.
    pub streams: usize,
    /// Flow-control window of a stream in bytes, if not the default.
    pub stream_window: Option<u32>,
    /// Flow-control window of a multiplexed connection in bytes, if not the default.
    pub connection_window: Option<u32>,
    /// What ends an exchange in a session of a WebSocket.
    pub answer: MessageAnswer,
    /// Which connections may be opened; any without one.
    pub permit: Option<Arc<ConnectionPermit>>,
}

/// The message that answers one in a session of a WebSocket. A ping is always answered by a pong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MessageAnswer {
    /// The next one.
    #[default]
    Next,
    /// The next one that passes the check.
    Matching(BodyCheck),
    /// None is awaited.
    Nothing,
}

impl Settings {
    /// The bounds of a multiplexed connection.
    pub(crate) fn connection_limits(&self) -> ConnectionLimits {
        let default = ConnectionLimits::default();
        ConnectionLimits {
            stream_window: self.stream_window.unwrap_or(default.stream_window),
            connection_window: self.connection_window.unwrap_or(default.connection_window),
            streams: u32::try_from(self.streams).unwrap_or(u32::MAX),
            header_bytes: self.limits.head_bytes,
            interim: self.limits.interim,
        }
    }
}

impl Default for Settings {
    /// HTTP/1.1 with as many connections as needed, which are kept and shared; no redirects;
    /// 10 s for a connection and 30 s for a request.
    fn default() -> Self {
        Self {
            timeouts: Timeouts {
                connect: Duration::from_secs(10),
                first_byte: None,
                total: Duration::from_secs(30),
            },
            keepalive: true,
            pooled: true,
            connections: usize::MAX,
            idle_connections: 0,
            connect_rate: None,
            sources: Sources::default(),
            limits: ResponseLimits::default(),
            max_redirects: 0,
            keep: None,
            inspect: None,
            stream: false,
            max_idle: None,
            feed: None,
            version: Version::Http11,
            protocol: Protocol::Http1,
            streams: 100,
            stream_window: None,
            connection_window: None,
            answer: MessageAnswer::Next,
            permit: None,
        }
    }
}

/// How many responses are kept, and how much of each. A request whose response is kept allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Responses kept on each worker, from its first on.
    pub answers: u64,
    /// Maximum number of bytes kept of a body.
    pub body_bytes: usize,
}
