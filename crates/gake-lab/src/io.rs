//! A stream that counts its bytes and reports flushes.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::worker::Worker;

/// Wraps a stream for hyper.
#[derive(Debug)]
pub(crate) struct CountedStream<S> {
    pub(crate) stream: S,
    worker: Arc<Worker>,
    flushes: Arc<FlushWatch>,
    /// Bytes read before hyper took over.
    early: Bytes,
}

impl<S> CountedStream<S> {
    pub(crate) fn new(
        stream: S,
        worker: Arc<Worker>,
        flushes: Arc<FlushWatch>,
    ) -> CountedStream<S> {
        CountedStream { stream, worker, flushes, early: Bytes::new() }
    }

    /// Returns bytes to the stream: they are read next.
    pub(crate) fn put_back(&mut self, early: Bytes) {
        self.early = early;
    }
}

/// Lets a response wait until all it has produced is in the kernel, so that it is aborted at a
/// known byte.
#[derive(Debug, Default)]
pub(crate) struct FlushWatch {
    /// Checked on every flush, and so outside the lock.
    watched: AtomicBool,
    /// Set by a write, cleared by hyper's flush.
    unwritten: AtomicBool,
    waiting: Mutex<Option<Waker>>,
}

impl FlushWatch {
    /// Wakes the caller at the next flush.
    pub(crate) fn wake_at_flush(&self, waker: &Waker) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.watched.store(true, Relaxed);
    }

    /// Whether a flush has happened since [`wake_at_flush`](Self::wake_at_flush).
    pub(crate) fn is_flushed(&self) -> bool {
        !self.watched.load(Relaxed)
    }

    pub(crate) fn is_written(&self) -> bool {
        !self.unwritten.load(Relaxed)
    }

    /// Records that everything so far is written.
    pub(crate) fn flushed(&self) {
        self.watched.store(false, Relaxed);
        let waker = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let most = self.early.len().min(buf.remaining());
            buf.put_slice(&self.early[..most]);
            self.early.advance(most);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.worker.counters().bytes_in.add((buf.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.flushes.unwritten.store(true, Relaxed);
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.worker.counters().bytes_out.add(written as u64);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.flushes.unwritten.store(true, Relaxed);
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs))?;
        self.worker.counters().bytes_out.add(written as u64);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has written everything it had.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.flushes.unwritten.store(false, Relaxed);
        if !self.flushes.is_flushed() {
            self.flushes.flushed();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
