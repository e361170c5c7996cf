//! Serves a client's connection until it closes, times out, or becomes a tunnel.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::proxy::client::ClientState;
use crate::proxy::client::direct;
use crate::proxy::client::frame_path;
use crate::proxy::client::head_buffer::HeadBuffer;
use crate::proxy::client::request;
use crate::proxy::client::side::{ClientSide, NextStep};
use crate::proxy::http2;
use crate::proxy::policy::forwarded::ClientOrigin;
use crate::proxy::state::count;
use crate::proxy::stream::SocketStream;
use crate::proxy::worker::ProxyWorker;

/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Lingering close: time and bytes to read and discard after our FIN. Closing with unread bytes would
/// send a reset, which can destroy the response.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 << 10;

pub(crate) async fn serve(worker: Rc<ProxyWorker>, stream: TcpStream, peer: SocketAddr) {
    let counters = worker.shared.counters.get(worker.index);
    if let Some(counters) = counters {
        count(&counters.connections);
        count(&counters.open);
    }
    // In its own scope, so that the connection is closed before it is discounted.
    serve_open(Rc::clone(&worker), stream, peer).await;
    if let Some(counters) = counters {
        counters.open.fetch_sub(1, Relaxed);
    }
    worker.connection_closed();
}

async fn serve_open(worker: Rc<ProxyWorker>, stream: TcpStream, peer: SocketAddr) {
    let (stream, tls) = match &worker.acceptor {
        None => (SocketStream::Plain(stream), false),
        // Boxed, like all state that not every idle connection needs.
        Some(acceptor) => {
            let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
            match Box::pin(handshake).await {
                Ok(Ok(stream)) => (SocketStream::Tls(Box::new(stream.into())), true),
                Ok(Err(_)) => return count(&worker.counters().malformed),
                Err(_) => return count(&worker.counters().client_timeouts),
            }
        }
    };
    let deadline = Rc::new(worker.ticker.deadline());
    deadline.set(worker.timeout_ticks.head);
    let origin = ClientOrigin::new(peer, worker.shared.config.listen.port(), tls);
    let client = Rc::new(ClientState::new(worker, peer, deadline, origin));
    let mut received = HeadBuffer::new(client.worker.shared.config.limits.head_bytes);
    let mut stream = stream;
    let mut is_first = true;
    let is_http2 = stream.has_chosen_http2();
    while is_http2 || read_head(&client, &mut stream, &mut received).await {
        if is_http2 || (is_first && http2::connection::is_preface(received.bytes())) {
            let early = received.take();
            let io = http2::connection::ClientIo::new(stream, early, &client);
            return Box::pin(http2::connection::serve(&client, io)).await;
        }
        is_first = false;
        let rules = client.worker.shared.rules();
        let read = request::read(received.bytes(), rules, &mut client.origin.borrow_mut());
        let mut request = match read {
            Ok(request) => request,
            Err(rejection) => {
                let mut side =
                    ClientSide { client: &client, stream: &mut stream, received: &mut received };
                let then = Box::pin(side.reject(rejection)).await;
                return end(stream, then).await;
            }
        };
        received.consume(request.length);
        client.number(&mut request.head);
        client.note_odd(request.odd_names);
        if client.worker.passes_bytes {
            // Boxed for the same reason.
            match Box::pin(direct::serve(&client, &mut stream, &mut received, request)).await {
                NextStep::Next => continue,
                then => return end(stream, then).await,
            }
        }
        let serving = Box::pin(frame_path::serve(&client, stream, received, request));
        let (then, rest, behind) = match serving.await {
            Some(after) => after,
            None => return,
        };
        if then != NextStep::Next {
            return end(rest, then).await;
        }
        (stream, received) = (rest, behind);
    }
}

async fn end(stream: SocketStream, then: NextStep) {
    match then {
        NextStep::Close => Box::pin(linger(stream)).await,
        // Dropped.
        NextStep::Next | NextStep::Gone => {}
    }
}

/// Waits for a request's head; `false` on a disconnect, a timeout, or, when idle, a drain.
async fn read_head(
    client: &Rc<ClientState>,
    stream: &mut SocketStream,
    received: &mut HeadBuffer,
) -> bool {
    std::future::poll_fn(|cx| {
        client.deadline.register(cx);
        if let Poll::Ready(came) = received.poll(stream, cx) {
            return Poll::Ready(matches!(came, Ok(true)));
        }
        let is_drained = client.worker.is_stopping() && received.is_empty();
        if is_drained || client.deadline.fired() { Poll::Ready(false) } else { Poll::Pending }
    })
    .await
}

/// Closes the connection gracefully.
async fn linger(mut stream: SocketStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let drain = async {
        let mut buffer = [0; 4096];
        let mut left = LINGER_BYTES;
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, drain).await;
}
