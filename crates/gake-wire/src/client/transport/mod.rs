//! Transports: HTTP/1.1, HTTP/2, HTTP/3 and WebSocket behind one interface.
//!
//! The pool hands out slots, each of which carries one exchange. The number of slots of a connection
//! is up to its transport.

mod any;
mod capacity_watch;
mod conn;
mod http1;
mod http2;
mod http2_task;
#[cfg_attr(not(feature = "http3"), path = "without_http3.rs")]
mod http3;
#[cfg(feature = "http3")]
mod http3_link;
#[cfg(feature = "http3")]
mod http3_task;
mod interface;
mod link;
mod sampler;
mod transaction;
mod websocket;
mod websocket_line;
pub(crate) mod websocket_open;
mod websocket_turn;

pub(crate) use any::AnyTransport;
pub(crate) use http1::Http1;
pub(crate) use http2::{Http2, Opening};
pub(crate) use http3::Http3;
pub(crate) use interface::{IdleState, Timing, Transport, TransportError};
pub(crate) use websocket::WebSocket;
