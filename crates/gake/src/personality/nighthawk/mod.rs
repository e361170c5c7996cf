//! gake as `nighthawk_client`.
//!
//! Both of Nighthawk's loops are our open one: its closed loop waits when every connection is
//! busy, its open loop drops. Its workers are our threads, and arrival n is worker n's, modulo
//! their number.

mod options;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::nanos;
use gake_core::plan::{Overflow, Stage};
use gake_core::record::Outcome;
use gake_core::schedule::Process;
use gake_core::spec::{
    BodySpec, HttpVersion, IpFamily, RequestDefaults, RequestSource, RunSpec, ScenarioSpec, TlsSpec,
};
use gake_report::tools::nighthawk::{Output, Worker, csv, fortio, human, json};
use gake_run::Moment;

use super::attack::{TakeOutcomes, attack, prepare};
use super::native::Native;
use gake_session::Console;
use gake_session::{Exit, Failure};
use options::{Line, Options, OutputFormat, USAGE};

/// Nighthawk bounds connecting, and the run; this is longer than any.
const NEVER: Duration = Duration::from_secs(30 * 86_400);

/// What Nighthawk says when it failed.
const FAILED: Exit = Exit::Tool(1);

/// `gake as nighthawk_client`.
///
/// # Errors
/// Why it cannot be run as asked.
pub fn main(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    match Line::read(args).map_err(Failure::could_not)? {
        Line::Help => console.result(USAGE).map(|()| Exit::Done),
        Line::Version => {
            console.result(concat!("nighthawk_client gake/", env!("CARGO_PKG_VERSION"), "\n"))?;
            Ok(Exit::Done)
        }
        Line::Run(options) => run(*options, native, console),
    }
}

fn run(options: Options, native: &Native, console: &Console) -> Result<Exit, Failure> {
    let spec = spec(&options);
    let prepared = prepare(&spec)?;
    let talks = matches!(options.asked.verbosity.as_str(), "trace" | "debug" | "info");
    if talks {
        announce(&options, console);
    }
    let crew = Crew::new(&options);
    let attacked =
        attack(&spec, &prepared, native, Some(crew.taker()), console, |moment: &Moment<'_>| {
            let dropped = dropped(&options, moment.so_far.tally().counts.dropped);
            let all = [&options.asked.termination[..], &options.asked.failure[..]].concat();
            crew.triggered(&all, dropped)
        })?;
    let dropped = dropped(&options, attacked.run.tally.counts.dropped);
    let failed = crew.triggered(&options.asked.failure, dropped);
    let output = Output {
        workers: crew.finish(dropped),
        execution: Duration::from_nanos(attacked.run.measured),
        started_unix_ns: attacked.run.started_unix_ns,
        asked: options.asked,
    };
    let text = match options.format {
        OutputFormat::Human => human(&output),
        OutputFormat::Json => json(&output),
        OutputFormat::Csv => csv(&output),
        OutputFormat::Fortio => fortio(&output),
    };
    console.result(&text)?;
    if let Some(lost) = attacked.lost {
        console.warn(&lost);
    }
    if let Some(predicate) = failed {
        console.error(&format!("the failure predicate {predicate} was exceeded"));
        return Ok(FAILED);
    }
    if talks {
        console.note("Done.");
    }
    Ok(Exit::Done)
}

/// What it is to gake.
fn spec(options: &Options) -> RunSpec {
    let asked = &options.asked;
    let stage = Stage::step(options.rate(), asked.duration.unwrap_or(Duration::MAX));
    let load = Load::Open { stages: vec![stage], process: process(options) };
    let body = (asked.body_size > 0).then(|| "a".repeat(asked.body_size as usize));
    let scenario = ScenarioSpec {
        request: RequestDefaults {
            method: Some(asked.method.clone()),
            headers: asked.headers.clone(),
            body: body.map(|body| BodySpec::text(&body)),
            user: None,
        },
        connections: options.total(options.connections()),
        max_in_flight: options.total(options.lanes()),
        overflow: match asked.open_loop {
            true => Overflow::Queue { waiting: options.total(asked.max_pending) },
            false => Overflow::Wait,
        },
        ..ScenarioSpec::new(RequestSource::Url(asked.uri.clone()), load)
    };
    let mut spec = RunSpec {
        threads: Some(options.workers),
        spin: options.spin,
        // Nighthawk does not look at certificates.
        tls: TlsSpec { insecure: true, ..TlsSpec::default() },
        ..RunSpec::new(scenario)
    };
    (spec.connection.connect_timeout, spec.connection.timeout) = (asked.timeout, NEVER);
    if let Some(streams) = asked.max_streams {
        spec.connection.http = if asked.is_http3 { HttpVersion::Http3 } else { HttpVersion::Http2 };
        spec.connection.streams = Some(streams.min(asked.max_active) as usize);
    }
    spec.connection.keepalive = asked.max_per_connection != 1;
    spec.connection.family = match asked.address_family.as_str() {
        "v4" => Some(IpFamily::Ipv4),
        "v6" => Some(IpFamily::Ipv6),
        _ => None,
    };
    spec
}

/// How its arrivals are spread.
fn process(options: &Options) -> Process {
    let asked = &options.asked;
    if asked.burst_size <= 1 && asked.jitter.is_zero() {
        return Process::Uniform;
    }
    // Every worker has its own burst.
    let size = options.total(asked.burst_size.max(1)) as u64;
    let size = if asked.burst_size <= 1 { 1 } else { size };
    let jitter = nanos(asked.jitter);
    Process::Bursts { size, jitter }
}

fn announce(options: &Options, console: &Console) {
    let (asked, workers) = (&options.asked, options.workers);
    let limit = asked.duration.map_or_else(
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
            asked.rps
        ));
    }
}

/// What overflowed: in the closed loop nothing does, and what is left waited to the end.
fn dropped(options: &Options, dropped: u64) -> u64 {
    if options.asked.open_loop { dropped } else { 0 }
}

/// The workers' figures, while and after the run.
struct Crew {
    members: Arc<Mutex<Vec<Member>>>,
    /// Whether waiting for a connection is queueing.
    queues: bool,
}

#[derive(Debug, Clone, Default)]
struct Member {
    figures: Worker,
    sent: u64,
}

impl Crew {
    fn new(options: &Options) -> Self {
        let figures = Worker::new(&options.asked);
        let members = vec![Member { figures, sent: 0 }; options.workers];
        Self { members: Arc::new(Mutex::new(members)), queues: options.asked.max_pending > 0 }
    }

    /// Takes outcomes in.
    fn taker(&self) -> TakeOutcomes {
        let (members, queues) = (Arc::clone(&self.members), self.queues);
        Box::new(move |outcomes: &[Outcome]| {
            let mut members = members.lock().unwrap_or_else(PoisonError::into_inner);
            let workers = members.len() as u64;
            for outcome in outcomes {
                let member = &mut members[(outcome.arrival.number % workers) as usize];
                member.figures.record(outcome, queues);
                member.sent += 1;
            }
            Ok(())
        })
    }

    /// The first predicate that a worker's counter exceeds. Drops are counted over all workers,
    /// which have equal parts of them.
    fn triggered(&self, predicates: &[(String, u64)], dropped: u64) -> Option<String> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = dropped.div_ceil(members.len() as u64);
        let overflow = {
            let mut worker = Worker::default();
            worker.overflow(dropped);
            worker
        };
        let value = |name: &str| {
            let figures = members.iter().map(|member| &member.figures).chain([&overflow]);
            figures.filter_map(|figures| figures.counter(name)).max().unwrap_or(0)
        };
        let exceeded = predicates.iter().find(|(name, threshold)| value(name) > *threshold)?;
        Some(format!("{}:{}", exceeded.0, exceeded.1))
    }

    /// The workers, each with what it could not send.
    fn finish(self, dropped: u64) -> Vec<Worker> {
        let members =
            std::mem::take(&mut *self.members.lock().unwrap_or_else(PoisonError::into_inner));
        let (workers, sent) = (members.len() as u64, members.iter().map(|member| member.sent));
        let due = sent.sum::<u64>() + dropped;
        let mut left = dropped;
        let mut figures = Vec::with_capacity(members.len());
        for (number, member) in (0..workers).zip(members) {
            // Arrivals go round.
            let own = due.saturating_sub(number).div_ceil(workers);
            let last = number + 1 == workers;
            let overflow = if last { left } else { own.saturating_sub(member.sent).min(left) };
            left -= overflow;
            let mut worker = member.figures;
            worker.overflow(overflow);
            figures.push(worker);
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_of_nighthawk_comes_back() {
        for line in [
            "127.0.0.1:10000",
            "--open-loop --max-pending-requests 7 --rps 50 --burst-size 5 http://h/",
            "-p http2 --max-concurrent-streams 5 --max-active-requests 12 --concurrency 2 h",
            "--jitter-uniform 0.5s --no-duration --request-body-size 9 http://h/",
        ] {
            let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            let Ok(Line::Run(options)) = Line::read(&args) else { panic!("{line}") };
            crate::personality::assert_comes_back(&spec(&options));
        }
    }
}
