//! Scripted users: each a runtime of its own, many on one thread.
//!
//! What a user runs is plain, synchronous JavaScript. A host function that has to wait does it with
//! [`wait`]: the user's coroutine is left, and the thread serves others until the awaited future is
//! ready. A user that never waits is left too, whenever its turn is over.
//!
//! The layout, a runtime and a realm a user, is known to this module alone.

#![expect(
    unsafe_code,
    reason = "JS_UpdateStackTop and JS_SetUncatchableError: rquickjs has neither for one runtime a user"
)]

mod builtins;
mod fiber;
mod json;
mod lazy;
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

pub use builtins::{Builtins, add_builtins};
pub use fiber::{Cut, Fiber, is_late, wait, wait_long, within, yield_once};
pub use json::{WhyNotJson, explain_json};
pub use lazy::{LazyList, lazily, open_module, share_lists};
pub use rejections::Rejections;
pub use sample::SAMPLE_STEPS;
pub use stack::Stacks;
pub use tasks::{Completion, Tasks};

use crate::error::ScriptError;

/// A user: a script's variables, and the stack for what it runs.
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
    /// A user without a script, whose heap may take `memory` bytes. Its modules are found by
    /// `resolver` and `loader`. It lacks all [`Builtins`].
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
        runtime.set_interrupt_handler(Some(Box::new(fiber::give_way)));
        let rejections = Rejections::of(&runtime);
        let context = Context::custom::<builtins::Always>(&runtime).map_err(no_memory)?;
        Ok(Self { context, stacks: Rc::clone(stacks), rejections })
    }

    /// Its rejected promises that nobody waits for.
    #[must_use]
    pub fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    /// Runs `function` at once, on the caller's stack: for what must not wait.
    pub fn with<T>(&self, function: impl FnOnce(&Ctx<'_>) -> T) -> T {
        self.context.with(|ctx| {
            update_stack_top(&ctx);
            function(&ctx)
        })
    }

    /// Runs `function`, which may [`wait`], on a stack of its own. The user must not be used
    /// otherwise until the fiber is over or dropped.
    ///
    /// # Errors
    /// When there is no stack for it.
    pub fn run<'a, T: 'static>(
        &'a self,
        function: impl FnOnce(&Ctx<'_>) -> T + 'a,
    ) -> io::Result<Fiber<'a, T>> {
        Fiber::new(&self.stacks, move || self.with(function))
    }
}

/// Tells QuickJS on which stack it runs now, from which it counts how deep it is.
fn update_stack_top(ctx: &Ctx<'_>) {
    // SAFETY: the runtime is the context's own and lives as long as it.
    unsafe { qjs::JS_UpdateStackTop(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) };
}

/// The error that ends whatever a script does: nothing of the script catches it.
#[must_use]
pub fn cut(ctx: &Ctx<'_>, why: Cut) -> rquickjs::Error {
    let message = why.to_string();
    match rquickjs::Exception::from_message(ctx.clone(), &message) {
        Ok(error) if why == Cut::Ended => {
            let value = error.into_object().into_value();
            // SAFETY: the value is an error of this context, which is alive.
            unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw()) };
            ctx.throw(value)
        }
        Ok(error) => error.throw(),
        Err(error) => error,
    }
}
