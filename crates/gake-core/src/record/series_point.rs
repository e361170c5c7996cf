//! A point of a series: the figures of one interval.

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::latency::LatencyMetric;
use super::octaves::Octaves;
use super::tally::{LabelTally, Tally, bump};
use crate::clock::{Nanos, SECOND};

/// Maximum of a decoded number; sums do not overflow.
const READ_MAX: u64 = 1 << 48;

/// Distinct status codes of a point; the rest is counted as 0.
pub(super) const STATUSES_MAX: usize = 16;

/// Tenths of a second in a second.
pub(super) const TENTHS: u64 = 10;

/// The scale of [`SeriesPoint::heat`]: cells of 19 %.
pub const HEAT: Octaves = Octaves::new(2);

/// Maximum labels of a point: the first ones of the plan.
pub const LABELS_MAX: usize = 64;

/// The figures of one label in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelPoint {
    /// Requests that ended.
    pub sent: u64,
    /// Of those, the failed and the unfinished.
    pub failed: u64,
    /// The median response time; the worst of joined seconds.
    pub p50: Nanos,
    /// 99th percentile of the response time, likewise.
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

/// The figures of one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Its start in seconds since the epoch, or in tenths of a second.
    pub second: u64,
    /// Its length in seconds or tenths.
    pub seconds: u64,
    /// Arrivals due; `None` in a closed loop.
    pub asked: Option<f64>,
    /// Counts of the requests that ended in it.
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
    /// Median response time; the worst of joined seconds.
    pub p50: Nanos,
    /// 90th percentile of the response time, likewise.
    pub p90: Nanos,
    /// 99th percentile of the response time, likewise.
    pub p99: Nanos,
    /// Longest response time.
    pub max: Nanos,
    /// Median service time.
    pub service_p50: Nanos,
    /// 90th percentile of the service time.
    pub service_p90: Nanos,
    /// 99th percentile of the service time.
    pub service_p99: Nanos,
    /// Longest service time.
    pub service_max: Nanos,
    /// 99th percentile of the lateness.
    pub lateness_p99: Nanos,
    /// Longest lateness.
    pub lateness_max: Nanos,
    /// Mean number in flight.
    pub in_flight: f64,
    /// Connections open at its end.
    pub open: u64,
    /// CPU time of the workers.
    pub cpu: Nanos,
    /// By label number, at most [`LABELS_MAX`]; empty with one label.
    pub labels: Vec<LabelPoint>,
}

impl SeriesPoint {
    /// The point of one second's tally.
    #[must_use]
    pub fn new(second: u64, tally: &Tally) -> Self {
        let response = tally.latency.response();
        let service = tally.latency.of(LatencyMetric::Service);
        let lateness = tally.latency.of(LatencyMetric::Lateness);
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

    /// The point of some tenths of a second from `tenth` on.
    #[must_use]
    pub fn of_tenths(tenth: u64, tenths: u64, tally: &Tally) -> Self {
        let mut point = Self::new(tenth, tally);
        point.seconds = tenths.max(1);
        point.in_flight *= TENTHS as f64 / point.seconds as f64;
        point
    }

    /// Whether a decoded point is valid: lists sorted and bounded, numbers finite and small.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        let cells_max = HEAT.cell(Nanos::MAX);
        self.seconds > 0
            && self.in_flight.is_finite()
            && self.asked.is_none_or(f64::is_finite)
            && self.heat.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && self.heat.last().is_none_or(|cell| cell.0 <= cells_max)
            && self.statuses.len() <= STATUSES_MAX + 1
            && self.labels.len() <= LABELS_MAX
            && self.numbers().all(|number| number <= READ_MAX)
    }

    /// All numbers besides [`SeriesPoint::counts`].
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let listed = self.statuses.iter().chain(&self.heat).map(|entry| entry.1);
        let faults = self.faults.iter().map(|entry| entry.1);
        let labels = self.labels.iter().flat_map(|label| [label.sent, label.failed]);
        [self.fired, self.cpu, self.open].into_iter().chain(listed).chain(faults).chain(labels)
    }

    fn add_status(&mut self, status: u16, count: u64) {
        let known = self.statuses.iter().any(|entry| entry.0 == status);
        let room = known || self.statuses.len() < STATUSES_MAX;
        bump(&mut self.statuses, if room { status } else { 0 }, count);
    }

    /// Joins the next point to this one.
    pub(super) fn join(&mut self, next: &Self) {
        let (mine, theirs) = (self.seconds as f64, next.seconds as f64);
        self.in_flight = (self.in_flight * mine + next.in_flight * theirs) / (mine + theirs);
        self.seconds += next.seconds;
        self.absorb(next);
        self.open = next.open;
    }

    /// Adds counts and CPU time of `other` and takes the worse of each percentile. Valid for
    /// consecutive and for simultaneous points: levels and times, for which these differ, are
    /// unchanged.
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
