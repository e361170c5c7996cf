//! Transports of exchanges: the interface that HTTP/1.1, HTTP/2 and HTTP/3 implement.
//!
//! A lane asks the pool for a place, which is room for one exchange on some connection, makes its
//! exchange there and gives the place back. Whether a connection has one place or a hundred is
//! a matter of the transport only.

mod any;
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
mod room;
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
