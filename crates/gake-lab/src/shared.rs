//! What all threads of a lab share: settings, limits, counters.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::{ALT_SVC, HeaderMap, HeaderValue};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use crate::LabConfig;
use crate::arrivals::Arrivals;
use crate::command::WorkerCommand;
use crate::database::{ConnectionPool, UserService};
use crate::draws::Draws;
use crate::metastable;
use crate::stats::{ConnectionCounters, Stats, WorkerCounters};
use crate::tls::TlsIdentity;

/// Nothing in it is written on the path of a fast request.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: LabConfig,
    /// The actual address, with the free port filled in.
    pub(crate) addr: SocketAddr,
    /// Descriptor tables; with more than one, each thread has its own.
    pub(crate) tables: usize,
    pub(crate) started: Instant,
    /// The workers of the thread-pool model; tokio's semaphore is FIFO.
    pub(crate) pool: Option<Arc<Semaphore>>,
    /// Permits to be served or to queue, when the queue is bounded.
    pub(crate) queue: Option<Arc<Semaphore>>,
    /// Permits for `max_connections`.
    pub(crate) places: Option<Arc<Semaphore>>,
    pub(crate) counters: Vec<WorkerCounters>,
    pub(crate) connections: Arc<ConnectionCounters>,
    /// Connections per worker thread, to balance new ones.
    pub(crate) loads: Arc<[AtomicU64]>,
    pub(crate) arrivals: Arrivals,
    pub(crate) metastable: Option<metastable::SlowState>,
    pub(crate) service_draws: Draws,
    pub(crate) route_draws: Draws,
    pub(crate) users: Option<UserService>,
    /// Requests that took a worker, when some of them leak it.
    pub(crate) served: AtomicU64,
    /// Total time stalled, in nanoseconds.
    pub(crate) stalled_ns: AtomicU64,
    reset_draws: Draws,
    pub(crate) identity: Option<TlsIdentity>,
    /// The `Alt-Svc` header, when the lab serves HTTP/3.
    alternative: Option<HeaderValue>,
    /// Set until the first request schedules the planned stall.
    pub(crate) stall_armed: AtomicBool,
    pub(crate) commands: Vec<UnboundedSender<WorkerCommand>>,
    stopping: AtomicBool,
    stop_lock: Mutex<()>,
    stop_bell: Condvar,
}

impl Shared {
    pub(crate) fn new(
        config: LabConfig,
        addr: SocketAddr,
        identity: Option<TlsIdentity>,
        commands: Vec<UnboundedSender<WorkerCommand>>,
    ) -> Shared {
        let threads = commands.len();
        let semaphore =
            |n: Option<usize>| n.map(|n| Arc::new(Semaphore::new(n.min(Semaphore::MAX_PERMITS))));
        Shared {
            addr,
            tables: config.tables(),
            started: Instant::now(),
            pool: semaphore(config.threads),
            queue: semaphore(config.queue.zip(config.threads).map(|(q, t)| q.saturating_add(t))),
            places: semaphore(config.max_connections),
            counters: (0..threads).map(|_| WorkerCounters::new()).collect(),
            connections: Arc::default(),
            loads: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            arrivals: Arrivals::new(config.record_arrivals, threads),
            metastable: config.metastable.map(metastable::SlowState::new),
            service_draws: Draws::new(config.seed, 1),
            route_draws: Draws::new(config.seed, 2),
            users: config
                .database
                .clone()
                .map(|database| UserService::new(ConnectionPool::new(database))),
            served: AtomicU64::new(0),
            stalled_ns: AtomicU64::new(0),
            reset_draws: Draws::new(config.seed, 3),
            alternative: alternative(&config, addr),
            identity,
            stall_armed: AtomicBool::new(config.stall.is_some()),
            commands,
            stopping: AtomicBool::new(false),
            stop_lock: Mutex::new(()),
            stop_bell: Condvar::new(),
            config,
        }
    }

    /// The headers of every response.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        self.advertise(&mut headers);
        headers
    }

    /// Advertises HTTP/3 if it is served.
    pub(crate) fn advertise(&self, headers: &mut HeaderMap) {
        if let Some(alternative) = &self.alternative {
            headers.insert(ALT_SVC, alternative.clone());
        }
    }

    /// Sums the counters of all threads.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats { elapsed: self.started.elapsed(), ..Stats::default() };
        for counters in &self.counters {
            counters.add_to(&mut stats);
        }
        stats.connections = self.connections.snapshot();
        stats.stalled = Duration::from_nanos(self.stalled_ns.load(Relaxed));
        stats
    }

    /// Whether every request may be served immediately.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.pool.is_none() && self.config.service.is_none() && self.config.reset_rate == 0.0
    }

    /// Whether the next request is reset.
    pub(crate) fn draw_reset(&self) -> bool {
        let rate = self.config.reset_rate;
        rate > 0.0 && self.reset_draws.next().unit() < rate
    }

    /// The service time of the next request; `None` when it has none.
    pub(crate) fn draw_service(&self) -> Option<Duration> {
        let service = self.config.service.as_ref()?;
        Some(service.sample(&mut self.service_draws.next()))
    }

    /// Whether the request that takes a worker now leaks it.
    pub(crate) fn leaks(&self) -> bool {
        let Some(every) = self.config.leak_every else { return false };
        (self.served.fetch_add(1, Relaxed) + 1).is_multiple_of(every)
    }

    /// Blocks every worker thread until `until`.
    pub(crate) fn pause(&self, until: Instant) {
        self.tell(|| WorkerCommand::Pause(until));
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        // The lock orders this with a thread that is about to block.
        drop(self.stop_lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.stop_bell.notify_all();
        self.tell(|| WorkerCommand::Stop);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Blocks the calling thread, as a stall must, until `until` or a stop.
    pub(crate) fn block_until(&self, until: Instant) {
        let mut lock = self.stop_lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_stopping() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.stop_bell.wait_timeout(lock, left);
            lock = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn tell(&self, command: impl Fn() -> WorkerCommand) {
        for worker in &self.commands {
            // A thread that has ended needs no command.
            let _ = worker.send(command());
        }
    }
}

/// Advertises HTTP/3 on the same port (RFC 7838).
fn alternative(config: &LabConfig, addr: SocketAddr) -> Option<HeaderValue> {
    let text = format!("h3=\":{}\"; ma=86400", addr.port());
    config.http3.then_some(text)?.parse().ok()
}
