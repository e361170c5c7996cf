//! The seconds of a run as a comparison needs them: a few numbers each.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{Counts, Histogram, Metric, Run, Tally};

use super::figure::QUANTILES;

/// Pieces kept at most; then neighbours are joined.
const PIECES_MAX: usize = 512;

/// A second before a gap with less than this part of the requests of the one before is no whole one.
const PARTIAL: f64 = 0.9;

/// Times of a piece: number, sum, and how many lie beyond each quantile of the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Times {
    pub(super) count: f64,
    pub(super) sum: f64,
    pub(super) beyond: [f64; QUANTILES.len()],
}

impl Times {
    fn of(histogram: &Histogram, bounds: &[Nanos; QUANTILES.len()]) -> Self {
        let mut times = Self {
            count: histogram.count() as f64,
            sum: histogram.sum() as f64,
            ..Self::default()
        };
        // One walk for all bounds: a histogram has tens of thousands of buckets. A bound is the
        // highest value of its bucket, or the largest of all.
        let tops = bounds.map(Histogram::top_of_bucket);
        for bucket in histogram.buckets() {
            for (beyond, top) in times.beyond.iter_mut().zip(tops) {
                if bucket.high > top {
                    *beyond += bucket.count as f64;
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

/// One piece: whole seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) seconds: u64,
    /// What rates are over: arrivals asked for, so that a ramp is no noise, or seconds.
    pub(super) weight: f64,
    pub(super) counts: Counts,
    pub(super) response: Times,
    pub(super) service: Times,
}

impl Piece {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.weight += other.weight;
        self.counts.merge(&other.counts);
        self.response.add(&other.response);
        self.service.add(&other.service);
    }
}

/// The whole measured seconds of a run, in order, in bounded memory: of a long run a piece stands
/// for several.
#[derive(Debug, Clone, PartialEq)]
pub struct Pieces {
    pub(super) pieces: Vec<Piece>,
    width: u64,
    /// The quantiles of the whole run.
    pub(super) response: [Nanos; QUANTILES.len()],
    pub(super) service: [Nanos; QUANTILES.len()],
    from: Nanos,
    to: Nanos,
    /// The last second seen.
    last: Option<u64>,
}

impl Pieces {
    /// No pieces yet of `run`, whose quantiles tell which times lie beyond them.
    #[must_use]
    pub fn new(run: &Run) -> Self {
        let from = u64::try_from(run.plan.warmup.as_nanos()).unwrap_or(u64::MAX);
        let latency = &run.tally.latency;
        let (response, service) = (latency.response(), latency.of(Metric::Service));
        Self {
            pieces: Vec::new(),
            width: 1,
            response: QUANTILES.map(|quantile| response.quantile(quantile)),
            service: QUANTILES.map(|quantile| service.quantile(quantile)),
            from,
            to: from.saturating_add(run.measured),
            last: None,
        }
    }

    /// Adds the second that starts `at` seconds after the run; a second that is not wholly within
    /// the measured part is left out.
    pub fn add(&mut self, at: u64, asked: Option<f64>, tally: &Tally) {
        self.pass_gap(at);
        let start = at.saturating_mul(SECOND);
        if start < self.from || start.saturating_add(SECOND) > self.to {
            return;
        }
        let piece = Piece {
            seconds: 1,
            weight: asked.unwrap_or(1.0),
            counts: tally.counts,
            response: Times::of(&tally.latency.response(), &self.response),
            service: Times::of(tally.latency.of(Metric::Service), &self.service),
        };
        match self.pieces.last_mut() {
            Some(last) if last.seconds < self.width => last.add(&piece),
            _ => self.pieces.push(piece),
        }
        if self.pieces.len() > PIECES_MAX {
            self.width *= 2;
            let pairs = self.pieces.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                pair[1..].iter().for_each(|piece| sum.add(piece));
                sum
            });
            self.pieces = pairs.collect();
        }
    }

    /// Of runs one after the other, joined, the measured time is that in which one of them was on:
    /// what lies between them moves its end. The last second of each, in which answers were still
    /// awaited, is no whole one when it holds less than the one before.
    fn pass_gap(&mut self, at: u64) {
        let before = self.last.replace(at);
        let Some(gap) = before.map(|last| at.saturating_sub(last.saturating_add(1))) else {
            return;
        };
        if gap == 0 {
            return;
        }
        self.to = self.to.saturating_add(gap.saturating_mul(SECOND));
        if let [.., whole, last] = self.pieces.as_slice()
            && (last.seconds, whole.seconds) == (1, 1)
            && (last.counts.due() as f64) < PARTIAL * whole.counts.due() as f64
        {
            self.pieces.pop();
            self.to = self.to.saturating_add(SECOND);
        }
    }

    /// Pieces of runs in place of seconds, with the quantiles of `whole`.
    pub(super) fn of_slices<'a>(whole: &Run, slices: impl Iterator<Item = &'a Run>) -> Self {
        let mut all = Self::new(whole);
        for slice in slices {
            let tally = &slice.tally;
            all.pieces.push(Piece {
                seconds: 1,
                weight: slice.measured as f64,
                counts: tally.counts,
                response: Times::of(&tally.latency.response(), &all.response),
                service: Times::of(tally.latency.of(Metric::Service), &all.service),
            });
        }
        all
    }

    /// Numerator and denominator of each piece.
    pub(super) fn ratios(&self, of: impl Fn(&Piece) -> (f64, f64)) -> Vec<(f64, f64)> {
        self.pieces.iter().map(of).collect()
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
        rest.tally = crate::testing::RunSample::of(10, 1_000).run().tally;
        // Three runs of 2 s, 8 s apart, each with a second in which the last answers come.
        let mut run = healthy();
        run.measured = 6 * SECOND;
        for drains in [false, true] {
            let mut pieces = Pieces::new(&run);
            for first in [0, 10, 20] {
                pieces.add(first, None, &full.tally);
                pieces.add(first + 1, None, &full.tally);
                if drains {
                    pieces.add(first + 2, None, &rest.tally);
                }
            }
            let due: Vec<_> = pieces.pieces.iter().map(|piece| piece.counts.due()).collect();
            assert_eq!(due, [full.tally.counts.due(); 6], "{drains}");
        }
    }

    #[test]
    fn memory_is_bounded_and_the_edges_are_left_out() {
        let mut run = healthy();
        run.measured = 2_000 * SECOND;
        run.plan.warmup = std::time::Duration::from_millis(1_500);
        let mut pieces = Pieces::new(&run);
        for at in 0..3_000 {
            pieces.add(at, None, &run.tally);
        }
        assert!(pieces.pieces.len() <= PIECES_MAX);
        let seconds: u64 = pieces.pieces.iter().map(|piece| piece.seconds).sum();
        // 1.5 s to 2,001.5 s: the halves at both ends are no whole seconds.
        assert_eq!(seconds, 1_999);
    }
}
