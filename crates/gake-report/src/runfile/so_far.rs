//! A run so far: what the seconds that are over add up to.

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, Generator, Provenance, Run, RunEnd, TargetSetting};

use super::body::{Body, Head};
use super::end;
use super::write::Second;

/// Joins the seconds of a run in progress. It takes what a run file would take, and gives the run
/// that this file would hold; its memory does not grow with the run.
#[derive(Debug)]
pub struct RunSoFar {
    plan: Plan,
    started_unix_ns: u64,
    body: Body,
}

impl RunSoFar {
    /// A run that begins, with what is known before it.
    #[must_use]
    pub fn new(
        plan: Plan,
        started_unix_ns: u64,
        origin: &Provenance,
        settings: &[TargetSetting],
    ) -> Self {
        let mut body = Body::default();
        body.origin.clone_from(origin);
        body.grow_labels(&plan);
        body.watched.settings.extend_from_slice(settings);
        Self { plan, started_unix_ns, body }
    }

    /// Adds a second.
    pub fn second(&mut self, second: &Second<'_>) {
        self.body.add(second);
    }

    /// Adds what the watched target said `at` an instant of the run.
    pub fn watched(&mut self, at: Nanos, readings: &[GaugeReading]) {
        self.body.watched.add(at, readings);
    }

    /// The run as if its last second were its end. What only the end tells is left at nothing: the
    /// busiest worker, waits for a core, memory, bodies of failed answers.
    #[must_use]
    pub fn run(&self) -> Run {
        let head = Head::of(self.plan.clone(), self.started_unix_ns);
        let run = end::cut_off(head, self.body.clone());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let generator = Generator { cores, ..run.generator };
        Run { ending: RunEnd::Done, generator, ..run }
    }
}
