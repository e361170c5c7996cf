//! gake as `nighthawk_client`.
//!
//! Both loops of Nighthawk are gake's open loop: its closed loop waits when every connection is
//! busy, its open loop drops. Its workers are gake's threads, and arrival n belongs to worker n
//! modulo their number.

mod options;
mod report;

use std::time::Duration;

use gake_core::Load;
use gake_core::clock::nanos;
use gake_core::plan::{Overflow, Stage};
use gake_core::schedule::Process;
use gake_core::spec::{
    BodySpec, HttpVersion, IpFamily, RequestDefaults, RequestSource, RunSpec, ScenarioSpec, TlsSpec,
};
use gake_run::SecondUpdate;
use report::{Output, Worker, csv, fortio, human, json};

use crate::NativeResult;
use crate::flags::CommandLine;
use crate::outcome_stats::StatsCollector;
use crate::tool_run::{NEVER, OutcomeHandler, ToolRun};
use gake_session::{Console, Exit, Failure};
use options::{NighthawkOptions, OutputFormat, USAGE};

/// Nighthawk's exit code after a failure.
const FAILED: Exit = Exit::Tool(1);

/// `gake as nighthawk_client`.
pub fn main(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    match NighthawkOptions::read(args).map_err(Failure::could_not)? {
        CommandLine::Help => console.result(USAGE).map(|()| Exit::Done),
        CommandLine::Version => {
            console.result(concat!("nighthawk_client gake/", env!("CARGO_PKG_VERSION"), "\n"))?;
            Ok(Exit::Done)
        }
        CommandLine::Run(options) => run(*options, native, console),
    }
}

fn run(
    options: NighthawkOptions,
    native: &NativeResult,
    console: &Console,
) -> Result<Exit, Failure> {
    let run = ToolRun::prepare(spec(&options), native, console)?;
    let talks = matches!(options.settings.verbosity.as_str(), "trace" | "debug" | "info");
    if talks {
        announce(&options, console);
    }
    let workers = Workers::new(&options);
    let result = run.run(Some(workers.handler()), &mut |update: &SecondUpdate<'_>| {
        let dropped = dropped(&options, update.so_far.tally().counts.dropped);
        let all = [&options.settings.termination[..], &options.settings.failure[..]].concat();
        workers.exceeded(&all, dropped)
    })?;
    let dropped = dropped(&options, result.run.tally.counts.dropped);
    let failed = workers.exceeded(&options.settings.failure, dropped);
    let output = Output {
        workers: workers.finish(dropped),
        execution: Duration::from_nanos(result.run.measured),
        started_unix_ns: result.run.started_unix_ns,
        settings: options.settings,
    };
    let text = match options.format {
        OutputFormat::Human => human(&output),
        OutputFormat::Json => json(&output),
        OutputFormat::Csv => csv(&output),
        OutputFormat::Fortio => fortio(&output),
    };
    console.result(&text)?;
    result.warn_of_loss(console);
    if let Some(predicate) = failed {
        console.error(&format!("the failure predicate {predicate} was exceeded"));
        return Ok(FAILED);
    }
    if talks {
        console.note("Done.");
    }
    Ok(Exit::Done)
}

fn spec(options: &NighthawkOptions) -> RunSpec {
    let settings = &options.settings;
    let stage = Stage::step(options.rate(), settings.duration.unwrap_or(Duration::MAX));
    let load = Load::Open { stages: vec![stage], process: process(options) };
    let body = (settings.body_size > 0).then(|| "a".repeat(settings.body_size as usize));
    let scenario = ScenarioSpec {
        request: RequestDefaults {
            method: Some(settings.method.clone()),
            headers: settings.headers.clone(),
            body: body.map(|body| BodySpec::text(&body)),
            user: None,
        },
        connections: options.total(options.connections()),
        max_in_flight: options.total(options.lanes()),
        overflow: match settings.open_loop {
            true => Overflow::Queue { waiting: options.total(settings.max_pending) },
            false => Overflow::Wait,
        },
        ..ScenarioSpec::new(RequestSource::Url(settings.uri.clone()), load)
    };
    let mut spec = RunSpec {
        threads: Some(options.workers),
        spin: options.spin,
        // Nighthawk does not verify certificates.
        tls: TlsSpec { insecure: true, ..TlsSpec::default() },
        ..RunSpec::new(scenario)
    };
    (spec.connection.connect_timeout, spec.connection.timeout) = (settings.timeout, NEVER);
    if let Some(streams) = settings.max_streams {
        spec.connection.http =
            if settings.is_http3 { HttpVersion::Http3 } else { HttpVersion::Http2 };
        spec.connection.streams = Some(streams.min(settings.max_active) as usize);
    }
    spec.connection.keepalive = settings.max_per_connection != 1;
    spec.connection.family = match settings.address_family.as_str() {
        "v4" => Some(IpFamily::Ipv4),
        "v6" => Some(IpFamily::Ipv6),
        _ => None,
    };
    spec
}

/// The distribution of its arrivals.
fn process(options: &NighthawkOptions) -> Process {
    let settings = &options.settings;
    if settings.burst_size <= 1 && settings.jitter.is_zero() {
        return Process::Uniform;
    }
    // Every worker has its own burst.
    let size = options.total(settings.burst_size.max(1)) as u64;
    let size = if settings.burst_size <= 1 { 1 } else { size };
    let jitter = nanos(settings.jitter);
    Process::Bursts { size, jitter }
}

fn announce(options: &NighthawkOptions, console: &Console) {
    let (settings, workers) = (&options.settings, options.workers);
    let limit = settings.duration.map_or_else(
        || "No time limit.".to_owned(),
        |duration| format!("Time limit: {} seconds.", duration.as_secs()),
    );
    console.note(&format!("Starting {workers} threads / event loops. {limit}"));
    console.note(&format!(
        "Global targets: {} connections and {} calls per second.",
        options.total(options.connections()),
        options.rate()
    ));
    if workers > 1 {
        console.note(&format!(
            "   (Per-worker targets: {} connections and {} calls per second)",
            options.connections(),
            settings.rps
        ));
    }
}

/// The overflow: in the closed loop there is none, since arrivals wait to the end.
fn dropped(options: &NighthawkOptions, dropped: u64) -> u64 {
    if options.settings.open_loop { dropped } else { 0 }
}

/// The workers' figures, during and after the run.
struct Workers {
    stats: StatsCollector<Vec<WorkerStats>>,
    /// Whether waiting for a connection counts as queueing.
    queues: bool,
}

#[derive(Debug, Clone, Default)]
struct WorkerStats {
    figures: Worker,
    sent: u64,
}

impl Workers {
    fn new(options: &NighthawkOptions) -> Self {
        let figures = Worker::new(&options.settings);
        let workers = vec![WorkerStats { figures, sent: 0 }; options.workers];
        Self { stats: StatsCollector::new(workers), queues: options.settings.max_pending > 0 }
    }

    /// A handler that adds every outcome to its worker.
    fn handler(&self) -> OutcomeHandler {
        let queues = self.queues;
        self.stats.each(move |workers, outcome| {
            let number = outcome.arrival.number % workers.len() as u64;
            let worker = &mut workers[number as usize];
            worker.figures.record(outcome, queues);
            worker.sent += 1;
        })
    }

    /// The first predicate that a worker's counter exceeds. Drops are counted over all workers,
    /// which share them equally.
    fn exceeded(&self, predicates: &[(String, u64)], dropped: u64) -> Option<String> {
        let workers = self.stats.lock();
        let dropped = dropped.div_ceil(workers.len() as u64);
        let overflow = {
            let mut worker = Worker::default();
            worker.overflow(dropped);
            worker
        };
        let value = |name: &str| {
            let figures = workers.iter().map(|worker| &worker.figures).chain([&overflow]);
            figures.filter_map(|figures| figures.counter(name)).max().unwrap_or(0)
        };
        let exceeded = predicates.iter().find(|(name, threshold)| value(name) > *threshold)?;
        Some(format!("{}:{}", exceeded.0, exceeded.1))
    }

    /// The workers, each with its dropped requests.
    fn finish(self, dropped: u64) -> Vec<Worker> {
        let stats = self.stats.finish();
        let (workers, sent) = (stats.len() as u64, stats.iter().map(|worker| worker.sent));
        let due = sent.sum::<u64>() + dropped;
        let mut left = dropped;
        let mut figures = Vec::with_capacity(stats.len());
        for (number, worker) in (0..workers).zip(stats) {
            // Workers get arrivals in turn.
            let own = due.saturating_sub(number).div_ceil(workers);
            let last = number + 1 == workers;
            let overflow = if last { left } else { own.saturating_sub(worker.sent).min(left) };
            left -= overflow;
            let mut worker = worker.figures;
            worker.overflow(overflow);
            figures.push(worker);
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_comes_back, words};

    #[test]
    fn a_spec_of_nighthawk_comes_back() {
        for line in [
            "127.0.0.1:10000",
            "--open-loop --max-pending-requests 7 --rps 50 --burst-size 5 http://h/",
            "-p http2 --max-concurrent-streams 5 --max-active-requests 12 --concurrency 2 h",
            "--jitter-uniform 0.5s --no-duration --request-body-size 9 http://h/",
        ] {
            let Ok(CommandLine::Run(options)) = NighthawkOptions::read(&words(line)) else {
                panic!("{line}")
            };
            assert_comes_back(&spec(&options));
        }
    }
}
