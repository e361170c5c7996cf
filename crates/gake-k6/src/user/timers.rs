//! Which timers of a user will fire.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::test::{LogLevel, Test};

/// The function that starts a timer which repeats.
pub(super) const INTERVAL: &str = "setInterval";

/// The timers of one user.
#[derive(Default)]
pub(super) struct Timers {
    last: Cell<u32>,
    /// Those that will fire, and whether they repeat.
    pub(super) live: RefCell<BTreeMap<u32, bool>>,
}

impl Timers {
    /// The number of a new one.
    pub(super) fn next(&self, repeats: bool) -> u32 {
        self.last.set(self.last.get() + 1);
        self.live.borrow_mut().insert(self.last.get(), repeats);
        self.last.get()
    }

    /// Forgets those that have not fired when an iteration ends, and says so as k6 does.
    pub(super) fn stop(&self, test: &Test) {
        for (number, repeats) in self.live.take() {
            let name = if repeats { INTERVAL } else { "setTimeout" };
            let message =
                format!("{name} {number} was stopped because the VU iteration was interrupted");
            test.log(LogLevel::Warning, &message, &[]);
        }
    }
}
