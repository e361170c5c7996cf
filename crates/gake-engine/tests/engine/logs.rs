//! The log of outcomes.

use std::thread;
use std::time::Duration;

use gake_core::plan::Plan;
use gake_engine::log_channel;

use super::support::*;

#[test]
fn every_outcome_is_in_the_log_once() {
    for plan in [open(20_000.0, 500), Plan { requests: Some(10_000), ..closed(20) }] {
        let (done, outcomes) = logged(Plan { threads: 2, ..plan }, takes(MS / 10));
        assert_eq!(done.log_lost, 0);
        let mut numbers: Vec<_> = outcomes.iter().map(|outcome| outcome.arrival.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..10_000).collect::<Vec<_>>());
        for outcome in &outcomes {
            assert!(outcome.arrival.due <= outcome.fired, "{outcome:?}");
            assert!(outcome.fired <= outcome.exchange.done, "{outcome:?}");
        }
    }
}

#[test]
fn a_slow_log_loses_and_counts_outcomes_and_delays_nothing() {
    let (sender, receiver) = log_channel(0, 0);
    let reader = thread::spawn(move || {
        thread::sleep(Duration::from_millis(700));
        receiver.into_iter().map(|batch| batch.len() as u64).sum::<u64>()
    });
    let done = run_with(open(20_000.0, 500), takes(0), Some(sender), |_| {});
    let counts = done.run.tally.counts;
    assert_eq!(counts.ok, 10_000);
    assert!(done.log_lost >= 2_048, "{}", done.log_lost);
    assert_eq!(reader.join().unwrap() + done.log_lost, counts.ok);
}

#[test]
fn a_log_without_a_reader_does_not_fail_the_run() {
    let (sender, receiver) = log_channel(1, 0);
    drop(receiver);
    let done = run_with(open(1_000.0, 200), takes(0), Some(sender), |_| {});
    assert_eq!((done.run.tally.counts.ok, done.log_lost), (200, 200));
}
