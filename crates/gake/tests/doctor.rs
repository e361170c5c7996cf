//! `gake doctor` as its users start it.

#![allow(clippy::unwrap_used)] // the helpers are tests too

use std::process::{Command, Output};

use serde_json::Value;

fn doctor(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gake")).arg("doctor").args(flags).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn the_json_has_every_part() {
    let output = doctor(&["--format", "json", "--seconds", "1", "--connections", "10k"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{:?}", output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "gake.doctor/1");
    for check in json["checks"].as_array().unwrap() {
        assert!(["good", "note", "bad"].contains(&check["status"].as_str().unwrap()), "{check}");
        assert!(!check["value"].as_str().unwrap().is_empty(), "{check}");
        assert_eq!(check["advice"].is_null(), check["status"] == "good", "{check}");
    }
    assert!(json["limits"]["cores"].as_u64().unwrap() >= 1);
    assert!(json["timer_lateness_ns"]["p99"].as_u64().unwrap() > 0);
    assert!(json["loopback"]["requests_per_s_thread"].as_f64().unwrap() > 100.0);
    assert!(json["loopback"]["latency_ns"]["p50"].as_u64().unwrap() > 0);
    assert_eq!(json["connections"]["asked"], 10_000);
    assert!(json["connections"]["shards"].as_u64().unwrap() >= 1);
}

#[test]
fn a_million_connections_are_thought_through() {
    let output = doctor(&["--connections", "1000000", "--no-load"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.contains("tables for 1,000,000 connections"), "{text}");
    assert!(text.contains("--interface"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours into a pipe: {text}");
}

#[test]
fn without_load_nothing_is_loaded() {
    let json: Value = serde_json::from_slice(&doctor(&["-o", "json", "--no-load"]).stdout).unwrap();
    assert!(json["loopback"].is_null() && json["connections"].is_null());
}

#[test]
fn bad_flags_are_usage_errors() {
    for flags in [
        &["--seconds", "0"][..],
        &["--seconds", "61"],
        &["--seconds", "2", "--no-load"],
        &["--connections", "0"],
        &["--format", "xml"],
        &["extra"],
    ] {
        let output = doctor(flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(output.stdout.is_empty() && output.stderr.starts_with(b"error: "), "{flags:?}");
    }
}
