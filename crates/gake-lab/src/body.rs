//! Response bodies, generated as they are sent, in constant memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::abort::Abort;
use crate::flight::Flight;
use crate::grpc::replies::Replies;
use crate::io::FlushWatch;
use crate::timer::{Sleep, Timer};

/// The outcome of serving a request.
pub(crate) type ResponseResult = Result<http::Response<ResponseBody>, Abort>;

/// The repeated content of `/bytes`.
static FILL: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// A response body, and the request that completes with it.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    source: BodySource,
    /// The request and its status, until the body has been handed over.
    flight: Option<(Flight, u16)>,
}

#[derive(Debug)]
pub(crate) enum BodySource {
    Whole(Bytes),
    /// This many filler bytes.
    Fill(u64),
    Chunks(Chunks),
    /// Promises more bytes than it sends, then aborts.
    Aborted(AbortedBody),
    /// The messages of a gRPC call.
    Grpc(Replies),
}

/// `count` chunks, one per `every`.
#[derive(Debug)]
pub(crate) struct Chunks {
    next: u64,
    count: u64,
    every: Duration,
    /// The text before and after each chunk's number.
    around: (&'static str, &'static str),
    /// The instant of the first chunk, from which the others are scheduled.
    start: Option<Instant>,
    sleep: Option<Sleep>,
    timer: Arc<Timer>,
}

/// Sends `left` bytes, waits until they are in the kernel, then aborts.
#[derive(Debug)]
pub(crate) struct AbortedBody {
    left: u64,
    promised: u64,
    how: Abort,
    is_waiting: bool,
    flushes: Arc<FlushWatch>,
}

impl Chunks {
    pub(crate) fn new(
        count: u64,
        every: Duration,
        around: (&'static str, &'static str),
        timer: Arc<Timer>,
    ) -> Chunks {
        Chunks { next: 0, count, every, around, start: None, sleep: None, timer }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        if let Some(sleep) = &mut self.sleep {
            std::task::ready!(Pin::new(sleep).poll(cx));
            self.sleep = None;
        }
        let (before, after) = self.around;
        let chunk = Bytes::from(format!("{before} {}{after}", self.next));
        self.next += 1;
        if self.next < self.count && !self.every.is_zero() {
            let start = *self.start.get_or_insert_with(Instant::now);
            let offset_ns = self.every.as_nanos().saturating_mul(self.next.into());
            let offset = Duration::from_nanos(u64::try_from(offset_ns).unwrap_or(u64::MAX));
            // Beyond the range of Instant: practically never.
            let due = start.checked_add(offset).unwrap_or(start + crate::duration::LONGEST);
            self.sleep = Some(self.timer.sleep_until(due));
        }
        Poll::Ready(chunk)
    }
}

impl AbortedBody {
    /// Promises 1 KB more than the `after` bytes that it sends.
    pub(crate) fn new(after: u64, how: Abort, flushes: Arc<FlushWatch>) -> AbortedBody {
        let promised = after.saturating_add(1024);
        AbortedBody { left: after, promised, how, is_waiting: false, flushes }
    }

    /// Ready when every byte so far is in the kernel.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_waiting && self.flushes.is_flushed() {
            return Poll::Ready(());
        }
        self.is_waiting = true;
        self.flushes.wake_at_flush(cx.waker());
        Poll::Pending
    }
}

impl ResponseBody {
    /// A small body of a request that has been counted already.
    pub(crate) fn counted(bytes: Bytes) -> ResponseBody {
        ResponseBody { source: BodySource::Whole(bytes), flight: None }
    }

    /// A body that completes `flight`. With `is_bodiless` (HEAD) only its length is used.
    pub(crate) fn new(
        source: BodySource,
        flight: Flight,
        status: u16,
        is_bodiless: bool,
    ) -> ResponseBody {
        let mut body = ResponseBody { source, flight: Some((flight, status)) };
        // hyper takes a whole body together with the head.
        if is_bodiless || matches!(body.source, BodySource::Whole(_)) || body.is_end_stream() {
            body.settle();
        }
        body
    }

    fn settle(&mut self) {
        if let Some((flight, status)) = self.flight.take() {
            flight.responded(status);
        }
    }
}

/// Takes at most one buffer's worth off `left`.
fn fill(left: &mut u64) -> Bytes {
    let n = usize::try_from(*left).map_or(FILL.len(), |left| left.min(FILL.len()));
    *left -= n as u64;
    Bytes::from_static(&FILL[..n])
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        let this = &mut *self;
        if this.is_end_stream() {
            return Poll::Ready(None);
        }
        let data = match &mut this.source {
            BodySource::Whole(bytes) => std::mem::take(bytes),
            BodySource::Fill(left) => fill(left),
            BodySource::Chunks(chunks) => std::task::ready!(chunks.poll_next(cx)),
            BodySource::Grpc(replies) => {
                let frame = std::task::ready!(replies.poll_next(cx));
                if replies.is_over() {
                    this.settle();
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            BodySource::Aborted(aborted) if aborted.left > 0 => fill(&mut aborted.left),
            BodySource::Aborted(aborted) => {
                std::task::ready!(aborted.poll_flushed(cx));
                if let Some((flight, _)) = this.flight.take() {
                    flight.cut();
                }
                return Poll::Ready(Some(Err(aborted.how)));
            }
        };
        if this.is_end_stream() {
            this.settle();
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            BodySource::Whole(bytes) => bytes.is_empty(),
            BodySource::Fill(left) => *left == 0,
            BodySource::Chunks(chunks) => chunks.next >= chunks.count,
            BodySource::Aborted(_) => false,
            BodySource::Grpc(replies) => replies.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::Fill(left) => SizeHint::with_exact(*left),
            BodySource::Chunks(_) | BodySource::Grpc(_) => SizeHint::default(),
            BodySource::Aborted(aborted) => SizeHint::with_exact(aborted.promised),
        }
    }
}
