//! Time-outs without a timer per request: a request in flight has a slot with its deadline, and one
//! task per thread scans all slots when the first deadline may have passed.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use gake_core::clock::{Clock, Nanos};

/// The granularity of alarms: a hundredth of the shortest time-out, within these bounds.
const COARSE_MIN: Nanos = 1_000_000;
const COARSE_MAX: Nanos = 20_000_000;

#[derive(Debug)]
pub(crate) struct Alarms {
    slots: RefCell<Slots>,
    /// The shortest time-out so far.
    shortest: Cell<Nanos>,
    next_scan: Cell<Nanos>,
    is_watched: Cell<bool>,
    watcher: RefCell<Option<Waker>>,
}

#[derive(Debug, Default)]
struct Slots {
    all: Vec<AlarmSlot>,
    /// Unused slots, LIFO: the waker of the last one freed is probably still right.
    free: Vec<u32>,
}

#[derive(Debug)]
struct AlarmSlot {
    at: Nanos,
    has_passed: bool,
    waker: Option<Waker>,
}

/// The alarm of a request in flight.
#[derive(Debug)]
pub(crate) struct Alarm<'a> {
    alarms: &'a Alarms,
    slot: u32,
}

impl Alarms {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            slots: RefCell::default(),
            shortest: Cell::new(Nanos::MAX),
            next_scan: Cell::new(Nanos::MAX),
            is_watched: Cell::new(false),
            watcher: RefCell::new(None),
        })
    }

    /// An alarm at `at` for a request whose shortest time-out is `shortest`.
    #[inline]
    pub(crate) fn set(&self, at: Nanos, shortest: Nanos) -> Alarm<'_> {
        if shortest < self.shortest.get() {
            self.shortest.set(shortest);
        }
        let slot = {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.free.pop();
            slot.unwrap_or_else(|| slots.add())
        };
        let alarm = Alarm { alarms: self, slot };
        alarm.set(at);
        alarm
    }

    /// Spawns the task that scans the alarms on the current local runtime, unless it runs already.
    #[inline]
    pub(crate) fn watch<C: Clock + Clone + 'static>(self: &Rc<Self>, clock: &C) {
        if !self.is_watched.replace(true) {
            tokio::task::spawn_local(watch(Rc::downgrade(self), clock.clone()));
        }
    }

    /// Wakes the requests whose instant has passed at `now`; returns the instant of the next scan.
    fn scan(&self, now: Nanos) -> Nanos {
        let mut first = Nanos::MAX;
        for slot in &mut self.slots.borrow_mut().all {
            if slot.at > now {
                first = first.min(slot.at);
                continue;
            }
            slot.at = Nanos::MAX;
            slot.has_passed = true;
            if let Some(waker) = &slot.waker {
                waker.wake_by_ref();
            }
        }
        let coarse = (self.shortest.get() / 100).clamp(COARSE_MIN, COARSE_MAX);
        let next = first.max(now.saturating_add(coarse));
        let next = if first == Nanos::MAX { first } else { next };
        self.next_scan.set(next);
        next
    }

    /// Makes the task scan no later than `at`.
    #[inline]
    fn scan_by(&self, at: Nanos) {
        if at < self.next_scan.get() {
            self.next_scan.set(at);
            if let Some(watcher) = self.watcher.borrow().as_ref() {
                watcher.wake_by_ref();
            }
        }
    }
}

impl Drop for Alarms {
    fn drop(&mut self) {
        // The task then ends.
        if let Some(watcher) = self.watcher.take() {
            watcher.wake();
        }
    }
}

impl Slots {
    fn add(&mut self) -> u32 {
        self.all.push(AlarmSlot { at: Nanos::MAX, has_passed: false, waker: None });
        (self.all.len() - 1) as u32
    }
}

async fn watch<C: Clock>(alarms: Weak<Alarms>, clock: C) {
    loop {
        let Some(next) = alarms.upgrade().map(|alarms| alarms.scan(clock.now())) else { return };
        let mut sleep = pin!(clock.sleep_until(next));
        poll_fn(|cx| {
            let Some(alarms) = alarms.upgrade() else { return Poll::Ready(()) };
            if alarms.next_scan.get() < next {
                return Poll::Ready(());
            }
            register_waker(&mut alarms.watcher.borrow_mut(), cx);
            sleep.as_mut().poll(cx)
        })
        .await;
    }
}

impl Alarm<'_> {
    #[inline]
    pub(crate) fn set(&self, at: Nanos) {
        {
            let slot = &mut self.alarms.slots.borrow_mut().all[self.slot as usize];
            slot.at = at;
            slot.has_passed = false;
        }
        self.alarms.scan_by(at);
    }

    /// Whether its instant has passed. If not, the calling task is woken when it does.
    #[inline]
    pub(crate) fn has_passed(&self, cx: &Context<'_>) -> bool {
        let slot = &mut self.alarms.slots.borrow_mut().all[self.slot as usize];
        if !slot.has_passed {
            register_waker(&mut slot.waker, cx);
        }
        slot.has_passed
    }

    /// The future's output, or `None` if the alarm comes first.
    pub(crate) async fn before<F: Future>(&self, mut future: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|cx| match self.has_passed(cx) {
            true => Poll::Ready(None),
            false => future.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

impl Drop for Alarm<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut slots = self.alarms.slots.borrow_mut();
        slots.all[self.slot as usize].at = Nanos::MAX;
        slots.free.push(self.slot);
    }
}

/// Registers the calling task's waker.
#[inline]
pub(crate) fn register_waker(waker: &mut Option<Waker>, cx: &Context<'_>) {
    if waker.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
        *waker = Some(cx.waker().clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Nanos = 100 * COARSE_MIN;

    fn passed(alarm: &Alarm<'_>) -> bool {
        alarm.has_passed(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_scan_finds_passed_alarms_and_the_next_one() {
        let alarms = Alarms::new();
        assert_eq!(alarms.scan(5), Nanos::MAX);
        let ms = |n: Nanos| n * COARSE_MIN;
        let (early, late) = (alarms.set(ms(10), SHORTEST), alarms.set(ms(20), SHORTEST));
        assert_eq!((alarms.scan(ms(5)), passed(&early)), (ms(10), false));
        assert_eq!((alarms.scan(ms(10)), passed(&early), passed(&late)), (ms(20), true, false));
        // It passes once, until it is set again.
        early.set(ms(30));
        assert!(!passed(&early));
        assert_eq!(alarms.scan(ms(25)), ms(30));
        assert!(passed(&late));
        // Scans have a minimum distance.
        assert_eq!(alarms.scan(ms(30) - 1), ms(31) - 1);
    }

    #[test]
    fn an_alarm_ends_with_its_request() {
        let alarms = Alarms::new();
        drop(alarms.set(10, SHORTEST));
        assert_eq!(alarms.scan(0), Nanos::MAX);
        // The next request takes its slot without its alarm.
        let next = alarms.set(Nanos::MAX, SHORTEST);
        alarms.scan(20);
        assert!(!passed(&next));
        assert_eq!(alarms.slots.borrow().all.len(), 1);
    }

    #[test]
    fn an_earlier_alarm_moves_the_next_scan() {
        let alarms = Alarms::new();
        let _late = alarms.set(1_000, SHORTEST);
        alarms.scan(0);
        let _sooner = alarms.set(10, SHORTEST);
        assert_eq!(alarms.next_scan.get(), 10);
        let _later = alarms.set(500, SHORTEST);
        assert_eq!(alarms.next_scan.get(), 10);
    }
}
