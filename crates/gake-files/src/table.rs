//! Descriptor tables: their size, and unsharing them.

#![expect(
    unsafe_code,
    reason = "unshare of the descriptor table: a number means another file in another table, which the caller must promise to keep apart"
)]

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};

/// Maximum descriptors of a table (`RLIMIT_NOFILE`, which the kernel applies to each table);
/// [`usize::MAX`] without a limit.
#[must_use]
pub fn table_size() -> usize {
    let size = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Unshares the descriptor table of the calling thread; threads that it starts share the new table.
/// Files open now are open in both tables, and must be closed in both.
///
/// # Safety
/// Descriptors opened from now on must not be used across the two tables: the number is another
/// file there, or none.
///
/// # Errors
/// When the system refuses, has no memory for the table, or is not Linux.
pub unsafe fn own_table() -> io::Result<()> {
    // SAFETY: the caller guarantees that descriptors are not used across tables.
    unsafe { unshare_files() }
}

#[cfg(target_os = "linux")]
unsafe fn unshare_files() -> io::Result<()> {
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    // SAFETY: the caller's guarantee.
    Ok(unsafe { unshare_unsafe(UnshareFlags::FILES) }?)
}

/// Only Linux has a descriptor table per thread.
#[cfg(not(target_os = "linux"))]
unsafe fn unshare_files() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether [`own_table`] works: sandboxes may forbid the system call.
#[must_use]
pub fn can_own_table() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        // SAFETY: the thread opens nothing, and ends.
        let tried = std::thread::Builder::new().spawn(|| unsafe { own_table() }.is_ok());
        tried.is_ok_and(|thread| thread.join().unwrap_or(false))
    })
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// Whether a thread of this process has a file open.
    fn has(thread: rustix::process::Pid, file: &Path) -> bool {
        let table = PathBuf::from(format!("/proc/self/task/{}/fd", thread.as_raw_nonzero()));
        let entries = std::fs::read_dir(table).unwrap().flatten();
        let mut files = entries.flat_map(|entry| std::fs::read_link(entry.path()));
        files.any(|open| open == file)
    }

    #[test]
    fn only_files_opened_before_are_shared() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (before, after) = (folder.join("before"), folder.join("after"));
        let _before = std::fs::File::create(&before).unwrap();
        let main = rustix::thread::gettid();
        let opened = after.clone();
        let seen = std::thread::spawn(move || {
            // SAFETY: the file opened below stays on this thread.
            unsafe { own_table() }.unwrap();
            let _after = std::fs::File::create(&opened).unwrap();
            let own = rustix::thread::gettid();
            [has(own, &before), has(own, &opened), has(main, &before), has(main, &opened)]
        });
        assert_eq!(seen.join().unwrap(), [true, true, true, false]);
        assert!(after.exists());
    }
}
