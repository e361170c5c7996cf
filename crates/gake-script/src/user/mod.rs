//! Scripted users, each with its own runtime and realm, many on one thread.
//!
//! Users run synchronous JavaScript. Host functions [`wait`] for futures: the user's coroutine is
//! suspended, and the thread serves others. A user that never waits is suspended at the end of its
//! time slice.

#![expect(
    unsafe_code,
    reason = "JS_UpdateStackTop and JS_SetUncatchableError: rquickjs has neither for one runtime a user"
)]

mod aside;
mod builtins;
#[cfg(patched_quickjs)]
mod carried;
#[cfg(not(patched_quickjs))]
#[path = "not_carried.rs"]
mod carried;
#[cfg(patched_quickjs)]
mod error_frames;
#[cfg(not(patched_quickjs))]
#[path = "own_error_frames.rs"]
mod error_frames;
mod fiber;
mod heap;
#[cfg(patched_quickjs)]
mod json;
#[cfg(not(patched_quickjs))]
#[path = "own_json_errors.rs"]
mod json;
mod lazy;
mod object_module;
mod rejections;
mod sample;
mod stack;
mod tasks;
#[cfg(test)]
mod tests;

use std::io;
use std::rc::Rc;

use rquickjs::loader::{Loader, Resolver};
use rquickjs::{Context, Ctx, Runtime, qjs};

pub use aside::{aside, aside_above};
pub use builtins::{Builtins, add_builtins};
pub use carried::{CARRIES_STATE, CarriedState, bound, carry};
pub use error_frames::{StackText, frames, set_frames, show_stacks, take_frames};
pub use fiber::{Fiber, WaitError, give_way, is_late, wait, wait_long, within, yield_once};
pub use heap::{HeapCharge, throw_out_of_memory};
pub use json::{WhyNotJson, explain_json};
pub use lazy::{LazyList, lazily, share_lists};
pub use object_module::{deferred_module, loaded_module, object_module};
pub use rejections::Rejections;
pub use sample::SAMPLE_STEPS;
pub use stack::Stacks;
pub use tasks::{Completion, Tasks};

use crate::error::ScriptError;

/// A user: the global state of a script, and stacks to run it.
#[derive(Clone)]
pub struct User {
    context: Context,
    stacks: Rc<Stacks>,
    rejections: Rejections,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").finish_non_exhaustive()
    }
}

impl User {
    /// A user without a script and [`Builtins`], with a heap of at most `memory` bytes.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new<R, L>(
        stacks: &Rc<Stacks>,
        memory: usize,
        resolver: R,
        loader: L,
    ) -> Result<Self, ScriptError>
    where
        R: Resolver + 'static,
        L: Loader + 'static,
    {
        let no_memory = |_| ScriptError::Thread(io::ErrorKind::OutOfMemory.into());
        let runtime = Runtime::new().map_err(no_memory)?;
        runtime.set_memory_limit(memory);
        runtime.set_max_stack_size(stack::SCRIPT_STACK_BYTES);
        runtime.set_loader(resolver, loader);
        runtime.set_interrupt_handler(Some(Box::new(give_way)));
        let rejections = Rejections::of(&runtime);
        let context = Context::custom::<builtins::Always>(&runtime).map_err(no_memory)?;
        Ok(Self { context, stacks: Rc::clone(stacks), rejections })
    }

    /// Unhandled rejections.
    #[must_use]
    pub fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    /// Runs `function`, which must not wait, on the caller's stack.
    pub fn with<T>(&self, function: impl FnOnce(&Ctx<'_>) -> T) -> T {
        self.context.with(|ctx| {
            update_stack_top(&ctx);
            function(&ctx)
        })
    }

    /// Runs `function`, which may [`wait`], on its own stack. Do not use the user until the fiber
    /// has completed or is dropped.
    ///
    /// # Errors
    /// When no stack can be allocated.
    pub fn run<'a, T: 'static>(
        &'a self,
        function: impl FnOnce(&Ctx<'_>) -> T + 'a,
    ) -> io::Result<Fiber<'a, T>> {
        Fiber::new(&self.stacks, move || self.with(function))
    }
}

/// Sets the stack base from which QuickJS measures its depth.
fn update_stack_top(ctx: &Ctx<'_>) {
    // SAFETY: the context's runtime, which outlives it.
    unsafe { qjs::JS_UpdateStackTop(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) };
}

/// Call it in loops of native functions whose length a script decides: lets others run when the
/// time slice is over.
///
/// # Errors
/// When the script must end; scripts cannot catch it.
pub fn poll(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    if give_way() { Err(throw_wait_error(ctx, WaitError::Ended)) } else { Ok(()) }
}

/// Throws a failed wait. If the fiber is ending, the exception cannot be caught by the script.
#[must_use]
pub fn throw_wait_error(ctx: &Ctx<'_>, why: WaitError) -> rquickjs::Error {
    let message = why.to_string();
    match rquickjs::Exception::from_message(ctx.clone(), &message) {
        Ok(error) if why == WaitError::Ended => {
            let value = error.into_object().into_value();
            // SAFETY: an error object of this context, which is alive.
            unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw()) };
            ctx.throw(value)
        }
        Ok(error) => error.throw(),
        Err(error) => error,
    }
}
