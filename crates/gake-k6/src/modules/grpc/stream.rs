//! A gRPC stream of a script.

use gake_js::native::named;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{Exchange, ExchangeEnd, GrpcStatus};
use gake_js::errors::go_error;
use gake_js::value::PAIR;
use gake_script::user::{Completion, HeapCharge, throw_out_of_memory};
use gake_wire::{Deadline, GrpcError, GrpcMethod, HttpRequest, grpc_call, grpc_frame};
use rquickjs::{Array, Ctx, Function, Object, Persistent, Value};

use super::call::{encoded, ended};
use super::connection::GrpcConnection;
use super::params::CallParams;
use super::reader::{GrpcReader, StreamMessages};
use super::status::{CANCELED, of_end};
use super::tags::CallTags;
use crate::metrics::BuiltinMetric;
use crate::test::LogLevel;
use crate::user::series_index::TagSet;
use crate::user::vu::Vu;

/// Maximum bytes of received messages, as JSON, that the script has not consumed.
const WAITING_MAX: usize = 64 << 20;

/// A stream, shared by the script and the task of its call.
pub(super) struct GrpcStream {
    vu: Rc<Vu>,
    connection: Rc<GrpcConnection>,
    method: GrpcMethod,
    /// `/package.Service/Method`
    path: String,
    params: CallParams,
    /// Messages with their prefix, not yet sent.
    outgoing: RefCell<VecDeque<Arc<[u8]>>>,
    /// Whether the script has closed its side.
    is_finished: Cell<bool>,
    /// Events that the script has not consumed.
    events: RefCell<VecDeque<StreamEvent>>,
    /// Bytes of their messages.
    waiting: Cell<usize>,
    /// Bytes of outgoing messages.
    unsent: Cell<usize>,
    /// Both.
    held: RefCell<HeapCharge>,
    sender: Cell<Option<Waker>>,
    listener: Cell<Option<Waker>>,
}

enum StreamEvent {
    /// A message as JSON.
    Message(String),
    Failed(GrpcStatus, String),
    /// The last event.
    Ended,
}

impl std::fmt::Debug for GrpcStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrpcStream").field("path", &self.path).finish_non_exhaustive()
    }
}

impl GrpcStream {
    /// Opens a stream of `method`; its task runs concurrently with the script.
    pub(super) fn open(
        ctx: &Ctx<'_>,
        vu: Rc<Vu>,
        connection: Rc<GrpcConnection>,
        method: GrpcMethod,
        params: CallParams,
    ) -> rquickjs::Result<Rc<Self>> {
        vu.room_for_task(ctx)?;
        let stream = Rc::new(Self {
            vu,
            connection,
            path: format!("/{}", method.path()),
            method,
            params,
            outgoing: RefCell::default(),
            is_finished: Cell::new(false),
            events: RefCell::default(),
            waiting: Cell::default(),
            unsent: Cell::default(),
            held: RefCell::new(HeapCharge::new(ctx, 0)?),
            sender: Cell::default(),
            listener: Cell::default(),
        });
        stream.record(BuiltinMetric::GrpcStreams);
        let held = Rc::clone(&stream);
        stream.vu.tasks.add(async move {
            held.run().await;
            Box::new(|_: &Ctx<'_>| Ok(())) as Completion
        });
        Ok(stream)
    }

    /// Changes the bytes that are held for the script. Returns whether they fit.
    fn hold(&self, waiting: usize, unsent: usize) -> bool {
        let fits = self.held.borrow_mut().resize(waiting.saturating_add(unsent));
        if fits {
            self.waiting.set(waiting);
            self.unsent.set(unsent);
        }
        fits
    }

    /// The native functions of a stream, for `client.js`.
    pub(super) fn shown<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let shown = Object::new(ctx.clone())?;
        let held = Rc::clone(self);
        let write = move |ctx: Ctx<'js>, json: String| {
            let message = encoded(&ctx, &held.method, &json)?;
            let message = message.map_err(|error| go_error(&ctx, &error.to_string()))?;
            let frame: Arc<[u8]> = grpc_frame(&message).into();
            if !held.hold(held.waiting.get(), held.unsent.get() + frame.len() + PAIR) {
                return Err(throw_out_of_memory(&ctx));
            }
            held.outgoing.borrow_mut().push_back(frame);
            held.sender.take().into_iter().for_each(Waker::wake);
            Ok::<_, rquickjs::Error>(())
        };
        shown.set("write", named("grpc.Stream", "write", write))?;
        let held = Rc::clone(self);
        let end = move || {
            held.is_finished.set(true);
            held.sender.take().into_iter().for_each(Waker::wake);
        };
        shown.set("end", named("grpc.Stream", "end", end))?;
        let held = Rc::clone(self);
        let warn = move |text: String| {
            let method = held.path.as_str();
            held.vu.test.log(LogLevel::Warning, &text, &[("streamMethod", method)]);
        };
        shown.set("warn", named("grpc.Stream", "warn", warn))?;
        let held = Rc::clone(self);
        let next = move |ctx: Ctx<'js>, callback: Function<'js>| held.next_later(&ctx, callback);
        shown.set("next", named("grpc.Stream", "next", next))?;
        Ok(shown)
    }

    /// Calls `callback` with the next event.
    fn next_later<'js>(self: &Rc<Self>, ctx: &Ctx<'js>, callback: Function<'js>) {
        let (held, callback) = (Rc::clone(self), Persistent::save(ctx, callback));
        self.vu.tasks.add(async move {
            let event = poll_fn(|cx| match held.events.borrow_mut().pop_front() {
                Some(event) => {
                    if let StreamEvent::Message(json) = &event {
                        held.hold(held.waiting.get() - json.len(), held.unsent.get());
                    }
                    Poll::Ready(event)
                }
                None => {
                    held.listener.set(Some(cx.waker().clone()));
                    Poll::Pending
                }
            });
            let event = event.await;
            Box::new(move |ctx: &Ctx<'_>| callback.restore(ctx)?.call::<_, ()>(event.shown(ctx)?))
                as Completion
        });
    }

    /// Makes the call; its results become events.
    async fn run(self: &Rc<Self>) {
        let client = &self.connection.client;
        let start = self.vu.now();
        let exchange = Exchange::unfinished(start);
        let mut flight = StreamFlight { stream: self, start, status: CANCELED, exchange };
        let mut reader = GrpcReader::of_stream(self.connection.max_receive, Rc::clone(self) as _);
        match client.prepare(&self.request()).await {
            Ok(prepared) => {
                let now = self.vu.now();
                let deadline = Deadline::within(now, self.timeout());
                let exchange = &mut flight.exchange;
                *exchange = Exchange::unfinished(now);
                let is_wrong = Rc::clone(&reader.is_wrong);
                let mut exchanging =
                    pin!(client.exchange(&prepared, now, deadline, &mut reader, exchange));
                poll_fn(|cx| match exchanging.as_mut().poll(cx) {
                    Poll::Pending if is_wrong.get() => Poll::Ready(()),
                    polled => polled,
                })
                .await;
            }
            Err(fault) => client.end(&mut flight.exchange, ExchangeEnd::Fault(fault)),
        }
        if matches!(flight.exchange.end, ExchangeEnd::Response(response) if response.status == 200)
        {
            reader.end();
        }
        let (headers, trailers) = reader.metadata();
        let (status, why) = reader.wrong.unwrap_or_else(|| {
            of_end(flight.exchange.end, &headers, &trailers, &self.connection.address)
        });
        flight.status = status;
        if status != GrpcStatus::OK {
            // The status and the invalid message may have arrived in one read.
            match ended(flight.exchange.end, status) {
                end if flight.exchange.end == ExchangeEnd::Unfinished => {
                    client.end(&mut flight.exchange, end);
                }
                end => flight.exchange.end = end,
            }
            self.emit(StreamEvent::Failed(status, why));
        }
        self.emit(StreamEvent::Ended);
    }

    fn request(&self) -> HttpRequest {
        let metadata = self.connection.metadata(&self.vu, &self.params.metadata);
        let url = format!("{}{}", self.connection.origin, self.path);
        let mut request = grpc_call(url, &metadata, self.timeout(), Vec::new());
        request.body = None;
        if self.params.timeout.is_zero() {
            request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("grpc-timeout"));
        }
        request
    }

    /// Unlimited by default.
    fn timeout(&self) -> Duration {
        if self.params.timeout.is_zero() { Duration::MAX } else { self.params.timeout }
    }

    fn emit(&self, event: StreamEvent) {
        self.events.borrow_mut().push_back(event);
        self.listener.take().into_iter().for_each(Waker::wake);
    }

    fn record(&self, metric: BuiltinMetric) {
        self.vu.record(metric, &self.tags(None), 1.0);
    }

    fn tags(&self, status: Option<GrpcStatus>) -> Rc<TagSet> {
        self.vu.series_index.tag_set(&CallTags {
            vu: &self.vu,
            connection: &self.connection,
            path: &self.path,
            own: &self.params.tags,
            status,
        })
    }
}

impl StreamMessages for GrpcStream {
    fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Arc<[u8]>>> {
        match self.outgoing.borrow_mut().pop_front() {
            Some(message) => {
                self.hold(self.waiting.get(), self.unsent.get() - message.len() - PAIR);
                self.record(BuiltinMetric::GrpcStreamsMsgsSent);
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
        self.record(BuiltinMetric::GrpcStreamsMsgsReceived);
        let json = self.method.decode(message)?;
        let waiting = self.waiting.get() + json.len();
        if waiting > WAITING_MAX || !self.hold(waiting, self.unsent.get()) {
            return Err(GrpcError::Unread(self.waiting.get()));
        }
        self.emit(StreamEvent::Message(json));
        Ok(())
    }
}

impl StreamEvent {
    /// The arguments of a listener: the name of the event, and its details.
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

/// The call of a stream in flight: recorded when dropped.
struct StreamFlight<'a> {
    stream: &'a GrpcStream,
    start: Nanos,
    status: GrpcStatus,
    exchange: Exchange,
}

impl Drop for StreamFlight<'_> {
    fn drop(&mut self) {
        let Self { stream, start, status, exchange } = self;
        let GrpcStream { vu, connection, .. } = stream;
        if exchange.end == ExchangeEnd::Unfinished {
            connection.client.end(exchange, ExchangeEnd::Unfinished);
        }
        let took = exchange.done.saturating_sub(exchange.write);
        vu.record(BuiltinMetric::GrpcReqDuration, &stream.tags(Some(*status)), took as f64);
        vu.count_traffic(exchange.bytes_out, exchange.bytes_in);
        vu.pending.exchange(*start, exchange.clone());
    }
}
