//! The thread that reads the sources, each at its own pace.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_core::clock::Nanos;
use gake_core::record::{Reading, Setting, Unit};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use crate::actuator::Actuator;
use crate::process::{Processes, Which};
use crate::prometheus::Prometheus;
use crate::source::Source;

/// A level of one source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
}

impl Level {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self { name: name.into(), unit, value }
    }
}

/// What one source said at one instant.
#[derive(Debug, Clone, PartialEq)]
pub enum Batch {
    /// Its levels.
    Readings {
        /// When, since the sampler was started.
        at: Nanos,
        /// The levels.
        readings: Vec<Reading>,
    },
    /// Settings in force.
    Settings(Vec<Setting>),
    /// It could not be read, for the first time in a row: what, in a sentence.
    Failed {
        /// When, since the sampler was started.
        at: Nanos,
        /// Which source, and why.
        reason: String,
    },
}

/// Why a sampler could not be started.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A source that cannot be read now.
    #[error("{source_name} cannot be watched: {reason}")]
    Source {
        /// Which.
        source_name: String,
        /// Why.
        reason: String,
    },
    /// No thread.
    #[error("the sampler's thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// Reads sources on a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Sampler {
    /// What the sources say, as it comes.
    pub batches: Receiver<Batch>,
    began: Instant,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Reads every source once, and then each `every` so often. Blocks for the first reading.
    ///
    /// # Errors
    /// When a source cannot be read: better told before a run than after it.
    pub fn start(sources: Vec<Source>, every: Duration) -> Result<Self, WatchError> {
        let began = Instant::now();
        let (sender, batches) = channel();
        let (ready_sender, ready) = channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("gake-watch".to_owned())
            .spawn(move || {
                let runtime =
                    Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
                let runtime = match runtime {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = ready_sender.send(Err(WatchError::Thread(error)));
                        return;
                    }
                };
                runtime.block_on(async {
                    let watching = watch(began, &sources, every, &sender).await;
                    let started = watching.is_ok();
                    // The starter waits for this.
                    let _ = ready_sender.send(watching);
                    if started {
                        // An error is the sampler's end too.
                        let _ = stopped.await;
                    }
                });
            })
            .map_err(WatchError::Thread)?;
        let gone = || WatchError::Thread(std::io::Error::other("its thread ended"));
        ready.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(Self { batches, began, stop: Some(stop), thread: Some(thread) })
    }

    /// The sampler's clock, on which batches have their instants.
    #[must_use]
    pub fn now(&self) -> Nanos {
        since(self.began)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What it said before it panicked has been received.
            let _ = thread.join();
        }
    }
}

/// Opens the sources and lets a task read each.
async fn watch(
    began: Instant,
    sources: &[Source],
    every: Duration,
    sender: &Sender<Batch>,
) -> Result<(), WatchError> {
    for source in sources {
        let name = source.to_string();
        let cannot = |reason| WatchError::Source { source_name: name.clone(), reason };
        let mut reader = Reader::open(source).await.map_err(cannot)?;
        let settings = reader.settings(&name);
        let first = reader.read().await.map_err(cannot)?;
        // Nobody listens any more when the sampler is gone, and so is this task soon.
        let _ = sender.send(Batch::Settings(settings));
        let _ = sender.send(readings(began, &name, first));
        let sender = sender.clone();
        tokio::task::spawn_local(async move {
            let mut ticks = tokio::time::interval_at((Instant::now() + every).into(), every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let mut failed = false;
            loop {
                ticks.tick().await;
                let batch = match reader.read().await {
                    Ok(levels) => {
                        failed = false;
                        readings(began, &name, levels)
                    }
                    Err(_) if failed => continue,
                    Err(reason) => {
                        failed = true;
                        let reason = format!("{name} cannot be watched: {reason}");
                        Batch::Failed { at: since(began), reason }
                    }
                };
                let _ = sender.send(batch);
            }
        });
    }
    Ok(())
}

fn since(began: Instant) -> Nanos {
    began.elapsed().as_nanos() as Nanos
}

fn readings(began: Instant, source: &str, levels: Vec<Level>) -> Batch {
    let named = levels.into_iter().map(|Level { name, unit, value }| Reading {
        source: source.to_owned(),
        name,
        unit,
        value,
    });
    Batch::Readings { at: since(began), readings: named.collect() }
}

/// An open source.
#[derive(Debug)]
enum Reader {
    Processes(Processes),
    Prometheus(Box<Prometheus>),
    Actuator(Box<Actuator>),
}

impl Reader {
    async fn open(source: &Source) -> Result<Self, String> {
        Ok(match source {
            Source::Process(pid) => Self::Processes(Processes::new(Which::Pid(*pid))),
            Source::Port(port) => Self::Processes(Processes::new(Which::Port(*port))),
            Source::Prometheus { url, metrics } => {
                Self::Prometheus(Box::new(Prometheus::new(url, metrics.clone())?))
            }
            Source::Actuator(url) => Self::Actuator(Box::new(Actuator::new(url).await?)),
        })
    }

    async fn read(&mut self) -> Result<Vec<Level>, String> {
        match self {
            Self::Processes(processes) => processes.read(Instant::now()),
            Self::Prometheus(endpoint) => endpoint.read().await,
            Self::Actuator(application) => application.read().await,
        }
    }

    fn settings(&self, source: &str) -> Vec<Setting> {
        let Self::Actuator(application) = self else { return Vec::new() };
        let setting = |(name, value): &(String, String)| Setting {
            source: source.to_owned(),
            name: name.clone(),
            value: value.clone(),
        };
        application.settings.iter().map(setting).collect()
    }
}
