//! The arrivals of a lost agent.

use gake_core::clock::{Nanos, TENTH, nanos};
use gake_core::plan::Plan;
use gake_core::record::{
    Counts, FailedBodies, Interval, ScenarioEnd, ScenarioInterval, Tally, WorkerEnd,
};
use gake_core::schedule::{Schedule, Slice, SliceArrivals};
use gake_core::work::Gauges;

use crate::message::UnitRange;

/// Tenths in a second.
const TENTHS: u64 = 10;

/// Numbers of arrivals in the warm-up and after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ArrivalCounts {
    pub(crate) warmup: u64,
    pub(crate) figures: u64,
}

/// Arrivals assigned to an agent: a slice of one scenario, from an instant on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) scenario: usize,
    pub(crate) slice: Slice,
    pub(crate) from: Nanos,
    /// The handover that offers them to another agent.
    pub(crate) handover: Option<u64>,
}

impl Assignment {
    /// The arrivals of an agent with these units of a run, unit by unit.
    pub(crate) fn own(plan: &Plan, units: UnitRange) -> Vec<Self> {
        let scenarios = plan.scenarios().iter().enumerate();
        let open = scenarios.filter(|(_, plan)| plan.load.is_open());
        let indexed = open.flat_map(|scenario| {
            (units.first..units.first + units.width).map(move |index| (scenario, index))
        });
        let own = |((scenario, plan), index): ((usize, &Plan), usize)| {
            let slice = plan.slice(Slice::new(index, units.of), Slice::WHOLE)?;
            Some(Self { scenario, slice, from: 0, handover: None })
        };
        indexed.filter_map(own).collect()
    }
}

/// The arrivals of a lost agent. Each without an outcome counts as dropped in the second in which
/// it is due, until another agent takes over.
#[derive(Debug)]
pub(crate) struct LostArrivals {
    /// The worker under which they are counted.
    worker: usize,
    scenarios: Vec<LostScenario>,
    /// When the agent was lost.
    pub(crate) at: Nanos,
    /// The end of its latest interval, in tenths of a second.
    tenth: u64,
    /// The instants from which others send its arrivals, by handover.
    pub(crate) taken: Vec<Nanos>,
    /// Number of handovers that no agent accepted.
    pub(crate) refused: usize,
}

#[derive(Debug)]
struct LostScenario {
    number: usize,
    is_open: bool,
    /// Empty in a closed loop, which has no arrivals.
    cursors: Vec<ArrivalCursor>,
    due: ArrivalCounts,
    /// Due arrivals that have an outcome or were counted as dropped.
    counted: ArrivalCounts,
}

/// A cursor over arrivals of a schedule, until another agent takes over.
#[derive(Debug)]
struct ArrivalCursor {
    share: SliceArrivals<'static>,
    /// When the next arrival is due.
    next: Option<Nanos>,
    start: Nanos,
    warmup_end: Nanos,
    /// When arrivals end, if a time ends them.
    end: Option<Nanos>,
    /// The handover without a reply.
    pending: Option<u64>,
    /// Another agent sends arrivals from this instant on.
    until: Nanos,
}

impl ArrivalCursor {
    fn new(schedule: &Schedule, assignment: &Assignment, plan: &Plan) -> Self {
        let start = nanos(plan.start);
        let mut share = schedule.arrivals(assignment.slice);
        share.skip_before(assignment.from.saturating_sub(start));
        let next = share.next().map(|next| next.due.saturating_add(start));
        Self {
            share: share.into_owned(),
            next,
            start,
            warmup_end: start.saturating_add(nanos(plan.warmup)),
            end: schedule.timed_end().map(|end| end.saturating_add(start)),
            pending: assignment.handover,
            until: Nanos::MAX,
        }
    }

    /// Counts the arrivals that are due before `now`.
    fn advance(&mut self, now: Nanos, count: &mut ArrivalCounts) {
        let until = now.min(self.until);
        let Some(due) = self.next.filter(|due| *due < until) else { return };
        match due < self.warmup_end {
            true => count.warmup += 1,
            false => count.figures += 1,
        }
        let warmup = until.min(self.warmup_end).saturating_sub(self.start);
        count.warmup += self.share.skip_before(warmup);
        count.figures += self.share.skip_before(until.saturating_sub(self.start));
        self.next = self.share.next().map(|next| next.due.saturating_add(self.start));
    }

    /// Whether there are no arrivals after `now`.
    fn is_over(&self, now: Nanos) -> bool {
        self.pending.is_none()
            && (self.end.is_some_and(|end| end <= now)
                || self.until <= now
                || self.next.is_none_or(|next| next >= self.until))
    }
}

impl LostScenario {
    /// New arrivals that are due before `now`.
    fn until(&mut self, now: Nanos) -> ArrivalCounts {
        for cursor in &mut self.cursors {
            cursor.advance(now, &mut self.due);
        }
        let fresh = ArrivalCounts {
            warmup: self.due.warmup.saturating_sub(self.counted.warmup),
            figures: self.due.figures.saturating_sub(self.counted.figures),
        };
        self.counted.warmup += fresh.warmup;
        self.counted.figures += fresh.figures;
        fresh
    }
}

impl LostArrivals {
    /// The arrivals of an agent that was lost at `at`: its assignments, and the numbers of arrivals
    /// with an outcome by scenario. Its latest figures ended in `tenth`.
    pub(crate) fn new(
        (plan, seed, assignments): (&Plan, u64, &[Assignment]),
        reported: &[ArrivalCounts],
        (worker, tenth): (usize, u64),
        at: Nanos,
    ) -> Self {
        let scenarios = plan.scenarios().iter().enumerate().map(|(number, plan)| {
            let schedule = plan.schedule(Plan::scenario_seed(seed, number));
            let own = assignments.iter().filter(|assignment| assignment.scenario == number);
            let cursors = schedule.iter().flat_map(|schedule| {
                own.clone().map(move |assignment| ArrivalCursor::new(schedule, assignment, plan))
            });
            LostScenario {
                number,
                is_open: plan.load.is_open(),
                cursors: cursors.collect(),
                due: ArrivalCounts::default(),
                counted: reported.get(number).copied().unwrap_or_default(),
            }
        });
        let (scenarios, tenth) = (scenarios.collect(), tenth / TENTHS * TENTHS);
        Self { worker, scenarios, at, tenth, taken: Vec::new(), refused: 0 }
    }

    /// Resolves a handover: another agent sends arrivals from `from` on, or none does.
    pub(crate) fn resolve(&mut self, handover: u64, from: Option<Nanos>) {
        let cursors = self.scenarios.iter_mut().flat_map(|scenario| &mut scenario.cursors);
        for cursor in cursors.filter(|cursor| cursor.pending == Some(handover)) {
            cursor.pending = None;
            cursor.until = from.unwrap_or(Nanos::MAX);
            match from {
                Some(from) => self.taken.push(from),
                None => self.refused += 1,
            }
        }
    }

    /// Whether others send all remaining arrivals. Users of a closed loop are not replaced.
    pub(crate) fn is_replaced(&self) -> bool {
        self.scenarios.iter().all(|scenario| match scenario.cursors.as_slice() {
            // An open loop in which the agent had no arrivals.
            [] => scenario.is_open,
            cursors => cursors.iter().all(|cursor| cursor.until < Nanos::MAX),
        })
    }

    /// Whether a handover has no reply yet.
    pub(crate) fn is_pending(&self) -> bool {
        let mut cursors = self.scenarios.iter().flat_map(|scenario| &scenario.cursors);
        cursors.any(|cursor| cursor.pending.is_some())
    }

    /// Until when it is known at `now` which arrivals are dropped: other agents do not take over
    /// arrivals that were due before the handover.
    pub(crate) fn known_until(&self, now: Nanos) -> Nanos {
        if self.is_pending() { now.min(self.at) } else { now }
    }

    /// Returns an interval for each new whole second up to `now`.
    pub(crate) fn seconds(&mut self, now: Nanos) -> Vec<Interval> {
        let mut intervals = Vec::new();
        while (self.tenth + TENTHS) * TENTH <= now && !self.is_over(self.tenth * TENTH) {
            self.tenth += TENTHS;
            intervals.push(self.until(self.tenth * TENTH, self.tenth));
        }
        intervals
    }

    /// Returns the last interval, up to `now`, and the end of the worker.
    pub(crate) fn finish(&mut self, now: Nanos) -> (Interval, WorkerEnd) {
        (self.until(now, self.tenth + TENTHS), self.end(now))
    }

    /// An interval with the new dropped arrivals up to `now`.
    fn until(&mut self, now: Nanos, tenth: u64) -> Interval {
        let scenarios = self.scenarios.iter_mut().filter_map(|scenario| {
            if scenario.cursors.is_empty() {
                return None;
            }
            let fresh = scenario.until(now);
            let dropped = |lost| Counts { dropped: lost, lost, ..Counts::default() };
            let mut tally = Tally::default();
            tally.counts = dropped(fresh.figures);
            Some(ScenarioInterval {
                scenario: scenario.number,
                tally,
                warmup: dropped(fresh.warmup),
                gauges: Gauges::default(),
                bodies: FailedBodies::default(),
            })
        });
        let scenarios = scenarios.collect();
        Interval { worker: self.worker, tenth, scenarios, cpu: 0, run_delay: 0 }
    }

    /// Whether nothing is due after `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        let mut cursors = self.scenarios.iter().flat_map(|scenario| &scenario.cursors);
        cursors.all(|cursor| cursor.is_over(now))
    }

    fn end(&self, now: Nanos) -> WorkerEnd {
        let scenarios = self.scenarios.iter().map(|scenario| {
            let over = scenario.cursors.iter().map(|cursor| {
                let until = cursor.end.map_or(now, |end| end.min(now));
                until.min(cursor.until)
            });
            let over = over.max().unwrap_or(self.at.min(now));
            let end = ScenarioEnd { arrivals_end: over, done: over, ..ScenarioEnd::default() };
            (scenario.number, end)
        });
        WorkerEnd { worker: self.worker, scenarios: scenarios.collect(), log_lost: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::Load;
    use gake_core::clock::SECOND;
    use gake_core::plan::Stage;
    use gake_core::schedule::Process;
    use proptest::prelude::*;

    use super::*;

    fn plan(process: Process, requests: Option<u64>) -> Plan {
        let stages = vec![Stage { from: 20.0, to: 80.0, duration: Duration::from_secs(3) }];
        let warmup = Duration::from_millis(700);
        Plan { warmup, requests, ..Plan::new("a test", Load::Open { stages, process }) }
    }

    fn due(interval: &Interval) -> ArrivalCounts {
        let part = &interval.scenarios[0];
        assert_eq!(part.tally.counts.dropped, part.tally.counts.lost);
        ArrivalCounts { warmup: part.warmup.dropped, figures: part.tally.counts.dropped }
    }

    proptest! {
        #[test]
        fn every_arrival_without_an_outcome_counts_once(
            seed: u64, agents in 1usize..5, index in 0usize..5, width in 1usize..4, counted in 0u64..40,
            steps in proptest::collection::vec(0u64..900, 0..12), poisson: bool,
            requests in prop::option::of(1u64..200),
        ) {
            let process = if poisson { Process::Poisson } else { Process::Uniform };
            let plan = plan(process, requests);
            let first = index % agents;
            let part = UnitRange { first, width: width.min(agents - first), of: agents };
            let slice = part.slice().unwrap();
            let schedule = plan.schedule(Plan::scenario_seed(seed, 0)).unwrap();
            let all: Vec<_> = schedule.arrivals(slice).map(|arrival| arrival.due).collect();
            let warmup = all.iter().filter(|due| **due < 700_000_000).count() as u64;
            let reported = ArrivalCounts { warmup: counted.min(warmup), figures: counted.saturating_sub(warmup) };
            let own = Assignment::own(&plan, part);
            let mut lost = LostArrivals::new((&plan, seed, &own), &[reported], (3, 0), 0);
            let (mut intervals, mut now) = (Vec::new(), 0);
            for step in steps.into_iter().chain([9_000]) {
                now += step * 1_000_000;
                intervals.extend(lost.seconds(now));
            }
            prop_assert!(lost.is_over(now));
            intervals.push(lost.finish(now).0);
            let tenths: Vec<_> = intervals.iter().map(|interval| interval.tenth).collect();
            prop_assert!(tenths.iter().zip(1..).all(|(tenth, second)| *tenth == second * 10));
            let mut sum = ArrivalCounts::default();
            for interval in intervals.iter().map(due) {
                sum.warmup += interval.warmup;
                sum.figures += interval.figures;
            }
            let figures = all.len() as u64 - warmup;
            prop_assert_eq!(sum.warmup, warmup - reported.warmup);
            prop_assert_eq!(sum.figures, figures.saturating_sub(reported.figures));
        }
    }

    #[test]
    fn it_ends_when_its_schedule_does_or_the_run() {
        let open = plan(Process::Uniform, None);
        let whole = UnitRange { first: 0, width: 1, of: 1 };
        let own = Assignment::own(&open, whole);
        let lost = LostArrivals::new((&open, 1, &own), &[], (5, 0), SECOND);
        assert!(!lost.is_over(3 * SECOND));
        assert!(lost.is_over(3_700_000_000));
        let end = |now| lost.end(now).scenarios[0].1.arrivals_end;
        assert_eq!((end(2 * SECOND), end(9 * SECOND)), (2 * SECOND, 3_700_000_000));
        let closed = Plan::new("a test", Load::Closed { users: 4, think: Duration::ZERO });
        let own = Assignment::own(&closed, whole);
        let lost = LostArrivals::new((&closed, 1, &own), &[], (5, 0), SECOND);
        assert!(lost.is_over(SECOND), "nothing is due");
        assert_eq!(lost.end(9 * SECOND).scenarios[0].1.arrivals_end, SECOND);
    }
}
