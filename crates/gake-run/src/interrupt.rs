//! Ending runs early, from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_engine::{Stop, StopHandle};

/// Ends the current run, and any that start later: for signal handlers and user interfaces. A run
/// that it ended is [`Ending::Interrupted`].
///
/// [`RunEnd::Interrupted`]: gake_core::record::RunEnd::Interrupted
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Mutex<InterruptState>>);

#[derive(Debug, Default)]
struct InterruptState {
    asked: Option<Stop>,
    is_urgent: bool,
    running: Option<StopHandle>,
}

impl Interrupt {
    /// Ends the run: [`Stop::Drain`] waits for requests in flight, [`Stop::Now`] does not. This
    /// cannot be undone.
    pub fn stop(&self, stop: Stop) {
        let mut state = self.lock();
        state.asked = state.asked.max(Some(stop));
        state.apply();
    }

    /// Ends the run now, and also the `teardown` of a script. Does not wait for workers that block
    /// their threads.
    pub fn insist(&self) {
        let mut state = self.lock();
        (state.is_urgent, state.asked) = (true, Some(Stop::Now));
        state.apply();
    }

    /// Whether [`insist`](Self::insist) was called.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.lock().is_urgent
    }

    /// Whether [`stop`](Self::stop) was called.
    #[must_use]
    pub fn came(&self) -> bool {
        self.lock().asked.is_some_and(|stop| stop > Stop::Go)
    }

    /// Controls a run that starts through `handle`, and ends it now if that was requested before.
    pub(crate) fn attach(&self, handle: StopHandle) {
        let mut state = self.lock();
        state.running = Some(handle);
        state.apply();
    }

    fn lock(&self) -> MutexGuard<'_, InterruptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InterruptState {
    fn apply(&self) {
        match (self.asked, &self.running) {
            (Some(_), Some(running)) if self.is_urgent => running.insist(),
            (Some(stop), Some(running)) => running.stop(stop),
            _ => {}
        }
    }
}
