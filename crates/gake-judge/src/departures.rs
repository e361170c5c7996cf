//! How regularly a target completes requests, which tells a queue from varying service times.
//!
//! Users of a closed loop who do not affect each other complete as renewal processes: over windows
//! longer than a response, the variance of the count of completions over its mean (the Fano
//! factor) is the squared coefficient of variation of the response time (Cox, *Renewal Theory*,
//! 1962, section 4.5). A station that serves m at once with even service times completes at even
//! intervals in whatever order it picks the waiting: then the counts are regular and the response
//! times are not, so the users wait for each other.

use gake_core::record::{Histogram, SeriesPoint};

/// Windows and completions needed: the Fano factor of 30 windows is known to a quarter.
const WINDOWS_MIN: usize = 30;
const COMPLETED_MIN: u64 = 100;
/// Response times vary from this squared coefficient of variation on.
const VARIED: f64 = 0.15;
/// Counts are regular below this ratio of the Fano factor to that.
const REGULAR: f64 = 0.4;
/// Times between the fastest and half of the 90th percentile, as a share: with fewer, the times
/// have modes of their own.
const BETWEEN: f64 = 0.1;
/// Counts are even below this Fano factor (1 for a Poisson process).
const EVEN: f64 = 0.35;

/// The variance of `counts` over their mean; `None` without a mean.
#[must_use]
pub fn fano(counts: &[f64]) -> Option<f64> {
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean > 0.0 && n > 1.0).then(|| variance / mean)
}

/// The Fano factor of a count by full windows, without the first second, in which a queue builds
/// up, and the last window.
fn regularity(tenths: &[SeriesPoint], end: u64, count: fn(&SeriesPoint) -> u64) -> Option<f64> {
    let counts: Vec<f64> = tenths
        .iter()
        .filter(|point| point.second >= 10 && point.second + 1 < end && point.seconds == 1)
        .map(|point| count(point) as f64)
        .collect();
    let completed = counts.iter().sum::<f64>() as u64;
    (counts.len() >= WINDOWS_MIN && completed >= COMPLETED_MIN).then(|| fano(&counts)).flatten()
}

/// Whether completions come at even intervals, more evenly than independent ones. `end` is the end
/// of the load in tenths of a second.
#[must_use]
pub fn are_even(tenths: &[SeriesPoint], end: u64) -> bool {
    regularity(tenths, end, completed).is_some_and(|fano| fano < EVEN)
}

/// Whether ok responses come at even intervals, as a limiter lets requests through. `end` as above.
#[must_use]
pub fn oks_are_even(tenths: &[SeriesPoint], end: u64) -> bool {
    regularity(tenths, end, |point| point.counts.ok).is_some_and(|fano| fano < EVEN)
}

fn completed(point: &SeriesPoint) -> u64 {
    point.counts.completed()
}

/// Whether users of a closed loop wait for each other: their response times vary, and the
/// completions of all do not. Times with modes of their own prove nothing.
#[must_use]
pub fn are_coupled(tenths: &[SeriesPoint], end: u64, responses: &Histogram) -> bool {
    let (fastest, high) = (responses.min() as f64, responses.quantile(0.9) as f64);
    let between = responses.count_between((1.5 * fastest) as u64, (0.5 * high) as u64);
    let is_one_mode = between as f64 >= BETWEEN * responses.count() as f64;
    is_one_mode && are_regular(tenths, end, responses)
}

/// Whether completions are more regular than independent users with these response times make them.
#[must_use]
pub fn are_regular(tenths: &[SeriesPoint], end: u64, responses: &Histogram) -> bool {
    let varied = (responses.stddev() / responses.mean()).powi(2);
    varied >= VARIED
        && regularity(tenths, end, completed).is_some_and(|fano| fano < REGULAR * varied.min(1.0))
}

#[cfg(test)]
mod tests {
    use gake_core::clock::{SECOND, TENTH};
    use gake_core::record::Counts;

    use super::*;
    use crate::simulation::{Order, closed_loop};
    use crate::testing::MS;

    fn seen(completions: &[(u64, u64)]) -> (Vec<SeriesPoint>, Histogram) {
        let mut responses = Histogram::default();
        let mut counts = vec![0; 80];
        for (done, took) in completions {
            responses.record(*took);
            counts[(done / TENTH).min(79) as usize] += 1;
        }
        let point = |(second, ok): (usize, u64)| SeriesPoint {
            second: second as u64,
            seconds: 1,
            counts: Counts { ok, ..Counts::default() },
            ..SeriesPoint::default()
        };
        (counts.into_iter().enumerate().map(point).collect(), responses)
    }

    #[test]
    fn a_fano_factor_is_variance_over_mean() {
        assert_eq!(fano(&[2.0, 4.0]), Some(2.0 / 3.0));
        assert_eq!(fano(&[0.0, 0.0]), None);
        assert_eq!(fano(&[]), None);
    }

    #[test]
    fn users_of_a_pool_wait_for_each_other_in_any_order_of_service() {
        for seed in 0..50 {
            for (users, servers) in [(10, 1), (20, 4), (60, 20)] {
                let run = closed_loop(seed, users, servers, Order::Random, 8 * SECOND, |random| {
                    20 * MS + (random.unit() * MS as f64) as u64
                });
                let (tenths, responses) = seen(&run);
                assert!(are_coupled(&tenths, 80, &responses), "seed {seed}, pool of {servers}");
                assert!(are_even(&tenths, 80), "seed {seed}, pool of {servers}");
            }
        }
    }

    fn alone(
        seed: u64,
        service: impl Fn(&mut gake_core::random::SplitMix64) -> u64,
    ) -> crate::unloaded::Unloaded {
        let mut random = gake_core::random::SplitMix64::new(seed ^ 0xff);
        let times = (0..30).map(|_| service(&mut random) as f64).collect();
        crate::unloaded::Unloaded::new(times, 0.0).unwrap()
    }

    #[test]
    fn users_who_are_served_again_leave_others_waiting() {
        let service =
            |random: &mut gake_core::random::SplitMix64| 50 * MS + random.below(5_000_000) as u64;
        let seen = |seed| {
            let run = closed_loop(seed, 25, 5, Order::Again, 8 * SECOND, service);
            let (tenths, responses) = seen(&run);
            assert!(responses.quantile(0.5) < 60 * MS, "most do not wait");
            are_regular(&tenths, 80, &responses) && alone(seed, service).has_no_tail_of(&responses)
        };
        let found = (0..100).filter(|seed| seen(*seed)).count();
        assert!(found >= 95, "{found} of 100");
    }

    #[test]
    fn requests_that_are_slow_by_themselves_are_met_alone_too() {
        type Service = fn(&mut gake_core::random::SplitMix64) -> u64;
        let service: [Service; 5] = [
            |random| if random.unit() < 0.93 { 50 * MS } else { 2_000 * MS },
            |random| if random.unit() < 0.9 { 5 * MS } else { 60 * MS },
            |random| if random.unit() < 0.8 { 20 * MS } else { 100 * MS },
            |random| (-(1.0 - random.unit()).ln() * 20e6) as u64 + 1,
            |random| 5 * MS + if random.unit() < 0.02 { 300 * MS } else { 0 },
        ];
        for (kind, service) in service.iter().enumerate() {
            let blamed = (0..100).filter(|seed| {
                let run = closed_loop(*seed, 10, 10, Order::First, 8 * SECOND, service);
                let (tenths, responses) = seen(&run);
                are_regular(&tenths, 80, &responses)
                    && alone(*seed, service).has_no_tail_of(&responses)
            });
            let blamed = blamed.count();
            assert!(blamed <= 1, "{blamed} of 100, service {kind}");
        }
    }

    #[test]
    fn independent_users_are_not_coupled() {
        let service: [fn(&mut gake_core::random::SplitMix64) -> u64; 5] = [
            |_| 20 * MS,
            |random| (-(1.0 - random.unit()).ln() * 20e6) as u64 + 1,
            |random| if random.unit() < 0.9 { 5 * MS } else { 60 * MS },
            |random| if random.unit() < 0.33 { 5 * MS } else { 100 * MS },
            |random| 5 * MS + if random.unit() < 0.02 { 300 * MS } else { 0 },
        ];
        for seed in 0..50 {
            for (kind, service) in service.iter().enumerate() {
                let run = closed_loop(seed, 10, 10, Order::First, 8 * SECOND, service);
                let (tenths, responses) = seen(&run);
                assert!(!are_coupled(&tenths, 80, &responses), "seed {seed}, service {kind}");
            }
        }
    }
}
