//! Response times that grow for as long as the load lasts, at a constant load.

use gake_core::clock::{Nanos, SECOND};
use gake_core::record::SeriesPoint;
use gake_text::units;

use super::Finding;
use super::facts::RunFacts;
use super::{pattern, server};
use crate::saturation::Saturation;

/// Seconds, and responses in each.
const SECONDS_MIN: usize = 6;
const RESPONSES_MIN: u64 = 10;
/// From the first third to the second, and from that to the last, medians grow by this factor.
const GROWTH_MIN: f64 = 1.2;
/// The share of the pairs of seconds of which the later one is slower (Mann and Kendall).
const LATER_SLOWER: f64 = 0.9;
/// A rate that grows from the first half to the second by more brings more load.
const RATE_MAX: f64 = 1.3;
/// Less growth is noise.
const GROWTH_TIME_MIN: f64 = 2e6;

/// The mean medians of the first and the last third, when they grow all the time.
#[must_use]
fn growth(medians: &[f64]) -> Option<(f64, f64)> {
    let third = medians.len() / 3;
    if medians.len() < SECONDS_MIN {
        return None;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let last = medians.len() - third;
    let (first, second, last) =
        (mean(&medians[..third]), mean(&medians[third..last]), mean(&medians[last..]));
    let pairs = (0..medians.len()).flat_map(|i| (i + 1..medians.len()).map(move |j| (i, j)));
    let slower = pairs.clone().filter(|(i, j)| medians[*j] > medians[*i]).count();
    let is_steady = slower as f64 >= LATER_SLOWER * pairs.count() as f64;
    let grows = second >= GROWTH_MIN * first && last >= GROWTH_MIN * second;
    (is_steady && grows && last - first >= GROWTH_TIME_MIN).then_some((first, last))
}

/// Each request takes longer than those before, though neither rate nor users grow.
pub(super) fn drift(facts: &RunFacts<'_>) -> Option<Finding> {
    let is_other = Saturation::of(facts.run).is_some()
        || pattern::step(facts).is_some()
        || server::queue(facts).is_some();
    if !pattern::load_is_constant(facts) || is_other || facts.generator_is_busy() {
        return None;
    }
    let end: Nanos = facts.run.measured + facts.warmup();
    let is_full = |point: &&SeriesPoint| {
        point.seconds == 1
            && point.counts.completed() >= RESPONSES_MIN
            && (point.second + 1) * SECOND <= end
    };
    let points: Vec<_> = facts.run.series.points().iter().filter(is_full).collect();
    let medians: Vec<f64> = points.iter().map(|point| point.p50 as f64).collect();
    let (first, last) = growth(&medians)?;
    let completed =
        |part: &[&SeriesPoint]| -> u64 { part.iter().map(|point| point.counts.completed()).sum() };
    let (early, late) = points.split_at(points.len() / 2);
    if completed(late) as f64 > RATE_MAX * completed(early) as f64 {
        return None;
    }
    let evidence = format!(
        "the median response takes longer every second, from {} in the first third to {} in the \
         last, with the same {}",
        units::duration(first),
        units::duration(last),
        match facts.is_closed() {
            true => "number of users",
            false => "rate of arrivals, which the target completes",
        }
    );
    let advice = "look for what grows: a table without an index, a list, a cache, a leak";
    let check = "a longer run: the median keeps growing, and memory or handles";
    Some(Finding::new("drift", evidence, advice, check))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normal;
    use gake_core::random::SplitMix64;

    #[test]
    fn only_times_that_grow_all_the_time_drift() {
        let series =
            |of: &dyn Fn(f64) -> f64| (0..10).map(|i| of(f64::from(i))).collect::<Vec<_>>();
        assert!(growth(&series(&|t| 5e6 + t * 5e6)).is_some());
        assert_eq!(growth(&series(&|_| 5e6)), None);
        assert_eq!(growth(&series(&|t| if t < 5.0 { 5e6 } else { 50e6 })), None);
        assert_eq!(growth(&series(&|t| 50e6 - t * 4e6)), None);
        assert_eq!(growth(&[1e6, 9e6]), None);
    }

    #[test]
    fn noise_does_not_drift() {
        for seed in 0..1_000 {
            let mut random = SplitMix64::new(seed);
            let medians: Vec<f64> =
                (0..8).map(|_| 20e6 * (0.3 * normal(&mut random)).exp()).collect();
            assert_eq!(growth(&medians), None, "seed {seed}");
        }
    }
}
