//! Buffers a request's body for its copies and for the collector of its exchange.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use super::PendingCopies;
use crate::collect::ExchangeCollector;
use crate::message::body::{BodyBuffer, ShadowRequest};
use crate::message::head::{Framing, RequestHead};

pub(crate) struct CopyPlan {
    head: RequestHead,
    body: BodyBuffer,
    limit: u64,
    /// Sent when the body is complete.
    pending: Option<PendingCopies>,
    /// Gets the body even if incomplete.
    collector: Option<Arc<ExchangeCollector>>,
}

impl CopyPlan {
    /// `None` if nothing needs the body.
    pub(crate) fn new(
        head: &RequestHead,
        limit: u64,
        pending: Option<PendingCopies>,
        collector: Option<Arc<ExchangeCollector>>,
    ) -> Option<Self> {
        (pending.is_some() || collector.is_some()).then(|| {
            let (head, body) = (head.clone(), BodyBuffer::default());
            Self { head, body, limit, pending, collector }
        })
    }

    pub(crate) fn data(&mut self, data: &Bytes) {
        self.body.take(data, self.limit);
        if self.body.is_over()
            && let Some(pending) = self.pending.take()
        {
            pending.oversize();
        }
    }

    pub(crate) fn trailers(&mut self, trailers: &HeaderMap) {
        self.body.trailers(trailers);
    }

    /// Whether the body is not needed any more, because it is too large for copies.
    pub(crate) fn is_obsolete(&self) -> bool {
        self.pending.is_none() && self.collector.is_none()
    }

    /// Sends the copies of a complete request, and passes the body to the collector.
    pub(crate) fn end(mut self, is_complete: bool) {
        let (over, seen) = (self.body.is_over(), self.body.seen());
        let mut body = self.body.finish();
        body.chunked = self.head.framing() == Framing::Chunked;
        if let Some(collector) = self.collector {
            collector.body(&body, seen, over || !is_complete);
        }
        match self.pending {
            Some(pending) if is_complete => {
                pending.send(&Arc::new(ShadowRequest { head: self.head, body }));
            }
            Some(pending) => pending.abort(),
            None => {}
        }
    }
}
