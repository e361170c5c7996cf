//! WebSocket sessions of scripts: any messages at any time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use gake_codec::websocket::{
    CONTROL_MAX, FrameEvents, FrameReader, UpgradeResponse, opcode, put_frame, random_mask,
};
use gake_core::clock::Clock;
use gake_core::record::{CloseCode, Exchange, Fault, Phase};

use crate::client::Client;
use crate::client::dial::DialedStream;
use crate::client::meter::{OpenGuard, bump};
use crate::client::request::{HttpMessage, HttpRequest, PreparedRequest};
use crate::client::transport::upgrade;
use crate::net::alarm::register_waker;
use crate::net::deadline::Deadline;
use crate::net::fault;
use crate::net::location::Location;
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;
use crate::tls;
use crate::tls::protocol::Protocol;

/// The fault of an invalid request.
const BAD_REQUEST: Fault = Fault::Malformed("request");

/// The fault of a control frame over 125 bytes.
const TOO_LONG: Fault = Fault::Malformed("websocket_control");

/// Maximum bytes of a received message.
const MESSAGE_MAX: usize = 64 << 20;

/// Pongs are dropped while more bytes than this wait to be written: the server pings without reading.
const PONG_BACKLOG_MAX: usize = 1 << 16;

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebSocketEvent {
    /// A text; invalid UTF-8 is replaced by U+FFFD.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
    /// A ping. Its pong is already queued.
    Ping(Vec<u8>),
    /// A pong.
    Pong(Vec<u8>),
    /// The server closed the session; the reason may be empty. The last event.
    Closed(CloseCode, String),
    /// The session failed. The last event.
    Failed(Fault),
}

/// Capacity that an empty buffer of outgoing frames keeps.
const KEPT: usize = 64 << 10;

/// An open session. Dropping it ends the connection.
pub struct WebSocketSession {
    state: RefCell<SessionState>,
    /// The task that waits for an event.
    waker: RefCell<Option<Waker>>,
    scratch: Rc<Scratch>,
    open: OpenGuard,
}

struct SessionState {
    stream: Stream,
    reader: FrameReader,
    inbox: Inbox,
    out: Vec<u8>,
    /// Bytes of `out` that are written.
    written: usize,
    is_flushed: bool,
    write_fault: Option<Fault>,
    read_fault: Option<Fault>,
    bytes_in: u64,
    bytes_out: u64,
}

/// Received events that were not fetched.
#[derive(Default)]
struct Inbox {
    events: VecDeque<WebSocketEvent>,
    message: Vec<u8>,
    is_too_large: bool,
}

impl<C: Clock + Clone + 'static> Client<C> {
    /// Upgrades to a WebSocket: the server's response, and the session unless the server refused.
    /// `request` has the URL of the upgrade (`http` or `https`) and its headers; `prepared` is the same
    /// request, prepared.
    ///
    /// # Errors
    /// There is no valid response.
    pub async fn open_websocket(
        &self,
        request: &HttpRequest,
        prepared: &PreparedRequest,
        deadline: Deadline,
    ) -> Result<(UpgradeResponse, Option<WebSocketSession>), Fault> {
        let shared = self.shared();
        let location = Location::parse(&request.url).map_err(|_| BAD_REQUEST)?;
        let upgrade = HttpMessage::new(request, location).upgrade().map_err(|_| BAD_REQUEST)?;
        shared.alarms.watch(&shared.clock);
        let now = shared.clock.now();
        let alarm = shared.alarms.set(deadline.end, deadline.shortest(now));
        let config = shared.network.tls.as_ref().map(|tls| tls::speaking(tls, Protocol::WebSocket));
        let mut exchange = Exchange::unfinished(now);
        let opening = async {
            let tls = (config.as_ref(), None);
            let dialer = &shared.dialer;
            let connecting = dialer.connect(prepared.origin, now, &mut exchange, tls, true);
            let DialedStream { mut stream, open, .. } = connecting.await?;
            let upgraded = upgrade::open(&mut stream, &upgrade, &shared.scratch).await?;
            Ok::<_, Fault>((stream, open, upgraded))
        };
        let opened = alarm.before(pin!(opening)).await;
        let timed_out = Err(Fault::Timeout(Phase::Connect));
        let (mut stream, open, mut upgraded) = opened.unwrap_or(timed_out)?;
        if !upgraded.response.is_open() {
            let body = upgrade::refusal_body(&mut stream, &mut upgraded, &shared.scratch);
            // What has arrived by the deadline is enough.
            let _ = alarm.before(pin!(body)).await;
            open.meter().add_bytes(upgraded.bytes_in, upgraded.bytes_out);
            return Ok((upgraded.response, None));
        }
        bump(&open.meter().sessions);
        let mut state = SessionState {
            stream,
            reader: FrameReader::default(),
            inbox: Inbox::default(),
            out: Vec::new(),
            written: 0,
            is_flushed: true,
            write_fault: None,
            read_fault: None,
            bytes_in: upgraded.bytes_in,
            bytes_out: upgraded.bytes_out,
        };
        state.take(&upgraded.rest);
        let scratch = Rc::clone(&shared.scratch);
        let (state, waker) = (RefCell::new(state), RefCell::default());
        let session = WebSocketSession { state, waker, scratch, open };
        Ok((upgraded.response, Some(session)))
    }
}

impl WebSocketSession {
    /// Sends a text.
    ///
    /// # Errors
    /// The connection cannot be written to any more.
    pub fn send_text(&self, text: &str) -> Result<(), Fault> {
        self.send(opcode::TEXT, text.as_bytes())
    }

    /// Sends a binary message.
    ///
    /// # Errors
    /// The connection cannot be written to any more.
    pub fn send_binary(&self, bytes: &[u8]) -> Result<(), Fault> {
        self.send(opcode::BINARY, bytes)
    }

    /// Sends a ping with at most 125 bytes.
    ///
    /// # Errors
    /// The connection cannot be written to any more, or the payload is too long.
    pub fn ping(&self, payload: &[u8]) -> Result<(), Fault> {
        self.send(opcode::PING, payload)
    }

    /// Sends a close frame with a reason of at most 123 bytes.
    ///
    /// # Errors
    /// The connection cannot be written to any more, or the reason is too long.
    pub fn close(&self, code: CloseCode, reason: &str) -> Result<(), Fault> {
        let payload = [&code.number().to_be_bytes()[..], reason.as_bytes()].concat();
        self.send(opcode::CLOSE, if code == CloseCode::NONE { &[] } else { &payload })
    }

    fn send(&self, opcode: u8, payload: &[u8]) -> Result<(), Fault> {
        if opcode & opcode::CLOSE != 0 && payload.len() > CONTROL_MAX {
            return Err(TOO_LONG);
        }
        let mut state = self.state.borrow_mut();
        if let Some(fault) = state.write_fault {
            return Err(fault);
        }
        put_frame(&mut state.out, opcode, payload, random_mask());
        // The rest is written by the task that waits for an event.
        let waker = self.waker.borrow().clone();
        state.write(&mut Context::from_waker(waker.as_ref().unwrap_or(Waker::noop())));
        state.write_fault.map_or(Ok(()), Err)
    }

    /// Waits until everything is written, or writing has failed.
    pub async fn flush(&self) {
        poll_fn(|cx| {
            let mut state = self.state.borrow_mut();
            state.write(cx);
            let is_over = state.write_fault.is_some() || (state.unsent() == 0 && state.is_flushed);
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.state.borrow().unsent()
    }

    /// Bytes read and written, the upgrade included.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.bytes_in, state.bytes_out)
    }

    /// Waits for the next event. Cancel-safe.
    pub async fn next(&self) -> WebSocketEvent {
        poll_fn(|cx| {
            register_waker(&mut self.waker.borrow_mut(), cx);
            self.state.borrow_mut().poll(cx, &self.scratch)
        })
        .await
    }
}

impl Drop for WebSocketSession {
    fn drop(&mut self) {
        let (bytes_in, bytes_out) = self.bytes();
        self.open.meter().add_bytes(bytes_in, bytes_out);
    }
}

impl fmt::Debug for WebSocketSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketSession").finish_non_exhaustive()
    }
}

impl SessionState {
    fn poll(&mut self, cx: &mut Context<'_>, scratch: &Scratch) -> Poll<WebSocketEvent> {
        loop {
            self.write(cx);
            if let Some(event) = self.inbox.events.pop_front() {
                return Poll::Ready(event);
            }
            if let Some(fault) = self.read_fault {
                return Poll::Ready(WebSocketEvent::Failed(fault));
            }
            let read = ready!(scratch.read(&mut self.stream, cx, <[u8]>::to_vec));
            self.receive(read);
        }
    }

    fn receive(&mut self, read: io::Result<Vec<u8>>) {
        match read {
            Ok(bytes) if bytes.is_empty() => {
                self.read_fault = Some(Fault::ClosedEarly(Phase::Body))
            }
            Ok(bytes) => {
                self.bytes_in += bytes.len() as u64;
                self.take(&bytes);
            }
            Err(error) => self.read_fault = Some(fault::of_read(&error, Phase::Body)),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let known = self.inbox.events.len();
        if let Err(error) = self.reader.read(bytes, &mut self.inbox) {
            self.read_fault = Some(Fault::Malformed(error.name()));
        }
        if self.inbox.is_too_large {
            self.read_fault = Some(Fault::TooLarge("message"));
        }
        for event in self.inbox.events.range(known..) {
            if let WebSocketEvent::Ping(payload) = event
                && self.unsent() < PONG_BACKLOG_MAX
            {
                put_frame(&mut self.out, opcode::PONG, payload, random_mask());
            }
        }
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.written
    }

    fn write(&mut self, cx: &mut Context<'_>) {
        let before = self.written;
        while self.write_fault.is_none() && self.unsent() > 0 {
            match self.stream.poll_write(cx, &self.out[self.written..]) {
                Poll::Ready(Ok(0)) => self.write_fault = Some(Fault::Write),
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => self.write_fault = Some(fault::of_write(&error)),
                Poll::Pending => break,
            }
        }
        let count = self.written - before;
        self.bytes_out += count as u64;
        self.is_flushed &= count == 0;
        // Not after each write: that would move a long backlog again and again.
        if self.written > self.out.len() / 2 {
            self.out.drain(..self.written);
            self.written = 0;
            self.out.shrink_to(2 * self.out.len().max(KEPT));
        }
        if self.write_fault.is_none() && !self.is_flushed {
            match self.stream.poll_flush(cx) {
                Poll::Ready(Ok(())) => self.is_flushed = true,
                Poll::Ready(Err(error)) => self.write_fault = Some(fault::of_write(&error)),
                Poll::Pending => {}
            }
        }
    }
}

impl FrameEvents for Inbox {
    fn data(&mut self, bytes: &[u8]) {
        if self.message.len() + bytes.len() > MESSAGE_MAX {
            self.is_too_large = true;
        } else {
            self.message.extend_from_slice(bytes);
        }
    }

    fn message(&mut self, is_text: bool) {
        // The message was cut.
        if self.is_too_large {
            return;
        }
        let bytes = std::mem::take(&mut self.message);
        self.events.push_back(match is_text {
            true => WebSocketEvent::Text(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
            false => WebSocketEvent::Binary(bytes),
        });
    }

    fn ping(&mut self, payload: &[u8]) {
        self.events.push_back(WebSocketEvent::Ping(payload.to_vec()));
    }

    fn pong(&mut self, payload: &[u8]) {
        self.events.push_back(WebSocketEvent::Pong(payload.to_vec()));
    }

    fn close(&mut self, code: CloseCode, reason: &[u8]) {
        let reason = String::from_utf8_lossy(reason).into_owned();
        self.events.push_back(WebSocketEvent::Closed(code, reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_over_the_bound_is_not_delivered() {
        let mut inbox = Inbox::default();
        inbox.data(b"whole");
        inbox.message(true);
        inbox.data(b"begin");
        inbox.data(&vec![b' '; MESSAGE_MAX]);
        inbox.message(true);
        assert_eq!(inbox.events, [WebSocketEvent::Text("whole".to_owned())]);
        assert!(inbox.is_too_large);
    }
}
