//! QUIC connections on quinn.
//!
//! quinn's timers (loss detection, handshake time-outs) run on the worker's runtime. They do not use
//! the clock of a run, which stands still until the run's epoch, while connections are opened.

mod connect;
mod errors;
mod receive;
mod socket;

pub(crate) use connect::{EarlyCall, EarlyEnd, QuicSettings, connect};
pub(crate) use errors::of_lost;
pub(crate) use socket::QuicSocket;
