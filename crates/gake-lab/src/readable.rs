//! Descriptors that a runtime watches.

#![expect(
    unsafe_code,
    reason = "AsyncFd::register of a listening socket, for the same reason as the engine's timer"
)]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor for being readable. Must be called within a runtime.
pub(crate) fn watch_readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open, and the same one, until it is
    // dropped, which only the AsyncFd that now owns it does.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
