//! A worker thread: a runtime, its timer, and the connections it was given.

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
use crate::command::Command;
#[cfg(feature = "http3")]
use crate::http3;
use crate::listen::{self, Listener};
use crate::serve;
use crate::shared::Shared;
use crate::timer::Timer;
use crate::worker::Worker;

/// A thread that has all it needs and has not been started: what can fail has
/// been done, so that [`Lab::start`](crate::Lab::start) can report it.
#[derive(Debug)]
pub(crate) struct Ready {
    runtime: Runtime,
    timer: Timer,
    listeners: Vec<Listener>,
    /// Where HTTP/3 comes in.
    udp: Option<UdpSocket>,
}

impl Ready {
    /// Prepares a thread that accepts on `sockets`, and HTTP/3 on `udp`.
    pub(crate) fn new(sockets: Vec<socket2::Socket>, udp: Option<UdpSocket>) -> io::Result<Ready> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            // How many tasks run before the sockets and the timer are looked
            // at again. Half of tokio's default: under load it bounds the
            // lateness of the timer.
            .event_interval(31)
            .build()?;
        let entered = runtime.enter();
        let timer = Timer::new()?;
        let listeners = sockets.into_iter().map(Listener::new).collect::<io::Result<_>>()?;
        drop(entered);
        Ok(Ready { runtime, timer, listeners, udp })
    }

    /// Starts the thread. With a descriptor table of its own it opens its own listener there, and
    /// tells `listening`, which it drops otherwise.
    pub(crate) fn start(
        self,
        shared: Arc<Shared>,
        index: usize,
        commands: UnboundedReceiver<Command>,
        listening: Sender<Result<(), LabError>>,
    ) -> io::Result<JoinHandle<()>> {
        let Ready { runtime, timer, mut listeners, udp } = self;
        let http = serve::http_settings(shared.config.connection_timeout);
        let worker = Arc::new(Worker { shared, timer: Arc::new(timer), http, index });
        std::thread::Builder::new().name(format!("gake-lab-{index}")).spawn(move || {
            // Waits end when they are due and not up to 50 µs later. Refused
            // only by a kernel without prctl, where it does not matter.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            if worker.shared.tables > 1 {
                let opened = {
                    let _entered = runtime.enter();
                    listen_in_own_table(&worker.shared)
                };
                let told = opened.map(|listener| listeners.push(listener));
                let has_failed = told.is_err();
                // Whoever starts the lab waits for all.
                let _ = listening.send(told);
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

/// Gives the calling thread a descriptor table of its own, and opens a listener in it.
fn listen_in_own_table(shared: &Shared) -> Result<Listener, LabError> {
    // SAFETY: the descriptors that threads open from now on stay with them: a connection is served
    // where it is accepted, and no database is behind it.
    unsafe { own_table() }?;
    let socket = listen::one_of_many(shared.addr, shared.config.accept_count)?;
    Ok(Listener::new(socket)?)
}

async fn run(
    worker: Arc<Worker>,
    (listeners, udp): (Vec<Listener>, Option<UdpSocket>),
    mut commands: UnboundedReceiver<Command>,
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
            Command::Serve(accepted) => {
                tokio::spawn(serve::connection(accepted, Arc::clone(&worker)));
            }
            Command::Pause(until) => {
                let begun = Instant::now();
                worker.shared.block_until(until);
                // All threads stand still at once: the first one speaks for them.
                if worker.index == 0 {
                    let stalled = nanos(begun.elapsed());
                    worker.shared.stalled_ns.fetch_add(stalled, Relaxed);
                }
            }
            Command::Stop => return,
        }
    }
}
