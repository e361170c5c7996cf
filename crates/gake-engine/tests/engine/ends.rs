//! The end of a run: drain and stop requests.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gake_core::Load;
use gake_core::plan::Plan;
use gake_core::record::ExchangeEnd;
use gake_core::work::Arrival;
use gake_engine::Stop;

use super::support::*;

/// Maximum reaction time on a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// Far longer than any test.
const LONG: Duration = Duration::from_secs(600);

#[test]
fn unfinished_requests_count_with_the_time_they_waited() {
    for threads in [1, 2] {
        let drain = Duration::from_millis(300);
        let begun = Instant::now();
        let done = run(Plan { drain, threads, ..open(100.0, 200) }, never());
        assert!(begun.elapsed() < Duration::from_millis(500) + SOON);
        assert_eq!(done.run.tally.counts.unfinished, 20);
        let response = done.run.tally.latency.response();
        assert_eq!(response.count(), 20, "censored, not lost");
        // The last one is due at 190 ms and given up at 500 ms, the first at 0.
        assert!(response.min() >= 305 * MS, "{}", response.min());
        assert!(response.max() >= 495 * MS, "{}", response.max());
    }
}

#[test]
fn a_closed_loop_drains_too() {
    let (drain, duration) = (Duration::from_millis(200), Some(Duration::from_millis(100)));
    let begun = Instant::now();
    let done = run(Plan { drain, duration, threads: 2, ..closed(6) }, never());
    assert!(begun.elapsed() < SOON);
    assert_eq!(done.run.tally.counts.unfinished, 6);
    assert!(done.run.tally.latency.response().min() >= 250 * MS);
}

#[test]
fn missing_responses_do_not_lower_the_completed_rate() {
    let (drain, duration) = (Duration::from_millis(1_500), Some(Duration::from_millis(200)));
    for threads in [1, 2] {
        // One user never gets a response.
        let behaviour = Arc::new(|arrival: Arrival, now| match arrival.number {
            1 => Fate::Never,
            _ => Fate::At(now + 30 * MS),
        });
        let plan = Plan { drain, duration, threads, ..closed(4) };
        let (done, outcomes) = logged(plan, behaviour);
        let (run, counts) = (&done.run, done.run.tally.counts);
        assert_eq!((counts.unfinished, counts.ok), (1, counts.sent - 1), "{counts:?}");
        assert_eq!(run.measured, 200 * MS);
        assert!(run.elapsed >= 1_700 * MS, "the drain is waited for: {}", run.elapsed);
        let completed =
            outcomes.iter().filter(|outcome| outcome.exchange.end != ExchangeEnd::Unfinished);
        let last = completed.map(|outcome| outcome.exchange.done).max();
        assert_eq!(run.completing, last.unwrap().max(200 * MS));
        // The unfinished request ended after all responses.
        assert!(run.completing < run.elapsed, "{} {}", run.completing, run.elapsed);
    }
}

#[test]
fn the_drain_is_over_when_nothing_is_in_flight() {
    let begun = Instant::now();
    let done = run(Plan { drain: LONG, ..open(100.0, 200) }, takes(300 * MS));
    assert!(begun.elapsed() < SOON);
    assert_eq!(done.run.tally.counts.ok, 20);
}

#[test]
fn without_a_drain_the_end_is_the_end() {
    let done = run(Plan { drain: Duration::ZERO, ..open(100.0, 200) }, never());
    assert_eq!(done.run.tally.counts.due(), 20);
    assert_eq!(done.run.tally.counts.ok, 0);
}

#[test]
fn arrivals_not_sent_within_the_drain_are_dropped() {
    let drain = Duration::from_millis(200);
    let done = run(Plan { drain, max_in_flight: 2, ..open(100.0, 200) }, never());
    let counts = done.run.tally.counts;
    assert_eq!((counts.sent, counts.unfinished, counts.dropped), (2, 2, 18));
    assert_eq!(done.run.tally.latency.response().count(), 20);
}

#[test]
fn a_drain_sends_nothing_new_and_waits_for_responses() {
    for plan in [open(200.0, 600_000), closed(5)] {
        let begun = Instant::now();
        let plan = Plan { drain: LONG, threads: 2, ..plan };
        let done = run_with(plan, takes(100 * MS), None, |stop| {
            sleep(Duration::from_millis(400));
            stop.stop(Stop::Drain);
        });
        assert!(begun.elapsed() < SOON);
        let counts = done.run.tally.counts;
        assert_eq!(counts.ok, counts.sent, "{counts:?}");
        assert!(counts.ok > 0);
        let asked = done.run.asked_rate;
        assert!(asked.is_none_or(|asked| (asked - 200.0).abs() < 1e-6), "{asked:?}");
    }
}

#[test]
fn an_immediate_stop_waits_for_nothing() {
    for plan in [open(200.0, 600_000), closed(5)] {
        let begun = Instant::now();
        let plan = Plan { drain: LONG, threads: 2, ..plan };
        let done = run_with(plan, never(), None, |stop| {
            sleep(Duration::from_millis(300));
            stop.stop(Stop::Drain);
            sleep(Duration::from_millis(100));
            stop.stop(Stop::Now);
        });
        assert!(begun.elapsed() < SOON);
        let counts = done.run.tally.counts;
        assert_eq!(counts.unfinished, counts.sent, "{counts:?}");
        assert!(counts.unfinished >= 5);
    }
}

#[test]
fn an_immediate_stop_needs_no_drain_first() {
    let done = run_with(Plan { drain: LONG, ..closed(3) }, never(), None, |stop| {
        sleep(Duration::from_millis(100));
        stop.stop(Stop::Now);
        stop.stop(Stop::Drain);
        assert_eq!(stop.asked(), Stop::Now, "a stronger stop is never taken back");
    });
    assert_eq!(done.run.tally.counts.unfinished, 3);
}

#[test]
fn a_stop_while_arrivals_wait_for_a_connection_counts_them_as_dropped() {
    let behaviour = Arc::new(|arrival: Arrival, now| {
        Fate::At(if arrival.number == 0 { now } else { now + 500 * MS })
    });
    let plan = Plan { max_in_flight: 1, drain: LONG, ..open(1_000.0, 600_000) };
    let done = run_with(plan, behaviour, None, |stop| {
        sleep(Duration::from_millis(300));
        stop.stop(Stop::Drain);
    });
    let counts = done.run.tally.counts;
    assert_eq!(counts.ok, counts.sent);
    assert!(counts.dropped >= 200, "due before the stop and never sent: {counts:?}");
    // The arrivals of the schedule up to the stop.
    let due = done.run.measured.div_ceil(MS);
    assert_eq!(counts.due(), due);
}

#[test]
fn thinking_users_do_not_delay_the_end() {
    let begun = Instant::now();
    let plan =
        Plan { load: Load::Closed { users: 5, think: LONG }.into(), drain: LONG, ..closed(5) };
    let done = run_with(plan, takes(MS), None, |stop| {
        sleep(Duration::from_millis(200));
        stop.stop(Stop::Drain);
    });
    assert!(begun.elapsed() < SOON);
    assert_eq!(done.run.tally.counts.ok, 5);
}

#[test]
fn users_not_yet_started_do_not_delay_the_end() {
    let begun = Instant::now();
    let plan = Plan { connect_rate: Some(0.01), requests: Some(10), ..closed(5) };
    let done = run_with(plan, takes(MS), None, |stop| {
        sleep(Duration::from_millis(200));
        stop.stop(Stop::Drain);
    });
    assert!(begun.elapsed() < SOON);
    assert!(done.run.tally.counts.ok <= 10);
}

/// Each arrival takes `after`; there are at most `count`.
fn at_most(count: u64, after: u64) -> Arc<Behaviour> {
    Arc::new(move |arrival, now| match arrival.number {
        number if number < count => Fate::At(now + after),
        _ => Fate::Nothing,
    })
}

#[test]
fn a_run_ends_when_its_source_is_exhausted() {
    let long = LONG.as_millis() as u64;
    for threads in [1, 2] {
        let begun = Instant::now();
        let done = run(Plan { threads, ..open(1000.0, long) }, at_most(50, MS));
        assert!(begun.elapsed() < SOON);
        let counts = done.run.tally.counts;
        assert_eq!((counts.ok, counts.due()), (50, 50), "threads {threads}");
        // The backlog of an exhausted source is not dropped.
        let one = Plan { max_in_flight: 1, ..open(1000.0, long) };
        let counts = run(one, at_most(5, 20 * MS)).run.tally.counts;
        assert_eq!((counts.ok, counts.due()), (5, 5));

        let begun = Instant::now();
        let plan = Plan { threads, duration: Some(LONG), ..closed(4) };
        let counts = run(plan, at_most(30, MS)).run.tally.counts;
        assert!(begun.elapsed() < SOON);
        assert_eq!((counts.ok, counts.due()), (30, 30), "threads {threads}");
    }
}
