//! Requests sent at the same moment after the load: whether as many are served at once as rate ×
//! time says.
//!
//! A request that holds a lock for a part L of its time S is served at a rate of 1/L: the utilization
//! law then counts S/L places where there is one. Of k sent at the same moment the last takes
//! (k − 1)·L longer, while k places serve them all in S.

use gake_core::record::{Gauge, MACHINE, Run};

use crate::unloaded::Unloaded;

/// A gauge of [`MACHINE`]: the longest time to the first byte, in seconds, of each group of requests
/// of a probe that were sent at the same moment.
pub const PROBE_TOGETHER: &str = "probe_together";

/// A gauge of [`MACHINE`]: the requests in such a group.
pub const PROBE_GROUP: &str = "probe_group";

/// Groups needed.
const GROUPS_MIN: usize = 4;
/// Sizes of a group. Processes that share a listening socket may take two requests of a larger one
/// while others are idle.
const SIZES: (f64, f64) = (1.5, 4.5);
/// A request sent alone takes at most this time: a group takes some times as long.
const ALONE_MAX: f64 = 250e6;
/// Ratio of the additional time of the last request to (k − 1)·L: range of the median over the
/// groups, and the least of any group. Processes that take both of two requests need twice that time,
/// and times that vary by themselves are short in some groups.
const RATIO: (f64, f64) = (0.6, 1.25);
const RATIO_LEAST: f64 = 0.5;

/// The size of groups of requests that would tell more than `alone`, at a rate of `rate`/s.
#[must_use]
pub fn group_size(rate: f64, alone: &Unloaded) -> Option<u64> {
    let places = alone.places(rate).number;
    let is_short = alone.mean() <= ALONE_MAX;
    (is_short && (SIZES.0..SIZES.1).contains(&places)).then(|| places.round() as u64)
}

/// Groups of requests, each sent at the same moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Together {
    /// Requests in a group.
    pub(crate) size: u64,
    /// The longest time to the first byte in each group, in nanoseconds, in order.
    longest: Vec<f64>,
}

impl Together {
    /// The groups of the probe of `run`, if it had enough.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let gauge = |name: &str| {
            run.watched.gauges().iter().find(|gauge| gauge.source == MACHINE && gauge.name == name)
        };
        let size = gauge(PROBE_GROUP).and_then(Gauge::last)? as u64;
        let longest = gauge(PROBE_TOGETHER)?.samples().iter().map(|sample| sample.mean * 1e9);
        Self::new(size, longest.collect())
    }

    fn new(size: u64, mut longest: Vec<f64>) -> Option<Self> {
        longest.sort_by(f64::total_cmp);
        (size > 1 && longest.len() >= GROUPS_MIN).then_some(Self { size, longest })
    }

    /// The longest time to the first byte of a usual group.
    pub(crate) fn median(&self) -> f64 {
        self.longest[self.longest.len() / 2]
    }

    /// Whether the requests of a group waited for each other, each for 1/`rate`.
    pub(crate) fn take_turns(&self, rate: f64, alone: &Unloaded) -> bool {
        let turns = (self.size - 1) as f64 * 1e9 / rate;
        let ratio = |longest: f64| (longest - alone.median()) / turns;
        ratio(self.longest[0]) >= RATIO_LEAST && (RATIO.0..=RATIO.1).contains(&ratio(self.median()))
    }
}

#[cfg(test)]
mod tests {
    use gake_core::random::SplitMix64;

    use super::*;

    const GROUPS: usize = 8;

    /// Groups of requests at stations of the given kind, for each of which the requests of a group
    /// wait in turn: `process` draws the station, `outside` is the time before it, `inside` that in
    /// it.
    fn groups(
        seed: u64,
        size: u64,
        process: impl Fn(&mut SplitMix64, usize) -> usize,
        outside: impl Fn(&mut SplitMix64) -> f64,
        inside: impl Fn(&mut SplitMix64) -> f64,
    ) -> (Together, Unloaded) {
        let mut random = SplitMix64::new(seed);
        let alone = (0..30).map(|_| outside(&mut random) + inside(&mut random)).collect();
        let longest = |random: &mut SplitMix64| {
            let mut arrivals: Vec<_> =
                (0..size as usize).map(|n| (outside(random), process(random, n))).collect();
            arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut free = [0.0; 8];
            let ends = arrivals.into_iter().map(|(at, station)| {
                free[station] = f64::max(free[station], at) + inside(random);
                free[station]
            });
            ends.fold(0.0, f64::max)
        };
        let longest = (0..GROUPS).map(|_| longest(&mut random)).collect();
        (Together::new(size, longest).unwrap(), Unloaded::new(alone, 0.0).unwrap())
    }

    fn about(time: f64) -> impl Fn(&mut SplitMix64) -> f64 {
        move |random| time * (0.97 + 0.06 * random.unit())
    }

    fn exponential(mean: f64) -> impl Fn(&mut SplitMix64) -> f64 {
        move |random| -(1.0 - random.unit()).ln() * mean
    }

    #[test]
    fn requests_that_hold_a_lock_for_a_part_of_their_time_take_turns() {
        for (outside, inside) in [(6e6_f64, 6e6), (12e6, 4e6), (6e6, 9e6), (60e6, 20e6)] {
            let rate = 1e9 / inside;
            let found = (0..100).filter(|seed| {
                let one = |_: &mut SplitMix64, _| 0;
                let size = ((outside + inside) / inside).round() as u64;
                let (together, alone) = groups(*seed, size, one, about(outside), about(inside));
                group_size(rate, &alone) == Some(size) && together.take_turns(rate, &alone)
            });
            let found = found.count();
            assert!(found >= 95, "{found} of 100: {outside} and {inside}");
        }
    }

    #[test]
    fn places_that_serve_a_group_at_once_are_a_pool() {
        for size in [2, 3, 4] {
            let rate = size as f64 * 1e9 / 20e6;
            let own = |_: &mut SplitMix64, n: usize| n;
            // Processes that take what comes to a common socket.
            let any = move |random: &mut SplitMix64, _: usize| random.below(size as usize);
            let none = |_: &mut SplitMix64| 0.0;
            let blamed = |found: &dyn Fn(u64) -> (Together, Unloaded)| {
                let turns = |seed: &u64| {
                    let (together, alone) = found(*seed);
                    together.take_turns(rate, &alone)
                };
                (0..200).filter(turns).count()
            };
            let fixed = blamed(&|seed| groups(seed, size, own, none, about(20e6)));
            let varied = blamed(&|seed| groups(seed, size, own, none, exponential(20e6)));
            let shared = blamed(&|seed| groups(seed, size, any, none, about(20e6)));
            assert_eq!(fixed, 0, "{size}");
            assert!(varied <= 4 && shared <= 4, "{varied} and {shared} of 200, {size} places");
        }
    }

    #[test]
    fn one_place_and_many_are_not_probed_together() {
        let alone = Unloaded::new(vec![20e6; 9], 0.0).unwrap();
        assert_eq!(group_size(50.0, &alone), None);
        assert_eq!(group_size(100.0, &alone), Some(2));
        assert_eq!(group_size(500.0, &alone), None);
        assert_eq!(group_size(2.0, &Unloaded::new(vec![1e9; 9], 0.0).unwrap()), None);
    }
}
