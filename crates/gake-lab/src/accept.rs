//! Accepts connections: on the first thread, which distributes them, or on every thread when each
//! has its own descriptor table.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::accepted::{AcceptedConnection, ConnectionSlot};
use crate::command::WorkerCommand;
use crate::listen::{self, Listener};
use crate::serve;
use crate::worker::Worker;

/// Accepts until the lab stops. Without per-thread descriptor tables only the first thread may call
/// it.
pub(crate) async fn accept_all(listener: Listener, worker: Arc<Worker>) {
    let shared = &worker.shared;
    let thread = (shared.tables > 1).then_some(worker.index);
    while let Ok(mut ready) = listener.fd.readable().await {
        // Only once a client is waiting: two listeners share the permits, and an idle one must
        // not hold the last.
        let permit = match &shared.places {
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        match ready.try_io(|fd| listen::take(fd.get_ref())) {
            Ok(Ok((fd, peer))) => {
                let slot = ConnectionSlot::take(thread, &shared.loads, &shared.connections, permit);
                let thread = slot.thread;
                let accepted = AcceptedConnection { fd, peer, is_unix: listener.is_unix, slot };
                hand_over(accepted, thread, &worker);
                // New connections must not starve open ones: serve those between two accepts.
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

fn hand_over(accepted: AcceptedConnection, thread: usize, worker: &Arc<Worker>) {
    if thread == worker.index {
        tokio::spawn(serve::connection(accepted, Arc::clone(worker)));
    } else {
        // Fails only when that thread, and so the lab, has stopped.
        let _ = worker.shared.commands[thread].send(WorkerCommand::Serve(accepted));
    }
}

/// Backs off when descriptors or memory have run out, where an immediate retry would spin; a client
/// that gave up in the backlog needs no pause.
async fn after_error(error: &io::Error, worker: &Worker) {
    worker.shared.connections.accept_error();
    let gave_up = [io::ErrorKind::ConnectionAborted, io::ErrorKind::Interrupted];
    if !gave_up.contains(&error.kind()) {
        worker.timer.sleep(Duration::from_millis(10)).await;
    }
}
