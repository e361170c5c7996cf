//! The threads that hooks run on, and their limits.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{
    ChangeScope, HookError, HookRequest, HookRequestHead, HookTimeout, Hooks, SelectFailure,
    Selection,
};
use crate::breaker::CircuitBreaker;
use crate::collect::Exchanges;
use crate::config::BreakerConfig;

/// Maximum number of queued calls.
const QUEUE_MAX: usize = 1024;
/// The queue is stalled when no thread has started a call for this many times the hooks' limit: all
/// hooks hang, and waiting is pointless.
const STALL_LIMITS: u32 = 4;

/// Counts of failed hook calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HookCounts {
    /// Panics.
    pub panics: u64,
    /// Errors.
    pub errors: u64,
    /// Calls that exceeded their time limit.
    pub timeouts: u64,
    /// Calls that found the queue full, or waited in it too long.
    pub overflows: u64,
    /// Calls skipped because the circuit breaker was open.
    pub skipped: u64,
    /// Selected names that no backend has.
    pub unknown_names: u64,
}

#[derive(Debug, Default)]
struct AtomicCounts {
    panics: AtomicU64,
    errors: AtomicU64,
    timeouts: AtomicU64,
    overflows: AtomicU64,
    skipped: AtomicU64,
    unknown_names: AtomicU64,
}

impl AtomicCounts {
    fn add(&self, failed: HookFailure) {
        let count = match failed {
            HookFailure::Panic => &self.panics,
            HookFailure::Error => &self.errors,
            HookFailure::Timeout => &self.timeouts,
            HookFailure::Overflow => &self.overflows,
        };
        count.fetch_add(1, Relaxed);
    }
}

#[derive(Debug, Clone, Copy)]
enum HookFailure {
    Panic,
    Error,
    Timeout,
    /// The queue was full, or the wait in it too long.
    Overflow,
}

type HookCall = Box<dyn FnOnce(&dyn Hooks) + Send>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HookLimits {
    pub(crate) threads: usize,
    /// Run time of a call.
    pub(crate) time: Duration,
    /// Wait for a thread.
    pub(crate) wait: Duration,
    /// When calls are skipped after timeouts.
    pub(crate) breaker: BreakerConfig,
    pub(crate) select_failure: SelectFailure,
}

/// Runs hooks within their limits.
pub(crate) struct HookRunner {
    /// `None` without a hook that selects.
    select: Option<CircuitBreaker>,
    /// By backend, so that timeouts for one do not affect the others.
    munge: HashMap<Arc<str>, (ChangeScope, CircuitBreaker)>,
    calls: SyncSender<HookCall>,
    /// Calls taken from the queue.
    started: Arc<AtomicU64>,
    time: Duration,
    wait: Duration,
    select_failure: SelectFailure,
    counts: Arc<AtomicCounts>,
    /// Closed when the thread that calls `finished` has ended.
    finished_thread: Mutex<Receiver<()>>,
}

impl std::fmt::Debug for HookRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookRunner").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl HookRunner {
    /// Starts the threads for calls, and one for `finished`. They end with the runner, which does not
    /// wait for a hanging hook.
    pub(crate) fn start(
        hooks: Arc<dyn Hooks>,
        backends: impl Iterator<Item = Arc<str>>,
        limits: HookLimits,
        exchanges: Option<Exchanges>,
    ) -> io::Result<Self> {
        let (calls, receiver) = sync_channel::<HookCall>(QUEUE_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let counts = Arc::new(AtomicCounts::default());
        let started = Arc::new(AtomicU64::new(0));
        for _ in 0..limits.threads {
            let (hooks, receiver) = (Arc::clone(&hooks), Arc::clone(&receiver));
            let run = move || run_calls(&receiver, &*hooks);
            std::thread::Builder::new().name("gake-hooks".to_owned()).spawn(run)?;
        }
        let (ended, finished_thread) = sync_channel(1);
        if let Some(exchanges) = exchanges {
            let (hooks, counts) = (Arc::clone(&hooks), Arc::clone(&counts));
            std::thread::Builder::new().name("gake-finished".to_owned()).spawn(move || {
                let _ended = ended;
                while let Some(exchange) = exchanges.next() {
                    if let Err(failed) = contained(|| hooks.finished(&exchange)) {
                        counts.add(failed);
                    }
                }
            })?;
        }
        let circuit = || CircuitBreaker::new(limits.breaker, Instant::now());
        let munge = backends.map(|name| {
            let munge = hooks.munges(&name);
            (name, (munge, circuit()))
        });
        Ok(Self {
            select: hooks.selects().then(circuit),
            munge: munge.collect(),
            calls,
            started,
            time: limits.time,
            wait: limits.wait,
            select_failure: limits.select_failure,
            counts,
            finished_thread: Mutex::new(finished_thread),
        })
    }

    pub(crate) fn selects(&self) -> bool {
        self.select.is_some()
    }

    pub(crate) fn munges(&self, backend: &str) -> ChangeScope {
        self.munge.get(backend).map_or(ChangeScope::No, |(munge, _)| *munge)
    }

    /// The selected backends; `None` when the hook failed and only the master gets the request.
    pub(crate) async fn select(&self, head: HookRequestHead) -> Option<Selection> {
        let Some(circuit) = &self.select else { return Some(Selection::All) };
        let result = self.call(circuit, move |hooks| hooks.select(&head)).await;
        result.or(match self.select_failure {
            SelectFailure::Master => None,
            SelectFailure::All => Some(Selection::All),
        })
    }

    pub(crate) async fn munge(
        &self,
        backend: &Arc<str>,
        mut request: HookRequest,
    ) -> Option<HookRequest> {
        let (_, circuit) = self.munge.get(backend)?;
        let backend = Arc::clone(backend);
        self.call(circuit, move |hooks| hooks.munge(&backend, &mut request).map(|()| request)).await
    }

    pub(crate) fn unknown_name(&self) {
        self.counts.unknown_names.fetch_add(1, Relaxed);
    }

    /// Waits for the remaining calls of `finished`; the feed must be closed.
    pub(crate) fn finish(&self, within: Duration) {
        let finished_thread = self.finished_thread.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = finished_thread.recv_timeout(within);
    }

    pub(crate) fn counts(&self) -> HookCounts {
        let AtomicCounts { panics, errors, timeouts, overflows, skipped, unknown_names } =
            &*self.counts;
        HookCounts {
            panics: panics.load(Relaxed),
            errors: errors.load(Relaxed),
            timeouts: timeouts.load(Relaxed),
            overflows: overflows.load(Relaxed),
            skipped: skipped.load(Relaxed),
            unknown_names: unknown_names.load(Relaxed),
        }
    }

    async fn call<T: Send + 'static>(
        &self,
        circuit: &CircuitBreaker,
        call: impl FnOnce(&dyn Hooks) -> Result<T, HookError> + Send + 'static,
    ) -> Option<T> {
        if !circuit.allows() {
            self.counts.skipped.fetch_add(1, Relaxed);
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let started = Arc::new(OnceLock::new());
        let (start, all_started) = (Arc::clone(&started), Arc::clone(&self.started));
        let call: HookCall = Box::new(move |hooks| {
            all_started.fetch_add(1, Relaxed);
            // The caller may have given up waiting.
            if !sender.is_closed() {
                let _ = start.set(Instant::now());
                let _ = sender.send(contained(|| call(hooks)));
            }
        });
        let result = match self.calls.try_send(call) {
            Ok(()) => self.wait_for(receiver, &started).await,
            Err(_) => Err(HookFailure::Overflow),
        };
        // Only timeouts open the breaker: other failures do not delay requests.
        circuit.record(!matches!(result, Err(HookFailure::Timeout)));
        // The only place that counts, so that a late failure counts once.
        result.map_err(|failed| self.counts.add(failed)).ok()
    }

    /// Waits for the result of a call: in the queue as long as it moves, then for the hook's time
    /// limit. Only timers check the progress, so a result in time costs a single wake-up.
    async fn wait_for<T>(
        &self,
        mut receiver: oneshot::Receiver<Result<T, HookFailure>>,
        started: &OnceLock<Instant>,
    ) -> Result<T, HookFailure> {
        let queued = Instant::now();
        let (mut progressed, mut last) = (queued, self.started.load(Relaxed));
        let mut next = self.time.min(self.wait);
        loop {
            match tokio::time::timeout(next, &mut receiver).await {
                Ok(Ok(result)) => return result,
                Ok(Err(_)) => return Err(HookFailure::Timeout),
                Err(_) => {}
            }
            if let Some(since) = started.get() {
                next = self.time.saturating_sub(since.elapsed());
                if next.is_zero() {
                    return Err(HookFailure::Timeout);
                }
                continue;
            }
            let all = self.started.load(Relaxed);
            if all != last {
                (progressed, last) = (Instant::now(), all);
            }
            if progressed.elapsed() >= self.time * STALL_LIMITS {
                return Err(HookFailure::Timeout);
            }
            next = self.time.min(self.wait.saturating_sub(queued.elapsed()));
            if next.is_zero() {
                return Err(HookFailure::Overflow);
            }
        }
    }
}

fn run_calls(calls: &Mutex<Receiver<HookCall>>, hooks: &dyn Hooks) {
    loop {
        let call = calls.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(call) = call else { return };
        call(hooks);
    }
}

/// Calls a hook, catching panics.
fn contained<T>(hook: impl FnOnce() -> Result<T, HookError>) -> Result<T, HookFailure> {
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(result) => result.map_err(|error| match error.is::<HookTimeout>() {
            true => HookFailure::Timeout,
            false => HookFailure::Error,
        }),
        Err(_) => Err(HookFailure::Panic),
    }
}
