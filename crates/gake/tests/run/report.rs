//! Run files: `gake report` shows the run that was.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::*;

/// What a run file cannot know or says in its own way.
fn comparable(json: &Json) -> Value {
    let mut value = json.0.clone();
    for point in value["series"].as_array_mut().unwrap() {
        // Percentiles of a second are read back from its histograms, to their precision.
        let point = point.as_object_mut().unwrap();
        point.retain(|key, _| key == "second" || key == "requests" || key == "bytes");
    }
    value
}

#[test]
fn a_report_is_the_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.hlog");
    let path = path.to_str().unwrap();
    let lab = lab();
    let url = url(&lab, "/slow?min=1ms&max=30ms");
    for flags in ["-r 300 -d 2500ms --warmup 500ms", "-n 500 -c 10 -t 2", "-r 200 -d 1s -c 2"] {
        let run = run(&[&[url.as_str(), "--out", path], &*words(flags)].concat());
        let again = ran(&["report", path, "-o", "json"]);
        assert_eq!(again.stderr, "", "{again:?}");
        let again = again.done().json();
        assert_eq!(comparable(&run), comparable(&again), "{flags}");
        let text = ran(&["report", path]).done();
        assert!(text.stdout.contains(&url), "{text:?}");
        let csv = ran(&["report", path, "-o", "csv"]).done();
        let seconds = run.at("series").as_array().unwrap().len();
        assert_eq!(csv.stdout.lines().count(), 1 + seconds, "{csv:?}");
    }
}

#[test]
fn a_run_can_be_judged_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.hlog");
    let path = path.to_str().unwrap();
    let lab = lab();
    let url = url(&lab, "/fast");
    run(&[&url, "-n", "300", "-c", "5", "--think", "1ms", "--out", path]);
    assert_eq!(ran(&["report", path, "--slo", "p50<30s"]).code, Some(0));
    assert_eq!(ran(&["report", path, "--slo", "p50<1ns"]).code, Some(99));
    ran(&["report", path, "--slo", "p50<"]).refused(2, "p50<");
}

#[test]
fn two_runs_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let lab = lab();
    let url = url(&lab, "/fast");
    let paths = ["a.hlog", "b.hlog"].map(|name| directory.path().join(name));
    let paths = paths.each_ref().map(|path| path.to_str().unwrap());
    for path in paths {
        run(&[&url, "-n", "150", "-c", "5", "--think", "1ms", "--out", path]);
    }
    let both = ran(&["report", paths[0], paths[1], "-o", "json"]).done().json();
    assert_eq!(both.count("requests.ok"), 300);
    assert_eq!(both.count("latency_ns.response.count"), 300);
}

#[test]
fn a_killed_run_is_readable_to_its_last_whole_second() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.hlog");
    let path = path.to_str().unwrap();
    let lab = lab();
    let url = url(&lab, "/fast");
    let run = start(&mut gake(&["run", &url, "-r", "200", "-d", "60s", "--out", path]));
    let seconds =
        || std::fs::read_to_string(path).unwrap_or_default().matches("\"second\"").count();
    eventually("two seconds are written", || seconds() >= 2);
    run.signal(Signal::KILL);
    let ran_killed = run.wait_for(Duration::from_secs(10));
    assert_eq!(ran_killed.code, None);
    let report = ran(&["report", path, "-o", "json"]);
    assert!(report.stderr.contains("the run has no end"), "{report:?}");
    let json = report.done().json();
    assert_eq!(json.text("ended.by"), "interrupted");
    let ok = json.count("requests.ok");
    // Two whole seconds at least; a busy machine is late with a part of them.
    assert!(ok >= 200 && ok <= lab.shutdown().requests, "{ok}");
}

#[test]
fn a_file_cut_anywhere_is_still_a_report_or_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.hlog");
    let lab = lab();
    let url = url(&lab, "/fast");
    run(&[&url, "-r", "50", "-d", "1s", "--out", path.to_str().unwrap()]);
    let whole = std::fs::read(&path).unwrap();
    let cut = directory.path().join("cut.hlog");
    for part in 0..12 {
        std::fs::write(&cut, &whole[..whole.len() * part / 12]).unwrap();
        let ran = ran(&["report", cut.to_str().unwrap(), "-o", "json"]);
        match ran.code {
            Some(1) => ran.refused(1, "cut.hlog"),
            _ => assert!(ran.stderr.contains("warning: ") && !ran.stdout.is_empty(), "{ran:?}"),
        }
    }
}
