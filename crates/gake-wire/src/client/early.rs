//! Early data (0-RTT): requests sent before the end of a TLS handshake.
//!
//! A server that rejects them has not processed them; they are sent again once the connection is open.

use std::io::Write;
use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::record::Exchange;
use rustls::ClientConfig;
use rustls::client::ClientConnection;

use crate::client::settings::ClientSettings;
use crate::quic::QuicSettings;
use crate::tls;
use crate::tls::protocol::Protocol;

/// TLS settings of connections with early data; empty if it is off.
#[derive(Debug, Default)]
pub(crate) struct EarlySettings {
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) quic: Option<QuicSettings>,
}

impl EarlySettings {
    /// Derived from `config`, with its session store. The protocol must be fixed: early data is sent
    /// before ALPN.
    pub(crate) fn new(config: &Arc<ClientConfig>, settings: &ClientSettings) -> Self {
        match settings.protocol {
            Protocol::Http1 => Self { tls: Some(tls::with_early_data(config)), quic: None },
            Protocol::Http3 => {
                let config = tls::with_early_data(&tls::speaking(config, Protocol::Http3));
                let limits = settings.connection_limits();
                Self { tls: None, quic: QuicSettings::new(config, &limits) }
            }
            _ => Self::default(),
        }
    }
}

/// An HTTP/1.1 request that may be sent as early data.
#[derive(Debug)]
pub(crate) struct EarlyRequest<'a> {
    bytes: &'a [u8],
    is_sent: bool,
}

impl<'a> EarlyRequest<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, is_sent: false }
    }

    /// Hands the request to a new session at `now`, if that is resumed and the server's limit allows
    /// the whole request.
    pub(crate) fn send(
        &mut self,
        session: &mut ClientConnection,
        exchange: &mut Exchange,
        now: Nanos,
    ) {
        let Some(mut early) = session.early_data() else { return };
        if early.bytes_left() >= self.bytes.len() && early.write_all(self.bytes).is_ok() {
            self.is_sent = true;
            note(exchange, self.bytes.len(), now);
        }
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Records that a request of `bytes` was sent at `now`: the server may have it, even if the handshake
/// fails.
pub(crate) fn note(exchange: &mut Exchange, bytes: usize, now: Nanos) {
    if exchange.bytes_out == 0 {
        exchange.write = now;
    }
    exchange.bytes_out += bytes as u64;
    exchange.written = true;
}
