//! The protocol of a connection.

/// The configured protocol of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1, or 1.0.
    #[default]
    Http1,
    /// HTTP/2: by ALPN over TLS, by prior knowledge in clear text.
    Http2,
    /// HTTP/2 or HTTP/1.1 by ALPN over TLS; HTTP/1.1 in clear text.
    Negotiated,
    /// HTTP/3, over QUIC.
    Http3,
    /// As [`Negotiated`](Self::Negotiated), and HTTP/3 to an origin that advertises it by `Alt-Svc`.
    Advertised,
    /// WebSocket, upgraded from HTTP/1.1. The body of the only request is the message; its URL and
    /// headers open the sessions.
    WebSocket,
}

impl Protocol {
    /// Whether a connection may carry concurrent exchanges.
    #[must_use]
    pub const fn may_be_multiplexed(self) -> bool {
        self.may_be_http2() || self.may_be_http3()
    }

    /// Whether a connection may speak HTTP/2.
    #[must_use]
    pub const fn may_be_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::Negotiated | Self::Advertised)
    }

    /// Whether a connection may speak HTTP/3.
    #[must_use]
    pub const fn may_be_http3(self) -> bool {
        matches!(self, Self::Http3 | Self::Advertised)
    }

    /// The protocols offered by ALPN, in order of preference.
    pub(crate) fn alpn(self) -> Vec<Vec<u8>> {
        let (h1, h2) = (b"http/1.1".to_vec(), b"h2".to_vec());
        match self {
            Self::Http1 | Self::WebSocket => vec![h1],
            Self::Http2 => vec![h2],
            Self::Negotiated | Self::Advertised => vec![h2, h1],
            Self::Http3 => vec![b"h3".to_vec()],
        }
    }
}
