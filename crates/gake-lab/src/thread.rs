//! A worker thread: a runtime, a timer and its connections.

#![expect(
    unsafe_code,
    reason = "own_table of a thread that accepts and serves connections by itself"
)]

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_core::clock::nanos;
use gake_files::own_table;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::LabError;
use crate::accept;
use crate::command::WorkerCommand;
#[cfg(feature = "http3")]
use crate::http3;
use crate::listen::{self, Listener};
use crate::serve;
use crate::shared::Shared;
use crate::timer::Timer;
use crate::worker::Worker;

/// A thread before its start: everything that can fail has been done, so that
/// [`Lab::start`](crate::Lab::start) can report it.
#[derive(Debug)]
pub(crate) struct PreparedThread {
    runtime: Runtime,
    timer: Timer,
    listeners: Vec<Listener>,
    /// The UDP socket of HTTP/3.
    udp: Option<UdpSocket>,
}

impl PreparedThread {
    /// Prepares a thread that accepts TCP on `sockets` and HTTP/3 on `udp`.
    pub(crate) fn new(
        sockets: Vec<socket2::Socket>,
        udp: Option<UdpSocket>,
    ) -> io::Result<PreparedThread> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            // Tasks to run before sockets and the timer are polled again. Half of tokio's
            // default: it bounds the timer's lateness under load.
            .event_interval(31)
            .build()?;
        let entered = runtime.enter();
        let timer = Timer::new()?;
        let listeners = sockets.into_iter().map(Listener::new).collect::<io::Result<_>>()?;
        drop(entered);
        Ok(PreparedThread { runtime, timer, listeners, udp })
    }

    /// Starts the thread. With a descriptor table of its own it opens its own listener there and
    /// reports on `listening`, which it drops otherwise.
    pub(crate) fn start(
        self,
        shared: Arc<Shared>,
        index: usize,
        commands: UnboundedReceiver<WorkerCommand>,
        listening: Sender<Result<(), LabError>>,
    ) -> io::Result<JoinHandle<()>> {
        let PreparedThread { runtime, timer, mut listeners, udp } = self;
        let http = serve::http_settings(shared.config.connection_timeout);
        let worker = Arc::new(Worker { shared, timer: Arc::new(timer), http, index });
        std::thread::Builder::new().name(format!("gake-lab-{index}")).spawn(move || {
            // No timer slack of 50 µs. Fails only on a kernel without prctl, where it does not
            // matter.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            if worker.shared.tables > 1 {
                let opened = {
                    let _entered = runtime.enter();
                    listen_in_own_table(&worker.shared)
                };
                let result = opened.map(|listener| listeners.push(listener));
                let has_failed = result.is_err();
                // `Lab::start` waits for all threads.
                let _ = listening.send(result);
                if has_failed {
                    return;
                }
            }
            drop(listening);
            runtime.block_on(run(worker, (listeners, udp), commands));
            // Drops every task, and with them the connections.
            runtime.shutdown_timeout(Duration::from_millis(100));
        })
    }
}

/// Gives the calling thread its own descriptor table and opens a listener in it.
fn listen_in_own_table(shared: &Shared) -> Result<Listener, LabError> {
    // SAFETY: descriptors opened by this thread stay with it: a connection is served where it is
    // accepted, and no database is behind it.
    unsafe { own_table() }?;
    let socket = listen::one_of_many(shared.addr, shared.config.accept_count)?;
    Ok(Listener::new(socket)?)
}

async fn run(
    worker: Arc<Worker>,
    (listeners, udp): (Vec<Listener>, Option<UdpSocket>),
    mut commands: UnboundedReceiver<WorkerCommand>,
) {
    let timer = Arc::clone(&worker.timer);
    tokio::spawn(async move { timer.drive().await });
    for listener in listeners {
        tokio::spawn(accept::accept_all(listener, Arc::clone(&worker)));
    }
    #[cfg(feature = "http3")]
    if let Some(udp) = udp {
        tokio::spawn(http3::accept_all(udp, Arc::clone(&worker)));
    }
    #[cfg(not(feature = "http3"))]
    drop(udp);
    while let Some(command) = commands.recv().await {
        match command {
            WorkerCommand::Serve(accepted) => {
                tokio::spawn(serve::connection(accepted, Arc::clone(&worker)));
            }
            WorkerCommand::Pause(until) => {
                let begun = Instant::now();
                worker.shared.block_until(until);
                // All threads stall together: the first one counts the time.
                if worker.index == 0 {
                    let stalled = nanos(begun.elapsed());
                    worker.shared.stalled_ns.fetch_add(stalled, Relaxed);
                }
            }
            WorkerCommand::Stop => return,
        }
    }
}
