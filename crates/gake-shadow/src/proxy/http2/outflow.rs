//! A body on its way into a stream of HTTP/2.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;

/// Passes a body on as far as the other side takes it; ready when all is with the codec, or when
/// no more of it is wanted.
pub(crate) struct Outflow<B> {
    to: SendStream<Bytes>,
    body: B,
    /// A piece for which there is no room yet, and whether it is the last.
    waiting: Option<(Bytes, bool)>,
    /// Why the stream is reset when the body breaks off.
    broken: Reason,
}

impl<B> Outflow<B> {
    pub(crate) fn new(to: SendStream<Bytes>, body: B, broken: Reason) -> Self {
        Self { to, body, waiting: None, broken }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Outflow<B> {
    /// Passes on the next part of the body; whether that was the end of it.
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
                    // No more than a claim: the rest is claimed with the piece, and a body that
                    // waits keeps no room from the other streams.
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

    /// Sends the piece that waits, as soon as there is room; whether that was the end.
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
            // The stream's reader gets the error.
            if !matches!(ended, Ok(false)) {
                return Poll::Ready(());
            }
        }
    }
}
