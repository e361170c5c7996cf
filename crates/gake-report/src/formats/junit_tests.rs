//! JUnit XML as CI servers read it: parsed by Python, as most of their plug-ins do.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gake_core::record::Run;
use gake_judge::Summary;

use super::render;
use crate::testing::{bless, healthy, troubled};

/// Prints each suite and case on a line: name, counts, and the kind and message of a child.
const READER: &str = r"
import sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
assert root.tag == 'testsuites', root.tag
for suite in root:
    cases = suite.findall('testcase')
    seen = [c for case in cases for c in case]
    counts = [len(cases)] + [sum(c.tag == t for c in seen) for t in ('failure', 'error', 'skipped')]
    stated = [int(suite.get(n)) for n in ('tests', 'failures', 'errors', 'skipped')]
    assert counts == stated, (counts, stated)
    print(suite.get('name'), *counts, sep='\x1f')
    for case in cases:
        children = [x for c in case for x in (c.tag, c.get('message'))]
        print(case.get('classname'), case.get('name'), *children, sep='\x1f')
";

fn read(xml: &str) -> Vec<Vec<String>> {
    let mut python = Command::new("python3")
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs python3: apt-get install python3");
    python.stdin.take().unwrap().write_all(xml.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{xml}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split('\x1f').map(str::to_owned).collect()).collect()
}

fn rendered(run: Run, objectives: &[&str]) -> String {
    let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
    render(&Summary::new(run, &objectives))
}

#[test]
fn objectives_are_cases() {
    let xml = rendered(troubled(), &["p99<5ms", "errors<1%", "checkout:p50<10ms"]);
    let seen = read(&xml);
    assert_eq!(seen[0], ["targets.txt", "4", "2", "0", "0"]);
    assert_eq!(seen[1], ["gake.run", "the run is valid"]);
    let failed = ["gake.objective", "p99<5ms", "failure", "p99<5ms is not met: 21.9 ms"];
    assert_eq!(seen[2], failed);
    assert_eq!(seen[3][1..3], ["errors<1%", "failure"]);
    assert_eq!(seen[4], ["gake.objective", "checkout:p50<10ms"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected/troubled.junit.xml");
    bless(&path, &xml);
}

#[test]
fn an_invalid_run_is_an_error_and_its_objectives_are_skipped() {
    let mut run = healthy();
    run.asked_rate = Some(2_000.0);
    let seen = read(&rendered(run, &["p99<1us", "errors<1%"]));
    assert_eq!(seen[0][1..], ["3", "0", "1", "2"]);
    assert_eq!(seen[1][2], "error");
    assert!(seen[1][3].contains("2,000/s asked for"), "{seen:?}");
    assert_eq!(seen[2][2], "skipped");
}

#[test]
fn any_name_of_a_target_is_valid_xml() {
    let hostile = "a\"b'<c>&amp;]]>\u{1}\u{0}\t\u{fffe}č–";
    let mut run = troubled();
    run.plan.target = hostile.to_owned();
    let seen = read(&rendered(run, &["p99<5ms"]));
    assert_eq!(seen[0][0], "a\"b'<c>&amp;]]>\u{fffd}\u{fffd}\t\u{fffd}č–");
}
