//! Sampling of the target and of this machine during runs.

use std::net::SocketAddr;
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, Run, RunEvent, TargetSetting, WatchRecord};
use gake_engine::belongs_in_background;
use gake_watch::{Sampler, WatchEvent, WatchSource};
use gake_wire::Address;

use crate::{ResolvedRun, RunError};

/// Sampling interval.
const EVERY: Duration = Duration::from_secs(1);

/// A run that is shorter, or ends with a number of requests, does not wait for the search of the
/// target's processes.
const SHORT: Duration = Duration::from_secs(2);

/// First readings up to this age need no further ones at the start of a run.
const FRESH: Nanos = 20_000_000;

/// How long a run waits for readings at its start and end.
const PATIENCE: Duration = Duration::from_millis(250);

/// Samples the target and this machine, during one run or several.
#[derive(Debug, Default)]
pub struct TargetWatcher {
    sampler: Option<Sampler>,
    /// Names of sources with counters.
    counting: Vec<String>,
    /// The start of the current run, on the sampler's clock.
    began: Nanos,
    watched: WatchRecord,
    settings: Vec<TargetSetting>,
    failures: Vec<RunEvent>,
}

/// Readings since the last call.
#[derive(Debug, Default)]
pub(crate) struct NewReadings {
    pub(crate) readings: Vec<GaugeReading>,
    /// The same readings by instant.
    pub(crate) samples: Vec<(Nanos, Vec<GaugeReading>)>,
}

impl TargetWatcher {
    /// Starts to sample the sources of one run and this machine, without delaying its arrivals.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn of(prepared: &ResolvedRun) -> Result<Self, RunError> {
        Self::start(&prepared.watch, prepared, Some(&prepared.plan))
    }

    /// As [`TargetWatcher::of`], for several runs of any plans, with the targets of `prepared`.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn of_any(sources: &[WatchSource], prepared: &ResolvedRun) -> Result<Self, RunError> {
        Self::start(sources, prepared, None)
    }

    fn start(
        sources: &[WatchSource],
        prepared: &ResolvedRun,
        plan: Option<&Plan>,
    ) -> Result<Self, RunError> {
        let mut sources = sources.to_vec();
        // The target's processes must not be sampled twice.
        let usage = !sources.iter().any(WatchSource::is_local);
        // What a target used before the load is the baseline of findings, which need seconds.
        let is_short = plan.is_some_and(|plan| plan.length().is_none_or(|length| length < SHORT));
        sources.push(WatchSource::Machine {
            targets: addresses(prepared),
            usage,
            at_first: !is_short,
            ports: prepared.wires.iter().filter_map(|wire| wire.network.quick_ports()).min(),
        });
        let counting = sources.iter().filter(|source| source.has_counters());
        let counting = counting.map(ToString::to_string).collect();
        let delays_nothing = plan.is_some_and(|plan| !belongs_in_background(plan));
        let lower: fn() = if delays_nothing { || () } else { give_way };
        let sampler = Sampler::start(sources, EVERY, lower).map_err(RunError::cannot)?;
        Ok(Self { sampler: Some(sampler), counting, ..Self::default() })
    }

    /// Call right before a run, whose clock starts now. Drops earlier readings except counters,
    /// which are the baseline of the run. Returns the settings known so far, and those counters.
    pub(crate) fn begin(&mut self) -> (&[TargetSetting], NewReadings) {
        let Some(sampler) = &self.sampler else { return (&[], NewReadings::default()) };
        // The search of the target's processes follows such a reading; a run does not wait for it.
        let batches = match sampler.now() <= FRESH || sampler.is_searching() {
            true => sampler.batches.try_iter().collect(),
            false => sampler.refresh(PATIENCE),
        };
        let mut first = Vec::new();
        for batch in batches {
            match batch {
                WatchEvent::Settings(settings) => self.settings.extend(settings),
                batch => first.push(batch),
            }
        }
        self.watched = WatchRecord::default();
        self.watched.settings.clone_from(&self.settings);
        self.failures.clear();
        self.began = sampler.now();
        first.retain(|batch| is_of(batch, &self.counting));
        let fresh = self.add(first);
        (&self.settings, fresh)
    }

    /// Returns readings since the last call.
    pub(crate) fn take(&mut self) -> NewReadings {
        let Some(sampler) = &self.sampler else { return NewReadings::default() };
        let batches: Vec<_> = sampler.batches.try_iter().collect();
        self.add(batches)
    }

    /// Returns the last readings of a run.
    pub(crate) fn take_last(&mut self) -> NewReadings {
        let Some(sampler) = &self.sampler else { return NewReadings::default() };
        let last = sampler.refresh(PATIENCE);
        self.add(last)
    }

    fn add(&mut self, batches: impl IntoIterator<Item = WatchEvent>) -> NewReadings {
        let mut fresh = NewReadings::default();
        for batch in batches {
            match batch {
                WatchEvent::Readings { at, readings } => {
                    let at = at.saturating_sub(self.began);
                    self.watched.add(at, &readings);
                    fresh.readings.extend(readings.iter().cloned());
                    fresh.samples.push((at, readings));
                }
                WatchEvent::Settings(settings) => self.settings.extend(settings),
                WatchEvent::Failed { at, reason } => {
                    let at = at.saturating_sub(self.began);
                    self.failures.push(RunEvent::new(at, &reason));
                }
                WatchEvent::Refreshed => {}
            }
        }
        fresh
    }

    /// Readings of this run so far.
    pub(crate) fn so_far(&self) -> &WatchRecord {
        &self.watched
    }

    /// Moves the readings into a completed run.
    pub(crate) fn end(&mut self, run: &mut Run) {
        run.watched = std::mem::take(&mut self.watched);
        run.events.append(&mut self.failures);
    }
}

/// Lets the workers go first. In the lowest class the sampler would not run at all where other
/// programs use up the machine, and its readings are what shows that they do.
fn give_way() {
    let _ = rustix::process::nice(NICE);
}

/// About a third of the weight of a worker: with a tenth, a reading took seconds on a machine full of
/// other programs.
const NICE: i32 = 5;

/// The TCP addresses of the targets.
fn addresses(prepared: &ResolvedRun) -> Vec<SocketAddr> {
    let origins = prepared.wires.iter().flat_map(|wire| &wire.network.origins);
    // Behind a proxy, the addresses are the proxy's.
    let direct = origins.filter(|origin| !origin.is_proxied());
    let tcp = direct.flat_map(|origin| &origin.addresses).filter_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    tcp.collect()
}

/// Whether a batch has readings of one of these sources.
fn is_of(batch: &WatchEvent, sources: &[String]) -> bool {
    let WatchEvent::Readings { readings, .. } = batch else { return false };
    readings.first().is_some_and(|reading| sources.contains(&reading.source))
}
