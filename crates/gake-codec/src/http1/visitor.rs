//! Visitors of responses.

use std::sync::Arc;
use std::task::Context;

use super::head::ResponseHead;
use crate::tls::facts::ConnectionFacts;

/// What comes next of the body of a request that its visitor sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPiece {
    /// More of it.
    Bytes(Arc<[u8]>),
    /// Its end.
    End,
    /// Nothing yet.
    Pending,
}

/// Sees a response as it is parsed. Unless implemented, a method does nothing, and costs nothing
/// then, since [`ResponseParser::feed_with`](super::ResponseParser::feed_with) is compiled for each visitor.
pub trait Visitor {
    /// Whether the head is to be shown. When it is not, a head seen before is not parsed again.
    #[inline]
    fn wants_head(&self) -> bool {
        true
    }

    /// Whether the head of an answer of this status is to be shown, which was seen before and is
    /// not parsed again unless it is: asked when [`Visitor::wants_head`] says no. It is the first
    /// that is heard of that answer.
    #[inline]
    fn wants_head_of(&mut self, status: u16) -> bool {
        let _ = status;
        false
    }

    /// Whether it may want to see anything of the answer, when that must be known before it comes.
    #[inline]
    fn may_want(&self) -> bool {
        self.wants_head()
    }

    /// The connection that the request goes over; again when it is sent again over another.
    #[inline]
    fn connected(&mut self, facts: &ConnectionFacts) {
        let _ = facts;
    }

    /// Every byte of the request was handed to the kernel, over HTTP/1.1.
    #[inline]
    fn sent(&mut self) {}

    /// The head of the final answer; interim (1xx) heads are not shown.
    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        let _ = head;
    }

    /// The next bytes of the body, decoded from chunks, never empty. Also called for a body that
    /// turns out to be malformed later.
    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// Whether the body of the request comes from here while the answer is under way. Such a request
    /// is sent once and needs HTTP/2.
    #[inline]
    fn is_sending(&self) -> bool {
        false
    }

    /// The next piece of that body; after [`BodyPiece::Pending`] the task of `cx` is woken when there
    /// is more.
    #[inline]
    fn next_piece(&mut self, cx: &mut Context<'_>) -> BodyPiece {
        let _ = cx;
        BodyPiece::End
    }

    /// Whether it wants to see trailers behind chunks, which are skipped otherwise.
    #[inline]
    fn wants_trailers(&self) -> bool {
        false
    }

    /// The trailers of an answer of HTTP/2, or of a body in chunks if they are wanted; called when
    /// there are any.
    #[inline]
    fn trailers(&mut self, trailers: &[httparse::Header<'_>]) {
        let _ = trailers;
    }
}

/// The visitor that looks at nothing.
impl Visitor for () {
    #[inline]
    fn wants_head(&self) -> bool {
        false
    }
}
