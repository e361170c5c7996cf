//! A WebSocket session of a script, and its samples.

use gake_js::native::named;
use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{CloseCode, Fault};
use gake_js::errors::go_error;
use gake_js::value;
use gake_script::user::{Completion, HeapCharge, throw_out_of_memory};
use gake_wire::{WebSocketEvent, WebSocketSession};
use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Object, Persistent, Value};

use crate::metrics::BuiltinMetric;
use crate::user::series_index::TagSet;
use crate::user::vu::{OpenResource, Vu};

/// Maximum number of pings without a pong; later ones are not timed.
const PINGS_MAX: usize = 1000;

/// The codes that k6 does not report as errors.
const EXPECTED: [CloseCode; 2] = [CloseCode::NORMAL, CloseCode::new(1001)];

/// Go's error of a write to a closed session.
const CLOSED: &str = "websocket: close sent";

pub(super) struct SocketSession {
    vu: Rc<Vu>,
    /// `None` once closed.
    line: RefCell<Option<Rc<WebSocketSession>>>,
    /// The messages that wait to be written.
    unsent: RefCell<HeapCharge>,
    tags: Rc<TagSet>,
    start: Nanos,
    /// The numbers and send times of pings without a pong.
    pings: RefCell<Vec<(u32, Nanos)>>,
    last_ping: Cell<u32>,
}

impl SocketSession {
    pub(super) fn new(
        ctx: &Ctx<'_>,
        vu: Rc<Vu>,
        line: WebSocketSession,
        tags: Rc<TagSet>,
        start: Nanos,
    ) -> rquickjs::Result<Rc<Self>> {
        let line = RefCell::new(Some(Rc::new(line)));
        let unsent = RefCell::new(HeapCharge::new(ctx, 0)?);
        let (pings, last_ping) = (RefCell::default(), Cell::new(0));
        let session = Rc::new(Self { vu, line, unsent, tags, start, pings, last_ping });
        let held: Weak<Self> = Rc::downgrade(&session);
        session.vu.register_open(held);
        Ok(session)
    }

    /// The native functions of a session, for `ws.js` and `websockets.js`.
    pub(super) fn shown<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let shown = Object::new(ctx.clone())?;
        let held = Rc::clone(self);
        // The next event, or nothing after `ms`, if given.
        let next = move |ctx: Ctx<'js>, ms: Opt<f64>| -> rquickjs::Result<Option<Object<'js>>> {
            let until = ms.0.map(|ms| held.vu.now().saturating_add((ms.max(0.0) * 1e6) as u64));
            match held.vu.wait(&ctx, held.event(until))? {
                Some(event) => held.event_object(&ctx, event).map(Some),
                None => Ok(None),
            }
        };
        shown.set("next", named("WebSocket", "next", next))?;
        let held = Rc::clone(self);
        let later = move |ctx: Ctx<'js>, callback: Function<'js>| held.next_later(&ctx, callback);
        shown.set("nextLater", named("WebSocket", "nextLater", later))?;
        let held = Rc::clone(self);
        let send = move |ctx: Ctx<'js>, data: Value<'js>| held.send(&ctx, &data);
        shown.set("send", named("WebSocket", "send", send))?;
        let held = Rc::clone(self);
        let flush = move |ctx: Ctx<'js>| match held.live() {
            Some(session) if session.unsent() > 0 => held.vu.wait(&ctx, session.flush()),
            _ => Ok(()),
        };
        shown.set("flush", named("WebSocket", "flush", flush))?;
        let held = Rc::clone(self);
        shown.set("ping", named("WebSocket", "ping", move |ctx: Ctx<'js>| held.ping(&ctx)))?;
        let held = Rc::clone(self);
        let close = move |ctx: Ctx<'js>, code: u16, reason: Opt<String>| {
            let reason = reason.0.unwrap_or_default();
            held.write(&ctx, 0, |session| session.close(CloseCode::new(code), &reason))
        };
        shown.set("close", named("WebSocket", "close", close))?;
        let held = Rc::clone(self);
        let unsent = move || held.live().map_or(0.0, |session| session.unsent() as f64);
        shown.set("unsent", named("WebSocket", "unsent", unsent))?;
        let held = Rc::clone(self);
        // The modules count different messages as sent and received.
        shown.set(
            "sent",
            named("WebSocket", "sent", move || held.record(BuiltinMetric::WsMsgsSent, 1.0)),
        )?;
        let held = Rc::clone(self);
        shown.set(
            "received",
            named("WebSocket", "received", move || held.record(BuiltinMetric::WsMsgsReceived, 1.0)),
        )?;
        let held = Rc::clone(self);
        shown.set("end", named("WebSocket", "end", move || held.finish()))?;
        Ok(shown)
    }

    /// The next event; `None` at `until`.
    async fn event(&self, until: Option<Nanos>) -> Option<WebSocketEvent> {
        let session = self.live()?;
        let mut next = pin!(session.next());
        let mut sleep = pin!(async {
            match until {
                Some(until) => self.vu.clock.sleep_until(until).await,
                None => pending().await,
            }
        });
        poll_fn(|cx| match next.as_mut().poll(cx) {
            Poll::Ready(event) => Poll::Ready(Some(event)),
            Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
        })
        .await
    }

    /// Calls `callback` with the next event.
    fn next_later<'js>(
        self: &Rc<Self>,
        ctx: &Ctx<'js>,
        callback: Function<'js>,
    ) -> rquickjs::Result<()> {
        let Some(session) = self.live() else { return Ok(()) };
        let (held, callback) = (Rc::clone(self), Persistent::save(ctx, callback));
        self.vu.tasks.add(async move {
            let event = session.next().await;
            Box::new(move |ctx: &Ctx<'_>| {
                let event = held.event_object(ctx, event)?;
                callback.restore(ctx)?.call::<_, ()>((event,))
            }) as Completion
        });
        Ok(())
    }

    /// An event for JavaScript: its type and its details.
    fn event_object<'js>(
        &self,
        ctx: &Ctx<'js>,
        event: WebSocketEvent,
    ) -> rquickjs::Result<Object<'js>> {
        let shown = Object::new(ctx.clone())?;
        let kind = match event {
            WebSocketEvent::Text(text) => {
                shown.set("data", text)?;
                "message"
            }
            WebSocketEvent::Binary(bytes) => {
                shown.set("data", value::buffer(ctx, bytes)?)?;
                "binaryMessage"
            }
            WebSocketEvent::Ping(_) => "ping",
            WebSocketEvent::Pong(payload) => {
                self.pong(&payload);
                "pong"
            }
            WebSocketEvent::Closed(code, reason) => {
                shown.set("code", code.number())?;
                if !EXPECTED.contains(&code) {
                    shown.set("error", closed(code, &reason))?;
                }
                shown.set("reason", reason)?;
                "closed"
            }
            WebSocketEvent::Failed(Fault::ClosedEarly(_)) => {
                shown.set("code", 1006)?;
                shown.set("error", closed(CloseCode::new(1006), "unexpected EOF"))?;
                "closed"
            }
            WebSocketEvent::Failed(fault) => {
                shown.set("code", 1001)?;
                shown.set("error", fault.to_string())?;
                "closed"
            }
        };
        shown.set("type", kind)?;
        Ok(shown)
    }

    /// Sends a string as text, bytes as binary. Returns an error message.
    fn send<'js>(&self, ctx: &Ctx<'js>, data: &Value<'js>) -> rquickjs::Result<Option<String>> {
        if data.is_string() {
            let text = value::text(ctx, data)?;
            return self.write(ctx, text.len(), |session| session.send_text(&text));
        }
        let Some(bytes) = value::bytes(ctx, data)? else {
            return Err(go_error(ctx, "expected a string or an ArrayBuffer"));
        };
        self.write(ctx, bytes.len(), |session| session.send_binary(&bytes))
    }

    /// Sends a ping. Returns an error message.
    fn ping(&self, ctx: &Ctx<'_>) -> rquickjs::Result<Option<String>> {
        let number = self.last_ping.get() + 1;
        self.last_ping.set(number);
        let failed = self.write(ctx, 0, |session| session.ping(number.to_string().as_bytes()))?;
        let mut pings = self.pings.borrow_mut();
        if failed.is_none() && pings.len() < PINGS_MAX {
            pings.push((number, self.vu.now()));
        }
        Ok(failed)
    }

    /// Records the round trip of a ping.
    fn pong(&self, payload: &[u8]) {
        let number = std::str::from_utf8(payload).ok().and_then(|text| text.parse::<u32>().ok());
        let mut pings = self.pings.borrow_mut();
        if let Some(at) = pings.iter().position(|(known, _)| Some(*known) == number) {
            let (_, sent) = pings.swap_remove(at);
            self.record(BuiltinMetric::WsPing, self.vu.now().saturating_sub(sent) as f64);
        }
    }

    /// Closes the session and records its duration, once.
    fn finish(&self) {
        if self.live().is_some() {
            let took = self.vu.now().saturating_sub(self.start);
            self.record(BuiltinMetric::WsSessionDuration, took as f64);
            self.end();
        }
    }

    fn live(&self) -> Option<Rc<WebSocketSession>> {
        self.line.borrow().clone()
    }

    /// Calls `write` with a message of `bytes`, if the script's heap has room for it behind those
    /// that wait. Returns an error message.
    fn write(
        &self,
        ctx: &Ctx<'_>,
        bytes: usize,
        write: impl FnOnce(&WebSocketSession) -> Result<(), Fault>,
    ) -> rquickjs::Result<Option<String>> {
        let Some(session) = self.live() else { return Ok(Some(CLOSED.to_owned())) };
        // A buffer that grows takes up to twice its content.
        let taken = |waiting: usize| waiting.saturating_mul(2);
        let mut unsent = self.unsent.borrow_mut();
        let waiting = session.unsent();
        if waiting > 0 && !unsent.resize(taken(waiting.saturating_add(bytes))) {
            return Err(throw_out_of_memory(ctx));
        }
        let written = write(&session);
        // One message more than there is room for is no error; the next one is.
        unsent.resize(taken(session.unsent()));
        Ok(written.err().map(|fault| match fault {
            Fault::Write => "write: broken pipe".to_owned(),
            Fault::Malformed(_) => "websocket: invalid control frame".to_owned(),
            other => other.to_string(),
        }))
    }

    fn record(&self, metric: BuiltinMetric, value: f64) {
        self.vu.record(metric, &self.tags, value);
    }
}

impl OpenResource for SocketSession {
    /// As in k6, a session that outlives the function has no duration.
    fn end(&self) {
        let Some(line) = self.line.take() else { return };
        self.unsent.borrow_mut().resize(0);
        let (bytes_in, bytes_out) = line.bytes();
        self.vu.count_traffic(bytes_out, bytes_in);
    }
}

/// Go's message for the end of a session.
fn closed(code: CloseCode, reason: &str) -> String {
    let meaning = match code.number() {
        1000 => " (normal)",
        1001 => " (going away)",
        1002 => " (protocol error)",
        1003 => " (unsupported data)",
        1005 => " (no status)",
        1006 => " (abnormal closure)",
        1007 => " (invalid payload data)",
        1008 => " (policy violation)",
        1009 => " (message too big)",
        1010 => " (mandatory extension missing)",
        1011 => " (internal server error)",
        1015 => " (TLS handshake error)",
        _ => "",
    };
    let separator = if reason.is_empty() { "" } else { ": " };
    format!("websocket: close {}{meaning}{separator}{reason}", code.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_errors_are_in_gos_words() {
        let error = closed(CloseCode::new(1011), "oops");
        assert_eq!(error, "websocket: close 1011 (internal server error): oops");
        assert_eq!(closed(CloseCode::new(4000), ""), "websocket: close 4000");
    }
}
