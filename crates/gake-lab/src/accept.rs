//! The acceptor: a task of the first thread that hands connections out.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use crate::connection;
use crate::listen::{self, Listener};
use crate::shared::Shared;
use crate::worker::{Command, Worker};

/// A connection on its way to the thread that will serve it.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) is_unix: bool,
    /// Declared, and so dropped, after the descriptor: a place is free when
    /// the socket is closed and not before.
    pub(crate) place: Place,
}

/// An open connection's place in the counts and under `max_connections`.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) number: u64,
    thread: usize,
    shared: Arc<Shared>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.loads[self.thread].fetch_sub(1, Relaxed);
        self.shared.connections.closed();
    }
}

/// Accepts until the lab stops. Must run on the first thread.
pub(crate) async fn accept_all(listener: Listener, worker: Arc<Worker>) {
    let shared = &worker.shared;
    while let Ok(mut ready) = listener.fd.readable().await {
        // Only once somebody is at the door: two listeners share the places,
        // and an idle one must not sit on the last.
        let permit = match &shared.places {
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        match ready.try_io(|fd| listen::take(fd.get_ref())) {
            Ok(Ok((fd, peer))) => {
                let place = place(shared, permit);
                let thread = place.thread;
                let accepted = Accepted { fd, peer, is_unix: listener.is_unix, place };
                hand_over(accepted, thread, &worker);
                // A crowd at the door must not keep those inside waiting: they are served
                // between two arrivals, first come, first served.
                tokio::task::yield_now().await;
            }
            Ok(Err(error)) => {
                drop(permit);
                after_error(&error, &worker).await;
            }
            Err(_would_block) => {}
        }
    }
}

fn place(shared: &Arc<Shared>, permit: Option<OwnedSemaphorePermit>) -> Place {
    let loads = shared.loads.iter().enumerate();
    let thread = loads.min_by_key(|(_, load)| load.load(Relaxed)).map_or(0, |(i, _)| i);
    shared.loads[thread].fetch_add(1, Relaxed);
    let number = shared.connections.opened();
    Place { number, thread, shared: Arc::clone(shared), _permit: permit }
}

fn hand_over(accepted: Accepted, thread: usize, worker: &Arc<Worker>) {
    if thread == 0 {
        tokio::spawn(connection::serve(accepted, Arc::clone(worker)));
    } else {
        // Fails only when that thread has stopped, and then so has the lab.
        let _ = worker.shared.commands[thread].send(Command::Serve(accepted));
    }
}

/// A client that gave up in the queue is no reason to wait; a lack of
/// descriptors or memory is, since trying again at once would spin.
async fn after_error(error: &io::Error, worker: &Worker) {
    worker.shared.connections.accept_error();
    let gave_up = [io::ErrorKind::ConnectionAborted, io::ErrorKind::Interrupted];
    if !gave_up.contains(&error.kind()) {
        worker.timer.sleep(Duration::from_millis(10)).await;
    }
}
