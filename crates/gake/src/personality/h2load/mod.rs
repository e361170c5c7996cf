//! gake as h2load.
//!
//! Clients are connections, and each has `-m` users who share it: our closed loop, or with `--rps`
//! and timing scripts an open one that waits for a stream.

mod options;
mod progress;
mod script;
mod tallied;
#[cfg(test)]
mod tests;
mod uris;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::nanos;
use gake_core::plan::Stage;
use gake_core::record::{Fault, Histogram, Metric, Outcome, Run};
use gake_core::schedule::Process;
use gake_core::spec::{
    BodySpec, ConnectionSpec, HttpVersion, RecordingSpec, RequestDefaults, RequestSource,
    RequestSpec, RunSpec, ScenarioSpec, TlsSpec,
};
use gake_files::Access;
use gake_report::tools::h2load::{H2load, H2loadRequests, H2loadTraffic, report};
use gake_run::{Inputs, Moment, Prepared, unix_now};
use gake_wire::HttpRequest;

use super::attack::{Attacked, TakeOutcomes, attack};
use super::body_file;
use super::gathered::taken;
use super::native::Native;
use gake_session::Console;
use gake_session::{Exit, Failure};
use options::{Extent, Line, Options, Protocols, USAGE};
use progress::{Progress, ended, opening};
use script::Timed;
use tallied::{RequestLog, Tallied};

/// h2load gives no request up by itself; this is longer than any run.
const NEVER: Duration = Duration::from_secs(30 * 86_400);

/// `gake as h2load`.
///
/// # Errors
/// Why it cannot be run as asked.
pub fn main(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    match Line::read(args).map_err(Failure::could_not)? {
        Line::Help => console.result(USAGE)?,
        Line::Version => {
            console.result(concat!("h2load gake/", env!("CARGO_PKG_VERSION"), "\n"))?;
        }
        Line::Run(options) => run(&options, native, console)?,
    }
    Ok(Exit::Done)
}

fn run(options: &Options, native: &Native, console: &Console) -> Result<(), Failure> {
    let spec = spec(options);
    let prepared = prepare(options, &spec)?;
    native.beside(options.log_file.as_deref())?;
    let log = options.log_file.as_deref().map(create).transpose()?;
    console.result(&opening(options))?;
    let warmup = match options.extent {
        Extent::Timed { warmup, .. } => nanos(warmup),
        Extent::Requests(_) => 0,
    };
    let tallied =
        Arc::new(Mutex::new(Tallied::new(options.clients, prepared.plan.workers(), warmup)));
    let sink = sink(&tallied, log.map(|file| RequestLog::new(file, unix_now())));
    let mut progress = Progress::new(options);
    let attacked = attack(&spec, &prepared, native, Some(sink), console, |moment: &Moment<'_>| {
        let text = progress.at(moment.second.second, moment.so_far.tally());
        // Who closed the output is noticed at the end.
        let _ = console.result(&text);
        None
    })?;
    console.result(&progress.end(&attacked.run.tally))?;
    let tallied = taken(&tallied);
    let rates = tallied.rates();
    let figures = H2load {
        connect: &tallied.connect,
        first_byte: &tallied.first_byte,
        rates: &rates,
        ..figures(options, &attacked, &rates)
    };
    console.result(&report(&figures))?;
    if let Some(lost) = &attacked.lost {
        console.warn(lost);
    }
    Ok(())
}

fn create(path: &str) -> Result<std::fs::File, Failure> {
    gake_files::create(Path::new(path), Access::Mask)
        .map_err(|error| Failure::could_not(format!("{path} cannot be written: {error}")))
}

/// Takes every outcome into `tallied`, and into the log if there is one.
fn sink(tallied: &Arc<Mutex<Tallied>>, mut log: Option<RequestLog>) -> TakeOutcomes {
    let tallied = Arc::clone(tallied);
    Box::new(move |outcomes: &[Outcome]| {
        let mut tallied = tallied.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.iter().for_each(|outcome| tallied.take(outcome));
        let Some(log) = &mut log else { return Ok(()) };
        outcomes.iter().filter(|outcome| tallied.counts(outcome)).for_each(|o| log.add(o));
        log.flush()
    })
}

/// What it is to gake.
fn spec(options: &Options) -> RunSpec {
    let request = RequestDefaults {
        method: options.method.clone(),
        headers: options.headers.clone(),
        body: options.data.as_ref().map(|path| BodySpec::File(path.into())),
        user: None,
    };
    let (source, request) = match (&options.script, options.uris.as_slice()) {
        (Some(script), _) => {
            let path = PathBuf::from(&script.path);
            let to = origin(&options.uris[0]).to_owned();
            let recording = RecordingSpec { path, to, select: Vec::new() };
            // The requests of a script hold everything themselves.
            (RequestSource::Recording(recording), RequestDefaults::default())
        }
        (None, [uri]) => (RequestSource::Url(uri.clone()), request),
        (None, uris) => {
            (RequestSource::Requests(uris.iter().map(RequestSpec::new).collect()), request)
        }
    };
    let (load, warmup) = load(options);
    let is_closed = !load.is_open();
    let ends = match options.extent {
        Extent::Timed { duration, .. } => Some(duration),
        Extent::Requests(_) => options.active_timeout,
    };
    let requests = match options.extent {
        Extent::Requests(requests) if options.script.is_none() => Some(requests),
        _ => None,
    };
    let scenario = ScenarioSpec {
        request,
        duration: ends.filter(|_| is_closed || options.script.is_some()),
        requests,
        graceful_stop: if ends.is_some() { Duration::ZERO } else { NEVER },
        connections: options.clients,
        max_in_flight: options.lanes(),
        ..ScenarioSpec::new(source, load)
    };
    RunSpec {
        threads: Some(options.threads),
        warmup,
        connection: connection(options),
        // h2load does not look at certificates.
        tls: TlsSpec { insecure: true, ..TlsSpec::default() },
        ..RunSpec::new(scenario)
    }
}

fn load(options: &Options) -> (Load, Duration) {
    let (warmup, duration) = match options.extent {
        Extent::Timed { warmup, duration } => (warmup, duration),
        Extent::Requests(_) => (Duration::ZERO, options.active_timeout.unwrap_or(Duration::MAX)),
    };
    let load = match (&options.script, options.rps) {
        (Some(_), _) => Load::Replay { speed: 1.0, trace: None },
        (None, Some(rps)) => {
            let stage = Stage::step(rps * options.clients as f64, duration);
            Load::Open { stages: vec![stage], process: Process::Uniform }
        }
        (None, None) => Load::closed(options.lanes()),
    };
    (load, warmup)
}

fn connection(options: &Options) -> ConnectionSpec {
    let is_http2 = options.protocols != Protocols::Http1;
    let (stream_window, connection_window) = options.windows;
    ConnectionSpec {
        timeout: options.inactivity_timeout.unwrap_or(NEVER),
        connect_timeout: NEVER,
        http: match options.protocols {
            Protocols::Http1 => HttpVersion::Http11,
            Protocols::Http2 => HttpVersion::Http2,
            Protocols::Either => HttpVersion::Auto,
        },
        streams: is_http2.then_some(options.streams),
        stream_window: is_http2.then_some(stream_window),
        connection_window: is_http2.then_some(connection_window),
        unix_socket: options.unix_socket.as_ref().map(PathBuf::from),
        connect_to: options.connect_to.iter().map(|to| connect_to(to)).collect(),
        ..ConnectionSpec::default()
    }
}

/// `HOST[:PORT]` for every origin, as curl writes it.
fn connect_to(to: &str) -> String {
    let host = to.find(']').unwrap_or(0);
    if to[host..].contains(':') { format!("::{to}") } else { format!("::{to}:") }
}

/// The part of a URI before its path.
fn origin(uri: &str) -> &str {
    let host = uri.find("://").map_or(0, |at| at + 3);
    uri[host..].find('/').map_or(uri, |at| &uri[..host + at])
}

fn prepare(options: &Options, spec: &RunSpec) -> Result<Prepared, Failure> {
    let Some(script) = &options.script else { return super::attack::prepare(spec) };
    let body = match &options.data {
        Some(path) => {
            let body = body_file(path);
            let body = body
                .map_err(|error| Failure::could_not(format!("{path} cannot be read: {error}")))?;
            Some(Arc::from(body))
        }
        None => None,
    };
    let method = match (&options.method, &body) {
        (Some(method), _) => method.as_str(),
        (None, Some(_)) => "POST",
        (None, None) => "GET",
    };
    let request = |uri: &String| HttpRequest {
        headers: options.headers.clone(),
        body: body.clone(),
        ..HttpRequest::new(method, uri.as_str())
    };
    let requests = options.uris.iter().map(request).collect();
    let timed = Timed { script, requests, clients: options.clients };
    let inputs = Inputs { recordings: Some(&timed), ..Inputs::default() };
    Prepared::new(spec, inputs).map_err(|error| gake_session::spec_error::failure(&error))
}

/// The figures of a run, without those of its connections.
fn figures<'a>(options: &Options, attacked: &'a Attacked, none: &'a Histogram) -> H2load<'a> {
    let run = &attacked.run;
    let counts = &run.tally.counts;
    let classes = classes(run);
    let took = Duration::from_nanos(run.elapsed);
    let (headers, header_text) = match counts.streams {
        // Heads and framing, which HTTP/1.1 does not compress.
        0 => (counts.bytes_in.saturating_sub(counts.body_bytes), 0),
        _ => (counts.header_bytes, counts.header_text_bytes),
    };
    H2load {
        took,
        base: match options.extent {
            Extent::Timed { duration, .. } => duration,
            Extent::Requests(_) => took,
        },
        requests: requests(options, run, classes),
        classes,
        traffic: H2loadTraffic {
            total: counts.bytes_in,
            headers,
            header_text,
            data: counts.body_bytes,
        },
        request: run.tally.latency.of(Metric::Service),
        connect: none,
        first_byte: none,
        rates: none,
    }
}

/// Answers of the classes 2xx to 5xx.
fn classes(run: &Run) -> [u64; 4] {
    let mut classes = [0; 4];
    for &(status, count) in run.tally.statuses() {
        classes[usize::from((status / 100).clamp(2, 5) - 2)] += count;
    }
    classes
}

fn requests(options: &Options, run: &Run, classes: [u64; 4]) -> H2loadRequests {
    let counts = &run.tally.counts;
    let answered: u64 = classes.iter().sum();
    let faults = run.tally.faults_where(|_| true);
    let unconnected = |fault: Fault| fault.is_before_connection() || matches!(fault, Fault::Tls(_));
    let timed_out = |fault: Fault| matches!(fault, Fault::Timeout(_) | Fault::ConnectTimeout);
    let slow = run.tally.faults_where(timed_out);
    let succeeded = classes[0] + classes[1];
    let (total, errored, timed_out) = match options.extent {
        Extent::Requests(total) => {
            let cut = if options.active_timeout.is_some() { counts.unfinished } else { 0 };
            (total, total.saturating_sub(answered), slow + cut)
        }
        // What is in flight at the end of the time is neither done nor failed.
        Extent::Timed { .. } => (answered + faults, faults, slow),
    };
    H2loadRequests {
        total,
        started: counts.sent.saturating_sub(run.tally.faults_where(unconnected)),
        done: ended(&run.tally),
        succeeded,
        failed: classes[2] + classes[3] + errored,
        errored,
        timed_out,
    }
}
