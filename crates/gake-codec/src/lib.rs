//! The protocols of a client, sans IO: bytes in, responses, events and faults out.

pub mod http1;
pub mod http2;
pub mod http3;
pub mod websocket;
