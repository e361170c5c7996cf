//! The body of a gRPC response: messages, then the status in the trailers.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallStatus {
    code: u32,
    message: String,
}

impl CallStatus {
    pub(super) const CANCELLED: u32 = 1;
    pub(super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(super) const UNIMPLEMENTED: u32 = 12;
    pub(super) const INTERNAL: u32 = 13;

    /// `message` must be ASCII.
    pub(super) fn new(code: u32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The header fields of the status, for a head or trailers.
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

/// A stream of framed messages; its end means OK.
pub(super) type MessageStream = Pin<Box<dyn Stream<Item = Result<Bytes, CallStatus>> + Send>>;

/// The messages of a response and its trailers.
pub(crate) struct Replies {
    messages: MessageStream,
    is_over: bool,
}

impl Replies {
    pub(super) fn new(messages: MessageStream) -> Self {
        Self { messages, is_over: false }
    }

    pub(super) fn one(message: Bytes) -> Self {
        Self::new(stream::iter([Ok(message)]).boxed())
    }

    /// Whether the trailers have been sent.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next message, or the trailers.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Frame<Bytes>> {
        let trailers = match ready!(self.messages.poll_next_unpin(cx)) {
            Some(Ok(message)) => return Poll::Ready(Frame::data(message)),
            Some(Err(status)) => status.fields(),
            None => CallStatus::new(0, "").fields(),
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
