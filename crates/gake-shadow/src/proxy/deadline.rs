//! Time-outs without a timer a request: deadlines in coarse ticks, looked at by one task a thread.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Watches that there is always room for.
const ROOM: usize = 64;

/// The coarse time of one thread, and what waits on it.
#[derive(Debug)]
pub(crate) struct Ticker {
    length: Duration,
    now: Cell<u64>,
    deadlines: RefCell<Vec<Rc<DeadlineState>>>,
}

/// One task's deadline. Firing wakes the task, which asks [`Watch::fired`].
#[derive(Debug)]
pub(crate) struct Deadline {
    ticker: Rc<Ticker>,
    state: Rc<DeadlineState>,
}

#[derive(Debug)]
struct DeadlineState {
    /// In ticks; 0 means none.
    due: Cell<u64>,
    /// What it was last set to.
    span: Cell<u64>,
    fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    dropped: Cell<bool>,
}

impl Ticker {
    /// A tick is a twentieth of the shortest time-out, within 5 and 100 ms.
    pub(crate) fn new(shortest: Duration) -> Rc<Self> {
        let length = (shortest / 20).clamp(Duration::from_millis(5), Duration::from_millis(100));
        Rc::new(Self { length, now: Cell::new(1), deadlines: RefCell::default() })
    }

    /// Counts the ticks and wakes whose deadline has passed, for ever.
    pub(crate) async fn run(self: Rc<Self>) {
        let mut interval = tokio::time::interval(self.length);
        // A thread that was held up must not make up for it: time-outs would come early.
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
        // What a crowd needed is given back when it has left.
        let (needed, room) = (deadlines.len().max(ROOM), deadlines.capacity());
        if room > 4 * needed {
            deadlines.shrink_to(2 * needed);
        }
    }

    /// Wakes everybody, to look around.
    pub(crate) fn wake_all(&self) {
        for state in &*self.deadlines.borrow() {
            if let Some(waker) = state.waker.borrow().as_ref() {
                waker.wake_by_ref();
            }
        }
    }

    /// A new watch without a deadline.
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

    /// The present tick.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// A duration in ticks, at least one.
    pub(crate) fn ticks(&self, duration: Duration) -> u64 {
        u64::try_from(duration.as_nanos() / self.length.as_nanos()).unwrap_or(u64::MAX / 2).max(1)
    }
}

/// Notes that a tick has passed, once.
fn passed(tick: &Cell<u64>, note: &Cell<bool>, now: u64) -> bool {
    let passed = tick.get() != 0 && tick.get() < now;
    if passed {
        tick.set(0);
        note.set(true);
    }
    passed
}

impl Deadline {
    /// Fires after this number of ticks (and at most one more), unless reset before.
    pub(crate) fn set(&self, ticks: u64) {
        self.state.fired.set(false);
        self.state.span.set(ticks);
        self.state.due.set(self.ticker.now().saturating_add(ticks));
    }

    /// Something moves: the time begins anew, if there is a deadline.
    pub(crate) fn extend(&self) {
        if self.state.due.get() != 0 {
            self.state.due.set(self.ticker.now().saturating_add(self.state.span.get()));
        }
    }

    /// No deadline.
    pub(crate) fn clear(&self) {
        self.state.fired.set(false);
        self.state.due.set(0);
    }

    /// Whether the deadline has passed.
    pub(crate) fn fired(&self) -> bool {
        self.state.fired.get()
    }

    /// Says whom to wake.
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

/// What a future brings, unless the watch fires first.
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
    fn a_watch_fires_once_its_ticks_are_over_and_not_before() {
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
    fn a_tick_is_a_small_part_of_the_shortest_time_out() {
        let ticker = Ticker::new(Duration::from_millis(200));
        assert_eq!(ticker.ticks(Duration::from_secs(1)), 100);
        assert_eq!(ticker.ticks(Duration::from_nanos(1)), 1);
    }
}
