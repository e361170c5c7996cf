//! The threads that hooks run on, and the limits they run under.

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

/// Questions that wait at most.
const WAITING: usize = 1024;
/// The line stands still when no thread takes a question for this many times a hook's limit: then
/// hooks hang, and nobody waits for them.
const STANDS_STILL: u32 = 4;

/// How often hooks did not do their part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HookCounts {
    /// They panicked.
    pub panics: u64,
    /// They failed.
    pub errors: u64,
    /// They took longer than their limit.
    pub timeouts: u64,
    /// Too many questions waited for a thread already, or one waited too long.
    pub overflows: u64,
    /// They were not asked: too often in a row they had taken longer than their limit.
    pub skipped: u64,
    /// They chose a name that no backend has.
    pub unknown_names: u64,
}

#[derive(Debug, Default)]
struct Counts {
    panics: AtomicU64,
    errors: AtomicU64,
    timeouts: AtomicU64,
    overflows: AtomicU64,
    skipped: AtomicU64,
    unknown_names: AtomicU64,
}

impl Counts {
    fn add(&self, failed: Failed) {
        let count = match failed {
            Failed::Panic => &self.panics,
            Failed::Error => &self.errors,
            Failed::Time => &self.timeouts,
            Failed::Line => &self.overflows,
        };
        count.fetch_add(1, Relaxed);
    }
}

/// Why a hook did not do its part.
#[derive(Debug, Clone, Copy)]
enum Failed {
    Panic,
    Error,
    Time,
    /// No thread had time for it.
    Line,
}

type Question = Box<dyn FnOnce(&dyn Hooks) + Send>;

/// What hooks may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookLimits {
    /// Threads they are asked on.
    pub(crate) threads: usize,
    /// How long one may run for a request.
    pub(crate) time: Duration,
    /// How long a request may wait for one of the threads, while they take others.
    pub(crate) wait: Duration,
    /// When one that never answers in time is not asked for a while.
    pub(crate) breaker: BreakerConfig,
    /// Who gets a request for which no hook said so.
    pub(crate) select_failure: SelectFailure,
}

/// Asks hooks, never for longer than their limits.
pub(crate) struct HookRunner {
    /// When it is asked who gets a request.
    select: Option<CircuitBreaker>,
    /// Backends by themselves: one whose requests take too long spoils no other's.
    munge: HashMap<Arc<str>, (ChangeScope, CircuitBreaker)>,
    questions: SyncSender<Question>,
    /// Questions that the threads have taken.
    taken: Arc<AtomicU64>,
    time: Duration,
    wait: Duration,
    select_failure: SelectFailure,
    counts: Arc<Counts>,
    /// Closed when the thread that tells what is finished has ended.
    telling: Mutex<Receiver<()>>,
}

impl std::fmt::Debug for HookRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl HookRunner {
    /// Starts the threads for questions, and one that tells what is finished. They end with the
    /// runner, but nobody waits for a hook that hangs.
    pub(crate) fn start(
        hooks: Arc<dyn Hooks>,
        backends: impl Iterator<Item = Arc<str>>,
        limits: HookLimits,
        exchanges: Option<Exchanges>,
    ) -> io::Result<Self> {
        let (questions, receiver) = sync_channel::<Question>(WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        let counts = Arc::new(Counts::default());
        let taken = Arc::new(AtomicU64::new(0));
        for _ in 0..limits.threads {
            let (hooks, receiver) = (Arc::clone(&hooks), Arc::clone(&receiver));
            let answer = move || answer(&receiver, &*hooks);
            std::thread::Builder::new().name("gake-hooks".to_owned()).spawn(answer)?;
        }
        let (told, telling) = sync_channel(1);
        if let Some(exchanges) = exchanges {
            let (hooks, counts) = (Arc::clone(&hooks), Arc::clone(&counts));
            std::thread::Builder::new().name("gake-finished".to_owned()).spawn(move || {
                let _told = told;
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
            questions,
            taken,
            time: limits.time,
            wait: limits.wait,
            select_failure: limits.select_failure,
            counts,
            telling: Mutex::new(telling),
        })
    }

    pub(crate) fn selects(&self) -> bool {
        self.select.is_some()
    }

    pub(crate) fn munges(&self, backend: &str) -> ChangeScope {
        self.munge.get(backend).map_or(ChangeScope::No, |(munge, _)| *munge)
    }

    /// Who gets a request; `None` when the hook did not say it and the master alone gets it.
    pub(crate) async fn select(&self, head: HookRequestHead) -> Option<Selection> {
        let Some(circuit) = &self.select else { return Some(Selection::All) };
        let said = self.ask(circuit, move |hooks| hooks.select(&head)).await;
        said.or(match self.select_failure {
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
        self.ask(circuit, move |hooks| hooks.munge(&backend, &mut request).map(|()| request)).await
    }

    /// A hook chose a name that no backend has.
    pub(crate) fn unknown_name(&self) {
        self.counts.unknown_names.fetch_add(1, Relaxed);
    }

    /// Waits until what is finished has been told, for so long at most. No more may come.
    pub(crate) fn finish(&self, within: Duration) {
        let telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = telling.recv_timeout(within);
    }

    pub(crate) fn counts(&self) -> HookCounts {
        let Counts { panics, errors, timeouts, overflows, skipped, unknown_names } = &*self.counts;
        HookCounts {
            panics: panics.load(Relaxed),
            errors: errors.load(Relaxed),
            timeouts: timeouts.load(Relaxed),
            overflows: overflows.load(Relaxed),
            skipped: skipped.load(Relaxed),
            unknown_names: unknown_names.load(Relaxed),
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        circuit: &CircuitBreaker,
        question: impl FnOnce(&dyn Hooks) -> Result<T, HookError> + Send + 'static,
    ) -> Option<T> {
        if !circuit.allows() {
            self.counts.skipped.fetch_add(1, Relaxed);
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let taken = Arc::new(OnceLock::new());
        let (take, all_taken) = (Arc::clone(&taken), Arc::clone(&self.taken));
        let question: Question = Box::new(move |hooks| {
            all_taken.fetch_add(1, Relaxed);
            // Nobody waits for an answer that is late already.
            if !sender.is_closed() {
                let _ = take.set(Instant::now());
                let _ = sender.send(contained(|| question(hooks)));
            }
        });
        let said = match self.questions.try_send(question) {
            Ok(()) => self.answered(receiver, &taken).await,
            Err(_) => Err(Failed::Line),
        };
        // A hook that fails in time holds up nobody, and a line that moves is no hook that hangs.
        circuit.record(!matches!(said, Err(Failed::Time)));
        // Counted here and nowhere else: a hook that fails too late has failed once.
        said.map_err(|failed| self.counts.add(failed)).ok()
    }

    /// Waits for the answer to a question: in line as long as the line moves, and then for the
    /// hook's own limit. Timers alone look at where the question is, so that an answer in time
    /// costs one wake-up.
    async fn answered<T>(
        &self,
        mut receiver: oneshot::Receiver<Result<T, Failed>>,
        taken: &OnceLock<Instant>,
    ) -> Result<T, Failed> {
        let asked = Instant::now();
        let (mut moved, mut last) = (asked, self.taken.load(Relaxed));
        let mut next = self.time.min(self.wait);
        loop {
            match tokio::time::timeout(next, &mut receiver).await {
                Ok(Ok(said)) => return said,
                Ok(Err(_)) => return Err(Failed::Time),
                Err(_) => {}
            }
            if let Some(since) = taken.get() {
                next = self.time.saturating_sub(since.elapsed());
                if next.is_zero() {
                    return Err(Failed::Time);
                }
                continue;
            }
            let all = self.taken.load(Relaxed);
            if all != last {
                (moved, last) = (Instant::now(), all);
            }
            if moved.elapsed() >= self.time * STANDS_STILL {
                return Err(Failed::Time);
            }
            next = self.time.min(self.wait.saturating_sub(asked.elapsed()));
            if next.is_zero() {
                return Err(Failed::Line);
            }
        }
    }
}

fn answer(questions: &Mutex<Receiver<Question>>, hooks: &dyn Hooks) {
    loop {
        let question = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = question else { return };
        question(hooks);
    }
}

/// What a hook says, unless it fails or panics.
fn contained<T>(hook: impl FnOnce() -> Result<T, HookError>) -> Result<T, Failed> {
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(said) => said.map_err(|error| match error.is::<HookTimeout>() {
            true => Failed::Time,
            false => Failed::Error,
        }),
        Err(_) => Err(Failed::Panic),
    }
}
