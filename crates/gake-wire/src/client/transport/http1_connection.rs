//! The socket and the parser of an HTTP/1.1 connection.

use std::cell::RefCell;
use std::io;
use std::net::TcpStream;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gake_codec::http1::{KnownHeads, ResponseLimits, ResponseParser};
use gake_core::clock::Nanos;
use gake_core::record::TcpSample;

use super::interface::IdleState;
use super::sampler::TcpSampler;
use crate::client::meter::OpenGuard;
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;

#[derive(Debug)]
pub(super) struct Http1Connection {
    pub(super) stream: Stream,
    pub(super) parser: ResponseParser,
    /// Shared by the connections of the origin.
    pub(super) known: Rc<RefCell<KnownHeads>>,
    sampler: TcpSampler,
    /// Bytes of the next request that are already written and counted: early data, or by a fast
    /// lane.
    pub(super) early: usize,
    /// Whether a fast lane has begun the next exchange, and perhaps read a part of its response.
    pub(super) is_begun: bool,
    /// The last read of a fast lane, if it was left to the next exchange.
    pub(super) unread: Option<Box<UnreadResult>>,
    pub(super) open: OpenGuard,
}

/// What a read returned: bytes, none at the end of the stream, or an error.
pub(crate) type UnreadResult = io::Result<Vec<u8>>;

/// What a fast lane needs of a connection.
#[derive(Debug)]
pub(crate) struct LentConnection {
    pub(crate) socket: TcpStream,
    pub(crate) parser: ResponseParser,
    pub(crate) known: Rc<RefCell<KnownHeads>>,
    pub(crate) sampler: TcpSampler,
    /// The number of the connection in its worker.
    pub(crate) number: u32,
    /// A read that the lane did not understand.
    pub(crate) unread: Option<Box<UnreadResult>>,
}

impl Http1Connection {
    /// A connection opened at `now` after `connect`.
    pub(super) fn new(
        stream: Stream,
        known: Rc<RefCell<KnownHeads>>,
        limits: ResponseLimits,
        open: OpenGuard,
        (now, connect): (Nanos, Nanos),
    ) -> Self {
        let (parser, sampler) =
            (ResponseParser::new(limits).lenient(), TcpSampler::new(now, connect));
        let (early, is_begun, unread) = (0, false, None);
        Self { stream, parser, known, sampler, early, is_begun, unread, open }
    }

    /// Lends an idle connection; `None` unless it is plain TCP. A new parser takes the place of its
    /// own.
    pub(super) fn lend(&mut self) -> Option<LentConnection> {
        let socket = self.stream.lend()?;
        let parser = std::mem::take(&mut self.parser);
        let (known, sampler, number) = (Rc::clone(&self.known), self.sampler, self.open.number());
        Some(LentConnection { socket, parser, known, sampler, number, unread: None })
    }

    /// Takes it back; `sent`: the bytes written of the exchange in flight, which the next
    /// transaction continues.
    pub(super) fn take_back(&mut self, lent: LentConnection, sent: Option<usize>) {
        let LentConnection { socket, parser, sampler, unread, .. } = lent;
        self.stream.take_back(socket);
        (self.parser, self.sampler, self.unread) = (parser, sampler, unread);
        (self.early, self.is_begun) = (sent.unwrap_or(0), sent.is_some());
    }

    /// The state of the connection after an idle time.
    pub(super) fn idle_state(&mut self, scratch: &Scratch) -> IdleState {
        // The next transaction registers its waker.
        let mut cx = Context::from_waker(Waker::noop());
        let read = match self.stream.try_read(&mut [0]) {
            // Any readable byte is unsolicited.
            Some(read) => read,
            None => match scratch.read(&mut self.stream, &mut cx, <[u8]>::len) {
                Poll::Ready(read) => read,
                Poll::Pending => return IdleState::Usable,
            },
        };
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => IdleState::Usable,
            Ok(0) | Err(_) => IdleState::Ended,
            Ok(_) => IdleState::Unsolicited,
        }
    }

    pub(super) fn sample_now(&mut self, now: Nanos) -> Option<TcpSample> {
        self.sampler.sample_now(now, &self.stream)
    }

    #[inline]
    pub(super) fn sample(&mut self, now: Nanos) -> Option<TcpSample> {
        self.sampler.sample(now, &self.stream)
    }
}
