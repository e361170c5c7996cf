//! The body of an answer: messages, then the status in the trailers.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;

/// How a call ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    code: u32,
    message: String,
}

impl Status {
    pub(super) const CANCELLED: u32 = 1;
    pub(super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(super) const UNIMPLEMENTED: u32 = 12;
    pub(super) const INTERNAL: u32 = 13;

    /// The status with this code, and ASCII for people.
    pub(super) fn new(code: u32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The fields of a head or trailers with it.
    pub(super) fn fields(&self) -> HeaderMap {
        let mut fields = HeaderMap::new();
        fields.insert(HeaderName::from_static("grpc-status"), HeaderValue::from(self.code));
        if let Ok(message) = HeaderValue::from_str(&self.message)
            && !message.is_empty()
        {
            fields.insert(HeaderName::from_static("grpc-message"), message);
        }
        fields
    }
}

/// A stream of framed messages. Its end is OK.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// The messages of an answer, and its trailers.
pub(crate) struct Replies {
    messages: Messages,
    is_over: bool,
}

impl Replies {
    pub(super) fn new(messages: Messages) -> Self {
        Self { messages, is_over: false }
    }

    /// The answer that is this message.
    pub(super) fn one(message: Bytes) -> Self {
        Self::new(stream::iter([Ok(message)]).boxed())
    }

    /// Whether the trailers have been handed over.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next message, or the trailers.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Frame<Bytes>> {
        let trailers = match ready!(self.messages.poll_next_unpin(cx)) {
            Some(Ok(message)) => return Poll::Ready(Frame::data(message)),
            Some(Err(status)) => status.fields(),
            None => Status::new(0, "").fields(),
        };
        self.is_over = true;
        Poll::Ready(Frame::trailers(trailers))
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
