//! The threads of sinks.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that runs beside the load and must not delay it.
pub(super) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(run)
}
