//! The socket and the parser of an HTTP/1.1 connection.

use std::cell::RefCell;
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
    /// Bytes of the first request sent as early data, already counted.
    pub(super) early: usize,
    pub(super) open: OpenGuard,
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
        Self { stream, parser, known, sampler, early: 0, open }
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
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => IdleState::Usable,
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
