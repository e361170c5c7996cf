//! Processes that end with the one that started them.

use rustix::process::{Signal, getppid};

use gake_session::Failure;

/// Has the kernel end this process when `parent` ends, in whatever way.
///
/// # Errors
/// When the system refuses, or `parent` is not the parent of this process.
pub fn end_with(parent: u32) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
        Failure::could_not(format!("this process cannot follow its parent: {error}"))
    })?;
    // It may have ended before.
    let is_there =
        getppid().is_some_and(|pid| u32::try_from(pid.as_raw_nonzero().get()) == Ok(parent));
    if is_there {
        Ok(())
    } else {
        Err(Failure::could_not(format!("process {parent} is not there")))
    }
}
