//! Figures over time, in memory that does not grow with the length of the run.

use serde::{Deserialize, Serialize};

use super::series_point::{SeriesPoint, TENTHS};
use crate::clock::{Nanos, SECOND, TENTH};

/// Maximum number of points; beyond it neighbours are joined, and each covers twice the time.
const POINTS_MAX: usize = 1_800;

/// Maximum number of tenths of a second: a minute.
const TENTHS_MAX: u64 = 600;

/// Maximum seconds of a decoded point.
const WIDTH_MAX: u64 = 1 << 32;

/// At most 1,800 points in chronological order: half an hour by the second, longer runs by 2, 4, 8
/// ... seconds. Runs of up to a minute also have tenths of a second, if known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    points: Vec<SeriesPoint>,
    width: u64,
    #[serde(default, skip_serializing_if = "Tenths::is_empty")]
    tenths: Tenths,
}

/// The tenths of a second of a run of up to a minute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Tenths {
    points: Vec<SeriesPoint>,
    /// Whether some are missing, so that none are shown.
    lost: bool,
}

impl Tenths {
    fn is_empty(&self) -> bool {
        self.points.is_empty() && !self.lost
    }
}

impl Default for Series {
    fn default() -> Self {
        Self { points: Vec::new(), width: 1, tenths: Tenths::default() }
    }
}

impl Series {
    /// Adds the point of the next second.
    pub fn push(&mut self, point: SeriesPoint) {
        match self.points.last_mut() {
            Some(last) if last.seconds < self.width => last.join(&point),
            _ => self.points.push(point),
        }
        if self.points.len() > POINTS_MAX {
            self.halve();
        }
    }

    /// Adds the point of the next tenths of a second. After a gap or a minute, all tenths are
    /// dropped.
    pub fn push_tenth(&mut self, point: SeriesPoint) {
        let Tenths { points, lost } = &mut self.tenths;
        let next = points.last().map_or(0, |last| last.second.saturating_add(last.seconds));
        let end = point.second.saturating_add(point.seconds);
        *lost |= point.second != next || end > TENTHS_MAX;
        if *lost {
            points.clear();
        } else {
            points.push(point);
        }
    }

    /// Drops the tenths, because some are unknown.
    pub fn forget_tenths(&mut self) {
        self.tenths = Tenths::default();
    }

    /// The tenths of a second; empty if only seconds are known.
    #[must_use]
    pub fn tenths(&self) -> &[SeriesPoint] {
        &self.tenths.points
    }

    /// The series at its finest resolution in at most `max` points, and the unit of
    /// [`SeriesPoint::second`]: 10 for tenths, else 1.
    #[must_use]
    pub fn finest(&self, max: usize) -> (Self, u64) {
        if self.tenths.points.is_empty() {
            return (self.at_most(max), 1);
        }
        let points = self.tenths.points.clone();
        (Self { points, ..Self::default() }.at_most(max), TENTHS)
    }

    /// Removes idle seconds at the end, from `at` on: the wait until the last worker noticed the
    /// end.
    pub fn end(&mut self, at: Nanos) {
        let is_idle = |point: &SeriesPoint, unit: Nanos| {
            point.second.saturating_mul(unit) >= at
                && point.asked.is_none_or(|asked| asked == 0.0)
                && point.fired == 0
                && point.counts.due() + point.counts.arrivals() == 0
        };
        while self.points.last().is_some_and(|last| is_idle(last, SECOND)) {
            self.points.pop();
        }
        while self.tenths.points.last().is_some_and(|last| is_idle(last, TENTH)) {
            self.tenths.points.pop();
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

    /// The same series in at most `max` points (at least one), for display.
    #[must_use]
    pub fn at_most(&self, max: usize) -> Self {
        let (points, width) = (self.points.clone(), self.width);
        let mut series = Self { points, width, tenths: Tenths::default() };
        while series.points.len() > max.max(1) {
            series.halve();
        }
        series
    }

    /// Whether a decoded series is within the limits.
    pub(crate) fn is_plausible(&self) -> bool {
        self.width.is_power_of_two()
            && self.width <= WIDTH_MAX
            && self.points.len() <= POINTS_MAX
            && self.tenths.points.len() as u64 <= TENTHS_MAX
    }

    /// The points, in chronological order.
    #[must_use]
    pub fn points(&self) -> &[SeriesPoint] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::series_point::{LABELS_MAX, STATUSES_MAX};
    use crate::record::{Counts, Fault, LabelPoint, LatencyMetric, Tally};

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut series = Series::default();
        for second in 0..100_000 {
            let counts = Counts { sent: 3, ..Counts::default() };
            series.push(SeriesPoint {
                second,
                seconds: 1,
                counts,
                max: second,
                ..SeriesPoint::default()
            });
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
    fn only_idle_seconds_after_the_last_arrival_are_removed() {
        let point = |second, sent| SeriesPoint {
            second,
            seconds: 1,
            asked: Some(sent as f64),
            counts: Counts { sent, ..Counts::default() },
            ..SeriesPoint::default()
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
            SeriesPoint::new(second, &tally)
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
            tally.latency.of_mut(LatencyMetric::OkResponse).record((second + 1) * 1_000);
            series.push(SeriesPoint::new(second, &tally));
        }
        let sum = |of: fn(&SeriesPoint) -> u64| series.points().iter().map(of).sum::<u64>();
        assert_eq!(sum(|p| p.statuses.iter().map(|s| s.1).sum()), 10_000);
        assert_eq!(sum(|p| p.faults.iter().map(|s| s.1).sum()), 10_000);
        assert_eq!(sum(|p| p.heat.iter().map(|s| s.1).sum()), 5_000);
        // The one beyond the limit counts all others.
        let joined = series.at_most(1);
        assert_eq!(joined.points()[0].statuses.len(), STATUSES_MAX + 1);
        assert_eq!(joined.points()[0].faults.len(), 2);
    }

    fn tenth(second: u64, sent: u64) -> SeriesPoint {
        let mut tally = Tally::default();
        tally.counts = Counts { sent, ok: sent, ..Counts::default() };
        tally.fired = sent;
        tally.in_flight_ns = u128::from(TENTH) * 3;
        SeriesPoint::of_tenths(second, 1, &tally)
    }

    #[test]
    fn a_short_run_is_shown_by_its_tenths() {
        let mut series = Series::default();
        (0..20).for_each(|n| series.push_tenth(tenth(n, n)));
        (0..2).for_each(|n| series.push(SeriesPoint::new(n, &Tally::default())));
        let (fine, per_second) = series.finest(900);
        assert_eq!((fine.points().len(), per_second), (20, 10));
        assert_eq!(fine.points()[7].in_flight, 3.0, "a mean over the tenth, not the second");
        let (fewer, _) = series.finest(10);
        assert_eq!(fewer.points().iter().map(|point| point.fired).sum::<u64>(), 190);
        assert_eq!(fewer.points().iter().map(|point| point.seconds).sum::<u64>(), 20);
    }

    #[test]
    fn tenths_are_dropped_after_a_gap_or_a_minute() {
        let mut gap = Series::default();
        [0, 1, 3].into_iter().for_each(|n| gap.push_tenth(tenth(n, 1)));
        gap.push_tenth(tenth(4, 1));
        assert!(gap.tenths().is_empty());
        let mut minute = Series::default();
        (0..TENTHS_MAX).for_each(|n| minute.push_tenth(tenth(n, 1)));
        assert_eq!(minute.tenths().len(), 600);
        minute.push_tenth(tenth(TENTHS_MAX, 1));
        assert!(minute.tenths().is_empty());
    }
}
