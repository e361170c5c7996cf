//! What TCP says of a connection, asked about once a second.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::TcpSample;

use crate::net::sockopt;
use crate::net::stream::Stream;

/// How often the kernel is asked about a connection.
const SAMPLE_EVERY: Nanos = SECOND;

/// A connect that took this long has probably lost a segment, so the kernel is asked at once.
const SLOW_CONNECT: Nanos = SECOND / 5;

/// Asks the kernel about one connection.
#[derive(Debug)]
pub(super) struct TcpSampler {
    next: Nanos,
    retransmits: u32,
}

impl TcpSampler {
    /// The sampler of a connection that was opened at `now`, which took `connect`.
    pub(super) const fn new(now: Nanos, connect: Nanos) -> Self {
        let next = if connect > SLOW_CONNECT { 0 } else { now + SAMPLE_EVERY };
        Self { next, retransmits: 0 }
    }

    /// What TCP says now, whenever it was asked last.
    pub(super) fn sample_now(&mut self, now: Nanos, stream: &Stream) -> Option<TcpSample> {
        self.next = 0;
        self.sample(now, stream)
    }

    /// What TCP says, about once a second.
    #[inline]
    pub(super) fn sample(&mut self, now: Nanos, stream: &Stream) -> Option<TcpSample> {
        if now < self.next {
            return None;
        }
        self.next = now + SAMPLE_EVERY;
        let info = sockopt::tcp_info(stream.tcp()?)?;
        let retransmits = info.retransmits.saturating_sub(self.retransmits);
        self.retransmits = info.retransmits;
        Some(TcpSample { rtt: info.rtt, retransmits })
    }
}
