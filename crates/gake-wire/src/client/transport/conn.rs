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

/// What an exchange changes.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) stream: Stream,
    pub(super) parser: ResponseParser,
    /// What the connections of the origin share.
    pub(super) known: Rc<RefCell<KnownHeads>>,
    sampler: TcpSampler,
    /// Bytes of the first request that went with the handshake, and are counted.
    pub(super) early: usize,
    pub(super) open: OpenGuard,
}

impl Conn {
    /// A connection that was opened at `now`, which took `connect`.
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

    /// What became of the connection while it lay idle.
    pub(super) fn idle_state(&mut self, scratch: &Scratch) -> IdleState {
        // The next transaction brings the waker.
        let mut cx = Context::from_waker(Waker::noop());
        let read = match &self.stream {
            // Whatever can be read without being asked for is wrong, and one byte shows it.
            Stream::Tcp(stream) => stream.try_read(&mut [0]),
            Stream::Unix(stream) => stream.try_read(&mut [0]),
            // Session tickets may come at any time.
            Stream::TcpTls(_) | Stream::UnixTls(_) => {
                match scratch.read(&mut self.stream, &mut cx, <[u8]>::len) {
                    Poll::Ready(read) => read,
                    Poll::Pending => return IdleState::Usable,
                }
            }
        };
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => IdleState::Usable,
            Ok(0) | Err(_) => IdleState::Ended,
            Ok(_) => IdleState::Unsolicited,
        }
    }

    /// What TCP says now, whenever it was asked last.
    pub(super) fn sample_now(&mut self, now: Nanos) -> Option<TcpSample> {
        self.sampler.sample_now(now, &self.stream)
    }

    /// What TCP says, about once a second.
    #[inline]
    pub(super) fn sample(&mut self, now: Nanos) -> Option<TcpSample> {
        self.sampler.sample(now, &self.stream)
    }
}
