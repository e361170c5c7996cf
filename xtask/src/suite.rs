//! The tests, run by nextest, and what its report says of them: counts, flaky tests, slow ones.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tools::NEXTEST;
use crate::workspace;

/// A variable in the environment of the tests.
type Variable = (&'static str, String);

/// Runs nextest with a profile and `args`; returns the lines of the summary, and how it ended.
///
/// # Errors
/// If the report of nextest cannot be read.
pub fn run(
    profile: &str,
    args: &[&str],
    variables: &[Variable],
) -> Result<(Vec<String>, Result<()>)> {
    let report = workspace::target_dir()?.join("nextest").join(profile).join("junit.xml");
    if report.exists() {
        fs::remove_file(&report)?;
    }
    // Most tests wait most of their time, for a run to end: three a core take a third of the time
    // of one, and a sixth less than two.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (std::env::var_os("NEXTEST_TEST_THREADS").is_none())
        .then(|| ("NEXTEST_TEST_THREADS", (3 * cores).to_string()));
    let env: Vec<_> =
        threads.iter().chain(variables).map(|(name, value)| (*name, value.as_str())).collect();
    let ended = NEXTEST.run(&[&["run", "--workspace", "--profile", profile], args].concat(), &env);
    let lines = if report.is_file() { Report::read(&report)?.lines() } else { Vec::new() };
    Ok((lines, ended))
}

/// What a run of the tests came to.
#[derive(Debug, Default, PartialEq)]
struct Report {
    /// Each test, and its seconds.
    tests: Vec<(String, f64)>,
    failed: Vec<String>,
    /// Passed when they were run again.
    flaky: Vec<String>,
}

/// Tests whose times are shown.
const SLOWEST: usize = 10;

impl Report {
    fn read(path: &Path) -> Result<Self> {
        Ok(Self::parse(&fs::read_to_string(path).with_context(|| path.display().to_string())?))
    }

    /// Reads JUnit's XML as nextest writes it: what a test printed is escaped in it.
    fn parse(xml: &str) -> Self {
        let mut report = Self::default();
        for case in xml.split("<testcase").skip(1) {
            let (tag, rest) = case.split_once('>').unwrap_or((case, ""));
            let inside = rest.split("</testcase>").next().unwrap_or_default();
            let value = |name: &str| {
                let value = tag.split_once(&format!(" {name}=\""));
                value.and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default()
            };
            let name = format!("{} {}", value("classname"), value("name"));
            let name = name.trim_start().to_owned();
            if inside.contains("<flakyFailure") {
                report.flaky.push(name.clone());
            } else if !tag.ends_with('/') && inside.contains("<failure") {
                report.failed.push(name.clone());
            }
            report.tests.push((name, value("time").parse().unwrap_or_default()));
        }
        report
    }

    fn lines(mut self) -> Vec<String> {
        self.tests.sort_by(|a, b| b.1.total_cmp(&a.1));
        let slow = self.tests.iter().take(SLOWEST);
        let mut lines: Vec<_> =
            slow.map(|(name, seconds)| format!("slow   {seconds:6.1} s  {name}")).collect();
        lines.extend(self.flaky.iter().map(|name| format!("flaky            {name}")));
        lines.extend(self.failed.iter().map(|name| format!("FAILED           {name}")));
        let (all, failed) = (self.tests.len(), self.failed.len());
        let flaky = self.flaky.len();
        lines.push(format!("{} passed, {failed} failed, {flaky} flaky", all - failed));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_flaky_and_slow_tests_are_read_from_the_report() {
        let xml = r#"<testsuites name="nextest-run"><testsuite name="gake::run">
            <testcase name="a::b" classname="gake::run" timestamp="2026" time="1.5">
            </testcase>
            <testcase name="c" classname="gake" timestamp="2026" time="3.0">
                <failure message="x">&lt;testcase </failure><rerunFailure></rerunFailure>
            </testcase>
            <testcase name="d" classname="gake" time="0.1"><flakyFailure></flakyFailure></testcase>
            "#;
        let report = Report::parse(xml);
        assert_eq!(report.failed, ["gake c"]);
        assert_eq!(report.flaky, ["gake d"]);
        let lines = report.lines();
        assert_eq!(lines[0], "slow      3.0 s  gake c");
        assert_eq!(lines.last().map(String::as_str), Some("2 passed, 1 failed, 1 flaky"));
    }
}
