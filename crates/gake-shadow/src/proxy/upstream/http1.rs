//! A framed request and its response on an HTTP/1.1 connection.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_codec::http1::{Header, ResponseHead, Visitor};
use gake_core::record::Fault;
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

/// Reads per poll, for fairness to other tasks.
const READS: usize = 16;

/// A connection with the request and response on it.
pub(crate) struct Http1 {
    link: BackendLink,
    /// The unwritten rest of the request.
    writer: Option<RequestWriter>,
    /// The error of a failed write; the response may have arrived already.
    broken: Option<Fault>,
    response: BufferedResponse,
    is_reusable: bool,
}

/// The received and not yet consumed part of a response.
#[derive(Default)]
struct BufferedResponse {
    head: Option<BackendResponseHead>,
    frames: BodyFrames,
    /// Remaining bytes of the body, if its length is known.
    left: Option<u64>,
    /// The end of the response; `None` while more may arrive.
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

    /// The connection, if it is reusable.
    pub(crate) fn into_link(self) -> Option<BackendLink> {
        self.is_reusable.then_some(self.link)
    }

    /// After a protocol switch: the stream, and the bytes read after the response.
    pub(crate) fn into_stream(self) -> (SocketStream, Bytes) {
        self.link.into_stream()
    }

    pub(crate) fn start(&mut self, head: &RequestHead, is_upgrade: bool, body: SendBody) {
        if is_upgrade {
            self.link.start_upgrade();
        } else {
            self.link.start(*head.method() == Method::HEAD);
        }
        self.is_reusable = false;
        self.writer = Some(RequestWriter::new(head, body));
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.writer.as_ref().is_some_and(RequestWriter::is_untouched)
    }

    pub(crate) fn poll_head(
        &mut self,
        scratch: &Scratch,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BackendResponseHead, Fault>> {
        ready!(self.poll(scratch, cx))?;
        Poll::Ready(match (self.response.head.take(), self.response.end) {
            (Some(head), _) => Ok(head),
            (None, Some(Err(fault))) => Err(fault),
            (None, _) => Err(Fault::Malformed("not an HTTP/1.1 response")),
        })
    }

    /// The next frame of the response's body.
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

    /// Whether the response is complete and consumed.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.response.end, Some(Ok(()))) && self.response.frames.is_empty()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.response.left {
            _ if self.is_at_end() => SizeHint::with_exact(0),
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::new(),
        }
    }

    /// Writes the request, and reads until there is a head, a frame or the end.
    fn poll(&mut self, scratch: &Scratch, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.broken.is_none()
            && let Some(writer) = &mut self.writer
        {
            match writer.poll(&mut self.link, cx) {
                Poll::Ready(Ok(())) => self.writer = None,
                Poll::Ready(Err(UploadError::Master(fault))) => self.broken = Some(fault),
                // The client aborted its body, so the request cannot be completed.
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
