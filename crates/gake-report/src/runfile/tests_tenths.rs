//! Tenths of a second in run files.

use gake_core::record::{SeriesPoint, Tally};

use super::tests::read_clean;
use super::*;
use crate::testing::{healthy, run, second, tallies};

/// The tenths of a second: all of it in the third.
fn tenths(at: u64, tally: &Tally) -> Vec<SeriesPoint> {
    let empty = Tally::new(tally.labels().len());
    let of = |n: u64| SeriesPoint::of_tenths(at * 10 + n, 1, if n == 2 { tally } else { &empty });
    (0..10).map(of).collect()
}

/// A run file of two seconds, whose tenths are as `change` leaves them.
fn file(change: impl Fn(u64, &mut Vec<SeriesPoint>)) -> Vec<u8> {
    let plan = healthy().plan;
    let tallies = tallies(2, plan.labels.len(), false);
    let whole = run(plan.clone(), &tallies);
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &plan, 1).unwrap();
    for (at, tally) in (0..).zip(&tallies) {
        let mut tenths = tenths(at, tally);
        change(at, &mut tenths);
        writer.second(&Second { tenths: &tenths, ..second(at, tally) }).unwrap();
    }
    writer.finish(&whole).unwrap();
    bytes
}

#[test]
fn tenths_come_back_as_they_were() {
    let read = read_clean(&file(|_, _| {}));
    let tallies = tallies(2, read.plan.labels.len(), false);
    let written: Vec<_> = (0..).zip(&tallies).flat_map(|(at, tally)| tenths(at, tally)).collect();
    assert_eq!(read.series.tenths(), written);
}

#[test]
fn a_file_without_all_tenths_is_shown_by_its_seconds() {
    let old = read_clean(&file(|_, tenths| tenths.clear()));
    let half = read_clean(&file(|at, tenths| tenths.truncate(if at == 0 { 10 } else { 0 })));
    for run in [old, half] {
        assert!(run.series.tenths().is_empty());
        assert_eq!(run.series.points().len(), 2);
    }
}

#[test]
fn tenths_that_contradict_their_second_are_left_out_and_told() {
    let wrong: [fn(u64, &mut Vec<SeriesPoint>); 5] = [
        |_, tenths| {
            tenths[2].counts.sent += 1;
            tenths[2].counts.ok += 1;
        },
        |_, tenths| {
            tenths.remove(2);
        },
        |_, tenths| tenths[9].seconds = 2,
        |_, tenths| tenths[2].heat.reverse(),
        |_, tenths| tenths[2].fired = u64::MAX,
    ];
    for change in wrong {
        let (run, warnings) = read(file(change).as_slice()).unwrap();
        assert!(run.series.tenths().is_empty());
        assert_eq!(run.series.points().len(), 2, "the seconds stay");
        assert!(warnings[0].text.contains("tenths of second 0 do not add up"), "{warnings:?}");
    }
}
