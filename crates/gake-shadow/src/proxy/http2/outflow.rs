//! Sends a body on an HTTP/2 stream.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;

/// Sends a body within the flow control; ready when the codec has all of it, or the stream ended.
pub(crate) struct Outflow<B> {
    to: SendStream<Bytes>,
    body: B,
    /// Data without capacity yet, and whether it is the last.
    waiting: Option<(Bytes, bool)>,
    /// The reset code if the body fails.
    broken: Reason,
}

impl<B> Outflow<B> {
    pub(crate) fn new(to: SendStream<Bytes>, body: B, broken: Reason) -> Self {
        Self { to, body, waiting: None, broken }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Outflow<B> {
    /// Sends the next frame; returns whether the stream has ended.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, h2::Error>> {
        let Some(next) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            self.to.send_data(Bytes::new(), true)?;
            return Poll::Ready(Ok(true));
        };
        let Ok(frame) = next else {
            self.to.send_reset(self.broken);
            return Poll::Ready(Ok(true));
        };
        let frame = match frame.into_data() {
            Ok(data) => {
                let is_last = self.body.is_end_stream();
                if data.is_empty() && is_last {
                    self.to.send_data(data, true)?;
                } else if !data.is_empty() {
                    // Reserves one byte only, so that a waiting body does not hold the capacity
                    // of the connection; `send_data` requests the rest.
                    self.to.reserve_capacity(1);
                    self.waiting = Some((data, is_last));
                    return Poll::Ready(Ok(false));
                }
                return Poll::Ready(Ok(is_last));
            }
            Err(frame) => frame,
        };
        if let Ok(trailers) = frame.into_trailers() {
            self.to.reserve_capacity(0);
            self.to.send_trailers(trailers)?;
        }
        Poll::Ready(Ok(true))
    }

    /// Sends waiting data once there is capacity; returns whether the stream has ended.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, h2::Error>> {
        while self.waiting.is_some() && self.to.capacity() == 0 {
            match ready!(self.to.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(true)),
            }
        }
        let Some((data, is_last)) = self.waiting.take() else { return Poll::Ready(Ok(false)) };
        self.to.send_data(data, is_last)?;
        Poll::Ready(Ok(is_last))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Future for Outflow<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            if this.to.poll_reset(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut ended = ready!(this.poll_waiting(cx));
            if matches!(ended, Ok(false)) {
                ended = ready!(this.poll_next(cx));
            }
            // Errors also reach the reader of the stream.
            if !matches!(ended, Ok(false)) {
                return Poll::Ready(());
            }
        }
    }
}
