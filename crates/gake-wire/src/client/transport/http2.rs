//! An HTTP/2 connection: concurrent exchanges.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use gake_codec::http1::{ResponseHead, Version, Visitor};
use gake_codec::http2::{
    ClientConnection, ConnectionLimits, HeaderFields, StreamEnd, StreamEnding,
};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{ErrorCode, Exchange, Fault, Phase, ResponseSummary};

use super::http2_link::{Http2Link, ShownEvents};
use super::http2_task::{Http2Task, TaskStep};
use super::interface::{Timing, Transport, TransportError};
use super::sampler::TcpSampler;
use crate::client::grpc;
use crate::client::meter::OpenGuard;
use crate::client::request::PreparedRequest;
use crate::client::visitor::ExchangeVisitor;
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;
use crate::tls::facts::ConnectionFacts;

/// The fault of a request prepared by another network, without HTTP/2.
const UNPREPARED: Fault = Fault::Malformed("request");

/// The task of the connection ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Http2 {
    link: Rc<Http2Link>,
    pub(super) facts: ConnectionFacts,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Http2Options {
    pub(crate) limits: ConnectionLimits,
    pub(crate) facts: ConnectionFacts,
    /// Whether it is for one exchange only.
    pub(crate) is_single_use: bool,
    /// When it was opened, and how long that took.
    pub(crate) at: Nanos,
    pub(crate) took: Nanos,
}

impl Http2 {
    /// A connection over `stream`, with a task on the current local runtime.
    pub(crate) fn new<C: Clock + 'static>(
        stream: Stream,
        options: &Http2Options,
        scratch: Rc<Scratch>,
        clock: C,
        open: OpenGuard,
    ) -> Self {
        let codec = ClientConnection::new(options.limits);
        let link = Http2Link::new(codec, stream.is_plain(), options.is_single_use, open);
        let sampler = TcpSampler::new(options.at, options.took);
        let (link_of_task, step) = (Rc::clone(&link), TaskStep::default());
        let task =
            Http2Task { stream, link: link_of_task, scratch, sampler, clock, broken: None, step };
        tokio::task::spawn_local(task.run());
        Self { link, facts: options.facts }
    }

    pub(crate) fn retire(&self) {
        self.link.retire();
    }

    /// Waits for the settings of the server.
    pub(crate) async fn greeting(&self) -> Result<(), Fault> {
        poll_fn(|cx| self.link.greeting(cx).map_or(Poll::Pending, Poll::Ready)).await
    }

    pub(crate) async fn until_ended(&self) {
        poll_fn(|cx| if self.link.has_ended(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.link.abandon();
    }
}

impl Transport for Http2 {
    #[inline]
    fn capacity(&self) -> usize {
        self.link.capacity()
    }

    fn is_ending(&self) -> bool {
        self.link.is_ending()
    }

    fn watch_capacity(&self, watcher: impl Fn() + 'static) {
        self.link.capacity_watch.watch(Box::new(watcher));
    }
}

impl Http2 {
    pub(crate) async fn exchange<C: Clock, V: ExchangeVisitor>(
        &self,
        request: &PreparedRequest,
        exchange: &mut Exchange,
        timing: &Timing<'_, C>,
        visitor: &mut V,
    ) -> Result<ResponseSummary, TransportError> {
        let Some(template) = &request.http2 else { return Err(TransportError::Final(UNPREPARED)) };
        exchange.written = false;
        exchange.first_byte = None;
        exchange.connection = self.link.number();
        let first_byte = timing.deadline.first_byte;
        let (is_sending, has_first_byte) = (visitor.is_sending(), first_byte.is_some());
        let started = match is_sending {
            true => self.link.start_open(template, has_first_byte),
            false => self.link.start(template, visitor.may_want(), has_first_byte),
        };
        let Some((lane, slot)) = started else {
            // The capacity was lost after the slot was taken.
            let fault = self.link.broken().unwrap_or(Fault::Goaway(ErrorCode::NoError));
            return Err(TransportError::Unhandled(fault));
        };
        if let Some(first_byte) = first_byte {
            timing.alarm.set(timing.write.saturating_add(first_byte).min(timing.deadline.end));
        }
        let link = &*self.link;
        let is_grpc = template.is_grpc;
        let mut call =
            StreamCall { link, lane, slot, exchange, is_grpc, is_sending, is_over: false };
        let ended = poll_fn(|cx| call.poll(cx, timing, visitor)).await;
        match ended {
            // The body from the visitor cannot be replayed.
            Err(error) if is_sending => Err(TransportError::Final(error.fault())),
            ended => ended,
        }
    }
}

fn headers(fields: &HeaderFields) -> Vec<httparse::Header<'_>> {
    // A name that is not a token has ended the stream.
    let name = |name| std::str::from_utf8(name).unwrap_or_default();
    let fields = fields.iter();
    fields.map(|(key, value)| httparse::Header { name: name(key), value }).collect()
}

struct StreamCall<'a> {
    link: &'a Http2Link,
    lane: u32,
    slot: u32,
    exchange: &'a mut Exchange,
    /// Whether the response needs a gRPC status.
    is_grpc: bool,
    /// Whether the visitor still supplies the body.
    is_sending: bool,
    is_over: bool,
}

impl StreamCall<'_> {
    #[inline]
    fn poll<C: Clock, V: ExchangeVisitor>(
        &mut self,
        cx: &mut Context<'_>,
        timing: &Timing<'_, C>,
        visitor: &mut V,
    ) -> Poll<Result<ResponseSummary, TransportError>> {
        let (first_byte, end, shown) = self.link.with_lane(self.lane, |lane| {
            if lane.end.is_none() {
                lane.register_waker(cx);
            }
            (lane.first_byte, lane.end, lane.shown.as_deref_mut().map(std::mem::take))
        });
        if let (Some(at), None) = (first_byte, self.exchange.first_byte) {
            self.exchange.first_byte = Some(at);
            if timing.deadline.first_byte.is_some() {
                timing.alarm.set(timing.deadline.end);
            }
        }
        if let Some(shown) = shown {
            self.show(&shown, visitor);
        }
        if let Some((end, at)) = end {
            self.exchange.done = at;
            self.is_over = true;
            self.link.give_back(self.lane);
            return Poll::Ready(self.ended(end, at >= timing.deadline.end));
        }
        if self.is_sending {
            self.send(cx, visitor);
        }
        if timing.alarm.has_passed(cx) {
            self.exchange.done = timing.clock.now();
            let phase = self.phase();
            self.give_up();
            return Poll::Ready(Err(TransportError::Final(Fault::Timeout(phase))));
        }
        Poll::Pending
    }

    /// Sends the bytes that the visitor has ready.
    #[cold]
    fn send<V: ExchangeVisitor>(&mut self, cx: &mut Context<'_>, visitor: &mut V) {
        loop {
            match visitor.poll_body(cx) {
                Poll::Ready(Some(bytes)) => self.link.codec().borrow_mut().send(self.slot, bytes),
                Poll::Ready(None) => {
                    self.link.codec().borrow_mut().finish(self.slot);
                    self.is_sending = false;
                    return self.link.wake_task();
                }
                Poll::Pending => return self.link.wake_task(),
            }
        }
    }

    #[cold]
    fn show<V: Visitor>(&self, shown: &ShownEvents, visitor: &mut V) {
        if let Some((status, fields)) = &shown.head {
            let headers = headers(fields);
            let (status, version) = (*status, Version::Http11);
            // HTTP/2 has no reason phrase.
            visitor.head(&ResponseHead { status, version, reason: "", headers: &headers });
        }
        if !shown.body.is_empty() {
            visitor.body(&shown.body);
            self.link.has_read(shown.body.len());
        }
        if !shown.trailers.is_empty() {
            visitor.trailers(&headers(&shown.trailers));
        }
    }

    /// The result of the exchange; `is_late`: its deadline has passed.
    fn ended(&mut self, end: StreamEnd, is_late: bool) -> Result<ResponseSummary, TransportError> {
        self.note(&end);
        let phase = self.phase();
        Err(match end.ending {
            StreamEnding::Response { status, body_bytes } => {
                let answer = ResponseSummary { status, body_bytes };
                return match self.is_grpc && status == 200 {
                    true => grpc::outcome(answer, end.grpc_status).map_err(TransportError::Final),
                    false => Ok(answer),
                };
            }
            StreamEnding::Reset(code) => TransportError::Final(match self.is_grpc {
                true => grpc::reset(code, is_late, phase),
                false => Fault::StreamReset(code),
            }),
            StreamEnding::Refused => {
                TransportError::Unhandled(Fault::StreamReset(ErrorCode::RefusedStream))
            }
            // The server demands less load: no retry.
            StreamEnding::GoneAway(code @ ErrorCode::EnhanceYourCalm) => {
                TransportError::Final(Fault::Goaway(code))
            }
            StreamEnding::GoneAway(code) => TransportError::Unhandled(Fault::Goaway(code)),
            StreamEnding::Malformed(error) => TransportError::Final(Fault::Malformed(error.name())),
            StreamEnding::Cancelled => {
                let fault = match self.link.broken() {
                    Some(Fault::ClosedEarly(_)) | None => Fault::ClosedEarly(phase),
                    Some(fault) => fault,
                };
                match phase {
                    Phase::Body => TransportError::Final(fault),
                    _ if end.bytes_out == 0 && self.link.is_plain => {
                        TransportError::BeforeRequest(fault)
                    }
                    _ => TransportError::BeforeResponse(fault),
                }
            }
        })
    }

    fn phase(&self) -> Phase {
        if self.exchange.first_byte.is_some() { Phase::Body } else { Phase::FirstByte }
    }

    fn give_up(&mut self) {
        self.is_over = true;
        let end = self.link.cancel(self.lane, self.slot);
        self.note(&end);
    }

    fn note(&mut self, end: &StreamEnd) {
        let exchange = &mut *self.exchange;
        exchange.bytes_in += end.bytes_in;
        exchange.bytes_out += end.bytes_out;
        exchange.written = end.is_written;
        exchange.tcp = self.link.sample.take().or(exchange.tcp);
    }
}

impl Drop for StreamCall<'_> {
    /// Cancels the stream unless it has ended.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (first_byte, end) = self.link.with_lane(self.lane, |lane| (lane.first_byte, lane.end));
        self.exchange.first_byte = self.exchange.first_byte.or(first_byte);
        match end {
            Some((end, _)) => {
                self.link.give_back(self.lane);
                self.note(&end);
            }
            None => self.give_up(),
        }
    }
}
