//! The acceptor: a task of the first thread that hands connections out, or of each thread that has
//! a descriptor table of its own.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::accepted::{Accepted, Place};
use crate::command::Command;
use crate::listen::{self, Listener};
use crate::serve;
use crate::worker::Worker;

/// Accepts until the lab stops. Must run on the first thread, unless threads have a descriptor
/// table each: no other thread can serve what is accepted then.
pub(crate) async fn accept_all(listener: Listener, worker: Arc<Worker>) {
    let shared = &worker.shared;
    let thread = (shared.tables > 1).then_some(worker.index);
    while let Ok(mut ready) = listener.fd.readable().await {
        // Only once somebody is at the door: two listeners share the places,
        // and an idle one must not sit on the last.
        let permit = match &shared.places {
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        match ready.try_io(|fd| listen::take(fd.get_ref())) {
            Ok(Ok((fd, peer))) => {
                let place = Place::take(thread, &shared.loads, &shared.connections, permit);
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

fn hand_over(accepted: Accepted, thread: usize, worker: &Arc<Worker>) {
    if thread == worker.index {
        tokio::spawn(serve::connection(accepted, Arc::clone(worker)));
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
