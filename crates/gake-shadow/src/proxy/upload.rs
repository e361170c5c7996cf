//! The body of a plain request on its way to the master, and its copy beside it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_core::record::Fault;
use tokio::io::{AsyncRead, ReadBuf};

use super::client::Client;
use super::link::{Link, Scratch};
use super::opening::Opening;
use super::plain::Plain;
use super::stream::Stream;
use crate::collect::Collector;
use crate::mirror::Pending;
use crate::mirror::copy::{Keeper, Kept};

/// How often is read in one turn: others wait for theirs.
const READS: usize = 16;

/// What of a body is still to come and to be written.
pub(super) struct Upload {
    /// Bytes that the client has not sent.
    left: u64,
    /// Came, and were not taken by the master.
    unsent: Vec<u8>,
    written: usize,
    keeper: Keeper,
    /// Bytes that are kept for copies.
    limit: u64,
    /// The copies go out when the body is whole.
    copies: Option<Pending>,
    /// Is told the body in any case.
    collector: Option<Arc<Collector>>,
}

/// Why an upload does not go on.
pub(super) enum Stopped {
    /// The client broke off.
    Client,
    Master(Fault),
}

impl Upload {
    /// Of a request whose head has come.
    pub(super) fn new(
        plain: &Plain,
        limit: u64,
        copies: Option<Pending>,
        collector: Option<Arc<Collector>>,
    ) -> Self {
        // Without a body there is nothing to be told.
        let collector = collector.filter(|_| plain.body > 0);
        let keeper = Keeper::default();
        Self { left: plain.body, unsent: Vec::new(), written: 0, keeper, limit, copies, collector }
    }

    /// Whether all of it has come.
    pub(super) fn has_come(&self) -> bool {
        self.left == 0
    }

    /// Passes on what has come; ready when all of it is with the master.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        from: (&Client, &mut Stream, &mut Opening),
        plain: &Plain,
    ) -> Poll<Result<(), Stopped>> {
        let (client, stream, opening) = from;
        self.send_copies(plain);
        for _ in 0..READS {
            while self.written < self.unsent.len() {
                let rest = &self.unsent[self.written..];
                self.written += ready!(link.poll_write(cx, rest)).map_err(Stopped::Master)?;
            }
            (self.unsent, self.written) = (Vec::new(), 0);
            if self.left == 0 {
                return link.poll_flush(cx).map_err(Stopped::Master);
            }
            if !opening.is_empty() {
                let early = opening.take();
                let here = early.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.came(cx, link, client, &early[..here]).map_err(Stopped::Master)?;
                opening.put_back(&early[here..]);
            } else if ready!(self.read(cx, link, client, stream))?.is_none() {
                return Poll::Ready(Err(Stopped::Client));
            }
            if self.left == 0 {
                client.body_ended();
                self.send_copies(plain);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once from the client; `None` when it has ended.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        client: &Client,
        stream: &mut Stream,
    ) -> Poll<Result<Option<()>, Stopped>> {
        let scratch: &Scratch = &client.worker.scratch;
        scratch.with(|bytes| {
            let most = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let mut buffer = ReadBuf::new(&mut bytes[..most]);
            match Pin::new(stream).poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    client.starves();
                    // TLS may hold what was written; an error is seen by the next write.
                    let _ = link.poll_flush(cx);
                    Poll::Pending
                }
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let taken = self.came(cx, link, client, buffer.filled());
                    Poll::Ready(taken.map(Some).map_err(Stopped::Master))
                }
                Poll::Ready(_) => Poll::Ready(Ok(None)),
            }
        })
    }

    /// Bytes of the body have come: they are kept for the copies, and written as far as the master
    /// takes them.
    fn came(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        client: &Client,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        self.left -= bytes.len() as u64;
        client.sends();
        if self.copies.is_some() || self.collector.is_some() {
            self.keeper.take(&Bytes::copy_from_slice(bytes), self.limit);
            if self.keeper.is_over()
                && let Some(copies) = self.copies.take()
            {
                copies.oversize();
            }
        }
        let written = match link.poll_write(cx, bytes) {
            Poll::Ready(written) => written?,
            Poll::Pending => 0,
        };
        self.unsent.extend_from_slice(&bytes[written..]);
        Ok(())
    }

    /// Hands over the copies of a request that is whole.
    pub(super) fn send_copies(&mut self, plain: &Plain) {
        if self.left > 0 || (self.copies.is_none() && self.collector.is_none()) {
            return;
        }
        let kept = self.keep();
        if let Some(copies) = self.copies.take() {
            copies.send_plain(&plain.method, &plain.head, kept);
        }
    }

    /// What was kept of the body, which is told to who listens.
    fn keep(&mut self) -> Kept {
        let (over, seen) = (self.keeper.is_over(), self.keeper.seen());
        let kept = self.keeper.finish();
        if let Some(collector) = self.collector.take() {
            collector.body(&kept, seen, over || self.left > 0);
        }
        kept
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.collector.is_some() {
            self.keep();
        }
    }
}
