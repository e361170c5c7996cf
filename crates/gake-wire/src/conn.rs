//! One connection of the load.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::task::{Context, Poll};

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

/// A connection left idle for less than this is used without another look at it.
pub(crate) const FRESH: Nanos = 1_000_000;

/// The buffer that all reads of a worker go through.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: RefCell<Box<[MaybeUninit<u8>]>>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { bytes: RefCell::new(vec![MaybeUninit::uninit(); SCRATCH].into_boxed_slice()) }
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
        let mut buffer = ReadBuf::uninit(&mut bytes);
        stream.poll_read(cx, &mut buffer).map_ok(|()| take(buffer.filled()))
    }
}

/// A connection and its parser.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: Stream,
    pub(crate) parser: ResponseParser,
    pub(crate) origin: u32,
    /// When it was last used.
    pub(crate) idle_since: Nanos,
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
            idle_since: now,
            next_sample: if connect > SLOW_CONNECT { 0 } else { now + SAMPLE_EVERY },
            retransmits: 0,
            _open: open,
        }
    }

    /// Whether a connection that lay idle is of no more use: it has ended, or the peer has sent
    /// what nobody asked for. No system call unless something has come.
    pub(crate) fn is_stale(&mut self, cx: &mut Context<'_>, scratch: &Scratch) -> bool {
        scratch.read(&mut self.stream, cx, |_| ()).is_ready()
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
