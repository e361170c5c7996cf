//! Seconds joined from late and silent workers.

use gake_core::Load;
use gake_core::record::{ScenarioInterval, WorkerEnd};

use super::*;

fn of_two_workers() -> Collector {
    let load = Load::Closed { users: 2, think: std::time::Duration::ZERO };
    Collector::new(&Arc::new(Plan::new("", load)), 1, 2)
}

/// A worker's message after a second with `ok` requests.
fn interval(worker: usize, second: u64, ok: u64) -> Message {
    let mut tally = Tally::default();
    tally.counts = Counts { started: ok, sent: ok, ok, ..Counts::default() };
    let part = ScenarioInterval {
        scenario: 0,
        tally,
        warmup: Counts::default(),
        gauges: Gauges::default(),
        bodies: FailedBodies::default(),
    };
    let (tenth, scenarios) = (second * TENTHS, vec![part]);
    Message::Interval(Box::new(Interval { worker, tenth, scenarios, cpu: 0, run_delay: 0 }))
}

/// A worker's message after a second with open connections and no requests.
fn holding(worker: usize, second: u64, open: u64) -> Message {
    let mut message = interval(worker, second, 0);
    if let Message::Interval(interval) = &mut message {
        interval.scenarios[0].gauges = Gauges { open, peak: open };
    }
    message
}

#[test]
fn connections_of_a_late_worker_are_counted_meanwhile() {
    let mut collector = of_two_workers();
    let mut open = Vec::new();
    let ended = |worker| WorkerEnd { worker, scenarios: Vec::new(), log_lost: 0 };
    let messages = [
        holding(0, 1, 10),
        holding(1, 1, 5),
        holding(0, 2, 20),
        holding(0, 3, 30),
        // It did not wake in the second and third second.
        holding(1, 4, 7),
        holding(0, 4, 30),
        Message::Ended(ended(1)),
        holding(0, 5, 40),
        Message::Ended(ended(0)),
    ];
    for message in messages {
        collector.take(message, |_, _| {});
        while let Some(second) = collector.next_second() {
            open.push(second.gauges.open);
        }
    }
    assert_eq!(open, [15, 25, 35, 37, 40]);
    assert_eq!(collector.finish(0, RunEnd::Done, 1).peak_connections, 40);
}

/// Seconds that wait for a silent worker.
const WAIT: u64 = 64;

#[test]
fn seconds_do_not_wait_forever_and_late_intervals_are_counted() {
    let mut collector = of_two_workers();
    let mut seconds = Vec::new();
    let mut take = |collector: &mut Collector, message| {
        collector.take(message, |_, _| {});
        while let Some(second) = collector.next_second() {
            seconds.push((second.second, second.tally.counts.ok));
        }
        seconds.len() as u64
    };
    for second in 1..=100 {
        let over = take(&mut collector, interval(0, second, 1));
        assert_eq!(over, second.saturating_sub(WAIT), "after {second} seconds");
        assert!(collector.intervals.waiting() as u64 <= WAIT);
    }
    // The silent worker wakes: its first second counts with the next one to be joined.
    let over = take(&mut collector, interval(1, 1, 1_000));
    assert_eq!(over, 100 - WAIT);
    for second in 2..=100 {
        take(&mut collector, interval(1, second, 10));
    }
    for worker in 0..2 {
        let ended = WorkerEnd { worker, scenarios: Vec::new(), log_lost: 0 };
        take(&mut collector, Message::Ended(ended));
    }
    assert!(collector.is_over());
    assert_eq!(collector.intervals.waiting(), 0);
    let numbers: Vec<u64> = seconds.iter().map(|second| second.0).collect();
    assert_eq!(numbers, (1..=100).collect::<Vec<_>>(), "each second once, in order");
    assert_eq!(seconds[35].1, 1);
    // The 1,000 of its first second, and the 35 seconds joined since.
    assert_eq!(seconds[36].1, 1 + 1_000 + 36 * 10);
    assert_eq!(seconds[99].1, 1 + 10);
    let run = collector.finish(0, RunEnd::Done, 1);
    assert_eq!(run.tally.counts.ok, 100 + 1_000 + 99 * 10);
}
