//! A request in parts and its answer on a connection of HTTP/1.1.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_core::record::Fault;
use gake_wire::http1::{Header, ResponseHead, Visitor};
use http::Method;
use http_body::{Frame, SizeHint};

use crate::message::head::RequestHead;
use crate::message::response_head::BackendResponseHead;
use crate::proxy::body_frames::BodyFrames;
use crate::proxy::client::upload::UploadError;
use crate::proxy::exchange::request_body::SendBody;
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::link::{BackendLink, Scratch};
use crate::proxy::upstream::request_writer::RequestWriter;

/// How often a connection is read in one turn: others wait for theirs.
const READS: usize = 16;

/// A connection, the request on it, and the answer.
pub(crate) struct Http1 {
    link: BackendLink,
    /// What is left of the request.
    writer: Option<RequestWriter>,
    /// Why no more of the request can be written; an answer may have come before.
    broken: Option<Fault>,
    response: BufferedResponse,
    /// The connection can take another request.
    is_reusable: bool,
}

/// What has come of an answer and was not passed on.
#[derive(Default)]
struct BufferedResponse {
    head: Option<BackendResponseHead>,
    frames: BodyFrames,
    /// Bytes that are still to be passed on, where the head says it.
    left: Option<u64>,
    /// What is behind all that; `None` when more may come.
    end: Option<Result<(), Fault>>,
}

impl Http1 {
    pub(crate) fn new(link: BackendLink) -> Self {
        Self {
            link,
            writer: None,
            broken: None,
            response: BufferedResponse::default(),
            is_reusable: true,
        }
    }

    /// The connection, if it can take another request.
    pub(crate) fn into_link(self) -> Option<BackendLink> {
        self.is_reusable.then_some(self.link)
    }

    /// After an answer that switched protocols: the stream, and what was read beyond the answer.
    pub(crate) fn into_stream(self) -> (SocketStream, Bytes) {
        self.link.into_stream()
    }

    /// Begins a request.
    pub(crate) fn start(&mut self, head: &RequestHead, is_upgrade: bool, body: SendBody) {
        if is_upgrade {
            self.link.start_upgrade();
        } else {
            self.link.start(*head.method() == Method::HEAD);
        }
        self.is_reusable = false;
        self.writer = Some(RequestWriter::new(head, body));
    }

    /// Whether nothing of the request has been written.
    pub(crate) fn is_untouched(&self) -> bool {
        self.writer.as_ref().is_some_and(RequestWriter::is_untouched)
    }

    /// The head of the answer.
    pub(crate) fn poll_head(
        &mut self,
        scratch: &Scratch,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BackendResponseHead, Fault>> {
        ready!(self.poll(scratch, cx))?;
        Poll::Ready(match (self.response.head.take(), self.response.end) {
            (Some(head), _) => Ok(head),
            (None, Some(Err(fault))) => Err(fault),
            (None, _) => Err(Fault::Malformed("not an HTTP/1.1 answer")),
        })
    }

    /// The next part of the answer's body.
    pub(crate) fn poll_body(
        &mut self,
        scratch: &Scratch,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if !self.response.has_next() {
            ready!(self.poll(scratch, cx))?;
        }
        let response = &mut self.response;
        if let Some(frame) = response.frames.next() {
            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
            response.left = response.left.map(|left| left.saturating_sub(length));
            return Poll::Ready(Some(Ok(frame)));
        }
        Poll::Ready(response.end.and_then(Result::err).map(Err))
    }

    /// Whether nothing more of the answer comes.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.response.end, Some(Ok(()))) && self.response.frames.is_empty()
    }

    /// How many bytes of the answer's body come, where that is known.
    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.response.left {
            _ if self.is_at_end() => SizeHint::with_exact(0),
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::new(),
        }
    }

    /// Writes what is left of the request, and reads until something of the answer has come.
    fn poll(&mut self, scratch: &Scratch, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.broken.is_none()
            && let Some(writer) = &mut self.writer
        {
            match writer.poll(&mut self.link, cx) {
                Poll::Ready(Ok(())) => self.writer = None,
                Poll::Ready(Err(UploadError::Master(fault))) => self.broken = Some(fault),
                // The client is to blame, and the backend waits for the rest.
                Poll::Ready(Err(UploadError::Client)) => return Poll::Ready(Err(Fault::Write)),
                Poll::Pending => {}
            }
        }
        for _ in 0..READS {
            if self.response.has_next() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.link.poll_read(cx, scratch, &mut self.response)) {
                Ok(Some(response)) => {
                    self.response.end = Some(Ok(()));
                    self.is_reusable = response.reusable() && self.writer.is_none();
                }
                Ok(None) => {}
                Err(fault) => self.response.end = Some(Err(self.broken.unwrap_or(fault))),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl BufferedResponse {
    /// Whether there is something to be told.
    fn has_next(&self) -> bool {
        self.head.is_some() || !self.frames.is_empty() || self.end.is_some()
    }
}

impl Visitor for BufferedResponse {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let Some(head) = BackendResponseHead::of_http1(head) else { return };
        let is_coded = head.values("transfer-encoding").next().is_some();
        self.left = head.length().filter(|_| !is_coded);
        self.head = Some(head);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.frames.body(bytes);
    }

    fn wants_trailers(&self) -> bool {
        true
    }

    fn trailers(&mut self, trailers: &[Header<'_>]) {
        self.frames.trailers(trailers);
    }
}
