//! The fast path of a closed loop: plain exchanges without futures.
//!
//! A user lends its connection ([`FastLane`]) and sleeps. One task waits for all lent connections of
//! a scenario with an epoll descriptor of their own, and does for each readable one what the user
//! would do: record the response, take the next arrival, send its request. Whatever else occurs
//! (a partial write, a fault, a redirect, a time-out, the cut of the run) wakes the user, who takes
//! the connection back and continues in [`Work::fire`], the only place that has rules for it.
//!
//! [`Work::fire`]: gake_core::work::Work::fire

#![expect(
    unsafe_code,
    reason = "AsyncFd::register of an epoll descriptor, which must stay the same one"
)]

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Poll, Waker};

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, ExchangeEnd, PlainExchange, ResponseSummary};
use gake_core::work::{
    Arrival, FastEnd, FastLane, FastRead, FastResponse, Iteration, IterationEnd, Work,
};
use rustix::event::{Timespec, epoll};
use tokio::io::unix::AsyncFd;

use crate::scenario_state::Progress;
use crate::worker_users::WorkerUsers;

/// Events between two yields to the runtime: as many as tasks that it polls between two polls of its
/// I/O driver, so that a burst of responses delays other scenarios no more than without fast lanes.
const TURN: usize = 16;

/// After a wait with this many events, the next ones have probably come meanwhile.
const BUSY: usize = 4;

/// The distance of scans for exchanges over their limit: a hundredth of the shortest, in these bounds.
const SCAN_MIN: Nanos = 1_000_000;
const SCAN_MAX: Nanos = 10_000_000;

/// The fast lanes of one scenario on a worker.
pub(crate) struct FastLoop<L> {
    users: Rc<WorkerUsers>,
    epoll: AsyncFd<OwnedFd>,
    lanes: RefCell<Lanes<L>>,
    is_driven: Cell<bool>,
}

struct Lanes<L> {
    all: Vec<Option<Lent<L>>>,
    free: Vec<usize>,
}

/// A lent connection with an exchange in flight, unless it has ended.
struct Lent<L> {
    lane: L,
    arrival: Arrival,
    first_byte: Option<Nanos>,
    end: Option<FastEnd>,
    waker: Option<Waker>,
}

impl<L: FastLane + 'static> FastLoop<L> {
    /// The loop of these users.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn new(users: Rc<WorkerUsers>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // SAFETY: the AsyncFd owns the OwnedFd, whose descriptor stays open and the same.
        let epoll = unsafe { AsyncFd::register(epoll) }.map_err(io::Error::from)?;
        let lanes = RefCell::new(Lanes { all: Vec::new(), free: Vec::new() });
        Ok(Self { users, epoll, lanes, is_driven: Cell::new(false) })
    }

    /// Takes the connection of `work`, if it lends it, and sends the request of `arrival`, which is
    /// fired when it is due and counted as in flight, and then the next ones for as long as it can.
    /// Returns its number, for [`FastLoop::until_ended`] and then [`FastLoop::give_back`].
    pub(crate) fn begin<W: Work<Fast = L>>(
        self: &Rc<Self>,
        work: &mut W,
        arrival: Arrival,
    ) -> Option<usize> {
        let lane = work.fast_lane(arrival.number, arrival.due)?;
        let mut lent = Lent { lane, arrival, first_byte: None, end: None, waker: None };
        if !self.is_driven.replace(true) {
            self.users.shared.recorder.make_room_for_plain();
            tokio::task::spawn_local(drive(Rc::clone(self)));
            tokio::task::spawn_local(watch_limits(Rc::clone(self), lent.lane.limit()));
        }
        let lanes = &mut *self.lanes.borrow_mut();
        let at = lanes.free.pop().unwrap_or_else(|| lanes.add());
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(at as u64);
        if !lent.lane.send(arrival.number)
            || epoll::add(self.epoll.get_ref(), lent.lane.socket(), data, flags).is_err()
        {
            lent.end = Some(FastEnd::InFlight { arrival, first_byte: None });
        }
        lanes.all[at] = Some(lent);
        Some(at)
    }

    /// Waits until lane `at` has ended, or the run is cut.
    pub(crate) fn until_ended(&self, at: usize) -> impl Future<Output = ()> {
        std::future::poll_fn(move |cx| {
            let lanes = &mut *self.lanes.borrow_mut();
            let Some(lent) = &mut lanes.all[at] else { return Poll::Ready(()) };
            if self.users.shared.progress.get() == Progress::Cut {
                self.stop(lent, None);
            }
            if lent.end.is_some() {
                return Poll::Ready(());
            }
            lent.waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    /// Gives the connection of lane `at`, which has ended, back to `work`. The arrival of
    /// [`FastEnd::InFlight`] is counted as in flight: fire it.
    pub(crate) fn give_back<W: Work<Fast = L>>(&self, at: usize, work: &mut W) -> Option<FastEnd> {
        let lanes = &mut *self.lanes.borrow_mut();
        lanes.free.push(at);
        let Lent { lane, end, .. } = lanes.all[at].take()?;
        work.take_back(lane, end?);
        end
    }

    /// Ends the service of a connection: after a response at `idle`, or during an exchange.
    fn stop(&self, lent: &mut Lent<L>, idle: Option<Nanos>) {
        if lent.end.is_some() {
            return;
        }
        // It fails only for a descriptor that is not in the set.
        let _ = epoll::delete(self.epoll.get_ref(), lent.lane.socket());
        let (arrival, first_byte) = (lent.arrival, lent.first_byte);
        lent.end = Some(match idle {
            Some(at) => FastEnd::Idle(at),
            None => FastEnd::InFlight { arrival, first_byte },
        });
        if let Some(waker) = lent.waker.take() {
            waker.wake();
        }
    }

    /// Handles up to [`TURN`] events; false if there are probably no more. Not inlined: a test counts
    /// its instructions by its name.
    #[inline(never)]
    fn turn(&self) -> bool {
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut room = [const { MaybeUninit::uninit() }; TURN];
        let mut left = TURN;
        while left > 0 {
            let waited = epoll::wait(self.epoll.get_ref(), &mut room[..left], Some(&NOW));
            let events = match waited {
                Ok((events, _)) => events,
                Err(error) => return error == rustix::io::Errno::INTR,
            };
            let count = events.len();
            let mut lanes = self.lanes.borrow_mut();
            for event in &*events {
                let (flags, at) = (event.flags, event.data.u64() as usize);
                if let Some(Some(lent)) = lanes.all.get_mut(at) {
                    // An edge occurs once: read up to the end now.
                    let is_ending = flags.intersects(
                        epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR,
                    );
                    self.serve_readable(lent, is_ending);
                }
            }
            if count < BUSY.min(left) {
                return false;
            }
            left -= count;
        }
        true
    }

    /// Reads a readable connection once, or with `is_ending` until its end.
    #[inline]
    fn serve_readable(&self, lent: &mut Lent<L>, is_ending: bool) {
        let shared = &self.users.shared;
        while lent.end.is_none() {
            match lent.lane.receive() {
                FastRead::Nothing => return,
                FastRead::Other => self.stop(lent, None),
                FastRead::Part { has_more } => {
                    lent.first_byte = lent.first_byte.or_else(|| Some(shared.clock.now()));
                    if !has_more && !is_ending {
                        return;
                    }
                }
                FastRead::Response(response) => {
                    self.ended(lent, &response);
                    if !is_ending {
                        return;
                    }
                }
            }
        }
    }

    /// Records a response, and sends the next request.
    #[inline]
    fn ended(&self, lent: &mut Lent<L>, response: &FastResponse) {
        let shared = &self.users.shared;
        let now = shared.clock.now();
        self.record(lent, response, now);
        shared.last_ended.set(shared.last_ended.get().max(now));
        let next = if response.is_reusable { self.users.take(now) } else { None };
        let Some(arrival) = next else {
            shared.flight.leave(now);
            self.stop(lent, Some(now));
            shared.notice_quiet();
            return;
        };
        shared.flight.replace(now);
        shared.last_fired.set(shared.last_fired.get().max(now));
        (lent.arrival, lent.first_byte) = (arrival, None);
        if !lent.lane.send(arrival.number) {
            self.stop(lent, None);
        }
    }

    #[inline]
    fn record(&self, lent: &mut Lent<L>, response: &FastResponse, done: Nanos) {
        let (recorder, arrival) = (&self.users.shared.recorder, lent.arrival);
        let service = done.saturating_sub(arrival.due);
        let tcp = lent.lane.settle(response, service, done);
        let &FastResponse { label, connection, status, body_bytes, bytes_in, bytes_out, .. } =
            response;
        let plain =
            PlainExchange { due: arrival.due, done, status, body_bytes, bytes_in, bytes_out };
        if tcp.is_none() && lent.first_byte.is_none() && recorder.plain(&plain) {
            return;
        }
        let iteration = Iteration::new(arrival, 0, arrival.due, recorder);
        iteration.exchange(Exchange {
            label,
            connection,
            write: arrival.due,
            written: true,
            first_byte: Some(lent.first_byte.unwrap_or(done)),
            end: ExchangeEnd::Response(ResponseSummary { status, body_bytes }),
            bytes_in,
            bytes_out,
            tcp,
            ..Exchange::unfinished(done)
        });
        recorder.end(&iteration, IterationEnd::finished(done));
    }

    /// Ends the service of connections whose exchange is over its limit; returns the start of the
    /// oldest of the others.
    fn scan(&self, now: Nanos) -> Nanos {
        let mut oldest = now;
        for lent in self.lanes.borrow_mut().all.iter_mut().flatten() {
            if lent.arrival.due.saturating_add(lent.lane.limit()) <= now {
                self.stop(lent, None);
            } else if lent.end.is_none() {
                oldest = oldest.min(lent.arrival.due);
            }
        }
        oldest
    }
}

impl<L> Lanes<L> {
    fn add(&mut self) -> usize {
        self.all.push(None);
        self.all.len() - 1
    }
}

/// Drives the fast lanes to the end of the runtime.
async fn drive<L: FastLane + 'static>(this: Rc<FastLoop<L>>) {
    while let Ok(mut ready) = this.epoll.readable().await {
        if this.turn() {
            drop(ready);
            tokio::task::yield_now().await;
        } else {
            // What came after the last wait is an event for the runtime's next poll.
            ready.clear_ready();
        }
    }
}

/// Ends the service of connections whose exchange takes longer than `limit`.
async fn watch_limits<L: FastLane + 'static>(this: Rc<FastLoop<L>>, limit: Nanos) {
    let shared = &this.users.shared;
    while shared.progress.get() != Progress::Cut {
        let now = shared.clock.now();
        let soonest = now.saturating_add((limit / 100).clamp(SCAN_MIN, SCAN_MAX));
        let next = this.scan(now).saturating_add(limit).max(soonest);
        shared.chores.sleep_until(next).await;
    }
}
