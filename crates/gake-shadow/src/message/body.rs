//! Buffered bodies, and complete requests shared by the backends that get copies.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};

use super::head::{Framing, RequestHead};

/// Smaller segments are copied together: a small slice of a large read buffer keeps all of it alive.
const SMALL: usize = 4096;

#[derive(Debug, Clone)]
pub(crate) struct ShadowRequest {
    /// The head for the master, before per-backend edits; its framing matches `body`.
    pub(crate) head: RequestHead,
    pub(crate) body: BufferedBody,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct BufferedBody {
    pub(crate) segments: Vec<Bytes>,
    pub(crate) len: u64,
    /// Trailers of a chunked body.
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) chunked: bool,
}

impl BufferedBody {
    /// The body as contiguous bytes.
    pub(crate) fn bytes(&self) -> Bytes {
        match &self.segments[..] {
            [] => Bytes::new(),
            [one] => one.clone(),
            segments => segments.concat().into(),
        }
    }

    pub(crate) fn framing(&self) -> Framing {
        if self.chunked { Framing::Chunked } else { Framing::Length(self.len) }
    }

    pub(crate) fn replace(&mut self, bytes: Bytes) {
        self.len = bytes.len() as u64;
        self.segments = if bytes.is_empty() { Vec::new() } else { vec![bytes] };
    }
}

/// Buffers a body as it passes, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct BodyBuffer {
    kept: BufferedBody,
    small: BytesMut,
    /// Bytes passed in all.
    seen: u64,
    over: bool,
}

impl BodyBuffer {
    pub(crate) fn take(&mut self, data: &Bytes, limit: u64) {
        self.seen += data.len() as u64;
        let room = usize::try_from(limit - self.kept.len).unwrap_or(usize::MAX);
        self.over |= data.len() > room;
        let data = if data.len() > room { data.slice(..room) } else { data.clone() };
        self.kept.len += data.len() as u64;
        if data.len() < SMALL {
            self.small.extend_from_slice(&data);
        } else {
            self.gather();
            self.kept.segments.push(data);
        }
    }

    pub(crate) fn trailers(&mut self, trailers: &HeaderMap) {
        self.kept.trailers = Some(trailers.clone());
    }

    /// Whether the body exceeds the limit.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn finish(&mut self) -> BufferedBody {
        self.gather();
        std::mem::take(&mut self.kept)
    }

    fn gather(&mut self) {
        if !self.small.is_empty() {
            self.kept.segments.push(self.small.split().freeze());
        }
    }
}

/// The body of a [`ShadowRequest`] as a stream of frames.
#[derive(Debug)]
pub(crate) struct ShadowBody {
    request: Arc<ShadowRequest>,
    next: usize,
    ended: bool,
}

impl ShadowBody {
    pub(crate) fn new(request: Arc<ShadowRequest>) -> Self {
        let ended = request.body.segments.is_empty() && !request.body.chunked;
        Self { request, next: 0, ended }
    }
}

impl http_body::Body for ShadowBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let body = &this.request.body;
        if let Some(data) = body.segments.get(this.next) {
            this.next += 1;
            this.ended = this.next == body.segments.len() && !body.chunked;
            return Poll::Ready(Some(Ok(Frame::data(data.clone()))));
        }
        match &body.trailers {
            Some(trailers) if !this.ended => {
                this.ended = true;
                Poll::Ready(Some(Ok(Frame::trailers(trailers.clone()))))
            }
            _ => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        if self.request.body.chunked {
            SizeHint::new()
        } else {
            SizeHint::with_exact(self.request.body.len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_buffered_up_to_its_limit() {
        let mut body_buffer = BodyBuffer::default();
        for data in ["ab", "cd", "ef"] {
            body_buffer.take(&Bytes::from_static(data.as_bytes()), 5);
        }
        assert!(body_buffer.is_over());
        assert_eq!(body_buffer.seen(), 6);
        let kept = body_buffer.finish();
        assert_eq!((&kept.bytes()[..], kept.len), (&b"abcde"[..], 5));
    }

    #[test]
    fn small_segments_are_joined_and_large_ones_shared() {
        let mut body_buffer = BodyBuffer::default();
        let large = Bytes::from(vec![b'x'; SMALL]);
        for _ in 0..10 {
            body_buffer.take(&Bytes::from_static(b"y"), u64::MAX);
        }
        body_buffer.take(&large, u64::MAX);
        body_buffer.take(&Bytes::from_static(b"z"), u64::MAX);
        let kept = body_buffer.finish();
        assert_eq!(kept.segments.iter().map(Bytes::len).collect::<Vec<_>>(), [10, SMALL, 1]);
        assert_eq!(kept.segments[1].as_ptr(), large.as_ptr());
        assert!(!body_buffer.is_over());
    }
}
