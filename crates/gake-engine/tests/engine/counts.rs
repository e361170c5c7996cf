//! The number of arrivals is exact in every mode.

use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Plan, PlanLoad};
use gake_core::record::Fault;
use gake_core::schedule::{Process, Slice, TraceBuilder};

use super::support::*;

fn all_numbers(count: u64) -> Vec<u64> {
    (0..count).collect()
}

#[test]
fn an_open_loop_sends_rate_times_duration_with_any_number_of_threads() {
    for threads in 1..=3 {
        let done = run(Plan { threads, ..open(500.0, 400) }, takes(MS));
        assert_eq!(done.run.tally.counts.ok, 200, "{threads} threads");
        assert_eq!(done.seen.numbers(), all_numbers(200));
        let shares = done.seen.shares(threads);
        let expected: Vec<_> = (0..threads).map(|w| (200 - w).div_ceil(threads)).collect();
        assert_eq!(shares, expected, "exact slices");
    }
}

#[test]
fn a_fractional_rate_is_exact() {
    let done = run(open(33.3, 1_000), takes(0));
    // Arrival n is due at n / 33.3; the last one before 1 s is number 33.
    assert_eq!(done.run.tally.counts.ok, 34);
}

#[test]
fn poisson_arrivals_are_those_of_the_schedule() {
    for threads in [1, 2] {
        let mut plan = Plan { threads, ..open(400.0, 500) };
        if let PlanLoad::One(Load::Open { process, .. }) = &mut plan.load {
            *process = Process::Poisson;
        }
        let expected = plan.schedule(SEED).unwrap().arrivals(Slice::WHOLE).count() as u64;
        assert!((100..300).contains(&expected), "seven standard deviations: {expected}");
        let done = run(plan, takes(MS));
        assert_eq!(done.run.tally.counts.sent, expected);
        assert_eq!(done.seen.numbers(), all_numbers(expected));
    }
}

#[test]
fn stages_send_the_area_under_their_curve() {
    let plan = staged(&[(100.0, 100.0, 200), (100.0, 500.0, 400), (0.0, 0.0, 100)]);
    let done = run(Plan { threads: 2, ..plan }, takes(MS));
    assert_eq!(done.run.tally.counts.ok, 20 + 120);
    assert!(done.run.elapsed >= 700 * MS, "the last stage is waited for: {}", done.run.elapsed);
}

#[test]
fn a_replay_fires_every_recorded_arrival_when_it_is_due() {
    for threads in 1..=2 {
        let mut builder = TraceBuilder::new(2.0);
        // A burst, a pause, and a grid.
        (0..50).for_each(|_| builder.push(0).unwrap());
        (0..100).for_each(|n| builder.push((400 + 4 * n) * MS).unwrap());
        let trace = builder.finish(None);
        let expected = trace.clone();
        let done = run(
            Plan {
                load: Load::Replay { speed: 1.0, trace: Some(trace) }.into(),
                threads,
                ..closed(1_000)
            },
            takes(0),
        );
        assert_eq!(done.run.tally.counts.ok, 150);
        assert_eq!(done.seen.numbers(), all_numbers(150));
        assert!(done.run.elapsed >= expected.due(149).unwrap(), "{}", done.run.elapsed);
        let asked: f64 = done.run.series.points().iter().filter_map(|point| point.asked).sum();
        assert_eq!(asked, 150.0);
    }
}

#[test]
fn a_count_ends_an_open_loop() {
    for threads in 1..=3 {
        let mut plan = Plan { requests: Some(137), threads, ..open(1_000.0, 0) };
        if let PlanLoad::One(Load::Open { stages, .. }) = &mut plan.load {
            stages[0].duration = Duration::MAX;
        }
        let done = run(plan, takes(MS));
        assert_eq!(done.run.tally.counts.ok, 137, "{threads} threads");
        assert_eq!(done.seen.numbers(), all_numbers(137));
    }
}

#[test]
fn a_count_or_a_duration_ends_the_run() {
    for (requests, sent) in [(1_000, 30), (10, 10)] {
        let done = run(Plan { requests: Some(requests), ..open(100.0, 300) }, takes(0));
        assert_eq!(done.run.tally.counts.sent, sent, "-n {requests}");
    }
}

#[test]
fn a_closed_loop_splits_its_count_over_the_workers() {
    let plan = Plan { requests: Some(1_001), threads: 3, ..closed(7) };
    let done = run(plan, takes(MS / 2));
    assert_eq!(done.run.tally.counts.ok, 1_001);
    assert_eq!(done.seen.numbers(), all_numbers(1_001));
    // 143 for each user, of whom the first worker has three.
    assert_eq!(done.seen.shares(3), [429, 286, 286]);
    assert!(done.seen.peak() <= 7);
}

#[test]
fn more_users_than_requests_send_no_more_than_asked() {
    let done = run(Plan { requests: Some(5), threads: 2, ..closed(50) }, takes(MS));
    assert_eq!(done.run.tally.counts.ok, 5);
}

#[test]
fn think_time_bounds_what_a_user_sends() {
    let load = Load::Closed { users: 4, think: Duration::from_millis(50) };
    let duration = Some(Duration::from_millis(400));
    let done = run(Plan { duration, threads: 2, ..Plan::new("a test", load) }, takes(10 * MS));
    let sent = done.run.tally.counts.sent;
    // A round takes 60 ms at least, so a user starts 7 in 400 ms at most.
    assert!((4..=4 * 7).contains(&sent), "{sent}");
    assert!(done.run.elapsed < 5_000 * MS, "the last think time is not waited for");
}

#[test]
fn the_warm_up_is_counted_separately() {
    let warmup = Duration::from_millis(200);
    let done = run(Plan { warmup, threads: 2, ..open(500.0, 400) }, takes(MS));
    assert_eq!(done.run.warmup.sent, 100);
    assert_eq!(done.run.tally.counts.sent, 200);
    assert_eq!(done.run.measured, 400 * MS);
}

#[test]
fn late_responses_of_the_warm_up_are_left_out() {
    let warmup = Duration::from_millis(200);
    let behaviour = std::sync::Arc::new(|arrival: gake_core::work::Arrival, now| {
        Fate::At(if arrival.number < 20 { 400 * MS } else { now })
    });
    let done = run(Plan { warmup, ..open(100.0, 500) }, behaviour);
    assert_eq!((done.run.warmup.ok, done.run.tally.counts.ok), (20, 50));
    assert_eq!(done.run.tally.latency.response().count(), 50);
}

#[test]
fn a_closed_loop_counts_its_requests_after_the_warm_up() {
    let warmup = Duration::from_millis(100);
    let plan = Plan { warmup, requests: Some(60), threads: 2, ..closed(4) };
    let done = run(plan, takes(2 * MS));
    assert_eq!(done.run.tally.counts.ok, 60);
    assert!(done.run.warmup.ok >= 4, "{}", done.run.warmup.ok);
}

#[test]
fn a_fault_is_a_failure_and_does_not_improve_the_percentiles() {
    let behaviour = std::sync::Arc::new(|arrival: gake_core::work::Arrival, now| {
        if arrival.number.is_multiple_of(2) {
            Fate::Fault(Fault::Reset)
        } else {
            Fate::At(now + 5 * MS)
        }
    });
    let done = run(Plan { threads: 2, ..open(400.0, 250) }, behaviour);
    let counts = done.run.tally.counts;
    assert_eq!((counts.ok, counts.failed), (50, 50));
    assert_eq!(done.run.tally.faults(), [(Fault::Reset, 50)]);
    assert_eq!(done.run.tally.latency.response().count(), 50);
    assert!(done.run.tally.latency.response().min() >= 5 * MS);
}

#[test]
fn immediate_failures_do_not_starve_other_users() {
    let behaviour = std::sync::Arc::new(|_, _| Fate::Fault(Fault::ConnectRefused));
    let duration = Some(Duration::from_millis(200));
    let done = run(Plan { duration, ..closed(3) }, behaviour);
    assert!(done.run.tally.counts.failed > 3);
    assert_eq!(done.seen.lanes.lock().unwrap().len(), 3);
}

#[test]
fn users_without_a_connection_back_off() {
    let behaviour = std::sync::Arc::new(|_, _| Fate::Fault(Fault::ConnectRefused));
    let duration = Some(Duration::from_millis(500));
    let done = run(Plan { duration, threads: 2, ..closed(2) }, behaviour.clone());
    // Starts lie 1, 2, 4 ... 64, 100, 100 ms apart at least: 11 in 500 ms.
    let failed = done.run.tally.counts.failed;
    assert!((2..=22).contains(&failed), "{failed}");
    // Arrivals of an open loop keep their schedule.
    let done = run(open(1_000.0, 100), behaviour);
    assert_eq!(done.run.tally.counts.failed, 100);
}

#[test]
fn a_pace_bounds_what_a_user_starts() {
    let load = |users| Load::Paced { users, pace: Duration::from_millis(100) };
    let second = Some(Duration::from_secs(1));
    // Starts lie at k * 100 ms after the user's own first within the first 100 ms: 10 in a second.
    let plan = Plan { duration: second, threads: 2, ..Plan::new("a test", load(5)) };
    let sent = run(plan, takes(MS)).run.tally.counts.sent;
    assert!((25..=50).contains(&sent), "{sent}");
    // A missed start follows right after the response; otherwise these were 5.
    let plan = Plan { duration: second, ..Plan::new("a test", load(1)) };
    let sent = run(plan, takes(110 * MS)).run.tally.counts.sent;
    assert!((6..=10).contains(&sent), "{sent}");
}
