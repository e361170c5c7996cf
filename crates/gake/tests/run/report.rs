//! Run files: `gake report` shows the run that was.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::*;

/// Parts of a result that a run file does not have, or has in another form.
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
fn a_report_judges_as_the_run_did() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let lab = lab();
    let url = url(&lab, "/fast");
    let (missed, met, both) = (path("missed"), path("met"), path("both"));
    let flags = ["-n", "300", "-c", "5", "--think", "1ms", "-H", "X-Token: s3cret"];
    for (file, slo) in [(&missed, "p50<1us"), (&met, "errors<1%")] {
        ran(&[&["run", &url, "--slo", slo, "--out", file], &flags[..]].concat());
    }
    let text = ran(&["report", &missed]);
    assert_eq!(text.code, Some(99), "{text:?}");
    assert!(text.stdout.contains("✘ p50<1us"), "{text:?}");
    assert_eq!(ran(&["report", &met]).done().code, Some(0));
    // Others replace them.
    assert_eq!(ran(&["report", &missed, "--slo", "p50<30s"]).code, Some(0));
    // Of several runs all of them hold, merged into a file or not.
    let merged = ran(&["report", &missed, &met, "-o", &format!("hlog={both}")]);
    for file in [&met, &both] {
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file} has the addresses of a run");
    }
    assert_eq!(merged.code, Some(99), "{merged:?}");
    let again = ran(&["report", &both]);
    assert_eq!((again.code, &again.stdout), (Some(99), &merged.stdout));
    // The file names its origin without secrets.
    let file = std::fs::read_to_string(&missed).unwrap();
    assert!(file.contains(&format!("gake run {url} --slo 'p50<1us'")), "{file}");
    assert!(file.contains("'X-Token: redacted-") && !file.contains("s3cret"), "{file}");
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

#[test]
fn results_go_to_files_and_one_to_standard_output() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let lab = lab();
    let (url, file) = (url(&lab, "/fast"), path("run.hlog"));
    let junit = format!("junit={}", path("gake.xml"));
    let markdown = format!("markdown={}", path("gake.md"));
    let common = ["-n", "200", "-c", "5", "--think", "1ms", "--slo", "p50<1ns", "--out", &file];
    let ran1 = ran(&[&["run", &url, "-o", &junit, "-o", &markdown], &common[..]].concat());
    assert_eq!(ran1.code, Some(99), "{ran1:?}");
    assert!(ran1.stdout.contains("objective missed"), "text when nothing else: {ran1:?}");
    let read = |name| std::fs::read_to_string(path(name)).unwrap();
    assert!(read("gake.xml").contains("<failure type=\"objective\""), "{}", read("gake.xml"));
    assert!(read("gake.md").starts_with("### ❌ "), "{}", read("gake.md"));
    // Every format is the same from the file.
    for (format, part) in [
        ("text", "200 due"),
        ("json", "\"schema\": \"gake.run/1\""),
        ("csv", "second,seconds,"),
        ("csv-summary", "run,,200,200,200,0,0,0,"),
        ("markdown", "| 200 | –"),
        ("junit", "tests=\"2\""),
        ("openmetrics", "gake_requests_total{outcome=\"ok\"} 200\n"),
        ("hdrplot", "Value(ms)"),
        ("hlog", "gake.runfile/1"),
    ] {
        let ran = ran(&["report", &file, "-o", format]);
        assert!(ran.stdout.contains(part), "{format}: {ran:?}");
    }
    ran(&["report", &file, "-o", "json", "-o", "csv"]).refused(2, "only one format");
    ran(&["report", &file, "-o", &format!("hlog={file}")]).refused(2, "written to");
    ran(&["run", &url, "-n", "1", "-o", "hlog"]).refused(2, "--out");
    ran(&["run", &url, "-n", "1", "-o", "json=/no/such/x"]).refused(1, "cannot be written");
}

#[test]
fn merged_run_files_are_a_run_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let lab = lab();
    let url = url(&lab, "/fast");
    let (a, b, both) = (path("a"), path("b"), path("both"));
    for file in [&a, &b] {
        run(&[&url, "-r", "100", "-d", "2s", "--out", file]);
    }
    let merged = ran(&["report", &a, &b, "-o", "json", "-o", &format!("hlog={both}")]);
    let again = ran(&["report", &both, "-o", "json"]);
    assert_eq!(again.stderr, "", "{again:?}");
    assert_eq!(comparable(&merged.done().json()), comparable(&again.done().json()));
}

#[test]
fn another_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    for (name, bytes, part) in [
        ("empty", &b""[..], "but empty"),
        ("logo.png", b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        ("notes.txt", b"hello\nworld\n", "not a run file"),
        ("old.json", b"{\"schema\":\"gake.run/1\"}\n", "--out"),
    ] {
        std::fs::write(path(name), bytes).unwrap();
        ran(&["report", &path(name)]).refused(1, part);
        ran(&["report", &path(name)]).refused(1, name);
    }
    ran(&["report", &path("none")]).refused(1, "No such file");
    ran(&["report", directory.path().to_str().unwrap()]).refused(1, "directory");
    let lab = lab();
    let (url, good) = (url(&lab, "/fast"), path("good.hlog"));
    run(&[&url, "-n", "50", "-c", "5", "--out", &good]);
    let both = ran(&["report", &good, &path("logo.png"), "-o", "json"]);
    assert_eq!(both.code, Some(1), "a part is missing: {both:?}");
    assert!(both.stderr.contains("logo.png: is not a run file"), "{both:?}");
    assert_eq!(both.json().count("requests.ok"), 50);
    let none = ran(&["report", &path("empty"), &path("logo.png")]);
    assert!(none.code == Some(1) && none.stdout.is_empty(), "{none:?}");
}
