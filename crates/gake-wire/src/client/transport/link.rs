//! What the task of an HTTP/2 connection and the exchanges on it share.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Waker};

use gake_codec::http2::{ClientConnection, HeaderFields, RequestTemplate, StreamEnd, StreamEvents};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{ErrorCode, Fault, TcpSample};

use super::room::RoomWatch;
use crate::client::meter::{OpenGuard, bump};
use crate::net::alarm::register_waker;

/// Bytes of shown bodies that may wait for their exchanges before the connection reads no more.
pub(super) const UNREAD_MAX: usize = 1 << 20;

/// An HTTP/2 connection. Its task has the socket; exchanges and task meet here.
pub(super) struct Link {
    codec: RefCell<ClientConnection>,
    lanes: RefCell<Lanes>,
    task: RefCell<Option<Waker>>,
    /// Who waits for the end of the connection.
    end_waiter: RefCell<Option<Waker>>,
    pub(super) room: RoomWatch,
    capacity: Cell<usize>,
    is_ending: Cell<bool>,
    /// Whether it is for one exchange only.
    is_single_use: bool,
    /// Whether it gets no further exchange, whatever the server allows.
    is_retired: Cell<bool>,
    /// Why the connection ended; the fault is that of an exchange without an answer.
    broken: Cell<Option<Fault>>,
    unread: Cell<usize>,
    pub(super) sample: Cell<Option<TcpSample>>,
    /// Whether what is written goes to the kernel as it is.
    pub(super) is_plain: bool,
    /// Bodies that wait for the server's window, and since when.
    stalled: Cell<(Nanos, usize)>,
    open: OpenGuard,
}

/// The exchanges on a connection, by number.
#[derive(Default)]
struct Lanes {
    all: Vec<Lane>,
    free: Vec<u32>,
}

/// What is known of an exchange that its future has not heard yet.
#[derive(Default)]
pub(super) struct Lane {
    waker: Option<Waker>,
    /// Whether its future waits for the first byte, too.
    wants_first_byte: bool,
    pub(super) first_byte: Option<Nanos>,
    /// The end, and when it came.
    pub(super) end: Option<(StreamEnd, Nanos)>,
    pub(super) shown: Option<Box<Shown>>,
}

/// The part of a shown response that its future has not seen.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) head: Option<(u16, HeaderFields)>,
    pub(super) body: Vec<u8>,
    /// Empty when none have come.
    pub(super) trailers: HeaderFields,
}

impl Link {
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
            room: RoomWatch::default(),
            capacity,
            is_ending: Cell::new(false),
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

    /// The connection's number among those of its worker.
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

    /// Makes the calling task the one that reads and writes.
    pub(super) fn know_task(&self, cx: &Context<'_>) {
        register_waker(&mut self.task.borrow_mut(), cx);
    }

    /// Lets the task write what there is to write.
    #[inline]
    pub(super) fn wake_task(&self) {
        if let Some(task) = self.task.borrow().as_ref() {
            task.wake_by_ref();
        }
    }

    /// Whether the connection has ended; the calling task is woken when that comes.
    pub(super) fn has_ended(&self, cx: &Context<'_>) -> bool {
        register_waker(&mut self.end_waiter.borrow_mut(), cx);
        self.broken.get().is_some()
    }

    /// Starts a stream: the numbers of its lane and of its slot in the codec; `None` when there is
    /// no room any more.
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

    /// The same for a stream whose body follows.
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
            self.update_room();
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

    /// Ends a stream whose end has not come; it is given back, too.
    pub(super) fn cancel(&self, lane: u32, slot: u32) -> StreamEnd {
        let end = self.codec.borrow_mut().cancel(slot, ErrorCode::Cancel);
        self.give_back(lane);
        self.wake_task();
        end
    }

    /// Gives back a lane whose exchange has ended.
    #[inline]
    pub(super) fn give_back(&self, lane: u32) {
        let unread = self.lanes.borrow_mut().give_back(lane);
        self.has_read(unread);
    }

    /// Does something with a lane.
    #[inline]
    pub(super) fn with_lane<T>(&self, lane: u32, doing: impl FnOnce(&mut Lane) -> T) -> T {
        doing(&mut self.lanes.borrow_mut().all[lane as usize])
    }

    /// Notes that bytes of shown bodies have been seen.
    pub(super) fn has_read(&self, bytes: usize) {
        if bytes > 0 {
            let had_too_much = self.has_unread();
            self.unread.set(self.unread.get() - bytes);
            if had_too_much && !self.has_unread() {
                self.wake_task();
            }
        }
    }

    /// Hands what came at `now` to the codec, and what it says to the exchanges.
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

    /// Counts what the codec has counted, and tells when the room has changed.
    #[inline]
    pub(super) fn update_room(&self) {
        let (capacity, is_ending, bound) = {
            let mut codec = self.codec.borrow_mut();
            self.open.meter().add_http2(&codec.take_counts());
            (codec.capacity() as usize, codec.is_ending(), codec.bound())
        };
        self.open.meter().bound_streams(bound);
        if self.is_single_use || self.is_retired.get() || self.broken.get().is_some() {
            return;
        }
        let before = (self.capacity.replace(capacity), self.is_ending.replace(is_ending));
        if before != (capacity, is_ending) {
            self.room.tell();
        }
    }

    /// Counts how long bodies wait for the server's window; to be called after what may be written
    /// was written.
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

    /// The connection has ended: ends every exchange on it at `now`.
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
        self.room.tell();
        if let Some(waiter) = self.end_waiter.take() {
            waiter.wake();
        }
    }

    /// Gives it no further exchange.
    pub(super) fn retire(&self) {
        self.is_retired.set(true);
        self.is_ending.set(true);
        self.capacity.set(0);
    }

    /// Nobody needs the connection any more.
    pub(super) fn abandon(&self) {
        self.room.abandon();
        self.wake_task();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Link");
        debug
            .field("capacity", &self.capacity)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Lanes {
    #[inline]
    fn take(&mut self, is_shown: bool, wants_first_byte: bool) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(Lane::default());
            self.free.reserve(self.all.len());
            (self.all.len() - 1) as u32
        });
        let lane = &mut self.all[number as usize];
        lane.wants_first_byte = wants_first_byte;
        lane.shown = is_shown.then(Box::default);
        number
    }

    /// Frees a lane, which keeps its waker: the same task is likely to come back. Says how many
    /// bytes nobody has seen.
    #[inline]
    fn give_back(&mut self, number: u32) -> usize {
        let lane = &mut self.all[number as usize];
        (lane.first_byte, lane.end) = (None, None);
        self.free.push(number);
        lane.shown.take().map_or(0, |shown| shown.body.len())
    }
}

impl Lane {
    /// Makes the calling task the one that is woken.
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

/// Hands events of one read to the lanes.
struct Delivery<'a> {
    lanes: &'a mut Lanes,
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
