//! Connection and TLS settings, shared by all scenarios of a run.

use std::path::PathBuf;
use std::time::Duration;

use super::fields::{Layer, Setting, fields, same, setting, settings};
use crate::plan::Timeouts;

settings! {
    /// How connections are made and used.
    pub struct ConnectionSpec, ConnectionDraft {
        /// for a whole request
        timeout: Duration = Timeouts::default().total, ["--timeout"] = "30s";
        /// for opening a connection, TLS included
        connect_timeout: Duration = Timeouts::default().connect, ["--connect-timeout"] = "10s";
        /// for the first byte of a response
        first_byte_timeout: Option<Duration> = None, ["--first-byte-timeout"] = "none";
        /// `"1.0"`, `"1.1"`, `"2"`, `"3"`, `"auto"` (what ALPN chooses over TLS), or `"auto3"` (the
        /// same, and HTTP/3 where `Alt-Svc` offers it)
        http: HttpVersion = HttpVersion::Http11, ["--http"] = "`\"1.1\"`";
        /// maximum concurrent requests on a connection of HTTP/2 or HTTP/3
        streams: Option<usize> = None, ["--streams"] = "100; in a closed loop the users of a connection";
        /// flow-control window of a stream of HTTP/2 and HTTP/3, in bytes
        stream_window: Option<u32> = None, = "1073741823";
        /// flow-control window of a connection of HTTP/2 and HTTP/3, in bytes; at least 65535
        connection_window: Option<u32> = None, = "1073741824";
        /// whether a connection serves more than one request
        keepalive: bool = true, ["--no-keepalive"] = "true";
        /// redirects followed
        max_redirects: u32 = 0, ["--max-redirs"] = "0";
        /// maximum new connections a second
        connect_rate: Option<f64> = None, ["--connect-rate"] = "none";
        /// connections opened at the start and held without a request
        idle_connections: usize = 0, ["--idle-connections"] = "0";
        /// idle connections kept per host after use
        max_idle: Option<usize> = None, = "all";
        /// list of source addresses, ranges, networks, interfaces
        sources: Vec<String> = Vec::new(), ["--interface"] = "the system's";
        /// list of `HOST:PORT:ADDRESS` rules, as in curl
        resolve: Vec<String> = Vec::new(), ["--resolve"] = "none";
        /// list of `HOST1:PORT1:HOST2:PORT2` rules, as in curl
        connect_to: Vec<String> = Vec::new(), ["--connect-to"] = "none";
        /// how long the addresses of a name are used; `0s`: a lookup for each connection
        dns_ttl: Option<Duration> = None, ["--dns-ttl"] = "the whole run";
        /// use only the first address of a name
        first_address: bool = false, = "false";
        /// `"http://HOST:PORT"`: every connection goes there
        proxy: Option<String> = None, ["--proxy"] = "none";
        /// connect to this socket
        unix_socket: Option<PathBuf> = None, ["--unix-socket"] = "none";
        /// `"ipv4"`, `"ipv6"`, or one that is used alone where a name has both: `"prefer-ipv4"`,
        /// `"prefer-ipv6"`
        family: Option<IpFamily> = None, ["-4, -6"] = "both";
        /// responses kept per thread for a program that reads every outcome
        keep_answers: Option<u64> = None, = "0";
        /// bytes kept of the body of each
        keep_body_bytes: Option<usize> = None, = "0";
    }
}

settings! {
    /// TLS: what is trusted, shown and spoken.
    pub struct TlsSpec, TlsDraft {
        /// accept any certificate
        insecure: bool = false, ["--insecure"] = "false";
        /// PEM files that are trusted instead of the system's
        ca_certificates: Vec<PathBuf> = Vec::new(), ["--cacert"] = "the system's";
        /// the client's certificate (PEM)
        certificate: Option<PathBuf> = None, ["--cert"] = "none";
        /// its key (PEM)
        key: Option<PathBuf> = None, ["--key"] = "none";
        /// resume sessions
        session_tickets: bool = false, ["--session-tickets"] = "false";
        /// resume sessions and send requests that may be replayed with the handshake (0-RTT)
        early_data: bool = false, ["--tls-early-data"] = "false";
        /// the oldest version: `"1.2"` or `"1.3"`
        min_version: Option<TlsVersion> = None, ["--tls-min"] = "`\"1.2\"`";
        /// the newest version
        max_version: Option<TlsVersion> = None, ["--tls-max"] = "`\"1.3\"`";
        /// list of cipher suites by their IANA names, the preferred one first
        ciphers: Vec<String> = Vec::new(), ["--ciphers"] = "the library's";
        /// a file with configurations of ECH, or `"grease"`
        ech: Option<PathBuf> = None, ["--ech"] = "none";
        /// a file for the secrets of sessions; not on agents
        key_log: Option<PathBuf> = None, ["--key-log"] = "none";
    }
}

/// A version of HTTP.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2: by ALPN over TLS, by prior knowledge in clear text.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/2 or 1.1, as ALPN chooses over TLS; 1.1 in clear text.
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/3, over QUIC.
    #[serde(rename = "3")]
    Http3,
    /// As [`Auto`](Self::Auto), and HTTP/3 if `Alt-Svc` offers it.
    #[serde(rename = "auto3")]
    Auto3,
}

impl HttpVersion {
    /// Whether a connection carries concurrent requests.
    #[must_use]
    pub const fn is_multiplexed(self) -> bool {
        matches!(self, Self::Http2 | Self::Auto | Self::Http3 | Self::Auto3)
    }
}

/// A family of addresses.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpFamily {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// IPv4, and IPv6 for names that have only that.
    PreferIpv4,
    /// IPv6, and IPv4 for names that have only that.
    PreferIpv6,
}

/// A version of TLS.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum TlsVersion {
    /// 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    Tls12,
    /// 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// `1.2` or `1.3`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }
}

setting! {
    HttpVersion, HttpVersion, same, same;
    IpFamily, IpFamily, same, same;
    TlsVersion, TlsVersion, same, same;
}

impl TlsSpec {
    /// The only version allowed; `None` if both are.
    #[must_use]
    pub fn only_version(&self) -> Option<TlsVersion> {
        match (self.min_version, self.max_version) {
            (Some(TlsVersion::Tls13), _) => Some(TlsVersion::Tls13),
            (_, Some(TlsVersion::Tls12)) => Some(TlsVersion::Tls12),
            _ => None,
        }
    }
}

impl ConnectionSpec {
    /// The time-outs of a request.
    #[must_use]
    pub const fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.connect_timeout,
            first_byte: self.first_byte_timeout,
            total: self.timeout,
        }
    }

    /// Sets the time-outs of a request.
    pub const fn set_timeouts(&mut self, timeouts: Timeouts) {
        let Timeouts { connect, first_byte, total } = timeouts;
        self.connect_timeout = connect;
        self.first_byte_timeout = first_byte;
        self.timeout = total;
    }
}
