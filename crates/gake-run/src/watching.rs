//! Watches the target during runs, and the machine that loads it.

use std::net::SocketAddr;
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, Run, RunEvent, TargetSetting, WatchRecord};
use gake_engine::{belongs_in_background, lower_class};
use gake_watch::{Batch, Sampler, WatchSource};
use gake_wire::Address;

use crate::{Prepared, RunError};

/// Between two samples.
const EVERY: Duration = Duration::from_secs(1);

/// How long a run waits at its start and at its end for a reading of this machine.
const PATIENCE: Duration = Duration::from_millis(250);

/// What is sampled of the target and of this machine, over one run or several.
#[derive(Debug, Default)]
pub struct Watching {
    sampler: Option<Sampler>,
    /// The names of the sources that have counters.
    counting: Vec<String>,
    /// When the current run began, on the sampler's clock.
    began: Nanos,
    watched: WatchRecord,
    settings: Vec<TargetSetting>,
    failures: Vec<RunEvent>,
}

/// What was read since the last time.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// All readings.
    pub(crate) readings: Vec<GaugeReading>,
    /// The same by the instant at which they were read.
    pub(crate) samples: Vec<(Nanos, Vec<GaugeReading>)>,
}

impl Watching {
    /// Starts to read the sources of one run, and those of this machine, without delaying its
    /// arrivals.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn of(prepared: &Prepared) -> Result<Self, RunError> {
        Self::start(&prepared.watch, prepared, Some(&prepared.plan))
    }

    /// The same for several runs, of any plans, with the targets of `prepared`.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn of_any(sources: &[WatchSource], prepared: &Prepared) -> Result<Self, RunError> {
        Self::start(sources, prepared, None)
    }

    fn start(
        sources: &[WatchSource],
        prepared: &Prepared,
        plan: Option<&Plan>,
    ) -> Result<Self, RunError> {
        let mut sources = sources.to_vec();
        // The target's processes are read once.
        let usage = !sources.iter().any(WatchSource::is_local);
        sources.push(WatchSource::Machine {
            targets: addresses(prepared),
            usage,
            ports: prepared.wires.iter().filter_map(|wire| wire.network.quick_ports()).min(),
        });
        let counting = sources.iter().filter(|source| source.has_counters());
        let counting = counting.map(ToString::to_string).collect();
        let delays_nothing = plan.is_some_and(|plan| !belongs_in_background(plan));
        let beside: fn() = if delays_nothing { || () } else { lower_class };
        let sampler = Sampler::start(sources, EVERY, beside).map_err(RunError::cannot)?;
        Ok(Self { sampler: Some(sampler), counting, ..Self::default() })
    }

    /// To be called right before a run, whose clock counts from now on. What was read before it is
    /// of no run, but for counters: so what a run adds to them is known. Gives the settings known so
    /// far, and those counters.
    pub(crate) fn begin(&mut self) -> (&[TargetSetting], Fresh) {
        let Some(sampler) = &self.sampler else { return (&[], Fresh::default()) };
        let mut first = Vec::new();
        for batch in sampler.refresh(PATIENCE) {
            match batch {
                Batch::Settings(settings) => self.settings.extend(settings),
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

    /// Takes in what was read since the last time, and gives it.
    pub(crate) fn take(&mut self) -> Fresh {
        let Some(sampler) = &self.sampler else { return Fresh::default() };
        let batches: Vec<_> = sampler.batches.try_iter().collect();
        self.add(batches)
    }

    /// Takes in the last that is read for a run, and gives it.
    pub(crate) fn take_last(&mut self) -> Fresh {
        let Some(sampler) = &self.sampler else { return Fresh::default() };
        let last = sampler.refresh(PATIENCE);
        self.add(last)
    }

    fn add(&mut self, batches: impl IntoIterator<Item = Batch>) -> Fresh {
        let mut fresh = Fresh::default();
        for batch in batches {
            match batch {
                Batch::Readings { at, readings } => {
                    let at = at.saturating_sub(self.began);
                    self.watched.add(at, &readings);
                    fresh.readings.extend(readings.iter().cloned());
                    fresh.samples.push((at, readings));
                }
                Batch::Settings(settings) => self.settings.extend(settings),
                Batch::Failed { at, reason } => {
                    let at = at.saturating_sub(self.began);
                    self.failures.push(RunEvent { at, text: reason });
                }
                Batch::Refreshed => {}
            }
        }
        fresh
    }

    /// What was read in this run so far.
    pub(crate) fn so_far(&self) -> &WatchRecord {
        &self.watched
    }

    /// Gives a run that is over what was read in it.
    pub(crate) fn end(&mut self, run: &mut Run) {
        run.watched = std::mem::take(&mut self.watched);
        run.events.append(&mut self.failures);
    }
}

/// The TCP addresses of what is loaded.
fn addresses(prepared: &Prepared) -> Vec<SocketAddr> {
    // What a proxy's machine does is not the target's doing.
    let direct = prepared.wires.iter().filter(|wire| !wire.network.has_proxy());
    let origins = direct.flat_map(|wire| &wire.network.origins);
    let tcp = origins.flat_map(|origin| &origin.addresses).filter_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    tcp.collect()
}

/// Whether a batch has readings of one of these sources.
fn is_of(batch: &Batch, sources: &[String]) -> bool {
    let Batch::Readings { readings, .. } = batch else { return false };
    readings.first().is_some_and(|reading| sources.contains(&reading.source))
}
