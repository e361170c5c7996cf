//! What a worker's thread is doing, for the watchdog of another thread: which user runs, and which
//! native call that does not yield.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The activity of one thread.
#[derive(Debug, Default)]
pub struct Activity {
    /// The number of the user that ran last; 0 if none did.
    user: AtomicU64,
    call: Mutex<Option<&'static str>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Activity>>> = const { RefCell::new(None) };
}

impl Activity {
    /// Makes this the activity of the calling thread.
    pub fn enter(self: &Arc<Self>) {
        CURRENT.set(Some(Arc::clone(self)));
    }

    /// The call that has not returned, with its user; `None` outside of a call.
    #[must_use]
    pub fn call(&self) -> Option<String> {
        let call = (*self.call.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(match self.user.load(Relaxed) {
            0 => call.to_owned(),
            user => format!("{call} of user {user}"),
        })
    }

    fn set(&self, call: Option<&'static str>) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = call;
    }
}

/// Notes that a user runs on this thread from now on.
pub fn user(number: u64) {
    CURRENT.with_borrow(|current| {
        if let Some(activity) = current {
            activity.user.store(number, Relaxed);
        }
    });
}

/// Runs `work`, native work of a script that does not yield, under a name that users know.
pub fn during<T>(call: &'static str, work: impl FnOnce() -> T) -> T {
    let activity = CURRENT.with_borrow(Clone::clone);
    activity.iter().for_each(|activity| activity.set(Some(call)));
    let made = work();
    activity.iter().for_each(|activity| activity.set(None));
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_while_it_runs() {
        during("outside of a worker", || ());
        let activity = Arc::new(Activity::default());
        activity.enter();
        assert_eq!(activity.call(), None);
        during("a", || assert_eq!(activity.call().as_deref(), Some("a")));
        user(3);
        let made = during("console.log", || activity.call());
        assert_eq!((made.as_deref(), activity.call()), (Some("console.log of user 3"), None));
    }
}
