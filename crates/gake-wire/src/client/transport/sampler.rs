//! Samples `TCP_INFO` of a connection about once a second.

use std::os::fd::BorrowedFd;

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::TcpSample;

use crate::net::sockopt;
use crate::net::stream::Stream;

/// Interval of samples.
const SAMPLE_EVERY: Nanos = SECOND;

/// A slower connect has probably lost a segment, so the first sample is taken immediately.
const SLOW_CONNECT: Nanos = SECOND / 5;

#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpSampler {
    next: Nanos,
    retransmits: u32,
}

impl TcpSampler {
    /// The sampler of a connection opened at `now` after `connect`.
    pub(super) const fn new(now: Nanos, connect: Nanos) -> Self {
        let next = if connect > SLOW_CONNECT { 0 } else { now + SAMPLE_EVERY };
        Self { next, retransmits: 0 }
    }

    pub(super) fn sample_now(&mut self, now: Nanos, stream: &Stream) -> Option<TcpSample> {
        self.next = 0;
        self.sample(now, stream)
    }

    /// Samples if the interval has passed.
    #[inline]
    pub(super) fn sample(&mut self, now: Nanos, stream: &Stream) -> Option<TcpSample> {
        self.sample_socket(now, || stream.tcp())
    }

    /// As [`sample`](Self::sample).
    #[inline]
    pub(crate) fn sample_socket<'a>(
        &mut self,
        now: Nanos,
        socket: impl FnOnce() -> Option<BorrowedFd<'a>>,
    ) -> Option<TcpSample> {
        if now < self.next {
            return None;
        }
        self.next = now + SAMPLE_EVERY;
        let info = sockopt::tcp_info(socket()?)?;
        let retransmits = info.retransmits.saturating_sub(self.retransmits);
        self.retransmits = info.retransmits;
        Some(TcpSample { rtt: info.rtt, retransmits })
    }
}
