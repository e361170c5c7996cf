//! An HTTP/3 connection: concurrent exchanges, each on a QUIC stream.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use gake_codec::http2::ConnectionLimits;
use gake_codec::http3::{ResponseReader, StreamRequest, StreamResponse, StreamViolation};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{ErrorCode, Exchange, Fault, Phase, ResponseSummary, TcpSample};
use quinn::{Connection, ConnectionError, ReadError, RecvStream, SendStream, VarInt, WriteError};

use super::http3_link::{Http3Link, OpenStream};
use super::http3_task;
use super::interface::{Timing, Transport, TransportError};
use crate::client::grpc;
use crate::client::meter::OpenGuard;
use crate::client::request::PreparedRequest;
use crate::client::visitor::ExchangeVisitor;
use crate::quic::{QuicSocket, of_lost};
use crate::tls::facts::ConnectionFacts;

/// The fault of a request without an HTTP/3 encoding: prepared by another network, or with a body from
/// the visitor.
const UNPREPARED: Fault = Fault::Malformed("request");

/// The connection is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Http3 {
    link: Rc<Http3Link>,
    facts: ConnectionFacts,
}

impl Http3 {
    /// An open connection, with a task on the current local runtime.
    pub(crate) fn new(
        (connection, socket): (Connection, Arc<QuicSocket>),
        limits: ConnectionLimits,
        facts: ConnectionFacts,
        is_single_use: bool,
        open: OpenGuard,
    ) -> Self {
        let link = Http3Link::new(connection, limits, is_single_use, open);
        tokio::task::spawn_local(http3_task::run(Rc::clone(&link), socket));
        Self { link, facts }
    }

    pub(super) fn retire(&self) {
        self.link.retire();
    }

    pub(super) fn facts(&self) -> &ConnectionFacts {
        &self.facts
    }

    /// Its first request was sent as early data on this stream.
    pub(crate) fn has_sent(&self, stream: (SendStream, RecvStream)) {
        self.link.early.set(Some(stream));
    }

    pub(crate) async fn until_ended(&self) {
        poll_fn(|cx| if self.link.has_ended(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Drop for Http3 {
    fn drop(&mut self) {
        self.link.abandon();
    }
}

impl Transport for Http3 {
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

impl Http3 {
    pub(crate) async fn exchange<C: Clock, V: ExchangeVisitor>(
        &self,
        request: &PreparedRequest,
        exchange: &mut Exchange,
        timing: &Timing<'_, C>,
        visitor: &mut V,
    ) -> Result<ResponseSummary, TransportError> {
        let Some(template) = request.http3.as_deref().filter(|_| !visitor.is_sending()) else {
            return Err(TransportError::Final(UNPREPARED));
        };
        exchange.written = false;
        exchange.first_byte = None;
        exchange.connection = self.link.number();
        if self.link.is_ending() {
            // The capacity was lost after the slot was taken.
            let fault = self.link.broken().unwrap_or(Fault::Goaway(ErrorCode::H3NoError));
            return Err(TransportError::Unhandled(fault));
        }
        self.link.uses();
        let call =
            StreamCall { link: &self.link, timing, progress: ExchangeProgress::new(exchange) };
        let ended = timing.alarm.before(pin!(call.run(template, visitor))).await;
        call.ended(ended, template.is_grpc)
    }
}

/// The progress of an exchange, written to `exchange` on drop.
struct ExchangeProgress<'a> {
    exchange: &'a mut Exchange,
    sent: Cell<u64>,
    received: Cell<u64>,
    is_written: Cell<bool>,
    waits: Cell<bool>,
    /// When writing began, if it waited for a stream.
    write: Cell<Option<Nanos>>,
    blocked: Cell<Nanos>,
    first_byte: Cell<Option<Nanos>>,
    done: Cell<Option<Nanos>>,
    path: Cell<Option<TcpSample>>,
}

impl<'a> ExchangeProgress<'a> {
    fn new(exchange: &'a mut Exchange) -> Self {
        Self {
            exchange,
            sent: Cell::new(0),
            received: Cell::new(0),
            is_written: Cell::new(false),
            waits: Cell::new(false),
            write: Cell::new(None),
            blocked: Cell::new(0),
            first_byte: Cell::new(None),
            done: Cell::new(None),
            path: Cell::new(None),
        }
    }

    fn phase(&self) -> Phase {
        match (self.waits.get(), self.first_byte.get()) {
            (true, _) => Phase::Connect,
            (false, Some(_)) => Phase::Body,
            (false, None) => Phase::FirstByte,
        }
    }
}

impl Drop for ExchangeProgress<'_> {
    fn drop(&mut self) {
        let exchange = &mut *self.exchange;
        if let Some(write) = self.write.get().filter(|_| exchange.bytes_out == 0) {
            exchange.write = write;
        }
        exchange.blocked += self.blocked.get();
        exchange.bytes_out += self.sent.get();
        exchange.bytes_in += self.received.get();
        exchange.written = self.is_written.get();
        exchange.first_byte = self.first_byte.get();
        exchange.done = self.done.get().unwrap_or(exchange.done);
        exchange.tcp = self.path.get().or(exchange.tcp);
    }
}

struct StreamCall<'a, C> {
    link: &'a Http3Link,
    timing: &'a Timing<'a, C>,
    progress: ExchangeProgress<'a>,
}

impl<C: Clock> StreamCall<'_, C> {
    /// Sends the request on a new stream and reads the response.
    async fn run<V: ExchangeVisitor>(
        &self,
        request: &StreamRequest,
        visitor: &mut V,
    ) -> Result<StreamResponse, TransportError> {
        let Self { link, timing, progress } = self;
        let early = link.early.take();
        let mut is_writing = early.is_none();
        let mut stream = match early {
            Some(halves) => {
                progress.is_written.set(true);
                link.opened(halves)
            }
            None => self.open().await?,
        };
        if let Some(first_byte) = timing.deadline.first_byte {
            let written = progress.write.get().unwrap_or(timing.write);
            timing.alarm.set(written.saturating_add(first_byte).min(timing.deadline.end));
        }
        let (number, slot) = (stream.number(), stream.slot);
        let mut reader =
            ResponseReader::new(link.limits.header_bytes, link.limits.interim, request.is_head);
        let OpenStream { send, recv, is_over, .. } = &mut stream;
        let mut writing = pin!(self.write(send, request));
        let response = loop {
            tokio::select! {
                biased;
                wrote = &mut writing, if is_writing => {
                    is_writing = false;
                    wrote?;
                }
                read = recv.read_chunk(usize::MAX, true) => match read {
                    Ok(Some(chunk)) => {
                        self.received(&chunk.bytes);
                        let text = &mut *link.text.borrow_mut();
                        let taken = reader.receive(&chunk.bytes, text, visitor);
                        taken.map_err(|violation| self.violated(violation))?;
                    }
                    Ok(None) => {
                        progress.done.set(Some(timing.clock.now()));
                        break reader.finish().map_err(|violation| self.violated(violation))?;
                    }
                    Err(error) => return Err(self.read_error(&error, number)),
                },
                () = link.rejects(number, slot), if progress.first_byte.get().is_none() => {
                    return Err(TransportError::Unhandled(Fault::Goaway(ErrorCode::H3NoError)));
                }
            }
        };
        *is_over = !is_writing;
        link.count_header_bytes(reader.header_bytes);
        Ok(response)
    }

    /// Opens a stream, and waits while the server's limit is reached. Before that, the server has seen
    /// nothing of the request.
    async fn open(&self) -> Result<OpenStream<'_>, TransportError> {
        let Self { link, timing, progress } = self;
        let (mut opening, mut has_waited) = (pin!(link.connection().open_bi()), false);
        let opened = poll_fn(|cx| {
            let polled = opening.as_mut().poll(cx);
            if polled.is_pending() && !std::mem::replace(&mut has_waited, true) {
                link.is_full();
                progress.waits.set(true);
            }
            polled
        });
        let opened = tokio::select! {
            biased;
            opened = opened => Some(opened),
            () = link.leaves() => None,
        };
        if has_waited {
            let now = timing.clock.now();
            progress.waits.set(false);
            progress.blocked.set(now.saturating_sub(timing.write));
            progress.write.set(Some(now));
        }
        match opened {
            Some(Ok(halves)) => Ok(link.opened(halves)),
            Some(Err(error)) => Err(TransportError::BeforeRequest(self.lost(&error).fault())),
            None => Err(TransportError::Unhandled(Fault::Goaway(ErrorCode::H3NoError))),
        }
    }

    async fn write(
        &self,
        send: &mut SendStream,
        request: &StreamRequest,
    ) -> Result<(), TransportError> {
        let mut buffers = request.buffers();
        let mut left: &mut [Bytes] = &mut buffers;
        while left.iter().any(|buffer| !buffer.is_empty()) {
            match send.write_chunks(left).await {
                Ok(written) => {
                    self.progress.sent.set(self.progress.sent.get() + written.bytes as u64);
                    left = &mut left[written.chunks..];
                }
                // The server does not want the rest; its response follows.
                Err(WriteError::Stopped(_)) => return Ok(()),
                Err(WriteError::ConnectionLost(error)) => return Err(self.lost(&error)),
                Err(WriteError::ClosedStream | WriteError::ZeroRttRejected) => {
                    return Err(TransportError::Final(Fault::Write));
                }
            }
        }
        self.progress.is_written.set(true);
        // Fails only for a stopped stream.
        let _ = send.finish();
        Ok(())
    }

    /// Records received bytes of the response.
    fn received(&self, bytes: &[u8]) {
        let Self { timing, progress, .. } = self;
        progress.received.set(progress.received.get() + bytes.len() as u64);
        if progress.first_byte.get().is_none() {
            progress.first_byte.set(Some(timing.clock.now()));
            if timing.deadline.first_byte.is_some() {
                timing.alarm.set(timing.deadline.end);
            }
        }
    }

    fn read_error(&self, error: &ReadError, number: u64) -> TransportError {
        match error {
            ReadError::Reset(code) => self.reset(*code),
            ReadError::ConnectionLost(error) => match self.link.is_rejected(number) {
                true => TransportError::Unhandled(Fault::Goaway(ErrorCode::H3NoError)),
                false => self.lost(error),
            },
            ReadError::ClosedStream
            | ReadError::IllegalOrderedRead
            | ReadError::ZeroRttRejected => TransportError::Final(Fault::Reset),
        }
    }

    fn reset(&self, code: VarInt) -> TransportError {
        self.link.stream_reset();
        let code = ErrorCode::from_http3(code.into_inner());
        match (code, self.progress.phase()) {
            (ErrorCode::H3RequestRejected, Phase::FirstByte) => {
                TransportError::Unhandled(Fault::StreamReset(code))
            }
            _ => TransportError::Final(Fault::StreamReset(code)),
        }
    }

    fn lost(&self, error: &ConnectionError) -> TransportError {
        let phase = self.progress.phase();
        let fault = match self.link.broken() {
            Some(Fault::ClosedEarly(_)) | None => of_lost(error, phase),
            Some(fault) => fault,
        };
        match phase {
            Phase::Body => TransportError::Final(fault),
            _ => TransportError::BeforeResponse(fault),
        }
    }

    fn violated(&self, violation: StreamViolation) -> TransportError {
        if violation.ends_connection() {
            self.link.fail(violation);
        }
        TransportError::Final(violation.fault())
    }

    /// The result of the exchange; `ended` is `None` after a time-out.
    fn ended(
        self,
        ended: Option<Result<StreamResponse, TransportError>>,
        is_grpc: bool,
    ) -> Result<ResponseSummary, TransportError> {
        let progress = &self.progress;
        let done = progress.done.get().unwrap_or_else(|| self.timing.clock.now());
        progress.done.set(Some(done));
        if progress.waits.get() {
            progress.blocked.set(done.saturating_sub(self.timing.write));
        }
        progress.path.set(self.link.sample(done, ended.is_none()));
        let timed_out = TransportError::Final(Fault::Timeout(progress.phase()));
        match ended.ok_or(timed_out)? {
            Ok(StreamResponse { status, body_bytes, grpc_status }) => {
                let answer = ResponseSummary { status, body_bytes };
                match is_grpc && status == 200 {
                    true => grpc::outcome(answer, grpc_status).map_err(TransportError::Final),
                    false => Ok(answer),
                }
            }
            // The server enforces the deadline, too.
            Err(TransportError::Final(Fault::StreamReset(ErrorCode::H3RequestCancelled)))
                if is_grpc && done >= self.timing.deadline.end =>
            {
                Err(timed_out)
            }
            Err(error) => Err(error),
        }
    }
}
