//! One request and its response on an open connection.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, Fault, Phase};

use crate::conn::{Conn, Scratch};
use crate::deadline::Deadline;
use crate::fault;
use crate::http1::request::Rendered;
use crate::http1::{End, Feed, Response, Visitor};

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection ended before any byte of the request went out: on another connection, any
    /// request may be sent again.
    BeforeRequest(Fault),
    /// The connection ended before any byte of the answer: when it was a reused one, an idempotent
    /// request may be sent again on another. Otherwise it is this fault.
    BeforeAnswer(Fault),
    /// Anything later.
    Fault(Fault),
}

impl Failure {
    pub(crate) fn fault(self) -> Fault {
        match self {
            Self::BeforeRequest(fault) | Self::BeforeAnswer(fault) | Self::Fault(fault) => fault,
        }
    }
}

/// What a transaction needs beside the connection.
pub(crate) struct Terms<'a, C> {
    pub(crate) clock: &'a C,
    pub(crate) scratch: &'a Scratch,
    pub(crate) deadline: &'a Deadline,
    /// When the connection was there and the request was about to be written.
    pub(crate) write: Nanos,
    /// When the whole request must have ended.
    pub(crate) ends: Nanos,
    /// How long the first byte of the answer may take.
    pub(crate) first_byte: Option<Nanos>,
}

/// Writes the request and reads the response, noting instants and bytes in `exchange`.
pub(crate) async fn transact<C: Clock, V: Visitor>(
    conn: &mut Conn,
    request: &Rendered,
    exchange: &mut Exchange,
    terms: &Terms<'_, C>,
    visitor: &mut V,
) -> Result<Response, Failure> {
    conn.parser.start(request.is_head);
    exchange.written = false;
    exchange.first_byte = None;
    if let Some(first_byte) = terms.first_byte {
        terms.deadline.set(terms.write.saturating_add(first_byte).min(terms.ends));
    }
    let mut transaction = Transaction {
        conn,
        request,
        exchange,
        terms,
        visitor,
        sent: 0,
        flushed: false,
        broken: None,
    };
    poll_fn(|cx| transaction.poll(cx)).await
}

struct Transaction<'a, C, V> {
    conn: &'a mut Conn,
    request: &'a Rendered,
    exchange: &'a mut Exchange,
    terms: &'a Terms<'a, C>,
    visitor: &'a mut V,
    /// Bytes of the request written so far.
    sent: usize,
    flushed: bool,
    /// The fault that ended writing; an answer may still be there to read.
    broken: Option<Fault>,
}

impl<C: Clock, V: Visitor> Transaction<'_, C, V> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response, Failure>> {
        if self.terms.deadline.has_passed() {
            return Poll::Ready(Err(self.timed_out()));
        }
        self.terms.deadline.wakes(cx);
        if !self.flushed && self.broken.is_none() {
            self.write(cx);
        }
        loop {
            let read = self.read(cx);
            match read {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) => {}
                // After a broken write the system still tells of the end, and of an answer that
                // came before it; a TLS session that broke by itself has nothing to tell.
                Poll::Pending => {
                    return match self.broken {
                        Some(fault @ Fault::Tls(_)) => Poll::Ready(Err(self.ended(fault))),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }

    #[inline]
    fn write(&mut self, cx: &mut Context<'_>) {
        let (first, rest) = (&self.request.first[..], self.request.rest.as_deref());
        let length = self.request.len();
        while self.sent < length {
            let written = match (first.get(self.sent..), rest) {
                (Some(head), None) => self.conn.stream.poll_write(cx, head),
                (Some(head), Some(rest)) if !head.is_empty() => {
                    let pieces = [IoSlice::new(head), IoSlice::new(rest)];
                    self.conn.stream.poll_write_vectored(cx, &pieces)
                }
                (_, rest) => {
                    let left = &rest.unwrap_or_default()[self.sent - first.len()..];
                    self.conn.stream.poll_write(cx, left)
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
        match self.conn.stream.poll_flush(cx) {
            Poll::Ready(Ok(())) => {
                self.flushed = true;
                self.exchange.written = true;
            }
            Poll::Ready(Err(error)) => self.broken = Some(fault::of_write(&error)),
            Poll::Pending => {}
        }
    }

    /// Reads once: the end, or `None` when the response goes on.
    #[inline]
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Response, Failure>>> {
        let Self { conn, visitor, exchange, .. } = self;
        let (parser, stream) = (&mut conn.parser, &mut conn.stream);
        let read = self.terms.scratch.read(stream, cx, |bytes| {
            exchange.bytes_in += bytes.len() as u64;
            let fed = (!bytes.is_empty()).then(|| parser.feed_with(bytes, *visitor));
            (bytes.len(), fed)
        });
        let (_, fed) = match std::task::ready!(read) {
            Ok(read) => read,
            Err(error) => return Poll::Ready(Some(self.read_error(&error))),
        };
        let Some(fed) = fed else { return Poll::Ready(Some(self.end_of_stream())) };
        let now = self.terms.clock.now();
        if self.exchange.first_byte.is_none() {
            self.exchange.first_byte = Some(now);
            if self.terms.first_byte.is_some() {
                self.terms.deadline.set(self.terms.ends);
            }
        }
        self.exchange.done = now;
        Poll::Ready(match fed {
            Ok(Feed::More) => None,
            Ok(Feed::Done(response)) => Some(Ok(response)),
            Err(malformed) => Some(Err(Failure::Fault(fault::of_malformed(malformed)))),
        })
    }

    fn end_of_stream(&mut self) -> Result<Response, Failure> {
        self.exchange.done = self.terms.clock.now();
        match self.conn.parser.eof() {
            End::Complete(response) => Ok(response),
            End::Nothing | End::Cut => Err(self.ended(self.broken.unwrap_or(Fault::ClosedEarly))),
        }
    }

    fn read_error(&mut self, error: &io::Error) -> Result<Response, Failure> {
        Err(self.ended(match (fault::of_read(error, self.phase()), self.broken) {
            // What the peer said last is why it did not want to read on.
            (said @ Fault::Tls(_), _) | (said, None) => said,
            (_, Some(broken)) => broken,
        }))
    }

    fn ended(&mut self, fault: Fault) -> Failure {
        self.exchange.done = self.terms.clock.now();
        match self.phase() {
            Phase::Body => Failure::Fault(fault),
            _ if self.sent == 0 && self.conn.stream.is_plain() => Failure::BeforeRequest(fault),
            _ => Failure::BeforeAnswer(fault),
        }
    }

    fn phase(&self) -> Phase {
        if self.exchange.first_byte.is_some() { Phase::Body } else { Phase::FirstByte }
    }

    fn timed_out(&mut self) -> Failure {
        self.exchange.done = self.terms.clock.now();
        // A request that waited too long is the one to ask the system about.
        self.exchange.tcp = self.conn.sample_now(self.exchange.done);
        Failure::Fault(Fault::Timeout(self.phase()))
    }
}
