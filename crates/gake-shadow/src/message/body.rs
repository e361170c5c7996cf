//! Bodies that are kept, and requests that were received whole: shared by all that send them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};

use super::head::{Framing, RequestHead};

/// Pieces below this are put together: a small piece of a large read buffer keeps all of it.
const PIECE: usize = 4096;

/// A request that was received whole.
#[derive(Debug, Clone)]
pub(crate) struct ShadowRequest {
    /// As for the master, before its own edits; its framing is the body's.
    pub(crate) head: RequestHead,
    pub(crate) body: BufferedBody,
}

/// A body that was kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct BufferedBody {
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) len: u64,
    /// Of a chunked body; then it is sent chunked again.
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) chunked: bool,
}

impl BufferedBody {
    /// The body in one piece.
    pub(crate) fn bytes(&self) -> Bytes {
        match &self.pieces[..] {
            [] => Bytes::new(),
            [one] => one.clone(),
            pieces => pieces.concat().into(),
        }
    }

    /// How it is framed.
    pub(crate) fn framing(&self) -> Framing {
        if self.chunked { Framing::Chunked } else { Framing::Length(self.len) }
    }

    /// Another body in its place.
    pub(crate) fn replace(&mut self, bytes: Bytes) {
        self.len = bytes.len() as u64;
        self.pieces = if bytes.is_empty() { Vec::new() } else { vec![bytes] };
    }
}

/// Keeps a body as it passes, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct BodyBuffer {
    kept: BufferedBody,
    small: BytesMut,
    /// All bytes that passed.
    seen: u64,
    over: bool,
}

impl BodyBuffer {
    /// Takes note of a piece.
    pub(crate) fn take(&mut self, piece: &Bytes, limit: u64) {
        self.seen += piece.len() as u64;
        let room = usize::try_from(limit - self.kept.len).unwrap_or(usize::MAX);
        self.over |= piece.len() > room;
        let piece = if piece.len() > room { piece.slice(..room) } else { piece.clone() };
        self.kept.len += piece.len() as u64;
        if piece.len() < PIECE {
            self.small.extend_from_slice(&piece);
        } else {
            self.gather();
            self.kept.pieces.push(piece);
        }
    }

    /// Takes note of trailers.
    pub(crate) fn trailers(&mut self, trailers: &HeaderMap) {
        self.kept.trailers = Some(trailers.clone());
    }

    /// Whether there was more than the limit.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// How many bytes passed.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// What was kept.
    pub(crate) fn finish(&mut self) -> BufferedBody {
        self.gather();
        std::mem::take(&mut self.kept)
    }

    fn gather(&mut self) {
        if !self.small.is_empty() {
            self.kept.pieces.push(self.small.split().freeze());
        }
    }
}

/// A request's body while it is sent.
#[derive(Debug)]
pub(crate) struct ShadowBody {
    request: Arc<ShadowRequest>,
    next: usize,
    ended: bool,
}

impl ShadowBody {
    pub(crate) fn new(request: Arc<ShadowRequest>) -> Self {
        let ended = request.body.pieces.is_empty() && !request.body.chunked;
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
        if let Some(piece) = body.pieces.get(this.next) {
            this.next += 1;
            this.ended = this.next == body.pieces.len() && !body.chunked;
            return Poll::Ready(Some(Ok(Frame::data(piece.clone()))));
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
    fn a_body_is_kept_up_to_its_limit() {
        let mut body_buffer = BodyBuffer::default();
        for piece in ["ab", "cd", "ef"] {
            body_buffer.take(&Bytes::from_static(piece.as_bytes()), 5);
        }
        assert!(body_buffer.is_over());
        assert_eq!(body_buffer.seen(), 6);
        let kept = body_buffer.finish();
        assert_eq!((&kept.bytes()[..], kept.len), (&b"abcde"[..], 5));
    }

    #[test]
    fn small_pieces_are_put_together_and_large_ones_shared() {
        let mut body_buffer = BodyBuffer::default();
        let large = Bytes::from(vec![b'x'; PIECE]);
        for _ in 0..10 {
            body_buffer.take(&Bytes::from_static(b"y"), u64::MAX);
        }
        body_buffer.take(&large, u64::MAX);
        body_buffer.take(&Bytes::from_static(b"z"), u64::MAX);
        let kept = body_buffer.finish();
        assert_eq!(kept.pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [10, PIECE, 1]);
        assert_eq!(kept.pieces[1].as_ptr(), large.as_ptr());
        assert!(!body_buffer.is_over());
    }
}
