//! Takes received data out of the HTTP/2 codec immediately, so that a reader that stalls does not
//! block the other streams of its connection.
//!
//! Buffered data is bounded by the window of its stream, which opens as the data is consumed. Small
//! segments are joined to save memory.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use h2::client::ResponseFuture;
use h2::{FlowControl, Reason, RecvStream};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use super::status_watch::{ExpectedHead, ExpectedHeads};
use crate::message::line::digits;

/// Segments below this size are joined while they wait.
const SMALL: usize = 4096;

/// The intakes of one connection.
#[derive(Debug, Default)]
pub(crate) struct Intakes {
    all: RefCell<Vec<Rc<RefCell<Intake>>>>,
    /// Of a connection to a backend: the heads that it waits for.
    heads: ExpectedHeads,
}

/// The received and not yet consumed data of one stream.
#[derive(Debug)]
struct Intake {
    source: IntakeSource,
    head: Option<Result<Response<()>, h2::Error>>,
    flow: Option<FlowControl>,
    segments: VecDeque<Bytes>,
    /// Small data received after `segments`.
    small: BytesMut,
    trailers: Option<HeaderMap>,
    /// The end of the stream; `None` while more may arrive.
    end: Option<Result<(), h2::Error>>,
    reader: Option<Waker>,
}

/// The source of an intake.
#[derive(Debug)]
enum IntakeSource {
    /// Waiting for a response's head.
    Head(ResponseFuture, ExpectedHead),
    Body(RecvStream),
    /// Waiting for trailers.
    Trailers(RecvStream),
    Ended,
}

/// The body of a stream. Dropping it before its end resets the stream.
#[derive(Debug)]
pub(crate) struct StreamBody {
    intake: Rc<RefCell<Intake>>,
    /// Remaining bytes, if the length is known.
    left: Option<u64>,
    /// The task that uploads the rest of the request, for a response.
    upload: Option<JoinHandle<()>>,
}

impl Intakes {
    /// Intakes of a connection to a backend, on which a
    /// [`StatusWatch`](super::status_watch::StatusWatch) watches `heads`.
    pub(crate) fn watched(heads: ExpectedHeads) -> Self {
        Self { all: RefCell::default(), heads }
    }

    pub(crate) fn response(&self, response: ResponseFuture) -> StreamBody {
        let expected = self.heads.expect(response.stream_id().as_u32());
        self.add(IntakeSource::Head(response, expected), None)
    }

    pub(crate) fn request(&self, mut body: RecvStream, headers: &HeaderMap) -> StreamBody {
        let flow = body.flow_control().clone();
        let mut body = self.add(IntakeSource::Body(body), Some(flow));
        body.left = length(headers);
        // Some of it may have arrived.
        body.intake.borrow_mut().take_in();
        body
    }

    fn add(&self, source: IntakeSource, flow: Option<FlowControl>) -> StreamBody {
        let intake = Rc::new(RefCell::new(Intake {
            source,
            head: None,
            flow,
            segments: VecDeque::new(),
            small: BytesMut::new(),
            trailers: None,
            end: None,
            reader: None,
        }));
        self.all.borrow_mut().push(Rc::clone(&intake));
        StreamBody { intake, left: None, upload: None }
    }

    /// Takes all received data. Must be called after each read of the connection.
    pub(crate) fn take_in(&self) {
        self.all.borrow_mut().retain(|intake| intake.borrow_mut().take_in());
    }
}

impl Intake {
    /// Takes received data; returns whether more may arrive.
    fn take_in(&mut self) -> bool {
        let mut took = false;
        while self.take_next() {
            took = true;
        }
        if took && let Some(reader) = self.reader.take() {
            reader.wake();
        }
        !matches!(self.source, IntakeSource::Ended)
    }

    /// Takes the next received item; `false` if there is none.
    fn take_next(&mut self) -> bool {
        // No waker: the driver of the connection calls this after each read.
        let mut cx = Context::from_waker(Waker::noop());
        match &mut self.source {
            IntakeSource::Head(response, expected) => match Pin::new(response).poll(&mut cx) {
                Poll::Pending => false,
                // Dropping the response resets the stream.
                Poll::Ready(Ok(_)) if expected.lacks_status() => {
                    self.head = Some(Err(Reason::PROTOCOL_ERROR.into()));
                    self.source = IntakeSource::Ended;
                    true
                }
                Poll::Ready(Ok(response)) => {
                    let (head, mut body) = response.into_parts();
                    self.head = Some(Ok(Response::from_parts(head, ())));
                    self.flow = Some(body.flow_control().clone());
                    self.source = IntakeSource::Body(body);
                    true
                }
                Poll::Ready(Err(error)) => {
                    self.head = Some(Err(error));
                    self.source = IntakeSource::Ended;
                    true
                }
            },
            IntakeSource::Body(body) => match body.poll_data(&mut cx) {
                Poll::Pending => false,
                Poll::Ready(Some(Ok(data))) => {
                    self.keep(data);
                    true
                }
                Poll::Ready(Some(Err(error))) => self.ended(Err(error)),
                Poll::Ready(None) => {
                    if let IntakeSource::Body(body) =
                        std::mem::replace(&mut self.source, IntakeSource::Ended)
                    {
                        self.source = IntakeSource::Trailers(body);
                    }
                    true
                }
            },
            IntakeSource::Trailers(body) => match body.poll_trailers(&mut cx) {
                Poll::Pending => false,
                Poll::Ready(Ok(trailers)) => {
                    self.trailers = trailers;
                    self.ended(Ok(()))
                }
                Poll::Ready(Err(error)) => self.ended(Err(error)),
            },
            IntakeSource::Ended => false,
        }
    }

    fn ended(&mut self, end: Result<(), h2::Error>) -> bool {
        self.source = IntakeSource::Ended;
        self.end = Some(end);
        true
    }

    fn keep(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        // A waiting reader consumes the first one immediately.
        let is_taken = self.reader.is_some() && self.segments.is_empty() && self.small.is_empty();
        if !is_taken && data.len() < SMALL {
            return self.small.extend_from_slice(&data);
        }
        if !self.small.is_empty() {
            self.segments.push_back(std::mem::take(&mut self.small).freeze());
        }
        self.segments.push_back(data);
    }

    /// The next segment; releases its capacity to the peer.
    fn next_segment(&mut self) -> Option<Bytes> {
        let data = self.segments.pop_front().or_else(|| {
            (!self.small.is_empty()).then(|| std::mem::take(&mut self.small).freeze())
        })?;
        if let Some(flow) = &mut self.flow {
            // Fails on a reset stream.
            let _ = flow.release_capacity(data.len());
        }
        Some(data)
    }

    fn is_at_end(&self) -> bool {
        matches!(self.end, Some(Ok(())))
            && self.segments.is_empty()
            && self.small.is_empty()
            && self.trailers.is_none()
    }

    fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
    }
}

impl StreamBody {
    /// The head of a response, once.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<()>, h2::Error>> {
        let mut intake = self.intake.borrow_mut();
        let Some(head) = intake.head.take() else {
            intake.wait(cx);
            return Poll::Pending;
        };
        if let Ok(head) = &head {
            self.left = length(head.headers());
        }
        Poll::Ready(head)
    }

    /// Aborts this task if the body is dropped before its end.
    pub(crate) fn with_upload(mut self, upload: JoinHandle<()>) -> Self {
        self.upload = Some(upload);
        self
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = &mut *self;
        let mut intake = this.intake.borrow_mut();
        if let Some(data) = intake.next_segment() {
            this.left = this.left.map(|left| left.saturating_sub(data.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(trailers) = intake.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        match intake.end.take() {
            Some(Ok(())) => {
                intake.end = Some(Ok(()));
                Poll::Ready(None)
            }
            Some(Err(error)) => {
                // Repeated polls repeat the error.
                let reason = error.reason().unwrap_or(Reason::INTERNAL_ERROR);
                intake.end = Some(Err(reason.into()));
                Poll::Ready(Some(Err(error)))
            }
            None => {
                intake.wait(cx);
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.intake.borrow().is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            Some(left) => SizeHint::with_exact(left),
            None if self.is_end_stream() => SizeHint::with_exact(0),
            None => SizeHint::new(),
        }
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        if !self.is_end_stream()
            && let Some(upload) = self.upload.take()
        {
            upload.abort();
        }
        let mut intake = self.intake.borrow_mut();
        // Releases the capacity of unread data; dropping the source resets the stream.
        let unread = intake.segments.iter().map(Bytes::len).sum::<usize>() + intake.small.len();
        if let Some(flow) = &mut intake.flow {
            let _ = flow.release_capacity(unread);
        }
        (intake.source, intake.flow) = (IntakeSource::Ended, None);
        (intake.segments, intake.small) = (VecDeque::new(), BytesMut::new());
    }
}

/// The value of a single `Content-Length`.
pub(crate) fn length(headers: &HeaderMap) -> Option<u64> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    match (lengths.next(), lengths.next()) {
        (Some(length), None) => digits(length.as_bytes()),
        _ => None,
    }
}
