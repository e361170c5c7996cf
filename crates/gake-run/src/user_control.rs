//! Control of the users of externally controlled scenarios, from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_engine::UsersHandle;

/// Sets the number of users of a run's externally controlled scenarios, and pauses them.
#[derive(Debug, Clone, Default)]
pub struct UserControl(Arc<Mutex<ControlState>>);

#[derive(Debug, Default)]
struct ControlState {
    /// By scenario; `None` for those that are not controlled.
    handles: Vec<Option<UsersHandle>>,
    /// While paused: the users of each scenario after it resumes.
    paused: Option<Vec<usize>>,
}

impl UserControl {
    /// Sets the users of the first controlled scenario; if it is paused, once it resumes. Returns
    /// its maximum, beyond which nothing changes; `None` if the run has no such scenario or has not
    /// started.
    pub fn scale(&self, users: usize) -> Option<usize> {
        let ControlState { handles, paused } = &mut *self.lock();
        let mut all = handles.iter().enumerate();
        let (number, handle) = all.find_map(|(number, one)| Some((number, one.as_ref()?)))?;
        let most = handle.max();
        match paused {
            _ if users > most => {}
            Some(later) => later[number] = users,
            None => drop(handle.set(users)),
        }
        Some(most)
    }

    /// Pauses every controlled scenario until [`resume`](Self::resume). Returns whether the run has
    /// such a scenario and has started.
    pub fn pause(&self) -> bool {
        let ControlState { handles, paused } = &mut *self.lock();
        if paused.is_none() {
            let requested =
                |handle: &Option<UsersHandle>| handle.as_ref().map_or(0, UsersHandle::asked);
            *paused = Some(handles.iter().map(requested).collect());
            for handle in handles.iter().flatten() {
                handle.set(0);
            }
        }
        handles.iter().flatten().next().is_some()
    }

    /// Restores the users of paused scenarios.
    pub fn resume(&self) {
        let ControlState { handles, paused } = &mut *self.lock();
        for (handle, users) in handles.iter().zip(paused.take().unwrap_or_default()) {
            handle.as_ref().map(|handle| handle.set(users));
        }
    }

    /// The latest number set for a scenario; 0 while it is paused.
    #[must_use]
    pub fn requested(&self, scenario: usize) -> Option<usize> {
        self.lock().handles.get(scenario)?.as_ref().map(UsersHandle::asked)
    }

    /// Controls a run that starts through `handles`, by scenario.
    pub(crate) fn attach(&self, handles: Vec<Option<UsersHandle>>) {
        *self.lock() = ControlState { handles, paused: None };
    }

    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_scenario_gets_its_users_when_it_resumes() {
        let control = UserControl::default();
        assert_eq!((control.scale(1), control.pause()), (None, false), "nothing runs yet");
        let handle = |users| Some(UsersHandle::new(users, 5));
        control.attach(vec![None, handle(2), handle(3)]);
        let requested = || [0, 1, 2].map(|scenario| control.requested(scenario));
        assert!(control.pause());
        assert_eq!(requested(), [None, Some(0), Some(0)]);
        assert_eq!((control.scale(9), control.scale(4)), (Some(5), Some(5)));
        assert!(control.pause(), "again");
        assert_eq!(requested(), [None, Some(0), Some(0)]);
        control.resume();
        assert_eq!(requested(), [None, Some(4), Some(3)], "each its own");
        control.resume();
        assert_eq!(
            (control.scale(6), requested()),
            (Some(5), [None, Some(4), Some(3)]),
            "too many"
        );
        assert_eq!(control.scale(1), Some(5));
        assert_eq!(requested(), [None, Some(1), Some(3)], "the first one");
    }

    #[test]
    fn runs_without_such_a_scenario_cannot_be_paused() {
        let control = UserControl::default();
        control.attach(vec![None]);
        assert_eq!((control.scale(1), control.pause()), (None, false));
    }
}
