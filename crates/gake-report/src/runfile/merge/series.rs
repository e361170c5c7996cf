//! The seconds of several runs on one clock.

use std::collections::BTreeMap;

use gake_core::clock::SECOND;
use gake_core::record::{Run, Series, SeriesPoint};

use super::labels::of_point;

/// The points of all runs; those of the same time are one.
pub(super) fn series(runs: &[Run], started: u64, labels: &[String]) -> Series {
    let points = || runs.iter().flat_map(|run| run.series.points());
    let width = points().map(|point| point.seconds).max().unwrap_or(1).max(1);
    let mut all: BTreeMap<u64, SeriesPoint> = BTreeMap::new();
    for run in runs {
        let offset = (run.started_unix_ns - started) / SECOND;
        let mut own: BTreeMap<u64, SeriesPoint> = BTreeMap::new();
        for point in run.series.points() {
            let at = point.second.saturating_add(offset) / width * width;
            // A mean over a part of the width counts for that part.
            let in_flight = point.in_flight * point.seconds as f64 / width as f64;
            let labels = of_point(point, &run.plan, labels);
            let point =
                SeriesPoint { second: at, seconds: width, in_flight, labels, ..point.clone() };
            let open = point.open;
            own.entry(at).and_modify(|sum| join(sum, &point, open)).or_insert(point);
        }
        for (at, point) in own {
            let beside = all.get(&at).map_or(0, |sum| sum.open) + point.open;
            all.entry(at).and_modify(|sum| join(sum, &point, beside)).or_insert(point);
        }
    }
    let mut series = Series::default();
    all.into_values().for_each(|point| series.push(point));
    series
}

/// Adds a point of the same piece of time.
fn join(sum: &mut SeriesPoint, point: &SeriesPoint, open: u64) {
    sum.absorb(point);
    sum.in_flight += point.in_flight;
    sum.open = open;
}
