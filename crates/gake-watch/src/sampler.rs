//! The thread that reads the sources, each in its own task.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use gake_core::clock::{Nanos, nanos};
use gake_core::record::{GaugeReading, LevelUnit, TargetSetting, UNANSWERED};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;

use crate::actuator::Actuator;
use crate::database::DatabaseSource;
use crate::level::{FIRST, Level, no_response, within};
use crate::machine::Machine;
use crate::process::{ProcessSelector, Processes};
use crate::prometheus::Prometheus;
use crate::source::WatchSource;

/// An event of one source.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent {
    /// Levels read.
    Readings {
        /// When, since the sampler was started.
        at: Nanos,
        /// The levels.
        readings: Vec<GaugeReading>,
    },
    /// Settings in force.
    Settings(Vec<TargetSetting>),
    /// A reading failed after a successful one.
    Failed {
        /// When, since the sampler was started.
        at: Nanos,
        /// The source and the reason.
        reason: String,
    },
    /// A source was read for [`Sampler::refresh`].
    Refreshed,
}

/// Why a sampler could not be started.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A source cannot be read.
    #[error("{source_name} cannot be watched: {reason}")]
    Source {
        /// The source.
        source_name: String,
        /// The reason.
        reason: String,
    },
    /// The thread could not be started.
    #[error("the sampler's thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// Reads sources on its own thread until it is dropped.
#[derive(Debug)]
pub struct Sampler {
    /// Events from the sources.
    pub batches: Receiver<WatchEvent>,
    /// Number of sources that [`Sampler::refresh`] reads.
    refreshable: usize,
    refresh: watch::Sender<u64>,
    searching: Arc<AtomicBool>,
    began: Instant,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Sampler {
    /// Reads every source once, then at intervals of `every`. Blocks until the first reading; then
    /// the sampler's thread calls `between`, before the readings during the load. The first of them
    /// follows after 20 ms if the targets' processes on this machine are still to be searched.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn start(
        sources: Vec<WatchSource>,
        every: Duration,
        between: impl FnOnce() + Send + 'static,
    ) -> Result<Self, WatchError> {
        let began = Instant::now();
        let (sender, batches) = channel();
        let (ready_sender, ready) = channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let (refresh, refreshed) = watch::channel(0);
        let searching = Arc::new(AtomicBool::new(false));
        let search = Arc::clone(&searching);
        let refreshable = sources.iter().filter(|source| is_refreshable(source)).count();
        // Not joined, since it may end in the middle of a reading.
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
                    let watching =
                        watch((began, every), &sources, &sender, &refreshed, &search).await;
                    let started = watching.is_ok();
                    // `start` waits for this.
                    let _ = ready_sender.send(watching);
                    if started {
                        between();
                        // An error also means that the sampler was dropped.
                        let _ = stopped.await;
                    }
                });
            })
            .map_err(WatchError::Thread)?;
        let gone = || WatchError::Thread(std::io::Error::other("its thread ended"));
        ready.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(Self { batches, refreshable, refresh, searching, began, _stop: stop })
    }

    /// Reads the sources of this machine and those with counters now: a short run may fall between
    /// two regular readings. Returns the events of all sources, waiting at most `limit`.
    #[must_use]
    pub fn refresh(&self, limit: Duration) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        let mut waiting = self.refreshable;
        let until = Instant::now() + limit;
        self.refresh.send_modify(|times| *times += 1);
        while waiting > 0 {
            match self.batches.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(WatchEvent::Refreshed) => waiting -= 1,
                Ok(batch) => events.push(batch),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        events.extend(self.batches.try_iter());
        events
    }

    /// Whether the first search of the targets' processes is under way, for which
    /// [`Sampler::refresh`] would wait.
    #[must_use]
    pub fn is_searching(&self) -> bool {
        self.searching.load(Relaxed)
    }

    /// The time since the sampler was started, the clock of its events.
    #[must_use]
    pub fn now(&self) -> Nanos {
        since(self.began)
    }
}

/// Opens the sources and spawns a task for each.
async fn watch(
    (began, every): (Instant, Duration),
    sources: &[WatchSource],
    sender: &Sender<WatchEvent>,
    refreshed: &watch::Receiver<u64>,
    searching: &Arc<AtomicBool>,
) -> Result<(), WatchError> {
    for source in sources {
        let name = source.to_string();
        let cannot = |reason| WatchError::Source { source_name: name.clone(), reason };
        let mut reader = within(FIRST, SourceReader::open(source)).await.map_err(cannot)?;
        let settings = reader.settings(&name);
        let first = within(FIRST, reader.read()).await.map_err(cannot)?;
        // An error means that the sampler was dropped.
        let _ = sender.send(WatchEvent::Settings(settings));
        let _ = sender.send(readings(began, &name, first));
        let second = reader.second_reading().map(|at| (at, Arc::clone(searching)));
        if second.is_some() {
            searching.store(true, Relaxed);
        }
        let task = SourceTask {
            name,
            began,
            every,
            refreshable: is_refreshable(source),
            failing: false,
            sender: sender.clone(),
            second,
        };
        tokio::task::spawn_local(task.run(reader, refreshed.clone()));
    }
    Ok(())
}

struct SourceTask {
    name: String,
    began: Instant,
    every: Duration,
    refreshable: bool,
    failing: bool,
    sender: Sender<WatchEvent>,
    /// The second reading, if it is due at an instant of its own, and what is true until then.
    second: Option<(Instant, Arc<AtomicBool>)>,
}

impl SourceTask {
    async fn run(mut self, mut reader: SourceReader, mut refreshed: watch::Receiver<u64>) {
        let mut ticks = tokio::time::interval_at((Instant::now() + self.every).into(), self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let second = self.second.as_ref().map_or_else(Instant::now, |(at, _)| *at);
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep_until(second.into()), if self.second.is_some() => false,
                _ = ticks.tick() => false,
                asked = refreshed.changed(), if self.refreshable => asked.is_ok(),
            };
            self.read(&mut reader).await;
            if let Some((_, searching)) = self.second.take_if(|(at, _)| Instant::now() >= *at) {
                searching.store(false, Relaxed);
            }
            if asked {
                self.send(WatchEvent::Refreshed);
            }
        }
    }

    /// Waits for a reading, and reports the source as unanswered for each further reading due
    /// meanwhile, except the first: a reading of many requests may take as long as the interval.
    async fn read(&mut self, reader: &mut SourceReader) {
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
                Err(_) => (no_response(limit), false),
            };
            // Unless this thread had no core to read a response in time.
            if own_delay().saturating_sub(waited) <= STARVED {
                self.failed(&reason);
            }
            if is_over {
                return;
            }
            limit = self.every;
        }
    }

    /// Reports a failed reading as a level, and the reason of the first in a row.
    fn failed(&mut self, reason: &str) {
        let level = Level::new(UNANSWERED, LevelUnit::Share, 1.0);
        self.send(readings(self.began, &self.name, vec![level]));
        if !std::mem::replace(&mut self.failing, true) {
            let reason = format!("{} cannot be watched: {reason}", self.name);
            self.send(WatchEvent::Failed { at: since(self.began), reason });
        }
    }

    fn send(&self, batch: WatchEvent) {
        // An error means that the sampler was dropped.
        let _ = self.sender.send(batch);
    }
}

fn is_refreshable(source: &WatchSource) -> bool {
    source.is_local() || source.has_counters()
}

/// Nanoseconds of waiting for a core, above which this thread does not blame a late reading on the source.
const STARVED: u64 = 200_000_000;

/// Nanoseconds that this thread has waited for a core.
fn own_delay() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

fn since(began: Instant) -> Nanos {
    nanos(began.elapsed())
}

fn readings(began: Instant, source: &str, levels: Vec<Level>) -> WatchEvent {
    let named = levels.into_iter().map(|Level { name, unit, value }| GaugeReading {
        source: source.to_owned(),
        name,
        unit,
        value,
    });
    WatchEvent::Readings { at: since(began), readings: named.collect() }
}

#[derive(Debug)]
enum SourceReader {
    Processes(Box<Processes>),
    Prometheus(Box<Prometheus>),
    Actuator(Box<Actuator>),
    Database(Box<DatabaseSource>),
    Machine(Box<Machine>),
}

impl SourceReader {
    async fn open(source: &WatchSource) -> Result<Self, String> {
        let processes = |which| Self::Processes(Box::new(Processes::new(which)));
        Ok(match source {
            WatchSource::Process(pid) => processes(ProcessSelector::Pid(*pid)),
            WatchSource::Port(port) => processes(ProcessSelector::Ports(vec![*port])),
            WatchSource::Prometheus { url, metrics } => {
                Self::Prometheus(Box::new(Prometheus::new(url, metrics.clone())?))
            }
            WatchSource::Actuator(url) => Self::Actuator(Box::new(Actuator::new(url).await?)),
            WatchSource::Database(dsn) => {
                Self::Database(Box::new(DatabaseSource::open(dsn).await?))
            }
            WatchSource::Machine { targets, usage, at_first, ports } => {
                Self::Machine(Box::new(Machine::new(targets, (*usage, *at_first), *ports)))
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

    /// When another reading is due, if the first was partial.
    fn second_reading(&self) -> Option<Instant> {
        let Self::Machine(machine) = self else { return None };
        machine.second_reading()
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_start_does_not_wait_for_the_search_of_the_targets_processes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let targets = vec![listener.local_addr().unwrap()];
        let source = WatchSource::Machine { targets, usage: true, at_first: false, ports: None };
        let sampler = Sampler::start(vec![source], Duration::from_secs(3_600), || ()).unwrap();
        let next = || loop {
            if let WatchEvent::Readings { readings, .. } = sampler.batches.recv().unwrap() {
                return readings;
            }
        };
        let has = |readings: &[GaugeReading], name| readings.iter().any(|one| one.name == name);
        let first = next();
        assert!(has(&first, "listener_dropped") && !has(&first, "rss"), "{first:?}");
        // Without waiting for the interval.
        let second = next();
        assert!(has(&second, "rss"), "{second:?}");
        // A refresh is read after the search, which has ended then.
        assert!(!sampler.refresh(Duration::from_secs(60)).is_empty());
        assert!(!sampler.is_searching());
    }
}
