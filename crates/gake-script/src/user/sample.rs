//! Samples of what a script is doing.
//!
//! QuickJS asks its interrupt handler once in a fixed number of steps, which are calls and branches.
//! There, the stack is read.

#![expect(
    unsafe_code,
    reason = "the context in its interrupt handler, which rquickjs gives no context"
)]

use std::cell::Cell;

use rquickjs::Ctx;

use super::User;
use super::fiber::give_way;

/// Steps from one sample of a user to the next: QuickJS's constant.
pub const SAMPLE_STEPS: u32 = 10_000;

/// Steps within which the first sample of a call is shifted at random.
const SHIFT_STEPS: u64 = 1_009;

impl User {
    /// Gives `sampler` the stack of the script every [`SAMPLE_STEPS`] steps, innermost call first.
    pub fn sample(&self, sampler: impl Fn(&str) + 'static) {
        let context = self.with(|ctx| ctx.as_raw());
        let is_sampling = Cell::new(false);
        let handler = move || {
            // The script may have an Error of its own, which does not end.
            if is_sampling.replace(true) {
                return give_way();
            }
            // SAFETY: the handler is called by this context's runtime while it runs a script in the
            // context, which is alive and locked; QuickJS allows that handlers run scripts.
            let ctx = unsafe { Ctx::from_raw(context) };
            match ctx.eval::<String, _>("new Error().stack") {
                Ok(stack) => sampler(&stack),
                // That Error has no text here, or the user's memory is full.
                Err(_) => drop(ctx.catch()),
            }
            drop(ctx);
            is_sampling.set(false);
            give_way()
        };
        self.context.runtime().set_interrupt_handler(Some(Box::new(handler)));
    }

    /// Shifts the samples of the call that follows: calls of equal length would have them at the
    /// same steps otherwise.
    pub fn shift_samples(&self, random: u64) {
        let steps = random % SHIFT_STEPS;
        self.with(|ctx| {
            let shifted: rquickjs::Result<()> = ctx.eval(format!("for (let i = {steps}; i--;);"));
            if shifted.is_err() {
                let _ = ctx.catch();
            }
        });
    }
}
