//! What is said on a connection, without input and output: a module for each protocol.

pub mod http1;
pub mod http2;
pub mod http3;
pub(crate) mod websocket;
