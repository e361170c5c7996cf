//! The closed list of reasons for a missing or incomplete response.

use std::fmt;

use super::close_code::CloseCode;
use super::error_code::ErrorCode;
use super::grpc_status::GrpcStatus;

/// A phase of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Opening the connection, TLS included.
    Connect,
    /// Writing the request, and waiting for the first byte of the response.
    FirstByte,
    /// Reading the rest of the response.
    Body,
}

/// Why a response is missing or incomplete. Faults do not allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The name could not be resolved.
    Dns,
    /// The connection was refused, by the host or a firewall.
    ConnectRefused,
    /// The connection was not open within the connect time-out.
    ConnectTimeout,
    /// The connection was reset while connecting.
    ConnectReset,
    /// The network or the host is unreachable, or down, with the errno.
    Unreachable(i32),
    /// The generator has no local port left (EADDRNOTAVAIL).
    NoLocalPort,
    /// The generator has no file descriptor left (EMFILE, ENFILE).
    NoDescriptors,
    /// Response bodies held by scripts have reached their memory limit.
    NoMemory,
    /// An agent may not open the connection; names the limit.
    NotAllowed(&'static str),
    /// The TLS handshake or session failed; with the reason.
    Tls(&'static str),
    /// Writing the request failed.
    Write,
    /// The peer reset the connection before the response ended.
    Reset,
    /// The peer closed the connection before the response ended, in this phase.
    ClosedEarly(Phase),
    /// The response is not valid HTTP; with the reason.
    Malformed(&'static str),
    /// The request timed out.
    Timeout(Phase),
    /// The response exceeds a limit; names the limit.
    TooLarge(&'static str),
    /// More redirects than allowed.
    RedirectLimit,
    /// The proxy did not open a tunnel to the target; with the reason.
    Proxy(&'static str),
    /// The server reset the stream (HTTP/2, HTTP/3).
    StreamReset(ErrorCode),
    /// The server ended the connection by GOAWAY before the response (HTTP/2, HTTP/3; the latter
    /// has no code).
    Goaway(ErrorCode),
    /// The QUIC connection ended before the response (HTTP/3); names the error.
    Quic(&'static str),
    /// The server closed the WebSocket session.
    WebSocketClosed(CloseCode),
    /// The gRPC call failed.
    Grpc(GrpcStatus),
    /// An iteration of a script threw.
    Script,
    /// Any other system error, with its errno (0 if unknown).
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
            Self::Unreachable(_) => "unreachable",
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

    /// The fault in words, for prose: `connection refused`, `TLS: the certificate has expired`.
    #[must_use]
    pub fn in_words(self) -> String {
        let words = match self {
            Self::Dns => "name not resolved",
            Self::ConnectRefused => "connection refused",
            Self::ConnectTimeout => "no connection in time",
            Self::ConnectReset => "connection reset while connecting",
            Self::Unreachable(_) => "no way to the host",
            Self::NoLocalPort => "no free local port",
            Self::NoDescriptors => "no free file descriptor",
            Self::NoMemory => "no memory for bodies",
            Self::NotAllowed(_) => "not allowed",
            Self::Tls(_) => "TLS",
            Self::Write => "write failed",
            Self::Reset => "connection reset",
            Self::ClosedEarly(Phase::Body) => "connection closed within the response",
            Self::ClosedEarly(_) => "connection closed without a response",
            Self::Malformed(_) => "not a valid response",
            Self::Timeout(Phase::Connect) => "no connection in time",
            Self::Timeout(Phase::FirstByte) => "no response in time",
            Self::Timeout(Phase::Body) => "response not complete in time",
            Self::TooLarge(_) => "too large",
            Self::RedirectLimit => "too many redirects",
            Self::StreamReset(_) => "stream reset",
            Self::Goaway(_) => "connection ended by GOAWAY",
            Self::Quic(_) => "QUIC",
            Self::WebSocketClosed(_) => "session closed",
            Self::Grpc(_) => "gRPC status",
            Self::Proxy(_) => "proxy",
            Self::Script => "script error",
            Self::Other(_) => "system error",
        };
        let detail = match self {
            Self::ClosedEarly(_) | Self::Timeout(_) => String::new(),
            // Identifiers of the codecs; the errors of protocols keep their own names.
            Self::Malformed(reason) | Self::TooLarge(reason) => reason.replace('_', " "),
            _ => self.detail(),
        };
        if detail.is_empty() { words.to_owned() } else { format!("{words}: {detail}") }
    }

    /// Whether the generator hit a limit of its own, so that the server is not to blame.
    #[must_use]
    pub fn is_generators(self) -> bool {
        matches!(
            self,
            Self::NoLocalPort | Self::NoDescriptors | Self::NoMemory | Self::NotAllowed(_)
        )
    }

    /// Whether it occurred before there was a connection, so that the server cannot have received
    /// the request.
    #[must_use]
    pub fn is_before_connection(self) -> bool {
        matches!(
            self,
            Self::Dns
                | Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectReset
                | Self::Unreachable(_)
                | Self::NoLocalPort
                | Self::NoDescriptors
                | Self::NotAllowed(_)
                | Self::Proxy(_)
                | Self::Timeout(Phase::Connect)
        )
    }

    /// Whether a time-out ended the request: its response time is censored.
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
            Self::Other(errno) | Self::Unreachable(errno) if errno != 0 => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_in_words_are_no_identifiers() {
        let faults = [
            Fault::ConnectRefused,
            Fault::ClosedEarly(Phase::FirstByte),
            Fault::Timeout(Phase::Body),
            Fault::Malformed("not_http2"),
            Fault::TooLarge("head"),
            Fault::NoLocalPort,
            Fault::Script,
        ];
        let words: Vec<_> = faults.into_iter().map(Fault::in_words).collect();
        assert!(words.iter().all(|words| !words.contains('_')), "{words:?}");
        assert_eq!(words[0], "connection refused");
        assert_eq!(words[3], "not a valid response: not http2");
    }
}
