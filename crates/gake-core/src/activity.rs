//! What a worker's thread is doing, for the watchdog of another thread: which user runs, and which
//! native function.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The numbers of native functions by owner and name. Threads can pass a number on without a lock.
static NUMBERS: Mutex<BTreeMap<(&str, &str), u32>> = Mutex::new(BTreeMap::new());

/// A native function that scripts call, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NativeCall(u32);

impl NativeCall {
    /// The function `name` of `owner`, a module or an object, as users know them.
    #[must_use]
    pub fn new(owner: &'static str, name: &'static str) -> Self {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() as u32 + 1;
        Self(*numbers.entry((owner, name)).or_insert(next))
    }

    fn names(self) -> Option<(&'static str, &'static str)> {
        let numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.iter().find(|(_, number)| **number == self.0).map(|(names, _)| *names)
    }
}

impl fmt::Display for NativeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names() {
            Some(("", name)) => f.write_str(name),
            Some((owner, name)) => write!(f, "{owner}.{name}"),
            None => f.write_str("script"),
        }
    }
}

/// The activity of one thread.
#[derive(Debug, Default)]
pub struct Activity {
    /// The number of the user that ran last; 0 if none did.
    user: AtomicU64,
    call: AtomicU32,
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
        let call = NativeCall(self.call.load(Relaxed));
        (call != NativeCall::default()).then(|| match self.user.load(Relaxed) {
            0 => call.to_string(),
            user => format!("{call} of user {user}"),
        })
    }
}

/// Notes that a user runs on this thread from now on, within this call.
pub fn resume(user: u64, call: NativeCall) {
    CURRENT.with_borrow(|current| {
        if let Some(activity) = current {
            activity.user.store(user, Relaxed);
        }
    });
    exchange(call);
}

/// Notes that the user waits. Returns the call in which it does, for [`resume`].
#[must_use]
pub fn suspend() -> NativeCall {
    exchange(NativeCall::default())
}

/// Runs the native function of `call`.
pub fn during<T>(call: NativeCall, work: impl FnOnce() -> T) -> T {
    let outer = exchange(call);
    let made = work();
    exchange(outer);
    made
}

/// Sets the call of this thread. Returns the last one.
fn exchange(call: NativeCall) -> NativeCall {
    CURRENT.with_borrow(|current| {
        let Some(activity) = current else { return NativeCall::default() };
        // Only this thread writes.
        let last = activity.call.load(Relaxed);
        activity.call.store(call.0, Relaxed);
        NativeCall(last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_while_it_runs() {
        let log = NativeCall::new("console", "log");
        assert_eq!(log, NativeCall::new("console", "log"));
        during(log, || ());
        let activity = Arc::new(Activity::default());
        activity.enter();
        assert_eq!(activity.call(), None);
        during(NativeCall::new("", "open"), || {
            assert_eq!(activity.call().as_deref(), Some("open"))
        });
        resume(3, NativeCall::default());
        let inner = during(NativeCall::new("k6", "group"), || {
            let inner = during(log, || activity.call());
            assert_eq!(activity.call().as_deref(), Some("k6.group of user 3"));
            inner
        });
        assert_eq!((inner.as_deref(), activity.call()), (Some("console.log of user 3"), None));
    }

    #[test]
    fn a_user_that_waits_takes_its_call_along() {
        let activity = Arc::new(Activity::default());
        activity.enter();
        resume(1, NativeCall::default());
        during(NativeCall::new("http", "get"), || {
            let inside = suspend();
            assert_eq!(activity.call(), None);
            resume(2, NativeCall::default());
            assert_eq!(activity.call(), None);
            resume(1, inside);
            assert_eq!(activity.call().as_deref(), Some("http.get of user 1"));
        });
    }
}
