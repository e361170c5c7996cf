//! What comes on the streams of a connection of HTTP/2, taken out of the codec as soon as it is
//! there: one who does not read a body holds up no other stream of the connection.
//!
//! What waits here for its reader is bounded by the window of its stream: the other side may send
//! more only when something has been passed on. Small pieces that wait are put together, so that
//! they take no more memory than their bytes.

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

use crate::message::line::digits;

/// Pieces below this are put together while they wait.
const SMALL: usize = 4096;

/// The streams of one connection that are read.
#[derive(Debug, Default)]
pub(crate) struct Intakes(RefCell<Vec<Rc<RefCell<Intake>>>>);

/// What has come on one stream and was not passed on.
#[derive(Debug)]
struct Intake {
    source: IntakeSource,
    /// The head of an answer.
    head: Option<Result<Response<()>, h2::Error>>,
    flow: Option<FlowControl>,
    segments: VecDeque<Bytes>,
    /// What came behind `pieces`.
    small: BytesMut,
    trailers: Option<HeaderMap>,
    /// What is behind all that; `None` when more may come.
    end: Option<Result<(), h2::Error>>,
    reader: Option<Waker>,
}

/// Where an intake takes from.
#[derive(Debug)]
enum IntakeSource {
    /// The head of an answer is awaited.
    Head(ResponseFuture),
    Body(RecvStream),
    /// The body has ended; there may be fields behind it.
    Trailers(RecvStream),
    Ended,
}

/// A body that comes on a stream. Dropped before its end, the stream is reset.
#[derive(Debug)]
pub(crate) struct StreamBody {
    intake: Rc<RefCell<Intake>>,
    /// Bytes that are still to come, where the head says it.
    left: Option<u64>,
    /// The task that passes on the rest of the request that this is the answer to.
    upload: Option<JoinHandle<()>>,
}

impl Intakes {
    /// The answer to a request, as it comes.
    pub(crate) fn response(&self, response: ResponseFuture) -> StreamBody {
        self.add(IntakeSource::Head(response), None)
    }

    /// The body of a request that has this head.
    pub(crate) fn request(&self, mut body: RecvStream, headers: &HeaderMap) -> StreamBody {
        let flow = body.flow_control().clone();
        let mut body = self.add(IntakeSource::Body(body), Some(flow));
        body.left = length(headers);
        // Some of it may be there already.
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
        self.0.borrow_mut().push(Rc::clone(&intake));
        StreamBody { intake, left: None, upload: None }
    }

    /// Takes out all that has come. To be called whenever the connection has read.
    pub(crate) fn take_in(&self) {
        self.0.borrow_mut().retain(|intake| intake.borrow_mut().take_in());
    }
}

impl Intake {
    /// Takes out what has come; whether more may come.
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

    /// Takes out the next thing that has come, if there is one.
    fn take_next(&mut self) -> bool {
        // Only the connection brings anything, and its driver looks here afterwards.
        let mut cx = Context::from_waker(Waker::noop());
        match &mut self.source {
            IntakeSource::Head(response) => match Pin::new(response).poll(&mut cx) {
                Poll::Pending => false,
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
        // A reader that waits takes the first one now.
        let is_taken = self.reader.is_some() && self.segments.is_empty() && self.small.is_empty();
        if !is_taken && data.len() < SMALL {
            return self.small.extend_from_slice(&data);
        }
        if !self.small.is_empty() {
            self.segments.push_back(std::mem::take(&mut self.small).freeze());
        }
        self.segments.push_back(data);
    }

    /// The next piece, whose room the other side gets back.
    fn next_segment(&mut self) -> Option<Bytes> {
        let data = self.segments.pop_front().or_else(|| {
            (!self.small.is_empty()).then(|| std::mem::take(&mut self.small).freeze())
        })?;
        if let Some(flow) = &mut self.flow {
            // A stream that was reset has no more room to give.
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
    /// The head of an answer, once.
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

    /// Ends this task when the answer is not wanted any more.
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
                // Who asks again hears it again.
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
        // What is not read is given back at once, and the stream ends when it is not sent on.
        let unread = intake.segments.iter().map(Bytes::len).sum::<usize>() + intake.small.len();
        if let Some(flow) = &mut intake.flow {
            let _ = flow.release_capacity(unread);
        }
        (intake.source, intake.flow) = (IntakeSource::Ended, None);
        (intake.segments, intake.small) = (VecDeque::new(), BytesMut::new());
    }
}

/// The length that a head says once.
pub(crate) fn length(headers: &HeaderMap) -> Option<u64> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    match (lengths.next(), lengths.next()) {
        (Some(length), None) => digits(length.as_bytes()),
        _ => None,
    }
}
