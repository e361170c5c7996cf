//! The body of a request on its way to the master, and its copy beside it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_core::record::Fault;
use gake_wire::http1::{ChunkDecoder, Header, ResponseLimits, Visitor};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::collect::Collector;
use crate::message::body::{BodyKeeper, KeptBody, ShadowRequest};
use crate::message::chunks::{write_chunk, write_end};
use crate::message::head::Framing;
use crate::mirror::Pending;
use crate::proxy::client::Client;
use crate::proxy::client::head_buffer::Opening;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::policy::headers::map_of;
use crate::proxy::stream::Stream;
use crate::proxy::upstream::link::{Link, Scratch};

/// How often is read in one turn: others wait for theirs.
const READS: usize = 16;

/// The interim answer to `Expect: 100-continue`.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What bounds the framing of a body in chunks.
pub(crate) const LIMITS: ResponseLimits =
    ResponseLimits { head_bytes: 16 << 10, headers: 100, interim: 0, chunk_line: 1024 };

/// What of a body is still to come and to be written.
pub(crate) struct Upload {
    /// Bytes that the client has not sent, when the length is known.
    left: u64,
    /// Reads a body in chunks, until it has come.
    chunks: Option<Box<ChunkDecoder>>,
    is_chunked: bool,
    /// What is still to be written of the interim answer that the client waits for.
    interim: Option<&'static [u8]>,
    /// Came, and were not taken by the master.
    unsent: Vec<u8>,
    written: usize,
    keeper: BodyKeeper,
    /// Bytes that are kept for copies.
    limit: u64,
    /// The copies go out when the body is whole.
    copies: Option<Pending>,
    /// Is told the body in any case.
    collector: Option<Arc<Collector>>,
}

/// Why an upload does not go on.
pub(crate) enum Stopped {
    /// The client broke off, or sent an invalid body.
    Client,
    Master(Fault),
}

/// A client as an upload sees it.
type Source<'a> = (&'a Client, &'a mut Stream, &'a mut Opening);

impl Upload {
    /// Of a request whose head has come.
    pub(crate) fn new(
        request: &ClientRequest,
        limit: u64,
        copies: Option<Pending>,
        collector: Option<Arc<Collector>>,
    ) -> Self {
        let (left, is_chunked) = match request.body {
            Framing::Length(bytes) => (bytes, false),
            Framing::Chunked => (0, true),
        };
        Self {
            left,
            chunks: is_chunked.then(|| Box::new(ChunkDecoder::of_request())),
            is_chunked,
            interim: request.expects.then_some(CONTINUE),
            unsent: Vec::new(),
            written: 0,
            keeper: BodyKeeper::default(),
            limit,
            copies,
            // Without a body there is nothing to be told.
            collector: collector.filter(|_| request.has_body()),
        }
    }

    /// Whether all of it has come.
    pub(crate) fn has_come(&self) -> bool {
        self.left == 0 && self.chunks.is_none()
    }

    /// Whether the client has a part of the interim answer: nothing may be written in between.
    pub(crate) fn is_interim_cut(&self) -> bool {
        self.interim.is_some_and(|rest| rest.len() < CONTINUE.len())
    }

    /// The final answer has begun: it is too late for an interim one.
    pub(crate) fn forget_interim(&mut self) {
        self.interim = None;
    }

    /// Passes on what has come; ready when all of it is with the master.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        (client, stream, opening): Source<'_>,
        request: &ClientRequest,
    ) -> Poll<Result<(), Stopped>> {
        self.send_copies(request);
        for _ in 0..READS {
            while self.written < self.unsent.len() {
                let rest = &self.unsent[self.written..];
                self.written += ready!(link.poll_write(cx, rest)).map_err(Stopped::Master)?;
            }
            (self.unsent, self.written) = (Vec::new(), 0);
            if self.has_come() {
                return link.poll_flush(cx).map_err(Stopped::Master);
            }
            if self.interim.is_some() {
                ready!(self.say_continue(cx, client, stream))?;
            }
            if opening.is_empty() {
                ready!(self.read(cx, link, (client, &mut *stream, &mut *opening), request))?;
            } else {
                let early = opening.take();
                let taken = self.came(cx, link, (client, request), &early)?;
                opening.put_back(&early[taken..]);
            }
            if self.has_come() {
                client.asked();
                self.send_copies(request);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Tells a client that waits for it to send the body.
    fn say_continue(
        &mut self,
        cx: &mut Context<'_>,
        client: &Client,
        stream: &mut Stream,
    ) -> Poll<Result<(), Stopped>> {
        client.starves();
        while let Some(rest @ [_, ..]) = self.interim {
            match ready!(Pin::new(&mut *stream).poll_write(cx, rest)) {
                Ok(written @ 1..) => self.interim = Some(&rest[written..]),
                _ => return Poll::Ready(Err(Stopped::Client)),
            }
        }
        let flushed = ready!(Pin::new(stream).poll_flush(cx));
        self.interim = None;
        Poll::Ready(flushed.map_err(|_| Stopped::Client))
    }

    /// Reads once from the client.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        (client, stream, opening): Source<'_>,
        request: &ClientRequest,
    ) -> Poll<Result<(), Stopped>> {
        let scratch: &Scratch = &client.worker.scratch;
        scratch.with(|bytes| {
            let most = match self.is_chunked {
                true => bytes.len(),
                false => bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)),
            };
            let mut buffer = ReadBuf::new(&mut bytes[..most]);
            match Pin::new(stream).poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    client.starves();
                    // TLS may hold what was written; an error is seen by the next write.
                    let _ = link.poll_flush(cx);
                    Poll::Pending
                }
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let taken = self.came(cx, link, (client, request), buffer.filled())?;
                    opening.put_back(&buffer.filled()[taken..]);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(_) => Poll::Ready(Err(Stopped::Client)),
            }
        })
    }

    /// Bytes have come. Those of the body are kept for the copies, and written as far as the master
    /// takes them; returns how many they are.
    fn came(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        (client, request): (&Client, &ClientRequest),
        bytes: &[u8],
    ) -> Result<usize, Stopped> {
        client.sends();
        let is_kept = self.copies.is_some() || self.collector.is_some();
        let taken = if self.is_chunked {
            self.decode((client, request), bytes, is_kept)?
        } else {
            let taken = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let piece = &bytes[..taken];
            self.left -= taken as u64;
            if is_kept {
                self.keeper.take(&Bytes::copy_from_slice(piece), self.limit);
            }
            let written = match link.poll_write(cx, piece) {
                Poll::Ready(written) => written.map_err(Stopped::Master)?,
                Poll::Pending => 0,
            };
            self.unsent.extend_from_slice(&piece[written..]);
            taken
        };
        if self.keeper.is_over()
            && let Some(copies) = self.copies.take()
        {
            copies.oversize();
        }
        Ok(taken)
    }

    /// Takes what belongs to a body in chunks, and frames it anew. Returns how many bytes that was.
    fn decode(
        &mut self,
        (client, request): (&Client, &ClientRequest),
        bytes: &[u8],
        is_kept: bool,
    ) -> Result<usize, Stopped> {
        let Some(decoder) = &mut self.chunks else { return Ok(0) };
        let keeper = is_kept.then_some(&mut self.keeper);
        let mut chunks =
            Chunks { out: &mut self.unsent, keeper, limit: self.limit, trailers: None };
        let pushed = decoder.push(bytes, &LIMITS, &mut chunks).map_err(|_| Stopped::Client)?;
        let Chunks { keeper, mut trailers, .. } = chunks;
        if let Some(trailers) = &mut trailers {
            client.clean_trailers(trailers);
            if let Some(keeper) = keeper {
                keeper.trailers(trailers);
            }
        }
        if pushed.done {
            write_end(&mut self.unsent, request.head.values("trailer"), trailers.as_ref());
            self.chunks = None;
        }
        Ok(pushed.consumed)
    }

    /// Hands over the copies of a request that is whole.
    pub(crate) fn send_copies(&mut self, request: &ClientRequest) {
        if !self.has_come() || (self.copies.is_none() && self.collector.is_none()) {
            return;
        }
        let body = self.keep();
        if let Some(copies) = self.copies.take() {
            copies.send(&Arc::new(ShadowRequest { head: request.head.clone(), body }));
        }
    }

    /// What was kept of the body, which is told to who listens.
    fn keep(&mut self) -> KeptBody {
        let (over, seen) = (self.keeper.is_over(), self.keeper.seen());
        let mut kept = self.keeper.finish();
        kept.chunked = self.is_chunked;
        if let Some(collector) = self.collector.take() {
            collector.body(&kept, seen, over || !self.has_come());
        }
        kept
    }
}

/// Writes and keeps the data of chunks.
struct Chunks<'a> {
    out: &'a mut Vec<u8>,
    keeper: Option<&'a mut BodyKeeper>,
    /// Bytes that are kept.
    limit: u64,
    trailers: Option<HeaderMap>,
}

impl Visitor for Chunks<'_> {
    fn body(&mut self, bytes: &[u8]) {
        if let Some(keeper) = &mut self.keeper {
            keeper.take(&Bytes::copy_from_slice(bytes), self.limit);
        }
        write_chunk(self.out, bytes);
    }

    fn wants_trailers(&self) -> bool {
        true
    }

    fn trailers(&mut self, trailers: &[Header<'_>]) {
        self.trailers = Some(map_of(trailers));
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.collector.is_some() {
            self.keep();
        }
    }
}
