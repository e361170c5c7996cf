//! hey, beside the real hey.

use std::path::{Path, PathBuf};
use std::process::Command;

use gake_lab::LabConfig;

use crate::common::*;
use crate::layout::layout;

/// The real hey, installed once.
fn real() -> PathBuf {
    let bin = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-bin");
    let version = "github.com/rakyll/hey@v0.1.5";
    once(&bin.join("hey.version"), version.as_bytes(), || {
        let installed = command("go").args(["install", version]).env("GOBIN", &bin).output();
        let installed = installed.unwrap();
        assert!(installed.status.success(), "{installed:?}");
    });
    bin.join("hey")
}

fn ours(line: &str, url: &str) -> Ran {
    ran(&[vec!["as", "hey"], words(line), vec![url]].concat())
}

fn theirs(line: &str, url: &str) -> Ran {
    start(Command::new(real()).args(words(line)).arg(url)).wait()
}

#[test]
fn the_lines_are_heys() {
    let lab = lab();
    for (line, route) in [
        ("-n 200 -c 20", "/fast"),
        ("-n 60 -c 3 -m POST -d hello -T a/b -H X-A:b", "/echo"),
        ("-n 40 -c 4 -disable-keepalive -a u:pw", "/status/404"),
        ("-z 500ms -c 2 -q 20", "/fast"),
    ] {
        let url = url(&lab, route);
        let (ours, theirs) = (ours(line, &url), theirs(line, &url));
        assert_eq!((ours.code, theirs.code), (Some(0), Some(0)), "{ours:?}");
        assert_eq!(layout(&ours.stdout), layout(&theirs.stdout), "{line}\n{}", ours.stdout);
    }
    let unused = "http://127.0.0.1:1/";
    let (ours, theirs) = (ours("-n 6 -c 2", unused), theirs("-n 6 -c 2", unused));
    assert_eq!(layout(&ours.stdout), layout(&theirs.stdout), "{}", ours.stdout);
    let cause =
        "[6]\tGet \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert!(ours.stdout.contains(cause) && theirs.stdout.contains(cause), "{}", ours.stdout);
    assert_eq!((ours.code, theirs.code), (Some(0), Some(0)));
}

/// Rows of `-o csv`, as a script reads them.
fn rows(text: &str) -> Vec<Vec<f64>> {
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,\
             status-code,offset"
        )
    );
    lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect()
}

#[test]
fn http2_has_all_workers_on_one_connection() {
    let lab = lab_with(LabConfig { tls: true, ..LabConfig::default() });
    let ran = ours("-h2 -n 40 -c 4", &format!("https://{}/fast", lab.addr()));
    assert!(ran.stdout.contains("[200]\t40 responses"), "{ran:?}");
    let served = lab.shutdown();
    assert_eq!((served.requests, served.connections.opened), (40, 1), "{served:?}");
}

#[test]
fn the_csv_is_heys() {
    let lab = lab();
    let url = url(&lab, "/delay/20ms");
    for ran in [ours("-n 30 -c 3 -o csv", &url), theirs("-n 30 -c 3 -o csv", &url)] {
        let rows = rows(&ran.stdout);
        assert_eq!(rows.len(), 30, "{ran:?}");
        for row in &rows {
            let [total, dial, dns, write, delay, read, status, offset] = row[..] else {
                panic!("{row:?}");
            };
            assert_eq!((dns, status), (0.0, 200.0), "{row:?}");
            assert!(delay >= 0.0199 && total >= delay && offset >= 0.0, "{row:?}");
            // Each is rounded to 0.1 ms; what lies between the parts of the real one is small.
            assert!(dial + write + delay + read <= total + 0.001, "{row:?}");
        }
        assert!(ran.stdout.ends_with('\n'));
    }
}

#[test]
fn a_link_named_hey_is_hey() {
    let lab = lab();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("links-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let link = dir.join("hey");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gake"), &link).unwrap();
    let linked =
        start(Command::new(&link).args(["-n", "20", "-c", "2"]).arg(url(&lab, "/fast"))).wait();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(linked.stdout.contains("[200]\t20 responses"), "{linked:?}");
}

#[test]
fn every_failure_has_its_true_cause() {
    let lab = lab();
    // More connections than descriptors: hey -n 500000 -c 500000, scaled.
    let limited = |limit: &str, connections: &str| {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_gake")]);
        command.args(["as", "hey", "-n", connections, "-c", connections]);
        let ran = start(command.arg(url(&lab, "/delay/300ms"))).wait();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    // Threads with a descriptor table each hold them all.
    let ran = limited("500", "3000");
    assert_eq!(number_after(&ran.stdout, "[200]"), 3_000, "{ran:?}");
    // Tables that are too small for that.
    let ran = limited("70", "400");
    assert!(ran.stderr.contains("more than the 70 file descriptors"), "{ran:?}");
    let line = ran.stdout.lines().find(|line| line.contains("too many open files"));
    let failed = number_after(line.unwrap_or_else(|| panic!("{ran:?}")), "[");
    let answered = number_after(&ran.stdout, "[200]");
    assert!(failed > 300 && answered + failed == 400, "{ran:?}");
    // A truncated response is not a 200.
    for (route, cause) in [
        ("/reset?after=100", "read: connection reset by peer"),
        ("/close?after=0", "EOF"),
        ("/hang", "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
    ] {
        let ran = ours("-n 4 -c 2 -t 1", &url(&lab, route));
        assert!(ran.stdout.contains(cause) && !ran.stdout.contains("[200]"), "{ran:?}");
    }
}

#[test]
fn a_rate_is_each_workers() {
    let lab = lab();
    let ran = ours("-z 1s -c 4 -q 10", &url(&lab, "/fast"));
    let answers = number_after(&ran.stdout, "[200]");
    // At most 10 starts a worker; a busy machine may miss some.
    assert!((12..=40).contains(&answers), "{ran:?}");
}

#[test]
fn bad_command_lines_end_as_in_hey() {
    for (line, code, said) in [
        ("-n 3 -c 7 http://h/", 1, "-n cannot be less than -c."),
        ("-n 0 http://h/", 1, "-n and -c cannot be smaller than 1."),
        ("-z 1s -c 0 http://h/", 1, "-c cannot be smaller than 1."),
        ("-H foo http://h/", 1, "could not parse the provided input; input = foo"),
        ("-zz http://h/", 2, "flag provided but not defined: -zz"),
        ("-n", 2, "flag needs an argument: -n"),
        ("-n five http://h/", 2, "invalid value \"five\" for flag -n"),
        ("-h x http://h/", 1, "Flag '-h' is deprecated, please use '-H' instead."),
        ("", 1, "Usage: hey [options...] <url>"),
    ] {
        let ours = ran(&[vec!["as", "hey"], words(line)].concat());
        let theirs = start(Command::new(real()).args(words(line))).wait();
        for ran in [&ours, &theirs] {
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{line}: {ran:?}");
            assert!(ran.stderr.contains(said), "{line}: {ran:?}");
        }
    }
    for (line, said) in [
        ("-o {{.Total}} http://h/", "only csv"),
        ("http://h/ -n 5", "-n: flags stand before the URL"),
    ] {
        ran(&[vec!["as", "hey"], words(line)].concat()).refused(1, said);
    }
}

#[test]
fn what_is_sent_is_what_hey_sends() {
    let lab = lab();
    let line = "-n 1 -c 1 -m put -d @x -U me -H X-A:b -host some.test --gake-format json";
    let ran = ours(line, &url(&lab, "/echo"));
    let json: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(json["requests"]["ok"], 1, "{ran:?}");
    assert!(ran.stdout.contains("[200]\t1 responses"), "{ran:?}");
}
