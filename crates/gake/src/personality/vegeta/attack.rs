//! `vegeta attack`: requests at a rate, and a result for each, written as they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gake_core::record::Outcome;
use gake_report::vegeta::{Encoding, Writer};

use super::super::attack::{Sink, attack};
use super::files;
use super::options::{self, Options};
use super::records::Records;
use super::targets::Requests;
use crate::cli;
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};
use crate::load::{Prepared, Sent, unix_now};
use crate::personality::Native;

/// Descriptors that are not connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Runs the command.
///
/// # Errors
/// When it cannot be started, or results cannot be written.
pub fn run(
    args: &[String],
    cpus: Option<usize>,
    native: &Native,
    console: &Console,
) -> Result<Exit, Failure> {
    let run = cli::plain_run("vegeta")?;
    let mut options = Options::read(args, cpus, run).map_err(Failure::usage)?;
    if options.help {
        console.plain(options::USAGE);
        return Ok(Exit::Done);
    }
    native.beside([options.output.as_str()].into_iter().filter(|output| *output != "stdout"))?;
    let (requests, asks) = Requests::open(&options)?;
    let requests = Arc::new(requests);
    bound_connections(&mut options);
    options.args.connection.feed = Some(Arc::clone(&requests) as _);
    let name = match options.targets.as_str() {
        "stdin" => "targets on standard input".to_owned(),
        path => path.to_owned(),
    };
    let sent = Sent { asks, name, scheme_assumed: false, from_file: true };
    let prepared = Prepared::of(&options.args, sent)?;
    let records = Records {
        name: options.name.clone(),
        started_unix_ns: unix_now(),
        requests: Arc::clone(&requests),
        wire: Arc::clone(&prepared.wire),
        redirects: options.redirects,
    };
    let is_read = Arc::new(AtomicBool::new(true));
    let sink = sink(records, &options.output, Arc::clone(&is_read))?;
    let attacked = attack(&mut options.args, &prepared, native, Some(sink), console, |_| {
        let gone = !is_read.load(Ordering::Relaxed);
        gone.then(|| "the results cannot be written any more".to_owned())
    })?;
    if let Some(fault) = requests.fault() {
        return Err(Failure::usage(fault));
    }
    if !is_read.load(Ordering::Relaxed) && options.output == "stdout" {
        return Err(Failure::OutputClosed);
    }
    match attacked.lost {
        None => Ok(Exit::Done),
        Some(lost) => Err(Failure::could_not(lost)),
    }
}

/// As many connections at most as there can be descriptors.
fn bound_connections(options: &mut Options) {
    let most = descriptors::raise().saturating_sub(OTHER_DESCRIPTORS).max(1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let connections = &mut options.args.load.connections;
    *connections = connections.map(|wanted| wanted.min(most));
}

/// Writes results as they come. `is_read` says whether that goes on.
fn sink(records: Records, output: &str, is_read: Arc<AtomicBool>) -> Result<Sink, Failure> {
    let mut writer = Writer::new(files::create(output)?, Encoding::Gob);
    Ok(Box::new(move |outcomes: &[Outcome]| {
        let written = outcomes
            .iter()
            .try_for_each(|outcome| writer.write(&records.of(outcome)))
            .and_then(|()| writer.flush());
        if written.is_err() {
            is_read.store(false, Ordering::Relaxed);
        }
        written
    }))
}
