//! What people see of a run before its summary: what it is about to do, and how far it is.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use gake_core::clock::nanos;
use gake_k6::options::{Options, described};
use gake_k6::test::Test;
use gake_text::redact::Redactor;

use super::flags::RunFlags;
use gake_session::Console;
use gake_session::StatusLine;

/// Tells on standard error what is about to run, as k6 does before it starts.
pub(super) fn head(
    flags: &RunFlags,
    options: &Options,
    execution: &str,
    redactor: &Redactor,
    console: &Console,
) {
    if flags.quiet {
        return;
    }
    console.note("");
    console.note(&what_runs(execution, &flags.script, &flags.out, redactor));
    console.note("");
    for (number, line) in described(options).iter().flat_map(|text| text.lines()).enumerate() {
        console.note(&format!("{:1$}{line}", "", if number == 0 { 5 } else { 14 }));
    }
    console.note("");
}

/// Who runs the script, which it is, and where samples go: to files, or to URLs that may hold
/// secrets.
fn what_runs(execution: &str, script: &str, outputs: &[String], redactor: &Redactor) -> String {
    let outputs = if outputs.is_empty() { "-".to_owned() } else { outputs.join(", ") };
    let lines = [("execution", execution), ("script", script), ("output", &outputs)];
    lines.map(|(what, text)| format!("{what:>14}: {}", redactor.text(text))).join("\n")
}

/// The line that moves on a terminal while users are made and run.
pub(super) fn line(
    flags: &RunFlags,
    test: &Arc<Test>,
    users: u64,
    console: &Console,
) -> Option<StatusLine> {
    let test = Arc::downgrade(test);
    let began = OnceLock::new();
    let text = move || test.upgrade().map_or_else(String::new, |test| status(&test, users, &began));
    if flags.quiet { None } else { console.moving_with(text) }
}

/// How far it is: `users` are made before the first of them runs, which sets when it `began`.
fn status(test: &Test, users: u64, began: &OnceLock<Instant>) -> String {
    let levels = &test.levels;
    let (ready, completed, interrupted) =
        (levels.ready(), levels.completed(), levels.interrupted());
    let has_begun = levels.iterating() + completed + interrupted > 0;
    if ready < users && !has_begun {
        return format!("init  {ready}/{users} VUs initialized");
    }
    let elapsed = began.get_or_init(Instant::now).elapsed();
    format!(
        "running ({:.1}s), {}/{ready} VUs, {completed} complete and {interrupted} interrupted \
         iterations",
        elapsed.as_secs_f64(),
        test.active(nanos(elapsed))
    )
}

#[cfg(test)]
mod tests {
    use gake_text::redact::Names;

    use super::*;
    use gake_session::redaction::usual;

    #[test]
    fn the_password_of_an_output_is_not_told() {
        let redactor = usual(Names::default()).unwrap();
        let outputs = ["json=a.json", "influxdb=http://me:s3cr3t@db:8086/k6"].map(str::to_owned);
        let told = what_runs("local", "s.js", &outputs, &redactor);
        let (start, output) = told.split_once("        output: json=a.json, influxdb=").unwrap();
        assert_eq!(start, "     execution: local\n        script: s.js\n");
        assert!(output.contains("@db:8086/k6") && !output.contains("s3cr3t"), "{told}");
    }
}
