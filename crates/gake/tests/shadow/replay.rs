//! A long recording, sixty times as fast: every request leaves at its place in the schedule.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gake_shadow::traffic::Traffic;

use crate::backends::{asked, shop};
use crate::support::*;

const SPEED: u64 = 60;

/// Of one request after another, on average; no two distances in a row are equal.
const APART_NS: u64 = 50_000_000;

/// When the first one was recorded.
const BEGAN_UNIX_NS: u64 = 1_700_000_000_000_000_000;

/// When a request was recorded, after the first.
fn offset_ns(number: u64) -> u64 {
    number * APART_NS + number * 7_919 % 41 * 1_000_000
}

fn target(number: u64) -> String {
    format!("/items/{number}")
}

/// A recording as GoReplay writes it.
fn gor(requests: u64) -> String {
    let mut text = String::new();
    for number in 0..requests {
        let at = BEGAN_UNIX_NS + offset_ns(number);
        let head = format!("GET {} HTTP/1.1\r\nHost: shop\r\n\r\n", target(number));
        write!(text, "1 {number:024x} {at} 0\n{head}\n🐵🙈🙉\n").unwrap();
    }
    text
}

/// The requests' instants in a log, in their order: due, and fired.
fn instants(log: &Path) -> Vec<(u64, u64)> {
    let text = fs::read_to_string(log).unwrap();
    let mut rows: Vec<[u64; 3]> = text
        .lines()
        .skip(1)
        .map(|row| {
            let mut cells = row.split(',').map(|cell| cell.parse().unwrap());
            [0; 3].map(|_: u64| cells.next().unwrap())
        })
        .collect();
    rows.sort_unstable();
    rows.into_iter().map(|[_, due, fired]| (due, fired)).collect()
}

#[test]
fn a_long_recording_keeps_its_schedule_at_sixty_times_its_speed() {
    // An hour, or ten minutes of it.
    let requests = if full() { 72_000 } else { 12_000 };
    let folder = tempfile::tempdir().unwrap();
    let [foreign, recording, log] =
        ["traffic.gor", "traffic.gakerec", "log.csv"].map(|name| folder.path().join(name));
    fs::write(&foreign, gor(requests)).unwrap();
    let [foreign, path] = [&foreign, &recording].map(|path| path.to_str().unwrap());
    assert_eq!(ran(&["shadow", "convert", foreign, path]).code, Some(0));
    let began = Traffic::open(&recording).unwrap().started_unix_ns();
    assert_eq!(began, BEGAN_UNIX_NS, "when the first request came");

    let shop = shop("production", &[]);
    let speed = format!("{SPEED}x");
    let flags = ["--speed", &speed, "-c", "1", "--log", log.to_str().unwrap()];
    let json = run(&[&[path, "--target", &shop.url], &flags[..]].concat());
    for count in ["due", "sent", "ok"] {
        assert_eq!(json.count(&format!("requests.{count}")), requests, "{count}: {}", json.0);
    }
    // Over one connection they arrive in the order in which they left.
    let order: Vec<_> = (0..requests).map(|n| format!("GET {} [] \"\"", target(n))).collect();
    assert!(asked(shop) == order);

    let instants = instants(&log);
    let begun = instants[0].0;
    for (number, (due, fired)) in (0..).zip(&instants) {
        let place = offset_ns(number) / SPEED;
        // Arrivals are kept to the microsecond.
        assert!((due - begun).abs_diff(place) <= 1_000, "{number}: {} {place}", due - begun);
        assert!(fired >= due, "{number} left early");
    }
    assert!(json.number("elapsed_s") >= offset_ns(requests - 1) as f64 / SPEED as f64 / 1e9);
    let lateness = |quantile| json.number(&format!("latency_ns.lateness.{quantile}")) / 1e6;
    println!("late by {} ms in the middle, {} ms at p99", lateness("p50"), lateness("p99"));
}
