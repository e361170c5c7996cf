//! The task of an HTTP/2 connection, which owns its socket.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use gake_codec::http2::Violation;
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{ErrorCode, Fault, Phase};

use super::http2_link::Http2Link;
use super::sampler::TcpSampler;
use crate::net::fault;
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;

const READS_MAX: usize = 16;

/// Reads and writes a connection until it ends.
pub(super) struct Http2Task<C> {
    pub(super) stream: Stream,
    pub(super) link: Rc<Http2Link>,
    pub(super) scratch: Rc<Scratch>,
    pub(super) sampler: TcpSampler,
    pub(super) clock: C,
    /// The fault that ended writing; responses may still come.
    pub(super) broken: Option<Fault>,
    pub(super) step: TaskStep,
}

/// The next step of the task. Requests that follow responses are batched until no more responses are
/// readable: a write costs far more than a poll for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TaskStep {
    #[default]
    Write,
    /// Responses have come: yield to the runtime's poll for events before writing.
    Yield,
    /// The runtime has polled: read before writing.
    Read,
}

impl<C: Clock> Http2Task<C> {
    /// Runs until the connection has ended or is abandoned.
    pub(super) async fn run(mut self) {
        let fault = poll_fn(|cx| self.poll(cx)).await;
        // One try to write the GOAWAY.
        poll_fn(|cx| {
            let _ = self.write(cx);
            Poll::Ready(())
        })
        .await;
        let now = self.clock.now();
        let Self { stream, link, .. } = self;
        drop(stream);
        link.end(fault, now);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Fault> {
        self.link.register_task(cx);
        if self.link.capacity_watch.is_abandoned() {
            self.link.codec().borrow_mut().close(ErrorCode::NoError);
            return Poll::Ready(Fault::ClosedEarly(Phase::FirstByte));
        }
        if let Some(polled) = self.gather(cx) {
            return polled;
        }
        let is_blocked = self.broken.is_none() && self.write(cx).is_pending();
        self.link.note_stall(&self.clock);
        for _ in 0..READS_MAX {
            if self.link.has_unread() {
                return Poll::Pending;
            }
            match self.read(cx) {
                Poll::Ready(None) => self.step = TaskStep::Yield,
                Poll::Ready(Some(fault)) => return Poll::Ready(fault),
                Poll::Pending => {
                    // Completed exchanges queue their next requests first; one write sends all.
                    if !is_blocked && self.broken.is_none() && self.has_output() {
                        cx.waker().wake_by_ref();
                    }
                    return match self.broken {
                        // A failed TLS session delivers nothing more.
                        Some(fault @ Fault::Tls(_)) => Poll::Ready(fault),
                        _ => Poll::Pending,
                    };
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Defers a write to batch more requests; `None` if it is time to write.
    fn gather(&mut self, cx: &mut Context<'_>) -> Option<Poll<Fault>> {
        match self.step {
            TaskStep::Yield if self.broken.is_none() && self.gathers() => {
                self.step = TaskStep::Read;
                // Wakes this task after the runtime's poll for events.
                let _ = pin!(tokio::task::yield_now()).poll(cx);
                Some(Poll::Pending)
            }
            TaskStep::Read if !self.link.has_unread() => {
                self.step = TaskStep::Write;
                match self.read(cx) {
                    Poll::Ready(Some(fault)) => Some(Poll::Ready(fault)),
                    Poll::Ready(None) => {
                        // Completed exchanges queue their next requests first.
                        cx.waker().wake_by_ref();
                        Some(Poll::Pending)
                    }
                    Poll::Pending => None,
                }
            }
            _ => {
                self.step = TaskStep::Write;
                None
            }
        }
    }

    /// Whether to batch: more streams are live, and there is output.
    fn gathers(&self) -> bool {
        let mut codec = self.link.codec().borrow_mut();
        codec.live() > 1 && !codec.output().is_empty()
    }

    fn has_output(&self) -> bool {
        !self.link.codec().borrow_mut().output().is_empty()
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut codec = self.link.codec().borrow_mut();
        loop {
            let output = codec.output();
            if output.is_empty() {
                break;
            }
            match ready!(self.stream.poll_write(cx, output)) {
                Ok(0) => self.broken = Some(Fault::Write),
                Ok(written) => {
                    codec.wrote(written);
                    continue;
                }
                Err(error) => self.broken = Some(fault::of_write(&error)),
            }
            return Poll::Ready(());
        }
        if let Err(error) = ready!(self.stream.poll_flush(cx)) {
            self.broken = Some(fault::of_write(&error));
        }
        Poll::Ready(())
    }

    /// Reads once; the fault that ends the connection, if any.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fault>> {
        let Self { stream, link, clock, scratch, .. } = self;
        let read = scratch.read(stream, cx, |bytes| {
            (!bytes.is_empty()).then(|| {
                let now = clock.now();
                (now, link.receive(bytes, now))
            })
        });
        let (now, received) = match ready!(read) {
            Ok(Some(received)) => received,
            Ok(None) => return Poll::Ready(Some(self.closed())),
            Err(error) => return Poll::Ready(Some(self.failed(&error))),
        };
        self.sample(now);
        self.link.update_capacity();
        if let Err(violation) = received {
            self.link.codec().borrow_mut().close(violation.code());
            return Poll::Ready(Some(of_violation(violation)));
        }
        Poll::Ready(None)
    }

    #[inline]
    fn sample(&mut self, now: Nanos) {
        if let Some(sample) = self.sampler.sample(now, &self.stream) {
            self.link.sample.set(Some(sample));
        }
    }

    /// The fault of a connection that the server has closed.
    fn closed(&self) -> Fault {
        let goaway = self.link.codec().borrow().goaway_code();
        match (self.broken, goaway) {
            (_, Some(code)) => Fault::Goaway(code),
            (Some(broken), None) => broken,
            (None, None) => Fault::ClosedEarly(Phase::FirstByte),
        }
    }

    fn failed(&self, error: &io::Error) -> Fault {
        let goaway = self.link.codec().borrow().goaway_code();
        match (fault::of_read(error, Phase::FirstByte), self.broken, goaway) {
            (fault @ Fault::Tls(_), ..) => fault,
            (_, _, Some(code)) => Fault::Goaway(code),
            (_, Some(broken), None) => broken,
            (fault, None, None) => fault,
        }
    }
}

fn of_violation(violation: Violation) -> Fault {
    if violation.is_too_large() {
        Fault::TooLarge(violation.name())
    } else {
        Fault::Malformed(violation.name())
    }
}
