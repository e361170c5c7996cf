//! Coroutines that wait for futures.
//!
//! A [`Fiber`] is a future that runs a plain function on a stack of its own. What that function
//! calls may [`wait`] for another future: the fiber's stack is left as it is, and the thread goes
//! on with something else. That future is polled on the stack of whoever polls the fiber: what it
//! calls, such as a TLS handshake, would otherwise touch pages of every fiber's own stack. Whoever
//! drops a fiber ends it: every wait fails from then on, until the function has returned.

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

/// How long a fiber may run before others get their turn.
const TURN: Duration = Duration::from_micros(200);

/// Why a wait has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Cut {
    /// The fiber is being ended.
    #[error("the iteration was interrupted")]
    Ended,
    /// The caller is not in a fiber: there is nothing that could wait.
    #[error("nothing can be waited for here")]
    Outside,
}

/// What a fiber is resumed with.
#[derive(Clone, Copy)]
enum Signal {
    /// What it waited for is there.
    Go,
    /// It has to end.
    End,
}

/// What a fiber waits for: polls it, and is ready when the fiber can go on. It stands on the
/// fiber's stack, and is there as long as the fiber is not resumed.
type Awaited = *mut Poller<'static>;

type Poller<'a> = dyn FnMut(&mut Context<'_>) -> Poll<()> + 'a;

type Switch = Yielder<Signal, Awaited>;

/// What runs on the thread now.
#[derive(Clone, Copy)]
struct Frame {
    switch: *const Switch,
    signal: Signal,
    resumed: Instant,
    stack: StackRange,
}

thread_local! {
    static CURRENT: Cell<Option<Frame>> = const { Cell::new(None) };
    /// When what runs outside of fibers has to end.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A function under way on a stack of its own.
pub struct Fiber<'a, R: 'static> {
    coroutine: Option<Coroutine<Signal, Awaited, R, StackLease>>,
    awaited: Option<Awaited>,
    _borrows: PhantomData<&'a mut ()>,
}

impl<'a, R: 'static> Fiber<'a, R> {
    /// Runs `function` when it is polled.
    ///
    /// # Errors
    /// When there is no stack for it.
    pub fn new(stacks: &Rc<Stacks>, function: impl FnOnce() -> R + 'a) -> io::Result<Self> {
        let stack = stacks.lease()?;
        let range = stack.range();
        let function: Box<dyn FnOnce() -> R + 'a> = Box::new(function);
        // SAFETY: only the lifetime changes. The coroutine runs while the fiber is polled and while
        // it is dropped, both of which are within 'a; once dropped it has returned.
        let function: Box<dyn FnOnce() -> R + 'static> = unsafe { std::mem::transmute(function) };
        let coroutine = Coroutine::with_stack(stack, move |switch: &Switch, signal| {
            enter(switch, signal, range);
            function()
        });
        Ok(Self { coroutine: Some(coroutine), awaited: None, _borrows: PhantomData })
    }

    /// Runs the function until it waits or returns.
    fn resume(&mut self, signal: Signal) -> Poll<R> {
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
                // SAFETY: it stands on the stack of the coroutine, in a call of `wait` that does
                // not return before the coroutine is resumed, which forgets it. Nothing else uses
                // it meanwhile.
                if unsafe { &mut *awaited }(cx).is_pending() {
                    return Poll::Pending;
                }
            }
            if let Poll::Ready(returned) = self.resume(Signal::Go) {
                return Poll::Ready(returned);
            }
        }
        Poll::Pending
    }
}

impl<R: 'static> Drop for Fiber<'_, R> {
    fn drop(&mut self) {
        // One whose function panicked is over too.
        let goes_on = |coroutine: &Coroutine<_, _, _, _>| coroutine.started() && !coroutine.done();
        while self.coroutine.as_ref().is_some_and(goes_on) {
            let _ = self.resume(Signal::End);
        }
    }
}

impl<R: 'static> std::fmt::Debug for Fiber<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fiber").field("is_over", &self.coroutine.is_none()).finish()
    }
}

/// Notes what the fiber that runs now was resumed with.
fn enter(switch: *const Switch, signal: Signal, stack: StackRange) {
    CURRENT.set(Some(Frame { switch, signal, resumed: Instant::now(), stack }));
}

/// Leaves the fiber, until what it awaits is there, or it has to end.
fn leave(frame: Frame, awaited: Awaited) -> Signal {
    // SAFETY: the switch belongs to the coroutine on whose stack this runs, and lives as long as
    // its function, which has not returned.
    let signal = unsafe { &*frame.switch }.suspend(awaited);
    enter(frame.switch, signal, frame.stack);
    signal
}

/// Waits for a future within a fiber, as a plain function.
///
/// # Errors
/// When the fiber has to end, or there is none.
pub fn wait<F: Future>(future: F) -> Result<F::Output, Cut> {
    wait_as(future, false)
}

/// Waits; trims the stack before the fiber is left if that `is_long`.
fn wait_as<F: Future>(future: F, is_long: bool) -> Result<F::Output, Cut> {
    let frame = CURRENT.get().ok_or(Cut::Outside)?;
    let mut future = pin!(future);
    let mut output = None;
    let mut poll =
        |cx: &mut Context<'_>| future.as_mut().poll(cx).map(|ready| output = Some(ready));
    let awaited: *mut Poller<'_> = &raw mut poll;
    // SAFETY: only the lifetime changes. The fiber forgets the pointer when it is resumed, before
    // this function returns.
    let awaited = unsafe { std::mem::transmute::<*mut Poller<'_>, Awaited>(awaited) };
    if is_long {
        frame.stack.trim();
    }
    match frame.signal {
        Signal::Go => leave(frame, awaited),
        Signal::End => return Err(Cut::Ended),
    };
    output.ok_or(Cut::Ended)
}

/// Waits as [`wait`] does, for what takes tens of milliseconds or more: meanwhile the fiber keeps
/// only the part of its stack that it is on.
///
/// # Errors
/// When the fiber has to end, or there is none.
pub fn wait_long<F: Future>(future: F) -> Result<F::Output, Cut> {
    wait_as(future, true)
}

/// Runs `function`, which ends the scripts that it runs outside of fibers at `deadline`. A shorter
/// one around it holds too.
pub fn within<T>(deadline: Instant, function: impl FnOnce() -> T) -> T {
    struct Restore(Option<Instant>);
    impl Drop for Restore {
        fn drop(&mut self) {
            DEADLINE.set(self.0);
        }
    }
    let outer = DEADLINE.get();
    let _restore = Restore(outer);
    DEADLINE.set(Some(outer.map_or(deadline, |outer| outer.min(deadline))));
    function()
}

/// Whether the deadline of [`within`] has passed.
#[must_use]
pub fn is_late() -> bool {
    DEADLINE.get().is_some_and(|deadline| Instant::now() >= deadline)
}

/// Lets others run when the fiber had its turn. Returns whether the script has to end.
pub(crate) fn give_way() -> bool {
    let Some(frame) = CURRENT.get() else { return is_late() };
    match frame.signal {
        Signal::End => true,
        Signal::Go if frame.resumed.elapsed() < TURN => false,
        Signal::Go => wait(yield_once()).is_err(),
    }
}

/// Lets other tasks of the thread run: pending once, and woken at once.
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
