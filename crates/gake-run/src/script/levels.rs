//! The gauges of a script's run: its users.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use gake_core::clock::{Clock, Nanos, SECOND};
use gake_core::metric::{Definition, SeriesKey, SeriesTable, SeriesValue};
use gake_engine::RunClock;
use gake_k6::metrics::BuiltinMetric;
use gake_k6::test::Test;
use gake_k6::unattributed_samples::unattributed_series;
use gake_k6::user::series_index::SeriesIndex;

use crate::Interrupt;

/// Sampling interval.
const EVERY: Duration = Duration::from_secs(1);

/// The gauges `vus` and `vus_max`, recorded once a second.
#[derive(Debug)]
pub(super) struct Levels {
    test: Arc<Test>,
    users: SeriesKey,
    users_max: SeriesKey,
}

impl Levels {
    /// The gauges of a script.
    pub(super) fn new(
        test: &Arc<Test>,
        series_index: &SeriesIndex,
        metrics: &[Arc<Definition>],
    ) -> Self {
        let series = |builtin: BuiltinMetric| {
            let metric = &metrics[usize::from(builtin.number())];
            unattributed_series(test, series_index, None, Arc::clone(metric))
        };
        let (users, users_max) = (series(BuiltinMetric::Vus), series(BuiltinMetric::VusMax));
        Self { test: Arc::clone(test), users, users_max }
    }

    /// Records the active users and all of them in `seen`.
    fn see(&self, (active, all): (f64, f64), at: Nanos, seen: &mut SeriesTable) {
        for (series, level) in [(&self.users, active), (&self.users_max, all)] {
            let fresh = SeriesValue::Gauge { last: level, at, min: level, max: level, samples: 1 };
            seen.add_value(series.clone(), &fresh);
            self.test.write_samples(&series.metric, None, level, 1);
        }
    }
}

/// The phase of a run, shared with the thread that counts users.
#[derive(Debug, Default)]
pub(super) struct RunPhase {
    /// The clock of users in this process, once they are made.
    pub(super) clock: OnceLock<RunClock>,
    /// The last known instant of the run, if users are in other processes.
    pub(super) followed: AtomicU64,
    /// Whether the load is over.
    pub(super) is_over: AtomicBool,
    /// Whether a threshold ended the run. As in k6, users are no longer counted then.
    pub(super) is_ended: AtomicBool,
}

impl RunPhase {
    /// The time in the run; `None` before and after it.
    fn now(&self) -> Option<Nanos> {
        let own = self.clock.get().map_or(0, Clock::now);
        let now = own.max(self.followed.load(Relaxed));
        (now > 0 && !self.is_over.load(Relaxed)).then_some(now)
    }
}

/// Counts the users of all scripts once a second, from before `setup` to after `teardown`, on its
/// own thread.
pub(super) struct UserTicker {
    seen: Arc<Mutex<SeriesTable>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl UserTicker {
    pub(super) fn start(
        levels: Levels,
        tests: Vec<Arc<Test>>,
        phase: Arc<RunPhase>,
        interrupt: Interrupt,
        in_background: bool,
    ) -> Self {
        let seen = Arc::new(Mutex::new(SeriesTable::default()));
        let table = Arc::clone(&seen);
        let (stop, stopped) = channel::<()>();
        let began = Instant::now();
        let tick = move || {
            if in_background {
                gake_engine::lower_class();
            }
            for number in 1_u32.. {
                let left = (began + EVERY * number).saturating_duration_since(Instant::now());
                if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout)
                    || interrupt.came()
                    || phase.is_ended.load(Relaxed)
                    || tests.iter().any(|test| test.aborted().is_some())
                {
                    return;
                }
                let now = phase.now();
                let active = |at| tests.iter().map(|test| test.active(at)).sum::<usize>();
                let active = now.map_or(0, active);
                let all: u64 = tests.iter().map(|test| test.initialized()).sum();
                let at = u64::from(number) * SECOND;
                levels.see((active as f64, all as f64), at, &mut lock(&table));
            }
        };
        // Without the thread, users are not counted.
        let thread = Builder::new().name("gake-users".to_owned()).spawn(tick).ok();
        Self { seen, stop: Some(stop), thread }
    }

    /// The gauges so far.
    pub(super) fn so_far(&self) -> SeriesTable {
        lock(&self.seen).clone()
    }

    /// Stops the thread and returns the gauges.
    pub(super) fn finish(mut self) -> SeriesTable {
        self.end();
        self.so_far()
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for UserTicker {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(table: &Mutex<SeriesTable>) -> MutexGuard<'_, SeriesTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
