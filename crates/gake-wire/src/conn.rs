//! One connection of the load.

use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::TcpSample;
use tokio::io::ReadBuf;

use crate::http1::{Limits, ResponseParser};
use crate::meter::OpenGuard;
use crate::sockopt;
use crate::stream::Stream;

/// Bytes read at once. One buffer serves all connections of a worker: what is read is parsed at
/// once, and only an incomplete head is kept.
const SCRATCH: usize = 64 * 1024;

/// How often the kernel is asked about a connection.
const SAMPLE_EVERY: Nanos = SECOND;

/// A connect that took this long has probably lost a segment, so the kernel is asked at once.
const SLOW_CONNECT: Nanos = SECOND / 5;

/// The buffer that all reads of a worker go through.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: RefCell<Box<[u8]>>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { bytes: RefCell::new(vec![0; SCRATCH].into_boxed_slice()) }
    }

    /// Reads once, and hands what came to `take`; an empty slice is the end.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<std::io::Result<T>> {
        let mut bytes = self.bytes.borrow_mut();
        // Written once at the start, so that TLS need not clear it before every read.
        let mut buffer = ReadBuf::new(&mut bytes);
        stream.poll_read(cx, &mut buffer).map_ok(|()| take(buffer.filled()))
    }
}

/// What became of a connection that lay idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing: it can be used.
    Quiet,
    /// The peer has ended it.
    Ended,
    /// The peer has sent what nobody asked for.
    Unsolicited,
}

/// A connection and its parser.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: Stream,
    pub(crate) parser: ResponseParser,
    pub(crate) origin: u32,
    /// When its last answer ended.
    pub(crate) done: Nanos,
    next_sample: Nanos,
    retransmits: u32,
    _open: OpenGuard,
}

impl Conn {
    pub(crate) fn new(
        stream: Stream,
        origin: u32,
        limits: Limits,
        open: OpenGuard,
        now: Nanos,
        connect: Nanos,
    ) -> Self {
        Self {
            stream,
            parser: ResponseParser::new(limits),
            origin,
            done: now,
            next_sample: if connect > SLOW_CONNECT { 0 } else { now + SAMPLE_EVERY },
            retransmits: 0,
            _open: open,
        }
    }

    /// What became of the connection while no request was under way. Costs no system call unless
    /// the runtime has heard of something.
    #[inline]
    pub(crate) fn look(&mut self, scratch: &Scratch) -> Rest {
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
                    Poll::Pending => return Rest::Quiet,
                }
            }
        };
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Rest::Quiet,
            Ok(0) | Err(_) => Rest::Ended,
            Ok(_) => Rest::Unsolicited,
        }
    }

    /// What TCP says now, whenever it was asked last.
    pub(crate) fn sample_now(&mut self, now: Nanos) -> Option<TcpSample> {
        self.next_sample = 0;
        self.sample(now)
    }

    /// What TCP says, about once a second.
    #[inline]
    pub(crate) fn sample(&mut self, now: Nanos) -> Option<TcpSample> {
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
