//! The pending timers of a user.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::test::{LogLevel, Test};

/// The function that starts a repeating timer.
pub(super) const INTERVAL: &str = "setInterval";

#[derive(Default)]
pub(super) struct Timers {
    last: Cell<u32>,
    /// Pending timers, and whether they repeat.
    pub(super) live: RefCell<BTreeMap<u32, bool>>,
}

impl Timers {
    /// Adds a timer; returns its number.
    pub(super) fn next(&self, repeats: bool) -> u32 {
        self.last.set(self.last.get() + 1);
        self.live.borrow_mut().insert(self.last.get(), repeats);
        self.last.get()
    }

    /// Drops pending timers at the end of an iteration, with k6's warnings.
    pub(super) fn stop(&self, test: &Test) {
        for (number, repeats) in self.live.take() {
            let name = if repeats { INTERVAL } else { "setTimeout" };
            let message =
                format!("{name} {number} was stopped because the VU iteration was interrupted");
            test.log(LogLevel::Warning, &message, &[]);
        }
    }
}
