//! Deadlines of requests.

use std::time::Duration;

use gake_core::clock::{Nanos, nanos};
use gake_core::plan::Timeouts;

/// The deadline of a request, and the time-outs of its phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// When the request must have ended, redirects included; an instant of the client's clock.
    pub end: Nanos,
    /// Time limit for opening a connection, TLS included.
    pub connect: Nanos,
    /// Time limit from the write to the first byte of the response.
    pub first_byte: Option<Nanos>,
}

impl Deadline {
    /// The time-outs of a request that starts at `now`.
    #[must_use]
    #[inline]
    pub fn after(now: Nanos, timeouts: &Timeouts) -> Self {
        Self {
            end: now.saturating_add(nanos(timeouts.total)),
            connect: nanos(timeouts.connect),
            first_byte: timeouts.first_byte.map(nanos),
        }
    }

    /// `total` from `now` on, with the same limit for connecting.
    #[must_use]
    pub fn within(now: Nanos, total: Duration) -> Self {
        Self::after(now, &Timeouts { connect: total, first_byte: None, total })
    }

    /// The shortest of its limits, for a request that starts at `now`.
    #[inline]
    pub(crate) fn shortest(&self, now: Nanos) -> Nanos {
        let shortest = self.connect.min(self.end.saturating_sub(now));
        self.first_byte.map_or(shortest, |first_byte| first_byte.min(shortest))
    }
}
