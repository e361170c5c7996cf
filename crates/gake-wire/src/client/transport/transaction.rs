//! One request and its response on an open HTTP/1.1 connection.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use gake_codec::http1::request::RenderedRequest;
use gake_codec::http1::{Eof, KnownHeads, Malformed, ParseProgress, Response, ResponseParser};
use gake_core::clock::Clock;
use gake_core::record::{Exchange, Fault, Phase};

use super::http1_connection::Http1Connection;
use super::interface::{Timing, TransportError};
use crate::client::visitor::ExchangeVisitor;
use crate::net::fault;

pub(super) struct Transaction<'a, C, V> {
    request: &'a RenderedRequest,
    pub(super) exchange: &'a mut Exchange,
    timing: &'a Timing<'a, C>,
    visitor: &'a mut V,
    /// Bytes of the request written so far.
    sent: usize,
    is_flushed: bool,
    /// The fault that ended writing; a response may still be readable.
    broken: Option<Fault>,
}

impl<'a, C: Clock, V: ExchangeVisitor> Transaction<'a, C, V> {
    pub(super) fn new(
        conn: &mut Http1Connection,
        request: &'a RenderedRequest,
        exchange: &'a mut Exchange,
        timing: &'a Timing<'a, C>,
        visitor: &'a mut V,
    ) -> Self {
        if !std::mem::take(&mut conn.is_begun) {
            conn.parser.start(request.is_head);
            exchange.written = false;
            exchange.first_byte = None;
        }
        if let (Some(first_byte), None) = (timing.deadline.first_byte, exchange.first_byte) {
            timing.alarm.set(timing.write.saturating_add(first_byte).min(timing.deadline.end));
        }
        let sent = std::mem::take(&mut conn.early);
        Self { request, exchange, timing, visitor, sent, is_flushed: false, broken: None }
    }

    /// Writes and reads until the response is complete.
    pub(super) fn poll(
        &mut self,
        conn: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, TransportError>> {
        if self.timing.alarm.has_passed(cx) {
            return Poll::Ready(Err(self.timed_out(conn)));
        }
        if !self.is_flushed && self.broken.is_none() {
            self.write(conn, cx);
        }
        loop {
            let read = self.read(conn, cx);
            match read {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) => {}
                // After a failed write, a response and the end of the connection may still come, but
                // not from a failed TLS session.
                Poll::Pending => {
                    return match self.broken {
                        Some(fault @ Fault::Tls(_)) => Poll::Ready(Err(self.ended(conn, fault))),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }

    #[inline]
    fn write(&mut self, conn: &mut Http1Connection, cx: &mut Context<'_>) {
        let (first, rest) = (&self.request.first[..], self.request.rest.as_deref());
        let length = self.request.len();
        while self.sent < length {
            let written = match (first.get(self.sent..), rest) {
                (Some(head), None) => conn.stream.poll_write(cx, head),
                (Some(head), Some(rest)) if !head.is_empty() => {
                    let buffers = [IoSlice::new(head), IoSlice::new(rest)];
                    conn.stream.poll_write_vectored(cx, &buffers)
                }
                (_, rest) => {
                    let left = &rest.unwrap_or_default()[self.sent - first.len()..];
                    conn.stream.poll_write(cx, left)
                }
            };
            match written {
                Poll::Ready(Ok(0)) => {
                    self.broken = Some(Fault::Write);
                    return;
                }
                Poll::Ready(Ok(written)) => {
                    self.sent += written;
                    self.exchange.bytes_out += written as u64;
                }
                Poll::Ready(Err(error)) => {
                    self.broken = Some(fault::of_write(&error));
                    return;
                }
                Poll::Pending => return,
            }
        }
        match conn.stream.poll_flush(cx) {
            Poll::Ready(Ok(())) => {
                self.is_flushed = true;
                self.exchange.written = true;
                self.visitor.sent();
            }
            Poll::Ready(Err(error)) => self.broken = Some(fault::of_write(&error)),
            Poll::Pending => {}
        }
    }

    /// Reads once; `None` while the response is incomplete.
    #[inline]
    fn read(
        &mut self,
        conn: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Response, TransportError>>> {
        let Self { visitor, exchange, .. } = self;
        let Http1Connection { parser, stream, known, unread, .. } = conn;
        let is_head = self.request.is_head;
        let mut take = |bytes: &[u8]| {
            exchange.bytes_in += bytes.len() as u64;
            let mut feed = || feed(parser, bytes, *visitor, &mut known.borrow_mut(), is_head);
            (!bytes.is_empty()).then(&mut feed)
        };
        let read = match unread.take() {
            Some(read) => Poll::Ready((*read).map(|bytes| take(&bytes))),
            None => self.timing.scratch.read(stream, cx, take),
        };
        let fed = match std::task::ready!(read) {
            Ok(fed) => fed,
            Err(error) => return Poll::Ready(Some(self.read_error(conn, &error))),
        };
        let Some(fed) = fed else { return Poll::Ready(Some(self.end_of_stream(conn))) };
        let now = self.timing.clock.now();
        if self.exchange.first_byte.is_none() {
            self.exchange.first_byte = Some(now);
            if self.timing.deadline.first_byte.is_some() {
                self.timing.alarm.set(self.timing.deadline.end);
            }
        }
        self.exchange.done = now;
        Poll::Ready(match fed {
            Ok(ParseProgress::More) => None,
            Ok(ParseProgress::Done(response)) => Some(Ok(response)),
            Err(malformed) => Some(Err(TransportError::Final(fault::of_malformed(malformed)))),
        })
    }

    fn end_of_stream(&mut self, conn: &mut Http1Connection) -> Result<Response, TransportError> {
        self.exchange.done = self.timing.clock.now();
        match conn.parser.eof() {
            Eof::Complete(response) => Ok(response),
            Eof::Nothing | Eof::Cut => {
                Err(self.ended(conn, self.broken.unwrap_or(Fault::ClosedEarly(self.phase()))))
            }
        }
    }

    fn read_error(
        &mut self,
        conn: &Http1Connection,
        error: &io::Error,
    ) -> Result<Response, TransportError> {
        Err(self.ended(
            conn,
            match (fault::of_read(error, self.phase()), self.broken) {
                // A TLS alert explains why the peer stopped reading.
                (fault @ Fault::Tls(_), _) | (fault, None) => fault,
                (_, Some(broken)) => broken,
            },
        ))
    }

    fn ended(&mut self, conn: &Http1Connection, fault: Fault) -> TransportError {
        self.exchange.done = self.timing.clock.now();
        match self.phase() {
            Phase::Body => TransportError::Final(fault),
            _ if self.sent == 0 && conn.stream.is_plain() => TransportError::BeforeRequest(fault),
            _ => TransportError::BeforeResponse(fault),
        }
    }

    fn phase(&self) -> Phase {
        if self.exchange.first_byte.is_some() { Phase::Body } else { Phase::FirstByte }
    }

    fn timed_out(&mut self, conn: &mut Http1Connection) -> TransportError {
        self.exchange.done = self.timing.clock.now();
        // A time-out is worth a sample.
        self.exchange.tcp = conn.sample_now(self.exchange.done);
        TransportError::Final(Fault::Timeout(self.phase()))
    }
}

/// Feeds the parser until it needs more bytes, or the last response of the request is complete.
#[inline]
fn feed<V: ExchangeVisitor>(
    parser: &mut ResponseParser,
    mut bytes: &[u8],
    visitor: &mut V,
    known: &mut KnownHeads,
    is_head: bool,
) -> Result<ParseProgress, Malformed> {
    loop {
        let fed = parser.feed_known(bytes, visitor, known)?;
        let ParseProgress::Done(response) = fed else { return Ok(fed) };
        // After a response that closes the connection, no other comes.
        if !response.keep_alive || !visitor.has_another(response.status, response.body_bytes) {
            return Ok(fed);
        }
        parser.start(is_head);
        bytes = &bytes[response.consumed..];
        if bytes.is_empty() {
            return Ok(ParseProgress::More);
        }
    }
}
