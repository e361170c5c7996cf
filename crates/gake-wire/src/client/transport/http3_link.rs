//! The state shared by the task of an HTTP/3 connection and its exchanges.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gake_codec::http2::{ConnectionCounts, ConnectionLimits};
use gake_codec::http3::StreamViolation;
use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::record::{ErrorCode, Fault, TcpSample};
use quinn::{Connection, RecvStream, SendStream, VarInt};
use tokio::sync::Notify;

use super::capacity_watch::CapacityWatch;
use crate::client::meter::{OpenGuard, bump};
use crate::net::alarm::register_waker;

/// Interval of path samples.
const SAMPLE_EVERY: Nanos = SECOND;

pub(super) struct Http3Link {
    connection: Connection,
    pub(super) limits: ConnectionLimits,
    /// Whether it is for one exchange only.
    is_single_use: bool,
    open_streams: Cell<usize>,
    /// The stream of a first request sent as early data.
    pub(super) early: Cell<Option<(SendStream, RecvStream)>>,
    /// The maximum of `open_streams` so far.
    most_open: Cell<usize>,
    /// The server's limit on streams, as far as it was observed.
    bound: Cell<Option<usize>>,
    is_ending: Cell<bool>,
    /// The first stream that the server will not process, after a GOAWAY.
    goaway: Cell<Option<u64>>,
    /// Wakes the exchanges that wait for a stream on a GOAWAY.
    leaving: Notify,
    /// The fault of exchanges without a response, once the connection has ended.
    broken: Cell<Option<Fault>>,
    /// The wakers of exchanges that wait for a response, by slot.
    waiting: RefCell<Vec<Option<Waker>>>,
    free: RefCell<Vec<usize>>,
    pub(super) capacity_watch: CapacityWatch,
    end_waiter: RefCell<Option<Waker>>,
    /// The buffer of decoded header fields.
    pub(super) text: RefCell<Vec<u8>>,
    /// The instant of the next path sample, and the packets counted so far, sent and lost.
    sampled: Cell<(Nanos, u64, u64)>,
    open: OpenGuard,
}

impl Http3Link {
    pub(super) fn new(
        connection: Connection,
        limits: ConnectionLimits,
        is_single_use: bool,
        open: OpenGuard,
    ) -> Rc<Self> {
        Rc::new(Self {
            connection,
            limits,
            is_single_use,
            open_streams: Cell::new(0),
            early: Cell::new(None),
            most_open: Cell::new(0),
            bound: Cell::new(None),
            is_ending: Cell::new(false),
            goaway: Cell::new(None),
            leaving: Notify::new(),
            broken: Cell::new(None),
            waiting: RefCell::default(),
            free: RefCell::default(),
            capacity_watch: CapacityWatch::default(),
            end_waiter: RefCell::default(),
            text: RefCell::default(),
            sampled: Cell::default(),
            open,
        })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        match (self.is_ending.get(), self.is_single_use) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => {
                self.bound.get().unwrap_or(usize::MAX).min(self.limits.streams as usize)
            }
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// Ends the connection after its live exchanges.
    pub(super) fn retire(&self) {
        self.is_ending.set(true);
    }

    /// The number of the connection within its worker.
    pub(super) fn number(&self) -> u32 {
        self.open.number()
    }

    pub(super) fn broken(&self) -> Option<Fault> {
        self.broken.get()
    }

    /// Whether the connection has ended. If not, the calling task is woken when it does.
    pub(super) fn has_ended(&self, cx: &Context<'_>) -> bool {
        register_waker(&mut self.end_waiter.borrow_mut(), cx);
        self.broken.get().is_some()
    }

    /// Counts a new exchange against a single-use connection.
    pub(super) fn uses(&self) {
        if self.is_single_use {
            self.is_ending.set(true);
        }
    }

    /// The server allows no further stream at present. QUIC limits the total of a connection's streams,
    /// not the concurrent ones, so the limit is estimated from the streams open so far.
    pub(super) fn is_full(&self) {
        let bound = self.bound.get().unwrap_or(0).max(self.most_open.get()).max(1);
        self.bound.set(Some(bound));
        let meter = self.open.meter();
        meter.bound_streams(Some(u32::try_from(bound).unwrap_or(u32::MAX)));
        meter.waits_for_slot();
    }

    pub(super) fn opened(&self, (send, recv): (SendStream, RecvStream)) -> OpenStream<'_> {
        let meter = self.open.meter();
        bump(&meter.streams);
        bump(&meter.http3_streams);
        let open = self.open_streams.get() + 1;
        self.open_streams.set(open);
        self.most_open.set(self.most_open.get().max(open));
        let slot = self.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push(None);
            waiting.len() - 1
        });
        OpenStream { link: self, slot, send, recv, is_over: false }
    }

    /// Whether the server will not process this stream, after a GOAWAY.
    pub(super) fn is_rejected(&self, stream: u64) -> bool {
        self.goaway.get().is_some_and(|first| stream >= first)
    }

    /// Waits until the server rejects the stream.
    pub(super) async fn rejects(&self, stream: u64, slot: usize) {
        poll_fn(|cx| match self.is_rejected(stream) {
            true => Poll::Ready(()),
            false => {
                register_waker(&mut self.waiting.borrow_mut()[slot], cx);
                Poll::Pending
            }
        })
        .await;
    }

    /// Waits for a GOAWAY.
    pub(super) async fn leaves(&self) {
        if self.goaway.get().is_none() {
            self.leaving.notified().await;
        }
    }

    /// The server will not process streams from `first` on.
    pub(super) fn goes_away(&self, first: u64) {
        self.open.meter().add_http2(&ConnectionCounts { goaways: 1, ..Default::default() });
        self.goaway.set(Some(first));
        self.is_ending.set(true);
        for waker in self.waiting.borrow().iter().flatten() {
            waker.wake_by_ref();
        }
        self.leaving.notify_waiters();
        self.capacity_watch.notify();
    }

    /// Counts a reset by the server.
    pub(super) fn stream_reset(&self) {
        self.open.meter().add_http2(&ConnectionCounts { resets: 1, ..Default::default() });
    }

    /// Counts bytes of header blocks, encoded and decoded.
    pub(super) fn count_header_bytes(&self, (header_bytes, header_text_bytes): (u64, u64)) {
        let counts = ConnectionCounts { header_bytes, header_text_bytes, ..Default::default() };
        self.open.meter().add_http2(&counts);
    }

    /// Counts bytes that belong to no exchange.
    pub(super) fn add_bytes(&self, bytes_in: usize, bytes_out: usize) {
        self.open.meter().add_bytes(bytes_in as u64, bytes_out as u64);
    }

    /// Samples the path, about once a second or `now`.
    #[inline]
    pub(super) fn sample(&self, at: Nanos, now: bool) -> Option<TcpSample> {
        let (next, ..) = self.sampled.get();
        if at < next && !now {
            return None;
        }
        let rtt = self.count_packets(at);
        Some(TcpSample { rtt, retransmits: 0 })
    }

    /// Counts the packets since the last sample; returns the round-trip time.
    fn count_packets(&self, at: Nanos) -> Nanos {
        let path = self.connection.stats().path;
        let (_, sent, lost) = self.sampled.get();
        self.open.meter().add_packets(path.sent_packets - sent, path.lost_packets - lost);
        self.sampled.set((at + SAMPLE_EVERY, path.sent_packets, path.lost_packets));
        nanos(path.rtt)
    }

    /// Closes the connection because of a violation.
    pub(super) fn fail(&self, violation: StreamViolation) {
        if self.broken.get().is_none() {
            self.broken.set(Some(violation.fault()));
        }
        self.connection.close(number(violation.code()), violation.name().as_bytes());
    }

    /// The connection has ended. Its streams learn that from QUIC.
    pub(super) fn end(&self, fault: Fault) {
        if self.broken.get().is_none() {
            self.broken.set(Some(fault));
        }
        self.is_ending.set(true);
        self.count_packets(0);
        self.capacity_watch.notify();
        if let Some(waiter) = self.end_waiter.take() {
            waiter.wake();
        }
    }

    /// Closes a connection that is no longer used.
    pub(super) fn abandon(&self) {
        self.capacity_watch.abandon();
        self.connection.close(number(ErrorCode::H3NoError), b"");
    }
}

impl fmt::Debug for Http3Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Http3Link");
        debug.field("bound", &self.bound).field("broken", &self.broken).finish_non_exhaustive()
    }
}

/// A stream of a request, cancelled on drop unless `is_over`.
pub(super) struct OpenStream<'a> {
    link: &'a Http3Link,
    pub(super) slot: usize,
    pub(super) send: SendStream,
    pub(super) recv: RecvStream,
    pub(super) is_over: bool,
}

impl OpenStream<'_> {
    pub(super) fn number(&self) -> u64 {
        VarInt::from(self.send.id()).into_inner()
    }
}

impl Drop for OpenStream<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let code = number(ErrorCode::H3RequestCancelled);
            // Both fail for a half that has ended.
            let _ = self.send.reset(code);
            let _ = self.recv.stop(code);
        }
        let link = self.link;
        link.open_streams.set(link.open_streams.get() - 1);
        link.free.borrow_mut().push(self.slot);
    }
}

fn number(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.http3_number()).unwrap_or_default()
}
