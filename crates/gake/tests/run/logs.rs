//! The per-request log: a row for every request, which adds up to the summary.

use std::fs;

use serde_json::Value;

use crate::support::*;

#[test]
fn a_csv_log_has_a_row_for_each_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.csv");
    let lab = lab();
    let url = url(&lab, "/error?rate=0.2&code=503");
    let json = run(&[&url, "-r", "500", "-d", "1s", "-t", "2", "--log", path.to_str().unwrap()]);
    let text = fs::read_to_string(&path).unwrap();
    let columns = text.lines().next().unwrap().split(',').count();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 500);
    assert!(rows.iter().all(|row| row.len() == columns));
    let mut numbers: Vec<u64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    let failed = rows.iter().filter(|row| row[12] == "503").count() as u64;
    assert_eq!(failed, json.count("status.503"));
    // The grid of arrivals is exact: 2 ms apart.
    let mut due: Vec<u64> = rows.iter().map(|row| row[1].parse().unwrap()).collect();
    due.sort_unstable();
    assert!(due.windows(2).all(|two| (1_999_990..=2_000_010).contains(&(two[1] - two[0]))));
    let total: u64 = rows.iter().map(|row| row[6].parse::<u64>().unwrap()).sum();
    let mean = total as f64 / 500.0;
    assert!((json.number("latency_ns.response.mean") / mean - 1.0).abs() < 0.001);
}

#[test]
fn a_json_log_has_an_object_for_each_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.json");
    let lab = lab();
    let url = url(&lab, "/reset");
    let flags = ["-n", "60", "-c", "4", "-o", "json", "--log", path.to_str().unwrap()];
    let ran = ran(&[&["run", &url], &flags[..]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let text = fs::read_to_string(&path).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 60);
    for row in &rows {
        assert_eq!((&row["fault"], &row["status"]), (&Value::from("reset"), &Value::Null));
        assert!(row["done_unix_ns"].as_u64() >= row["due_unix_ns"].as_u64(), "{row}");
    }
}

#[test]
fn unfinished_requests_are_in_the_log_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    let lab = lab();
    let url = url(&lab, "/hang");
    let flags = ["-r", "50", "-d", "200ms", "--drain", "100ms", "--log", path.to_str().unwrap()];
    ran(&[&["run", &url], &flags[..]].concat());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("\"unfinished\"")).count(), 10, "{text}");
}
