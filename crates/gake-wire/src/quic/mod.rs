//! Connections of QUIC: their sockets, their settings, their errors.
//!
//! quinn keeps its own timers on the runtime of its worker. They measure the path (losses,
//! time-outs of the handshake) and enter no figure; the clock of a run cannot serve them, since it
//! stands still until the run's epoch, before which connections are opened.

mod connect;
mod errors;
mod receive;
mod socket;

pub(crate) use connect::{EarlyCall, EarlyEnd, QuicSettings, connect};
pub(crate) use errors::of_lost;
pub(crate) use socket::QuicSocket;
