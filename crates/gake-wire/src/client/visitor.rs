//! Visitors of exchanges.

use std::sync::Arc;
use std::task::{Context, Poll};

use gake_codec::http1::Visitor;

use crate::tls::facts::ConnectionFacts;

/// A [`Visitor`] of the response that also follows the exchange around it. By default its methods
/// do nothing.
pub trait ExchangeVisitor: Visitor {
    /// The request goes over this connection; called again for a retry on another one.
    #[inline]
    fn connected(&mut self, facts: &ConnectionFacts) {
        let _ = facts;
    }

    /// The kernel has taken the last byte of the request (HTTP/1.1 only).
    #[inline]
    fn sent(&mut self) {}

    /// A response is complete: whether the request has another one, as several requests written at
    /// once do (HTTP/1.1 only).
    #[inline]
    fn has_another(&mut self, status: u16, body_bytes: u64) -> bool {
        let _ = (status, body_bytes);
        false
    }

    /// Whether [`poll_body`](Self::poll_body) supplies the body of the request while the response is
    /// under way. Such a request needs HTTP/2 and is never retried.
    #[inline]
    fn is_sending(&self) -> bool {
        false
    }

    /// The next bytes of the request's body, `None` at its end.
    #[inline]
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<[u8]>>> {
        let _ = cx;
        Poll::Ready(None)
    }
}

/// Discards the response.
impl ExchangeVisitor for () {}
