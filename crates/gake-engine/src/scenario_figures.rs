//! The figures of a scenario while its run is collected.

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND, TENTH, nanos};
use gake_core::plan::Plan;
use gake_core::record::{Counts, ScenarioEnd, ScenarioRun, Tally};
use gake_core::schedule::{Process, Schedule};

use crate::handover::TENTHS;

#[derive(Debug)]
pub(crate) struct ScenarioFigures {
    schedule: Option<Schedule>,
    start: Nanos,
    warmup: Nanos,
    /// Whether its arrivals end at a known time, not by a count.
    timed: bool,
    /// Whether its schedule has an exact number of arrivals.
    is_counted: bool,
    /// The tally after its warm-up; only used if there are several scenarios.
    pub(crate) tally: Tally,
    /// The counts of its warm-up; likewise.
    pub(crate) warmup_counts: Counts,
    pub(crate) end: ScenarioEnd,
}

impl ScenarioFigures {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Self {
        let schedule = plan.schedule(seed);
        Self {
            start: nanos(plan.start),
            warmup: nanos(plan.warmup),
            timed: plan.length().is_some() || schedule.is_some(),
            is_counted: match plan.load.one() {
                Some(Load::Open { process, .. }) => *process == Process::Uniform,
                Some(Load::Replay { .. }) => true,
                _ => false,
            },
            schedule,
            tally: Tally::new(plan.labels.len()),
            warmup_counts: Counts::default(),
            end: ScenarioEnd::default(),
        }
    }

    /// Switches to a plan with changed rates.
    pub(crate) fn follow(&mut self, plan: &Plan) {
        // The rate asked does not depend on the seed.
        let changed = plan.schedule(0).zip(self.schedule.take());
        // The warm-up does not change.
        self.schedule = changed.map(|(changed, old)| changed.with_warmup_of(&old));
    }

    /// The number of arrivals, warm-up included, unless unknown or ended early.
    pub(crate) fn due(&self) -> Option<u64> {
        let schedule = self.schedule.as_ref()?;
        let end = self.start.saturating_add(schedule.end()?);
        let is_whole = self.end.arrivals_end >= end && !self.end.exhausted;
        (self.is_counted && is_whole).then(|| schedule.total())
    }

    pub(crate) fn warmup_end(&self) -> Nanos {
        self.start.saturating_add(self.warmup)
    }

    /// Arrivals due from one tenth of a second of the run to another.
    pub(crate) fn asked_in(&self, from: u64, to: u64) -> Option<f64> {
        let schedule = self.schedule.as_ref()?;
        let instant =
            |tenth: u64| (tenth as f64 - self.start as f64 / TENTH as f64) / TENTHS as f64;
        Some(schedule.asked_before(instant(to)) - schedule.asked_before(instant(from)))
    }

    /// Arrivals after the warm-up due before an instant of the run.
    pub(crate) fn asked_before(&self, at: Nanos) -> Option<f64> {
        let schedule = self.schedule.as_ref()?;
        let seconds = |at: Nanos| at.saturating_sub(self.start) as f64 / SECOND as f64;
        Some(schedule.asked_before(seconds(at)) - schedule.asked_before(seconds(self.warmup_end())))
    }

    /// The end of arrivals. A closed loop that is ended by a count, if `done`, ends with its last
    /// response.
    pub(crate) fn arrivals_over(&self, done: bool) -> Nanos {
        if self.timed || !done { self.end.arrivals_end } else { self.end.done }
    }

    /// From the epoch to its last outcome.
    pub(crate) fn elapsed(&self) -> Nanos {
        self.end.done.max(self.end.arrivals_end)
    }

    /// Mean arrivals a second that its plan asked for, up to an interrupt.
    pub(crate) fn asked_rate(&self, done: bool) -> Option<f64> {
        let schedule = self.schedule.as_ref()?;
        let over = self.arrivals_over(done).saturating_sub(self.start);
        Some(schedule.mean_rate(schedule.end().unwrap_or(Nanos::MAX).min(over)))
    }

    pub(crate) fn finish(self, plan: Plan, done: bool) -> ScenarioRun {
        let since = |at: Nanos| at.saturating_sub(self.warmup_end());
        let measured = since(self.arrivals_over(done));
        ScenarioRun {
            measured,
            sending: measured.max(since(self.end.last_fired)),
            completing: measured.max(since(self.end.last_ended)),
            asked_rate: self.asked_rate(done),
            plan,
            tally: self.tally,
            warmup: self.warmup_counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::schedule::{RateChange, Stage};

    use super::*;

    #[test]
    fn a_change_during_a_first_ramp_keeps_what_the_warm_up_asked_for() {
        let seconds = Duration::from_secs;
        let ramp = Stage { from: 0.0, to: 20.0, duration: seconds(10) };
        let load = Load::Open { stages: vec![ramp], process: Process::Uniform };
        let plan = Plan { warmup: seconds(2), ..Plan::new("a test", load) };
        let mut figures = ScenarioFigures::new(&plan, 7);
        let change = RateChange { at: seconds(4), factor: 2.0 };
        figures.follow(&plan.with_rates_changed(&[change]));
        let warmup = figures.asked_in(0, 2 * TENTHS).unwrap();
        assert!((warmup - 20.0).abs() < 1e-6, "{warmup}");
        // 4 of the 100 of the ramp, then twice the others.
        let after = figures.asked_before(12 * SECOND).unwrap();
        assert!((after - 196.0).abs() < 1e-6, "{after}");
    }
}
