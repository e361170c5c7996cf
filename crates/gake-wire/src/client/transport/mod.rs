//! Transports: HTTP/1.1, HTTP/2, HTTP/3 and WebSocket behind one interface.
//!
//! The pool hands out slots, each of which carries one exchange. The number of slots of a connection
//! is up to its transport.

mod any;
mod capacity_watch;
mod http1;
mod http1_connection;
mod http2;
mod http2_link;
mod http2_task;
#[cfg_attr(not(feature = "http3"), path = "without_http3.rs")]
mod http3;
#[cfg(feature = "http3")]
mod http3_link;
#[cfg(feature = "http3")]
mod http3_task;
mod interface;
mod sampler;
mod session_stream;
mod transaction;
pub(crate) mod upgrade;
mod websocket;
mod websocket_exchange;

pub(crate) use any::AnyTransport;
pub(crate) use http1::Http1;
pub(crate) use http1_connection::LentConnection;
pub(crate) use http2::{Http2, Http2Options};
pub(crate) use http3::Http3;
pub(crate) use interface::{IdleState, Timing, Transport, TransportError};
pub(crate) use websocket::WebSocket;
