//! Bounds how much of an HTTP/2 connection is read before the codec is emptied.
//!
//! Flow control bounds bytes, but every frame, however small, has an overhead in the codec. The
//! codec's own bound on frames closes the connection, and keeps counting frames of reset streams. It
//! is therefore disabled; instead, a limited number of bytes is read per turn, and all frames are
//! taken out after each ([`Intakes`](crate::proxy::http2::intake::Intakes)).

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::status_watch::StatusWatch;

/// Bytes read per turn.
const TURN: usize = 32 << 10;

/// Disables the codec's bound on frames.
pub(crate) const CODEC_BUDGET: usize = usize::MAX;

/// The remaining bytes of a turn.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget(Rc<Cell<usize>>);

impl ReadBudget {
    pub(crate) fn new() -> Self {
        Self(Rc::new(Cell::new(TURN)))
    }

    /// Begins the next turn. Returns whether the last one was exhausted, so that more may be readable.
    pub(crate) fn renew(&self) -> bool {
        self.0.replace(TURN) == 0
    }
}

/// A stream with a read budget.
#[derive(Debug)]
pub(crate) struct BudgetedStream<S> {
    stream: S,
    room: ReadBudget,
    watch: Option<StatusWatch>,
}

impl<S> BudgetedStream<S> {
    pub(crate) fn new(stream: S, room: &ReadBudget) -> Self {
        Self { stream, room: room.clone(), watch: None }
    }

    /// One to a backend: `watch` sees what is read.
    pub(crate) fn watched(stream: S, room: &ReadBudget, watch: StatusWatch) -> Self {
        Self { stream, room: room.clone(), watch: Some(watch) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BudgetedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, room: ReadBudget(left), watch } = self.get_mut();
        let before = buffer.filled().len();
        let most = left.get();
        if most == 0 {
            // `renew` is followed by a wake-up.
            return Poll::Pending;
        }
        let read = if most < buffer.remaining() {
            let mut limited = ReadBuf::new(buffer.initialize_unfilled_to(most));
            ready!(Pin::new(stream).poll_read(cx, &mut limited))?;
            let read = limited.filled().len();
            buffer.advance(read);
            read
        } else {
            ready!(Pin::new(stream).poll_read(cx, buffer))?;
            buffer.filled().len() - before
        };
        left.set(most - read);
        if let Some(watch) = watch {
            watch.take(&buffer.filled()[before..])?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BudgetedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_turn_reads_a_limited_number_of_bytes() {
        let bytes = vec![b'x'; TURN + 5];
        let room = ReadBudget::new();
        let mut stream = BudgetedStream::new(&bytes[..], &room);
        let mut cx = Context::from_waker(Waker::noop());
        let mut read = |size: usize| {
            let mut buffer = vec![0; size];
            let mut buffer = ReadBuf::new(&mut buffer);
            match Pin::new(&mut stream).poll_read(&mut cx, &mut buffer) {
                Poll::Ready(read) => read.map(|()| Some(buffer.filled().len())).unwrap(),
                Poll::Pending => None,
            }
        };
        assert_eq!(read(TURN - 3), Some(TURN - 3));
        assert_eq!((read(100), read(100)), (Some(3), None));
        assert!(room.renew());
        assert_eq!(read(100), Some(5));
        assert!(!room.renew(), "the budget was not exhausted");
    }
}
