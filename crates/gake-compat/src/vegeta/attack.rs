//! `vegeta attack`: requests at a rate, and a result for each, written as they come.

use std::io;
use std::sync::{Arc, OnceLock};

use gake_core::Load;
use gake_core::plan::OTHER_DESCRIPTORS;
use gake_core::record::Outcome;
use gake_core::spec::HttpVersion;
use gake_report::vegeta::{ResultEncoding, ResultWriter};
use gake_run::{GivenRequests, Inputs, unix_now};

use super::files;
use super::options::{self, TARGETS, VegetaOptions};
use super::records::Records;
use super::targets::Requests;
use crate::NativeResult;
use crate::tool_run::{OutcomeHandler, ToolRun};
use gake_session::{Console, Exit, Failure, descriptors};

/// Descriptors for other uses than connections.
const OTHERS: u64 = OTHER_DESCRIPTORS as u64;

/// Runs the command.
///
/// # Errors
/// When it cannot be started, or results cannot be written.
pub fn run(
    args: &[String],
    cpus: Option<usize>,
    native: &NativeResult,
    console: &Console,
) -> Result<Exit, Failure> {
    let mut options = VegetaOptions::read(args, cpus).map_err(Failure::usage)?;
    if options.help {
        console.plain(options::USAGE);
        return Ok(Exit::Done);
    }
    // As in Go, HTTP/2 in clear text has a transport of its own, without a proxy.
    if options.spec.connection.http != HttpVersion::Http2 {
        gake_session::proxy::use_environment(&mut options.spec.connection)?;
    }
    native.check_conflicts(
        [options.output.as_str()].into_iter().filter(|output| *output != "stdout"),
    )?;
    let (requests, known) = Requests::open(&options)?;
    let requests = Arc::new(requests);
    bound_connections(&mut options);
    let name = match options.targets.as_str() {
        "stdin" => "targets on standard input".to_owned(),
        path => path.to_owned(),
    };
    let given = GivenRequests { name, requests: known, feed: Some(Arc::clone(&requests) as _) };
    let inputs = Inputs { given: vec![(TARGETS.to_owned(), given)], ..Inputs::default() };
    let run = ToolRun::with_inputs(options.spec, inputs, native, console)?;
    let records = Records {
        name: options.name.clone(),
        started_unix_ns: unix_now(),
        requests: Arc::clone(&requests),
        wires: run.prepared.wires.clone(),
        redirects: options.redirects,
    };
    let unwritten = Arc::new(OnceLock::new());
    let handler = handler(records, &options.output, console, Arc::clone(&unwritten))?;
    let result = run.run(Some(handler), &mut |_| {
        let gone = unwritten.get().is_some();
        gone.then(|| "the results cannot be written any more".to_owned())
    })?;
    if let Some(fault) = requests.fault() {
        return Err(Failure::could_not(fault));
    }
    if let Some(error) = unwritten.get() {
        return Err(files::write_failure(&options.output, error));
    }
    match result.lost {
        None => Ok(Exit::Done),
        Some(lost) => Err(Failure::could_not(lost)),
    }
}

/// Limits the connections to the available descriptors.
fn bound_connections(options: &mut VegetaOptions) {
    let most = descriptors::raise().saturating_sub(OTHERS).max(1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    for scenario in &mut options.spec.scenarios {
        scenario.connections = scenario.connections.min(most);
        scenario.max_in_flight = scenario.max_in_flight.min(most);
        if let Load::Closed { users, .. } = &mut scenario.load {
            *users = (*users).min(most);
        }
    }
}

/// Writes results as they come. `unwritten` gets the first error.
fn handler(
    records: Records,
    output: &str,
    console: &Console,
    unwritten: Arc<OnceLock<io::Error>>,
) -> Result<OutcomeHandler, Failure> {
    let mut writer = ResultWriter::new(files::create(output, console)?, ResultEncoding::Gob);
    Ok(Box::new(move |outcomes: &[Outcome]| {
        let written = outcomes
            .iter()
            .try_for_each(|outcome| writer.write(&records.of(outcome)))
            .and_then(|()| writer.flush());
        if let Err(error) = &written {
            let kept = error
                .raw_os_error()
                .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            // Only the first error matters.
            let _ = unwritten.set(kept);
        }
        written
    }))
}
