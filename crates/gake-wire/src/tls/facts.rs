//! Facts about an open connection.

use std::net::SocketAddr;

pub use gake_core::spec::TlsVersion;
use rustls::client::{ClientConnection, EchStatus};
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion};

/// The connection of an exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// The address of the peer: the origin or the proxy. `None` for a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Whether it speaks HTTP/2.
    pub is_http2: bool,
    /// Whether it speaks HTTP/3.
    pub is_http3: bool,
    /// The negotiated parameters of TLS.
    pub tls: Option<TlsFacts>,
}

/// The negotiated parameters of a TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsFacts {
    /// The version.
    pub version: TlsVersion,
    suite: CipherSuite,
    group: Option<NamedGroup>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    ech: EchStatus,
}

impl TlsFacts {
    /// The parameters of a session; `None` before the end of its handshake.
    pub(crate) fn of(session: &ClientConnection) -> Option<Self> {
        let version = match session.protocol_version()? {
            ProtocolVersion::TLSv1_2 => TlsVersion::Tls12,
            _ => TlsVersion::Tls13,
        };
        let suite = session.negotiated_cipher_suite()?.suite();
        let group = session.negotiated_key_exchange_group().map(|group| group.name());
        let is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
        Some(Self { version, suite, group, is_resumed, ech: session.ech_status() })
    }

    /// The parameters of a QUIC handshake, which is always TLS 1.3. quinn reports neither suite nor
    /// group, and resumption only by accepted early data; `ech` follows from what was offered.
    pub(crate) const fn of_quic(ech: EchStatus, is_resumed: bool) -> Self {
        let (version, suite) = (TlsVersion::Tls13, CipherSuite::Unknown(0));
        Self { version, suite, group: None, is_resumed, ech }
    }

    /// The IANA name of the cipher suite; empty if unknown.
    #[must_use]
    pub fn cipher_suite(&self) -> String {
        suite_name(self.suite.as_str().unwrap_or_default())
    }

    /// The outcome of an encrypted hello (ECH): `accepted`, `rejected`, or `grease` for a fake one;
    /// empty without ECH.
    #[must_use]
    pub const fn ech(&self) -> &'static str {
        match self.ech {
            EchStatus::NotOffered => "",
            EchStatus::Grease => "grease",
            EchStatus::Accepted => "accepted",
            EchStatus::Offered | EchStatus::Rejected => "rejected",
        }
    }

    /// The IANA name of the key exchange group; empty without one.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.group.and_then(|group| group.as_str()).unwrap_or_default()
    }
}

/// The IANA name of a cipher suite; rustls uses another prefix for TLS 1.3.
pub(crate) fn suite_name(suite: &str) -> String {
    match suite.strip_prefix("TLS13_") {
        Some(suite) => format!("TLS_{suite}"),
        None => suite.to_owned(),
    }
}
