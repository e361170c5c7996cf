//! What a lost agent was to send.

use gake_core::clock::{Nanos, TENTH, nanos};
use gake_core::plan::Plan;
use gake_core::record::{
    Counts, FailedBodies, Interval, ScenarioEnd, ScenarioInterval, Tally, WorkerEnd,
};
use gake_core::schedule::{Schedule, Slice, SliceArrivals};
use gake_core::work::Gauges;

use crate::message::Part;

/// Tenths of a second in a second.
const TENTHS: u64 = 10;

/// Arrivals that have an outcome: in the warm-up, and after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) warmup: u64,
    pub(crate) figures: u64,
}

/// Arrivals that an agent is to send: of one scenario, from an instant on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) scenario: usize,
    pub(crate) slice: Slice,
    pub(crate) from: Nanos,
    /// The handover by which somebody else is asked to send them.
    pub(crate) handover: Option<u64>,
}

impl Holding {
    /// What an agent with `part` of a run is to send by itself, unit by unit.
    pub(crate) fn own(plan: &Plan, part: Part) -> Vec<Self> {
        let scenarios = plan.scenarios().iter().enumerate();
        let open = scenarios.filter(|(_, plan)| plan.load.is_open());
        let units = open
            .flat_map(|unit| (part.first..part.first + part.width).map(move |index| (unit, index)));
        let own = |((scenario, plan), index): ((usize, &Plan), usize)| {
            let slice = plan.slice(Slice::new(index, part.of), Slice::WHOLE)?;
            Some(Self { scenario, slice, from: 0, handover: None })
        };
        units.filter_map(own).collect()
    }
}

/// The arrivals of a lost agent: each that is due and has no outcome counts as dropped, in the
/// second in which it is due, until another agent takes them over.
#[derive(Debug)]
pub(crate) struct LostShare {
    /// The worker in whose name they count.
    worker: usize,
    scenarios: Vec<LostScenario>,
    /// When the agent was lost.
    pub(crate) at: Nanos,
    /// The tenth of a second in which its last piece ends.
    tenth: u64,
    /// From when on others send its arrivals, by handover.
    pub(crate) taken: Vec<Nanos>,
    /// Handovers that nobody accepted.
    pub(crate) refused: usize,
}

/// The arrivals of one scenario.
#[derive(Debug)]
struct LostScenario {
    number: usize,
    is_open: bool,
    /// None in a closed loop: its users ask no more, and nothing is due.
    walks: Vec<Walk>,
    due: Reported,
    /// Of the due, those that have an outcome or count as dropped.
    told: Reported,
}

/// Arrivals of a schedule, up to where another agent sends them.
#[derive(Debug)]
struct Walk {
    share: SliceArrivals<'static>,
    /// When the next arrival is due.
    next: Option<Nanos>,
    start: Nanos,
    warmup_end: Nanos,
    /// When arrivals end, if a time ends them.
    end: Option<Nanos>,
    /// The handover that is not answered yet.
    pending: Option<u64>,
    /// Another agent sends what is due from here on.
    until: Nanos,
}

impl Walk {
    fn new(schedule: &Schedule, holding: &Holding, plan: &Plan) -> Self {
        let start = nanos(plan.start);
        let mut share = schedule.arrivals(holding.slice);
        share.skip_before(holding.from.saturating_sub(start));
        let next = share.next().map(|next| next.due.saturating_add(start));
        Self {
            share: share.into_owned(),
            next,
            start,
            warmup_end: start.saturating_add(nanos(plan.warmup)),
            end: schedule.timed_end().map(|end| end.saturating_add(start)),
            pending: holding.handover,
            until: Nanos::MAX,
        }
    }

    /// Counts the arrivals that are due before `now`.
    fn advance(&mut self, now: Nanos, count: &mut Reported) {
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

    /// Whether no more arrivals come after `now`.
    fn is_over(&self, now: Nanos) -> bool {
        self.pending.is_none()
            && (self.end.is_some_and(|end| end <= now)
                || self.until <= now
                || self.next.is_none_or(|next| next >= self.until))
    }
}

impl LostScenario {
    /// The arrivals that are due before `now`, and not told of yet.
    fn until(&mut self, now: Nanos) -> Reported {
        for walk in &mut self.walks {
            walk.advance(now, &mut self.due);
        }
        let fresh = Reported {
            warmup: self.due.warmup.saturating_sub(self.told.warmup),
            figures: self.due.figures.saturating_sub(self.told.figures),
        };
        self.told.warmup += fresh.warmup;
        self.told.figures += fresh.figures;
        fresh
    }
}

impl LostShare {
    /// What an agent was to send that was lost at `at`: its `holdings`; by scenario, the arrivals
    /// that have an outcome are `reported`. Its last piece of figures ended in `tenth`.
    pub(crate) fn new(
        (plan, seed, holdings): (&Plan, u64, &[Holding]),
        reported: &[Reported],
        (worker, tenth): (usize, u64),
        at: Nanos,
    ) -> Self {
        let scenarios = plan.scenarios().iter().enumerate().map(|(number, plan)| {
            let schedule = plan.schedule(Plan::scenario_seed(seed, number));
            let own = holdings.iter().filter(|holding| holding.scenario == number);
            let walks = schedule.iter().flat_map(|schedule| {
                own.clone().map(move |holding| Walk::new(schedule, holding, plan))
            });
            LostScenario {
                number,
                is_open: plan.load.is_open(),
                walks: walks.collect(),
                due: Reported::default(),
                told: reported.get(number).copied().unwrap_or_default(),
            }
        });
        let (scenarios, tenth) = (scenarios.collect(), tenth / TENTHS * TENTHS);
        Self { worker, scenarios, at, tenth, taken: Vec::new(), refused: 0 }
    }

    /// Answers a handover: another agent sends what is due at `from` or later, or nobody does.
    pub(crate) fn resolve(&mut self, handover: u64, from: Option<Nanos>) {
        let walks = self.scenarios.iter_mut().flat_map(|scenario| &mut scenario.walks);
        for walk in walks.filter(|walk| walk.pending == Some(handover)) {
            walk.pending = None;
            walk.until = from.unwrap_or(Nanos::MAX);
            match from {
                Some(from) => self.taken.push(from),
                None => self.refused += 1,
            }
        }
    }

    /// Whether others send all that was still due. Nobody replaces users of a closed loop.
    pub(crate) fn is_replaced(&self) -> bool {
        self.scenarios.iter().all(|scenario| match scenario.walks.as_slice() {
            // An open loop in which the agent had no part.
            [] => scenario.is_open,
            walks => walks.iter().all(|walk| walk.until < Nanos::MAX),
        })
    }

    /// Whether a handover is not answered yet.
    pub(crate) fn is_pending(&self) -> bool {
        let mut walks = self.scenarios.iter().flat_map(|scenario| &scenario.walks);
        walks.any(|walk| walk.pending.is_some())
    }

    /// Up to when it is known at `now` what nobody sends: others take nothing over that was due
    /// before they were asked.
    pub(crate) fn known_until(&self, now: Nanos) -> Nanos {
        if self.is_pending() { now.min(self.at) } else { now }
    }

    /// A piece for each whole second up to `now` that has none yet.
    pub(crate) fn seconds(&mut self, now: Nanos) -> Vec<Interval> {
        let mut pieces = Vec::new();
        while (self.tenth + TENTHS) * TENTH <= now && !self.is_over(self.tenth * TENTH) {
            self.tenth += TENTHS;
            pieces.push(self.until(self.tenth * TENTH, self.tenth));
        }
        pieces
    }

    /// The last piece, of what is left up to `now`, and the end.
    pub(crate) fn finish(&mut self, now: Nanos) -> (Interval, WorkerEnd) {
        (self.until(now, self.tenth + TENTHS), self.end(now))
    }

    /// What was due up to `now` and is not told of yet, in a piece that ends in `tenth`.
    fn until(&mut self, now: Nanos, tenth: u64) -> Interval {
        let scenarios = self.scenarios.iter_mut().filter_map(|scenario| {
            if scenario.walks.is_empty() {
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

    /// Whether nothing more is due after `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        let mut walks = self.scenarios.iter().flat_map(|scenario| &scenario.walks);
        walks.all(|walk| walk.is_over(now))
    }

    /// Its end, when that is at `now`.
    fn end(&self, now: Nanos) -> WorkerEnd {
        let scenarios = self.scenarios.iter().map(|scenario| {
            let over = scenario.walks.iter().map(|walk| {
                let until = walk.end.map_or(now, |end| end.min(now));
                until.min(walk.until)
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

    fn due(interval: &Interval) -> Reported {
        let part = &interval.scenarios[0];
        assert_eq!(part.tally.counts.dropped, part.tally.counts.lost);
        Reported { warmup: part.warmup.dropped, figures: part.tally.counts.dropped }
    }

    proptest! {
        #[test]
        fn every_arrival_without_an_outcome_counts_once(
            seed: u64, agents in 1usize..5, index in 0usize..5, width in 1usize..4, told in 0u64..40,
            steps in proptest::collection::vec(0u64..900, 0..12), poisson: bool,
            requests in prop::option::of(1u64..200),
        ) {
            let process = if poisson { Process::Poisson } else { Process::Uniform };
            let plan = plan(process, requests);
            let first = index % agents;
            let part = Part { first, width: width.min(agents - first), of: agents };
            let slice = part.slice().unwrap();
            let schedule = plan.schedule(Plan::scenario_seed(seed, 0)).unwrap();
            let all: Vec<_> = schedule.arrivals(slice).map(|arrival| arrival.due).collect();
            let warmup = all.iter().filter(|due| **due < 700_000_000).count() as u64;
            let reported = Reported { warmup: told.min(warmup), figures: told.saturating_sub(warmup) };
            let own = Holding::own(&plan, part);
            let mut lost = LostShare::new((&plan, seed, &own), &[reported], (3, 0), 0);
            let (mut pieces, mut now) = (Vec::new(), 0);
            for step in steps.into_iter().chain([9_000]) {
                now += step * 1_000_000;
                pieces.extend(lost.seconds(now));
            }
            prop_assert!(lost.is_over(now));
            pieces.push(lost.finish(now).0);
            let tenths: Vec<_> = pieces.iter().map(|piece| piece.tenth).collect();
            prop_assert!(tenths.iter().zip(1..).all(|(tenth, second)| *tenth == second * 10));
            let mut sum = Reported::default();
            for piece in pieces.iter().map(due) {
                sum.warmup += piece.warmup;
                sum.figures += piece.figures;
            }
            let figures = all.len() as u64 - warmup;
            prop_assert_eq!(sum.warmup, warmup - reported.warmup);
            prop_assert_eq!(sum.figures, figures.saturating_sub(reported.figures));
        }
    }

    #[test]
    fn it_ends_when_its_schedule_does_or_the_run() {
        let open = plan(Process::Uniform, None);
        let whole = Part { first: 0, width: 1, of: 1 };
        let own = Holding::own(&open, whole);
        let lost = LostShare::new((&open, 1, &own), &[], (5, 0), SECOND);
        assert!(!lost.is_over(3 * SECOND));
        assert!(lost.is_over(3_700_000_000));
        let end = |now| lost.end(now).scenarios[0].1.arrivals_end;
        assert_eq!((end(2 * SECOND), end(9 * SECOND)), (2 * SECOND, 3_700_000_000));
        let closed = Plan::new("a test", Load::Closed { users: 4, think: Duration::ZERO });
        let own = Holding::own(&closed, whole);
        let lost = LostShare::new((&closed, 1, &own), &[], (5, 0), SECOND);
        assert!(lost.is_over(SECOND), "nothing is due");
        assert_eq!(lost.end(9 * SECOND).scenarios[0].1.arrivals_end, SECOND);
    }
}
