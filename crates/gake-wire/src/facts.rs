//! What is known of a connection once it is open.

use std::net::SocketAddr;

use rustls::{CommonState, ProtocolVersion};

/// The connection of an exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// The address it was opened to: the origin's or the proxy's. `None` for a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Whether it speaks HTTP/2.
    pub is_http2: bool,
    /// What both sides agreed on, over TLS.
    pub tls: Option<TlsFacts>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2 (RFC 5246).
    Tls12,
    /// 1.3 (RFC 8446).
    Tls13,
}

/// What both sides of a TLS connection agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsFacts {
    /// The version.
    pub version: TlsVersion,
    suite: &'static str,
}

impl TlsFacts {
    /// What a session agreed on, once its handshake is over.
    pub(crate) fn of(session: &CommonState) -> Option<Self> {
        let version = match session.protocol_version()? {
            ProtocolVersion::TLSv1_2 => TlsVersion::Tls12,
            _ => TlsVersion::Tls13,
        };
        let suite = session.negotiated_cipher_suite()?.suite().as_str().unwrap_or_default();
        Some(Self { version, suite })
    }

    /// The cipher suite, as IANA names it.
    #[must_use]
    pub fn cipher_suite(&self) -> String {
        // rustls names those of TLS 1.3 apart.
        match self.suite.strip_prefix("TLS13_") {
            Some(suite) => format!("TLS_{suite}"),
            None => self.suite.to_owned(),
        }
    }
}
