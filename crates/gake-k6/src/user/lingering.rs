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
    static LINGERING: RefCell<Vec<LingeringConnections>> = const { RefCell::new(Vec::new()) };
}

/// The connections of a script's users. Dropped when the thread ends, or once the script has ended.
struct LingeringConnections {
    test: Arc<Test>,
    clients: Vec<Client<UserClock>>,
}

/// Keeps the connections of a user that has ended open.
pub(crate) fn linger(test: &Arc<Test>, client: Client<UserClock>) {
    // At the end of the thread they are dropped immediately.
    let _ = LINGERING.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        // Another script of the run may still have users, for which this thread must not wait here.
        kept.retain(|one| Arc::ptr_eq(&one.test, test) || one.test.counters.live() > 0);
        match kept.iter_mut().find(|one| Arc::ptr_eq(&one.test, test)) {
            Some(own) => own.clients.push(client),
            None => {
                kept.push(LingeringConnections { test: Arc::clone(test), clients: vec![client] });
            }
        }
    });
}

impl Drop for LingeringConnections {
    fn drop(&mut self) {
        while self.test.counters.live() > 0 {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
