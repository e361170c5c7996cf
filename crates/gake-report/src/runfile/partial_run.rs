//! A run in progress.

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, Generator, Provenance, Run, RunEnd, TargetSetting};

use super::assemble;
use super::totals::{RunHead, RunTotals};
use super::write::Second;

/// Accumulates the seconds of a run in progress and returns the run that its run file would contain
/// so far. Its memory does not grow with the run.
#[derive(Debug)]
pub struct PartialRun {
    plan: Plan,
    started_unix_ns: u64,
    totals: RunTotals,
}

impl PartialRun {
    /// A run that has just started.
    #[must_use]
    pub fn new(
        plan: Plan,
        started_unix_ns: u64,
        origin: &Provenance,
        settings: &[TargetSetting],
    ) -> Self {
        let mut totals = RunTotals::default();
        totals.origin.clone_from(origin);
        totals.grow_labels(&plan);
        totals.watched.settings.extend_from_slice(settings);
        Self { plan, started_unix_ns, totals }
    }

    /// Adds a second, in ascending order.
    pub fn second(&mut self, second: &Second<'_>) {
        self.totals.add(second);
    }

    /// Adds the readings of the watched target `at` an instant of the run.
    pub fn watched(&mut self, at: Nanos, readings: &[GaugeReading]) {
        self.totals.watched.add(at, readings);
    }

    /// The run as if its last second were its end. Figures that only the end contains are empty:
    /// the busiest worker, run delay, memory, bodies of failed responses.
    #[must_use]
    pub fn run(&self) -> Run {
        let head = RunHead::of(self.plan.clone(), self.started_unix_ns);
        let run = assemble::truncated(head, self.totals.clone());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let generator = Generator { cores, ..run.generator };
        Run { ending: RunEnd::Done, generator, ..run }
    }
}
