//! SIGINT and SIGTERM: the first drains, or for scripts ends at once, the second stops at once, the
//! third ends the process.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

use gake_engine::{Stop, in_background};
use gake_run::Interrupt;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Watches for signals while runs go on, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    interrupt: Interrupt,
    /// What came first.
    first: Arc<OnceLock<&'static str>>,
}

impl Signals {
    /// Watches on a thread of its own from now on.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn watch() -> std::io::Result<Self> {
        Self::watch_each(|_| ())
    }

    /// Watches, and tells `each` the number of every signal that comes, from 1.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn watch_each(each: impl FnMut(u32) + Send + 'static) -> std::io::Result<Self> {
        Self::in_steps(Stop::Drain, each)
    }

    /// Watches; the first signal ends the iterations of a script at once, as k6 does, the second what
    /// comes after them.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn for_script() -> std::io::Result<Self> {
        Self::in_steps(Stop::Now, |_| ())
    }

    /// Watches; the first signal ends a run at once, the second the process.
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
            // Fails for those that come later.
            let _ = first.set(name);
            act(count, &interrupt);
        })?;
        Ok(signals)
    }

    /// Whether a signal has come.
    pub fn came(&self) -> bool {
        self.interrupt.came()
    }

    /// The first signal that came, in Go's words.
    pub fn first(&self) -> Option<&'static str> {
        self.first.get().copied()
    }

    /// Ends the runs that it is given to.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }
}

#[allow(clippy::exit, reason = "the user insists, and the summary does not come")]
fn leave() {
    std::process::exit(Exit::Interrupted.code().into())
}

/// Watches for signals from now on; each can be received.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn receive() -> std::io::Result<Receiver<()>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    watch(move |_, _| {
        // Nobody receives once one has been enough.
        let _ = sender.send(());
    })?;
    Ok(receiver)
}

/// Calls `each` with the number, from 1, and the name of every signal that comes.
fn watch(mut each: impl FnMut(u32, &'static str) + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _guard = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watch = move || {
        runtime.block_on(async {
            let mut count = 0;
            loop {
                let name = either(&mut interrupt, &mut terminate).await;
                count += 1;
                each(count, name);
            }
        });
    };
    // Its thread is of the class of the one that starts it.
    in_background(|| std::thread::Builder::new().name("gake-signals".to_owned()).spawn(watch))?;
    Ok(())
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) -> &'static str {
    tokio::select! {
        _ = interrupt.recv() => "interrupt",
        _ = terminate.recv() => "terminated",
    }
}
