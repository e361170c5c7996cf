//! The lab's thread pool against mathematics: S is the service time, 200 requests are served at
//! once.

use std::time::Duration;

use gake_lab::{LabConfig, Stats};

use crate::support::*;

const THREADS: usize = 200;

fn service_ms() -> u64 {
    if full() { 5_000 } else { 500 }
}

struct Flood {
    json: Json,
    stats: Stats,
    /// When each request with a response ended, in service times since the first was due.
    ends: Vec<f64>,
}

/// Users who start at once, with one request each.
fn flood(users: usize, timeout: Duration) -> Flood {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log.csv");
    let service = format!("const:{}ms", service_ms()).parse().ok();
    let lab = lab_with(LabConfig { threads: Some(THREADS), service, ..LabConfig::default() });
    let url = url(&lab, "/fast");
    let (users, timeout) = (users.to_string(), format!("{}ms", timeout.as_millis()));
    let flags = ["-n", &users, "-c", &users, "--timeout", &timeout, "--log", log.to_str().unwrap()];
    let json = run(&[&[url.as_str()], &flags[..]].concat());
    let text = std::fs::read_to_string(&log).unwrap();
    let row = |line: &str| -> (u64, u64, bool) {
        let fields: Vec<_> = line.split(',').collect();
        (fields[1].parse().unwrap(), fields[5].parse().unwrap(), fields[12] == "200")
    };
    let rows: Vec<_> = text.lines().skip(1).map(row).collect();
    let first = rows.iter().map(|row| row.0).min().unwrap();
    let since = |done: u64| (done - first) as f64 / (service_ms() * 1_000_000) as f64;
    let mut ends: Vec<_> = rows.iter().filter(|row| row.2).map(|row| since(row.1)).collect();
    ends.sort_by(f64::total_cmp);
    Flood { json, stats: lab.shutdown(), ends }
}

/// No thread is free before S is over, so no more than 200 n can have ended before (n + 1) S.
fn check_rounds(ends: &[f64]) {
    for (i, end) in ends.iter().enumerate() {
        let round = (i / THREADS + 1) as f64;
        assert!(*end >= round, "answer {i} after {end} service times");
    }
}

#[test]
fn of_300_at_once_200_take_one_service_time_and_100_take_two() {
    let flood = flood(300, Duration::from_secs(60));
    check_rounds(&flood.ends);
    assert_eq!(flood.json.count("requests.ok"), 300);
    let first_round = flood.ends.iter().filter(|end| **end < 2.0).count();
    assert_eq!(first_round, 200, "{:?}", flood.ends);
    assert!(flood.ends[299] < 3.0, "{}", flood.ends[299]);
    assert!(flood.json.count("latency_ns.response.p50") < 2 * service_ms() * 1_000_000);
}

#[test]
fn a_thousand_at_once_finish_in_five_service_times() {
    let flood = flood(1_000, Duration::from_secs(60));
    check_rounds(&flood.ends);
    assert_eq!((flood.json.count("requests.ok"), flood.stats.requests), (1_000, 1_000));
    // One more for what a busy machine adds to each round.
    assert!(flood.ends[999] < 6.0, "{}", flood.ends[999]);
}

#[test]
fn of_3000_with_a_time_out_of_12_service_times_those_due_later_are_lost() {
    let flood = flood(3_000, Duration::from_millis(12 * service_ms()));
    check_rounds(&flood.ends);
    let (ok, lost) = (flood.json.count("requests.ok"), flood.json.count("faults.timeout"));
    assert_eq!(ok + lost, 3_000, "{}", flood.json.0);
    // The last round ends with the time-out, give or take the time it takes to start 3,000 users.
    assert!((1_800..=2_400).contains(&ok), "{ok}");
    // A time-out counts as a wait: it cannot improve a percentile.
    assert!(flood.json.count("latency_ns.response.max") >= 12 * service_ms() * 1_000_000);
    assert_eq!(flood.stats.requests, 3_000);
}
