//! HTTP/2 of a client (RFC 9113, RFC 7541).
//!
//! A [`ClientConnection`] takes the server's bytes in slices of any size, and holds the bytes to
//! write. Requests are encoded once ([`RequestTemplate`]): on a warm connection, starting one copies
//! a few bytes and allocates nothing. Faults of a server end its stream ([`MessageError`]) or its
//! connection ([`Violation`]); floods are bounded.

mod connection;
mod control;
mod data;
mod decoder;
mod events;
mod fields;
mod frame;
mod hpack_error;
pub(crate) mod huffman;
mod huffman_codes;
pub(crate) mod integer;
mod message_error;
mod read_state;
mod receive;
mod response;
mod static_table;
mod streams;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod upload;
mod violation;

pub use connection::{ClientConnection, ConnectionCounts, ConnectionLimits};
pub use decoder::HeaderDecoder;
pub use events::{HeaderFields, StreamEnd, StreamEnding, StreamEvents};
pub use fields::ResponseFields;
pub use hpack_error::HpackError;
pub use message_error::MessageError;
pub use template::{RequestTemplate, SharedFields};
pub use violation::Violation;
