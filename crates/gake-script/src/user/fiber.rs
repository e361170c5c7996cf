//! Coroutines that await futures.
//!
//! A [`Fiber`] is a future that runs a synchronous function on its own stack. Within it, [`wait`]
//! awaits another future: the fiber is suspended, and the thread continues with other tasks. The
//! awaited future is polled on the stack of the fiber's poller, so that deep calls such as TLS
//! handshakes do not touch pages of every fiber's stack. Dropping a fiber makes all waits fail
//! until its function returns.

#![expect(
    unsafe_code,
    reason = "a coroutine outlives every lifetime for the compiler: its function and its switch are lent to it, and it lends what it waits for"
)]

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::stack::{StackLease, StackRange, Stacks};

/// Time slice of a fiber.
const TURN: Duration = Duration::from_micros(200);

/// A turn in which a native function did not yield: timers are due.
const LONG_TURN: Duration = Duration::from_millis(10);

/// Polls after which the engine's runtime looks at its timers.
const POLLS_TO_TIMERS: usize = 16;

/// Why a wait has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The fiber is being dropped.
    #[error("the iteration was interrupted")]
    Ended,
    /// The caller is not in a fiber.
    #[error("this call cannot wait here")]
    Outside,
}

/// The value with which a fiber is resumed.
#[derive(Clone, Copy)]
enum ResumeSignal {
    /// The awaited future is ready.
    Go,
    /// The fiber must end.
    End,
}

/// Polls the future that a fiber awaits. Lives on the fiber's stack, until the fiber is resumed.
type Awaited = *mut Poller<'static>;

type Poller<'a> = dyn FnMut(&mut Context<'_>) -> Poll<()> + 'a;

type Switch = Yielder<ResumeSignal, Awaited>;

/// The fiber that runs on this thread.
#[derive(Clone, Copy)]
struct RunningFiber {
    switch: *const Switch,
    signal: ResumeSignal,
    resumed: Instant,
    stack: StackRange,
}

thread_local! {
    static CURRENT: Cell<Option<RunningFiber>> = const { Cell::new(None) };
    /// Deadline of scripts outside fibers.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A function that runs on its own stack.
pub struct Fiber<'a, R: 'static> {
    coroutine: Option<Coroutine<ResumeSignal, Awaited, R, StackLease>>,
    awaited: Option<Awaited>,
    _borrows: PhantomData<&'a mut ()>,
}

impl<'a, R: 'static> Fiber<'a, R> {
    /// Runs `function` when it is polled.
    ///
    /// # Errors
    /// When no stack can be allocated.
    pub fn new(stacks: &Rc<Stacks>, function: impl FnOnce() -> R + 'a) -> io::Result<Self> {
        let stack = stacks.lease()?;
        let range = stack.range();
        let function: Box<dyn FnOnce() -> R + 'a> = Box::new(function);
        // SAFETY: only the lifetime changes. The coroutine runs only while the fiber is polled or
        // dropped, within 'a; after the drop it has returned.
        let function: Box<dyn FnOnce() -> R + 'static> = unsafe { std::mem::transmute(function) };
        let coroutine = Coroutine::with_stack(stack, move |switch: &Switch, signal| {
            enter(switch, signal, range);
            function()
        });
        Ok(Self { coroutine: Some(coroutine), awaited: None, _borrows: PhantomData })
    }

    /// Runs the function until it waits or returns.
    fn resume(&mut self, signal: ResumeSignal) -> Poll<R> {
        let Some(coroutine) = &mut self.coroutine else { return Poll::Pending };
        self.awaited = None;
        let outer = CURRENT.take();
        let resumed = coroutine.resume(signal);
        CURRENT.set(outer);
        match resumed {
            CoroutineResult::Yield(awaited) => {
                self.awaited = Some(awaited);
                Poll::Pending
            }
            CoroutineResult::Return(returned) => {
                self.coroutine = None;
                Poll::Ready(returned)
            }
        }
    }
}

impl<R: 'static> Future for Fiber<'_, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        while self.coroutine.is_some() {
            if let Some(awaited) = self.awaited {
                // SAFETY: it lives on the stack of the coroutine, in a call of `wait` that returns
                // only when the coroutine is resumed, which clears it. There is no other use
                // meanwhile.
                if unsafe { &mut *awaited }(cx).is_pending() {
                    return Poll::Pending;
                }
            }
            if let Poll::Ready(returned) = self.resume(ResumeSignal::Go) {
                return Poll::Ready(returned);
            }
        }
        Poll::Pending
    }
}

impl<R: 'static> Drop for Fiber<'_, R> {
    fn drop(&mut self) {
        // Also done after a panic.
        let is_live = |coroutine: &Coroutine<_, _, _, _>| coroutine.started() && !coroutine.done();
        while self.coroutine.as_ref().is_some_and(is_live) {
            let _ = self.resume(ResumeSignal::End);
        }
    }
}

impl<R: 'static> std::fmt::Debug for Fiber<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fiber").field("is_over", &self.coroutine.is_none()).finish()
    }
}

/// Records that a fiber was resumed.
fn enter(switch: *const Switch, signal: ResumeSignal, stack: StackRange) {
    CURRENT.set(Some(RunningFiber { switch, signal, resumed: Instant::now(), stack }));
}

/// Suspends the fiber until the awaited future is ready, or the fiber must end.
fn leave(frame: RunningFiber, awaited: Awaited) -> ResumeSignal {
    // SAFETY: the switch belongs to the running coroutine, and lives until its function returns.
    let signal = unsafe { &*frame.switch }.suspend(awaited);
    enter(frame.switch, signal, frame.stack);
    signal
}

/// Awaits a future from a synchronous function in a fiber.
///
/// # Errors
/// When the fiber must end, or there is none.
pub fn wait<F: Future>(future: F) -> Result<F::Output, WaitError> {
    wait_as(future, false)
}

/// Awaits a future; `is_long`: trims the stack first.
fn wait_as<F: Future>(future: F, is_long: bool) -> Result<F::Output, WaitError> {
    let frame = CURRENT.get().ok_or(WaitError::Outside)?;
    let mut future = pin!(future);
    let mut output = None;
    let mut poll =
        |cx: &mut Context<'_>| future.as_mut().poll(cx).map(|ready| output = Some(ready));
    let awaited: *mut Poller<'_> = &raw mut poll;
    // SAFETY: only the lifetime changes. The pointer is cleared when the fiber is resumed, before
    // this function returns.
    let awaited = unsafe { std::mem::transmute::<*mut Poller<'_>, Awaited>(awaited) };
    if is_long {
        frame.stack.trim();
    }
    match frame.signal {
        ResumeSignal::Go => leave(frame, awaited),
        ResumeSignal::End => return Err(WaitError::Ended),
    };
    output.ok_or(WaitError::Ended)
}

/// As [`wait`], for tens of milliseconds or more: frees the unused stack first.
///
/// # Errors
/// When the fiber must end, or there is none.
pub fn wait_long<F: Future>(future: F) -> Result<F::Output, WaitError> {
    wait_as(future, true)
}

/// Runs `function` with a deadline for scripts outside fibers. An earlier outer deadline also
/// applies.
pub fn within<T>(deadline: Instant, function: impl FnOnce() -> T) -> T {
    struct DeadlineGuard(Option<Instant>);
    impl Drop for DeadlineGuard {
        fn drop(&mut self) {
            DEADLINE.set(self.0);
        }
    }
    let outer = DEADLINE.get();
    let _restore = DeadlineGuard(outer);
    DEADLINE.set(Some(outer.map_or(deadline, |outer| outer.min(deadline))));
    function()
}

/// Whether the deadline of [`within`] has passed.
#[must_use]
pub fn is_late() -> bool {
    DEADLINE.get().is_some_and(|deadline| Instant::now() >= deadline)
}

/// Yields if the time slice is over. Returns whether the script must end.
#[must_use]
pub fn give_way() -> bool {
    let Some(frame) = CURRENT.get() else { return is_late() };
    match (frame.signal, frame.resumed.elapsed()) {
        (ResumeSignal::End, _) => true,
        (ResumeSignal::Go, turn) if turn < TURN => false,
        (ResumeSignal::Go, turn) if turn < LONG_TURN => wait(yield_once()).is_err(),
        // Sixteen such turns in a row would be seconds past a deadline.
        (ResumeSignal::Go, _) => (0..POLLS_TO_TIMERS).any(|_| wait(yield_once()).is_err()),
    }
}

/// Lets other tasks of the thread run: pending once, woken immediately.
pub async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
