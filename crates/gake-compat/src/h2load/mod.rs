//! gake as h2load.
//!
//! Clients are connections, each shared by `-m` users. That is gake's closed loop, or with `--rps`
//! and timing scripts an open loop that waits for a stream.

mod options;
mod output;
mod progress;
mod report;
mod script;
mod stats;
#[cfg(test)]
mod tests;
mod uris;

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::nanos;
use gake_core::plan::Stage;
use gake_core::record::{Fault, Histogram, LatencyMetric, Run};
use gake_core::schedule::Process;
use gake_core::spec::{
    BodySpec, ConnectionSpec, HttpVersion, RecordingSpec, RequestDefaults, RequestSource,
    RequestSpec, RunSpec, ScenarioSpec, TlsSpec,
};
use gake_run::{Inputs, SecondUpdate, unix_now};
use gake_wire::HttpRequest;
use report::{H2load, H2loadRequests, H2loadTraffic, report};

use crate::NativeResult;
use crate::flags::CommandLine;
use crate::outcome_stats::StatsCollector;
use crate::tool_run::{NEVER, OutcomeHandler, ToolResult, ToolRun, is_connect_fault};
use gake_run::body_file;
use gake_session::files::create;
use gake_session::{Console, Exit, Failure};
use options::{Extent, H2loadOptions, Protocols, USAGE};
use progress::{H2loadProgress, ended, opening};
use script::TimedRequests;
use stats::{H2loadStats, TimingLog};

/// `gake as h2load`.
pub fn main(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    match H2loadOptions::read(args).map_err(Failure::could_not)? {
        CommandLine::Help => console.result(USAGE)?,
        CommandLine::Version => {
            console.result(concat!("h2load gake/", env!("CARGO_PKG_VERSION"), "\n"))?;
        }
        CommandLine::Run(options) => run(&options, native, console)?,
    }
    Ok(Exit::Done)
}

fn run(options: &H2loadOptions, native: &NativeResult, console: &Console) -> Result<(), Failure> {
    let run = prepare(options, native, console)?;
    let files = [options.log_file.as_deref(), options.output_file.as_deref()];
    native.check_conflicts(files.into_iter().flatten())?;
    let log = options.log_file.as_deref().map(Path::new).map(create).transpose()?;
    let output = options.output_file.as_deref().map(Path::new).map(create).transpose()?;
    console.result(&opening(options))?;
    let warmup = match options.extent {
        Extent::Timed { warmup, .. } => nanos(warmup),
        Extent::Requests(_) => 0,
    };
    let stats = H2loadStats::new(options.clients, run.prepared.plan.workers(), warmup);
    let stats = StatsCollector::new(stats);
    let log = log.map(|file| TimingLog::new(file, unix_now()));
    let mut progress = H2loadProgress::new(options);
    let result = run.run(Some(handler(&stats, log)), &mut |update: &SecondUpdate<'_>| {
        let text = progress.at(update.second.second, update.so_far.tally());
        // A closed output is noticed at the end.
        let _ = console.result(&text);
        None
    })?;
    console.result(&progress.end(&result.run.tally))?;
    let stats = stats.finish();
    let rates = stats.rates();
    let figures = H2load {
        connect: &stats.connect,
        first_byte: &stats.first_byte,
        rates: &rates,
        ..figures(options, &result, &rates)
    };
    console.result(&report(&figures))?;
    if let Some(file) = output {
        let mut file = BufWriter::new(file);
        let written = output::write(&mut file, &figures, options.threads);
        written.and_then(|()| file.flush()).map_err(|error| {
            Failure::could_not(format!("the result cannot be written: {error}"))
        })?;
    }
    result.warn_of_loss(console);
    Ok(())
}

/// Adds every outcome to `stats`, and to the log if there is one.
fn handler(stats: &StatsCollector<H2loadStats>, mut log: Option<TimingLog>) -> OutcomeHandler {
    stats.handler(move |stats, outcomes| {
        outcomes.iter().for_each(|outcome| stats.record(outcome));
        let Some(log) = &mut log else { return Ok(()) };
        outcomes.iter().filter(|outcome| stats.counts(outcome)).for_each(|o| log.add(o));
        log.flush()
    })
}

fn spec(options: &H2loadOptions) -> RunSpec {
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
            // The requests of a script are complete.
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
        // h2load does not verify certificates.
        tls: TlsSpec { insecure: true, ..TlsSpec::default() },
        ..RunSpec::new(scenario)
    }
}

fn load(options: &H2loadOptions) -> (Load, Duration) {
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

fn connection(options: &H2loadOptions) -> ConnectionSpec {
    let is_http2 = options.protocols != Protocols::Http1;
    let (stream_window, connection_window) = options.windows;
    ConnectionSpec {
        timeout: options.inactivity_timeout.unwrap_or(NEVER),
        connect_timeout: NEVER,
        http: match options.protocols {
            Protocols::Http1 => HttpVersion::Http11,
            Protocols::Http2 => HttpVersion::Http2,
            Protocols::Http3 => HttpVersion::Http3,
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

fn prepare<'a>(
    options: &H2loadOptions,
    native: &'a NativeResult,
    console: &'a Console,
) -> Result<ToolRun<'a>, Failure> {
    let spec = spec(options);
    let Some(script) = &options.script else { return ToolRun::prepare(spec, native, console) };
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
    let timed = TimedRequests { script, requests, clients: options.clients };
    let inputs = Inputs { recordings: Some(&timed), ..Inputs::default() };
    ToolRun::with_inputs(spec, inputs, native, console)
}

/// The figures of a run, without the ones that are counted per connection.
fn figures<'a>(options: &H2loadOptions, result: &'a ToolResult, none: &'a Histogram) -> H2load<'a> {
    let run = &result.run;
    let counts = &run.tally.counts;
    let classes = classes(run);
    let took = Duration::from_nanos(run.elapsed);
    let (headers, header_text) = match counts.streams {
        // Headers and framing, which HTTP/1.1 does not compress.
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
        request: run.tally.latency.of(LatencyMetric::Service),
        connect: none,
        first_byte: none,
        rates: none,
        histogram: options.histogram,
    }
}

/// Responses of the classes 2xx to 5xx.
fn classes(run: &Run) -> [u64; 4] {
    let mut classes = [0; 4];
    for &(status, count) in run.tally.statuses() {
        classes[usize::from((status / 100).clamp(2, 5) - 2)] += count;
    }
    classes
}

fn requests(options: &H2loadOptions, run: &Run, classes: [u64; 4]) -> H2loadRequests {
    let counts = &run.tally.counts;
    let answered: u64 = classes.iter().sum();
    let faults = run.tally.faults_where(|_| true);
    let timed_out = |fault: Fault| matches!(fault, Fault::Timeout(_) | Fault::ConnectTimeout);
    let slow = run.tally.faults_where(timed_out);
    let succeeded = classes[0] + classes[1];
    let (total, errored, timed_out) = match options.extent {
        Extent::Requests(total) => {
            let cut = if options.active_timeout.is_some() { counts.unfinished } else { 0 };
            (total, total.saturating_sub(answered), slow + cut)
        }
        // Requests in flight at the end of the time are neither done nor failed.
        Extent::Timed { .. } => (answered + faults, faults, slow),
    };
    H2loadRequests {
        total,
        started: counts.sent.saturating_sub(run.tally.faults_where(is_connect_fault)),
        done: ended(&run.tally),
        succeeded,
        failed: classes[2] + classes[3] + errored,
        errored,
        timed_out,
    }
}
