//! Descriptors registered with the runtime.

#![expect(
    unsafe_code,
    reason = "AsyncFd::register of a listening socket, for the same reason as the engine's timer"
)]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor for readability. Must be called within a runtime.
pub(crate) fn watch_readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the AsyncFd owns the descriptor, which so stays open and the same until dropped.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
