//! Requests that go with a TLS handshake, before its end (early data, 0-RTT).
//!
//! A server may accept or reject them. What it rejects it has not seen, and is sent again when the
//! connection is open.

use std::io::Write;
use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::record::Exchange;
use rustls::ClientConfig;
use rustls::client::ClientConnection;

use crate::client::settings::Settings;
use crate::quic::QuicSettings;
use crate::tls;
use crate::tls::protocol::Protocol;

/// How connections are opened whose first request goes with the handshake; empty unless that is
/// wanted.
#[derive(Debug, Default)]
pub(crate) struct EarlySettings {
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) quic: Option<QuicSettings>,
}

impl EarlySettings {
    /// The same as `config`, with the sessions that its connections leave. Which version of HTTP
    /// is spoken must be known before anything is sent.
    pub(crate) fn new(config: &Arc<ClientConfig>, settings: &Settings) -> Self {
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

/// A request of HTTP/1.1 that may go with the handshake of its connection.
#[derive(Debug)]
pub(crate) struct EarlyRequest<'a> {
    bytes: &'a [u8],
    is_sent: bool,
}

impl<'a> EarlyRequest<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, is_sent: false }
    }

    /// Hands the request to a session that has just begun, at `now`, when it takes all of it: one
    /// that is resumed, with a server that allows this much.
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

    /// Whether it went with the handshake.
    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Its length.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Notes that a request of `bytes` was handed over at `now`: the server may have it, even if the
/// handshake fails.
pub(crate) fn note(exchange: &mut Exchange, bytes: usize, now: Nanos) {
    if exchange.bytes_out == 0 {
        exchange.write = now;
    }
    exchange.bytes_out += bytes as u64;
    exchange.written = true;
}
