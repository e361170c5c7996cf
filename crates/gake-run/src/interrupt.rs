//! Ending runs early, from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_engine::{Stop, StopHandle};

/// Ends the current run, and those that start after it: for signal handlers and user
/// interfaces. A run that was ended by it is [`RunEnd::Interrupted`].
///
/// [`RunEnd::Interrupted`]: gake_core::record::RunEnd::Interrupted
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    asked: Option<Stop>,
    is_urgent: bool,
    running: Option<StopHandle>,
}

impl Interrupt {
    /// Asks for an end: [`Stop::Drain`] waits for requests in flight, [`Stop::Now`] does not. A
    /// request is never withdrawn.
    pub fn stop(&self, stop: Stop) {
        let mut state = self.lock();
        state.asked = state.asked.max(Some(stop));
        state.tell();
    }

    /// Asks for an end at once, of what a script does after its run too.
    pub fn insist(&self) {
        self.lock().is_urgent = true;
        self.stop(Stop::Now);
    }

    /// Whether somebody insists.
    #[cfg(feature = "scripts")]
    pub(crate) fn is_urgent(&self) -> bool {
        self.lock().is_urgent
    }

    /// Whether an end was asked for.
    #[must_use]
    pub fn came(&self) -> bool {
        self.lock().asked.is_some_and(|stop| stop > Stop::Go)
    }

    /// A run that starts is ended through `handle`; at once when that was asked for already.
    pub(crate) fn attach(&self, handle: StopHandle) {
        let mut state = self.lock();
        state.running = Some(handle);
        state.tell();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&self) {
        if let (Some(stop), Some(running)) = (self.asked, &self.running) {
            running.stop(stop);
        }
    }
}
