//! A connection of any protocol.

use std::net::SocketAddr;

use gake_core::clock::Nanos;
use gake_core::record::Fault;

use super::interface::{IdleState, Transport};
use super::{Http1, Http2, Http3, WebSocket};
use crate::net::scratch::Scratch;
use crate::tls::facts::ConnectionFacts;

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are the larger one, or all the other")]
pub(crate) enum AnyTransport {
    Http1(Http1),
    Http2(Http2),
    Http3(Http3),
    WebSocket(WebSocket),
}

impl AnyTransport {
    /// Facts for the visitor; `None` for a WebSocket session.
    #[inline]
    pub(crate) fn facts(&self) -> Option<&ConnectionFacts> {
        match self {
            Self::Http1(http1) => Some(&http1.facts),
            Self::Http2(http2) => Some(&http2.facts),
            Self::Http3(http3) => Some(http3.facts()),
            Self::WebSocket(_) => None,
        }
    }

    /// Holds the connection until the peer ends it.
    pub(crate) async fn until_ended(&self, scratch: &Scratch) {
        match self {
            Self::Http1(http1) => http1.until_ended(scratch).await,
            Self::Http2(http2) => http2.until_ended().await,
            Self::Http3(http3) => http3.until_ended().await,
            Self::WebSocket(session) => session.until_ended().await,
        }
    }

    /// Waits until an HTTP/2 server has shown that it is one.
    pub(crate) async fn greeting(&self) -> Result<(), Fault> {
        match self {
            Self::Http2(http2) => http2.greeting().await,
            Self::Http1(_) | Self::Http3(_) | Self::WebSocket(_) => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn is_http3(&self) -> bool {
        matches!(self, Self::Http3(_))
    }

    /// The address of the peer; `None` for a Unix socket.
    #[inline]
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::WebSocket(session) => session.peer(),
            other => other.facts()?.peer,
        }
    }

    /// Ends the connection after its live exchanges.
    pub(crate) fn retire(&self) {
        match self {
            Self::Http1(http1) => http1.retire(),
            Self::Http2(http2) => http2.retire(),
            Self::Http3(http3) => http3.retire(),
            Self::WebSocket(session) => session.retire(),
        }
    }

    /// Whether it is a WebSocket whose upgrade was refused.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::WebSocket(session) if session.is_refused())
    }
}

impl Transport for AnyTransport {
    #[inline]
    fn capacity(&self) -> usize {
        match self {
            Self::Http1(http1) => http1.capacity(),
            Self::Http2(http2) => http2.capacity(),
            Self::Http3(http3) => http3.capacity(),
            Self::WebSocket(session) => session.capacity(),
        }
    }

    #[inline]
    fn is_ending(&self) -> bool {
        match self {
            Self::Http1(http1) => http1.is_ending(),
            Self::Http2(http2) => http2.is_ending(),
            Self::Http3(http3) => http3.is_ending(),
            Self::WebSocket(session) => session.is_ending(),
        }
    }

    fn watch_capacity(&self, watcher: impl Fn() + 'static) {
        match self {
            Self::Http1(http1) => http1.watch_capacity(watcher),
            Self::Http2(http2) => http2.watch_capacity(watcher),
            Self::Http3(http3) => http3.watch_capacity(watcher),
            Self::WebSocket(session) => session.watch_capacity(watcher),
        }
    }

    #[inline]
    fn idle_state(&self, now: Nanos, scratch: &Scratch) -> IdleState {
        match self {
            Self::Http1(http1) => http1.idle_state(now, scratch),
            Self::Http2(http2) => http2.idle_state(now, scratch),
            Self::Http3(http3) => http3.idle_state(now, scratch),
            Self::WebSocket(session) => session.idle_state(now, scratch),
        }
    }
}
