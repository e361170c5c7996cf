//! A backend's connection as a request uses it: of HTTP/1.1, driven by the request itself, or a
//! place on one of HTTP/2.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use super::send_body::SendBody;
use super::shared_streams::Place;
use super::stream::Stream;
use super::watch::Watch;

/// Bytes read from a backend at once, at most; also bounds the head of its answer.
const BUFFER: usize = 128 << 10;

/// A connection to a backend, or a place on one that is shared.
pub(crate) struct Upstream {
    way: Way,
    /// Whether it has answered before: then the backend may close it just as we ask.
    pub(crate) used: bool,
    /// The tick of its last use.
    pub(crate) since: u64,
}

enum Way {
    /// It is driven by whoever uses it.
    Http1 {
        send: http1::SendRequest<SendBody>,
        connection: Box<http1::Connection<TokioIo<Stream>, SendBody>>,
        ended: bool,
    },
    Http2(Place<SendBody>),
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
        let way = Way::Http1 { send, connection: Box::new(connection), ended: false };
        Ok(Self { way, used: false, since: 0 })
    }

    /// Speaks HTTP/2 on a connection that is shared.
    pub(crate) fn shared(place: Place<SendBody>) -> Self {
        Self { used: place.used, way: Way::Http2(place), since: 0 }
    }

    /// Lets the connection read and write.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Way::Http1 { connection, ended, .. } = &mut self.way
            && !*ended
        {
            // An error of the connection is told to the request or to its body.
            *ended = connection.poll_without_shutdown(cx).is_ready();
        }
    }

    /// Itself, if it can take a request now; this also notices that the backend has closed it. A
    /// place that is shared is given up instead.
    pub(crate) fn ready(mut self) -> Option<Self> {
        self.drive(&mut Context::from_waker(Waker::noop()));
        match &self.way {
            Way::Http1 { send, ended, .. } if !ended && send.is_ready() => Some(self),
            _ => None,
        }
    }

    /// Sends a request and waits for the answer's head, until the watch fires.
    pub(crate) async fn ask(
        &mut self,
        request: Request<SendBody>,
        watch: &Watch,
    ) -> Result<Response<Incoming>, Unanswered> {
        self.used = true;
        match &mut self.way {
            Way::Http1 { send, connection, ended } => {
                let answer = send.try_send_request(request);
                let drive = |cx: &mut Context<'_>| {
                    if !*ended {
                        *ended = connection.poll_without_shutdown(cx).is_ready();
                    }
                };
                head(answer, watch, drive).await
            }
            Way::Http2(place) => {
                let answer = head(place.sender.try_send_request(request), watch, |_| {}).await;
                if matches!(answer, Err(Unanswered::Timeout)) {
                    place.doubt();
                }
                answer
            }
        }
    }

    /// After an answer that switched protocols: the stream, and what was read beyond the answer.
    ///
    /// # Errors
    /// When its connection is one of HTTP/2, which switches to nothing.
    pub(crate) async fn into_stream(mut self) -> io::Result<(Stream, Bytes)> {
        std::future::poll_fn(|cx| {
            self.drive(cx);
            match self.way {
                Way::Http1 { ended: false, .. } => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
        let Way::Http1 { connection, .. } = self.way else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let parts = connection.into_parts();
        Ok((parts.io.into_inner(), parts.read_buf))
    }
}

/// Waits for the answer's head, and drives the connection meanwhile.
async fn head(
    answer: impl Future<Output = Result<Response<Incoming>, TrySendError<Request<SendBody>>>>,
    watch: &Watch,
    mut drive: impl FnMut(&mut Context<'_>),
) -> Result<Response<Incoming>, Unanswered> {
    let mut answer = pin!(answer);
    std::future::poll_fn(|cx| {
        drive(cx);
        match answer.as_mut().poll(cx) {
            Poll::Ready(Ok(answer)) => Poll::Ready(Ok(answer)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Unanswered::Error(Box::new(error)))),
            Poll::Pending => {
                watch.register(cx);
                if watch.fired() { Poll::Ready(Err(Unanswered::Timeout)) } else { Poll::Pending }
            }
        }
    })
    .await
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
