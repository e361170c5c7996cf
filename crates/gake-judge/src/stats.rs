//! Statistics that rules share.

use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::record::{LatencyMetric, Run, Tally};

/// Share of one core from which a worker counts as busy.
pub(crate) const CPU_BUSY: f64 = 0.85;

/// Whether the generator of `run` has no CPU left, which slows everything it measures.
pub(crate) fn generator_is_busy(run: &Run) -> bool {
    run.generator.busiest > CPU_BUSY && !run.plan.spin
}

/// Samples that must lie beyond a percentile for it to be reported.
pub const BEYOND_MIN: f64 = 10.0;

/// Whether `quantile` (0 to 1) of `count` samples is reliable: `count · (1 − quantile) ≥ 10`
/// samples lie beyond it.
#[must_use]
pub fn trusted(quantile: f64, count: u64) -> bool {
    // 1 − 0.9 is slightly below 0.1 in binary.
    count as f64 * (1.0 - quantile) >= BEYOND_MIN - 1e-6
}

/// `part / whole`, or 0 when `whole` is 0.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// `count` per second over `time`, or 0 when `time` is 0.
#[must_use]
pub fn per_second(count: f64, time: Nanos) -> f64 {
    if time == 0 { 0.0 } else { count * SECOND as f64 / time as f64 }
}

/// P(X ≥ `count`) for a Poisson variable X with this mean.
#[must_use]
pub fn poisson_at_least(count: f64, mean: f64) -> f64 {
    if count <= 0.0 {
        return 1.0;
    }
    if mean > 500.0 {
        // The normal approximation; e^(−mean) would underflow.
        return normal_above((count - 0.5 - mean) / mean.sqrt());
    }
    let mut term = (-mean).exp();
    let mut below = 0.0;
    let mut k = 0.0;
    while k < count {
        below += term;
        k += 1.0;
        term *= mean / k;
    }
    (1.0 - below).max(0.0)
}

/// P(Z > `z`) of the standard normal distribution, to 10⁻⁷.
///
/// Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.17.
#[must_use]
pub fn normal_above(z: f64) -> f64 {
    const B: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    if z < 0.0 {
        return 1.0 - normal_above(-z);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    density * B.iter().rev().fold(0.0, |sum, b| (sum + b) * t)
}

/// A run's rates per second, each over its own duration: see [`Run`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunRates {
    /// The rate that the plan asked for; `None` in a closed loop.
    pub asked: Option<f64>,
    /// Requests sent, over the duration of sending.
    pub sent: f64,
    /// Requests that ended, over the duration of completing.
    pub completed: f64,
    /// Requests that ended ok, over the same duration.
    pub goodput: f64,
}

impl RunRates {
    /// The rates of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let counts = &run.tally.counts;
        Self {
            asked: run.asked_rate,
            sent: per_second(counts.sent as f64, run.sending),
            completed: per_second(counts.completed() as f64, run.completing),
            goodput: per_second(counts.ok as f64, run.completing),
        }
    }
}

/// From the end of the warm-up to the end of the run, drain included.
#[must_use]
pub fn span(run: &Run) -> Nanos {
    let warmup = nanos(run.plan.warmup);
    run.elapsed.saturating_sub(warmup)
}

/// Mean number in flight over the measured interval; 0 when nothing was measured.
#[must_use]
pub fn mean_in_flight(run: &Run) -> f64 {
    if run.measured == 0 { 0.0 } else { run.tally.in_flight_ns as f64 / run.measured as f64 }
}

/// Σ(done − fired) of every arrival sent, exactly: the sum of the times from due to done, less the
/// generator's delay and the wait for a free connection.
///
/// With dropped arrivals, which waited but were never fired, this is an upper bound.
#[must_use]
pub fn fired_time(tally: &Tally) -> u128 {
    let sum = |metric| tally.latency.of(metric).sum();
    let response = sum(LatencyMetric::OkResponse)
        + sum(LatencyMetric::OtherResponse)
        + sum(LatencyMetric::FaultResponse);
    response
        .saturating_sub(sum(LatencyMetric::Lateness))
        .saturating_sub(sum(LatencyMetric::Blocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        for (quantile, enough) in [(0.5, 20), (0.9, 100), (0.99, 1_000), (0.999, 10_000)] {
            assert!(trusted(quantile, enough), "{quantile}");
            assert!(!trusted(quantile, enough - 1), "{quantile}");
        }
        assert!(!trusted(1.0, u64::MAX));
    }

    #[test]
    fn tails_of_the_poisson_and_normal_distributions() {
        for (count, mean, tail) in
            [(0.0, 2.0, 1.0), (1.0, 2.0, 0.864_665), (5.0, 2.0, 0.052_653), (30.0, 20.0, 0.021_818)]
        {
            assert!((poisson_at_least(count, mean) - tail).abs() < 1e-6, "{count} {mean}");
        }
        // At the mean of 1,000, and two standard deviations above.
        assert!((poisson_at_least(1_000.0, 1_000.0) - 0.504_2).abs() < 0.01);
        assert!((poisson_at_least(1_063.75, 1_000.0) - 0.022_75).abs() < 0.002);
        assert!((normal_above(1.959_964) - 0.025).abs() < 1e-7);
        assert!((normal_above(-1.0) - 0.841_345).abs() < 1e-6);
    }

    #[test]
    fn completions_are_over_the_duration_of_completing() {
        let mut run = crate::testing::healthy();
        let completed = run.tally.counts.completed() as f64;
        // A drain of five seconds in which nothing completed.
        (run.completing, run.elapsed) = (11 * SECOND, 15 * SECOND);
        assert_eq!(RunRates::of(&run).completed, completed / 11.0);
        assert_eq!(span(&run), 15 * SECOND);
    }

    #[test]
    fn ratios_of_zero_are_zero() {
        assert_eq!(share(0, 0), 0.0);
        assert_eq!(per_second(5.0, 0), 0.0);
        assert_eq!(per_second(5.0, SECOND / 2), 10.0);
    }
}
