//! The interface of a transport.

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Answer, Exchange, Fault};

use crate::client::request::PreparedRequest;
use crate::client::visitor::ExchangeVisitor;
use crate::net::alarm::Alarm;
use crate::net::deadline::Deadline;
use crate::net::scratch::Scratch;

/// An open connection.
pub(crate) trait Transport {
    /// Exchanges that it carries at once. It may change at any time; once it is 0 because the
    /// connection ends, it stays 0, and exchanges under way go on.
    fn capacity(&self) -> usize;

    /// Whether it will not have room again: one that has no capacity ends, unless its peer may
    /// allow more later.
    #[inline]
    fn is_ending(&self) -> bool {
        self.capacity() == 0
    }

    /// Calls `watcher` whenever the capacity changes by the peer's doing. Where that never
    /// happens, it is forgotten.
    fn watch_room(&self, watcher: impl Fn() + 'static) {
        drop(watcher);
    }

    /// What became of it while no exchange was under way; one that cannot be used has no capacity
    /// any more. Costs no system call unless the runtime has heard of something. Where a task reads
    /// the connection, that hears of everything.
    #[inline]
    fn idle_state(&self, now: Nanos, scratch: &Scratch) -> IdleState {
        let _ = (now, scratch);
        if self.is_ending() { IdleState::Ended } else { IdleState::Usable }
    }

    /// Sends a request and reads its response, noting instants and bytes in `exchange` as they
    /// come. When the future is dropped before its end, the exchange is given up.
    async fn exchange<C: Clock, V: ExchangeVisitor>(
        &self,
        request: &PreparedRequest,
        exchange: &mut Exchange,
        timing: &Timing<'_, C>,
        visitor: &mut V,
    ) -> Result<Answer, TransportError>;
}

/// What became of a connection that lay idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleState {
    /// Nothing: it can be used.
    Usable,
    /// The peer has ended it.
    Ended,
    /// The peer has sent what nobody asked for.
    Unsolicited,
}

/// The clock and bounds of one exchange on a connection.
pub(crate) struct Timing<'a, C> {
    pub(crate) clock: &'a C,
    pub(crate) scratch: &'a Scratch,
    pub(crate) alarm: &'a Alarm<'a>,
    pub(crate) deadline: &'a Deadline,
    /// When the connection was there and the request was about to be written.
    pub(crate) write: Nanos,
}

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// The peer can have seen nothing of the request: on another connection, any request may be
    /// sent again.
    BeforeRequest(Fault),
    /// The connection ended before any byte of the response: when it was a reused one, an
    /// idempotent request may be sent again on another.
    BeforeResponse(Fault),
    /// The server says that it did not handle the request and will not: any request may be sent
    /// again.
    Unhandled(Fault),
    /// Anything later.
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
