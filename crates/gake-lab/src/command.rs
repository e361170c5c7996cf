//! What a worker thread can be told.

use std::time::Instant;

use crate::accepted::Accepted;

/// What a worker thread can be told.
#[derive(Debug)]
pub(crate) enum Command {
    /// Serve this connection.
    Serve(Accepted),
    /// Do nothing at all until then.
    Pause(Instant),
    /// Drop everything and end.
    Stop,
}
