//! The state shared by the task of an HTTP/2 connection and its exchanges.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Waker};

use gake_codec::http2::{ClientConnection, HeaderFields, RequestTemplate, StreamEnd, StreamEvents};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{ErrorCode, Fault, TcpSample};

use super::capacity_watch::CapacityWatch;
use crate::client::meter::{OpenGuard, bump};
use crate::net::alarm::register_waker;

/// Reading pauses while more bytes of shown bodies than this wait for their visitors.
pub(super) const UNREAD_MAX: usize = 1 << 20;

pub(super) struct Http2Link {
    codec: RefCell<ClientConnection>,
    lanes: RefCell<ExchangeStates>,
    task: RefCell<Option<Waker>>,
    /// The task that waits for the server's settings, or the end of the connection.
    end_waiter: RefCell<Option<Waker>>,
    pub(super) capacity_watch: CapacityWatch,
    capacity: Cell<usize>,
    is_ending: Cell<bool>,
    /// Whether the server has sent its settings.
    is_greeted: Cell<bool>,
    /// Whether it is for one exchange only.
    is_single_use: bool,
    /// Whether this side accepts no further exchange.
    is_retired: Cell<bool>,
    /// The fault of exchanges without a response, once the connection has ended.
    broken: Cell<Option<Fault>>,
    unread: Cell<usize>,
    pub(super) sample: Cell<Option<TcpSample>>,
    /// [`Stream::is_plain`](crate::net::stream::Stream::is_plain).
    pub(super) is_plain: bool,
    /// When bodies began to wait for the server's window, and their number.
    stalled: Cell<(Nanos, usize)>,
    open: OpenGuard,
}

/// The exchanges on a connection, by number.
#[derive(Default)]
struct ExchangeStates {
    all: Vec<ExchangeState>,
    free: Vec<u32>,
}

/// The events of an exchange that its future has not consumed.
#[derive(Default)]
pub(super) struct ExchangeState {
    waker: Option<Waker>,
    /// Whether to wake its future at the first byte, too.
    wants_first_byte: bool,
    pub(super) first_byte: Option<Nanos>,
    /// The end, and when it came.
    pub(super) end: Option<(StreamEnd, Nanos)>,
    pub(super) shown: Option<Box<ShownEvents>>,
}

/// The events of a shown response that its future has not consumed.
#[derive(Default)]
pub(super) struct ShownEvents {
    pub(super) head: Option<(u16, HeaderFields)>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: HeaderFields,
}

impl Http2Link {
    pub(super) fn new(
        codec: ClientConnection,
        is_plain: bool,
        is_single_use: bool,
        open: OpenGuard,
    ) -> Rc<Self> {
        let capacity = Cell::new(codec.capacity() as usize);
        let link = Self {
            codec: RefCell::new(codec),
            lanes: RefCell::default(),
            task: RefCell::default(),
            end_waiter: RefCell::default(),
            capacity_watch: CapacityWatch::default(),
            capacity,
            is_ending: Cell::new(false),
            is_greeted: Cell::new(false),
            is_single_use,
            is_retired: Cell::new(false),
            broken: Cell::new(None),
            unread: Cell::new(0),
            sample: Cell::new(None),
            is_plain,
            stalled: Cell::default(),
            open,
        };
        if is_single_use {
            link.capacity.set(1);
        }
        Rc::new(link)
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.capacity.get()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// The number of the connection within its worker.
    pub(super) fn number(&self) -> u32 {
        self.open.number()
    }

    pub(super) fn broken(&self) -> Option<Fault> {
        self.broken.get()
    }

    pub(super) fn has_unread(&self) -> bool {
        self.unread.get() > UNREAD_MAX
    }

    pub(super) fn codec(&self) -> &RefCell<ClientConnection> {
        &self.codec
    }

    /// Registers the waker of the connection's task.
    pub(super) fn register_task(&self, cx: &Context<'_>) {
        register_waker(&mut self.task.borrow_mut(), cx);
    }

    #[inline]
    pub(super) fn wake_task(&self) {
        if let Some(task) = self.task.borrow().as_ref() {
            task.wake_by_ref();
        }
    }

    /// Whether the connection has ended. If not, the calling task is woken when it does.
    pub(super) fn has_ended(&self, cx: &Context<'_>) -> bool {
        register_waker(&mut self.end_waiter.borrow_mut(), cx);
        self.broken.get().is_some()
    }

    /// Whether the server has sent its settings, or the fault that came first. If neither, the
    /// calling task is woken when it does.
    pub(super) fn greeting(&self, cx: &Context<'_>) -> Option<Result<(), Fault>> {
        register_waker(&mut self.end_waiter.borrow_mut(), cx);
        match (self.broken.get(), self.is_greeted.get()) {
            (Some(fault), _) => Some(Err(fault)),
            (None, is_greeted) => is_greeted.then_some(Ok(())),
        }
    }

    /// Starts a stream and returns its lane and its slot in the codec; `None` without capacity.
    #[inline]
    pub(super) fn start(
        &self,
        request: &RequestTemplate,
        is_shown: bool,
        wants_first_byte: bool,
    ) -> Option<(u32, u32)> {
        let start = |codec: &mut ClientConnection, lane| codec.start(request, lane, is_shown);
        self.start_with(start, is_shown, wants_first_byte)
    }

    pub(super) fn start_open(
        &self,
        request: &RequestTemplate,
        wants_first_byte: bool,
    ) -> Option<(u32, u32)> {
        let start = |codec: &mut ClientConnection, lane| codec.start_open(request, lane);
        self.start_with(start, true, wants_first_byte)
    }

    #[inline]
    fn start_with(
        &self,
        start: impl FnOnce(&mut ClientConnection, u32) -> Option<u32>,
        is_shown: bool,
        wants_first_byte: bool,
    ) -> Option<(u32, u32)> {
        let lane = self.lanes.borrow_mut().take(is_shown, wants_first_byte);
        let slot = start(&mut self.codec.borrow_mut(), lane);
        let Some(slot) = slot else {
            self.lanes.borrow_mut().give_back(lane);
            self.update_capacity();
            return None;
        };
        bump(&self.open.meter().streams);
        if self.is_single_use {
            self.is_ending.set(true);
            self.capacity.set(0);
        }
        self.wake_task();
        Some((lane, slot))
    }

    /// Resets a live stream and frees its lane.
    pub(super) fn cancel(&self, lane: u32, slot: u32) -> StreamEnd {
        let end = self.codec.borrow_mut().cancel(slot, ErrorCode::Cancel);
        self.give_back(lane);
        self.wake_task();
        end
    }

    /// Frees the lane of an ended exchange.
    #[inline]
    pub(super) fn give_back(&self, lane: u32) {
        let unread = self.lanes.borrow_mut().give_back(lane);
        self.has_read(unread);
    }

    #[inline]
    pub(super) fn with_lane<T>(&self, lane: u32, doing: impl FnOnce(&mut ExchangeState) -> T) -> T {
        doing(&mut self.lanes.borrow_mut().all[lane as usize])
    }

    /// Records that a visitor has seen bytes of a shown body.
    pub(super) fn has_read(&self, bytes: usize) {
        if bytes > 0 {
            let had_too_much = self.has_unread();
            self.unread.set(self.unread.get() - bytes);
            if had_too_much && !self.has_unread() {
                self.wake_task();
            }
        }
    }

    /// Hands bytes received at `now` to the codec, and its events to the exchanges.
    pub(super) fn receive(
        &self,
        bytes: &[u8],
        now: Nanos,
    ) -> Result<(), gake_codec::http2::Violation> {
        let mut codec = self.codec.borrow_mut();
        let lanes = &mut *self.lanes.borrow_mut();
        let mut delivery = Delivery { lanes, now, unread: 0 };
        let received = codec.receive(bytes, &mut delivery);
        let unread = delivery.unread;
        self.unread.set(self.unread.get() + unread);
        received
    }

    /// Takes the codec's counts and capacity, and notifies the pool of a change.
    #[inline]
    pub(super) fn update_capacity(&self) {
        let (capacity, is_ending, bound, is_greeted) = {
            let mut codec = self.codec.borrow_mut();
            self.open.meter().add_http2(&codec.take_counts());
            (codec.capacity() as usize, codec.is_ending(), codec.bound(), codec.is_greeted())
        };
        if is_greeted != self.is_greeted.replace(is_greeted)
            && let Some(waiter) = self.end_waiter.borrow().as_ref()
        {
            waiter.wake_by_ref();
        }
        self.open.meter().bound_streams(bound);
        if self.is_single_use || self.is_retired.get() || self.broken.get().is_some() {
            return;
        }
        let before = (self.capacity.replace(capacity), self.is_ending.replace(is_ending));
        if before != (capacity, is_ending) {
            self.capacity_watch.notify();
        }
    }

    /// Counts the time that bodies wait for the server's window. Call it after writing.
    #[inline]
    pub(super) fn note_stall(&self, clock: &impl Clock) {
        let (since, stalled) = self.stalled.get();
        let now_stalled = self.codec.borrow().stalled();
        if (stalled, now_stalled) == (0, 0) {
            return;
        }
        let now = clock.now();
        let waited = now.saturating_sub(since) * stalled as u64;
        self.open.meter().waited_for_window(waited);
        self.stalled.set((now, now_stalled));
    }

    /// Ends every exchange at `now`, after the end of the connection.
    pub(super) fn end(&self, fault: Fault, now: Nanos) {
        self.broken.set(Some(fault));
        self.capacity.set(0);
        self.is_ending.set(true);
        {
            let mut codec = self.codec.borrow_mut();
            let lanes = &mut *self.lanes.borrow_mut();
            let mut delivery = Delivery { lanes, now, unread: 0 };
            codec.end_all(|owner, end| delivery.ended(owner, end));
            self.open.meter().add_http2(&codec.take_counts());
        }
        self.capacity_watch.notify();
        if let Some(waiter) = self.end_waiter.take() {
            waiter.wake();
        }
    }

    pub(super) fn retire(&self) {
        self.is_retired.set(true);
        self.is_ending.set(true);
        self.capacity.set(0);
    }

    /// Ends the task of a connection that is no longer used.
    pub(super) fn abandon(&self) {
        self.capacity_watch.abandon();
        self.wake_task();
    }
}

impl fmt::Debug for Http2Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Http2Link");
        debug
            .field("capacity", &self.capacity)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl ExchangeStates {
    #[inline]
    fn take(&mut self, is_shown: bool, wants_first_byte: bool) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(ExchangeState::default());
            self.free.reserve(self.all.len());
            (self.all.len() - 1) as u32
        });
        let lane = &mut self.all[number as usize];
        lane.wants_first_byte = wants_first_byte;
        lane.shown = is_shown.then(Box::default);
        number
    }

    /// Frees a lane, whose waker is kept for the next exchange of the same task. Returns its unread
    /// bytes.
    #[inline]
    fn give_back(&mut self, number: u32) -> usize {
        let lane = &mut self.all[number as usize];
        (lane.first_byte, lane.end) = (None, None);
        self.free.push(number);
        lane.shown.take().map_or(0, |shown| shown.body.len())
    }
}

impl ExchangeState {
    #[inline]
    pub(super) fn register_waker(&mut self, cx: &Context<'_>) {
        register_waker(&mut self.waker, cx);
    }

    #[inline]
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

/// Delivers the events of one read to the lanes.
struct Delivery<'a> {
    lanes: &'a mut ExchangeStates,
    now: Nanos,
    unread: usize,
}

impl StreamEvents for Delivery<'_> {
    #[inline]
    fn began(&mut self, owner: u32) {
        let lane = &mut self.lanes.all[owner as usize];
        lane.first_byte = Some(self.now);
        if lane.wants_first_byte {
            lane.wake();
        }
    }

    fn head(&mut self, owner: u32, status: u16, fields: HeaderFields) {
        let lane = &mut self.lanes.all[owner as usize];
        if let Some(shown) = &mut lane.shown {
            shown.head = Some((status, fields));
            lane.wake();
        }
    }

    fn trailers(&mut self, owner: u32, fields: HeaderFields) {
        let lane = &mut self.lanes.all[owner as usize];
        if let Some(shown) = &mut lane.shown {
            shown.trailers = fields;
        }
    }

    fn body(&mut self, owner: u32, bytes: &[u8]) {
        let lane = &mut self.lanes.all[owner as usize];
        if let Some(shown) = &mut lane.shown {
            shown.body.extend_from_slice(bytes);
            self.unread += bytes.len();
            lane.wake();
        }
    }

    #[inline]
    fn ended(&mut self, owner: u32, end: StreamEnd) {
        let lane = &mut self.lanes.all[owner as usize];
        lane.end = Some((end, self.now));
        lane.wake();
    }
}
