//! The interface of a transport.

use gake_core::clock::Nanos;
use gake_core::record::Fault;

use crate::net::alarm::Alarm;
use crate::net::deadline::Deadline;
use crate::net::scratch::Scratch;

pub(crate) trait Transport {
    /// Maximum number of concurrent exchanges. It may change at any time. It stays 0 once the
    /// connection is ending; live exchanges continue.
    fn capacity(&self) -> usize;

    /// Whether the connection will never accept another exchange.
    #[inline]
    fn is_ending(&self) -> bool {
        self.capacity() == 0
    }

    /// Calls `watcher` whenever the peer changes the capacity. Without such changes, it is dropped.
    fn watch_capacity(&self, watcher: impl Fn() + 'static) {
        drop(watcher);
    }

    /// The state after an idle time; an unusable connection loses its capacity. Costs no system call
    /// unless the runtime has seen an event.
    #[inline]
    fn idle_state(&self, now: Nanos, scratch: &Scratch) -> IdleState {
        let _ = (now, scratch);
        if self.is_ending() { IdleState::Ended } else { IdleState::Usable }
    }
}

/// The state of a connection after an idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleState {
    Usable,
    /// Closed by the peer.
    Ended,
    /// The peer has sent unsolicited bytes.
    Unsolicited,
}

/// The clock and deadline of one exchange on a connection.
pub(crate) struct Timing<'a, C> {
    pub(crate) clock: &'a C,
    pub(crate) scratch: &'a Scratch,
    pub(crate) alarm: &'a Alarm<'a>,
    pub(crate) deadline: &'a Deadline,
    /// When the connection was available and the request could be written.
    pub(crate) write: Nanos,
}

/// Why there is no response, by what may be retried on another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// The peer has seen nothing of the request: any request may be retried.
    BeforeRequest(Fault),
    /// The connection ended before any byte of the response: after a reused connection, idempotent
    /// requests may be retried.
    BeforeResponse(Fault),
    /// The server reports the request as unprocessed: any request may be retried.
    Unhandled(Fault),
    /// No retry.
    Final(Fault),
}

impl TransportError {
    pub(crate) fn fault(self) -> Fault {
        let (Self::BeforeRequest(fault)
        | Self::BeforeResponse(fault)
        | Self::Unhandled(fault)
        | Self::Final(fault)) = self;
        fault
    }
}
