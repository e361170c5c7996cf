//! The connections of users that have ended. As in k6 they stay open until the last user has ended:
//! a server with a connection limit sees clients that stay connected.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use gake_wire::Client;

use super::clock::UserClock;
use crate::test::Test;

/// The interval of polling for live users of other threads.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

thread_local! {
    /// Connections cannot change threads: a thread may have a descriptor table of its own.
    static LINGERING: RefCell<Option<LingeringConnections>> = const { RefCell::new(None) };
}

/// Dropped when the thread ends.
struct LingeringConnections {
    test: Arc<Test>,
    clients: Vec<Client<UserClock>>,
}

/// Keeps the connections of a user that has ended open.
pub(crate) fn linger(test: &Arc<Test>, client: Client<UserClock>) {
    // At the end of the thread they are dropped immediately.
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
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
