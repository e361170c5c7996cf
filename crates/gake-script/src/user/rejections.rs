//! Unhandled rejections of promises.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::{Ctx, Persistent, Runtime, Value};

/// A rejected promise and its reason.
struct Rejection {
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

/// The unhandled rejections of one user, in order. Must be cleared before its runtime is dropped.
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
    /// Tracks the rejections of a runtime.
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

    /// Called when a handler is attached later.
    fn forget<'js>(&self, ctx: &Ctx<'js>, promise: &Value<'js>) {
        let is_other = |rejection: &Rejection| {
            let tracked = rejection.promise.clone().restore(ctx);
            tracked.is_ok_and(|tracked| tracked != *promise)
        };
        // Take the list first: dropping a value may run finalizers.
        let (kept, gone) = self.unhandled.take().into_iter().partition(is_other);
        self.unhandled.replace(kept);
        drop::<Vec<_>>(gone);
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unhandled.borrow().is_empty()
    }

    /// The reason of the first one.
    #[must_use]
    pub fn first<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        let reason = self.unhandled.borrow().first()?.reason.clone();
        reason.restore(ctx).ok()
    }

    /// Removes all.
    pub fn clear(&self) {
        drop(self.unhandled.take());
    }
}
