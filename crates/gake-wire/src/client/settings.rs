//! The settings of clients.

use std::sync::Arc;
use std::time::Duration;

use gake_codec::http1::{ResponseLimits, Version};
use gake_codec::http2::ConnectionLimits;
use gake_core::plan::Timeouts;

use crate::load::check::BodyCheck;
use crate::load::feed::RequestFeed;
use crate::load::inspect::Inspection;
use crate::net::permit::ConnectionPermit;
use crate::net::source::SourceAddresses;
use crate::tls::protocol::Protocol;

/// The settings of a network's clients, and of the load that uses them.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The time-outs.
    pub timeouts: Timeouts,
    /// Whether a connection serves more than one request.
    pub keepalive: bool,
    /// Whether lanes share connections (open loop), or each has its own (a user of a closed loop).
    pub pooled: bool,
    /// Maximum number of pooled connections, over all workers. Users of a closed loop have one per
    /// origin each.
    pub connections: usize,
    /// Connections opened at the start and held without a request, over all workers.
    pub idle_connections: usize,
    /// New idle connections a second, over all workers.
    pub connect_rate: Option<f64>,
    /// The source addresses of connections.
    pub sources: SourceAddresses,
    /// Limits on responses.
    pub limits: ResponseLimits,
    /// Whether even a single request without a label has one: several loads are distinguished.
    pub labels: bool,
    /// Maximum redirects followed for one request; if 0, a redirect is a response like any other.
    pub max_redirects: u32,
    /// What the requests of redirects keep.
    pub redirect_rules: RedirectRules,
    /// Limits on kept responses; `None` keeps none.
    pub keep: Option<KeepLimits>,
    /// Checks of responses beyond faults.
    pub inspect: Option<Inspection>,
    /// Whether the events of streamed responses are timed, as [`stream_metrics`](crate::stream_metrics).
    pub stream: bool,
    /// Maximum idle connections per origin, over all workers.
    pub max_idle: Option<usize>,
    /// Makes each request when it is fired, instead of the prepared ones.
    pub feed: Option<Arc<dyn RequestFeed>>,
    /// The version in the request line of HTTP/1.
    pub version: Version,
    /// The protocol of connections.
    pub protocol: Protocol,
    /// Maximum concurrent exchanges on a multiplexed connection, whatever the server allows.
    pub streams: usize,
    /// Flow-control window of a stream in bytes.
    pub stream_window: Option<u32>,
    /// Flow-control window of a multiplexed connection in bytes.
    pub connection_window: Option<u32>,
    /// The message that ends an exchange in a WebSocket session.
    pub reply: ReplyRule,
    /// Limits on connections.
    pub permit: Option<Arc<ConnectionPermit>>,
    /// How long the addresses of a name are used. Connections to an address that it has no more end
    /// after their exchanges. `None`: for the whole run; zero: for one connection.
    pub dns_ttl: Option<Duration>,
}

/// What a redirect does to a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RedirectRules {
    /// As curl: another origin gets neither credentials nor `Host`.
    #[default]
    Curl,
    /// As the client of Go for a request whose body cannot be read again: a 307 or 308 after a body
    /// is the last response, credentials stay with their host, `Host` with relative locations, and
    /// there is a `Referer`.
    Go,
}

/// The message that counts as the reply in a WebSocket session. The reply to a ping is its pong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReplyRule {
    /// The next message.
    #[default]
    Next,
    /// The next message that passes the check.
    Matching(BodyCheck),
    /// Replies are not awaited.
    None,
}

impl ClientSettings {
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

impl Default for ClientSettings {
    /// HTTP/1.1 with as many pooled connections as needed; no redirects; time-outs of 10 s for a
    /// connection and 30 s for a request.
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
            sources: SourceAddresses::default(),
            limits: ResponseLimits::default(),
            labels: false,
            max_redirects: 0,
            redirect_rules: RedirectRules::Curl,
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
            reply: ReplyRule::Next,
            permit: None,
            dns_ttl: None,
        }
    }
}

/// Limits on kept responses. Keeping a response allocates memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepLimits {
    /// Number of responses kept by each worker, from its first on.
    pub responses: u64,
    /// Maximum bytes kept of a body.
    pub body_bytes: usize,
}
