//! Standard output has only the result.

use std::io::Read;
use std::process::Stdio;

use crate::support::*;

#[test]
fn a_pipe_gets_the_result_and_nothing_else() {
    let lab = lab();
    let url = url(&lab, "/fast");
    for flags in ["", "-v", "-q"] {
        let ran = ran(&[&["run", &url, "-n", "100", "-o", "json"], &*words(flags)].concat()).done();
        ran.json();
        assert_eq!(ran.stderr.is_empty(), flags == "-q", "the plan is on standard error: {ran:?}");
    }
    let csv = ran(&["run", &url, "-r", "50", "-d", "2s", "-o", "csv"]).done();
    let mut lines = csv.stdout.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert!(csv.stdout.starts_with("second,seconds,asked,sent"), "{csv:?}");
    assert!(lines.all(|line| line.split(',').count() == columns), "{csv:?}");
}

#[test]
fn the_text_has_no_colours_in_a_pipe() {
    let lab = lab();
    let url = url(&lab, "/fast");
    for flags in ["", "--no-color"] {
        let ran = ran(&[&["run", &url, "-n", "100"], &*words(flags)].concat()).done();
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
        for part in ["100 due", "100 sent", "response", "status", "200"] {
            assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
        }
    }
}

#[test]
fn no_color_is_heard_on_a_terminal() {
    // `script` runs a command on a terminal of its own.
    let lab = lab();
    let url = url(&lab, "/fast");
    let on_terminal = |variables: &[(&str, &str)], flags: &str| {
        let line = format!("{} run {url} -n 100 {flags}", env!("CARGO_BIN_EXE_gake"));
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
        command.env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied());
        start(&mut command).wait().stdout
    };
    let coloured = |text: &str| text.contains("\u{1b}[3") || text.contains("\u{1b}[1m");
    let plain = on_terminal(&[], "");
    assert!(plain.contains("100 due") && coloured(&plain), "{plain:?}");
    assert!(!coloured(&on_terminal(&[("NO_COLOR", "1")], "-q")));
    assert!(!coloured(&on_terminal(&[("NO_COLOR", "1")], "")));
    assert!(!coloured(&on_terminal(&[], "--no-color -q")));
}

#[test]
fn a_closed_pipe_ends_cleanly() {
    let lab = lab();
    let url = url(&lab, "/fast");
    for format in ["text", "json", "csv"] {
        let mut command = gake(&["run", &url, "-n", "50", "-o", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert!(status.code().is_some(), "{status}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{stderr}");
    }
    assert_eq!(lab.shutdown().requests, 150);
}

#[test]
fn a_closed_standard_error_is_no_obstacle() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let mut command = gake(&["run", &url, "-n", "50", "-o", "json", "-v"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(child.wait().unwrap().code().is_some());
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["requests"]["ok"], 50);
}

#[test]
fn a_full_standard_output_is_an_error() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = gake(&["run", &url, "-n", "5"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("error: the result cannot be written"), "{stderr}");
}
