//! SIGINT and SIGTERM: the first drains, the second stops at once, the third ends the process.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_engine::{Stop, StopHandle};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Watches for signals while runs go on, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    count: u32,
    /// Ends the run that goes on.
    stop: Option<StopHandle>,
}

impl Signals {
    /// Watches on a thread of its own from now on.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn watch() -> std::io::Result<Self> {
        let signals = Self::default();
        let state = signals.clone();
        watch(move |count| {
            let mut state = state.lock();
            state.count = count;
            state.tell();
        })?;
        Ok(signals)
    }

    /// Whether a signal has come.
    pub fn came(&self) -> bool {
        self.lock().count > 0
    }

    /// A run that starts is ended through `stop`; at once when a signal has come already.
    pub fn stop_with(&self, stop: StopHandle) {
        let mut state = self.lock();
        state.stop = Some(stop);
        state.tell();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&self) {
        let wish = match self.count {
            0 => return,
            1 => Stop::Drain,
            2 => Stop::Now,
            #[allow(clippy::exit, reason = "the user insists, and the summary does not come")]
            _ => std::process::exit(Exit::Interrupted.code().into()),
        };
        if let Some(stop) = &self.stop {
            stop.stop(wish);
        }
    }
}

/// Watches for signals from now on; each can be received.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn receive() -> std::io::Result<Receiver<()>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    watch(move |_| {
        // Nobody receives once one has been enough.
        let _ = sender.send(());
    })?;
    Ok(receiver)
}

/// Calls `each` with the number of every signal that comes, from 1.
fn watch(mut each: impl FnMut(u32) + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _guard = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::Builder::new().name("gake-signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let mut count = 0;
            loop {
                either(&mut interrupt, &mut terminate).await;
                count += 1;
                each(count);
            }
        });
    })?;
    Ok(())
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
