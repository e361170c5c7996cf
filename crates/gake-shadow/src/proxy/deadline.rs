//! Timeouts without a timer per request: deadlines in coarse ticks, checked by one task per thread.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Minimum capacity for deadlines.
const CAPACITY_MIN: usize = 64;

/// The coarse clock of one thread, and its deadlines.
#[derive(Debug)]
pub(crate) struct Ticker {
    length: Duration,
    now: Cell<u64>,
    deadlines: RefCell<Vec<Rc<DeadlineState>>>,
}

/// The deadline of a task. Firing wakes the task, which checks [`Deadline::fired`].
#[derive(Debug)]
pub(crate) struct Deadline {
    ticker: Rc<Ticker>,
    state: Rc<DeadlineState>,
}

#[derive(Debug)]
struct DeadlineState {
    /// In ticks; 0 for none.
    due: Cell<u64>,
    /// The last timeout set.
    span: Cell<u64>,
    fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    dropped: Cell<bool>,
}

impl Ticker {
    /// A tick is a twentieth of the shortest timeout, at least 5 and at most 100 ms.
    pub(crate) fn new(shortest: Duration) -> Rc<Self> {
        let length = (shortest / 20).clamp(Duration::from_millis(5), Duration::from_millis(100));
        Rc::new(Self { length, now: Cell::new(1), deadlines: RefCell::default() })
    }

    /// Advances the clock and wakes tasks with expired deadlines, until dropped.
    pub(crate) async fn run(self: Rc<Self>) {
        let mut interval = tokio::time::interval(self.length);
        // Catching up after a stall would expire deadlines early.
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.tick();
        }
    }

    fn tick(&self) {
        let now = self.now.get() + 1;
        self.now.set(now);
        let mut deadlines = self.deadlines.borrow_mut();
        deadlines.retain(|state| {
            if passed(&state.due, &state.fired, now)
                && let Some(waker) = state.waker.borrow().as_ref()
            {
                waker.wake_by_ref();
            }
            !state.dropped.get()
        });
        // Release the memory of a past peak.
        let (needed, room) = (deadlines.len().max(CAPACITY_MIN), deadlines.capacity());
        if room > 4 * needed {
            deadlines.shrink_to(2 * needed);
        }
    }

    pub(crate) fn wake_all(&self) {
        for state in &*self.deadlines.borrow() {
            if let Some(waker) = state.waker.borrow().as_ref() {
                waker.wake_by_ref();
            }
        }
    }

    /// A new deadline, not set.
    pub(crate) fn deadline(self: &Rc<Self>) -> Deadline {
        let state = Rc::new(DeadlineState {
            due: Cell::new(0),
            span: Cell::new(0),
            fired: Cell::new(false),
            waker: RefCell::new(None),
            dropped: Cell::new(false),
        });
        self.deadlines.borrow_mut().push(Rc::clone(&state));
        Deadline { ticker: Rc::clone(self), state }
    }

    /// The current tick.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// A duration in ticks, at least one.
    pub(crate) fn ticks(&self, duration: Duration) -> u64 {
        u64::try_from(duration.as_nanos() / self.length.as_nanos()).unwrap_or(u64::MAX / 2).max(1)
    }
}

/// Clears an expired `tick` and sets `note`.
fn passed(tick: &Cell<u64>, note: &Cell<bool>, now: u64) -> bool {
    let passed = tick.get() != 0 && tick.get() < now;
    if passed {
        tick.set(0);
        note.set(true);
    }
    passed
}

impl Deadline {
    /// Expires after this number of ticks, or one more.
    pub(crate) fn set(&self, ticks: u64) {
        self.state.fired.set(false);
        self.state.span.set(ticks);
        self.state.due.set(self.ticker.now().saturating_add(ticks));
    }

    /// Restarts the timeout, if one is set.
    pub(crate) fn extend(&self) {
        if self.state.due.get() != 0 {
            self.state.due.set(self.ticker.now().saturating_add(self.state.span.get()));
        }
    }

    pub(crate) fn clear(&self) {
        self.state.fired.set(false);
        self.state.due.set(0);
    }

    pub(crate) fn fired(&self) -> bool {
        self.state.fired.get()
    }

    /// Registers the task to wake.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        let mut waker = self.state.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.state.dropped.set(true);
        self.state.due.set(0);
        self.state.waker.replace(None);
    }
}

/// The output of a future, or `None` if the deadline expires first.
pub(crate) async fn before<F: Future>(deadline: &Deadline, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            deadline.register(cx);
            if deadline.fired() { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_fires_after_its_ticks() {
        let ticker = Ticker::new(Duration::from_secs(1));
        let deadline = ticker.deadline();
        deadline.set(2);
        for _ in 0..2 {
            ticker.tick();
            assert!(!deadline.fired());
        }
        ticker.tick();
        assert!(deadline.fired());
        deadline.set(1);
        assert!(!deadline.fired(), "it can be set again");
        deadline.clear();
        for _ in 0..5 {
            ticker.tick();
        }
        assert!(!deadline.fired());
        drop(deadline);
        ticker.tick();
        assert!(ticker.deadlines.borrow().is_empty(), "nothing is kept");
    }

    #[test]
    fn a_tick_is_a_twentieth_of_the_shortest_timeout() {
        let ticker = Ticker::new(Duration::from_millis(200));
        assert_eq!(ticker.ticks(Duration::from_secs(1)), 100);
        assert_eq!(ticker.ticks(Duration::from_nanos(1)), 1);
    }
}
