//! A sampling profiler: QuickJS calls the interrupt handler after a fixed number of calls and
//! branches, and the handler captures the stack.

#![expect(
    unsafe_code,
    reason = "the context in its interrupt handler, which rquickjs gives no context"
)]

use std::cell::Cell;

use rquickjs::{Ctx, Exception};

use super::User;
use super::error_frames::frames;
use super::fiber::give_way;

/// Calls and branches between samples, a constant of QuickJS.
pub const SAMPLE_STEPS: u32 = 10_000;

/// Upper bound of the random shift of the first sample of a call.
const SHIFT_STEPS: u64 = 1_009;

impl User {
    /// Calls `sampler` with a stack trace every [`SAMPLE_STEPS`] steps.
    pub fn sample(&self, sampler: impl Fn(&str) + 'static) {
        let context = self.with(|ctx| ctx.as_raw());
        let is_sampling = Cell::new(false);
        let handler = move || {
            // The script may have set an endless Error.prepareStackTrace.
            if is_sampling.replace(true) {
                return give_way();
            }
            // SAFETY: the handler is called while the context runs a script, so it is alive and
            // locked; QuickJS allows handlers to run scripts.
            let ctx = unsafe { Ctx::from_raw(context) };
            match Exception::from_message(ctx.clone(), "") {
                Ok(error) => sampler(&frames(error.as_object())),
                // Memory is full.
                Err(_) => drop(ctx.catch()),
            }
            drop(ctx);
            is_sampling.set(false);
            give_way()
        };
        self.context.runtime().set_interrupt_handler(Some(Box::new(handler)));
    }

    /// Shifts the samples of the next call randomly, so that calls of equal length are not sampled
    /// at the same steps.
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
