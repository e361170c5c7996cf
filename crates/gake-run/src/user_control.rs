//! Setting the number of users of externally controlled scenarios, from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_engine::UsersHandle;

/// Sets how many users the externally controlled scenarios of a run have.
#[derive(Debug, Clone, Default)]
pub struct UserControl(Arc<Mutex<Vec<Option<UsersHandle>>>>);

impl UserControl {
    /// Asks for `users` in each of them, capped at its maximum. Returns the most that one was
    /// given; `None` when the run has no such scenario, or has not started.
    pub fn set(&self, users: usize) -> Option<usize> {
        self.lock().iter().flatten().map(|handle| handle.set(users)).max()
    }

    /// The largest number that was asked for last.
    #[must_use]
    pub fn largest(&self) -> Option<usize> {
        self.lock().iter().flatten().map(UsersHandle::asked).max()
    }

    /// The number asked for last in the scenario of this number.
    #[must_use]
    pub fn asked(&self, scenario: usize) -> Option<usize> {
        self.lock().get(scenario)?.as_ref().map(UsersHandle::asked)
    }

    /// The run that starts is controlled through `handles`, by scenario.
    pub(crate) fn attach(&self, handles: Vec<Option<UsersHandle>>) {
        *self.lock() = handles;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<UsersHandle>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
