//! gake as wrk and wrk2.
//!
//! wrk is gake's closed loop over `-c` users, wrk2 its open loop at `-R` over `-c` connections.
//! Both wait for a response without a limit: their `--timeout` only counts.

#[cfg_attr(not(feature = "lua"), path = "without_lua.rs")]
mod lua;
mod options;
mod report;

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Nanos, nanos};
use gake_core::record::{Fault, Histogram, LatencyMetric, Tally};
use gake_core::spec::{RequestDefaults, RequestSource, RunSpec, ScenarioSpec, TlsSpec};
use gake_run::SecondUpdate;
use gake_wire::Location;
use gake_wire::fault::system_text;
use lua::LuaScript;
use report::{Distribution, Figures, SocketErrors, backfilled, closing, opening};

use crate::NativeResult;
use crate::tool_run::{NEVER, ToolResult, ToolRun, is_connect_fault, responses};
use gake_session::{Console, Exit, Failure};
use options::{Tool, WrkOptions, WrkOptionsError};

/// The time within which wrk's threads notice the end.
const DRAIN: Duration = Duration::from_millis(100);

/// The exit code for a command line that is not valid, and for a failed start.
const WRONG: Exit = Exit::Tool(1);

/// `gake as wrk`.
pub fn wrk(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    run(Tool::Wrk, args, native, console)
}

/// `gake as wrk2`.
pub fn wrk2(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    run(Tool::Wrk2, args, native, console)
}

fn run(
    tool: Tool,
    args: &[String],
    native: &NativeResult,
    console: &Console,
) -> Result<Exit, Failure> {
    let options = match WrkOptions::read(tool, args) {
        Ok(options) => options,
        Err(WrkOptionsError::Refused(why)) => return Err(Failure::could_not(why)),
        Err(WrkOptionsError::Usage(why)) => {
            if let Some(why) = why {
                console.error(&why);
            }
            console.result(tool.usage())?;
            return Ok(WRONG);
        }
    };
    if options.version {
        console.result(concat!("wrk gake/", env!("CARGO_PKG_VERSION"), " [epoll]\n"))?;
    }
    reach(&options.url).map_err(Failure::could_not)?;
    let script = options.script.as_deref().map(|path| LuaScript::load(path, &options));
    let script = script.transpose().map_err(Failure::could_not)?.map(Arc::new);
    let run = ToolRun::prepare(spec(&options), native, console)?;
    let WrkOptions { threads, connections, duration, .. } = options;
    console.result(&opening(&options.url, duration, threads, connections))?;
    let mut rates = Histogram::new();
    let seconds = duration.as_secs();
    let each = &mut |update: &SecondUpdate<'_>| {
        // The last second includes everything after the end.
        if update.second.second <= seconds {
            rates.record(update.second.tally.counts.ended() / threads as u64);
        }
        None
    };
    let result = match &script {
        Some(script) => script.run(&run, each)?,
        None => run.run(None, each)?,
    };
    report(&options, &result, &rates, |figures| {
        console.result(&closing(figures))?;
        script.map_or(Ok(()), |script| script.done(figures).map_err(Failure::could_not))
    })?;
    Ok(Exit::Done)
}

fn spec(options: &WrkOptions) -> RunSpec {
    let load = match options.rate {
        Some(rate) => Load::rate(rate, options.duration),
        None => Load::closed(options.connections),
    };
    let scenario = ScenarioSpec {
        request: RequestDefaults { headers: options.headers.clone(), ..RequestDefaults::default() },
        duration: options.rate.is_none().then_some(options.duration),
        graceful_stop: DRAIN,
        connections: options.connections,
        max_in_flight: options.connections,
        ..ScenarioSpec::new(RequestSource::Url(options.url.clone()), load)
    };
    let mut spec = RunSpec { threads: Some(options.threads), ..RunSpec::new(scenario) };
    spec.connection.timeout = NEVER;
    // Neither tool verifies certificates.
    spec.tls = TlsSpec { insecure: true, ..TlsSpec::default() };
    spec
}

/// Tries one connection, so that an unreachable server is reported before the test.
fn reach(url: &str) -> Result<(), String> {
    let location = Location::parse(url).map_err(|error| error.to_string())?;
    let (host, port) = (location.host.as_str(), location.port);
    TcpStream::connect((host, port)).map(drop).map_err(|error| {
        let why = system_text(&error);
        format!("unable to connect to {host}:{port} {why}")
    })
}

/// Passes what the run measured to `show`.
fn report<R>(
    options: &WrkOptions,
    result: &ToolResult,
    rates: &Histogram,
    show: impl FnOnce(&Figures<'_>) -> R,
) -> R {
    let run = &result.run;
    let tally = &run.tally;
    let timeout = nanos(options.timeout);
    let requests = result.responses();
    let service = tally.latency.of(LatencyMetric::Service);
    let (latency, distribution) = match options.tool {
        Tool::Wrk => {
            // The mean time of a request on one connection.
            let each = requests / options.connections as u64;
            let interval = run.elapsed.checked_div(each).unwrap_or(0);
            let shown =
                if options.latency { Distribution::Percentiles } else { Distribution::None };
            (backfilled(&up_to(service, timeout), interval), shown)
        }
        Tool::Wrk2 => {
            let shown = match (options.latency, options.uncorrected) {
                (_, true) => Distribution::Spectrum(Some(service)),
                (true, false) => Distribution::Spectrum(None),
                (false, false) => Distribution::None,
            };
            (tally.latency.response().into_owned(), shown)
        }
    };
    show(&Figures {
        latency: &latency,
        rates,
        distribution,
        requests,
        bytes: tally.counts.bytes_in,
        runtime: Duration::from_nanos(run.elapsed),
        errors: socket_errors(options.tool, tally, timeout),
        bad_statuses: responses(run, |status| status > 399),
    })
}

/// The values up to `limit`: wrk counts longer ones as time-outs and leaves them out.
fn up_to(all: &Histogram, limit: Nanos) -> Histogram {
    if all.max() <= limit {
        return all.clone();
    }
    let mut within = Histogram::new();
    for bucket in all.buckets() {
        let value = bucket.high.clamp(all.min(), all.max());
        if value <= limit {
            within.record_n(value, bucket.count);
        }
    }
    within
}

fn socket_errors(tool: Tool, tally: &Tally, timeout: Nanos) -> SocketErrors {
    let over = |metric| {
        let histogram = tally.latency.of(metric);
        histogram.count() - histogram.count_up_to(timeout)
    };
    let answered = over(LatencyMetric::Service);
    let unanswered = match tool {
        // A request is due when it is sent, so one that took longer than the time-out and got no
        // response was still in flight at the end.
        Tool::Wrk => (over(LatencyMetric::OkResponse) + over(LatencyMetric::OtherResponse))
            .saturating_sub(answered)
            .min(tally.counts.unfinished),
        // The wait before sending does not count towards the time-out.
        Tool::Wrk2 => 0,
    };
    let connect = tally.faults_where(is_connect_fault);
    let write = tally.faults_where(|fault| fault == Fault::Write);
    SocketErrors {
        connect,
        write,
        read: tally.faults_where(|_| true) - connect - write,
        timeout: answered + unanswered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_comes_back, words};

    #[test]
    fn specs_of_wrk_and_wrk2_come_back() {
        for (tool, line) in [
            (Tool::Wrk, "-t2 -c10 -d2s -H A:b http://h/"),
            (Tool::Wrk2, "-t2 -c10 -d2s -R 2k http://h/"),
        ] {
            let options = WrkOptions::read(tool, &words(line)).unwrap();
            assert_comes_back(&spec(&options));
        }
    }
}
