//! The client's side of a framed request: reads the body, and writes the response.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::message::head::Framing;
use crate::proxy::body_frames::BodyFrames;
use crate::proxy::client::ClientState;
use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::incoming::IncomingBody;
use crate::proxy::stream::SocketStream;

/// A client's connection with the unread rest of the request.
pub(crate) struct ClientStream(RefCell<Inner>);

struct Inner {
    /// `None` after the exchange.
    stream: Option<SocketStream>,
    /// Bytes received after the head.
    received: HeadBuffer,
    incoming: IncomingBody,
    frames: BodyFrames,
    /// The task that waits for body data.
    reader: Option<Waker>,
}

/// The body of an HTTP/1.1 request.
pub(crate) struct ClientBody {
    side: Rc<ClientStream>,
    client: Rc<ClientState>,
    /// Remaining bytes, if the length is known.
    left: Option<u64>,
}

/// The client did not send its complete body.
#[derive(Debug)]
pub(crate) struct BodyAborted;

impl fmt::Display for BodyAborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client's body is incomplete")
    }
}

impl std::error::Error for BodyAborted {}

impl ClientStream {
    pub(crate) fn new(
        stream: SocketStream,
        received: HeadBuffer,
        framing: Framing,
        expects: bool,
    ) -> Rc<Self> {
        Rc::new(Self(RefCell::new(Inner {
            stream: Some(stream),
            received,
            incoming: IncomingBody::new(framing, expects),
            frames: BodyFrames::default(),
            reader: None,
        })))
    }

    pub(crate) fn body(self: &Rc<Self>, client: &Rc<ClientState>) -> ClientBody {
        let left = self.0.borrow().incoming.left();
        ClientBody { side: Rc::clone(self), client: Rc::clone(client), left }
    }

    /// Called when the response begins: cancels a `100 Continue`, or completes a partly written one.
    pub(crate) fn begin_response(&self, out: &mut Vec<u8>) {
        if let Some(rest) = self.0.borrow_mut().incoming.take_interim() {
            out.extend_from_slice(rest);
        }
    }

    /// Makes closing the connection an error to the client.
    pub(crate) fn set_close_is_error(&self) {
        if let Some(stream) = self.stream() {
            stream.set_close_is_error(true);
        }
    }

    /// Writes once; returns the number of bytes written, or `None` if the client is gone.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Option<usize>> {
        let Some(mut stream) = self.stream() else { return Poll::Ready(None) };
        match ready!(Pin::new(&mut *stream).poll_write(cx, bytes)) {
            Ok(0) | Err(_) => Poll::Ready(None),
            Ok(written) => Poll::Ready(Some(written)),
        }
    }

    /// Flushes the TLS buffer; `false` if the client is gone.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(mut stream) = self.stream() else { return Poll::Ready(false) };
        Pin::new(&mut *stream).poll_flush(cx).map(|flushed| flushed.is_ok())
    }

    /// Whether the client has disconnected after a complete request; before that, the reader of the
    /// body notices. A client with pipelined data counts as connected.
    pub(crate) fn is_gone(&self, cx: &mut Context<'_>) -> bool {
        let inner = &mut *self.0.borrow_mut();
        let Some(stream) = &mut inner.stream else { return false };
        inner.incoming.is_complete()
            && inner.received.is_empty()
            && inner.received.has_ended(stream, cx)
    }

    /// Ends the exchange: returns the stream, the bytes received after the request, and whether the
    /// request was complete. A waiting reader gets an error.
    pub(crate) fn end(&self) -> Option<(SocketStream, HeadBuffer, bool)> {
        let inner = &mut *self.0.borrow_mut();
        let is_complete = inner.incoming.is_complete();
        if !is_complete {
            inner.incoming.abort();
        }
        if let Some(reader) = inner.reader.take() {
            reader.wake();
        }
        let received = std::mem::replace(&mut inner.received, HeadBuffer::new(0));
        Some((inner.stream.take()?, received, is_complete))
    }

    fn stream(&self) -> Option<RefMut<'_, SocketStream>> {
        RefMut::filter_map(self.0.borrow_mut(), |inner| inner.stream.as_mut()).ok()
    }
}

impl Inner {
    /// Receives more of the body; `false` if the client aborted.
    fn poll_more(&mut self, client: &ClientState, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(mut stream) = self.stream.take() else { return Poll::Ready(false) };
        let more = self.poll_stream(&mut stream, client, cx);
        self.stream = Some(stream);
        more
    }

    fn poll_stream(
        &mut self,
        stream: &mut SocketStream,
        client: &ClientState,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        if self.incoming.expects_continue() && !ready!(self.incoming.poll_continue(cx, stream)) {
            return Poll::Ready(false);
        }
        if !self.received.is_empty() {
            let early = self.received.take();
            return Poll::Ready(self.receive(&early));
        }
        client.worker.scratch.with(|bytes| {
            let most = self.incoming.wanted(bytes.len());
            let mut buffer = ReadBuf::new(&mut bytes[..most]);
            match ready!(Pin::new(stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => Poll::Ready(self.receive(buffer.filled())),
                _ => Poll::Ready(false),
            }
        })
    }

    /// Takes the bytes of the body, and keeps the rest for the next request; `false` if the body is
    /// invalid.
    fn receive(&mut self, bytes: &[u8]) -> bool {
        let Some(taken) = self.incoming.take(bytes, &mut self.frames) else { return false };
        self.received.put_back(&bytes[taken..]);
        true
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let this = self.get_mut();
        let inner = &mut *this.side.0.borrow_mut();
        loop {
            if let Some(frame) = inner.frames.next() {
                let length = frame.data_ref().map_or(0, Bytes::len) as u64;
                this.left = this.left.map(|left| left.saturating_sub(length));
                return Poll::Ready(Some(Ok(frame)));
            }
            if inner.incoming.is_complete() {
                return Poll::Ready(None);
            }
            if inner.incoming.is_broken() {
                return Poll::Ready(Some(Err(BodyAborted)));
            }
            match inner.poll_more(&this.client, cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => inner.incoming.abort(),
                Poll::Pending => {
                    inner.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let inner = self.side.0.borrow();
        inner.incoming.is_complete() && inner.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
