//! The body of a request on its way to the master, and its copy beside it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_core::record::Fault;
use gake_wire::http1::{Header, Visitor};
use http::HeaderMap;
use tokio::io::{AsyncRead, ReadBuf};

use crate::collect::ExchangeCollector;
use crate::message::body::{BodyBuffer, BufferedBody, ShadowRequest};
use crate::message::chunks::{write_chunk, write_end};
use crate::message::head::Framing;
use crate::mirror::PendingCopies;
use crate::proxy::client::ClientState;
use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::incoming::IncomingBody;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::policy::headers::map_of;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::link::{BackendLink, Scratch};

/// How often is read in one turn: others wait for theirs.
const READS: usize = 16;

/// What of a body is still to come and to be written.
pub(crate) struct Upload {
    incoming: IncomingBody,
    is_chunked: bool,
    /// Came, and were not taken by the master.
    unsent: Vec<u8>,
    written: usize,
    body_buffer: BodyBuffer,
    /// Bytes that are kept for copies.
    limit: u64,
    /// The copies go out when the body is whole.
    copies: Option<PendingCopies>,
    /// Is told the body in any case.
    collector: Option<Arc<ExchangeCollector>>,
}

/// Why an upload does not go on.
pub(crate) enum UploadError {
    /// The client broke off, or sent an invalid body.
    Client,
    Master(Fault),
}

/// A client as an upload sees it.
type UploadSource<'a> = (&'a ClientState, &'a mut SocketStream, &'a mut HeadBuffer);

impl Upload {
    /// Of a request whose head has come.
    pub(crate) fn new(
        request: &ClientRequest,
        limit: u64,
        copies: Option<PendingCopies>,
        collector: Option<Arc<ExchangeCollector>>,
    ) -> Self {
        Self {
            incoming: IncomingBody::new(request.body, request.expects),
            is_chunked: request.body == Framing::Chunked,
            unsent: Vec::new(),
            written: 0,
            body_buffer: BodyBuffer::default(),
            limit,
            copies,
            // Without a body there is nothing to be told.
            collector: collector.filter(|_| request.has_body()),
        }
    }

    /// Whether all of it has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.incoming.is_complete()
    }

    /// Whether the client has a part of the interim answer: nothing may be written in between.
    pub(crate) fn is_interim_cut(&self) -> bool {
        self.incoming.is_interim_cut()
    }

    /// The final answer has begun: it is too late for an interim one.
    pub(crate) fn forget_interim(&mut self) {
        self.incoming.take_interim();
    }

    /// Passes on what has come; ready when all of it is with the master.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut BackendLink,
        (client, stream, received): UploadSource<'_>,
        request: &ClientRequest,
    ) -> Poll<Result<(), UploadError>> {
        self.send_copies(request);
        for _ in 0..READS {
            while self.written < self.unsent.len() {
                let rest = &self.unsent[self.written..];
                self.written += ready!(link.poll_write(cx, rest)).map_err(UploadError::Master)?;
            }
            (self.unsent, self.written) = (Vec::new(), 0);
            if self.is_complete() {
                return link.poll_flush(cx).map_err(UploadError::Master);
            }
            if self.incoming.expects_continue() {
                client.body_starved();
                if !ready!(self.incoming.poll_continue(cx, stream)) {
                    return Poll::Ready(Err(UploadError::Client));
                }
            }
            if received.is_empty() {
                ready!(self.read(cx, link, (client, &mut *stream, &mut *received), request))?;
            } else {
                let early = received.take();
                let taken = self.receive(cx, link, (client, request), &early)?;
                received.put_back(&early[taken..]);
            }
            if self.is_complete() {
                client.request_received();
                self.send_copies(request);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once from the client.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut BackendLink,
        (client, stream, received): UploadSource<'_>,
        request: &ClientRequest,
    ) -> Poll<Result<(), UploadError>> {
        let scratch: &Scratch = &client.worker.scratch;
        scratch.with(|bytes| {
            let most = self.incoming.wanted(bytes.len());
            let mut buffer = ReadBuf::new(&mut bytes[..most]);
            match Pin::new(stream).poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    client.body_starved();
                    // TLS may hold what was written; an error is seen by the next write.
                    let _ = link.poll_flush(cx);
                    Poll::Pending
                }
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let taken = self.receive(cx, link, (client, request), buffer.filled())?;
                    received.put_back(&buffer.filled()[taken..]);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(_) => Poll::Ready(Err(UploadError::Client)),
            }
        })
    }

    /// Bytes have come. Those of the body are kept for the copies, and written as far as the master
    /// takes them; returns how many they are.
    fn receive(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut BackendLink,
        (client, request): (&ClientState, &ClientRequest),
        bytes: &[u8],
    ) -> Result<usize, UploadError> {
        client.body_received();
        let is_kept = self.copies.is_some() || self.collector.is_some();
        let mut passing = UploadVisitor {
            out: &mut self.unsent,
            link: (!self.is_chunked).then_some((cx, link)),
            fault: None,
            body_buffer: is_kept.then_some(&mut self.body_buffer),
            limit: self.limit,
            trailers: None,
        };
        let taken = self.incoming.take(bytes, &mut passing).ok_or(UploadError::Client)?;
        let UploadVisitor { fault, body_buffer, mut trailers, .. } = passing;
        if let Some(fault) = fault {
            return Err(UploadError::Master(fault));
        }
        if let Some(trailers) = &mut trailers {
            client.clean_trailers(trailers);
            if let Some(body_buffer) = body_buffer {
                body_buffer.trailers(trailers);
            }
        }
        if self.is_chunked && self.is_complete() {
            write_end(&mut self.unsent, request.head.values("trailer"), trailers.as_ref());
        }
        if self.body_buffer.is_over()
            && let Some(copies) = self.copies.take()
        {
            copies.oversize();
        }
        Ok(taken)
    }

    /// Hands over the copies of a request that is whole.
    pub(crate) fn send_copies(&mut self, request: &ClientRequest) {
        if !self.is_complete() || (self.copies.is_none() && self.collector.is_none()) {
            return;
        }
        let body = self.keep();
        if let Some(copies) = self.copies.take() {
            copies.send(&Arc::new(ShadowRequest { head: request.head.clone(), body }));
        }
    }

    /// What was kept of the body, which is told to who listens.
    fn keep(&mut self) -> BufferedBody {
        let (over, seen) = (self.body_buffer.is_over(), self.body_buffer.seen());
        let mut kept = self.body_buffer.finish();
        kept.chunked = self.is_chunked;
        if let Some(collector) = self.collector.take() {
            collector.body(&kept, seen, over || !self.is_complete());
        }
        kept
    }
}

/// Passes on and keeps the data of a body.
struct UploadVisitor<'a, 'c> {
    /// What the master has not taken, framed as it gets it.
    out: &'a mut Vec<u8>,
    /// Where data of a known length goes at once; other data is framed anew.
    link: Option<(&'a mut Context<'c>, &'a mut BackendLink)>,
    /// The master takes no more.
    fault: Option<Fault>,
    body_buffer: Option<&'a mut BodyBuffer>,
    /// Bytes that are kept.
    limit: u64,
    trailers: Option<HeaderMap>,
}

impl Visitor for UploadVisitor<'_, '_> {
    fn body(&mut self, bytes: &[u8]) {
        if let Some(body_buffer) = &mut self.body_buffer {
            body_buffer.take(&Bytes::copy_from_slice(bytes), self.limit);
        }
        let Some((cx, link)) = &mut self.link else { return write_chunk(self.out, bytes) };
        match link.poll_write(cx, bytes) {
            Poll::Ready(Ok(written)) => self.out.extend_from_slice(&bytes[written..]),
            Poll::Ready(Err(fault)) => self.fault = Some(fault),
            Poll::Pending => self.out.extend_from_slice(bytes),
        }
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
