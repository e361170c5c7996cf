//! Bounded by construction: connections, in flight, connects a second.

use std::sync::Arc;

use gake_core::plan::{Overflow, Plan};
use gake_core::record::LatencyMetric;
use gake_core::work::Arrival;

use super::support::*;

#[test]
fn overflow_is_dropped_if_configured() {
    for threads in [1, 2] {
        let overflow = Overflow::Drop;
        let plan = Plan { max_in_flight: 2, overflow, threads, ..open(1_000.0, 300) };
        let done = run(plan, takes(50 * MS));
        let counts = done.run.tally.counts;
        assert_eq!(counts.due(), 300);
        // Each of two lanes starts 6 in 300 ms at most, and one at least.
        assert!((2..=12).contains(&counts.sent), "{}", counts.sent);
        assert!(done.seen.peak() <= 2);
        let blocked = done.run.tally.latency.of(LatencyMetric::Blocked).count();
        assert_eq!(blocked, 0, "nothing is blocked");
        assert_eq!(
            done.run.tally.latency.response().count(),
            300,
            "a drop is no better than a wait"
        );
    }
}

#[test]
fn the_backlog_is_bounded() {
    // All 20 are due within 20 ms, and the first response comes after 200 ms.
    for (waiting, threads) in [(5, 1), (6, 2)] {
        let overflow = Overflow::Queue { waiting };
        let plan = Plan { max_in_flight: 2, threads, overflow, ..open(1_000.0, 20) };
        let whole = run(plan, takes(200 * MS));
        let counts = whole.run.tally.counts;
        let sent = 2 + waiting as u64;
        assert_eq!((counts.ok, counts.dropped), (sent, 20 - sent), "{counts:?}");
        let blocked = whole.run.tally.latency.of(LatencyMetric::Blocked);
        assert_eq!(blocked.count(), waiting as u64, "the backlog");
    }
}

#[test]
fn overflow_waits_and_the_wait_counts_in_response_time() {
    // 100 arrivals in 100 ms for two lanes that take 5 ms each: the last is due at 99 ms and
    // cannot be fired before 49 rounds, 245 ms, are over.
    let done = run(Plan { max_in_flight: 2, ..open(1_000.0, 100) }, takes(5 * MS));
    let tally = &done.run.tally;
    assert_eq!((tally.counts.ok, tally.counts.dropped), (100, 0));
    assert_eq!(done.seen.peak(), 2);
    let blocked = tally.latency.of(LatencyMetric::Blocked);
    assert!(blocked.max() >= 145 * MS, "{}", blocked.max());
    assert!(tally.latency.response().max() >= 150 * MS);
    // Arrival 2k is due at 2k ms and fired at 5k ms or later: the median wait is 75 ms.
    assert!(done.response_ms(0.5) >= 75.0, "{}", done.response_ms(0.5));
    let service = tally.latency.of(LatencyMetric::Service);
    assert!(service.quantile(0.5) < tally.latency.response().quantile(0.5));
    assert!(done.run.sending >= 245 * MS, "the rate sent is over the time it took");
}

#[test]
fn the_wait_for_a_connection_is_not_the_generators_lateness() {
    let done = run(Plan { max_in_flight: 1, ..open(200.0, 200) }, takes(20 * MS));
    // 40 arrivals of 20 ms on one lane: 800 ms, of which the last has waited 585 ms.
    let latency = &done.run.tally.latency;
    assert!(latency.of(LatencyMetric::Blocked).max() >= 580 * MS);
    assert!(latency.of(LatencyMetric::Lateness).quantile(0.5) < 100 * MS);
}

#[test]
fn no_more_lanes_are_made_than_the_bound() {
    for threads in 1..=3 {
        let plan = Plan { max_in_flight: 7, threads, ..open(2_000.0, 100) };
        let done = run(plan, takes(10 * MS));
        assert_eq!(done.run.tally.counts.ok, 200);
        assert_eq!(done.seen.lanes.lock().unwrap().len(), 7, "{threads} threads");
        assert!(done.seen.peak() <= 7);
    }
    let plan = Plan { max_in_flight: 3, ..open(2_000.0, 50) };
    assert_eq!(run(plan, takes(10 * MS)).seen.peak(), 3);
}

#[test]
fn any_idle_lane_takes_the_next_arrival() {
    let stuck = Arc::new(|arrival: Arrival, now| {
        Fate::At(if arrival.number == 0 { 1_000 * MS } else { now })
    });
    let (done, outcomes) = logged(Plan { max_in_flight: 2, ..open(100.0, 300) }, stuck);
    assert_eq!(done.run.tally.counts.ok, 30);
    assert_eq!(outcomes.last().unwrap().arrival.number, 0);
    let before = outcomes.iter().filter(|outcome| outcome.exchange.done < 1_000 * MS).count();
    assert_eq!(before, 29, "a stuck lane does not delay the other");
}

#[test]
fn lanes_are_used_again_before_new_ones_are_made() {
    let done = run(open(50.0, 1_000), takes(0));
    // On an idle machine one lane is enough; arrivals that are late together need one each.
    let lanes = done.seen.lanes.lock().unwrap().len();
    assert!(lanes < 30, "{lanes} lanes for 50 immediate responses");
}

#[test]
fn connections_open_at_their_rate_in_an_open_loop() {
    for threads in [1, 2] {
        let connect_rate = Some(100.0);
        let plan = Plan { connect_rate, max_in_flight: 40, threads, ..open(1_000.0, 200) };
        let done = run(plan, takes(50 * MS));
        assert_eq!(done.run.tally.counts.ok, 200);
        check_openings(&done, 100.0);
    }
}

#[test]
fn users_come_at_the_connect_rate_in_a_closed_loop() {
    let plan = Plan { connect_rate: Some(100.0), requests: Some(400), threads: 2, ..closed(20) };
    let (done, outcomes) = logged(plan, takes(10 * MS));
    assert_eq!(done.run.tally.counts.ok, 400);
    for outcome in &outcomes {
        // When request n is fired at t, at most 1 + 100 t users have come; each has fired at
        // most 1 + t / 10 ms.
        let t = outcome.fired as f64 / 1e9;
        let earlier = outcomes.iter().filter(|other| other.fired <= outcome.fired).count() as f64;
        assert!(earlier <= (1.0 + 100.0 * t) * (1.0 + 100.0 * t), "{earlier} at {t}");
    }
}

/// No lane fired before the connect rate allowed it.
fn check_openings(done: &CompletedRun, rate: f64) {
    let lanes = done.seen.lanes.lock().unwrap();
    assert!(lanes.len() > 1);
    for lane in lanes.iter() {
        let allowed = (lane.global as f64 / rate * 1e9) as u64;
        assert!(lane.first >= allowed, "lane {} at {}", lane.global, lane.first);
    }
}
