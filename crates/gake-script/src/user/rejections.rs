//! Promises that were rejected while nobody waited for them.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::{Ctx, Persistent, Runtime, Value};

/// A rejected promise and its reason.
struct Rejection {
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

/// The rejected promises of one user that nobody waits for, the earliest first. To be cleared
/// before its runtime goes.
#[derive(Clone, Default)]
pub struct Rejections {
    unhandled: Rc<RefCell<Vec<Rejection>>>,
}

impl std::fmt::Debug for Rejections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rejections").field("unhandled", &self.unhandled.borrow().len()).finish()
    }
}

impl Rejections {
    /// Those of a runtime.
    pub(super) fn of(runtime: &Runtime) -> Self {
        let rejections = Self::default();
        let tracked = rejections.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| match is_handled {
                true => tracked.forget(&ctx, &promise),
                false => tracked.note(&ctx, promise, reason),
            },
        )));
        rejections
    }

    fn note<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>) {
        let promise = Persistent::save(ctx, promise);
        let reason = Persistent::save(ctx, reason);
        self.unhandled.borrow_mut().push(Rejection { promise, reason });
    }

    /// Somebody waits for a promise after all.
    fn forget<'js>(&self, ctx: &Ctx<'js>, promise: &Value<'js>) {
        let is_other = |rejection: &Rejection| {
            let tracked = rejection.promise.clone().restore(ctx);
            tracked.is_ok_and(|tracked| tracked != *promise)
        };
        // Taken out first: what is let go of may run what belongs to the script.
        let (kept, gone) = self.unhandled.take().into_iter().partition(is_other);
        self.unhandled.replace(kept);
        drop::<Vec<_>>(gone);
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unhandled.borrow().is_empty()
    }

    /// The reason of the first one, without forgetting any.
    #[must_use]
    pub fn first<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        let reason = self.unhandled.borrow().first()?.reason.clone();
        reason.restore(ctx).ok()
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        drop(self.unhandled.take());
    }
}
