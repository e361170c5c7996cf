//! Accepts and serves clients on one thread.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::proxy::client::connection;
use crate::proxy::congestion;
use crate::proxy::state::count;
use crate::proxy::worker::{ProxyPhase, ProxyWorker};

/// Pause after a failed accept, for lack of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Serves until the proxy drains, then until all clients have left or the drain ends.
pub(crate) async fn run(
    worker: Rc<ProxyWorker>,
    listener: std::net::TcpListener,
    mut phase: watch::Receiver<ProxyPhase>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    tokio::task::spawn_local(Rc::clone(&worker.ticker).run());
    tokio::task::spawn_local(Rc::clone(&worker.mirror).run_batches(worker.ticker.deadline()));
    {
        let mut accepting = pin!(accept(&worker, &listener));
        let mut draining = pin!(phase.wait_for(|phase| *phase != ProxyPhase::Running));
        std::future::poll_fn(|cx| match draining.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => accepting.as_mut().poll(cx).map(|()| ()),
        })
        .await;
    }
    // From here on new clients are refused.
    drop(listener);
    worker.drain();
    while worker.open() > 0 {
        let left = worker
            .shared
            .drain_ends()
            .map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()));
        tokio::select! {
            () = worker.wait_for_close() => {}
            () = tokio::time::sleep(left) => break,
            _ = phase.wait_for(|phase| *phase == ProxyPhase::Stopped) => break,
        }
    }
    Ok(())
}

async fn accept(worker: &Rc<ProxyWorker>, listener: &TcpListener) {
    let most = worker.shared.config.limits.connections.div_ceil(worker.shared.workers());
    loop {
        while worker.open() >= most {
            worker.wait_for_close().await;
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                worker.connection_opened();
                spawn(worker, stream, peer);
            }
            Err(error) => {
                count(&worker.counters().accept_errors);
                // A client that left the backlog is no reason to pause.
                let gone = [io::ErrorKind::ConnectionAborted, io::ErrorKind::Interrupted];
                if !gone.contains(&error.kind()) {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn spawn(worker: &Rc<ProxyWorker>, stream: tokio::net::TcpStream, peer: SocketAddr) {
    // Responses are single writes, which Nagle's algorithm would delay.
    let _ = stream.set_nodelay(true);
    congestion::send_at_once(&stream, peer.ip());
    tokio::task::spawn_local(connection::serve(Rc::clone(worker), stream, peer));
}
