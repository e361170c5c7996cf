//! h2load, beside the real one.

use std::path::Path;
use std::process::Stdio;

use crate::common::*;
use crate::layout::layout;

fn as_h2load(line: &str, url: &str) -> Ran {
    let ran = ran(&[vec!["as", "h2load"], words(line), vec![url]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// What the real h2load prints.
fn real(line: &str, url: &str) -> String {
    let mut command = command("h2load");
    command.args(words(line)).arg(url).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The layout, save for units, which depend on how fast the machine is.
fn shape(text: &str) -> Vec<String> {
    let units = |line: &String| {
        let line = line.replace("#us", "#").replace("#ms", "#").replace("#s", "#");
        line.replace("#KB", "#B").replace("#MB", "#B").replace("#GB", "#B")
    };
    layout(text).iter().map(units).collect()
}

/// The line that begins with `name`.
fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"))
}

#[test]
fn the_lines_are_h2loads() {
    let lab = lab();
    let url = url(&lab, "/fast");
    for flags in [
        "-n 200 -c 4 -m 5",
        "-n 3",
        "-n 30 -c 3 -t 2 --h1",
        "-c 13 -D 1",
        "-c 2 -D 1 --warm-up-time 1s",
        "-n 20 -c 2 -m 2 --rps 100",
    ] {
        let (ours, theirs) = (as_h2load(flags, &url).stdout, real(flags, &url));
        assert_eq!(shape(&ours), shape(&theirs), "{flags}\n{ours}\n{theirs}");
    }
}

#[test]
fn counts_are_h2loads() {
    let lab = lab();
    for (flags, route) in [
        ("-n 200 -c 4 -m 5", "/fast"),
        ("-n 200 -c 4 -m 5", "/status/404"),
        ("-n 20 -c 2", "/status/302"),
        ("-n 6 -c 2 -m 3 -N 1", "/hang"),
    ] {
        let url = url(&lab, route);
        let (ours, theirs) = (as_h2load(flags, &url).stdout, real(flags, &url));
        for name in ["requests: ", "status codes: "] {
            assert_eq!(line(&ours, name), line(&theirs, name), "{flags} {route}\n{ours}\n{theirs}");
        }
    }
}

#[test]
fn connections_end_after_their_time() {
    // The real h2load never ends if no response comes.
    let lab = lab();
    let text = as_h2load("-n 8 -c 2 -m 2 -T 1", &url(&lab, "/hang")).stdout;
    let counts =
        "requests: 8 total, 4 started, 0 done, 0 succeeded, 8 failed, 8 errored, 4 timeout";
    assert_eq!(line(&text, "requests: "), counts, "{text}");
}

#[test]
fn a_refused_connection_is_reported_as_by_h2load() {
    let (_held, address) = refusing();
    let url = format!("http://{address}/");
    let (ours, theirs) = (as_h2load("-n 4 -c 2", &url).stdout, real("-n 4 -c 2", &url));
    assert_eq!(shape(&ours), shape(&theirs), "{ours}\n{theirs}");
    assert_eq!(line(&ours, "requests: "), line(&theirs, "requests: "));
}

#[test]
fn every_request_is_the_servers() {
    let lab = lab();
    let text = as_h2load("-n 500 -c 2 -m 20 -t 2", &url(&lab, "/fast")).stdout;
    let counted = lab.shutdown();
    assert_eq!((counted.requests, counted.connections.opened), (500, 2), "{text}");
    assert!(text.contains("requests: 500 total, 500 started, 500 done, 500 succeeded"), "{text}");
    // Each connection opened once, and each served its part.
    assert!(!line(&text, "time for connect").contains(" 0us        0us"), "{text}");
    assert!(text.contains("\nprogress: 100% done\n"), "{text}");
}

#[test]
fn the_log_has_a_line_for_each_request() {
    let lab = lab();
    let file = tempfile::NamedTempFile::new().unwrap();
    let flags = format!("-n 40 -c 2 -m 3 --log-file {}", file.path().display());
    let before = unix_us();
    as_h2load(&flags, &url(&lab, "/delay/20ms"));
    let rows = log_rows(file.path());
    assert_eq!(rows.len(), 40);
    for [start, status, took] in rows {
        assert_eq!(status, 200);
        assert!(took >= 20_000 && start >= before && start + took <= unix_us() + 1_000_000);
    }
    as_h2load(&flags.replace("-n 40", "-n 6 -N 1"), &url(&lab, "/hang"));
    assert!(log_rows(file.path()).iter().all(|[_, status, _]| *status == -1));
}

fn unix_us() -> i64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_micros() as i64
}

fn log_rows(path: &Path) -> Vec<[i64; 3]> {
    let text = std::fs::read_to_string(path).unwrap();
    let cells = |line: &str| line.split('\t').map(|cell| cell.parse().unwrap()).collect::<Vec<_>>();
    text.lines().map(|line| cells(line).try_into().unwrap()).collect()
}

#[test]
fn a_timing_script_is_sent_by_each_client() {
    let lab = lab();
    let file = tempfile::NamedTempFile::new().unwrap();
    let url = url(&lab, "/fast");
    std::fs::write(file.path(), format!("0\t{url}\n300\t/status/404\n600.5\t{url}\n")).unwrap();
    let flags = format!("-c 3 -m 2 --timing-script-file {}", file.path().display());
    let ran = ran(&[vec!["as", "h2load"], words(&flags)].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = &ran.stdout;
    assert!(text.contains("requests: 9 total, 9 started, 9 done, 6 succeeded, 3 failed"), "{text}");
    assert!(ran.took.as_millis() >= 600, "{ran:?}");
    assert_eq!(lab.shutdown().requests, 9);
}

#[test]
fn uris_and_their_origin_come_from_files_and_flags() {
    let lab = lab();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "http://nowhere.invalid/fast\n/status/404\n").unwrap();
    let base = format!("http://{}", lab.addr());
    let flags = format!("-n 10 -i {} -B {base}", file.path().display());
    let ran = ran(&[vec!["as", "h2load"], words(&flags)].concat());
    assert!(ran.stdout.contains("status codes: 5 2xx, 0 3xx, 5 4xx, 0 5xx"), "{ran:?}");
}

#[test]
fn a_rate_is_kept() {
    let lab = lab();
    // 40 requests at 20 a second of two clients: the last is due after 0.975 s.
    let ran = as_h2load("-n 40 -c 2 --rps 20", &url(&lab, "/fast"));
    assert!(ran.took.as_millis() >= 975, "{ran:?}");
    assert!(ran.stdout.contains("40 succeeded"), "{ran:?}");
}

#[test]
fn small_windows_hold_large_bodies_back() {
    let lab = lab();
    let text = as_h2load("-n 4 -m 2 -w 14 -W 16", &url(&lab, "/bytes/1000000")).stdout;
    assert!(text.contains("4 succeeded") && text.contains("(4000000) data"), "{text}");
}

#[test]
fn bad_command_lines_end_as_in_h2load() {
    for (flags, said) in [
        ("--zz http://h/", "--zz"),
        ("-n 0 http://h/", "-n \"0\""),
        ("-n 1 -c 2 http://h/", "-n, -c:"),
        ("-r 3 http://h/", "-r cannot be honoured"),
        ("", "no URI given"),
        ("-i /does/not/exist", "/does/not/exist"),
        ("--log-file /does/not/exist http://127.0.0.1:1/", "/does/not/exist"),
    ] {
        ran(&[vec!["as", "h2load"], words(flags)].concat()).refused(1, said);
    }
    assert!(
        ran(&["as", "h2load", "--help"]).stdout.starts_with("Usage: h2load [OPTIONS]... [URI]")
    );
}
