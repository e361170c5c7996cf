//! The handle that reads and changes a running proxy from any thread.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::hooks::HookCounts;
use crate::mirror::ledger::Ledger;
use crate::proxy::ProxyStats;
use crate::proxy::state::ProxyState;
use crate::proxy::worker::ProxyPhase;

/// A handle to a running proxy.
#[derive(Debug, Clone)]
pub struct ProxyControl(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<ProxyState>,
    phase: watch::Sender<ProxyPhase>,
    ramps: Mutex<Vec<Ramp>>,
    ended: Notify,
}

/// A percentage that moves linearly from `from` to `to`.
#[derive(Debug, Clone, Copy)]
struct Ramp {
    shadow: usize,
    from: f64,
    to: f64,
    begun: Instant,
    length: Duration,
}

/// The final counts of a proxy.
#[derive(Debug, Clone)]
pub struct ProxySummary {
    /// Counts of the client's path.
    pub stats: ProxyStats,
    /// One ledger per shadow.
    pub ledgers: Vec<Ledger>,
    /// Counts of failed hook calls.
    pub hooks: HookCounts,
    /// Exchanges dropped because a listener's queue was full.
    pub exchanges_dropped: u64,
}

/// A snapshot of a shadow.
#[derive(Debug, Clone)]
pub struct ShadowState {
    /// The shadow's counts.
    pub ledger: Ledger,
    /// The current percentage.
    pub percentage: f64,
    /// Whether the kill switch is on.
    pub killed: bool,
    /// Whether the circuit breaker is open.
    pub breaker_open: bool,
    /// Copies that wait in the queue.
    pub waiting: usize,
    /// Bytes of bodies of queued and running copies.
    pub bytes: u64,
}

/// No shadow has this name.
#[derive(Debug, thiserror::Error)]
#[error("there is no shadow named {0:?}")]
pub struct NoSuchShadow(pub String);

impl ProxyControl {
    pub(crate) fn new(shared: Arc<ProxyState>, phase: watch::Sender<ProxyPhase>) -> Self {
        let begun = Instant::now();
        let ramps = shared.shadows.iter().enumerate().filter_map(|(shadow, backend)| {
            let (length, to) = (backend.config.ramp?, backend.config.percentage);
            Some(Ramp { shadow, from: 0.0, to, begun, length })
        });
        let ramps = Mutex::new(ramps.collect());
        Self(Arc::new(Inner { shared, phase, ramps, ended: Notify::new() }))
    }

    /// The counts of the client's path.
    #[must_use]
    pub fn stats(&self) -> ProxyStats {
        self.0.shared.stats()
    }

    /// Snapshots of all shadows.
    #[must_use]
    pub fn shadows(&self) -> Vec<ShadowState> {
        let shadows = self.0.shared.shadows.iter();
        let state = |backend: &crate::mirror::backend::ShadowBackend| ShadowState {
            ledger: Ledger::read(Arc::clone(&backend.config.backend.name), backend.pages()),
            percentage: backend.gate.percentage(),
            killed: backend.gate.is_killed() || self.0.shared.killed.load(Relaxed),
            breaker_open: backend.gate.is_open(),
            waiting: backend.gate.waiting(),
            bytes: backend.gate.bytes(),
        };
        shadows.map(state).collect()
    }

    /// Counts of failed hook calls.
    #[must_use]
    pub fn hooks(&self) -> HookCounts {
        self.0.shared.hooks.as_ref().map(|hooks| hooks.counts()).unwrap_or_default()
    }

    /// Exchanges dropped because a listener's queue was full.
    #[must_use]
    pub fn exchanges_dropped(&self) -> u64 {
        self.0.shared.feed.dropped()
    }

    /// Sets a shadow's percentage, ramping over `over` unless that is zero.
    ///
    /// # Errors
    /// When there is no such shadow.
    pub fn set_percentage(
        &self,
        shadow: &str,
        percentage: f64,
        over: Duration,
    ) -> Result<(), NoSuchShadow> {
        let number = self.number(shadow)?;
        let gate = &self.0.shared.shadows[number].gate;
        let mut ramps = self.ramps();
        ramps.retain(|ramp| ramp.shadow != number);
        if over.is_zero() {
            gate.set_percentage(percentage);
        } else {
            ramps.push(Ramp {
                shadow: number,
                from: gate.percentage(),
                to: percentage,
                begun: Instant::now(),
                length: over,
            });
        }
        Ok(())
    }

    /// Stops sending to one shadow, or to all; queued copies are discarded too.
    ///
    /// # Errors
    /// When there is no such shadow.
    pub fn kill(&self, shadow: Option<&str>) -> Result<(), NoSuchShadow> {
        self.set_killed(shadow, true)
    }

    /// Undoes [`kill`](Self::kill).
    ///
    /// # Errors
    /// When there is no such shadow.
    pub fn resume(&self, shadow: Option<&str>) -> Result<(), NoSuchShadow> {
        self.set_killed(shadow, false)
    }

    fn set_killed(&self, shadow: Option<&str>, killed: bool) -> Result<(), NoSuchShadow> {
        let shared = &self.0.shared;
        match shadow {
            Some(name) => shared.shadows[self.number(name)?].gate.set_killed(killed),
            None => {
                shared.killed.store(killed, Relaxed);
                for backend in &shared.shadows {
                    backend.gate.set_killed(killed);
                }
            }
        }
        Ok(())
    }

    /// Stops accepting clients and ends the proxy after `time` at the latest.
    pub fn drain(&self, time: Duration) {
        self.0.shared.set_drain_ends(Instant::now() + time);
        self.0.phase.send_replace(ProxyPhase::Draining);
    }

    /// Ends the proxy without a drain.
    pub fn stop_now(&self) {
        self.0.shared.set_drain_ends(Instant::now());
        self.0.phase.send_replace(ProxyPhase::Stopped);
    }

    pub(crate) fn shared(&self) -> &Arc<ProxyState> {
        &self.0.shared
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.0.phase.borrow() != ProxyPhase::Running
    }

    pub(crate) fn end(&self) {
        self.0.ended.notify_one();
    }

    /// The counts so far.
    #[must_use]
    pub fn summary(&self) -> ProxySummary {
        ProxySummary {
            stats: self.stats(),
            ledgers: self.shadows().into_iter().map(|shadow| shadow.ledger).collect(),
            hooks: self.hooks(),
            exchanges_dropped: self.exchanges_dropped(),
        }
    }

    fn number(&self, name: &str) -> Result<usize, NoSuchShadow> {
        let mut shadows = self.0.shared.shadows.iter();
        shadows
            .position(|backend| *backend.config.backend.name == *name)
            .ok_or_else(|| NoSuchShadow(name.to_owned()))
    }

    fn ramps(&self) -> std::sync::MutexGuard<'_, Vec<Ramp>> {
        self.0.ramps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn ended(&self) {
        self.0.ended.notified().await;
    }

    pub(crate) fn step_ramps(&self, now: Instant) {
        self.ramps().retain(|ramp| {
            let elapsed = now.saturating_duration_since(ramp.begun).as_secs_f64();
            let share = (elapsed / ramp.length.as_secs_f64()).min(1.0);
            let percentage = ramp.from + (ramp.to - ramp.from) * share;
            self.0.shared.shadows[ramp.shadow].gate.set_percentage(percentage);
            share < 1.0
        });
    }
}
