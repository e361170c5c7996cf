//! A stall shows in the percentiles, whatever the limit on connections.
//!
//! Of 10,000 arrivals in 10 s, the 1,000 due in a stall of 1 s wait for its end, between 1 s and 0.
//! So 1 % wait longer than 900 ms and 5 % longer than 500 ms. A generator that measures from the
//! write sees only one slow response for each connection (coordinated omission).

use std::sync::Arc;
use std::time::Duration;

use gake_core::plan::Plan;

use super::support::*;

/// Late wake-ups on a busy machine only add: retry an upper bound after ever longer pauses.
const TRIES: u32 = 6;

fn stalled(connections: usize, scale: u64) -> CompletedRun {
    let (from, to) = (300 * MS * scale, 500 * MS * scale);
    let behaviour =
        Arc::new(move |_, now| Fate::At(if (from..to).contains(&now) { to } else { now }));
    run(Plan { max_in_flight: connections, ..open(1_000.0, 2_000 * scale) }, behaviour)
}

/// Checks both percentiles of a stall of `200 ms * scale` in `2 s * scale` at 1,000/s.
fn check(connections: usize, scale: u64) {
    let (p99, p95) = (180.0 * scale as f64, 100.0 * scale as f64);
    for tries in 1..=TRIES {
        let done = stalled(connections, scale);
        assert_eq!(done.run.tally.counts.ok, 2_000 * scale);
        assert!(done.seen.peak() <= connections as u64);
        let seen = (done.response_ms(0.99), done.response_ms(0.95));
        assert!(seen.0 >= p99 * 0.98 && seen.1 >= p95 * 0.96, "too good to be true: {seen:?}");
        if seen.0 <= p99 * 1.02 && seen.1 <= p95 * 1.04 {
            return;
        }
        assert!(tries < TRIES, "p99 and p95 in ms, {connections} connections: {seen:?}");
        std::thread::sleep(Duration::from_secs(2) * tries);
    }
}

#[test]
fn a_short_stall_is_measured_with_5_connections() {
    check(5, 1);
}

#[test]
fn a_short_stall_is_measured_with_50_connections() {
    check(50, 1);
}

#[test]
fn a_short_stall_is_measured_with_1000_connections() {
    check(1_000, 1);
}

#[test]
fn a_long_stall_is_measured_with_5_connections() {
    check(5, 5);
}

#[test]
fn a_long_stall_is_measured_with_50_connections() {
    check(50, 5);
}

#[test]
fn a_long_stall_is_measured_with_1000_connections() {
    check(1_000, 5);
}

#[test]
fn the_first_arrivals_are_timed_like_all_others() {
    // Work that blocks its worker for 20 ms.
    let behaviour = || {
        Arc::new(|_, now| {
            std::thread::sleep(Duration::from_millis(20));
            Fate::At(now)
        })
    };
    for plan in [open(10.0, 100), Plan { requests: Some(2), threads: 2, ..closed(2) }] {
        let done = run(plan, behaviour());
        assert!(done.run.tally.latency.response().min() >= 20 * MS);
    }
}
