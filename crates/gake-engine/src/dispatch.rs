//! Assigns due arrivals to idle lanes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use gake_core::clock::{Clock, Nanos};
use gake_core::schedule::Schedule;
use gake_core::work::Arrival;
use tokio::sync::Notify;

use crate::arrivals::{ArrivalSource, Arrivals};
use crate::scenario_state::{Progress, ScenarioState};
use crate::takeover::Revision;

/// The arrival assigned to a lane, and the lane's waker.
#[derive(Default)]
pub(crate) struct LaneSlot {
    pub(crate) assigned: Cell<Option<LaneArrival>>,
    pub(crate) waker: RefCell<Option<Waker>>,
}

/// An arrival assigned to a lane, and the time it waited for a free lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneArrival {
    pub(crate) arrival: Arrival,
    pub(crate) blocked: Nanos,
}

/// Assigns due arrivals to idle lanes.
pub(crate) struct Dispatch {
    shared: Rc<ScenarioState>,
    /// The start of the schedule.
    pub(crate) start: Nanos,
    arrivals: RefCell<Arrivals>,
    pub(crate) next: Cell<Option<Arrival>>,
    /// The backlog before `next`, if it is bounded.
    waiting: RefCell<VecDeque<Arrival>>,
    pub(crate) opened: Cell<usize>,
    /// LIFO: the lane that became idle last has warm connections and caches.
    pub(crate) idle: RefCell<Vec<Rc<LaneSlot>>>,
    /// Since when all lanes are busy and no more may be opened.
    pub(crate) full_since: Cell<Option<Nanos>>,
    /// Notified when a lane becomes idle.
    pub(crate) freed: Notify,
}

impl Dispatch {
    pub(crate) fn new(own: ArrivalSource, start: Nanos, shared: Rc<ScenarioState>) -> Self {
        let dispatch = Self {
            shared,
            start,
            next: Cell::new(None),
            arrivals: RefCell::new(Arrivals::new(own)),
            opened: Cell::new(0),
            waiting: RefCell::default(),
            idle: RefCell::default(),
            full_since: Cell::new(None),
            freed: Notify::new(),
        };
        dispatch.advance();
        dispatch
    }

    pub(crate) fn advance(&self) {
        self.next.set(self.arrivals.borrow_mut().next());
    }

    /// Applies a revision; `schedule` is the one in force.
    pub(crate) fn revise(&self, revision: Revision, schedule: &mut Schedule) {
        let unused = self.next.take();
        match revision {
            Revision::Add(source) => self.arrivals.borrow_mut().add(source, unused),
            Revision::Follow(changed) => {
                self.arrivals.borrow_mut().follow(&changed, self.start, unused);
                *schedule = *changed;
            }
        }
        self.advance();
    }

    /// Adds an arrival to the backlog of at most `room`; returns false if it is full.
    pub(crate) fn queue(&self, arrival: Arrival, room: usize) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let fits = waiting.len() < room;
        if fits {
            waiting.push_back(arrival);
        }
        fits
    }

    /// Takes the next arrival if it is due at `now`, the backlog first.
    pub(crate) fn take_due(&self, now: Nanos) -> Option<LaneArrival> {
        let first = self.waiting.borrow().front().copied();
        let arrival = first.or(self.next.get()).filter(|next| next.due <= now)?;
        if self.shared.progress.get() > Progress::Draining {
            return None;
        }
        if first.is_some() {
            self.waiting.borrow_mut().pop_front();
        } else {
            self.advance();
        }
        self.shared.pending.set(self.shared.pending.get() + 1);
        let blocked =
            self.full_since.get().map_or(0, |full| now.saturating_sub(full.max(arrival.due)));
        Some(LaneArrival { arrival, blocked })
    }

    pub(crate) fn assign_to_idle(&self, now: Nanos) -> bool {
        let Some(slot) = self.idle.borrow_mut().pop() else { return false };
        slot.assigned.set(self.take_due(now));
        if let Some(waker) = slot.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
        true
    }

    /// Counts arrivals due before `end` that were not fired as dropped.
    pub(crate) fn give_up(&self, end: Nanos) {
        let now = self.shared.clock.now();
        for arrival in self.waiting.take() {
            self.shared.recorder.drop_arrival(arrival.due, now);
        }
        while let Some(arrival) = self.next.get().filter(|next| next.due < end) {
            self.shared.recorder.drop_arrival(arrival.due, now);
            self.advance();
        }
    }
}
