//! The output of a run before its summary: a description, and its progress.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use gake_core::clock::nanos;
use gake_k6::options::{K6Options, described, progressed};
use gake_k6::test::Test;
use gake_text::redact::Redactor;

use super::flags::RunFlags;
use gake_session::Console;
use gake_session::Failure;
use gake_session::StatusLine;

/// The interval between lines.
const EVERY: Duration = Duration::from_secs(1);

/// k6's banner before a run.
const BANNER: &str = r"
         /\      Grafana   /‾‾/  
    /\  /  \     |\  __   /  /   
   /  \/    \    | |/ /  /   ‾‾\ 
  /          \   |   (  |  (‾)  |
 / __________ \  |_|\_\  \_____/ 

";

/// Prints a description of the run, as k6 does before it starts.
pub(super) fn head(
    flags: &RunFlags,
    options: &K6Options,
    execution: &str,
    redactor: &Redactor,
    console: &Console,
) -> Result<(), Failure> {
    if flags.quiet {
        return Ok(());
    }
    let mut text =
        format!("{BANNER}\n{}\n\n", what_runs(execution, &flags.script, &flags.out, redactor));
    for (number, line) in described(options).iter().flat_map(|text| text.lines()).enumerate() {
        text += &format!("{:1$}{line}\n", "", if number == 0 { 5 } else { 14 });
    }
    console.script_result(&format!("{text}\n"))
}

/// Prints the progress of a run once a second when no terminal shows it.
pub(super) struct ProgressLines {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLines {
    /// Starts to print, unless there is `--quiet` or a terminal.
    pub(super) fn start(
        flags: &RunFlags,
        options: &K6Options,
        test: &Arc<Test>,
        console: &Console,
    ) -> Self {
        if flags.quiet || console.out_is_terminal() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let (test, options, console) = (Arc::downgrade(test), options.clone(), *console);
        let print = move || {
            gake_engine::lower_class();
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let Some(test) = test.upgrade() else { return };
                if test.running_for() > Duration::ZERO {
                    // A closed pipe is no error.
                    drop(console.script_result(&progressed(&options, &test.progress(None))));
                }
            }
        };
        // No lines if the thread cannot start.
        let thread = Builder::new().name("gake-progress".to_owned());
        let thread = thread.spawn(print).ok();
        Self { stop: Some(stop), thread }
    }

    /// Ends the printing.
    pub(super) fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        self.end();
    }
}

/// Prints the progress of a run that ended after this time; `is_cut` is whether it was interrupted.
pub(super) fn last(
    flags: &RunFlags,
    options: &K6Options,
    test: &Test,
    (took, is_cut): (Duration, bool),
    console: &Console,
) -> Result<(), Failure> {
    if flags.quiet {
        return Ok(());
    }
    console.script_result(&progressed(options, &test.progress(Some((took, is_cut)))))
}

/// The execution, the script, and the outputs of samples: files, or URLs that may contain secrets.
fn what_runs(execution: &str, script: &str, outputs: &[String], redactor: &Redactor) -> String {
    let outputs = if outputs.is_empty() { "-".to_owned() } else { outputs.join(", ") };
    let lines = [("execution", execution), ("script", script), ("output", &outputs)];
    lines.map(|(what, text)| format!("{what:>14}: {}", &*redactor.text(text))).join("\n")
}

/// The status line on a terminal while users are created and run.
pub(super) fn line(
    flags: &RunFlags,
    test: &Arc<Test>,
    users: u64,
    console: &Console,
) -> Option<StatusLine> {
    let test = Arc::downgrade(test);
    let began = OnceLock::new();
    let text = move || test.upgrade().map_or_else(String::new, |test| status(&test, users, &began));
    if flags.quiet { None } else { console.status_line_with(text) }
}

/// The progress: `users` are created before the first of them runs, which sets `began`.
fn status(test: &Test, users: u64, began: &OnceLock<Instant>) -> String {
    let counters = &test.counters;
    let (ready, completed, interrupted) =
        (counters.ready(), counters.completed(), counters.interrupted());
    let has_begun = counters.iterating() + completed + interrupted > 0;
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
    use gake_text::redact::SecretNames;

    use super::*;
    use gake_session::redaction::redactor_for;

    #[test]
    fn the_password_of_an_output_is_not_shown() {
        let redactor = redactor_for(SecretNames::default()).unwrap();
        let outputs = ["json=a.json", "influxdb=http://me:s3cr3t@db:8086/k6"].map(str::to_owned);
        let shown = what_runs("local", "s.js", &outputs, &redactor);
        let (start, output) = shown.split_once("        output: json=a.json, influxdb=").unwrap();
        assert_eq!(start, "     execution: local\n        script: s.js\n");
        assert!(output.contains("@db:8086/k6") && !output.contains("s3cr3t"), "{shown}");
    }
}
