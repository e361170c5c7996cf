//! What is known of a connection once it is open.

use std::net::SocketAddr;

pub use gake_core::spec::TlsVersion;
use rustls::client::{ClientConnection, EchStatus};
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion};

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

/// What both sides of a TLS connection agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsFacts {
    /// The version.
    pub version: TlsVersion,
    suite: CipherSuite,
    group: Option<NamedGroup>,
    /// Whether an earlier session is known to have been resumed.
    pub is_resumed: bool,
    ech: EchStatus,
}

impl TlsFacts {
    /// What a session agreed on, once its handshake is over.
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

    /// What is known of a handshake of QUIC: its version, since QUIC has no other. quinn does not
    /// tell the cipher suite and the group, nor what came of an encrypted hello, which follows from
    /// what was offered (`ech`), nor whether a session was resumed, unless early data was accepted.
    pub(crate) const fn of_quic(ech: EchStatus, is_resumed: bool) -> Self {
        let (version, suite) = (TlsVersion::Tls13, CipherSuite::Unknown(0));
        Self { version, suite, group: None, is_resumed, ech }
    }

    /// The cipher suite, as IANA names it; empty when that is not known.
    #[must_use]
    pub fn cipher_suite(&self) -> String {
        suite_name(self.suite.as_str().unwrap_or_default())
    }

    /// What came of an encrypted hello (ECH): `accepted`, `rejected`, or `grease` when it only looked
    /// like one; empty when it was not encrypted.
    #[must_use]
    pub const fn ech(&self) -> &'static str {
        match self.ech {
            EchStatus::NotOffered => "",
            EchStatus::Grease => "grease",
            EchStatus::Accepted => "accepted",
            EchStatus::Offered | EchStatus::Rejected => "rejected",
        }
    }

    /// The group of the key exchange, as IANA names it; empty when there was none.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.group.and_then(|group| group.as_str()).unwrap_or_default()
    }
}

/// The name of a cipher suite: rustls names those of TLS 1.3 apart.
pub(crate) fn suite_name(suite: &str) -> String {
    match suite.strip_prefix("TLS13_") {
        Some(suite) => format!("TLS_{suite}"),
        None => suite.to_owned(),
    }
}
