//! A tunnel after a protocol switch: copies bytes both ways until both ends close, or on a timeout.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::proxy::client::ClientState;
use crate::proxy::deadline::Deadline;
use crate::proxy::stream::SocketStream;

const BUFFER: usize = 16 << 10;

/// Connects client and master, each with the bytes already read from it.
pub(crate) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    client: &Rc<ClientState>,
    (near, early): (S, Bytes),
    (far, early_far): (SocketStream, Bytes),
) {
    let deadline = &client.deadline;
    deadline.set(client.worker.timeout_ticks.idle);
    let (near_read, near_write) = tokio::io::split(near);
    let (far_read, far_write) = tokio::io::split(far);
    let mut up = pin!(copy(early, near_read, far_write, deadline));
    let mut down = pin!(copy(early_far, far_read, near_write, deadline));
    let (mut up_done, mut down_done) = (false, false);
    std::future::poll_fn(|cx| {
        deadline.register(cx);
        up_done = up_done || up.as_mut().poll(cx).is_ready();
        down_done = down_done || down.as_mut().poll(cx).is_ready();
        let over = deadline.fired() || client.worker.is_over();
        if (up_done && down_done) || over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Copies one direction: the bytes already read, then the stream; shuts down the other side at the
/// end.
async fn copy<R, W>(early: Bytes, mut from: R, mut to: W, deadline: &Deadline)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER];
    let mut written = to.write_all(&early).await;
    while written.is_ok() {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { break };
        deadline.extend();
        written = to.write_all(&buffer[..read]).await;
    }
    // Fails if the other side is gone.
    let _ = to.shutdown().await;
}
