//! Tracks the body of an HTTP/1.1 request as it is received.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gake_codec::http1::{ChunkDecoder, ResponseLimits, Visitor};
use tokio::io::AsyncWrite;

use crate::message::head::Framing;
use crate::proxy::stream::SocketStream;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Limits of the chunked coding.
const LIMITS: ResponseLimits =
    ResponseLimits { head_bytes: 16 << 10, headers: 100, interim: 0, chunk_line: 1024 };

/// The receiving state of a body.
pub(crate) struct IncomingBody {
    remaining: BodyRemaining,
    /// The unwritten rest of a `100 Continue`.
    interim: Option<&'static [u8]>,
}

enum BodyRemaining {
    /// Remaining bytes.
    Length(u64),
    Chunked(Box<ChunkDecoder>),
    Nothing,
    /// The client aborted, or the body is invalid.
    Broken,
}

impl IncomingBody {
    /// `expects`: the client waits for `100 Continue`.
    pub(crate) fn new(framing: Framing, expects: bool) -> Self {
        let remaining = match framing {
            Framing::Length(0) => BodyRemaining::Nothing,
            Framing::Length(bytes) => BodyRemaining::Length(bytes),
            Framing::Chunked => BodyRemaining::Chunked(Box::new(ChunkDecoder::of_request())),
        };
        Self { remaining, interim: expects.then_some(CONTINUE) }
    }

    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.remaining, BodyRemaining::Nothing)
    }

    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.remaining, BodyRemaining::Broken)
    }

    pub(crate) fn abort(&mut self) {
        self.remaining = BodyRemaining::Broken;
    }

    /// Remaining bytes, if known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.remaining {
            BodyRemaining::Length(bytes) => Some(bytes),
            BodyRemaining::Nothing => Some(0),
            BodyRemaining::Chunked(_) | BodyRemaining::Broken => None,
        }
    }

    /// Limits a read of `bytes` to the body, if its length is known.
    pub(crate) fn wanted(&self, bytes: usize) -> usize {
        match self.remaining {
            BodyRemaining::Length(left) => bytes.min(usize::try_from(left).unwrap_or(usize::MAX)),
            _ => bytes,
        }
    }

    /// Feeds `bytes` to `visitor` up to the end of the body. Returns the number consumed; `None` if
    /// the body is invalid.
    pub(crate) fn take<V: Visitor>(&mut self, bytes: &[u8], visitor: &mut V) -> Option<usize> {
        let taken = self.wanted(bytes.len());
        match &mut self.remaining {
            BodyRemaining::Length(left) => {
                *left -= taken as u64;
                if *left == 0 {
                    self.remaining = BodyRemaining::Nothing;
                }
                visitor.body(&bytes[..taken]);
                Some(taken)
            }
            BodyRemaining::Chunked(decoder) => {
                let pushed = decoder.push(bytes, &LIMITS, visitor).ok()?;
                if pushed.done {
                    self.remaining = BodyRemaining::Nothing;
                }
                Some(pushed.consumed)
            }
            BodyRemaining::Nothing | BodyRemaining::Broken => Some(0),
        }
    }

    /// Whether the client waits for `100 Continue`.
    pub(crate) fn expects_continue(&self) -> bool {
        self.interim.is_some()
    }

    /// Whether the interim response is partly written, so that it must be completed first.
    pub(crate) fn is_interim_cut(&self) -> bool {
        self.interim.is_some_and(|rest| rest.len() < CONTINUE.len())
    }

    /// Cancels the interim response. Returns the rest of a partly written one.
    pub(crate) fn take_interim(&mut self) -> Option<&'static [u8]> {
        self.interim.take().filter(|rest| rest.len() < CONTINUE.len())
    }

    /// Writes the interim response; `false` if the client is gone.
    pub(crate) fn poll_continue(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut SocketStream,
    ) -> Poll<bool> {
        while let Some(rest @ [_, ..]) = self.interim {
            match ready!(Pin::new(&mut *stream).poll_write(cx, rest)) {
                Ok(written @ 1..) => self.interim = Some(&rest[written..]),
                _ => return Poll::Ready(false),
            }
        }
        let flushed = ready!(Pin::new(stream).poll_flush(cx));
        self.interim = None;
        Poll::Ready(flushed.is_ok())
    }
}
