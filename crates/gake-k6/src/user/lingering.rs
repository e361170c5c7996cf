//! The connections of users that have ended: as in k6 they stay open until the last user has, so that
//! a server with few places sees what it would see of people who stay connected.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use gake_wire::Client;

use super::clock::UserClock;
use crate::test::Test;

/// How often it is looked whether users are left in other threads.
const LOOK_EVERY: Duration = Duration::from_millis(5);

thread_local! {
    /// Those of this thread: they cannot leave it, for its descriptors may be its own.
    static LINGERING: RefCell<Option<LingeringConnections>> = const { RefCell::new(None) };
}

/// Connections of one thread's users; dropped when the thread ends.
struct LingeringConnections {
    test: Arc<Test>,
    clients: Vec<Client<UserClock>>,
}

/// Keeps the connections of a user that has ended.
pub(crate) fn linger(test: &Arc<Test>, client: Client<UserClock>) {
    // While the thread ends there is nothing to keep them in.
    let _ = LINGERING.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.as_ref().is_some_and(|kept| !Arc::ptr_eq(&kept.test, test)) {
            *kept = None;
        }
        let new = || LingeringConnections { test: Arc::clone(test), clients: Vec::new() };
        kept.get_or_insert_with(new).clients.push(client);
    });
}

impl Drop for LingeringConnections {
    fn drop(&mut self) {
        while self.test.counters.live() > 0 {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
