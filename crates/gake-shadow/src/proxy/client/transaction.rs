//! Sends one request to the master and passes the response to the client, on the direct path.
//!
//! Idle transactions own no buffers: reads use the thread's scratch buffer, writes its spare one.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use gake_core::record::Fault;
use tokio::io::AsyncWrite;

use crate::collect::OutcomeSlot;
use crate::proxy::client::request::ClientRequest;
use crate::proxy::client::response_writer::{ResponseContext, ResponseState, ResponseWriter};
use crate::proxy::client::side::ClientSide;
use crate::proxy::client::upload::{Upload, UploadError};
use crate::proxy::state::count;
use crate::proxy::upstream::link::{BackendLink, SWITCHING};

/// Reads per poll, for fairness to other tasks.
const READS: usize = 16;

#[derive(Debug, Clone, Copy)]
pub(crate) enum TransactionEnd {
    Answered,
    /// The protocol was switched.
    Switched,
    /// There is no response to pass on.
    Failed(Fault),
    /// The response ended early; its beginning was passed on.
    Aborted(Fault),
    /// The client aborted the request's body.
    BodyAborted,
    /// The client has disconnected.
    Gone,
    TooSlow,
}

pub(crate) struct Transaction<'a, 'n> {
    side: &'a mut ClientSide<'n>,
    request: &'a ClientRequest,
    /// The head for the master.
    head: &'a [u8],
    pub(crate) link: Option<BackendLink>,
    /// Bytes of the head already written.
    pub(crate) sent: usize,
    is_flushed: bool,
    /// The error of a failed write; the response may have arrived already.
    broken: Option<Fault>,
    upload: &'a mut Upload,
    slot: Option<&'a mut OutcomeSlot>,
    pub(crate) state: ResponseState,
    /// Unwritten bytes for the client.
    out: Vec<u8>,
    taken: usize,
    /// The connection closes after the response.
    pub(crate) closes: bool,
    end: Option<TransactionEnd>,
}

impl<'a, 'n> Transaction<'a, 'n> {
    pub(crate) fn new(
        side: &'a mut ClientSide<'n>,
        (request, head): (&'a ClientRequest, &'a [u8]),
        link: BackendLink,
        upload: &'a mut Upload,
        slot: Option<&'a mut OutcomeSlot>,
    ) -> Self {
        Self {
            side,
            request,
            head,
            link: Some(link),
            sent: 0,
            is_flushed: false,
            broken: None,
            upload,
            slot,
            state: ResponseState::default(),
            out: Vec::new(),
            taken: 0,
            closes: request.closes,
            end: None,
        }
    }

    /// Makes progress in both directions.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<TransactionEnd> {
        if !self.is_flushed && self.broken.is_none() && self.end.is_none() {
            self.write_request(cx);
        }
        if self.upload.is_interim_cut() && self.end.is_none() {
            return self.wait(cx);
        }
        for _ in 0..READS {
            match self.write_out(cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(TransactionEnd::Gone),
                Poll::Pending => return self.wait(cx),
            }
            if let Some(end) = self.end.take() {
                return Poll::Ready(end);
            }
            if self.read(cx).is_pending() {
                if self.state.status != 0 {
                    self.side.client.response_starved();
                }
                return self.wait(cx);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn write_request(&mut self, cx: &mut Context<'_>) {
        let Some(link) = &mut self.link else { return };
        let head = self.head;
        while self.sent < head.len() {
            match link.poll_write(cx, &head[self.sent..]) {
                Poll::Ready(Ok(written)) => self.sent += written,
                Poll::Ready(Err(fault)) => {
                    self.broken = Some(fault);
                    return;
                }
                Poll::Pending => return,
            }
        }
        let ClientSide { client, stream, received } = &mut *self.side;
        match self.upload.poll(cx, link, (client, stream, received), self.request) {
            Poll::Ready(Ok(())) => self.is_flushed = true,
            Poll::Ready(Err(UploadError::Master(fault))) => self.broken = Some(fault),
            Poll::Ready(Err(UploadError::Client)) => {
                self.side.client.body_aborted();
                self.end = Some(TransactionEnd::BodyAborted);
            }
            Poll::Pending => {}
        }
    }

    /// Reads once from the master, writing the response to `out`.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let client = self.side.client;
        let worker = &client.worker;
        let Some(link) = &mut self.link else { return Poll::Pending };
        let begun = self.state.status != 0;
        if !begun {
            self.closes |= worker.is_stopping();
        }
        let mut out = std::mem::take(&mut self.out);
        if out.capacity() == 0 {
            out = worker.spare.take();
        }
        let read = {
            let context = ResponseContext {
                request_is_head: self.request.is_head(),
                is_http10: self.request.is_http10,
                takes_trailers: self.request.takes_trailers,
                is_empty: false,
                closes: self.closes,
                date: &worker.date,
            };
            let (state, slot) = (&mut self.state, self.slot.as_deref_mut());
            let mut writer = ResponseWriter { state, context, out: &mut out, slot };
            link.poll_read(cx, &worker.scratch, &mut writer)
        };
        (self.out, self.taken) = (out, 0);
        let read = match read {
            Poll::Pending => {
                self.give_back_buffer();
                return Poll::Pending;
            }
            Poll::Ready(read) => read,
        };
        if self.state.is_unsupported {
            self.fail(Fault::Malformed("an unsupported response"));
            return Poll::Ready(());
        }
        if !begun && self.state.status != 0 {
            let class = usize::from(self.state.status / 100).min(5);
            worker.counters().responses[class].fetch_add(1, Relaxed);
            client.response_begun();
            self.upload.forget_interim();
            if self.state.is_ended_by_close {
                // Until the response is complete, a normal close would look like its end.
                self.side.stream.set_close_is_error(true);
                self.closes = true;
            }
        }
        match read {
            // Before the final head, the deadline is not extended.
            Ok(None) if self.state.status == 0 => {}
            Ok(None) => client.response_received(),
            Ok(Some(response)) if response.status == SWITCHING => {
                self.end = Some(TransactionEnd::Switched)
            }
            Ok(Some(response)) => {
                client.response_received();
                self.state.finish(&mut self.out);
                let link = self.link.take().filter(|_| response.reusable() && self.is_flushed);
                if let Some(link) = link {
                    worker.master.keep_link(link, worker.ticker.now());
                }
                self.end = Some(TransactionEnd::Answered);
            }
            Err(fault) => self.fail(self.broken.unwrap_or(fault)),
        }
        Poll::Ready(())
    }

    fn fail(&mut self, fault: Fault) {
        self.link = None;
        self.end = Some(if self.state.has_begun() {
            count(&self.side.client.worker.counters().broken_responses);
            TransactionEnd::Aborted(fault)
        } else {
            self.out.clear();
            TransactionEnd::Failed(fault)
        });
    }

    /// Writes buffered bytes to the client; `false` if it is gone.
    fn write_out(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.out.is_empty() {
            return Poll::Ready(true);
        }
        while self.taken < self.out.len() {
            let rest = &self.out[self.taken..];
            match ready!(Pin::new(&mut *self.side.stream).poll_write(cx, rest)) {
                Ok(0) | Err(_) => return Poll::Ready(false),
                Ok(written) => {
                    self.taken += written;
                    self.side.client.deadline.extend();
                }
            }
        }
        if ready!(Pin::new(&mut *self.side.stream).poll_flush(cx)).is_err() {
            return Poll::Ready(false);
        }
        self.give_back_buffer();
        Poll::Ready(true)
    }

    fn give_back_buffer(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.side.client.worker.spare.replace(out);
        self.taken = 0;
    }

    /// Waits for progress, unless the client is gone or the deadline has passed.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<TransactionEnd> {
        // During an upload, its reads notice the disconnect.
        if self.upload.is_complete() && self.side.is_gone(cx) {
            return Poll::Ready(TransactionEnd::Gone);
        }
        let deadline = &self.side.client.deadline;
        deadline.register(cx);
        if deadline.fired() { Poll::Ready(TransactionEnd::TooSlow) } else { Poll::Pending }
    }
}
