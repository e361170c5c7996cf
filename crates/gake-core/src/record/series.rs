//! A series over the run's seconds whose memory does not grow with the run's length.

use super::tally::{Counts, Metric, Tally};
use crate::clock::Nanos;

/// Points kept at most; then neighbours are joined, and each stands for twice the time.
const POINTS_MAX: usize = 1_800;

/// What one piece of the run saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// Where it starts, in seconds since the epoch.
    pub second: u64,
    /// How many seconds it stands for.
    pub seconds: u64,
    /// Arrivals the plan asked for, when it is an open loop.
    pub asked: Option<f64>,
    /// What ended in it.
    pub counts: Counts,
    /// Response-time percentiles; of joined seconds, the worst.
    pub p50: Nanos,
    /// The 90th percentile.
    pub p90: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
    /// 99th percentile of the service time.
    pub service_p99: Nanos,
    /// 99th percentile of the generator's own delay.
    pub lateness_p99: Nanos,
    /// Mean number in flight.
    pub in_flight: f64,
    /// Connections open at its end.
    pub open: u64,
    /// The workers' CPU time in it.
    pub cpu: Nanos,
}

impl Point {
    /// The point of one second's tally.
    #[must_use]
    pub fn new(second: u64, tally: &Tally) -> Self {
        let response = tally.latency.response();
        Self {
            second,
            seconds: 1,
            asked: None,
            counts: tally.counts,
            p50: response.quantile(0.5),
            p90: response.quantile(0.9),
            p99: response.quantile(0.99),
            max: response.max(),
            service_p99: tally.latency.of(Metric::Service).quantile(0.99),
            lateness_p99: tally.latency.of(Metric::Lateness).quantile(0.99),
            in_flight: tally.in_flight_ns as f64 / crate::clock::SECOND as f64,
            open: 0,
            cpu: 0,
        }
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
        self.p50 = self.p50.max(other.p50);
        self.p90 = self.p90.max(other.p90);
        self.p99 = self.p99.max(other.p99);
        self.max = self.max.max(other.max);
        self.service_p99 = self.service_p99.max(other.service_p99);
        self.lateness_p99 = self.lateness_p99.max(other.lateness_p99);
        self.cpu += other.cpu;
    }
}

/// Points in order of time, at most 1,800 of them: half an hour by the second, longer runs by
/// 2, 4, 8 ... seconds.
#[derive(Debug, Clone, PartialEq)]
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

    /// The points.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
