//! One connection: hyper reads and writes it, and it ends as it was told to.

use std::error::Error;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::accept::{Accepted, Place};
use crate::handler::Handler;
use crate::io::{Counted, FlushWatch};
use crate::worker::Worker;

/// What the requests of one connection share.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) worker: Arc<Worker>,
    /// From 1, in the order in which they were accepted.
    pub(crate) number: u64,
    /// `None` on a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) flushes: Arc<FlushWatch>,
}

/// How a connection ends without an answer, or in the middle of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    /// With a FIN, as if all were well.
    #[error("closed on request")]
    Close,
    /// With a RST.
    #[error("reset on request")]
    Reset,
    /// The client is gone, or the lab stops: nobody is there to be told.
    #[error("nobody is there to answer")]
    Gone,
}

/// The HTTP settings of all connections.
///
/// `pipeline_flush` stays off: it would hold back an answer for as long as a
/// pipelined request behind it is unanswered, and that one may be `/hang`.
pub(crate) fn http_settings(connection_timeout: Option<Duration>) -> Builder {
    let mut http = Builder::new();
    http.header_read_timeout(connection_timeout);
    if connection_timeout.is_some() {
        http.timer(TokioTimer::new());
    }
    http
}

/// Serves a connection until it ends.
pub(crate) async fn serve(accepted: Accepted, worker: Arc<Worker>) {
    let Accepted { fd, peer, is_unix, place } = accepted;
    if is_unix {
        match UnixStream::from_std(fd.into()) {
            Ok(stream) => serve_stream(place, stream, peer, worker).await,
            Err(_) => worker.shared.connections.accept_error(),
        }
    } else {
        match TcpStream::from_std(fd.into()) {
            Ok(stream) => serve_stream(place, stream, peer, worker).await,
            Err(_) => worker.shared.connections.accept_error(),
        }
    }
}

/// `place` comes first so that it is dropped last, when the socket is closed.
async fn serve_stream<S>(place: Place, stream: S, peer: Option<SocketAddr>, worker: Arc<Worker>)
where
    S: AsyncRead + AsyncWrite + AsFd + Unpin + Send,
{
    let flushes = Arc::new(FlushWatch::default());
    let io = Counted::new(stream, Arc::clone(&worker), Arc::clone(&flushes));
    let shared_by_requests =
        Connection { worker: Arc::clone(&worker), number: place.number, peer, flushes };
    let handler = Handler::new(Arc::new(shared_by_requests));
    let mut connection = worker.http.serve_connection(TokioIo::new(io), handler);
    let Err(error) = (&mut connection).await else { return };
    if error.is_parse() {
        worker.counters().malformed.add(1);
    } else if error.is_timeout() {
        worker.shared.connections.timed_out();
    } else if error.source().and_then(|source| source.downcast_ref()) == Some(&Cut::Reset) {
        let socket = connection.into_parts().io.into_inner().stream;
        reset(&socket, &worker).await;
    }
}

/// Makes the close that follows send a RST. What was written goes out first:
/// a reset throws away what the peer's kernel has not yet taken.
async fn reset(socket: &impl AsFd, worker: &Worker) {
    for _ in 0..1000 {
        if !matches!(unsent_bytes(socket), Ok(1..)) {
            break;
        }
        worker.timer.sleep(Duration::from_millis(1)).await;
    }
    // It fails only for a socket that is gone already.
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}

/// Bytes that are written and not acknowledged.
fn unsent_bytes(socket: &impl AsFd) -> Result<i32, Errno> {
    use std::os::fd::AsRawFd;
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int through the pointer, which points to a
    // live one; the descriptor is borrowed and so open.
    let result = unsafe {
        libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, std::ptr::from_mut(&mut bytes))
    };
    if result == 0 { Ok(bytes) } else { Err(Errno::INVAL) }
}
