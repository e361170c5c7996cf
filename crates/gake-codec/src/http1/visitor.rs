//! Visitors of responses.

use super::head::ResponseHead;

/// Sees a response as it is parsed. By default its methods do nothing, at no cost: parsers are
/// compiled for each visitor.
pub trait Visitor {
    /// Whether to show the head. If not, a known head is not parsed again.
    #[inline]
    fn wants_head(&self) -> bool {
        true
    }

    /// Whether to parse and show a known head with this status although [`Visitor::wants_head`]
    /// returned false. For such a response it is the first method called.
    #[inline]
    fn wants_head_of(&mut self, status: u16) -> bool {
        let _ = status;
        false
    }

    /// Whether any method must be called, decided before the response comes.
    #[inline]
    fn may_want(&self) -> bool {
        self.wants_head()
    }

    /// The head of the final response; interim (1xx) heads are not shown.
    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        let _ = head;
    }

    /// The next bytes of the body, decoded from chunks, never empty. The body may turn out to be
    /// malformed later.
    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// Whether to show trailers after chunks, which are skipped otherwise.
    #[inline]
    fn wants_trailers(&self) -> bool {
        false
    }

    /// The trailers, never empty; those after chunks only if wanted.
    #[inline]
    fn trailers(&mut self, trailers: &[httparse::Header<'_>]) {
        let _ = trailers;
    }
}

/// Discards the response.
impl Visitor for () {
    #[inline]
    fn wants_head(&self) -> bool {
        false
    }
}
