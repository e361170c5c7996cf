//! One request at the master, and its answer on the way to the client.
//!
//! Nothing here keeps a buffer while nothing is on its way: what is read goes through the thread's
//! scratch buffer, what is written through its spare one.

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

/// How often a connection is read in one turn: others wait for theirs.
const READS: usize = 16;

/// How a transaction ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TransactionEnd {
    Answered,
    /// Both sides speak another protocol now.
    Switched,
    /// There is no answer that can be passed on.
    Failed(Fault),
    /// The answer broke off; its beginning was passed on.
    Aborted(Fault),
    /// The client broke off in the middle of its request's body.
    BodyAborted,
    /// The client has left.
    Gone,
    TooSlow,
}

/// One request at the master, and its answer on the way to the client.
pub(crate) struct Transaction<'a, 'n> {
    side: &'a mut ClientSide<'n>,
    request: &'a ClientRequest,
    /// As the master gets it.
    head: &'a [u8],
    pub(crate) link: Option<BackendLink>,
    /// Bytes of the request's head that were written.
    pub(crate) sent: usize,
    is_flushed: bool,
    /// Why no more of the request can be written; an answer may have come before.
    broken: Option<Fault>,
    upload: &'a mut Upload,
    slot: Option<&'a mut OutcomeSlot>,
    pub(crate) state: ResponseState,
    /// What the client has not taken yet.
    out: Vec<u8>,
    taken: usize,
    /// The client was told that the connection ends, or wants it to.
    pub(crate) closes: bool,
    end: Option<TransactionEnd>,
}

impl<'a, 'n> Transaction<'a, 'n> {
    /// A request that is about to be written on `link`, its head as the master gets it.
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

    /// Writes and reads what can be written and read.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<TransactionEnd> {
        if !self.is_flushed && self.broken.is_none() && self.end.is_none() {
            self.ask(cx);
        }
        if self.upload.is_interim_cut() && self.end.is_none() {
            return self.wait(cx);
        }
        for _ in 0..READS {
            match self.pass_on(cx) {
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

    /// Writes the request.
    fn ask(&mut self, cx: &mut Context<'_>) {
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

    /// Reads a piece of the answer, if there is one, and writes it to `out`.
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
                date: &worker.date.now(),
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
            self.fail(Fault::Malformed("an answer nobody asked for"));
            return Poll::Ready(());
        }
        if !begun && self.state.status != 0 {
            let class = usize::from(self.state.status / 100).min(5);
            worker.counters().responses[class].fetch_add(1, Relaxed);
            client.response_begun();
            self.upload.forget_interim();
            if self.state.is_ended_by_close {
                // Until the answer is whole, a close would make it seem so.
                self.side.stream.set_close_is_error(true);
                self.closes = true;
            }
        }
        match read {
            // Before the final head nothing of an answer moves: its time runs on.
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

    /// Writes to the client what there is for it; `false` when it takes no more.
    fn pass_on(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
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

    /// Nothing can be done now.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<TransactionEnd> {
        // While a body comes, its reader sees the end.
        if self.upload.is_complete() && self.side.is_gone(cx) {
            return Poll::Ready(TransactionEnd::Gone);
        }
        let deadline = &self.side.client.deadline;
        deadline.register(cx);
        if deadline.fired() { Poll::Ready(TransactionEnd::TooSlow) } else { Poll::Pending }
    }
}
