//! A series over the run's seconds whose memory does not grow with the run's length.

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::latency::Metric;
use super::octaves::Octaves;
use super::tally::{LabelTally, Tally, bump};
use crate::clock::{Nanos, SECOND};

/// Points kept at most; then neighbours are joined, and each stands for twice the time.
const POINTS_MAX: usize = 1_800;

/// Seconds of the widest point that is read: halves of it can be joined and joined again.
const WIDTH_MAX: u64 = 1 << 32;

/// Status codes told apart in a point; the rest is counted as 0.
const STATUSES_MAX: usize = 16;

/// The scale of a point's heat: cells of 19 %.
pub const HEAT: Octaves = Octaves::new(2);

/// Labels whose figures a point keeps: the first of the plan.
pub const LABELS_MAX: usize = 64;

/// What one piece of the run saw of one label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelPoint {
    /// Requests that ended.
    pub sent: u64,
    /// Of those, the failed and the unfinished.
    pub failed: u64,
    /// The median response time; of joined seconds, the worst.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
}

impl LabelPoint {
    fn new(label: &LabelTally) -> Self {
        Self {
            sent: label.counts.sent,
            failed: label.counts.failed + label.counts.unfinished,
            p50: label.response.quantile(0.5),
            p99: label.response.quantile(0.99),
        }
    }

    /// Adds the counts of `other` and takes the worse of each percentile.
    pub fn absorb(&mut self, other: &Self) {
        self.sent += other.sent;
        self.failed += other.failed;
        self.p50 = self.p50.max(other.p50);
        self.p99 = self.p99.max(other.p99);
    }
}

/// What one piece of the run saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where it starts, in seconds since the epoch.
    pub second: u64,
    /// How many seconds it stands for.
    pub seconds: u64,
    /// Arrivals the plan asked for, when it is an open loop.
    pub asked: Option<f64>,
    /// What ended in it.
    pub counts: Counts,
    /// Arrivals fired in it, whenever they ended.
    pub fired: u64,
    /// Responses by status code, in order; 0 stands for those beyond the first 16 codes.
    pub statuses: Vec<(u16, u64)>,
    /// Ends without a response by the fault's name, in order.
    #[serde(with = "super::exact::names")]
    pub faults: Vec<(&'static str, u64)>,
    /// Response times by cell of [`HEAT`], in order.
    pub heat: Vec<(u16, u64)>,
    /// Response-time percentiles; of joined seconds, the worst.
    pub p50: Nanos,
    /// The 90th percentile.
    pub p90: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
    /// The median of the service time; the other percentiles likewise.
    pub service_p50: Nanos,
    /// 90th percentile of the service time.
    pub service_p90: Nanos,
    /// 99th percentile of the service time.
    pub service_p99: Nanos,
    /// The longest service time.
    pub service_max: Nanos,
    /// 99th percentile of the generator's own delay.
    pub lateness_p99: Nanos,
    /// The generator's longest delay.
    pub lateness_max: Nanos,
    /// Mean number in flight.
    pub in_flight: f64,
    /// Connections open at its end.
    pub open: u64,
    /// The workers' CPU time in it.
    pub cpu: Nanos,
    /// By label number, at most [`LABELS_MAX`]; empty when there is one label.
    pub labels: Vec<LabelPoint>,
}

impl Point {
    /// The point of one second's tally.
    #[must_use]
    pub fn new(second: u64, tally: &Tally) -> Self {
        let response = tally.latency.response();
        let service = tally.latency.of(Metric::Service);
        let lateness = tally.latency.of(Metric::Lateness);
        let mut point = Self {
            second,
            seconds: 1,
            asked: None,
            counts: tally.counts,
            fired: tally.fired,
            heat: HEAT.counts(&response),
            p50: response.quantile(0.5),
            p90: response.quantile(0.9),
            p99: response.quantile(0.99),
            max: response.max(),
            service_p50: service.quantile(0.5),
            service_p90: service.quantile(0.9),
            service_p99: service.quantile(0.99),
            service_max: service.max(),
            lateness_p99: lateness.quantile(0.99),
            lateness_max: lateness.max(),
            in_flight: tally.in_flight_ns as f64 / SECOND as f64,
            labels: tally.labels().iter().take(LABELS_MAX).map(LabelPoint::new).collect(),
            ..Self::default()
        };
        for &(status, count) in tally.statuses() {
            point.add_status(status, count);
        }
        for &(fault, count) in tally.faults() {
            bump(&mut point.faults, fault.name(), count);
        }
        point
    }

    fn add_status(&mut self, status: u16, count: u64) {
        let known = self.statuses.iter().any(|entry| entry.0 == status);
        let room = known || self.statuses.len() < STATUSES_MAX;
        bump(&mut self.statuses, if room { status } else { 0 }, count);
    }

    /// This point and the one after it as one.
    fn join(&mut self, next: &Self) {
        let (mine, theirs) = (self.seconds as f64, next.seconds as f64);
        self.in_flight = (self.in_flight * mine + next.in_flight * theirs) / (mine + theirs);
        self.seconds += next.seconds;
        self.absorb(next);
        self.open = next.open;
    }

    /// Adds the counts and CPU time of `other`, and takes the worse of each percentile: what holds
    /// for two points whether they stand after or beside one another. Levels and the place in time
    /// stay, since for them it makes a difference.
    pub fn absorb(&mut self, other: &Self) {
        self.asked = self.asked.zip(other.asked).map(|(a, b)| a + b);
        self.counts.merge(&other.counts);
        self.fired += other.fired;
        for &(status, count) in &other.statuses {
            self.add_status(status, count);
        }
        for &(fault, count) in &other.faults {
            bump(&mut self.faults, fault, count);
        }
        for &(cell, count) in &other.heat {
            bump(&mut self.heat, cell, count);
        }
        self.p50 = self.p50.max(other.p50);
        self.p90 = self.p90.max(other.p90);
        self.p99 = self.p99.max(other.p99);
        self.max = self.max.max(other.max);
        self.service_p50 = self.service_p50.max(other.service_p50);
        self.service_p90 = self.service_p90.max(other.service_p90);
        self.service_p99 = self.service_p99.max(other.service_p99);
        self.service_max = self.service_max.max(other.service_max);
        self.lateness_p99 = self.lateness_p99.max(other.lateness_p99);
        self.lateness_max = self.lateness_max.max(other.lateness_max);
        self.cpu += other.cpu;
        if self.labels.len() < other.labels.len() {
            self.labels.resize(other.labels.len(), LabelPoint::default());
        }
        self.labels.iter_mut().zip(&other.labels).for_each(|(mine, theirs)| mine.absorb(theirs));
    }
}

/// Points in order of time, at most 1,800 of them: half an hour by the second, longer runs by
/// 2, 4, 8 ... seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    points: Vec<Point>,
    width: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { points: Vec::new(), width: 1 }
    }
}

impl Series {
    /// Adds the point of the next second.
    pub fn push(&mut self, point: Point) {
        match self.points.last_mut() {
            Some(last) if last.seconds < self.width => last.join(&point),
            _ => self.points.push(point),
        }
        if self.points.len() > POINTS_MAX {
            self.halve();
        }
    }

    /// Leaves out the seconds at the end, from `at` on, in which nothing was asked for, sent or
    /// ended: the wait until the last worker noticed.
    pub fn end(&mut self, at: Nanos) {
        let is_idle = |point: &Point| {
            point.second.saturating_mul(SECOND) >= at
                && point.asked.is_none_or(|asked| asked == 0.0)
                && point.fired == 0
                && point.counts.due() + point.counts.arrivals() == 0
        };
        while self.points.last().is_some_and(is_idle) {
            self.points.pop();
        }
    }

    fn halve(&mut self) {
        self.width *= 2;
        let halved = self.points.chunks(2).map(|pair| {
            let mut first = pair[0].clone();
            if let Some(second) = pair.get(1) {
                first.join(second);
            }
            first
        });
        self.points = halved.collect();
    }

    /// The same series in at most `max` points (at least one), for whoever shows it.
    #[must_use]
    pub fn at_most(&self, max: usize) -> Self {
        let mut series = self.clone();
        while series.points.len() > max.max(1) {
            series.halve();
        }
        series
    }

    /// Whether it can have been made by pushing points.
    pub(crate) fn is_sensible(&self) -> bool {
        self.width.is_power_of_two() && self.width <= WIDTH_MAX && self.points.len() <= POINTS_MAX
    }

    /// The points.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Fault;

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut series = Series::default();
        for second in 0..100_000 {
            let counts = Counts { sent: 3, ..Counts::default() };
            series.push(Point { second, seconds: 1, counts, max: second, ..Point::default() });
        }
        let points = series.points();
        assert!(points.len() <= POINTS_MAX);
        assert_eq!(points.iter().map(|p| p.counts.sent).sum::<u64>(), 300_000);
        assert_eq!(points.iter().map(|p| p.seconds).sum::<u64>(), 100_000);
        assert_eq!(points.last().map(|p| p.max), Some(99_999));
        assert!(points.windows(2).all(|w| w[0].second + w[0].seconds == w[1].second));
        let few = series.at_most(100);
        assert!(few.points().len() <= 100);
        assert_eq!(few.points().iter().map(|p| p.counts.sent).sum::<u64>(), 300_000);
    }

    #[test]
    fn only_idle_seconds_after_the_last_arrival_are_left_out() {
        let point = |second, sent| Point {
            second,
            seconds: 1,
            asked: Some(sent as f64),
            counts: Counts { sent, ..Counts::default() },
            ..Point::default()
        };
        let ended = |sent: &[u64], at| {
            let mut series = Series::default();
            (0..).zip(sent).for_each(|(second, sent)| series.push(point(second, *sent)));
            series.end(at);
            series.points().len()
        };
        assert_eq!(ended(&[5, 5, 0], 2 * SECOND), 2);
        assert_eq!(ended(&[5, 5, 0], 3 * SECOND), 3, "it was part of the plan");
        assert_eq!(ended(&[5, 5, 0, 1], 2 * SECOND), 4, "something ended after an idle second");
        assert_eq!(ended(&[], 0), 0);
    }

    #[test]
    fn labels_are_bounded_and_add_up() {
        let point = |second: u64| {
            let mut tally = Tally::new(LABELS_MAX + 1);
            for label in 0..=LABELS_MAX as u16 {
                let into = tally.label_mut(label).unwrap();
                into.counts = Counts { sent: 3, failed: 1, unfinished: 1, ..Counts::default() };
                into.response.record((second + 1) * 1_000);
            }
            Point::new(second, &tally)
        };
        let mut series = Series::default();
        (0..4).for_each(|second| series.push(point(second)));
        let joined = series.at_most(1);
        let labels = &joined.points()[0].labels;
        assert_eq!(labels.len(), LABELS_MAX);
        let LabelPoint { sent, failed, p50, p99 } = labels[LABELS_MAX - 1];
        assert_eq!((sent, failed), (12, 8));
        assert_eq!((p50, p99), (4_000, 4_000));
    }

    #[test]
    fn kinds_are_bounded_and_add_up() {
        let mut series = Series::default();
        for second in 0..5_000 {
            let mut tally = Tally::default();
            tally.add_status(100 + (second % 900) as u16, 2);
            tally.add_fault(Fault::Tls("one of many reasons"), 1);
            tally.add_fault(Fault::Reset, 1);
            tally.latency.of_mut(Metric::OkResponse).record((second + 1) * 1_000);
            series.push(Point::new(second, &tally));
        }
        let sum = |of: fn(&Point) -> u64| series.points().iter().map(of).sum::<u64>();
        assert_eq!(sum(|p| p.statuses.iter().map(|s| s.1).sum()), 10_000);
        assert_eq!(sum(|p| p.faults.iter().map(|s| s.1).sum()), 10_000);
        assert_eq!(sum(|p| p.heat.iter().map(|s| s.1).sum()), 5_000);
        // The one over the bound is for all others.
        let joined = series.at_most(1);
        assert_eq!(joined.points()[0].statuses.len(), STATUSES_MAX + 1);
        assert_eq!(joined.points()[0].faults.len(), 2);
    }
}
