//! What carries exchanges: the interface behind which HTTP/1.1 stands, and each multiplexing
//! protocol can.
//!
//! A lane asks the pool for a place, which is room for one exchange on some connection, makes its
//! exchange there and gives the place back. Whether a connection has one place or a hundred is
//! the transport's business alone.

mod conn;
mod http1;
mod interface;
mod transaction;

pub(crate) use http1::Http1;
pub(crate) use interface::{IdleState, Timing, Transport, TransportError};
