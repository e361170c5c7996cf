//! Response bodies on the frame path.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use gake_core::record::{Fault, Phase};
use http_body::{Body, Frame, SizeHint};

use crate::collect::OutcomeSlot;
use crate::exchange::BackendFailure;
use crate::message::response_head::BackendResponseHead;
use crate::proxy::client::{ClientState, WaitingOn};
use crate::proxy::state::count;
use crate::proxy::upstream::Upstream;
use crate::proxy::upstream::pool::BackendPool;

/// A response for a client.
pub(crate) struct UpstreamResponse {
    pub(crate) head: BackendResponseHead,
    pub(crate) body: ResponseBody,
}

pub(crate) enum ResponseBody {
    Empty,
    /// No body: the protocol was switched.
    Switched(Box<Upstream>),
    Text(Option<Bytes>),
    Relay(Box<Relay>),
}

/// Streams a backend's response; returns the connection to the pool at the end.
pub(crate) struct Relay {
    upstream: Option<Upstream>,
    pool: Rc<BackendPool>,
    client: Rc<ClientState>,
    slot: Option<Box<OutcomeSlot>>,
    broken: bool,
}

/// The response ended early, and the client must see an error too.
#[derive(Debug)]
pub(crate) struct ResponseAborted;

impl fmt::Display for ResponseAborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the backend's response ended early")
    }
}

impl std::error::Error for ResponseAborted {}

impl Relay {
    pub(crate) fn body(
        upstream: Upstream,
        pool: Rc<BackendPool>,
        client: Rc<ClientState>,
        slot: Option<Box<OutcomeSlot>>,
    ) -> ResponseBody {
        let is_empty = upstream.is_at_end();
        let upstream = Some(upstream);
        let mut relay = Box::new(Self { upstream, pool, client, slot, broken: false });
        relay.client.response_begun();
        if is_empty {
            relay.end();
            return ResponseBody::Empty;
        }
        ResponseBody::Relay(relay)
    }

    fn end(&mut self) {
        if let Some(upstream) = self.upstream.take() {
            upstream.give_back(&self.pool, self.client.worker.ticker.now());
            self.client.response_sent();
        }
        if let Some(slot) = self.slot.take() {
            slot.done(false);
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseAborted>>> {
        if self.broken {
            return Poll::Ready(Some(Err(ResponseAborted)));
        }
        let Some(upstream) = &mut self.upstream else { return Poll::Ready(None) };
        match upstream.poll_body(&self.client.worker.scratch, cx) {
            Poll::Pending => {
                self.client.response_starved();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.client.response_received();
                if let Some(slot) = &mut self.slot {
                    slot.frame(&frame);
                }
                // The body is not polled after its trailers or last byte.
                if frame.is_trailers() || upstream.is_at_end() {
                    self.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(fault))) => {
                count(&self.client.worker.counters().broken_responses);
                self.upstream = None;
                if let Some(slot) = self.slot.take() {
                    slot.failed(BackendFailure::Fault(fault));
                }
                // An error discards unwritten data in HTTP/2. Pending once lets it be written
                // first.
                self.broken = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(None) => {
                self.end();
                Poll::Ready(None)
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let is_timeout =
            self.client.waiting_on() == WaitingOn::Backend && self.client.deadline.fired();
        if is_timeout && let Some(slot) = self.slot.take() {
            slot.failed(BackendFailure::Fault(Fault::Timeout(Phase::Body)));
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseAborted>>> {
        match self.get_mut() {
            Self::Empty | Self::Switched(_) => Poll::Ready(None),
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Relay(relay) => relay.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty | Self::Switched(_) => true,
            Self::Text(text) => text.is_none(),
            Self::Relay(relay) => !relay.broken && relay.upstream.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty | Self::Switched(_) => SizeHint::with_exact(0),
            Self::Text(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Self::Relay(relay) => match &relay.upstream {
                Some(upstream) => upstream.size_hint(),
                None => SizeHint::with_exact(0),
            },
        }
    }
}
