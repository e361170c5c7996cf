//! Background tasks of a user: requests, timers.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_util::stream::{FuturesUnordered, Stream};
use rquickjs::Ctx;

use super::fiber::{WaitError, give_way, wait};

/// Called in the script when a task completes.
pub type Completion = Box<dyn for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<()>>;

type Task = Pin<Box<dyn Future<Output = Completion>>>;

/// Tasks of one user at a time. Each takes up to a few KB outside of its heap.
const TASKS_MAX: usize = 20_000;

/// The background tasks of one user.
#[derive(Default)]
pub struct Tasks {
    waiting: RefCell<FuturesUnordered<Task>>,
    /// Whether no further job may run.
    is_ended: Cell<bool>,
    /// The tasks that nothing waits for: alone, they do not keep [`Tasks::drive`] going.
    idle: Cell<usize>,
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").field("waiting", &self.waiting.borrow().len()).finish()
    }
}

impl Tasks {
    /// Adds a task, which is polled by [`Tasks::drive`].
    pub fn add(&self, task: impl Future<Output = Completion> + 'static) {
        self.waiting.borrow().push(Box::pin(task));
    }

    /// Whether a user has as many tasks as one may have.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.waiting.borrow().len() >= TASKS_MAX
    }

    /// Sets how many of the tasks nothing waits for, such as the wait for events that may never
    /// come.
    pub fn set_idle(&self, count: usize) {
        self.idle.set(count);
    }

    /// Ends [`Tasks::drive`] after the job that runs, without another yield: a script that ends its
    /// test completes its iteration.
    pub fn end(&self) {
        self.is_ended.set(true);
    }

    /// Drops every task.
    pub fn clear(&self) {
        self.is_ended.set(false);
        self.idle.set(0);
        // Take the list first: dropping a task may access it.
        drop(self.waiting.take());
    }

    /// Runs jobs of promises and tasks until there are none but idle ones, or `is_done`. Call it in a fiber.
    /// Exceptions of completions go to `thrown`.
    ///
    /// # Errors
    /// When the fiber must end.
    pub fn drive(
        &self,
        ctx: &Ctx<'_>,
        is_done: impl Fn() -> bool,
        mut thrown: impl FnMut(rquickjs::Error),
    ) -> Result<(), WaitError> {
        loop {
            while !self.is_ended.get() && ctx.execute_pending_job() {
                if !self.is_ended.get() && give_way() {
                    return Err(WaitError::Ended);
                }
            }
            let is_idle = self.waiting.borrow().len() <= self.idle.get();
            if self.is_ended.get() || is_done() || is_idle {
                return Ok(());
            }
            let completion = wait(self.next())?;
            if let Err(error) = completion(ctx) {
                thrown(error);
            }
            // Thousands of tasks may complete in a row.
            if give_way() {
                return Err(WaitError::Ended);
            }
        }
    }

    /// The completion of the first task to complete.
    async fn next(&self) -> Completion {
        poll_fn(|cx| match Pin::new(&mut *self.waiting.borrow_mut()).poll_next(cx) {
            Poll::Ready(Some(completion)) => Poll::Ready(completion),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        })
        .await
    }
}
