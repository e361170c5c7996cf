//! The input of the rules: the run and the levels sampled during it.

use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::record::{Counts, Fault, Gauge, Histogram, LatencyMetric, Run, UNANSWERED};

use crate::objective::Evaluation;
use crate::stats::{generator_is_busy, mean_in_flight, share};
use crate::unloaded::Unloaded;

/// A level is at its bound when this share of the readings is: a mean over the whole run hides a
/// pool that is full for half of it.
const AT_BOUND: f64 = 1.0 / 3.0;

/// Failures below this share of the requests are not a finding.
pub(super) const FAILURES_MIN: f64 = 0.001;

pub(super) struct RunFacts<'a> {
    pub(super) run: &'a Run,
    pub(super) objectives: &'a [Evaluation],
}

/// How long a level was at its bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AtBound<'a> {
    pub(super) source: &'a str,
    pub(super) reached: u64,
    /// Readings after the warm-up.
    pub(super) readings: u64,
    pub(super) mean: f64,
    pub(super) max: f64,
}

impl AtBound<'_> {
    /// `in 8 of 12 readings`.
    pub(super) fn how_often(&self) -> String {
        let s = if self.readings == 1 { "" } else { "s" };
        format!("in {} of {} reading{s}", self.reached, self.readings)
    }
}

impl<'a> RunFacts<'a> {
    pub(super) fn counts(&self) -> &Counts {
        &self.run.tally.counts
    }

    pub(super) fn latency(&self, metric: LatencyMetric) -> &Histogram {
        self.run.tally.latency.of(metric)
    }

    pub(super) fn faults(&self, which: impl Fn(Fault) -> bool) -> u64 {
        self.run.tally.faults_where(which)
    }

    /// `count` as a share of the arrivals due.
    pub(super) fn of_due(&self, count: u64) -> f64 {
        share(count, self.counts().due())
    }

    /// `count` as a share of the requests sent.
    pub(super) fn of_sent(&self, count: u64) -> f64 {
        share(count, self.counts().sent)
    }

    pub(super) fn attempts(&self) -> u64 {
        self.counts().opened + self.faults(Fault::is_before_connection)
    }

    pub(super) fn responses(&self) -> u64 {
        self.run.tally.statuses().iter().map(|status| status.1).sum()
    }

    pub(super) fn in_flight(&self) -> f64 {
        mean_in_flight(self.run)
    }

    /// The mean share of the requests in flight that waits for a disk; 0 when unknown.
    pub(super) fn at_disk(&self) -> f64 {
        self.mean("disk_threads").unwrap_or(0.0) / self.in_flight().max(1.0)
    }

    pub(super) fn rate(&self) -> f64 {
        self.responses() as f64 * SECOND as f64 / self.run.measured.max(1) as f64
    }

    /// Whether the load is a closed loop without think time, which loads the target to its limit.
    pub(super) fn is_closed(&self) -> bool {
        self.run.plan.load.is_back_to_back()
    }

    /// As [`generator_is_busy`].
    pub(super) fn generator_is_busy(&self) -> bool {
        generator_is_busy(self.run)
    }

    /// Whether so many local ports are in use that finding a free one takes long.
    pub(super) fn ports_are_short(&self) -> bool {
        let ports = self.most("quick_ports").unwrap_or(f64::INFINITY);
        self.run.peak_connections as f64 >= ports
    }

    pub(super) fn missed(&self) -> impl Iterator<Item = &'a Evaluation> {
        self.objectives.iter().filter(|objective| !objective.met)
    }

    /// Whether an objective was missed or arrivals failed.
    pub(super) fn is_troubled(&self) -> bool {
        let counts = self.counts();
        let lost = counts.due().saturating_sub(counts.ok);
        self.missed().next().is_some() || share(lost, counts.due()) >= FAILURES_MIN
    }

    pub(super) fn warmup(&self) -> Nanos {
        nanos(self.run.plan.warmup)
    }

    /// The gauges of a name, from `--watch` or from this machine.
    pub(super) fn gauges(&self, name: &'a str) -> impl Iterator<Item = &'a Gauge> {
        self.run.watched.named(name)
    }

    /// Whether a source of one of these kinds is watched.
    pub(super) fn is_watched(&self, kinds: &[&str]) -> bool {
        let mut gauges = self.run.watched.gauges().iter();
        gauges.any(|gauge| kinds.iter().any(|kind| gauge.source.starts_with(kind)))
    }

    /// Whether Spring Boot is watched without its threads, which its default hides.
    pub(super) fn hides_threads(&self) -> bool {
        self.is_watched(&["actuator:"]) && self.gauges("pool").next().is_none()
    }

    /// The response time of a request that meets no other: the median of those sent one at a time,
    /// or else the fastest.
    pub(super) fn alone(&self) -> f64 {
        match Unloaded::of(self.run) {
            Some(unloaded) => unloaded.median(),
            None => self.run.tally.latency.response().min() as f64,
        }
    }

    /// The largest mean after the warm-up of the gauges of a name, and its source.
    pub(super) fn mean(&self, name: &'a str) -> Option<f64> {
        self.gauges(name).filter_map(|gauge| gauge.mean_from(self.warmup())).reduce(f64::max)
    }

    /// The largest reading of the gauges of a name.
    pub(super) fn most(&self, name: &'a str) -> Option<f64> {
        self.gauges(name).filter_map(Gauge::max).reduce(f64::max)
    }

    /// The most that a counter has grown.
    pub(super) fn growth(&self, name: &'a str) -> Option<f64> {
        self.gauges(name).map(Gauge::growth).reduce(f64::max)
    }

    /// A level of the generator's machine that is 0 or 1.
    pub(super) fn machine_flag(&self, name: &str) -> bool {
        self.run.watched.machine(name).and_then(Gauge::last).is_some_and(|value| value >= 0.5)
    }

    /// The cores of the generator's machine; those that it may use where unknown.
    pub(super) fn machine_cores(&self) -> f64 {
        let cores = self.run.watched.machine("machine_cores").and_then(Gauge::last);
        cores.unwrap_or(self.run.generator.cores as f64)
    }

    /// Whether the target is reached over the loopback interface, which loses no packets.
    pub(super) fn is_loopback(&self) -> bool {
        self.machine_flag("target_loopback")
    }

    /// The source in which a level was most often at least `bound`, if that is often enough to be
    /// significant.
    pub(super) fn at_bound(&self, name: &'a str, bound: f64) -> Option<AtBound<'a>> {
        let warmup = self.warmup();
        let seen = self.gauges(name).filter_map(|gauge| {
            let (reached, readings) = gauge.at_least_from(bound, warmup);
            let (mean, max) = (gauge.mean_from(warmup)?, gauge.max()?);
            Some(AtBound { source: &gauge.source, reached, readings, mean, max })
        });
        let enough = |seen: &AtBound<'_>| {
            let few = seen.readings <= 2 && seen.reached == seen.readings;
            few || (seen.reached >= 2 && share(seen.reached, seen.readings) >= AT_BOUND)
        };
        let share_at = |seen: &AtBound<'_>| share(seen.reached, seen.readings);
        seen.filter(enough).max_by(|a, b| share_at(a).total_cmp(&share_at(b)))
    }

    pub(super) fn silent_sources(&self) -> Vec<SilentSource<'a>> {
        self.gauges(UNANSWERED)
            .map(|gauge| {
                let source = gauge.source.as_str();
                let gauges = self.run.watched.gauges().iter();
                let others = gauges.filter(move |g| g.source == source && g.name != UNANSWERED);
                SilentSource {
                    source,
                    failed: gauge.at_least_from(0.0, 0).1,
                    answered: others
                        .clone()
                        .map(|g| g.at_least_from(f64::MIN, 0).1)
                        .max()
                        .unwrap_or(0),
                    last: others.collect(),
                }
            })
            .collect()
    }
}

pub(super) struct SilentSource<'a> {
    pub(super) source: &'a str,
    pub(super) failed: u64,
    pub(super) answered: u64,
    pub(super) last: Vec<&'a Gauge>,
}
