//! Intervals of workers, joined into tenths and seconds.

use std::sync::Arc;

use gake_core::clock::SECOND;
use gake_core::plan::Plan;
use gake_core::record::{
    Counts, Interval, Run, RunEnd, ScenarioEnd, ScenarioInterval, Tally, WorkerEnd,
};
use gake_core::work::Gauges;
use gake_engine::{Collector, Message};

use crate::support::open;

/// A worker's interval that ends in `tenth`, with `sent` requests.
fn interval(worker: usize, tenth: u64, sent: u64) -> Message {
    let counts = Counts { sent, ok: sent, started: sent, ..Counts::default() };
    let mut tally = Tally::default();
    (tally.counts, tally.fired) = (counts, sent);
    let scenario = ScenarioInterval {
        scenario: 0,
        tally,
        warmup: Counts::default(),
        gauges: Gauges { open: 1, peak: tenth % 7 },
        bodies: gake_core::record::FailedBodies::default(),
    };
    Message::Interval(Box::new(Interval {
        worker,
        tenth,
        scenarios: vec![scenario],
        cpu: 5,
        run_delay: 0,
    }))
}

fn ended(worker: usize, at: u64) -> Message {
    let end = ScenarioEnd {
        arrivals_end: at,
        last_fired: at,
        last_ended: at,
        done: at,
        exhausted: false,
    };
    Message::Ended(WorkerEnd { worker, scenarios: vec![(0, end)], log_lost: 0 })
}

/// The run of two workers, and its seconds: number, requests, tenths.
fn joined(plan: Plan, messages: Vec<Message>) -> (Run, Vec<(u64, u64, usize)>) {
    let mut collector = Collector::new(&Arc::new(plan), 1, 2);
    let mut seconds = Vec::new();
    for message in messages {
        collector.take(message, |_, tally| assert_eq!(tally, Tally::default()));
        while let Some(second) = collector.next_second() {
            seconds.push((second.second, second.tally.counts.sent, second.tenths.len()));
            collector.retire(second);
        }
    }
    assert!(collector.is_over());
    (collector.finish(0, RunEnd::Done, 1), seconds)
}

#[test]
fn tenths_add_up_although_a_worker_wakes_late() {
    let mut messages: Vec<_> =
        (1..=8).flat_map(|n| [interval(0, n, 5), interval(1, n, 5)]).collect();
    messages.extend((9..=20).map(|n| interval(0, n, 5)));
    // The second worker wakes after the end of the first second.
    messages.push(interval(1, 12, 20));
    messages.extend((13..=20).map(|n| interval(1, n, 5)));
    messages.extend([ended(0, 2 * SECOND), ended(1, 2 * SECOND)]);
    let (run, seconds) = joined(open(100.0, 2_000), messages);
    assert_eq!(seconds, [(1, 90, 10), (2, 110, 10)]);
    let tenths = run.series.tenths();
    assert_eq!(tenths.iter().map(|point| point.counts.sent).sum::<u64>(), 200);
    assert_eq!(tenths[11].counts.sent, 25, "late figures count when they arrive");
    let asked: f64 = tenths.iter().filter_map(|point| point.asked).sum();
    assert!((asked - 200.0).abs() < 1e-9, "{asked}");
    assert_eq!(run.peak_connections, 12, "of one tenth, not summed over several");
}

#[test]
fn a_late_second_is_not_counted_as_the_next() {
    let both = |n, sent| [interval(0, n, sent), interval(1, n, sent)];
    let mut messages: Vec<_> = (1..=9).flat_map(|n| both(n, 1)).collect();
    messages.extend(both(13, 4));
    messages.extend((14..=20).flat_map(|n| both(n, 1)));
    messages.extend([ended(0, 2 * SECOND), ended(1, 2 * SECOND)]);
    let (run, seconds) = joined(open(20.0, 2_000), messages);
    assert_eq!(seconds, [(1, 18, 9), (2, 22, 8)]);
    let late = &run.series.tenths()[9];
    assert_eq!(
        (late.second, late.seconds, late.counts.sent),
        (9, 4, 8),
        "one interval of four tenths"
    );
}

#[test]
fn a_longer_run_is_joined_by_the_second() {
    let mut messages: Vec<_> =
        (1..=3).flat_map(|n| [interval(0, n * 10, 50), interval(1, n * 10, 50)]).collect();
    messages.extend([ended(0, 3 * SECOND), ended(1, 3 * SECOND)]);
    let (run, seconds) = joined(open(100.0, 90_000), messages);
    assert_eq!(seconds, [(1, 100, 0), (2, 100, 0), (3, 100, 0)]);
    assert!(run.series.tenths().is_empty());
}
