//! A backend's connection for framed requests: an HTTP/1.1 connection driven by the reader of the
//! response, or a stream lease on a shared HTTP/2 connection.

pub(crate) mod edits;
pub(crate) mod fault;
pub(crate) mod http1;
pub(crate) mod link;
pub(crate) mod pool;
pub(crate) mod request_writer;
pub(crate) mod target;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use gake_core::record::{Fault, Phase};
use http_body::{Body, Frame, SizeHint};

use crate::message::head::RequestHead;
use crate::message::response_head::BackendResponseHead;
use crate::proxy::deadline::{Deadline, before};
use crate::proxy::exchange::request_body::SendBody;
use crate::proxy::http2::intake::StreamBody;
use crate::proxy::http2::shared_streams::{self, StreamLease, UnsentRequest};
use crate::proxy::stream::SocketStream;
use crate::proxy::upstream::http1::Http1;
use crate::proxy::upstream::link::{BackendLink, Scratch};
use crate::proxy::upstream::pool::BackendPool;
use crate::proxy::upstream::target::BackendTarget;

/// A connection or lease, and the response on it.
pub(crate) enum Upstream {
    Http1(Box<Http1>),
    Http2 { lease: StreamLease, response: Option<StreamBody> },
}

/// Why there is no response.
pub(crate) struct UpstreamError {
    pub(crate) fault: Fault,
    /// The request's body, if none of it was written.
    pub(crate) unsent: Option<SendBody>,
    /// The backend has not processed the request.
    pub(crate) is_untouched: bool,
}

pub(crate) struct UpstreamRequest<'a> {
    pub(crate) head: &'a RequestHead,
    /// The head requests a protocol switch.
    pub(crate) is_upgrade: bool,
    pub(crate) body: SendBody,
    pub(crate) target: &'a BackendTarget,
}

impl From<Fault> for UpstreamError {
    fn from(fault: Fault) -> Self {
        Self { fault, unsent: None, is_untouched: false }
    }
}

impl Upstream {
    /// An idle connection, or a lease on a shared one; `now` is the current tick.
    pub(crate) fn idle(pool: &BackendPool, now: u64) -> Option<Self> {
        if pool.target.backend.http2 {
            pool.streams.take(now).map(Self::shared)
        } else {
            pool.take_link(now).map(Self::new)
        }
    }

    /// Returns a reusable connection to the pool.
    pub(crate) fn give_back(self, pool: &BackendPool, now: u64) {
        if let Self::Http1(http1) = self
            && let Some(link) = http1.into_link()
        {
            pool.keep_link(link, now);
        }
    }

    pub(crate) fn new(link: BackendLink) -> Self {
        Self::Http1(Box::new(Http1::new(link)))
    }

    pub(crate) fn shared(lease: StreamLease) -> Self {
        Self::Http2 { lease, response: None }
    }

    /// After a protocol switch: the stream, and the bytes read after the response. `None` for
    /// HTTP/2, which does not switch.
    pub(crate) fn into_stream(self) -> Option<(SocketStream, Bytes)> {
        match self {
            Self::Http1(http1) => Some(http1.into_stream()),
            Self::Http2 { .. } => None,
        }
    }

    /// Sends a request and waits for the response's head, until the deadline.
    pub(crate) async fn ask(
        &mut self,
        request: UpstreamRequest<'_>,
        deadline: &Deadline,
        scratch: &Scratch,
    ) -> Result<BackendResponseHead, UpstreamError> {
        match self {
            Self::Http1(http1) => {
                http1.start(request.head, request.is_upgrade, request.body);
                let head = poll_fn(|cx| http1.poll_head(scratch, cx));
                match before(deadline, head).await {
                    Some(Ok(head)) => Ok(head),
                    Some(Err(fault)) => {
                        let is_untouched = http1.is_untouched();
                        Err(UpstreamError { fault, unsent: None, is_untouched })
                    }
                    None => Err(Fault::Timeout(Phase::FirstByte).into()),
                }
            }
            Self::Http2 { lease, response } => {
                let UpstreamRequest { head, body, target, .. } = request;
                let request = shared_streams::request(head, target, body)?;
                let asked = lease.ask(request).map_err(|UnsentRequest { error, request }| {
                    UpstreamError {
                        fault: fault::of(&error, Phase::FirstByte),
                        is_untouched: request.is_some(),
                        unsent: request.map(|request| request.into_body()),
                    }
                })?;
                match before(deadline, asked).await {
                    Some(Ok(came)) => {
                        let (head, body) = came.into_parts();
                        *response = Some(body);
                        Ok(BackendResponseHead::of_http2(head.status, &head.headers))
                    }
                    Some(Err(error)) => Err(UpstreamError {
                        fault: fault::of(&error, Phase::FirstByte),
                        is_untouched: fault::is_untouched(&error),
                        unsent: None,
                    }),
                    None => {
                        lease.mark_suspect();
                        Err(Fault::Timeout(Phase::FirstByte).into())
                    }
                }
            }
        }
    }

    /// The next frame of the response's body.
    pub(crate) fn poll_body(
        &mut self,
        scratch: &Scratch,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        match self {
            Self::Http1(http1) => http1.poll_body(scratch, cx),
            Self::Http2 { response: Some(body), .. } => {
                Pin::new(body).poll_frame(cx).map_err(|error| fault::of(&error, Phase::Body))
            }
            Self::Http2 { response: None, .. } => Poll::Ready(None),
        }
    }

    /// Whether the response is complete and consumed.
    pub(crate) fn is_at_end(&self) -> bool {
        match self {
            Self::Http1(http1) => http1.is_at_end(),
            Self::Http2 { response, .. } => response.as_ref().is_none_or(StreamBody::is_end_stream),
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(http1) => http1.size_hint(),
            Self::Http2 { response: Some(body), .. } => body.size_hint(),
            Self::Http2 { response: None, .. } => SizeHint::with_exact(0),
        }
    }
}
