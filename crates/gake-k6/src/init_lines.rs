//! Whose init code's lines are logged.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Lines that init code logs. k6 loads the script for all users before `setup`, gake after it: if
/// there are any lines, gake writes the lines of the users before `setup` and does not repeat them.
#[derive(Debug, Default)]
pub struct InitLines {
    are_any: AtomicBool,
    are_written: AtomicBool,
}

impl InitLines {
    /// Marks a line of a user's init code; returns whether to write it.
    pub(crate) fn begin(&self, user: u64) -> bool {
        self.are_any.store(true, Relaxed);
        user == 0 || !self.are_written.load(Relaxed)
    }

    /// Whether init code has logged anything.
    pub fn are_any(&self) -> bool {
        self.are_any.load(Relaxed)
    }

    /// Leaves out further lines of users.
    pub fn written(&self) {
        self.are_written.store(true, Relaxed);
    }
}
