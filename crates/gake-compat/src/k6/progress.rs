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
    let outputs = match outputs {
        [] => "-".to_owned(),
        outputs => {
            outputs.iter().map(|output| described_output(output)).collect::<Vec<_>>().join(", ")
        }
    };
    let lines = [("execution", execution), ("script", script), ("output", &outputs)];
    lines.map(|(what, text)| format!("{what:>14}: {}", &*redactor.text(text))).join("\n")
}

/// An output as k6 describes it.
fn described_output(output: &str) -> String {
    match output.split_once('=').unwrap_or((output, "")) {
        ("json", "" | "-") => "json(stdout)".to_owned(),
        ("csv", "" | "-") => "csv (stdout)".to_owned(),
        (format @ ("json" | "csv"), file) => format!("{format} ({file})"),
        // Without the user and the database, which is the last segment of the path.
        ("influxdb", url) if url.contains("://") => {
            let (scheme, rest) = url.split_once("://").unwrap_or_default();
            let rest = rest.split('?').next().unwrap_or_default();
            let server = rest.rsplit_once('/').map_or(rest, |(server, _)| server);
            let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
            format!("InfluxDBv1 ({scheme}://{host})")
        }
        ("experimental-prometheus-rw", url) if !url.is_empty() => {
            format!("Prometheus remote write ({url})")
        }
        _ => output.to_owned(),
    }
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
    fn outputs_are_described_as_in_k6_without_passwords() {
        let redactor = redactor_for(SecretNames::default()).unwrap();
        let outputs = [
            "json=a.json",
            "json",
            "csv=b.csv.gz",
            "influxdb=http://me:s3cr3t@db:8086/proxy/k6?insecure=true",
            "influxdb=https://db/",
            "experimental-prometheus-rw=http://me:s3cr3t@p/write",
            "opentelemetry",
        ];
        let shown = what_runs("local", "s.js", &outputs.map(str::to_owned), &redactor);
        let expected = "     execution: local\n        script: s.js\n        output: \
                        json (a.json), json(stdout), csv (b.csv.gz), \
                        InfluxDBv1 (http://db:8086/proxy), InfluxDBv1 (https://db), \
                        Prometheus remote write (http://me:redacted-";
        assert!(shown.starts_with(expected) && !shown.contains("s3cr3t"), "{shown}");
        assert!(shown.ends_with("@p/write), opentelemetry"), "{shown}");
    }
}
