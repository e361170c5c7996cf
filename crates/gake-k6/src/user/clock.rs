//! The clock of users.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;

use gake_core::clock::{Clock, Nanos};

/// A type-erased clock, so that users and their clients are not generic.
#[derive(Clone)]
pub struct UserClock(Rc<dyn DynClock>);

trait DynClock {
    fn now(&self) -> Nanos;
    fn sleep_until(&self, at: Nanos) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

impl<C: Clock> DynClock for C {
    fn now(&self) -> Nanos {
        Clock::now(self)
    }

    fn sleep_until(&self, at: Nanos) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(Clock::sleep_until(self, at))
    }
}

impl UserClock {
    /// Erases the type of a clock.
    #[must_use]
    pub fn new(clock: impl Clock + 'static) -> Self {
        Self(Rc::new(clock))
    }
}

impl Clock for UserClock {
    fn now(&self) -> Nanos {
        self.0.now()
    }

    async fn sleep_until(&self, at: Nanos) {
        self.0.sleep_until(at).await;
    }
}

impl fmt::Debug for UserClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserClock").finish_non_exhaustive()
    }
}
