//! Habits from other tools, and output on a terminal.

use crate::support::*;

#[test]
fn short_forms_do_what_is_meant() {
    let lab = lab();
    let port = lab.addr().port().to_string();
    ran(&[&port, "-n", "3", "-c", "1", "-q"]).done();
    let mut piped = gake(&["-", "-n", "2", "-c", "1", "-q"]);
    let targets = format!("GET {}\n", url(&lab, "/fast"));
    let file = tempfile::tempfile().and_then(|mut file| {
        use std::io::{Seek, Write};
        file.write_all(targets.as_bytes())?;
        file.rewind()?;
        Ok(file)
    });
    start(piped.stdin(file.unwrap())).wait().done();
    let foreign = ran(&words("--rps 50 -z 200ms --json --user-agent x demo")).done();
    assert!(foreign.stdout.starts_with('{'), "{foreign:?}");
    let line = format!("run {} --seed 5 -r 50 -d 200ms --arrivals poisson -q", url(&lab, "/fast"));
    ran(&words(&line)).done();
    assert!(ran(&["version"]).done().stdout.starts_with("gake "));
    assert_eq!(ran(&["experiment", "list"]).done().stdout, ran(&["experiment"]).done().stdout);
}

#[test]
fn a_missing_file_is_no_host() {
    for target in ["missing.http", "./missing", "../no/such.txt", "/no/such/targets", "urls.txt"] {
        ran(&["run", target, "-n", "1"]).refused(1, &format!("{target}: no such file"));
        ran(&["find", target]).refused(1, &format!("{target}: no such file"));
    }
    ran(&["run", "/tmp", "-n", "1"]).refused(1, "/tmp is a directory");
    // A URL without its scheme may end like a file.
    ran(&["run", "host.invalid/data.json", "-n", "1"]).refused(1, "could not be resolved");
}

#[test]
fn colours_are_what_the_user_says() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let run = ["run", &url, "-n", "5", "-c", "1"];
    let coloured = |flags: &[&str], environment: &[(&str, &str)]| {
        let mut command = gake(&[&run, flags].concat());
        command.env_remove("CLICOLOR_FORCE").envs(environment.iter().copied());
        let ran = start(&mut command).wait();
        let is = ran.stdout.contains("\u{1b}[");
        assert_eq!(is, ran.stdout.contains("\u{1b}[0m"), "{ran:?}");
        is
    };
    let force = ("CLICOLOR_FORCE", "1");
    for (flags, environment, expected) in [
        (&[][..], &[][..], false),
        (&["--color=always"], &[], true),
        (&["--color=always"], &[("NO_COLOR", "1")], true),
        (&["--color=auto"], &[], false),
        (&[], &[force], true),
        (&["--color", "never"], &[force], false),
        (&["--no-color"], &[force], false),
        (&[], &[force, ("NO_COLOR", "1")], false),
    ] {
        assert_eq!(coloured(flags, environment), expected, "{flags:?} {environment:?}");
    }
}

#[test]
fn nothing_is_shown_after_the_last_arrival_and_rates_are_echoed_as_they_were_asked() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let csv = ran(&["run", &url, "-r", "20", "-d", "2s", "-o", "csv", "-v"]).done();
    let rows: Vec<Vec<&str>> = csv.stdout.lines().map(|line| line.split(',').collect()).collect();
    let idle = |row: &&Vec<&str>| row[2] == "0" && row[3] == "0";
    assert_eq!(rows.iter().filter(idle).count(), 0, "{csv:?}");
    assert!(!csv.stderr.contains("asked 0/s, sent 0/s"), "{csv:?}");
    for (rate, said) in [("100/h", "100/h for"), ("6000/m", "100/s for"), ("90/m", "1.5/s for")] {
        let ran = ran(&["run", &url, "-r", rate, "-d", "100ms"]);
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    let ran = ran(&["run", &url, "-n", "1", "-c", "1", "--think", "10us"]).done();
    assert!(ran.stderr.contains("think time 10µs"), "{ran:?}");
}

#[test]
fn few_requests_are_no_percentile_of_lateness() {
    // Fewer than ten can be late by chance on any machine, so they are no reason.
    let lab = lab();
    let url = url(&lab, "/fast");
    for _ in 0..3 {
        let json = run(&[&url, "-r", "100", "-n", "9"]);
        let reasons = json.at("verdict.reasons").to_string();
        assert!(!reasons.contains("late") && !reasons.contains("send delay"), "{reasons}");
    }
}

#[test]
fn quiet_is_the_verdict_and_the_objectives() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let ran = ran(&["run", &url, "-n", "50", "-c", "2", "-q", "--slo", "p99<60s"]).done();
    assert!(ran.stderr.is_empty(), "{ran:?}");
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert!(lines[0].contains("objective met"), "{ran:?}");
    assert!(lines.last().unwrap().starts_with("  ✔ p99<60s "), "{ran:?}");
    assert!(!ran.stdout.contains("due") && !ran.stdout.contains("latency "), "{ran:?}");
}

/// gake's output on a terminal of this size.
fn on_terminal(columns: usize, lines: usize, line: &str) -> String {
    let gake = env!("CARGO_BIN_EXE_gake");
    let line = format!("stty cols {columns} rows {lines}; exec {gake} {line}");
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::null());
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("TERM", "xterm");
    start(&mut command).wait().stdout
}

#[test]
fn a_terminal_is_used_as_wide_as_it_is() {
    let lab = lab();
    let url = url(&lab, "/slow?min=1ms&max=20ms");
    let line = format!("run '{url}' -n 200 -c 4 --slo 'p99<60s' --color=never");
    for (columns, widest) in [(50, 50), (160, 160)] {
        let shown = on_terminal(columns, 200, &line);
        let (_, text) = shown.split_once("objective met").unwrap();
        let widths: Vec<_> = text.lines().map(|line| line.trim_end().chars().count()).collect();
        let most = *widths.iter().max().unwrap();
        assert!(most <= widest && most > widest / 2, "{columns}: {most}\n{text}");
        assert_eq!(shown.matches("closed loop, 4 users").count(), 1, "the plan, once: {shown}");
    }
    // Longer than the window: the verdict stands at its end too.
    let shown = on_terminal(100, 24, &line);
    assert_eq!(shown.matches("objective met").count(), 2, "{shown}");
    assert!(shown.trim_end().lines().last().unwrap().contains("✔ p99<60s"), "{shown}");
}

#[test]
fn completions_know_values() {
    for shell in ["bash", "zsh", "fish"] {
        let script = ran(&["completions", shell]).stdout.replace('\\', "");
        for value in ["openmetrics", "hdrplot", "csv-summary", "prometheus:", "actuator:"] {
            assert!(script.contains(value), "{value} in {shell}");
        }
        // fish's completions complete only values of flags.
        assert!(shell == "fish" || script.contains("nighthawk_client"), "{shell}");
    }
}
