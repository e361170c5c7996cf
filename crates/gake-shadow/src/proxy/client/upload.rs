//! Passes a request's body to the master on the direct path, buffering it for copies.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_codec::http1::{Header, Visitor};
use gake_core::record::Fault;
use http::HeaderMap;
use tokio::io::{AsyncRead, ReadBuf};

use crate::collect::ExchangeCollector;
use crate::message::chunks::{write_chunk, write_end};
use crate::message::head::Framing;
use crate::mirror::PendingCopies;
use crate::mirror::copy_plan::CopyPlan;
use crate::proxy::client::ClientState;
use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::incoming::IncomingBody;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::policy::headers::map_of;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::link::{BackendLink, Scratch};

/// Reads per poll, for fairness to other tasks.
const READS: usize = 16;

/// The state of an upload.
pub(crate) struct Upload {
    incoming: IncomingBody,
    is_chunked: bool,
    /// Received and not yet written to the master.
    unsent: Vec<u8>,
    written: usize,
    copy: Option<CopyPlan>,
}

/// Why an upload failed.
pub(crate) enum UploadError {
    /// The client aborted, or the body is invalid.
    Client,
    Master(Fault),
}

type UploadSource<'a> = (&'a ClientState, &'a mut SocketStream, &'a mut HeadBuffer);

impl Upload {
    pub(crate) fn new(
        request: &ClientRequest,
        limit: u64,
        copies: Option<PendingCopies>,
        collector: Option<Arc<ExchangeCollector>>,
    ) -> Self {
        // Without a body there is nothing to collect.
        let collector = collector.filter(|_| request.has_body());
        Self {
            incoming: IncomingBody::new(request.body, request.expects),
            is_chunked: request.body == Framing::Chunked,
            unsent: Vec::new(),
            written: 0,
            copy: CopyPlan::new(&request.head, limit, copies, collector),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.incoming.is_complete()
    }

    /// Whether the interim response is partly written, so that it must be completed first.
    pub(crate) fn is_interim_cut(&self) -> bool {
        self.incoming.is_interim_cut()
    }

    pub(crate) fn forget_interim(&mut self) {
        self.incoming.take_interim();
    }

    /// Passes available data on; ready when the upload is complete.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut BackendLink,
        (client, stream, received): UploadSource<'_>,
        request: &ClientRequest,
    ) -> Poll<Result<(), UploadError>> {
        self.send_copies();
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
                self.send_copies();
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
                    // Flushes TLS; errors surface at the next write.
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

    /// Processes received bytes: buffers the body and writes it to the master. Returns
    /// the number consumed.
    fn receive(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut BackendLink,
        (client, request): (&ClientState, &ClientRequest),
        bytes: &[u8],
    ) -> Result<usize, UploadError> {
        client.body_received();
        let mut visitor = UploadVisitor {
            out: &mut self.unsent,
            link: (!self.is_chunked).then_some((cx, link)),
            fault: None,
            copy: self.copy.as_mut(),
            trailers: None,
        };
        let taken = self.incoming.take(bytes, &mut visitor).ok_or(UploadError::Client)?;
        let UploadVisitor { fault, copy, mut trailers, .. } = visitor;
        if let Some(fault) = fault {
            return Err(UploadError::Master(fault));
        }
        if let Some(trailers) = &mut trailers {
            client.clean_trailers(trailers);
            if let Some(copy) = copy {
                copy.trailers(trailers);
            }
        }
        if self.is_chunked && self.is_complete() {
            write_end(&mut self.unsent, request.head.values("trailer"), trailers.as_ref());
        }
        if self.copy.as_ref().is_some_and(CopyPlan::is_obsolete) {
            self.copy = None;
        }
        Ok(taken)
    }

    /// Sends the copies if the request is complete.
    pub(crate) fn send_copies(&mut self) {
        if self.is_complete()
            && let Some(copy) = self.copy.take()
        {
            copy.end(true);
        }
    }
}

/// Passes on and buffers the data of a body.
struct UploadVisitor<'a, 'c> {
    /// Unwritten bytes, framed for the master.
    out: &'a mut Vec<u8>,
    /// For direct writes of unchunked data.
    link: Option<(&'a mut Context<'c>, &'a mut BackendLink)>,
    /// The error of a failed write.
    fault: Option<Fault>,
    copy: Option<&'a mut CopyPlan>,
    trailers: Option<HeaderMap>,
}

impl Visitor for UploadVisitor<'_, '_> {
    fn body(&mut self, bytes: &[u8]) {
        if let Some(copy) = &mut self.copy {
            copy.data(&Bytes::copy_from_slice(bytes));
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
        if let Some(copy) = self.copy.take() {
            copy.end(false);
        }
    }
}
