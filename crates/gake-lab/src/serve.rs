//! Serves one connection: hyper reads and writes, and the connection ends as its last request
//! demands.

#![expect(
    unsafe_code,
    reason = "ioctl TIOCOUTQ, the bytes not yet acknowledged: no library has it"
)]

use std::error::Error;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

use crate::abort::Abort;
use crate::accepted::{AcceptedConnection, ConnectionSlot};
use crate::connection::{HttpConnection, RequestCounts};
use crate::handler::Handler;
use crate::http2;
use crate::io::{CountedStream, FlushWatch};
use crate::partial_head::PartialHead;
use crate::websocket;
use crate::worker::Worker;

/// A connection idle for this long, and at most twice as long, frees its buffers.
const REST: Duration = Duration::from_secs(1);

/// The HTTP settings of all connections.
///
/// `pipeline_flush` stays off: it would delay a response while a pipelined request behind it is
/// open, and that one may be `/hang`.
pub(crate) fn http_settings(connection_timeout: Option<Duration>) -> Builder {
    let mut http = Builder::new();
    http.header_read_timeout(connection_timeout);
    if connection_timeout.is_some() {
        http.timer(TokioTimer::new());
    }
    http
}

/// Serves a connection until it ends.
pub(crate) async fn connection(accepted: AcceptedConnection, worker: Arc<Worker>) {
    let AcceptedConnection { fd, peer, is_unix, slot } = accepted;
    if is_unix {
        match UnixStream::from_std(fd.into()) {
            Ok(stream) => plain_or_secured(slot, stream, peer, worker).await,
            Err(_) => worker.shared.connections.accept_error(),
        }
    } else {
        match TcpStream::from_std(fd.into()) {
            Ok(stream) => plain_or_secured(slot, stream, peer, worker).await,
            Err(_) => worker.shared.connections.accept_error(),
        }
    }
}

/// Serves a connection, over TLS if the lab has a certificate.
async fn plain_or_secured<S>(
    slot: ConnectionSlot,
    stream: S,
    peer: Option<SocketAddr>,
    worker: Arc<Worker>,
) where
    S: AsyncRead + AsyncWrite + AsFd + Unpin + Send,
{
    if worker.shared.identity.is_some() {
        // Boxed: its large state would otherwise be part of every plain connection, too.
        Box::pin(secured(slot, stream, peer, worker)).await;
    } else {
        serve_stream(slot, stream, peer, worker).await;
    }
}

/// Completes the TLS handshake and serves the connection. `slot` is declared first, so that it is
/// dropped last, when the socket is closed.
async fn secured<S>(slot: ConnectionSlot, stream: S, peer: Option<SocketAddr>, worker: Arc<Worker>)
where
    S: AsyncRead + AsyncWrite + AsFd + Unpin + Send,
{
    let shared = Arc::clone(&worker.shared);
    let Some(identity) = &shared.identity else { return };
    let handshake = identity.accept(stream);
    let stream = match shared.config.connection_timeout {
        None => handshake.await,
        Some(limit) => match tokio::time::timeout(limit, handshake).await {
            Ok(stream) => stream,
            Err(_) => return shared.connections.timed_out(),
        },
    };
    match stream {
        Ok(stream) => serve_stream(slot, stream, peer, worker).await,
        Err(_) => worker.counters().malformed.add(1),
    }
}

/// `slot` is declared first, so that it is dropped last, when the socket is closed.
async fn serve_stream<S>(
    slot: ConnectionSlot,
    stream: S,
    peer: Option<SocketAddr>,
    worker: Arc<Worker>,
) where
    S: AsyncRead + AsyncWrite + AsFd + Unpin + Send,
{
    let flushes = Arc::new(FlushWatch::default());
    let mut io = CountedStream::new(stream, Arc::clone(&worker), Arc::clone(&flushes));
    let requests = RequestCounts::default();
    let connection =
        Arc::new(HttpConnection { worker, number: slot.number, peer, flushes, requests });
    let mut partial_head = PartialHead::default();
    while opened(&connection, &mut io, &mut partial_head).await {
        let (is_http2, is_websocket) = (partial_head.is_http2(), partial_head.is_websocket());
        io.put_back(partial_head.take());
        if is_websocket {
            if let Some(socket) = Box::pin(websocket::serve(&connection, io)).await {
                reset(&socket, &connection.worker).await;
            }
            return;
        }
        if is_http2 {
            return Box::pin(http2::serve(&connection, io)).await;
        }
        // Boxed, so that a waiting connection is small.
        let Some((rested, read)) = Box::pin(serve_requests(&connection, io)).await else { return };
        io = rested;
        partial_head.add(&read);
    }
}

/// Waits for a request head; `false` when none comes.
async fn opened<S: AsyncRead + Unpin>(
    connection: &HttpConnection,
    io: &mut CountedStream<S>,
    partial_head: &mut PartialHead,
) -> bool {
    let shared = &connection.worker.shared;
    let head = std::future::poll_fn(|cx| partial_head.poll(io, cx));
    let came = match shared.config.connection_timeout {
        None => head.await,
        Some(limit) => match tokio::time::timeout(limit, head).await {
            Ok(came) => came,
            Err(_) => {
                shared.connections.timed_out();
                return false;
            }
        },
    };
    matches!(came, Ok(true))
}

/// Serves requests until the connection ends, or until it has been idle for a while: then returns
/// the stream and what was read of the next head.
async fn serve_requests<S>(
    connection: &Arc<HttpConnection>,
    io: CountedStream<S>,
) -> Option<(CountedStream<S>, Bytes)>
where
    S: AsyncRead + AsyncWrite + AsFd + Unpin + Send,
{
    let worker = &connection.worker;
    let handler = Handler::new(Arc::clone(connection));
    let mut http = worker.http.serve_connection(TokioIo::new(io), handler);
    // With a timeout, hyper ends the connection.
    let rests = worker.shared.config.connection_timeout.is_none();
    let mut rest = rests.then(|| Box::pin(tokio::time::sleep(REST)));
    let (mut begun, mut is_new, mut is_armed) = (0, true, false);
    let ended = std::future::poll_fn(|cx| {
        if let Poll::Ready(ended) = Pin::new(&mut http).poll(cx) {
            return Poll::Ready(Some(ended));
        }
        let Some(rest) = &mut rest else { return Poll::Pending };
        let now = connection.requests.begun();
        if now != begun {
            (begun, is_new) = (now, true);
            if is_armed {
                // The timer is checked when it wakes the task, not on every request.
                return Poll::Pending;
            }
        }
        is_armed = true;
        while rest.as_mut().poll(cx).is_ready() {
            let is_idle = connection.requests.is_idle() && connection.flushes.is_written();
            if is_idle && !is_new {
                return Poll::Ready(None);
            }
            is_new = false;
            rest.as_mut().reset(Instant::now() + REST);
        }
        Poll::Pending
    })
    .await;
    let Some(ended) = ended else {
        // The dropped buffers hold the start of a head at most, which `parts` returns.
        let parts = http.into_parts();
        return Some((parts.io.into_inner(), parts.read_buf));
    };
    let error = ended.err()?;
    if error.is_parse() {
        worker.counters().malformed.add(1);
    } else if error.is_timeout() {
        worker.shared.connections.timed_out();
    } else if error.source().and_then(|source| source.downcast_ref()) == Some(&Abort::Reset) {
        let socket = http.into_parts().io.into_inner().stream;
        reset(&socket, worker).await;
    }
    None
}

/// Makes the close that follows send a RST. Waits until everything written has been acknowledged: a
/// reset discards what the peer's kernel has not received.
async fn reset(socket: &impl AsFd, worker: &Worker) {
    for _ in 0..1000 {
        if !matches!(unsent_bytes(socket), Ok(1..)) {
            break;
        }
        worker.timer.sleep(Duration::from_millis(1)).await;
    }
    // Fails only for a socket that is already gone.
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}

/// Bytes written and not acknowledged.
fn unsent_bytes(socket: &impl AsFd) -> Result<i32, Errno> {
    use std::os::fd::AsRawFd;
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int through the pointer, which is live; the descriptor is
    // borrowed and so open.
    let result = unsafe {
        libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, std::ptr::from_mut(&mut bytes))
    };
    if result == 0 { Ok(bytes) } else { Err(Errno::INVAL) }
}
