//! The thread that reads the sources, each at its own pace.

use std::pin::pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use gake_core::clock::{Nanos, nanos};
use gake_core::record::{GaugeReading, LevelUnit, TargetSetting, UNANSWERED};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;

use crate::actuator::Actuator;
use crate::database::Database;
use crate::level::{FIRST, Level, no_answer, within};
use crate::machine::Machine;
use crate::process::{Processes, Which};
use crate::prometheus::Prometheus;
use crate::source::WatchSource;

/// What one source returned at one instant.
#[derive(Debug, Clone, PartialEq)]
pub enum Batch {
    /// Its levels.
    Readings {
        /// When, since the sampler was started.
        at: Nanos,
        /// The levels.
        readings: Vec<GaugeReading>,
    },
    /// Settings in force.
    Settings(Vec<TargetSetting>),
    /// It could not be read, for the first time in a row.
    Failed {
        /// When, since the sampler was started.
        at: Nanos,
        /// Which source, and why.
        reason: String,
    },
    /// A source was read again for [`Sampler::refresh`].
    Refreshed,
}

/// Why a sampler could not be started.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A source that cannot be read now.
    #[error("{source_name} cannot be watched: {reason}")]
    Source {
        /// The source.
        source_name: String,
        /// Why.
        reason: String,
    },
    /// The thread could not be started.
    #[error("the sampler's thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// Reads sources on a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Sampler {
    /// Batches from the sources, as they come.
    pub batches: Receiver<Batch>,
    /// Sources that are read again when asked.
    refreshable: usize,
    refresh: watch::Sender<u64>,
    began: Instant,
    /// The thread ends when this is gone.
    _stop: oneshot::Sender<()>,
}

impl Sampler {
    /// Reads every source once, then at intervals of `every`. Blocks for the first reading. The
    /// sampler's thread calls `beside` between the two: what follows accompanies a load, while the
    /// first reading is awaited.
    ///
    /// # Errors
    /// When a source cannot be read, so that this is known before the run.
    pub fn start(
        sources: Vec<WatchSource>,
        every: Duration,
        beside: impl FnOnce() + Send + 'static,
    ) -> Result<Self, WatchError> {
        let began = Instant::now();
        let (sender, batches) = channel();
        let (ready_sender, ready) = channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let (refresh, refreshed) = watch::channel(0);
        let refreshable = sources.iter().filter(|source| is_refreshable(source)).count();
        // Nobody waits for its end, which may be in the middle of a reading.
        std::thread::Builder::new()
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
                    let watching = watch(began, &sources, every, &sender, &refreshed).await;
                    let started = watching.is_ok();
                    // The starter waits for this.
                    let _ = ready_sender.send(watching);
                    if started {
                        beside();
                        // An error is the sampler's end too.
                        let _ = stopped.await;
                    }
                });
            })
            .map_err(WatchError::Thread)?;
        let gone = || WatchError::Thread(std::io::Error::other("its thread ended"));
        ready.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(Self { batches, refreshable, refresh, began, _stop: stop })
    }

    /// Reads the sources of this machine and those with counters now, besides the regular readings:
    /// a short run may fall between two of these. Returns the batches of all sources, and waits no
    /// longer than `limit`.
    #[must_use]
    pub fn refresh(&self, limit: Duration) -> Vec<Batch> {
        let mut said = Vec::new();
        let mut waiting = self.refreshable;
        let until = Instant::now() + limit;
        self.refresh.send_modify(|times| *times += 1);
        while waiting > 0 {
            match self.batches.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Batch::Refreshed) => waiting -= 1,
                Ok(batch) => said.push(batch),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        said.extend(self.batches.try_iter());
        said
    }

    /// The sampler's clock, on which batches have their instants.
    #[must_use]
    pub fn now(&self) -> Nanos {
        since(self.began)
    }
}

/// Opens the sources and lets a task read each.
async fn watch(
    began: Instant,
    sources: &[WatchSource],
    every: Duration,
    sender: &Sender<Batch>,
    refreshed: &watch::Receiver<u64>,
) -> Result<(), WatchError> {
    for source in sources {
        let name = source.to_string();
        let cannot = |reason| WatchError::Source { source_name: name.clone(), reason };
        let mut reader = within(FIRST, Reader::open(source)).await.map_err(cannot)?;
        let settings = reader.settings(&name);
        let first = within(FIRST, reader.read()).await.map_err(cannot)?;
        // Nobody listens any more when the sampler is gone, and so is this task soon.
        let _ = sender.send(Batch::Settings(settings));
        let _ = sender.send(readings(began, &name, first));
        let follow = Follow {
            name,
            began,
            every,
            refreshable: is_refreshable(source),
            failing: false,
            sender: sender.clone(),
        };
        tokio::task::spawn_local(follow.forever(reader, refreshed.clone()));
    }
    Ok(())
}

/// What reads one source again and again.
struct Follow {
    name: String,
    began: Instant,
    every: Duration,
    refreshable: bool,
    /// Whether the last reading failed.
    failing: bool,
    sender: Sender<Batch>,
}

impl Follow {
    async fn forever(mut self, mut reader: Reader, mut refreshed: watch::Receiver<u64>) {
        let mut ticks = tokio::time::interval_at((Instant::now() + self.every).into(), self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let asked = tokio::select! {
                _ = ticks.tick() => false,
                asked = refreshed.changed(), if self.refreshable => asked.is_ok(),
            };
            self.read(&mut reader).await;
            if asked {
                self.send(Batch::Refreshed);
            }
        }
    }

    /// Waits for a reading, and counts the source as silent for each one that was due meanwhile,
    /// but for the first: a reading of many requests may take as long as the time between two.
    async fn read(&mut self, reader: &mut Reader) {
        let mut reading = pin!(reader.read());
        let mut limit = 2 * self.every;
        loop {
            let waited = own_delay();
            let (reason, is_over) = match tokio::time::timeout(limit, reading.as_mut()).await {
                Ok(Ok(levels)) => {
                    self.failing = false;
                    return self.send(readings(self.began, &self.name, levels));
                }
                Ok(Err(reason)) => (reason, true),
                Err(_) => (no_answer(limit), false),
            };
            // It may have answered in time, and this thread had no core to read it.
            if own_delay().saturating_sub(waited) <= STARVED {
                self.failed(&reason);
            }
            if is_over {
                return;
            }
            limit = self.every;
        }
    }

    /// That a source did not answer is a reading too; why is said once in a row.
    fn failed(&mut self, reason: &str) {
        let level = Level::new(UNANSWERED, LevelUnit::Share, 1.0);
        self.send(readings(self.began, &self.name, vec![level]));
        if !std::mem::replace(&mut self.failing, true) {
            let reason = format!("{} cannot be watched: {reason}", self.name);
            self.send(Batch::Failed { at: since(self.began), reason });
        }
    }

    fn send(&self, batch: Batch) {
        // Nobody listens any more when the sampler is gone, and so is this task soon.
        let _ = self.sender.send(batch);
    }
}

fn is_refreshable(source: &WatchSource) -> bool {
    source.is_local() || source.has_counters()
}

/// A source is not said to be silent while this thread waited so long for a core, in nanoseconds.
const STARVED: u64 = 200_000_000;

/// How long this thread has waited for a core, in nanoseconds.
fn own_delay() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

fn since(began: Instant) -> Nanos {
    nanos(began.elapsed())
}

fn readings(began: Instant, source: &str, levels: Vec<Level>) -> Batch {
    let named = levels.into_iter().map(|Level { name, unit, value }| GaugeReading {
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
    Processes(Box<Processes>),
    Prometheus(Box<Prometheus>),
    Actuator(Box<Actuator>),
    Database(Box<Database>),
    Machine(Box<Machine>),
}

impl Reader {
    async fn open(source: &WatchSource) -> Result<Self, String> {
        let processes = |which| Self::Processes(Box::new(Processes::new(which)));
        Ok(match source {
            WatchSource::Process(pid) => processes(Which::Pid(*pid)),
            WatchSource::Port(port) => processes(Which::Ports(vec![*port])),
            WatchSource::Prometheus { url, metrics } => {
                Self::Prometheus(Box::new(Prometheus::new(url, metrics.clone())?))
            }
            WatchSource::Actuator(url) => Self::Actuator(Box::new(Actuator::new(url).await?)),
            WatchSource::Database(dsn) => Self::Database(Box::new(Database::open(dsn).await?)),
            WatchSource::Machine { targets, usage, ports } => {
                Self::Machine(Box::new(Machine::new(targets, *usage, *ports)))
            }
        })
    }

    async fn read(&mut self) -> Result<Vec<Level>, String> {
        match self {
            Self::Processes(processes) => processes.read(Instant::now()),
            Self::Prometheus(endpoint) => endpoint.read().await,
            Self::Actuator(application) => application.read().await,
            Self::Database(database) => database.read().await,
            Self::Machine(machine) => Ok(machine.read(Instant::now())),
        }
    }

    fn settings(&self, source: &str) -> Vec<TargetSetting> {
        let Self::Actuator(application) = self else { return Vec::new() };
        let setting = |(name, value): &(String, String)| TargetSetting {
            source: source.to_owned(),
            name: name.clone(),
            value: value.clone(),
        };
        application.settings.iter().map(setting).collect()
    }
}
