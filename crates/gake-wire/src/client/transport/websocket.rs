//! A WebSocket session: one message and its reply at a time.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};

use gake_codec::http1::{ResponseHead, Version, Visitor};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, Fault, ResponseSummary};

use super::interface::{IdleState, Timing, Transport, TransportError};
use super::sampler::TcpSampler;
use super::session_stream::{ReadOutcome, SessionStream};
use super::upgrade::UpgradeResult;
use super::websocket_exchange::{MessageExchange, OPEN};
use crate::client::meter::{OpenGuard, bump};
use crate::client::request::PreparedRequest;
use crate::client::settings::ReplyRule;
use crate::client::visitor::ExchangeVisitor;
use crate::net::alarm::register_waker;
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;

/// The fault of a request prepared by another network, without a message.
const UNPREPARED: Fault = Fault::Malformed("request");

#[derive(Debug)]
pub(crate) enum WebSocket {
    /// A session, with a task that replies to pings between messages.
    Open(Rc<MessageSession>),
    /// The server refused the upgrade: its status is the response to the message.
    Refused(u16, OpenGuard, Option<SocketAddr>),
}

/// An open session, shared with its task.
pub(crate) struct MessageSession {
    line: RefCell<SessionStream>,
    reply_rule: ReplyRule,
    /// Whether a message is pending, or was abandoned: its late reply would be mistaken for the next
    /// one's.
    is_busy: Cell<bool>,
    is_over: Cell<bool>,
    sampler: RefCell<TcpSampler>,
    task: RefCell<Option<Waker>>,
    end_waiter: RefCell<Option<Waker>>,
    capacity_watcher: RefCell<Option<Box<dyn Fn()>>>,
    open: OpenGuard,
    /// `None` for a Unix socket.
    peer: Option<SocketAddr>,
}

impl WebSocket {
    /// The result of an upgrade over `stream`, opened at `times.0` after `times.1`. A session has a task
    /// on the current local runtime.
    ///
    /// # Errors
    /// The server's first frames are invalid.
    pub(crate) fn new(
        (stream, peer): (Stream, Option<SocketAddr>),
        upgraded: &UpgradeResult,
        reply_rule: ReplyRule,
        scratch: &Rc<Scratch>,
        open: OpenGuard,
        times: (Nanos, Nanos),
    ) -> Result<Self, Fault> {
        if !upgraded.response.is_open() {
            return Ok(Self::Refused(upgraded.response.status, open, peer));
        }
        bump(&open.meter().sessions);
        let mut line = SessionStream::new(stream);
        let early = line.take_early(&upgraded.rest);
        if let ReadOutcome::Closed(code) = early.map_err(|error| Fault::Malformed(error.name()))? {
            return Err(Fault::WebSocketClosed(code));
        }
        let session = Rc::new(MessageSession {
            line: RefCell::new(line),
            reply_rule,
            is_busy: Cell::new(false),
            is_over: Cell::new(false),
            sampler: RefCell::new(TcpSampler::new(times.0, times.1)),
            task: RefCell::default(),
            end_waiter: RefCell::default(),
            capacity_watcher: RefCell::default(),
            open,
            peer,
        });
        tokio::task::spawn_local(attend(Rc::downgrade(&session), Rc::clone(scratch)));
        Ok(Self::Open(session))
    }

    pub(crate) const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(..))
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Open(session) => session.peer,
            Self::Refused(_, _, peer) => *peer,
        }
    }

    /// Ends a session between messages.
    pub(super) fn retire(&self) {
        if let Self::Open(session) = self {
            session.is_over.set(true);
        }
    }

    pub(crate) async fn until_ended(&self) {
        let Self::Open(session) = self else { return };
        poll_fn(|cx| {
            if session.is_over.get() {
                return Poll::Ready(());
            }
            register_waker(&mut session.end_waiter.borrow_mut(), cx);
            Poll::Pending
        })
        .await;
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        let Self::Open(session) = self else { return };
        session.is_over.set(true);
        if let Ok(mut line) = session.line.try_borrow_mut() {
            line.close();
        }
        if let Some(task) = session.task.borrow().as_ref() {
            task.wake_by_ref();
        }
    }
}

/// The task of a session.
async fn attend(session: Weak<MessageSession>, scratch: Rc<Scratch>) {
    poll_fn(|cx| {
        let Some(session) = session.upgrade() else { return Poll::Ready(()) };
        register_waker(&mut session.task.borrow_mut(), cx);
        if session.is_busy.get() && !session.is_over.get() {
            return Poll::Pending;
        }
        session.attend(cx, &scratch)
    })
    .await;
}

impl MessageSession {
    /// Reads and replies to pings between messages, until the session is over.
    fn attend(&self, cx: &mut Context<'_>, scratch: &Scratch) -> Poll<()> {
        if self.is_over.get() {
            return Poll::Ready(());
        }
        let meter = self.open.meter();
        let is_orderly = ready!(self.line.borrow_mut().attend(cx, scratch, meter));
        bump(&meter.sessions_ended);
        if !is_orderly {
            bump(&meter.excess);
        }
        self.is_over.set(true);
        if let Some(waiter) = self.end_waiter.take() {
            waiter.wake();
        }
        if let Some(watcher) = self.capacity_watcher.borrow().as_ref() {
            watcher();
        }
        Poll::Ready(())
    }

    /// Makes the session available; until its next message, the task replies to pings.
    fn release(&self, scratch: &Scratch) {
        self.is_busy.set(false);
        let task = self.task.borrow();
        // A task that has not run yet will read by itself.
        if let Some(task) = task.as_ref() {
            let _ = self.attend(&mut Context::from_waker(task), scratch);
        }
    }
}

impl fmt::Debug for MessageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSession").field("line", &self.line).finish_non_exhaustive()
    }
}

impl Transport for WebSocket {
    #[inline]
    fn capacity(&self) -> usize {
        match self {
            Self::Open(session) => usize::from(!session.is_busy.get() && !session.is_over.get()),
            Self::Refused(..) => 0,
        }
    }

    fn watch_capacity(&self, watcher: impl Fn() + 'static) {
        if let Self::Open(session) = self {
            *session.capacity_watcher.borrow_mut() = Some(Box::new(watcher));
        }
    }

    #[inline]
    fn idle_state(&self, _now: Nanos, _scratch: &Scratch) -> IdleState {
        if self.capacity() == 0 { IdleState::Ended } else { IdleState::Usable }
    }
}

impl WebSocket {
    pub(crate) async fn exchange<C: Clock, V: ExchangeVisitor>(
        &self,
        request: &PreparedRequest,
        exchange: &mut Exchange,
        timing: &Timing<'_, C>,
        visitor: &mut V,
    ) -> Result<ResponseSummary, TransportError> {
        let session = match self {
            Self::Open(session) => session,
            Self::Refused(status, open, _) => {
                exchange.connection = open.number();
                exchange.written = false;
                (exchange.first_byte, exchange.done) = (Some(timing.write), timing.write);
                show(visitor, *status, &[]);
                return Ok(ResponseSummary { status: *status, body_bytes: 0 });
            }
        };
        let Some(message) = &request.websocket else {
            return Err(TransportError::Final(UNPREPARED));
        };
        session.is_busy.set(true);
        exchange.connection = session.open.number();
        let is_shown = visitor.may_want();
        let mut message_exchange =
            MessageExchange::new(message, &session.reply_rule, &mut *exchange, timing, is_shown);
        let reply = poll_fn(|cx| message_exchange.poll(&mut session.line.borrow_mut(), cx)).await?;
        {
            let mut line = session.line.borrow_mut();
            let sample = session.sampler.borrow_mut().sample(exchange.done, &line.stream);
            exchange.tcp = sample.or(exchange.tcp);
            if is_shown {
                show(visitor, OPEN, line.held());
            }
            line.clear_held();
        }
        session.release(timing.scratch);
        Ok(reply)
    }
}

/// Shows a reply as a response without headers.
fn show<V: Visitor>(visitor: &mut V, status: u16, body: &[u8]) {
    let head = ResponseHead { status, version: Version::Http11, reason: "", headers: &[] };
    visitor.head(&head);
    if !body.is_empty() {
        visitor.body(body);
    }
}
