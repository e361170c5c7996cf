//! A step of the search: a trial with its observation and outcome; a rung of the ladder.

use super::share::StepCount;
use super::trial::{Dimension, Observation, Purpose, Trial};
use crate::objective::{BadCount, Clause, ClauseBound};
use crate::usl;

/// Standard deviations within which a bad count is inconclusive (95 % one-sided).
const UNDECIDED: f64 = 1.645;

/// Assumed ratio of a level without a reading to its bound: a target too busy to be read exceeds it
/// by an unknown amount.
const UNREAD: f64 = 1.5;

/// A step builds up a backlog, so that its levels belong to a lower load, when less than this share
/// of the arrivals ended during the load. A step lasts at least four responses, so the last
/// arrivals' responses take a quarter of it.
const SUSTAINED: f64 = 0.6;
/// Minimum number of arrivals for that.
const SUSTAINED_OF: f64 = 100.0;

/// The outcome of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// Every clause was met, beyond chance.
    Pass,
    /// A clause was missed, beyond chance.
    Fail,
    /// Either may be chance.
    Inconclusive,
    /// The generator was the limit, so it is no evidence on the target.
    Limited,
    /// The target was in a worse state.
    Contaminated,
    /// The target was still warming up.
    Cold,
}

impl StepOutcome {
    /// Whether a step of this outcome is evidence on the capacity.
    #[must_use]
    pub fn is_evidence(self) -> bool {
        matches!(self, Self::Pass | Self::Fail | Self::Inconclusive)
    }

    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Limited => "limited",
            Self::Contaminated => "contaminated",
            Self::Cold => "cold",
        }
    }
}

/// A finished trial.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchStep {
    /// The trial.
    pub trial: Trial,
    /// The observation.
    pub seen: Observation,
    /// For each clause, the ratio of measured to allowed.
    pub ratios: Vec<f64>,
    /// The outcome.
    pub outcome: StepOutcome,
    /// The actual rate, or the number asked for.
    level: f64,
}

impl SearchStep {
    pub(super) fn new(
        dimension: Dimension,
        clauses: &[Clause],
        trial: Trial,
        seen: Observation,
    ) -> Self {
        let measured = matches!(trial.load, super::TrialLoad::Rate(_)) && dimension.is_rate();
        let level = if measured && seen.due > 0 { seen.rate() } else { trial.load.level() };
        let mut step = Self { trial, seen, ratios: Vec::new(), outcome: StepOutcome::Pass, level };
        if !step.is_sustained() {
            let bounds = step.seen.clauses.iter_mut().zip(clauses);
            bounds
                .filter(|(_, clause)| matches!(clause.bound, ClauseBound::Level(_)))
                .for_each(|(seen, _)| seen.levels.clear());
        }
        step.ratios = (0..clauses.len()).map(|n| step.ratio(n, clauses[n].bound)).collect();
        step.outcome = step.judge(clauses);
        step
    }

    /// The worst clause's ratio; above 1 it was missed.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.ratios.iter().copied().fold(0.0, f64::max)
    }

    /// Whether a clause was missed, by chance or not.
    #[must_use]
    pub fn missed(&self) -> bool {
        self.worst() > 1.0
    }

    /// Whether responses kept up with arrivals; true also for closed loops and few arrivals.
    pub(super) fn is_sustained(&self) -> bool {
        let is_open = !matches!(self.trial.load, super::TrialLoad::Users(_));
        let due = self.seen.due as f64;
        let is_known = is_open && due >= SUSTAINED_OF && !self.seen.seconds.is_empty();
        !is_known || self.ended_rate() * self.seen.measured >= SUSTAINED * due
    }

    /// Arrivals a second that ended within the measured interval, ok or not.
    pub(super) fn ended_rate(&self) -> f64 {
        let measured = self.seen.measured.max(1e-3);
        let within = self.seen.seconds.iter().take(measured.ceil() as usize);
        within.map(|second| second.ok + second.failed).sum::<f64>() / measured
    }

    /// The actual rate, or the number asked for.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level
    }

    fn ratio(&self, number: usize, bound: ClauseBound) -> f64 {
        match bound {
            ClauseBound::Share(allowed) => {
                let total = self.total(number);
                // Without any request, all count as bad.
                if total.of > 0.0 { total.bad / total.of / allowed } else { 1.0 / allowed }
            }
            ClauseBound::Level(_) if self.unread(number, bound) => UNREAD,
            ClauseBound::Level(bound) => self.mean_level(number).map_or(0.0, |mean| mean / bound),
        }
    }

    /// Whether a bound on the target's level has no reading. Steps of the ladder, which are shorter
    /// than the interval between readings, do not need one.
    fn unread(&self, number: usize, bound: ClauseBound) -> bool {
        let is_level = matches!(bound, ClauseBound::Level(_));
        is_level && self.trial.purpose != Purpose::Ladder && self.mean_level(number).is_none()
    }

    fn judge(&self, clauses: &[Clause]) -> StepOutcome {
        if self.seen.limited.is_some() && (self.missed() || !self.is_sustained()) {
            return StepOutcome::Limited;
        }
        let undecided = |n: usize| {
            let ClauseBound::Share(allowed) = clauses[n].bound else {
                return self.unread(n, clauses[n].bound);
            };
            let count = self.count(n);
            let allowed = allowed * count.bad.of;
            (count.bad.bad - allowed).abs() < UNDECIDED * count.variance.max(allowed).sqrt()
        };
        let sure = (0..clauses.len()).any(|n| self.ratios[n] > 1.0 && !undecided(n));
        if sure {
            StepOutcome::Fail
        } else if (0..clauses.len()).any(undecided) {
            StepOutcome::Inconclusive
        } else {
            StepOutcome::Pass
        }
    }

    fn total(&self, number: usize) -> BadCount {
        self.seen.clauses.get(number).map_or(BadCount::default(), |seen| seen.total)
    }

    /// The mean of a clause's level samples, if there are any.
    #[must_use]
    pub fn mean_level(&self, number: usize) -> Option<f64> {
        let levels = &self.seen.clauses.get(number)?.levels;
        (!levels.is_empty()).then(|| levels.iter().sum::<f64>() / levels.len() as f64)
    }

    pub(super) fn count(&self, number: usize) -> StepCount {
        let slices = self.seen.clauses.get(number).map_or(&[][..], |seen| &seen.slices);
        StepCount {
            level: self.level,
            bad: self.total(number),
            measured: self.seen.measured.max(1e-3),
            variance: long_run_variance(slices),
        }
    }
}

/// The variance of a bursty count: the sum of the autocovariances of its seconds up to the first
/// that is not positive, corrected for the mean being estimated from the same seconds.
fn long_run_variance(slices: &[BadCount]) -> f64 {
    let len = slices.len();
    let (bad, of) = slices.iter().fold((0.0, 0.0), |sum, s| (sum.0 + s.bad, sum.1 + s.of));
    if len < 3 || of <= 0.0 {
        return bad;
    }
    let share = bad / of;
    let off: Vec<f64> = slices.iter().map(|slice| slice.bad - share * slice.of).collect();
    let mut variance: f64 = off.iter().map(|off| off * off).sum();
    let mut lags = 0;
    for lag in 1..len / 3 {
        let covariance: f64 = 2.0 * off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>();
        if covariance <= 0.0 {
            break;
        }
        variance += covariance;
        lags = lag;
    }
    let len = len as f64;
    let free = (len - 2.0 * lags as f64 - 1.0).max(len / 3.0);
    variance * len / free
}

/// The figures of one rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// Users, or the mean number in flight of an open loop.
    pub users: f64,
    /// Ok responses a second.
    pub throughput: f64,
    /// Mean time of ok responses, in seconds.
    pub response: f64,
    /// Number of ok responses.
    pub ok: u64,
    /// Whether the target had CPU to spare; `None` when unknown.
    pub idle: Option<bool>,
}

impl Rung {
    /// The rung as a point of the scalability law.
    #[must_use]
    pub fn point(&self) -> usl::UslPoint {
        usl::UslPoint { users: self.users, throughput: self.throughput, count: self.ok }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::search::{ClauseCounts, TrialLoad, TrialSecond};

    /// A step with these readings of the bounded CPU.
    fn step(purpose: Purpose, readings: Vec<f64>) -> SearchStep {
        let clauses = [Clause::target("cpu<20%".to_owned(), "cpu".to_owned(), 0.2)];
        let duration = Duration::from_secs(4);
        let load = TrialLoad::Rate(100.0);
        let (number, seed, warmup, enough) = (0, 0, Duration::ZERO, Vec::new());
        let trial = Trial { number, purpose, load, warmup, duration, seed, enough };
        let seen = Observation {
            measured: 4.0,
            due: 400,
            ok: 400,
            seconds: vec![TrialSecond { ok: 100.0, ..TrialSecond::default() }; 4],
            clauses: vec![ClauseCounts { levels: readings, ..ClauseCounts::default() }],
            ..Observation::default()
        };
        SearchStep::new(Dimension::Rate, &clauses, trial, seen)
    }

    #[test]
    fn without_readings_a_bound_on_the_target_is_missed() {
        let unread = step(Purpose::Bracket, Vec::new());
        assert_eq!((unread.missed(), unread.outcome), (true, StepOutcome::Inconclusive));
        let read = step(Purpose::Bracket, vec![0.1]);
        assert_eq!((read.ratios[0], read.outcome), (0.5, StepOutcome::Pass));
        // The ladder's steps are too short for readings.
        assert!(!step(Purpose::Ladder, Vec::new()).missed());
    }

    #[test]
    fn readings_during_a_backlog_do_not_count() {
        let SearchStep { trial, seen, .. } = step(Purpose::Bracket, vec![0.1]);
        let clauses = [Clause::target("cpu<20%".to_owned(), "cpu".to_owned(), 0.2)];
        let seconds = vec![TrialSecond { ok: 50.0, ..TrialSecond::default() }; 4];
        let half = Observation { seconds, ..seen };
        let behind = SearchStep::new(Dimension::Rate, &clauses, trial.clone(), half.clone());
        assert_eq!((behind.missed(), behind.outcome), (true, StepOutcome::Inconclusive));
        let limited = Observation { limited: Some("all connections".to_owned()), ..half };
        let limited = SearchStep::new(Dimension::Rate, &clauses, trial, limited);
        assert_eq!(limited.outcome, StepOutcome::Limited);
    }
}
