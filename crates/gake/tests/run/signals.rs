//! Signals: a summary comes whatever happens, and the counts still agree.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::*;

/// What is at most needed to notice something on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(15);

#[test]
fn a_signal_drains_and_the_counts_are_the_servers() {
    for (flags, signal) in [
        ("-r 300 -d 60s", Signal::INT),
        ("-r 300 -d 60s --no-keepalive", Signal::TERM),
        ("-r 600 -d 60s -c 4", Signal::INT),
        ("-c 20 -d 60s", Signal::INT),
        ("-n 1000000 -c 20 -t 2", Signal::TERM),
    ] {
        let lab = lab();
        let url = url(&lab, "/slow?min=20ms&max=80ms");
        let run = start(&mut gake(&[&["run", "-o", "json", &url], &*words(flags)].concat()));
        eventually("requests come", || lab.stats().requests > 50);
        run.signal(signal);
        let ran = run.wait_for(SOON);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let json = ran.json();
        let stats = lab.shutdown();
        assert_eq!(json.count("requests.written"), stats.requests, "{flags}: {}", json.0);
        assert_eq!(json.count("requests.ok"), json.count("requests.sent"), "{flags}");
        assert_eq!(json.text("ended.by"), "interrupted");
    }
}

#[test]
fn a_second_signal_ends_the_drain() {
    for flags in ["-r 100 -d 60s", "-c 10 -d 60s", "-n 10 -c 10"] {
        let lab = lab();
        let url = url(&lab, "/hang");
        let flags = [words(flags), words("--drain 90s --timeout 90s")].concat();
        let run = start(&mut gake(&[&["run", "-o", "json", &url], &*flags].concat()));
        eventually("requests come", || lab.stats().requests >= 10);
        run.signal(Signal::INT);
        sleep(Duration::from_millis(500));
        run.signal(Signal::INT);
        let ran = run.wait_for(SOON);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let json = ran.json();
        assert!(json.count("requests.unfinished") >= 10, "{}", json.0);
        assert_eq!(json.count("requests.unfinished"), json.count("requests.sent"));
        assert_eq!(json.count("requests.written"), lab.shutdown().requests);
    }
}

#[test]
fn the_drain_ends_by_itself() {
    let lab = lab();
    let url = url(&lab, "/hang");
    let ran = ran(&["run", "-o", "json", &url, "-r", "50", "-d", "400ms", "--drain", "300ms"]);
    assert_eq!(ran.code, Some(1), "nothing succeeded: {ran:?}");
    let json = ran.json();
    assert_eq!(json.count("requests.unfinished"), 20);
    // Censored: each waited for 300 ms at least.
    assert!(json.count("latency_ns.response.min") >= 300_000_000, "{}", json.0);
    assert_eq!(lab.shutdown().requests, 20);
}

#[test]
fn a_missed_objective_ends_the_run_when_asked() {
    let lab = lab();
    let url = url(&lab, "/status/500");
    let flags = words("-r 50 -d 90s --slo errors<1% --abort -o json");
    let ran = start(&mut gake(&[&["run", &url], &*flags].concat())).wait_for(PATIENCE / 2);
    assert_eq!(ran.code, Some(99), "{ran:?}");
    let json = ran.json();
    assert_eq!(json.text("ended.by"), "aborted", "{}", json.at("ended"));
    assert_eq!(json.count("requests.written"), lab.shutdown().requests);
}
