//! A stream of a script: messages both ways while it lasts.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{End, Exchange, GrpcStatus};
use gake_script::user::Completion;
use gake_wire::{Deadline, GrpcError, GrpcMethod, HttpRequest, grpc_call, grpc_frame};
use rquickjs::function::Func;
use rquickjs::{Array, Ctx, Function, Object, Persistent, Value};

use super::ask::CallAsk;
use super::call::ended;
use super::connection::Connection;
use super::incoming::{Incoming, Messages};
use super::status::{CANCELED, of_end};
use super::tags::CallTags;
use crate::errors::go_error;
use crate::metrics::Builtin;
use crate::test::LogLevel;
use crate::user::book::TagSet;
use crate::user::vu::Vu;

/// Bytes of messages, as JSON, that may wait for the script.
const WAITING_MAX: usize = 64 << 20;

/// A stream, which both the script and the task of its call have.
pub(super) struct GrpcStream {
    vu: Rc<Vu>,
    connection: Rc<Connection>,
    method: GrpcMethod,
    /// `/package.Service/Method`
    path: String,
    ask: CallAsk,
    /// Messages with their prefix that are not sent.
    outgoing: RefCell<VecDeque<Arc<[u8]>>>,
    /// Whether the script sends no more.
    is_finished: Cell<bool>,
    /// What the script has not heard.
    events: RefCell<VecDeque<StreamEvent>>,
    /// Bytes of the messages among them.
    waiting: Cell<usize>,
    sender: Cell<Option<Waker>>,
    listener: Cell<Option<Waker>>,
}

/// What came of a stream.
enum StreamEvent {
    /// A message, as JSON.
    Message(String),
    /// It failed, and why.
    Failed(GrpcStatus, String),
    /// It is over. Nothing comes after it.
    Ended,
}

impl std::fmt::Debug for GrpcStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrpcStream").field("path", &self.path).finish_non_exhaustive()
    }
}

impl GrpcStream {
    /// Opens a stream of `method`: its task goes on beside the script.
    pub(super) fn open(
        vu: Rc<Vu>,
        connection: Rc<Connection>,
        method: GrpcMethod,
        ask: CallAsk,
    ) -> Rc<Self> {
        let stream = Rc::new(Self {
            vu,
            connection,
            path: format!("/{}", method.path()),
            method,
            ask,
            outgoing: RefCell::default(),
            is_finished: Cell::new(false),
            events: RefCell::default(),
            waiting: Cell::default(),
            sender: Cell::default(),
            listener: Cell::default(),
        });
        stream.note(Builtin::GrpcStreams);
        let held = Rc::clone(&stream);
        stream.vu.tasks.add(async move {
            held.run().await;
            Box::new(|_: &Ctx<'_>| Ok(())) as Completion
        });
        stream
    }

    /// The stream as the module's JavaScript has it.
    pub(super) fn shown<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let shown = Object::new(ctx.clone())?;
        let held = Rc::clone(self);
        let write = move |ctx: Ctx<'js>, json: String| {
            let message = held.method.encode(&json);
            let message = message.map_err(|error| go_error(&ctx, &error.to_string()))?;
            held.outgoing.borrow_mut().push_back(grpc_frame(&message).into());
            held.sender.take().into_iter().for_each(Waker::wake);
            Ok::<_, rquickjs::Error>(())
        };
        shown.set("write", Func::from(write))?;
        let held = Rc::clone(self);
        let end = move || {
            held.is_finished.set(true);
            held.sender.take().into_iter().for_each(Waker::wake);
        };
        shown.set("end", Func::from(end))?;
        let held = Rc::clone(self);
        let warn = move |text: String| {
            let method = held.path.as_str();
            held.vu.test.log(LogLevel::Warning, &text, &[("streamMethod", method)]);
        };
        shown.set("warn", Func::from(warn))?;
        let held = Rc::clone(self);
        let next = move |ctx: Ctx<'js>, heard: Function<'js>| held.next_later(&ctx, heard);
        shown.set("next", Func::from(next))?;
        Ok(shown)
    }

    /// Calls `heard` with the next event, beside the script.
    fn next_later<'js>(self: &Rc<Self>, ctx: &Ctx<'js>, heard: Function<'js>) {
        let (held, heard) = (Rc::clone(self), Persistent::save(ctx, heard));
        self.vu.tasks.add(async move {
            let event = poll_fn(|cx| match held.events.borrow_mut().pop_front() {
                Some(event) => {
                    if let StreamEvent::Message(json) = &event {
                        held.waiting.set(held.waiting.get() - json.len());
                    }
                    Poll::Ready(event)
                }
                None => {
                    held.listener.set(Some(cx.waker().clone()));
                    Poll::Pending
                }
            });
            let event = event.await;
            Box::new(move |ctx: &Ctx<'_>| heard.restore(ctx)?.call::<_, ()>(event.shown(ctx)?))
                as Completion
        });
    }

    /// Makes the call; what comes of it becomes events.
    async fn run(self: &Rc<Self>) {
        let client = &self.connection.client;
        let start = self.vu.now();
        let exchange = Exchange::unfinished(start);
        let mut flight = Flight { stream: self, start, status: CANCELED, exchange };
        let mut incoming = Incoming::of_stream(self.connection.max_receive, Rc::clone(self) as _);
        match client.prepare(&self.request()).await {
            Ok(prepared) => {
                let now = self.vu.now();
                let deadline = Deadline::within(now, self.timeout());
                let exchange = &mut flight.exchange;
                *exchange = Exchange::unfinished(now);
                let is_wrong = Rc::clone(&incoming.is_wrong);
                let mut exchanging =
                    pin!(client.exchange(&prepared, now, deadline, &mut incoming, exchange));
                poll_fn(|cx| match exchanging.as_mut().poll(cx) {
                    Poll::Pending if is_wrong.get() => Poll::Ready(()),
                    polled => polled,
                })
                .await;
            }
            Err(fault) => client.end(&mut flight.exchange, End::Fault(fault)),
        }
        if matches!(flight.exchange.end, End::Answered(answer) if answer.status == 200) {
            incoming.end();
        }
        let (headers, trailers) = incoming.metadata();
        let (status, why) = incoming.wrong.unwrap_or_else(|| {
            of_end(flight.exchange.end, &headers, &trailers, &self.connection.address)
        });
        flight.status = status;
        if status != GrpcStatus::OK {
            // The status may have come with what was wrong, in one read.
            match ended(flight.exchange.end, status) {
                end if flight.exchange.end == End::Unfinished => {
                    client.end(&mut flight.exchange, end);
                }
                end => flight.exchange.end = end,
            }
            self.tell(StreamEvent::Failed(status, why));
        }
        self.tell(StreamEvent::Ended);
    }

    fn request(&self) -> HttpRequest {
        let metadata = self.connection.metadata(&self.vu, &self.ask.metadata);
        let url = format!("{}{}", self.connection.origin, self.path);
        let mut request = grpc_call(url, &metadata, self.timeout(), Vec::new());
        request.body = None;
        if self.ask.timeout.is_zero() {
            request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("grpc-timeout"));
        }
        request
    }

    /// How long it may last: for ever unless the script says otherwise.
    fn timeout(&self) -> Duration {
        if self.ask.timeout.is_zero() { Duration::MAX } else { self.ask.timeout }
    }

    fn tell(&self, event: StreamEvent) {
        self.events.borrow_mut().push_back(event);
        self.listener.take().into_iter().for_each(Waker::wake);
    }

    fn note(&self, metric: Builtin) {
        self.vu.note(metric, &self.tags(None), 1.0);
    }

    fn tags(&self, status: Option<GrpcStatus>) -> Rc<TagSet> {
        self.vu.book.set(&CallTags {
            vu: &self.vu,
            connection: &self.connection,
            path: &self.path,
            own: &self.ask.tags,
            status,
        })
    }
}

impl Messages for GrpcStream {
    fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Arc<[u8]>>> {
        match self.outgoing.borrow_mut().pop_front() {
            Some(message) => {
                self.note(Builtin::GrpcStreamsMsgsSent);
                Poll::Ready(Some(message))
            }
            None if self.is_finished.get() => Poll::Ready(None),
            None => {
                self.sender.set(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }

    fn received(&self, message: &[u8]) -> Result<(), GrpcError> {
        self.note(Builtin::GrpcStreamsMsgsReceived);
        let json = self.method.decode(message)?;
        let waiting = self.waiting.get() + json.len();
        if waiting > WAITING_MAX {
            return Err(GrpcError::Unread(self.waiting.get()));
        }
        self.waiting.set(waiting);
        self.tell(StreamEvent::Message(json));
        Ok(())
    }
}

impl StreamEvent {
    /// What a listener is called with: the name of the event, and its details.
    fn shown<'js>(self, ctx: &Ctx<'js>) -> rquickjs::Result<(&'static str, Value<'js>)> {
        Ok(match self {
            Self::Message(json) => ("data", ctx.json_parse(json)?),
            Self::Failed(status, why) => {
                let error = Object::new(ctx.clone())?;
                error.set("code", status.number())?;
                error.set("details", Array::new(ctx.clone())?)?;
                error.set("message", why)?;
                ("error", error.into_value())
            }
            Self::Ended => ("end", Value::new_undefined(ctx.clone())),
        })
    }
}

/// The call of a stream under way: noted when it ends, or is dropped before its end.
struct Flight<'a> {
    stream: &'a GrpcStream,
    start: Nanos,
    status: GrpcStatus,
    exchange: Exchange,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let Self { stream, start, status, exchange } = self;
        let GrpcStream { vu, connection, .. } = stream;
        if exchange.end == End::Unfinished {
            connection.client.end(exchange, End::Unfinished);
        }
        let took = exchange.done.saturating_sub(exchange.write);
        vu.note(Builtin::GrpcReqDuration, &stream.tags(Some(*status)), took as f64);
        vu.count_traffic(exchange.bytes_out, exchange.bytes_in);
        vu.notes.exchange(*start, exchange.clone());
    }
}
