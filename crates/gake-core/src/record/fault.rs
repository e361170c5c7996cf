//! Faults: the closed list of reasons why a request got no response.

use std::fmt;

use super::close_code::CloseCode;
use super::error_code::ErrorCode;
use super::grpc_status::GrpcStatus;

/// The phase in which a request timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Opening the connection, TLS included.
    Connect,
    /// Waiting for the first byte of the answer (or still writing the request).
    FirstByte,
    /// Reading the rest of the answer.
    Body,
}

/// Why a response is missing or incomplete. Texts are static: a fault costs no allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The name could not be resolved.
    Dns,
    /// Nothing listens on the port, or a firewall rejects.
    ConnectRefused,
    /// The connect time-out was over before the connection was open.
    ConnectTimeout,
    /// The connection was reset, or found unreachable, while opening.
    ConnectReset,
    /// The generator has no local port left (EADDRNOTAVAIL).
    NoLocalPort,
    /// The generator has no file descriptor left (EMFILE, ENFILE).
    NoDescriptors,
    /// The generator has no memory for the body: those that its scripts hold may take no more.
    NoMemory,
    /// The generator may not open the connection, as an agent of a fleet outside its limits: which
    /// limit.
    NotAllowed(&'static str),
    /// The TLS handshake or session failed, with the reason.
    Tls(&'static str),
    /// Writing the request failed.
    Write,
    /// The peer reset the connection before the response ended.
    Reset,
    /// The peer closed the connection before the response ended: before its first byte, or later.
    ClosedEarly(Phase),
    /// The response is not HTTP, with the reason.
    Malformed(&'static str),
    /// The request timed out.
    Timeout(Phase),
    /// The response's head is over a limit; names the limit.
    TooLarge(&'static str),
    /// More redirects than allowed.
    RedirectLimit,
    /// The proxy did not open a tunnel to the target, with the reason.
    Proxy(&'static str),
    /// The server reset the stream of an exchange (HTTP/2, HTTP/3), with its code.
    StreamReset(ErrorCode),
    /// The server ended the connection by GOAWAY (HTTP/2, HTTP/3) before the response, with its
    /// code; HTTP/3 has none there.
    Goaway(ErrorCode),
    /// The QUIC connection ended before the response (HTTP/3): the name of its error.
    Quic(&'static str),
    /// The server closed the WebSocket session, with this close code.
    WebSocketClosed(CloseCode),
    /// The gRPC call failed, with this status.
    Grpc(GrpcStatus),
    /// A script's iteration threw.
    Script,
    /// Anything else, with the system's error number (0 without one).
    Other(i32),
}

impl Fault {
    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectReset => "connect_reset",
            Self::NoLocalPort => "no_local_port",
            Self::NoDescriptors => "no_descriptors",
            Self::NoMemory => "no_memory",
            Self::NotAllowed(_) => "not_allowed",
            Self::Tls(_) => "tls",
            Self::Write => "write",
            Self::Reset => "reset",
            Self::ClosedEarly(_) => "closed_early",
            Self::Malformed(_) => "malformed",
            Self::Timeout(_) => "timeout",
            Self::TooLarge(_) => "too_large",
            Self::RedirectLimit => "redirect_limit",
            Self::Proxy(_) => "proxy",
            Self::StreamReset(_) => "stream_reset",
            Self::Goaway(_) => "goaway",
            Self::Quic(_) => "quic",
            Self::WebSocketClosed(_) => "websocket_closed",
            Self::Grpc(_) => "grpc_status",
            Self::Script => "script",
            Self::Other(_) => "other",
        }
    }

    /// Whether the generator hit its own limit, so that the server is not to blame.
    #[must_use]
    pub fn is_generators(self) -> bool {
        matches!(
            self,
            Self::NoLocalPort | Self::NoDescriptors | Self::NoMemory | Self::NotAllowed(_)
        )
    }

    /// Whether the request may have reached the server: not when there was no connection.
    #[must_use]
    pub fn is_before_connection(self) -> bool {
        matches!(
            self,
            Self::Dns
                | Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectReset
                | Self::NoLocalPort
                | Self::NoDescriptors
                | Self::NotAllowed(_)
                | Self::Proxy(_)
                | Self::Timeout(Phase::Connect)
        )
    }

    /// Whether a time-out ended the request: the answer would have taken longer than it waited.
    #[must_use]
    pub fn is_timeout(self) -> bool {
        let deadline = Self::Grpc(GrpcStatus::DEADLINE_EXCEEDED);
        matches!(self, Self::Timeout(_) | Self::ConnectTimeout) || self == deadline
    }

    /// The detail beyond the name; may be empty.
    #[must_use]
    pub fn detail(self) -> String {
        match self {
            Self::NotAllowed(reason)
            | Self::Tls(reason)
            | Self::Malformed(reason)
            | Self::TooLarge(reason)
            | Self::Proxy(reason)
            | Self::Quic(reason) => reason.to_owned(),
            Self::StreamReset(code) | Self::Goaway(code) => code.name().to_owned(),
            Self::WebSocketClosed(code) => code.to_string(),
            Self::Grpc(status) => status.to_string(),
            Self::ClosedEarly(Phase::Connect | Phase::FirstByte) => {
                "before the first byte".to_owned()
            }
            Self::Timeout(Phase::Connect) => "connect".to_owned(),
            Self::Timeout(Phase::FirstByte) => "first byte".to_owned(),
            Self::Timeout(Phase::Body) => "body".to_owned(),
            Self::Other(errno) if errno != 0 => {
                std::io::Error::from_raw_os_error(errno).to_string()
            }
            _ => String::new(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let detail = self.detail();
        if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") }
    }
}
