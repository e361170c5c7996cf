//! gake as ab.

mod options;
mod report;
mod stats;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::net::ToSocketAddrs as _;
use std::path::Path;

use gake_core::record::{Fault, Tally};
use gake_files::Access;
use gake_wire::fault::system_text;
use report::{Ab, Attributes, FailureCounts, csv, gnuplot, html, text};

use crate::NativeResult;
use crate::outcome_stats::StatsCollector;
use crate::tool_run::{ToolResult, ToolRun, is_connect_fault, responses};
use gake_session::{Console, Exit, Failure};
use options::AbOptions;
use stats::AbStats;

/// ab's exit code for a command line that is not valid.
const BAD_USAGE: u8 = 22;

/// ab's exit code for a name without an address: the last byte of the code in its message.
const UNRESOLVED: u8 = 50;

const BANNER: &str = concat!(
    "This is gake ",
    env!("CARGO_PKG_VERSION"),
    ", behaving as ApacheBench, Version 2.3\n\
     Not the Apache Software Foundation's: see `gake --help`\n\
     Licensed under the Apache License, Version 2.0\n\n"
);

/// The end of a command line without a run.
#[derive(Debug, PartialEq)]
pub enum AbUsageError {
    /// A request for help.
    Help,
    /// A request for the version.
    Version,
    /// A command line that cannot be parsed.
    Usage(String),
    /// A value that is not valid, reported without the usage.
    Plain(String),
}

/// Runs ab's command line.
pub fn main(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    let options = match AbOptions::read(args) {
        Ok(options) => options,
        Err(wrong) => return refuse(&wrong, console),
    };
    let run = match ToolRun::prepare(options.spec(), native, console) {
        Err(_) if is_unresolved(&options) => {
            console.result(&opening(&options))?;
            let host = &options.location.host;
            let why = "Name or service not known (670002)";
            console.plain(&format!("apr_sockaddr_info_get() for {host}: {why}\n"));
            return Ok(Exit::Tool(UNRESOLVED));
        }
        run => run?,
    };
    native.check_conflicts(
        [&options.samples, &options.percentages].into_iter().flatten().map(String::as_str),
    )?;
    let samples = create(options.samples.as_deref())?;
    let percentages = create(options.percentages.as_deref())?;
    console.result(&opening(&options))?;

    let stats = AbStats { wants_samples: samples.is_some(), ..AbStats::default() };
    let stats = StatsCollector::new(stats);
    let mut progress = Progress { step: options.progress, done: 0 };
    let result = run.run(Some(stats.each(AbStats::record)), &mut |update| {
        progress.show(update.second.tally.counts.ended(), console);
        let faults = update.second.tally.faults();
        let fatal = faults
            .iter()
            .find_map(|(fault, _)| fatal(*fault))
            .filter(|_| !options.continues_after_errors);
        fatal.map(|(sentence, _)| sentence)
    })?;
    result.warn_of_loss(console);
    if !options.continues_after_errors
        && let Some((sentence, code)) = ended_by(&result.run.tally)
    {
        return broken(&sentence, code, &result, console);
    }
    let mut stats = stats.finish();
    console.result(&closing(&options, &result, &stats, &mut progress, console))?;
    if let Some(mut file) = percentages {
        write_all(&mut file, csv(&stats.times.total).as_bytes())?;
    }
    if let Some(mut file) = samples {
        stats.date(result.run.started_unix_ns);
        gnuplot(&mut stats.samples, &mut file)
            .and_then(|()| file.flush())
            .map_err(write_failure)?;
    }
    Ok(if result.interrupted { Exit::Tool(1) } else { Exit::Done })
}

fn refuse(wrong: &AbUsageError, console: &Console) -> Result<Exit, Failure> {
    match wrong {
        AbUsageError::Help => console.plain(options::USAGE),
        AbUsageError::Version => {
            console.result(BANNER)?;
            return Ok(Exit::Done);
        }
        AbUsageError::Usage(sentence) => {
            console.plain(&format!("ab: {sentence}\n{}", options::USAGE))
        }
        AbUsageError::Plain(sentence) => {
            console.plain(&format!("{sentence}\n"));
            return Ok(Exit::Tool(1));
        }
    }
    Ok(Exit::Tool(BAD_USAGE))
}

fn create(path: Option<&str>) -> Result<Option<BufWriter<File>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = gake_files::create(Path::new(path), Access::Mask)
        .map_err(|error| Failure::could_not(format!("Cannot open {path}: {error}")))?;
    Ok(Some(BufWriter::new(file)))
}

fn write_all(file: &mut BufWriter<File>, bytes: &[u8]) -> Result<(), Failure> {
    file.write_all(bytes).and_then(|()| file.flush()).map_err(write_failure)
}

fn write_failure(error: io::Error) -> Failure {
    Failure::could_not(format!("a file of results cannot be written: {error}"))
}

/// Whether the target has no address; a proxy resolves it otherwise.
fn is_unresolved(options: &AbOptions) -> bool {
    let location = &options.location;
    options.proxy.is_none() && (location.host.as_str(), location.port).to_socket_addrs().is_err()
}

fn opening(options: &AbOptions) -> String {
    if options.html.is_some() {
        return "<p>\n This is gake, behaving as ApacheBench, Version 2.3<br>\n Not the Apache \
                Software Foundation's<br>\n Licensed under the Apache License, Version 2.0<br>\n\
                </p>\n<p>\n"
            .to_owned();
    }
    let dots = if options.progress.is_some() { "\n" } else { "..." };
    let proxy = options.proxy.as_ref().map(|proxy| format!(" [through {proxy}]"));
    let (host, proxy) = (&options.location.host, proxy.unwrap_or_default());
    format!("{BANNER}Benchmarking {host}{proxy} (be patient){dots}")
}

/// The progress lines, at every tenth of the requests.
struct Progress {
    step: Option<u64>,
    done: u64,
}

impl Progress {
    fn show(&mut self, more: u64, console: &Console) {
        let Some(step) = self.step else { return };
        let before = self.done / step;
        self.done += more;
        for line in before + 1..=self.done / step {
            console.plain(&format!("Completed {} requests\n", line * step));
        }
    }
}

fn closing(
    options: &AbOptions,
    result: &ToolResult,
    stats: &AbStats,
    progress: &mut Progress,
    console: &Console,
) -> String {
    let counts = &result.run.tally.counts;
    let done = if progress.step.is_some() {
        progress.show(counts.ended().saturating_sub(progress.done), console);
        console.plain(&format!("Finished {} requests\n", counts.ended()));
        ""
    } else {
        "..done\n"
    };
    let ab = report(options, result, stats);
    match &options.html {
        None => format!("{done}{}", text(&ab, options.hidden)),
        Some([table, row, cell]) => {
            let default = Attributes::default();
            let attributes = Attributes {
                table: table.as_deref().unwrap_or(default.table),
                row: row.as_deref().unwrap_or(default.row),
                cell: cell.as_deref().unwrap_or(default.cell),
            };
            format!("{done}{}", html(&ab, attributes))
        }
    }
}

fn report<'a>(options: &'a AbOptions, result: &ToolResult, stats: &'a AbStats) -> Ab<'a> {
    let run = &result.run;
    let counts = &run.tally.counts;
    let answers = result.responses();
    let mut failed = failed(&run.tally);
    if !options.any_length {
        failed.length += stats.other_lengths;
    }
    // Each further connection replaced one that had ended.
    let users = options.concurrency as u64;
    let closed = counts.opened.saturating_sub(users);
    let none_kept = counts.opened >= answers.max(users + 1);
    let kept = if none_kept { 0 } else { answers.saturating_sub(closed) };
    Ab {
        server: stats.server.as_deref().unwrap_or_default(),
        host: &options.location.host,
        port: options.location.port,
        tls: options.is_tls().then_some("TLSv1.2 or TLSv1.3"),
        path: &options.location.target,
        document: (!options.any_length).then_some(stats.document.unwrap_or(0)),
        concurrency: options.concurrency,
        taken: run.elapsed,
        complete: counts.ended(),
        failed,
        non_2xx: responses(run, |status| !(200..300).contains(&status)),
        keep_alive: options.keep_alive.then_some(kept),
        transferred: counts.bytes_in,
        sent: options.sends_body.then_some(counts.bytes_out),
        body_bytes: counts.body_bytes,
        times: &stats.times,
    }
}

fn failed(tally: &Tally) -> FailureCounts {
    let mut failed = FailureCounts::default();
    for &(fault, count) in tally.faults() {
        *(match fault {
            Fault::ClosedEarly(_) => &mut failed.length,
            Fault::Malformed(_) | Fault::TooLarge(_) => &mut failed.exceptions,
            fault if is_connect_fault(fault) => &mut failed.connect,
            _ => &mut failed.receive,
        }) += count;
    }
    failed
}

/// ab's message and exit code for a fault that ends it: the low byte of the error's number.
fn fatal(fault: Fault) -> Option<(String, u8)> {
    let (call, what, number) = match fault {
        Fault::ConnectRefused => ("apr_socket_recv", "Connection refused", 111),
        Fault::Reset => ("apr_socket_recv", "Connection reset by peer", 104),
        Fault::ConnectReset => ("apr_socket_connect()", "Connection reset by peer", 104),
        Fault::NoLocalPort => ("apr_socket_connect()", "Cannot assign requested address", 99),
        Fault::NoDescriptors => ("socket", "Too many open files", 24),
        Fault::Write => ("apr_socket_send", "Broken pipe", 32),
        Fault::Timeout(_) | Fault::ConnectTimeout => {
            ("apr_pollset_poll", "The timeout specified has expired", 70_007)
        }
        Fault::Dns => ("apr_sockaddr_info_get()", "Name or service not known", 670_002),
        Fault::Tls(reason) => ("SSL handshake failed", reason, 1),
        Fault::Unreachable(number) => {
            let what = system_text(&io::Error::from_raw_os_error(number));
            return Some((format!("apr_socket_connect(): {what} ({number})"), number as u8));
        }
        Fault::Other(number) => return Some((format!("{fault} ({number})"), number as u8)),
        _ => return None,
    };
    Some((format!("{call}: {what} ({number})"), number as u8))
}

/// The most common fault that ends ab.
fn ended_by(tally: &Tally) -> Option<(String, u8)> {
    let fatal = tally.faults().iter().filter_map(|(fault, count)| Some((fatal(*fault)?, count)));
    fatal.max_by_key(|(_, count)| *count).map(|(end, _)| end)
}

fn broken(
    sentence: &str,
    code: u8,
    result: &ToolResult,
    console: &Console,
) -> Result<Exit, Failure> {
    console.plain(&format!("{sentence}\n"));
    let answers = result.responses();
    if answers > 0 {
        console.result(&format!("Total of {answers} requests completed\n"))?;
    }
    Ok(Exit::Tool(code.max(1)))
}
