//! What the users of one worker share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gake_core::clock::Nanos;
use gake_core::work::Arrival;
use tokio::sync::watch;

use crate::arrival_numbers::ArrivalNumbers;
use crate::scenario_state::{Progress, ScenarioState};

/// What a user does between an answer and the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Nothing.
    None,
    /// Waits for this time.
    Think(Nanos),
    /// Waits for the next instant of a grid of this spacing; when one was missed, not at all.
    Pace(Nanos),
}

/// What the users of one worker share.
pub(crate) struct WorkerUsers {
    pub(crate) shared: Rc<ScenarioState>,
    pub(crate) pause: Pause,
    /// How long a user that leaves before the end may take for what it has begun.
    pub(crate) graceful_ramp_down: Nanos,
    pub(crate) warmup_end: Nanos,
    /// No new request from here on.
    pub(crate) end: Option<Nanos>,
    pub(crate) numbers: ArrivalNumbers,
    /// Users who are not done.
    pub(crate) active: Cell<usize>,
    /// How many users of all workers are wanted, when that is set from outside.
    pub(crate) wanted: Cell<usize>,
    /// The channel that sets it.
    pub(crate) setting: RefCell<Option<watch::Receiver<usize>>>,
}

impl WorkerUsers {
    /// The next request at `now`, unless no user has one.
    pub(crate) fn take(&self, now: Nanos) -> Option<Arrival> {
        let is_over = self.end.is_some_and(|end| now >= end);
        if self.shared.progress.get() != Progress::Running || is_over {
            return None;
        }
        let number = self.numbers.take(now >= self.warmup_end)?;
        Some(Arrival { number, due: now })
    }

    /// How many users of all workers are wanted, when that is set from outside.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.get()
    }

    /// A user is done.
    pub(crate) fn leave(&self) {
        self.active.set(self.active.get() - 1);
        if self.active.get() == 0 {
            self.shared.quiet.notify_one();
        }
    }
}
