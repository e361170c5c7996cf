//! Commands to a worker thread.

use std::time::Instant;

use crate::accepted::AcceptedConnection;

#[derive(Debug)]
pub(crate) enum WorkerCommand {
    Serve(AcceptedConnection),
    /// Block the thread until this instant.
    Pause(Instant),
    /// Drop all connections and end.
    Stop,
}
