//! Request bodies on the frame path: from the client, and to a backend.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::message::body::ShadowBody;
use crate::mirror::copy_plan::CopyPlan;
use crate::proxy::client::ClientState;
use crate::proxy::client::body::{BodyAborted, ClientBody};
use crate::proxy::http2::intake::StreamBody;

pub(crate) enum RequestBody {
    Http1(ClientBody),
    Http2(StreamBody),
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(cx),
            Self::Http2(body) => Pin::new(body).poll_frame(cx).map_err(|_| BodyAborted),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }
}

pub(crate) enum SendBody {
    Empty,
    /// Streamed from the client.
    Client(Tee),
    Copy(ShadowBody),
}

/// Streams the client's body to the master while buffering it for copies.
pub(crate) struct Tee {
    incoming: RequestBody,
    client: Rc<ClientState>,
    copy: Option<Box<CopyPlan>>,
    ended: bool,
}

impl Tee {
    pub(crate) fn new(
        incoming: RequestBody,
        client: Rc<ClientState>,
        copy: Option<Box<CopyPlan>>,
    ) -> Self {
        Self { incoming, client, copy, ended: false }
    }

    fn note(&mut self, frame: &Frame<Bytes>) {
        self.client.body_received();
        let Some(copy) = &mut self.copy else { return };
        if let Some(data) = frame.data_ref() {
            copy.data(data);
        } else if let Some(trailers) = frame.trailers_ref() {
            copy.trailers(trailers);
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.client.request_received();
        if let Some(copy) = self.copy.take() {
            copy.end(true);
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if !self.ended && self.incoming.is_end_stream() {
            // The end arrived after the last data, and was not polled for.
            self.end();
        }
        if let Some(copy) = self.copy.take() {
            copy.end(false);
        }
    }
}

impl Body for SendBody {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let tee = match self.get_mut() {
            Self::Empty => return Poll::Ready(None),
            Self::Copy(copy) => {
                return Pin::new(copy).poll_frame(cx).map_err(|never| match never {});
            }
            Self::Client(tee) => tee,
        };
        match Pin::new(&mut tee.incoming).poll_frame(cx) {
            Poll::Pending => {
                tee.client.body_starved();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                let frame = tee.client.cleaned(frame);
                tee.note(&frame);
                // The body is not polled after its trailers or last byte.
                if frame.is_trailers() || tee.incoming.is_end_stream() {
                    tee.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(_))) => {
                tee.client.body_aborted();
                Poll::Ready(Some(Err(BodyAborted)))
            }
            Poll::Ready(None) => {
                if !tee.ended {
                    tee.end();
                }
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Client(tee) => tee.incoming.is_end_stream(),
            Self::Copy(copy) => copy.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Client(tee) => tee.incoming.size_hint(),
            Self::Copy(copy) => copy.size_hint(),
        }
    }
}
