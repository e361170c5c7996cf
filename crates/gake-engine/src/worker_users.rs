//! State shared by the users of one scenario on a worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gake_core::clock::Nanos;
use gake_core::work::Arrival;
use tokio::sync::watch;

use crate::arrival_numbers::ArrivalNumbers;
use crate::scenario_state::{Progress, ScenarioState};

/// The pause of a user between a response and the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    None,
    /// A fixed time.
    Think(Nanos),
    /// Until the next instant of a grid of this spacing; none if one was missed.
    Pace(Nanos),
}

/// State shared by the users of one scenario on a worker.
pub(crate) struct WorkerUsers {
    pub(crate) shared: Rc<ScenarioState>,
    pub(crate) pause: Pause,
    /// Time that a user who leaves before the end has to finish its iteration.
    pub(crate) graceful_ramp_down: Nanos,
    pub(crate) warmup_end: Nanos,
    /// No new requests from here on.
    pub(crate) end: Option<Nanos>,
    pub(crate) numbers: ArrivalNumbers,
    /// Users who are not done.
    pub(crate) active: Cell<usize>,
    /// Number of users wanted over all workers, for an externally controlled load.
    pub(crate) wanted: Cell<usize>,
    /// Source of `wanted`.
    pub(crate) setting: RefCell<Option<watch::Receiver<usize>>>,
}

impl WorkerUsers {
    /// The next arrival at `now`; `None` if there are no more.
    pub(crate) fn take(&self, now: Nanos) -> Option<Arrival> {
        let is_over = self.end.is_some_and(|end| now >= end);
        if self.shared.progress.get() != Progress::Running || is_over {
            return None;
        }
        let number = self.numbers.take(now >= self.warmup_end)?;
        Some(Arrival { number, due: now })
    }

    pub(crate) fn wanted(&self) -> usize {
        self.wanted.get()
    }

    /// Called when a user is done.
    pub(crate) fn leave(&self) {
        self.active.set(self.active.get() - 1);
        if self.active.get() == 0 {
            self.shared.quiet.notify_one();
        }
    }
}
