//! HTTP/3 of a client (RFC 9114, RFC 9204).
//!
//! A request is encoded once, as the bytes of its stream ([`StreamRequest`]); a [`ResponseReader`]
//! reads the stream of one response, a [`ControlReader`] the server's control stream. Neither side
//! uses QPACK's dynamic table: gake allows none.

mod control;
mod frame;
mod qpack;
mod request;
mod response;
mod static_table;
#[cfg(test)]
mod tests;
mod violation;

pub use control::{ControlEvent, ControlReader, control_opening, stream_kind};
pub use request::StreamRequest;
pub use response::{ResponseReader, StreamResponse};
pub use violation::StreamViolation;
