//! What of a request's body is still to come from a client that speaks HTTP/1.1.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gake_wire::http1::{ChunkDecoder, ResponseLimits, Visitor};
use tokio::io::AsyncWrite;

use crate::message::head::Framing;
use crate::proxy::stream::SocketStream;

/// The interim answer to `Expect: 100-continue`.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What bounds the framing of a body in chunks.
const LIMITS: ResponseLimits =
    ResponseLimits { head_bytes: 16 << 10, headers: 100, interim: 0, chunk_line: 1024 };

/// A body that comes.
pub(crate) struct IncomingBody {
    remaining: BodyRemaining,
    /// What is still to be written of the interim answer that the client waits for.
    interim: Option<&'static [u8]>,
}

enum BodyRemaining {
    /// A number of bytes that is still to come.
    Length(u64),
    Chunked(Box<ChunkDecoder>),
    Nothing,
    /// The client broke off, or sent an invalid body.
    Broken,
}

impl IncomingBody {
    /// Of a request whose head has come; `expects` when the client waits for an interim answer.
    pub(crate) fn new(framing: Framing, expects: bool) -> Self {
        let remaining = match framing {
            Framing::Length(0) => BodyRemaining::Nothing,
            Framing::Length(bytes) => BodyRemaining::Length(bytes),
            Framing::Chunked => BodyRemaining::Chunked(Box::new(ChunkDecoder::of_request())),
        };
        Self { remaining, interim: expects.then_some(CONTINUE) }
    }

    /// Whether all of it has come.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.remaining, BodyRemaining::Nothing)
    }

    /// Whether the client broke off, or sent an invalid body.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.remaining, BodyRemaining::Broken)
    }

    /// No more of it comes.
    pub(crate) fn abort(&mut self) {
        self.remaining = BodyRemaining::Broken;
    }

    /// Bytes that are still to come, where that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.remaining {
            BodyRemaining::Length(bytes) => Some(bytes),
            BodyRemaining::Nothing => Some(0),
            BodyRemaining::Chunked(_) | BodyRemaining::Broken => None,
        }
    }

    /// How many of so many bytes may be read: what is behind a body of a known length is left.
    pub(crate) fn wanted(&self, bytes: usize) -> usize {
        match self.remaining {
            BodyRemaining::Length(left) => bytes.min(usize::try_from(left).unwrap_or(usize::MAX)),
            _ => bytes,
        }
    }

    /// Shows what of `bytes` belongs to the body to `visitor`. Returns how many that are; `None`
    /// when the body is not valid.
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

    /// Whether the client waits to be told to send it.
    pub(crate) fn expects_continue(&self) -> bool {
        self.interim.is_some()
    }

    /// Whether the client has a part of the interim answer: nothing may be written in between.
    pub(crate) fn is_interim_cut(&self) -> bool {
        self.interim.is_some_and(|rest| rest.len() < CONTINUE.len())
    }

    /// The final answer begins: it is too late for an interim one. Returns the rest of one that is
    /// cut in the middle.
    pub(crate) fn take_interim(&mut self) -> Option<&'static [u8]> {
        self.interim.take().filter(|rest| rest.len() < CONTINUE.len())
    }

    /// Tells a client that waits for it to send the body; `false` when it is gone.
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
