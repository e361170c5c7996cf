//! The time of a request without a queue, from requests sent one at a time after the load, and what
//! follows from it: whether requests waited, and how many the target serves at once.
//!
//! By the utilization law m = X·S places are busy on average (Denning and Buzen, 1978). S must be
//! the mean time of requests that waited for nothing. In a closed loop no request may have waited
//! for nothing; and the fastest response is far below the mean when times vary by themselves.

use gake_core::record::{Histogram, MACHINE, PROBE, PROBE_DELAY, Run};

use crate::stats::share;

/// Times needed.
const TIMES_MIN: usize = 3;
/// Requests waited when the median and the mean under load are these many times those without, and
/// the median exceeds the other by this much. The newest first, few requests wait, but for long.
const FACTOR_MEDIAN: f64 = 1.3;
const FACTOR_MEAN: f64 = 1.5;
/// Below this factor of the medians nothing waits.
const NO_WAIT: f64 = 1.15;
pub(crate) const EXCESS_MIN: f64 = 1e6;
/// The mean share of the responses under load that took longer than a request of the probe: 0.5 if
/// the load makes no difference. Of n requests it then has a standard deviation of about
/// 1/√(12n) (Mann and Whitney).
const SLOWER: f64 = 0.5;
const DEVIATIONS: f64 = 5.0;
/// With so few requests that these deviations exceed the possible range, this share.
const SLOWER_MAX: f64 = 0.95;
/// Share of long responses that is significant, and the probability of an accident.
const TAIL_MIN: f64 = 0.05;
const ACCIDENT: f64 = 0.1;
/// Tolerance of the time between two responses that a limiter lets through.
const SHAPED: f64 = 0.1;
/// Tolerance of that time where a buffer drains, the share of it that a request with room in the
/// buffer takes at most, and the share of either needed.
const DRAINED: f64 = 0.2;
const BUFFERED: f64 = 0.1;
const BUFFER_MIN: f64 = 0.3;
/// The machine is busy from this ratio of the generator's own delay to the mean on.
const BUSY: f64 = 0.1;
/// Half the width of the interval is at least this share: rate and times are no better known.
const WIDTH_MIN: f64 = 0.03;

/// Times to the first byte of requests that waited for no other, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Unloaded {
    times: Vec<f64>,
    /// Mean time that the generator waited for a core, which is not in `times`.
    own_delay: f64,
}

/// How many requests are served at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Places {
    /// The estimate.
    pub number: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Unloaded {
    /// The times of the probe of `run`, if it had one.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        let gauge = |name: &str| {
            run.watched.gauges().iter().find(|g| g.source == MACHINE && g.name == name)
        };
        let own_delay = gauge(PROBE_DELAY).and_then(|gauge| gauge.mean_from(0)).unwrap_or(0.0);
        let times = gauge(PROBE)?.samples().iter().map(|sample| sample.mean * 1e9).collect();
        Self::new(times, own_delay * 1e9)
    }

    /// `None` with too few times. `own_delay` is the generator's part of their mean.
    #[must_use]
    pub fn new(mut times: Vec<f64>, own_delay: f64) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        let fastest = *times.first()?;
        times.iter_mut().for_each(|time| *time = (*time - own_delay).max(fastest));
        (times.len() >= TIMES_MIN).then_some(Self { times, own_delay })
    }

    /// The number of requests.
    #[must_use]
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// The mean time.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.times.iter().sum::<f64>() / self.times.len() as f64
    }

    /// The median time.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.times[self.times.len() / 2]
    }

    /// Whether the responses of a run took longer than requests without a queue.
    #[must_use]
    pub fn is_exceeded_by(&self, loaded: &Histogram) -> bool {
        let excess = loaded.quantile(0.5) as f64 - self.median();
        let slower = |time: &f64| 1.0 - share(loaded.count_up_to(*time as u64), loaded.count());
        let n = self.times.len() as f64;
        let rank = self.times.iter().map(slower).sum::<f64>() / n;
        let bound = (SLOWER + DEVIATIONS / (12.0 * n).sqrt()).min(SLOWER_MAX);
        self.is_shorter_than(loaded)
            && excess >= EXCESS_MIN
            && loaded.mean() >= FACTOR_MEAN * self.mean()
            && rank >= bound
    }

    /// Whether the median response of a run took longer than requests without a queue.
    #[must_use]
    pub fn is_shorter_than(&self, loaded: &Histogram) -> bool {
        loaded.quantile(0.5) as f64 >= FACTOR_MEDIAN * self.median()
    }

    /// Whether the responses of a run took no longer than requests without a queue.
    #[must_use]
    pub fn is_matched_by(&self, loaded: &Histogram) -> bool {
        (loaded.quantile(0.5) as f64) < NO_WAIT * self.median()
    }

    /// Whether a share of the responses of a run took more than twice as long as any request without
    /// a queue, so many that it is no accident that these met none of them.
    #[must_use]
    pub fn has_no_tail_of(&self, loaded: &Histogram) -> bool {
        let longest = self.times[self.times.len() - 1];
        let longer = 1.0 - share(loaded.count_up_to((2.0 * longest) as u64), loaded.count());
        longer >= TAIL_MIN && (1.0 - longer).powi(self.times.len() as i32) <= ACCIDENT
    }

    /// Whether a request sent alone takes the time between two responses under load, though one
    /// that meets no other takes half of it at most: a limiter delays it.
    #[must_use]
    pub fn is_shaped(&self, rate: f64, fastest: f64) -> bool {
        let between = 1e9 / rate;
        let is_alike = (self.median() - between).abs() < SHAPED * between;
        is_alike && fastest <= 0.5 * self.median()
    }

    /// Whether some requests sent alone take the time between two responses under load, and so many of
    /// the others next to nothing that a server of one at a time would be faster: they fill a buffer,
    /// which drains at that rate.
    #[must_use]
    pub fn fills_a_buffer(&self, rate: f64) -> bool {
        let between = 1e9 / rate;
        let drained = self.times.iter().filter(|time| (**time - between).abs() < DRAINED * between);
        let at_once = self.times.iter().filter(|time| **time <= BUFFERED * between).count() as f64;
        let n = self.times.len() as f64;
        drained.count() as f64 >= BUFFER_MIN * n && at_once >= BUFFER_MIN * n
    }

    /// How many are served at once at a rate of `rate`/s.
    #[must_use]
    pub fn places(&self, rate: f64) -> Places {
        let (n, mean) = (self.times.len() as f64, self.mean());
        let variance = self.times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let width = (2.0 * (variance / n).sqrt() / mean).max(WIDTH_MIN);
        // On a busy machine a few times are long for lack of a core.
        let is_busy = self.own_delay >= BUSY * mean;
        let service = if is_busy { self.median() } else { mean };
        let number = rate * service / 1e9;
        let low = number * (1.0 - width).max(0.0);
        let least = if is_busy { rate * self.times[0] / 1e9 } else { low };
        Places { number, low: low.max(least).min(number), high: number * (1.0 + width) }
    }
}

#[cfg(test)]
mod tests {
    use gake_core::clock::{Nanos, SECOND};
    use gake_core::random::SplitMix64;

    use super::*;
    use crate::simulation::{Order, closed_loop};
    use crate::testing::MS;

    type Service = fn(&mut SplitMix64) -> Nanos;

    const FIXED: Service = |random| 20 * MS + (random.unit() * MS as f64) as u64;
    const EXPONENTIAL: Service = |random| (-(1.0 - random.unit()).ln() * 20e6) as u64 + MS;
    const HYPER: Service = |random| {
        let mean = if random.unit() < 0.9 { 10e6 } else { 60e6 };
        (-(1.0 - random.unit()).ln() * mean) as u64 + MS
    };
    const TWO: Service = |random| if random.unit() < 0.5 { 5 * MS } else { 100 * MS };
    const SPIKES: Service =
        |random| 5 * MS + if random.unit() < 0.02 { 300 * MS } else { random.below(99) as u64 };

    /// A loaded run's times and rate, and 30 requests one at a time.
    fn seen(
        seed: u64,
        users: usize,
        places: usize,
        order: Order,
        service: Service,
    ) -> (Histogram, f64, Unloaded) {
        let run = closed_loop(seed, users, places, order, 8 * SECOND, service);
        let mut responses = Histogram::default();
        run.iter().for_each(|(_, took)| responses.record(*took));
        let mut random = SplitMix64::new(seed ^ 0xff);
        let times = (0..30).map(|_| service(&mut random) as f64).collect();
        (responses, run.len() as f64 / 8.0, Unloaded::new(times, 0.0).unwrap())
    }

    #[test]
    fn the_places_of_a_pool_are_known_in_any_order_of_service() {
        // The mean of 30 exponential times is skewed.
        for (service, least) in [(FIXED, 38), (EXPONENTIAL, 32)] {
            for (users, places) in [(10, 1), (10, 3), (20, 4), (10, 5), (60, 20)] {
                for order in [Order::First, Order::Random, Order::Last] {
                    let right = (0..40).filter(|seed| {
                        let (responses, rate, unloaded) =
                            seen(*seed, users, places, order, service);
                        let known = unloaded.places(rate);
                        // Users who starve do not respond: the newest first shows no wait.
                        let is_hidden = order == Order::Last || users < 3 * places;
                        let is_seen = is_hidden || unloaded.is_exceeded_by(&responses);
                        let places = places as f64;
                        is_seen && (known.low..=known.high).contains(&places)
                    });
                    let right = right.count();
                    assert!(right >= least, "{right}: {places} of {users} users, {order:?}");
                }
            }
        }
    }

    #[test]
    fn times_that_vary_by_themselves_are_no_queue() {
        for service in [FIXED, EXPONENTIAL, HYPER, TWO, SPIKES] {
            for (users, places) in [(10, 10), (3, 5), (2, 20)] {
                for seed in 0..50 {
                    let (responses, _, unloaded) = seen(seed, users, places, Order::First, service);
                    assert!(!unloaded.is_exceeded_by(&responses), "seed {seed}, {users} users");
                }
            }
        }
    }

    #[test]
    fn a_buffer_takes_requests_until_it_is_full() {
        let mut times = vec![1e5; 16];
        times.extend([6.1e6; 14]);
        let buffer = Unloaded::new(times, 0.0).unwrap();
        assert!(buffer.fills_a_buffer(164.0) && buffer.fills_a_buffer(143.0));
        // A server of one at a time, half of whose requests are as fast, has twice the rate.
        assert!(!buffer.fills_a_buffer(1e9 / buffer.mean()));
        for seed in 0..100 {
            for service in [FIXED, EXPONENTIAL, HYPER, TWO, SPIKES] {
                let (_, rate, unloaded) = seen(seed, 10, 1, Order::First, service);
                assert!(!unloaded.fills_a_buffer(rate), "seed {seed}");
            }
        }
    }

    #[test]
    fn too_few_requests_show_nothing() {
        assert_eq!(Unloaded::new(vec![1.0, 2.0], 0.0), None);
        let mut loaded = Histogram::default();
        (0..1_000).for_each(|_| loaded.record(60 * MS));
        assert!(Unloaded::new(vec![20e6; 3], 0.0).unwrap().is_exceeded_by(&loaded));
        assert!(!Unloaded::new(vec![59e6, 60e6, 61e6], 0.0).unwrap().is_exceeded_by(&loaded));
    }
}
