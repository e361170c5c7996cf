//! A worker thread: a runtime, its timer, and the connections it was given.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::accept;
use crate::command::Command;
use crate::listen::Listener;
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
}

impl Ready {
    /// Prepares a thread that accepts on `sockets`.
    pub(crate) fn new(sockets: Vec<socket2::Socket>) -> io::Result<Ready> {
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
        Ok(Ready { runtime, timer, listeners })
    }

    /// Starts the thread.
    pub(crate) fn start(
        self,
        shared: Arc<Shared>,
        index: usize,
        commands: UnboundedReceiver<Command>,
    ) -> io::Result<JoinHandle<()>> {
        let Ready { runtime, timer, listeners } = self;
        let http = serve::http_settings(shared.config.connection_timeout);
        let worker = Arc::new(Worker { shared, timer: Arc::new(timer), http, index });
        std::thread::Builder::new().name(format!("gake-lab-{index}")).spawn(move || {
            // Waits end when they are due and not up to 50 µs later. Refused
            // only by a kernel without prctl, where it does not matter.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            runtime.block_on(run(worker, listeners, commands));
            // Drops every task, and with them the connections.
            runtime.shutdown_timeout(Duration::from_millis(100));
        })
    }
}

async fn run(
    worker: Arc<Worker>,
    listeners: Vec<Listener>,
    mut commands: UnboundedReceiver<Command>,
) {
    let timer = Arc::clone(&worker.timer);
    tokio::spawn(async move { timer.drive().await });
    for listener in listeners {
        tokio::spawn(accept::accept_all(listener, Arc::clone(&worker)));
    }
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
                    let stalled = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    worker.shared.stalled_ns.fetch_add(stalled, Relaxed);
                }
            }
            Command::Stop => return,
        }
    }
}
