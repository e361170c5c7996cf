//! How much of a connection of HTTP/2 is read before what has come is taken from the codec.
//!
//! What a stream may send at once is bounded in bytes, but those may come as many small pieces, and
//! a piece takes memory in the codec however small it is. The codec has a bound on that, beyond
//! which it ends the connection with all requests on it; and it counts pieces on streams that were
//! reset for ever. So that bound is off, and this is in its place: the connection is read a part at
//! a time, and after each part all pieces are taken out ([`Intakes`](crate::proxy::http2::intake::Intakes)).

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read in a turn, at most.
const TURN: usize = 32 << 10;

/// What the codec may charge for small pieces: all that comes.
pub(crate) const CODEC_BUDGET: usize = usize::MAX;

/// What may still be read of a connection until the codec is emptied.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget(Rc<Cell<usize>>);

impl ReadBudget {
    pub(crate) fn new() -> Self {
        Self(Rc::new(Cell::new(TURN)))
    }

    /// Begins the next turn. Returns whether the last one was used up, so that more may be there.
    pub(crate) fn renew(&self) -> bool {
        self.0.replace(TURN) == 0
    }
}

/// A stream that is read in a turn for as much as there is room.
#[derive(Debug)]
pub(crate) struct BudgetedStream<S> {
    stream: S,
    room: ReadBudget,
}

impl<S> BudgetedStream<S> {
    pub(crate) fn new(stream: S, room: &ReadBudget) -> Self {
        Self { stream, room: room.clone() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BudgetedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, room: ReadBudget(left) } = self.get_mut();
        let most = left.get();
        if most == 0 {
            // The next turn wakes the task.
            return Poll::Pending;
        }
        let read = if most < buffer.remaining() {
            let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
            ready!(Pin::new(stream).poll_read(cx, &mut part))?;
            let read = part.filled().len();
            buffer.advance(read);
            read
        } else {
            let before = buffer.filled().len();
            ready!(Pin::new(stream).poll_read(cx, buffer))?;
            buffer.filled().len() - before
        };
        left.set(most - read);
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
    fn a_turn_reads_so_much_and_the_next_one_the_rest() {
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
        assert!(!room.renew(), "there was more room than bytes");
    }
}
