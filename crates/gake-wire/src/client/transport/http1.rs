//! An HTTP/1.1 connection: one exchange at a time.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

use gake_codec::http1::{KnownHeads, Response, ResponseLimits};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, ResponseSummary};

use super::http1_connection::{Http1Connection, LentConnection};
use super::interface::{IdleState, Timing, Transport, TransportError};
use super::transaction::Transaction;
use crate::client::meter::{OpenGuard, bump};
use crate::client::request::PreparedRequest;
use crate::client::visitor::ExchangeVisitor;
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;
use crate::tls::facts::ConnectionFacts;

#[derive(Debug)]
pub(crate) struct Http1 {
    /// Whether the next request may be sent.
    is_free: Cell<bool>,
    done: Cell<Nanos>,
    conn: RefCell<Http1Connection>,
    pub(super) facts: ConnectionFacts,
}

impl Http1 {
    /// A connection opened at `now` after `connect`.
    pub(crate) fn new(
        stream: Stream,
        facts: ConnectionFacts,
        known: Rc<RefCell<KnownHeads>>,
        limits: ResponseLimits,
        open: OpenGuard,
        (now, connect): (Nanos, Nanos),
    ) -> Self {
        let conn = Http1Connection::new(stream, known, limits, open, (now, connect));
        Self { is_free: Cell::new(true), done: Cell::new(now), conn: RefCell::new(conn), facts }
    }

    /// Records the bytes of its first request sent as early data.
    pub(crate) fn has_sent(&self, bytes: usize) {
        self.conn.borrow_mut().early = bytes;
    }

    /// Lends the connection, which must be idle, to a fast lane; `None` unless it is plain TCP and
    /// became idle at `now`, so that it need not be looked at.
    pub(crate) fn lend(&self, now: Nanos) -> Option<LentConnection> {
        let is_fresh = self.is_free.get() && self.done.get() == now;
        if is_fresh { self.conn.borrow_mut().lend() } else { None }
    }

    /// Takes the connection back. The exchange in flight, of which `sent` bytes are written, or the
    /// next one, continues at `now`.
    pub(crate) fn take_back(&self, lent: LentConnection, now: Nanos, sent: Option<usize>) {
        self.conn.borrow_mut().take_back(lent, sent);
        self.done.set(now);
    }

    pub(crate) fn retire(&self) {
        self.is_free.set(false);
    }

    /// Holds the connection until the peer ends it. Received bytes (TLS session tickets, a 408) are
    /// discarded.
    pub(crate) async fn until_ended(&self, scratch: &Scratch) {
        poll_fn(|cx| {
            let mut conn = self.conn.borrow_mut();
            loop {
                match ready!(scratch.read(&mut conn.stream, cx, <[u8]>::is_empty)) {
                    Ok(false) => {}
                    Ok(true) | Err(_) => return Poll::Ready(()),
                }
            }
        })
        .await;
    }
}

impl Transport for Http1 {
    #[inline]
    fn capacity(&self) -> usize {
        usize::from(self.is_free.get())
    }

    #[inline]
    fn idle_state(&self, now: Nanos, scratch: &Scratch) -> IdleState {
        // The runtime has not polled for events since the last response.
        if self.done.get() == now {
            return IdleState::Usable;
        }
        let state = self.conn.borrow_mut().idle_state(scratch);
        self.is_free.set(state == IdleState::Usable);
        state
    }
}

impl Http1 {
    /// As the other transports' exchanges. One future without a state of its own.
    pub(crate) fn exchange<'a, C: Clock, V: ExchangeVisitor>(
        &'a self,
        request: &'a PreparedRequest,
        exchange: &'a mut Exchange,
        timing: &'a Timing<'_, C>,
        visitor: &'a mut V,
    ) -> impl Future<Output = Result<ResponseSummary, TransportError>> {
        self.is_free.set(false);
        let rendered = &request.rendered;
        let mut transaction = {
            let conn = &mut self.conn.borrow_mut();
            exchange.connection = conn.open.number();
            Transaction::new(conn, rendered, exchange, timing, visitor)
        };
        poll_fn(move |cx| {
            let conn = &mut self.conn.borrow_mut();
            let response = ready!(transaction.poll(conn, cx))?;
            let exchange = &mut *transaction.exchange;
            let sample = conn.sample(exchange.done);
            exchange.tcp = sample.or(exchange.tcp);
            let Response { status, body_bytes, excess, .. } = response;
            if excess {
                bump(&conn.open.meter().excess);
            }
            // After an early response, the rest of the request is still unwritten.
            if response.reusable() && exchange.written && !rendered.closes {
                self.done.set(exchange.done);
                self.is_free.set(true);
            }
            Poll::Ready(Ok(ResponseSummary { status, body_bytes }))
        })
    }
}
