//! oha, beside what the real one printed.
//!
//! The real oha 1.16.0 takes minutes to build, so it is not run: its outputs are kept with the
//! tests of the report, made by the command lines below against the same lab.

use std::path::Path;

use serde_json::Value;

use crate::common::*;
use crate::layout::layout;

/// `-n 60 -c 5 -u ms --no-tui --stats-success-breakdown URL/fast`.
const TEXT: &str = include_str!("../../../gake-compat/tests/expected/oha-1.16.txt");
/// `-n 3 -c 2 --no-tui http://127.0.0.1:1/`.
const FAILED: &str = include_str!("../../../gake-compat/tests/expected/oha-1.16-failed.txt");
/// That of [`TEXT`], with `--output-format json`.
const JSON: &str = include_str!("../../../gake-compat/tests/expected/oha-1.16.json");

const NOBODY: &str = "http://127.0.0.1:1/";

fn ours(line: &str, url: &str) -> Ran {
    let ran = ran(&[vec!["as", "oha"], words(line), vec![url]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn json(line: &str, url: &str) -> Value {
    let ran = ours(&format!("--output-format json {line}"), url);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The layout, save for what depends on how fast the machine is: the unit of bytes a second, and
/// the cells before a mark of the histogram.
fn shape(text: &str) -> Vec<String> {
    let lines = layout(&text.replace("KiB", "B").replace("MiB", "B"));
    lines.iter().map(|line| line.trim_start().to_owned()).collect()
}

#[test]
fn the_lines_are_ohas() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let text = ours("-n 60 -c 5 -u ms --no-tui --stats-success-breakdown", &url).stdout;
    assert_eq!(shape(&text), shape(TEXT), "{text}");
    let text = ours("-n 3 -c 2 --no-tui", NOBODY).stdout;
    assert_eq!(shape(&text), shape(FAILED), "{text}");
    assert!(text.ends_with("  [3] Connection refused (os error 111)\n"), "{text}");
}

#[test]
fn http2_has_many_requests_on_a_connection() {
    let lab = lab();
    let json = json("--http2 -p 5 -c 2 -n 40 --no-tui", &url(&lab, "/fast"));
    assert_eq!(json["statusCodeDistribution"]["200"], 40, "{json}");
    let counted = lab.shutdown();
    assert_eq!(counted.requests, 40);
    assert!(counted.connections.opened <= 2, "{counted:?}");
}

/// The paths of all keys, save those that are figures.
fn keys(at: &str, value: &Value, paths: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        if key.parse::<f64>().is_err() {
            let path = format!("{at}.{key}");
            keys(&path, value, paths);
            paths.push(path);
        }
    }
}

#[test]
fn the_json_is_ohas() {
    let lab = lab();
    let line = "-n 60 -c 5 --stats-success-breakdown";
    let ours = json(line, &url(&lab, "/status/404"));
    let [mut own, mut real] = [Vec::new(), Vec::new()];
    keys("", &ours, &mut own);
    keys("", &serde_json::from_str(JSON).unwrap(), &mut real);
    assert_eq!(own, real);
    assert_eq!(ours["summary"]["successRate"], 1.0);
    assert_eq!(ours["statusCodeDistribution"]["404"], 60);
    let sum = |name: &str| {
        let rows = ours[name].as_object().unwrap().values();
        rows.map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(sum("responseTimeHistogram"), 60);
    assert_eq!(sum("firstByteHistogram"), 60);
    assert_eq!(sum("responseTimeHistogramSuccessful"), 0);
    assert_eq!(sum("responseTimeHistogramNotSuccessful"), 60);
    assert!(ours["rps"]["min"].as_f64().unwrap() > 0.0, "{ours}");
    assert_eq!(json("-n 3 -c 2", NOBODY)["summary"]["fastest"], Value::Null);
}

/// Rows of the CSV, as a script reads them.
fn rows(line: &str, url: &str) -> Vec<[f64; 7]> {
    let ran = ours(&format!("--output-format csv {line}"), url);
    let mut lines = ran.stdout.lines();
    let header = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status";
    assert_eq!(lines.next(), Some(header));
    let cells = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect::<Vec<_>>();
    lines.map(|line| cells(line).try_into().unwrap()).collect()
}

#[test]
fn the_csv_has_a_row_per_response() {
    let lab = lab();
    let rows = rows("-n 30 -c 3", &url(&lab, "/delay/20ms"));
    assert_eq!(rows.len(), 30);
    for [start, dns, dial, delay, duration, bytes, status] in rows {
        assert_eq!((dns, status), (0.0, 200.0));
        assert!(start >= 0.0 && bytes > 0.0 && dial <= delay);
        assert!(delay >= 0.0199 && duration >= delay, "{delay} {duration}");
    }
}

#[test]
fn the_rate_is_of_all_and_latency_can_count_from_due() {
    let lab = lab();
    let url = url(&lab, "/delay/50ms");
    // One connection serves 20 a second of the 100 that are due: the eighth is due after 70 ms
    // and ends after 400.
    let corrected = rows("-n 8 -c 1 -q 100 --latency-correction", &url);
    assert!(corrected.iter().any(|row| row[4] >= 0.33), "{corrected:?}");
    // From when they were sent they take turns: their sum is no longer than the run.
    let sent = rows("-n 8 -c 1 -q 100", &url);
    let end = sent.iter().map(|row| row[0] + row[4]).fold(0.0, f64::max);
    assert!(sent.iter().map(|row| row[4]).sum::<f64>() <= end + 1e-6, "{sent:?}");
}

#[test]
fn bursts_start_together() {
    let lab = lab();
    let mut rows = rows("-n 20 -c 10 --burst-delay 400ms --burst-rate 10", &url(&lab, "/fast"));
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert_eq!(rows.len(), 20);
    assert!(rows[10..].iter().all(|row| row[0] >= 0.4), "{rows:?}");
}

#[test]
fn the_deadline_aborts_what_is_in_flight() {
    let lab = lab();
    let ran = ours("-z 300ms -c 2", &url(&lab, "/delay/700ms"));
    assert!(ran.stdout.contains("\n  [2] aborted due to deadline\n"), "{ran:?}");
    assert!(ran.stdout.contains("Success rate:\tNaN%"), "{ran:?}");
    let waited = ours("-z 300ms -w -c 2", &url(&lab, "/delay/700ms"));
    assert!(waited.stdout.contains("\n  [200] 2 responses\n"), "{waited:?}");
    assert!(!waited.stdout.contains("Error distribution"), "{waited:?}");
}

#[test]
fn every_failure_has_its_cause() {
    let lab = lab();
    for (route, cause) in [
        ("/close", "connection closed before message completed"),
        ("/close?after=100", "error reading a body from connection"),
        ("/reset?after=100", "error reading a body from connection"),
        ("/hang", "timeout"),
    ] {
        let json = json("-n 4 -c 2 -t 1s", &url(&lab, route));
        assert_eq!(json["errorDistribution"][cause], 4, "{route}: {json}");
        assert_eq!(json["summary"]["successRate"], 0.0, "{route}");
    }
}

#[test]
fn bodies_are_sent() {
    let lab = lab();
    let url = url(&lab, "/echo");
    // The response echoes the whole request.
    let bytes = |body: &str| {
        let json = json(&format!("-n 6 -c 1 -m POST {body}"), &url);
        json["summary"]["totalData"].as_u64().unwrap()
    };
    let single = bytes("-d a");
    assert_eq!(bytes("-d hello"), single + 6 * 4);
    let lines = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("oha-{}", std::process::id()));
    std::fs::write(&lines, "a\nbcd\n").unwrap();
    // In turn, so each line is sent three times.
    assert_eq!(bytes(&format!("-Z {}", lines.display())), single + 3 * 2);
    let out = lines.with_extension("txt");
    let ran = ours(&format!("-n 6 -c 2 -o {}", out.display()), &url);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(ran.stdout.is_empty() && text.contains("[200] 6 responses"), "{ran:?} {text}");
    assert_eq!(ours("-n 6 -c 2 --output-format quiet", &url).stdout, "");
    std::fs::remove_file(lines).unwrap();
    std::fs::remove_file(out).unwrap();
}

#[test]
fn bad_command_lines_end_as_in_oha() {
    for (line, code, said) in [
        ("--zz http://h/", 2, "--zz"),
        ("-n x http://h/", 2, "-n \"x\""),
        ("-n 5 -z 1s http://h/", 2, "exclude each other"),
        ("--http-version 0.9 http://h/", 2, "--http-version cannot be honoured"),
        ("", 2, "the URL is missing"),
        ("h", 1, "it begins with http://"),
        ("-a foo http://h/", 1, "user:password"),
        ("-o /does/not/exist http://127.0.0.1:1/", 1, "/does/not/exist"),
    ] {
        ran(&[vec!["as", "oha"], words(line)].concat()).refused(code, said);
    }
    assert!(ran(&["as", "oha", "--help"]).stdout.starts_with("Usage: oha [OPTIONS] <URL>"));
}
