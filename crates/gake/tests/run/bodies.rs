//! `--body-errors`: the bodies of failed responses.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use crate::support::*;

/// A server that fails two of three requests, each in its own way, and shows a key.
fn failing() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for number in 0u64.. {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let (status, body) = match number % 3 {
                0 => ("200 OK", "fine".to_owned()),
                1 => ("500 Oops", "Error 1040: Too many connections".to_owned()),
                _ => (
                    "503 Busy",
                    format!(
                        "{{\"at\":{},\"password\":\"hunter2\",\"why\":\"\u{1b}[2Jfull\"}}",
                        170_000_000 + number
                    ),
                ),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn the_most_frequent_bodies_of_failures_are_shown_without_secrets() {
    let (url, folder) = (failing(), tempfile::tempdir().unwrap());
    let file = folder.path().join("run.hlog").display().to_string();
    let page = folder.path().join("run.html").display().to_string();
    let html = format!("html={page}");
    let flags = ["-n", "30", "-c", "1", "--body-errors", "--out", &file, "-o", "text", "-o", &html];
    let reported = ran(&[&["run", url.as_str()], &flags[..]].concat());
    let text = &reported.stdout;
    assert!(text.contains("10 × 500  Error 1040: Too many connections"), "{reported:?}");
    assert!(text.contains("10 × 503") && text.contains("\\u001b[2Jfull"), "{text}");
    // The run file has the same, and so have reports made from it.
    let json = ran(&["report", &file, "-o", "json"]).json();
    let bodies = json.at("failed_bodies.bodies").as_array().unwrap();
    let counted: Vec<_> =
        bodies.iter().map(|b| (b["status"].as_u64(), b["count"].as_u64())).collect();
    assert_eq!(counted, [(Some(500), Some(10)), (Some(503), Some(10))], "{}", json.0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Error 1040: Too many connections"));
    for shown in [text, &json.0.to_string(), &page, &std::fs::read_to_string(file).unwrap()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn those_of_a_script_are_shown_without_secrets_too() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("fails.js");
    let text = format!(
        "import http from 'k6/http';
         export const options = {{ iterations: 30 }};
         export default () => {{ http.get('{}'); }};",
        failing()
    );
    std::fs::write(&script, text).unwrap();
    let script = script.to_str().unwrap();
    let own = ran(&["run", script, "--body-errors"]);
    assert!(own.stdout.contains("  10 × 500  Error 1040: Too many connections\n"), "{own:?}");
    assert!(!own.stdout.contains("hunter2") && !own.stderr.contains("hunter2"), "{own:?}");
    let k6 = ["as", "k6", "run", "--address", "", script, "--body-errors", "--gake-format", "json"];
    let reported = ran(&k6).done();
    assert!(
        reported.stdout.contains("  10 × 500  Error 1040: Too many connections\n"),
        "{reported:?}"
    );
    assert!(reported.stdout.contains("\"password\":\"redacted-"), "{reported:?}");
    assert!(reported.stderr.contains("failed_bodies"), "gake's own result: {reported:?}");
    assert!(
        !reported.stdout.contains("hunter2") && !reported.stderr.contains("hunter2"),
        "{reported:?}"
    );
}

#[test]
fn bodies_are_recorded_on_request_only() {
    let json = ran(&["run", &failing(), "-n", "30", "-c", "1", "-o", "json"]).json();
    assert!(json.0.get("failed_bodies").is_none(), "{}", json.0);
    assert_eq!(json.count("status.500"), 10);
}

#[test]
fn a_search_reports_them_too() {
    let line = "--slo errors<90% --budget 6s --max-rate 50 --body-errors -o json";
    let reported = ran(&[&["find", &failing()], &*words(line)].concat());
    let json: serde_json::Value = serde_json::from_str(&reported.stdout).unwrap();
    let first = &json["failed_bodies"]["bodies"][0];
    assert!(first["count"].as_u64() >= Some(1), "{reported:?}");
}
