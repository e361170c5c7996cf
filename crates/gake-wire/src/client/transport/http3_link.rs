//! What the task of an HTTP/3 connection and the exchanges on it share.

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

use super::room::RoomWatch;
use crate::client::meter::{OpenGuard, bump};
use crate::net::alarm::register_waker;

/// How often a connection is asked about its path.
const SAMPLE_EVERY: Nanos = SECOND;

/// An HTTP/3 connection.
pub(super) struct Http3Link {
    connection: Connection,
    pub(super) limits: ConnectionLimits,
    /// Whether it is for one exchange only.
    is_single_use: bool,
    /// Streams of requests that are open.
    open_streams: Cell<usize>,
    /// The stream of the first request, when that went with the handshake.
    pub(super) early: Cell<Option<(SendStream, RecvStream)>>,
    /// The most of them that were open at once.
    most_open: Cell<usize>,
    /// The most streams that the server was seen to allow at once, when that is fewer than wanted.
    bound: Cell<Option<usize>>,
    is_ending: Cell<bool>,
    /// The first stream that the server will not handle, after a GOAWAY.
    goaway: Cell<Option<u64>>,
    /// Tells those who wait for a stream of the GOAWAY.
    leaving: Notify,
    /// Why the connection ended; the fault is that of an exchange without an answer.
    broken: Cell<Option<Fault>>,
    /// Those who wait for a response, by the number of their stream's place.
    waiting: RefCell<Vec<Option<Waker>>>,
    free: RefCell<Vec<usize>>,
    pub(super) room: RoomWatch,
    end_waiter: RefCell<Option<Waker>>,
    /// The buffer of decoded header fields.
    pub(super) text: RefCell<Vec<u8>>,
    /// When the path is asked about next, and the packets counted so far: sent, and lost.
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
            room: RoomWatch::default(),
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

    /// The connection's number among those of its worker.
    pub(super) fn number(&self) -> u32 {
        self.open.number()
    }

    pub(super) fn broken(&self) -> Option<Fault> {
        self.broken.get()
    }

    /// Whether the connection has ended; the calling task is woken when that comes.
    pub(super) fn has_ended(&self, cx: &Context<'_>) -> bool {
        register_waker(&mut self.end_waiter.borrow_mut(), cx);
        self.broken.get().is_some()
    }

    /// An exchange begins.
    pub(super) fn uses(&self) {
        if self.is_single_use {
            self.is_ending.set(true);
        }
    }

    /// The server allows no further stream at the moment: QUIC counts streams over a connection's
    /// life and does not say how many may be open at once, so that is learnt from what it allowed.
    pub(super) fn is_full(&self) {
        let bound = self.bound.get().unwrap_or(0).max(self.most_open.get()).max(1);
        self.bound.set(Some(bound));
        let meter = self.open.meter();
        meter.bound_streams(Some(u32::try_from(bound).unwrap_or(u32::MAX)));
        meter.waits_for_place();
    }

    /// A stream has been opened.
    pub(super) fn opened(&self, (send, recv): (SendStream, RecvStream)) -> OpenStream<'_> {
        let meter = self.open.meter();
        bump(&meter.streams);
        bump(&meter.http3_streams);
        let open = self.open_streams.get() + 1;
        self.open_streams.set(open);
        self.most_open.set(self.most_open.get().max(open));
        let place = self.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push(None);
            waiting.len() - 1
        });
        OpenStream { link: self, place, send, recv, is_over: false }
    }

    /// Whether the server has said that it will not handle this stream.
    pub(super) fn is_rejected(&self, stream: u64) -> bool {
        self.goaway.get().is_some_and(|first| stream >= first)
    }

    /// Waits until the server says so. `place` is the stream's.
    pub(super) async fn rejects(&self, stream: u64, place: usize) {
        poll_fn(|cx| match self.is_rejected(stream) {
            true => Poll::Ready(()),
            false => {
                register_waker(&mut self.waiting.borrow_mut()[place], cx);
                Poll::Pending
            }
        })
        .await;
    }

    /// Waits until the server allows no further stream, because of a GOAWAY.
    pub(super) async fn leaves(&self) {
        if self.goaway.get().is_none() {
            self.leaving.notified().await;
        }
    }

    /// The server will not handle `first` and later streams.
    pub(super) fn goes_away(&self, first: u64) {
        self.open.meter().add_http2(&ConnectionCounts { goaways: 1, ..Default::default() });
        self.goaway.set(Some(first));
        self.is_ending.set(true);
        for waker in self.waiting.borrow().iter().flatten() {
            waker.wake_by_ref();
        }
        self.leaving.notify_waiters();
        self.room.tell();
    }

    /// The server has reset a stream.
    pub(super) fn stream_reset(&self) {
        self.open.meter().add_http2(&ConnectionCounts { resets: 1, ..Default::default() });
    }

    /// A response was whole: bytes of its header blocks, as they came and as text.
    pub(super) fn answered(&self, (header_bytes, header_text_bytes): (u64, u64)) {
        let counts = ConnectionCounts { header_bytes, header_text_bytes, ..Default::default() };
        self.open.meter().add_http2(&counts);
    }

    /// Bytes of the connection that belong to no exchange.
    pub(super) fn add_bytes(&self, bytes_in: usize, bytes_out: usize) {
        self.open.meter().add_bytes(bytes_in as u64, bytes_out as u64);
    }

    /// What QUIC says of the path, about once a second or if asked `now`.
    #[inline]
    pub(super) fn sample(&self, at: Nanos, now: bool) -> Option<TcpSample> {
        let (next, ..) = self.sampled.get();
        if at < next && !now {
            return None;
        }
        let rtt = self.count_packets(at);
        Some(TcpSample { rtt, retransmits: 0 })
    }

    /// Counts the packets since the last time; the round-trip time.
    fn count_packets(&self, at: Nanos) -> Nanos {
        let path = self.connection.stats().path;
        let (_, sent, lost) = self.sampled.get();
        self.open.meter().add_packets(path.sent_packets - sent, path.lost_packets - lost);
        self.sampled.set((at + SAMPLE_EVERY, path.sent_packets, path.lost_packets));
        nanos(path.rtt)
    }

    /// The server broke a rule that the connection cannot survive.
    pub(super) fn fail(&self, violation: StreamViolation) {
        if self.broken.get().is_none() {
            self.broken.set(Some(violation.fault()));
        }
        self.connection.close(number(violation.code()), violation.name().as_bytes());
    }

    /// The connection has ended; every stream on it hears of it from QUIC.
    pub(super) fn end(&self, fault: Fault) {
        if self.broken.get().is_none() {
            self.broken.set(Some(fault));
        }
        self.is_ending.set(true);
        self.count_packets(0);
        self.room.tell();
        if let Some(waiter) = self.end_waiter.take() {
            waiter.wake();
        }
    }

    /// Nobody needs the connection any more.
    pub(super) fn abandon(&self) {
        self.room.abandon();
        self.connection.close(number(ErrorCode::H3NoError), b"");
    }
}

impl fmt::Debug for Http3Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Http3Link");
        debug.field("bound", &self.bound).field("broken", &self.broken).finish_non_exhaustive()
    }
}

/// A stream of a request. Unless it is over when it is dropped, the request is given up.
pub(super) struct OpenStream<'a> {
    link: &'a Http3Link,
    pub(super) place: usize,
    pub(super) send: SendStream,
    pub(super) recv: RecvStream,
    pub(super) is_over: bool,
}

impl OpenStream<'_> {
    /// The number of the stream on its connection.
    pub(super) fn number(&self) -> u64 {
        VarInt::from(self.send.id()).into_inner()
    }
}

impl Drop for OpenStream<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let code = number(ErrorCode::H3RequestCancelled);
            // Either fails for a half that has ended already.
            let _ = self.send.reset(code);
            let _ = self.recv.stop(code);
        }
        let link = self.link;
        link.open_streams.set(link.open_streams.get() - 1);
        link.free.borrow_mut().push(self.place);
    }
}

/// The number of a code of HTTP/3.
fn number(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.http3_number()).unwrap_or_default()
}
