//! The socket and the parser of an HTTP/1.1 connection.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::TcpSample;

use super::interface::IdleState;
use crate::http1::{KnownHeads, ResponseLimits, ResponseParser};
use crate::meter::OpenGuard;
use crate::scratch::Scratch;
use crate::sockopt;
use crate::stream::Stream;

/// How often the kernel is asked about a connection.
const SAMPLE_EVERY: Nanos = SECOND;

/// A connect that took this long has probably lost a segment, so the kernel is asked at once.
const SLOW_CONNECT: Nanos = SECOND / 5;

/// What an exchange changes.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) stream: Stream,
    pub(super) parser: ResponseParser,
    /// What the connections of the origin share.
    pub(super) known: Rc<RefCell<KnownHeads>>,
    next_sample: Nanos,
    retransmits: u32,
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
        let next_sample = if connect > SLOW_CONNECT { 0 } else { now + SAMPLE_EVERY };
        let parser = ResponseParser::new(limits);
        Self { stream, parser, known, next_sample, retransmits: 0, open }
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
        self.next_sample = 0;
        self.sample(now)
    }

    /// What TCP says, about once a second.
    #[inline]
    pub(super) fn sample(&mut self, now: Nanos) -> Option<TcpSample> {
        if now < self.next_sample {
            return None;
        }
        self.next_sample = now + SAMPLE_EVERY;
        let info = sockopt::tcp_info(self.stream.tcp()?)?;
        let retransmits = info.retransmits.saturating_sub(self.retransmits);
        self.retransmits = info.retransmits;
        Some(TcpSample { rtt: info.rtt, retransmits })
    }
}
