//! Recordings as targets.

use std::fmt::Write;

use crate::support::*;

/// A log of 20 s with 30 GETs a second and a POST between them.
fn log() -> String {
    let mut log = String::new();
    for second in 0..20 {
        for n in 0..30 {
            let time = format!("22/Nov/2026:01:02:{second:02} +0000");
            writeln!(log, "::1 - - [{time}] \"GET /fast?n={n} HTTP/1.1\" 200 1 \"-\" \"x\"")
                .unwrap();
        }
        writeln!(
            log,
            "::1 - - [22/Nov/2026:01:02:{second:02} +0000] \"POST /fast HTTP/1.1\" 200 1"
        )
        .unwrap();
    }
    log
}

#[test]
fn a_log_is_replayed_on_its_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, log()).unwrap();
    let path = path.to_str().unwrap();
    let lab = lab();
    let origin = url(&lab, "");
    let json = run(&[path, "--speed", "20x", "--target", &origin]);
    assert_eq!((json.count("requests.due"), json.count("requests.ok")), (600, 600));
    assert_eq!(json.text("plan.load.loop"), "replay");
    assert_eq!(json.number("plan.load.speed"), 20.0);
    let asked = json.number("rate.asked");
    assert!((asked - 600.0).abs() < 6.0, "600 arrivals in a second: {asked}");
    let some = run(&[path, "--speed", "20x", "--target", &origin, "-d", "500ms"]);
    assert_eq!(some.count("requests.due"), 300);
    let few = run(&[path, "--speed", "20x", "--target", &origin, "-n", "7"]);
    assert_eq!(few.count("requests.sent"), 7);
    let none = ran(&["run", path, "--target", &origin, "--select", "DELETE *"]);
    none.refused(2, "no request to replay");
}

#[test]
fn a_recording_goes_nowhere_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, log()).unwrap();
    let path = path.to_str().unwrap();
    ran(&["run", path]).refused(2, "--target http://HOST:PORT");
    ran(&["run", path, "--target", "http://127.0.0.1:1/path"])
        .refused(2, "must have no path itself");
    ran(&["run", path, "--target", "http://127.0.0.1:1", "-r", "5"]).refused(2, "its own rates");
}
