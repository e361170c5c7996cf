//! SIGINT and SIGTERM: the first drains, or aborts the iterations of a script; the second aborts;
//! the third ends the process.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

use gake_engine::{Stop, lower_class};
use gake_run::Interrupt;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Watches for signals during one or more runs.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    interrupt: Interrupt,
    first: Arc<OnceLock<&'static str>>,
}

impl Signals {
    /// Watches on its own thread from now on.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn watch() -> std::io::Result<Self> {
        Self::watch_each(|_| ())
    }

    /// Watches, and calls `each` with the number of each signal, from 1.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn watch_each(each: impl FnMut(u32) + Send + 'static) -> std::io::Result<Self> {
        Self::in_steps(Stop::Drain, each)
    }

    /// Watches; the first signal aborts the iterations of a script, as in k6, the second one the
    /// `teardown` after them.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn for_script() -> std::io::Result<Self> {
        Self::in_steps(Stop::Now, |_| ())
    }

    /// Watches; the first signal aborts a run, the second ends the process.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn at_once() -> std::io::Result<Self> {
        Self::each_with(|count, interrupt| match count {
            1 => interrupt.stop(Stop::Now),
            _ => leave(),
        })
    }

    fn in_steps(first: Stop, mut each: impl FnMut(u32) + Send + 'static) -> std::io::Result<Self> {
        Self::each_with(move |count, interrupt| {
            each(count);
            match count {
                1 => interrupt.stop(first),
                2 => interrupt.insist(),
                _ => leave(),
            }
        })
    }

    fn each_with(mut act: impl FnMut(u32, &Interrupt) + Send + 'static) -> std::io::Result<Self> {
        let signals = Self::default();
        let (interrupt, first) = (signals.interrupt.clone(), Arc::clone(&signals.first));
        watch(move |count, name| {
            // Only the first signal is stored.
            let _ = first.set(name);
            act(count, &interrupt);
        })?;
        Ok(signals)
    }

    /// Whether a signal was received.
    pub fn came(&self) -> bool {
        self.interrupt.came()
    }

    /// Go's name of the first signal.
    pub fn first(&self) -> Option<&'static str> {
        self.first.get().copied()
    }

    /// The interrupt that signals trigger.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }
}

#[allow(clippy::exit, reason = "the user insists on leaving without a summary")]
fn leave() {
    std::process::exit(Exit::Interrupted.code().into())
}

/// Watches for signals from now on and sends one message for each.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn receive() -> std::io::Result<Receiver<()>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    watch(move |_, _| {
        // The receiver may have been dropped after the first one.
        let _ = sender.send(());
    })?;
    Ok(receiver)
}

/// Calls `each` with the number, from 1, and the name of each signal.
fn watch(mut each: impl FnMut(u32, &'static str) + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _guard = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watch = move || {
        lower_class();
        runtime.block_on(async {
            let mut count = 0;
            loop {
                let name = either(&mut interrupt, &mut terminate).await;
                count += 1;
                each(count, name);
            }
        });
    };
    std::thread::Builder::new().name("gake-signals".to_owned()).spawn(watch)?;
    Ok(())
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) -> &'static str {
    tokio::select! {
        _ = interrupt.recv() => "interrupt",
        _ = terminate.recv() => "terminated",
    }
}
