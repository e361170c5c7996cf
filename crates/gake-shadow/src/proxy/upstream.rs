//! One connection to a backend, driven by whoever uses it: it needs no task of its own.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use super::send_body::SendBody;
use super::stream::Stream;
use super::watch::Watch;

/// Bytes read from a backend at once, at most; also bounds the head of its answer.
const BUFFER: usize = 128 << 10;

/// A connection to a backend.
pub(crate) struct Upstream {
    send: SendRequest<SendBody>,
    connection: Box<Connection<TokioIo<Stream>, SendBody>>,
    ended: bool,
    /// Whether it has answered before: then the backend may close it just as we ask.
    pub(crate) used: bool,
    /// The tick of its last use.
    pub(crate) since: u64,
}

/// Why there is no answer's head.
pub(crate) enum Unanswered {
    /// The time is over.
    Timeout,
    /// The error, and the request when not a byte of it was written.
    Error(Box<TrySendError<Request<SendBody>>>),
}

impl Upstream {
    /// Speaks HTTP/1.1 on a stream.
    pub(crate) async fn new(stream: Stream) -> Result<Self, hyper::Error> {
        let (send, connection) =
            http1::Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await?;
        Ok(Self { send, connection: Box::new(connection), ended: false, used: false, since: 0 })
    }

    /// Lets the connection read and write.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.ended {
            // An error of the connection is told to the request or to its body.
            self.ended = self.connection.poll_without_shutdown(cx).is_ready();
        }
    }

    /// Itself, if it can take a request now; this also notices that the backend has closed it.
    pub(crate) fn ready(mut self) -> Option<Self> {
        self.drive(&mut Context::from_waker(Waker::noop()));
        (!self.ended && self.send.is_ready()).then_some(self)
    }

    /// Sends a request and waits for the answer's head, until the watch fires.
    pub(crate) async fn ask(
        &mut self,
        request: Request<SendBody>,
        watch: &Watch,
    ) -> Result<Response<Incoming>, Unanswered> {
        self.used = true;
        let mut answer = pin!(self.send.try_send_request(request));
        let (connection, ended) = (&mut self.connection, &mut self.ended);
        std::future::poll_fn(|cx| {
            if !*ended {
                *ended = connection.poll_without_shutdown(cx).is_ready();
            }
            match answer.as_mut().poll(cx) {
                Poll::Ready(Ok(answer)) => Poll::Ready(Ok(answer)),
                Poll::Ready(Err(error)) => Poll::Ready(Err(Unanswered::Error(Box::new(error)))),
                Poll::Pending => {
                    watch.register(cx);
                    if watch.fired() {
                        Poll::Ready(Err(Unanswered::Timeout))
                    } else {
                        Poll::Pending
                    }
                }
            }
        })
        .await
    }

    /// After an answer that switched protocols: the stream, and what was read beyond the answer.
    pub(crate) async fn into_stream(mut self) -> io::Result<(Stream, Bytes)> {
        std::future::poll_fn(|cx| {
            self.drive(cx);
            if self.ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let parts = self.connection.into_parts();
        Ok((parts.io.into_inner(), parts.read_buf))
    }
}

/// Polls a body, and its connection when it has nothing yet.
pub(crate) fn poll_body(
    incoming: &mut Incoming,
    upstream: &mut Upstream,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<http_body::Frame<Bytes>, hyper::Error>>> {
    use http_body::Body;
    let polled = Pin::new(&mut *incoming).poll_frame(cx);
    if polled.is_ready() {
        return polled;
    }
    upstream.drive(cx);
    Pin::new(incoming).poll_frame(cx)
}
