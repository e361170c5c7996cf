//! SIGINT and SIGTERM: the first drains, the second stops at once, the third ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use gake_engine::{Stop, StopHandle};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Whether a signal has come.
#[derive(Debug, Clone, Default)]
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Whether a signal has come.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Waits for signals on a thread of its own and stops the run through `stop`.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn stop_on_signal(stop: StopHandle) -> std::io::Result<Interrupted> {
    let interrupted = Interrupted::default();
    let flag = interrupted.clone();
    watch(move |count| {
        flag.0.store(true, Ordering::Relaxed);
        match count {
            1 => stop.stop(Stop::Drain),
            2 => stop.stop(Stop::Now),
            #[allow(clippy::exit, reason = "the user insists, and the summary does not come")]
            _ => std::process::exit(Exit::Interrupted as i32),
        }
    })?;
    Ok(interrupted)
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
