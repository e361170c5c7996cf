//! The bodies of answers: made as they are sent, in constant memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::abort::Cut;
use crate::flight::Flight;
use crate::grpc::replies::Replies;
use crate::io::FlushWatch;
use crate::timer::{Sleep, Timer};

/// What `/bytes` sends, again and again.
static FILL: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// A body, and the request that ends with it.
#[derive(Debug)]
pub(crate) struct Answer {
    source: Source,
    /// The request and its status, until the body has been handed over.
    flight: Option<(Flight, u16)>,
}

/// Where a body comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// All of it is there.
    Whole(Bytes),
    /// A number of bytes of filling.
    Fill(u64),
    /// Pieces at regular instants.
    Chunks(Chunks),
    /// A body that promises more than it gives.
    Broken(Broken),
    /// The messages of a call of gRPC.
    Grpc(Replies),
}

/// `count` chunks, one each `every`.
#[derive(Debug)]
pub(crate) struct Chunks {
    next: u64,
    count: u64,
    every: Duration,
    /// What is before and after the number of each.
    around: (&'static str, &'static str),
    /// The instant of the first chunk; the others keep to its grid.
    start: Option<Instant>,
    sleep: Option<Sleep>,
    timer: Arc<Timer>,
}

/// Gives `left` bytes, waits until they are in the kernel, then fails.
#[derive(Debug)]
pub(crate) struct Broken {
    left: u64,
    promised: u64,
    how: Cut,
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
            // An instant beyond the clock's range is as good as never.
            let due = start.checked_add(offset).unwrap_or(start + crate::duration::LONGEST);
            self.sleep = Some(self.timer.sleep_until(due));
        }
        Poll::Ready(chunk)
    }
}

impl Broken {
    /// Promises somewhat more than the `after` bytes it gives.
    pub(crate) fn new(after: u64, how: Cut, flushes: Arc<FlushWatch>) -> Broken {
        let promised = after.saturating_add(1024);
        Broken { left: after, promised, how, is_waiting: false, flushes }
    }

    /// Ready when everything given is in the kernel.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_waiting && self.flushes.is_flushed() {
            return Poll::Ready(());
        }
        self.is_waiting = true;
        self.flushes.wake_at_flush(cx.waker());
        Poll::Pending
    }
}

impl Answer {
    /// A small body whose request has been counted already.
    pub(crate) fn counted(bytes: Bytes) -> Answer {
        Answer { source: Source::Whole(bytes), flight: None }
    }

    /// A body with which `flight` ends. `is_bodiless` is an answer to HEAD,
    /// whose body is only measured.
    pub(crate) fn new(source: Source, flight: Flight, status: u16, is_bodiless: bool) -> Answer {
        let mut answer = Answer { source, flight: Some((flight, status)) };
        // hyper takes what is whole together with the head, in one go.
        if is_bodiless || matches!(answer.source, Source::Whole(_)) || answer.is_end_stream() {
            answer.settle();
        }
        answer
    }

    fn settle(&mut self) {
        if let Some((flight, status)) = self.flight.take() {
            flight.answered(status);
        }
    }
}

/// Takes up to one filling's worth off `left`.
fn fill(left: &mut u64) -> Bytes {
    let n = usize::try_from(*left).map_or(FILL.len(), |left| left.min(FILL.len()));
    *left -= n as u64;
    Bytes::from_static(&FILL[..n])
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        if this.is_end_stream() {
            return Poll::Ready(None);
        }
        let data = match &mut this.source {
            Source::Whole(bytes) => std::mem::take(bytes),
            Source::Fill(left) => fill(left),
            Source::Chunks(chunks) => std::task::ready!(chunks.poll_next(cx)),
            Source::Grpc(replies) => {
                let frame = std::task::ready!(replies.poll_next(cx));
                if replies.is_over() {
                    this.settle();
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            Source::Broken(broken) if broken.left > 0 => fill(&mut broken.left),
            Source::Broken(broken) => {
                std::task::ready!(broken.poll_flushed(cx));
                if let Some((flight, _)) = this.flight.take() {
                    flight.cut();
                }
                return Poll::Ready(Some(Err(broken.how)));
            }
        };
        if this.is_end_stream() {
            this.settle();
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Fill(left) => *left == 0,
            Source::Chunks(chunks) => chunks.next >= chunks.count,
            Source::Broken(_) => false,
            Source::Grpc(replies) => replies.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Fill(left) => SizeHint::with_exact(*left),
            Source::Chunks(_) | Source::Grpc(_) => SizeHint::default(),
            Source::Broken(broken) => SizeHint::with_exact(broken.promised),
        }
    }
}
