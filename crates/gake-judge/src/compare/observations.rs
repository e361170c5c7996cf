//! The seconds of a run, reduced to the sums that a comparison needs.

use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Histogram, Run, Tally};

use super::choice::FigureSelection;
use super::kind::QUANTILES;
use super::scope::{FigureScope, RecordWindow, ScopeRecord};

/// Maximum number of observations, above which adjacent ones are merged.
const PIECES_MAX: usize = 512;

/// The last second before a gap is partial when it has less than this ratio of the requests of the
/// previous one.
const PARTIAL: f64 = 0.9;

/// Times of an observation: count, sum, and the number beyond each quantile of the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TimeSums {
    pub(super) count: f64,
    pub(super) sum: f64,
    pub(super) beyond: [f64; QUANTILES.len()],
}

type QuantileBounds = [f64; QUANTILES.len()];

impl TimeSums {
    fn of(histogram: &Histogram, bounds: &QuantileBounds) -> Self {
        let mut times = Self {
            count: histogram.count() as f64,
            sum: histogram.sum_number(),
            ..Self::default()
        };
        // One pass for all bounds: a histogram has tens of thousands of buckets.
        for (low, _, count) in histogram.number_buckets() {
            for (beyond, bound) in times.beyond.iter_mut().zip(bounds) {
                if low > *bound {
                    *beyond += count as f64;
                }
            }
        }
        times
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        for (mine, theirs) in self.beyond.iter_mut().zip(other.beyond) {
            *mine += theirs;
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ScopeSums {
    pub(super) counts: Counts,
    pub(super) response: TimeSums,
    pub(super) service: TimeSums,
    pub(super) sum: f64,
    pub(super) samples: f64,
}

/// One observation: the sums over one or more whole seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SecondSums {
    pub(super) seconds: u64,
    /// The denominator of rates: scheduled arrivals, so that a ramp is not noise, or seconds.
    pub(super) weight: f64,
    /// In the order of [`FigureSelection::scopes`].
    pub(super) scopes: Vec<ScopeSums>,
}

impl SecondSums {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.weight += other.weight;
        for (mine, theirs) in self.scopes.iter_mut().zip(&other.scopes) {
            mine.counts.merge(&theirs.counts);
            mine.response.add(&theirs.response);
            mine.service.add(&theirs.service);
            mine.sum += theirs.sum;
            mine.samples += theirs.samples;
        }
    }

    fn due(&self) -> u64 {
        self.scopes.first().map_or(0, |whole| whole.counts.due())
    }
}

/// A scope with its quantiles in the whole run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScopeQuantiles {
    scope: FigureScope,
    pub(super) response: QuantileBounds,
    pub(super) service: QuantileBounds,
}

impl ScopeQuantiles {
    fn new(scope: &FigureScope, run: &Run) -> Self {
        let recorded = scope.of_run(run);
        Self {
            scope: scope.clone(),
            response: QUANTILES.map(|quantile| recorded.response.quantile_number(quantile)),
            service: QUANTILES.map(|quantile| recorded.service.quantile_number(quantile)),
        }
    }

    fn observation(&self, recorded: &ScopeRecord<'_>) -> ScopeSums {
        ScopeSums {
            counts: recorded.counts,
            response: TimeSums::of(&recorded.response, &self.response),
            service: TimeSums::of(&recorded.service, &self.service),
            sum: recorded.sum,
            samples: recorded.samples,
        }
    }
}

/// The whole measured seconds of a run, in order, in bounded memory: in a long run an observation
/// covers several seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct RunObservations {
    pub(super) observations: Vec<SecondSums>,
    width: u64,
    pub(super) scopes: Vec<ScopeQuantiles>,
    plan: Plan,
    from: Nanos,
    to: Nanos,
    last: Option<u64>,
}

impl RunObservations {
    /// No seconds yet, for `figures`; times beyond the quantiles of `run` are counted.
    #[must_use]
    pub fn new(run: &Run, figures: &FigureSelection) -> Self {
        let from = nanos(run.plan.warmup);
        Self {
            observations: Vec::new(),
            width: 1,
            scopes: figures.scopes().iter().map(|scope| ScopeQuantiles::new(scope, run)).collect(),
            plan: run.plan.clone(),
            from,
            to: from.saturating_add(run.measured),
            last: None,
        }
    }

    /// Adds the second that starts `at` seconds after the start of the run, with its records by
    /// scenario if there are several; ignores seconds not wholly within the measured interval.
    pub fn add(&mut self, at: u64, asked: Option<f64>, tally: &Tally, scenarios: &[Tally]) {
        self.pass_gap(at);
        let start = at.saturating_mul(SECOND);
        if start < self.from || start.saturating_add(SECOND) > self.to {
            return;
        }
        let window = RecordWindow { plan: &self.plan, tally, scenarios };
        let scopes =
            self.scopes.iter().map(|scope| scope.observation(&scope.scope.of(window))).collect();
        let observation = SecondSums { seconds: 1, weight: asked.unwrap_or(1.0), scopes };
        match self.observations.last_mut() {
            Some(last) if last.seconds < self.width => last.add(&observation),
            _ => self.observations.push(observation),
        }
        if self.observations.len() > PIECES_MAX {
            self.width *= 2;
            let pairs = self.observations.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                pair[1..].iter().for_each(|observation| sum.add(observation));
                sum
            });
            self.observations = pairs.collect();
        }
    }

    /// In joined consecutive runs, a gap between two does not count as measured, so the end moves.
    /// The last second of each run, which only awaits responses, is partial if it has fewer than
    /// the one before.
    fn pass_gap(&mut self, at: u64) {
        let before = self.last.replace(at);
        let Some(gap) = before.map(|last| at.saturating_sub(last.saturating_add(1))) else {
            return;
        };
        if gap == 0 {
            return;
        }
        self.to = self.to.saturating_add(gap.saturating_mul(SECOND));
        if let [.., whole, last] = self.observations.as_slice()
            && (last.seconds, whole.seconds) == (1, 1)
            && (last.due() as f64) < PARTIAL * whole.due() as f64
        {
            self.observations.pop();
            self.to = self.to.saturating_add(SECOND);
        }
    }

    /// Observations that are slices instead of seconds, with the quantiles of `whole`, for one
    /// scope.
    pub(super) fn of_slices<'a>(
        whole: &Run,
        scope: &FigureScope,
        slices: impl Iterator<Item = &'a Run>,
    ) -> Self {
        let scope = ScopeQuantiles::new(scope, whole);
        let observations = slices.map(|slice| SecondSums {
            seconds: 1,
            weight: slice.measured as f64,
            scopes: vec![scope.observation(&scope.scope.of_run(slice))],
        });
        let observations = observations.collect();
        let plan = whole.plan.clone();
        Self { observations, width: 1, scopes: vec![scope], plan, from: 0, to: 0, last: None }
    }

    pub(super) fn ratios(&self, of: impl Fn(&SecondSums) -> (f64, f64)) -> Vec<(f64, f64)> {
        self.observations.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::healthy;

    #[test]
    fn whole_seconds_of_runs_one_after_the_other_add_up() {
        let full = healthy();
        let mut rest = healthy();
        rest.tally = crate::testing::RunBuilder::of(10, 1_000).run().tally;
        // Three runs of 2 s, 8 s apart, each with a second in which the last responses arrive.
        let mut run = healthy();
        run.measured = 6 * SECOND;
        for drains in [false, true] {
            let mut observations = RunObservations::new(&run, &FigureSelection::usual());
            for first in [0, 10, 20] {
                observations.add(first, None, &full.tally, &[]);
                observations.add(first + 1, None, &full.tally, &[]);
                if drains {
                    observations.add(first + 2, None, &rest.tally, &[]);
                }
            }
            let due: Vec<_> = observations.observations.iter().map(SecondSums::due).collect();
            assert_eq!(due, [full.tally.counts.due(); 6], "{drains}");
        }
    }

    #[test]
    fn memory_is_bounded_and_the_edges_are_left_out() {
        let mut run = healthy();
        run.measured = 2_000 * SECOND;
        run.plan.warmup = std::time::Duration::from_millis(1_500);
        let mut observations = RunObservations::new(&run, &FigureSelection::usual());
        for at in 0..3_000 {
            observations.add(at, None, &run.tally, &[]);
        }
        assert!(observations.observations.len() <= PIECES_MAX);
        let seconds: u64 =
            observations.observations.iter().map(|observation| observation.seconds).sum();
        // 1.5 s to 2,001.5 s: the halves at both ends are not whole seconds.
        assert_eq!(seconds, 1_999);
    }
}
