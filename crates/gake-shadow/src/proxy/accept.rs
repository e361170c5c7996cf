//! Clients accepted and served on one thread, until its end.

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

/// How long to wait when the system has no descriptor or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Serves until told to stop, and then until all have left or time is over.
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
        let mut told = pin!(phase.wait_for(|phase| *phase != ProxyPhase::Running));
        std::future::poll_fn(|cx| match told.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => accepting.as_mut().poll(cx).map(|()| ()),
        })
        .await;
    }
    // New clients are refused from here on, and go elsewhere.
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
                // One who gave up in the queue is no reason to wait; a lack of descriptors is.
                let gone = [io::ErrorKind::ConnectionAborted, io::ErrorKind::Interrupted];
                if !gone.contains(&error.kind()) {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn spawn(worker: &Rc<ProxyWorker>, stream: tokio::net::TcpStream, peer: SocketAddr) {
    // An answer is one write; waiting to fill a packet would only delay its end.
    let _ = stream.set_nodelay(true);
    congestion::send_at_once(&stream, peer.ip());
    tokio::task::spawn_local(connection::serve(Rc::clone(worker), stream, peer));
}
