//! The truth about a server that stops for 1 s in a run of 10 s.
//!
//! A tenth of the arrivals is due in the stop and waits for its end, from 1 s down to 0, evenly:
//! 1 % wait longer than 900 ms and 5 % longer than 500 ms, whatever the rate and the bound on
//! connections. After the stop both ends work off what has gathered, which is really waited for:
//! 20 ms or 100 ms at 1,000/s, with how much else the machine has to do. So a test run has 200/s,
//! and `GAKE_FULL=1` on a quiet machine 1,000/s.
//!
//! It is in an executable of its own, so that no other test runs beside it, and has one test.

#![allow(clippy::unwrap_used)] // the helpers are tests too

#[path = "common/mod.rs"]
mod support;

use support::*;

/// A busy machine wakes late, which can only add: an upper bound may be tried again.
const TRIES: usize = 5;

fn percentiles(rate: u64, http: &str, connections: &str) -> (f64, f64) {
    let peer = Peer::lab(&["--stall", "3s+1s"]);
    let url = format!("{}/fast", peer.url);
    let rate_flag = rate.to_string();
    let json = run(&[&url, "-r", &rate_flag, "-d", "10s", "--http", http, "-c", connections]);
    let end = peer.end();
    let due = rate * 10;
    assert_eq!((json.count("requests.ok"), json.count("requests.due")), (due, due));
    assert_eq!(number_after(&end, "requests"), due);
    assert!(json.count("connections.peak") <= connections.parse().unwrap());
    let response = json.at("latency_ns.response");
    let ms = |name: &str| response[name].as_f64().unwrap() / 1e6;
    (ms("p99"), ms("p95"))
}

#[test]
fn a_stall_is_measured_in_full_with_any_limit_on_connections() {
    let rate = if full() { 1_000 } else { 200 };
    let cells = [("1.1", "5"), ("1.1", "50"), ("1.1", "1000"), ("2", "1"), ("2", "50")];
    // Each takes 10 s: one of HTTP/2 is enough for every day.
    let count = if full() { cells.len() } else { cells.len() - 1 };
    // At 200/s they leave the cores idle and run beside each other; at 1,000/s in turn.
    let beside = if full() { 1 } else { count };
    for cells in cells[..count].chunks(beside) {
        std::thread::scope(|scope| {
            for &(http, connections) in cells {
                scope.spawn(move || is_told_in_full(rate, http, connections));
            }
        });
    }
}

fn is_told_in_full(rate: u64, http: &str, connections: &str) {
    for tries in 1..=TRIES {
        let (p99, p95) = percentiles(rate, http, connections);
        assert!(
            p99 >= 900.0 * 0.98 && p95 >= 500.0 * 0.96,
            "too good to be true with {connections} connections: p99 {p99} ms, p95 {p95} ms"
        );
        if p99 <= 900.0 * 1.02 && p95 <= 500.0 * 1.04 {
            return;
        }
        assert!(tries < TRIES, "{connections} connections: p99 {p99} ms, p95 {p95} ms");
    }
}
