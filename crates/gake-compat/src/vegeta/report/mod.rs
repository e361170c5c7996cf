//! `vegeta report`: summarises results.

mod buckets;
mod metrics;
mod render;
mod tdigest;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use gake_report::vegeta::go;
use gake_text::foreign;

use super::files::{self, ResultFiles};
use crate::flags::{Flag, switch, value};
use crate::outcome_stats::StatsCollector;
use gake_session::{Console, Exit, Failure, signals};
use metrics::Metrics;
use render::{ReportKind, render};

const FLAGS: &[Flag] = &[
    value(&["type", "reporter"]),
    value(&["every"]),
    value(&["output"]),
    value(&["buckets"]),
    switch(&["h", "help"]),
];

const USAGE: &str = "\
Usage: vegeta report [options] [<file>...]

Summarises results; several files are reported as one.

  -type      text, json, hist[0,1ms,10ms] or hdrplot (default text)
  -buckets   buckets of the histogram, or of the JSON report: [0,1ms,10ms]
  -every     repeat the report at this interval while results come, such as 1s
  -output    a file (default stdout)
";

/// The interval of checks for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs the command.
pub fn run(args: &[String], console: &Console) -> Result<Exit, Failure> {
    let Some(parsed) = super::command(FLAGS, USAGE, args, console)? else { return Ok(Exit::Done) };
    let kind = parsed.last("type").unwrap_or("text");
    let buckets = parsed.last("buckets").unwrap_or_default();
    let (kind, buckets) = ReportKind::parse(kind, buckets).map_err(Failure::usage)?;
    let every = parsed
        .read_with("every", |text| go::parse_duration(text).map_err(|error| error.to_string()))
        .map_err(Failure::usage)?;
    let every = every.and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos > 0);
    let metrics = StatsCollector::new(Metrics::new(buckets));
    let results = ResultFiles::open(&parsed.operands)?;
    let name = parsed.last("output").unwrap_or("stdout");
    let mut output = ReportOutput { kind, name, metrics: metrics.clone(), console };
    follow(results, &mut output, every.map(Duration::from_nanos))?;
    output.show(false)?;
    let left_out = metrics.lock().errors_left_out;
    if left_out > 0 {
        console.warn(&format!("{left_out} results have errors beyond the limit of the set"));
    }
    Ok(Exit::Done)
}

/// Reads on a separate thread, so that reports can be shown while no results arrive. After the
/// first signal the writer of the results has time to end them; the second ends the reading.
fn follow(
    mut results: ResultFiles,
    output: &mut ReportOutput<'_>,
    every: Option<Duration>,
) -> Result<(), Failure> {
    let signals = signals::receive().map_err(Failure::signals)?;
    let (done, is_done) = channel();
    let metrics = output.metrics.clone();
    thread::Builder::new()
        .name("gake-results".to_owned())
        .spawn(move || {
            let console = Console::new();
            let result = loop {
                match results.next(&console) {
                    Ok(Some(record)) => metrics.lock().add(&record),
                    Ok(None) => break Ok(()),
                    Err(failure) => break Err(failure),
                }
            };
            // After the second signal there is no receiver.
            let _ = done.send(result);
        })
        .map_err(Failure::could_not)?;
    let mut next = every.map(|every| Instant::now() + every);
    let mut came = 0;
    loop {
        match is_done.recv_timeout(POLL_INTERVAL) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::could_not("reading the results ended unexpectedly"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        came += signals.try_iter().count();
        if came > 1 {
            return Ok(());
        }
        if let (Some(at), Some(every)) = (next, every)
            && Instant::now() >= at
        {
            output.show(true)?;
            next = Some(Instant::now() + every);
        }
    }
}

struct ReportOutput<'a> {
    kind: ReportKind,
    name: &'a str,
    metrics: StatsCollector<Metrics>,
    console: &'a Console,
}

impl ReportOutput<'_> {
    fn show(&mut self, again: bool) -> Result<(), Failure> {
        let text = render(self.kind, &mut self.metrics.lock());
        if self.name == "stdout" {
            if again {
                self.console.clear();
            }
            return self.console.result(&text);
        }
        let mut out = files::create(self.name, self.console)?;
        out.write_all(foreign::lines(&text).as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| files::write_failure(self.name, &error))
    }
}
