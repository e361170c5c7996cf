//! A run of the engine on behalf of another tool.

use std::io;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use gake_core::record::{Outcome, Run};
use gake_engine::{Batch, log_channel};
use gake_judge::Summary;

use super::native::Native;
use crate::cli::RunArgs;
use crate::console::Console;
use crate::descriptors;
use crate::exit::Failure;
use crate::load::{Job, Moment, Outputs, Prepared, Watching, record};
use crate::signals::Signals;

/// Batches of outcomes that may wait for the sink: a million outcomes or so. These tools keep or
/// write every one, so what a slow sink loses is told.
const SINK_QUEUE: usize = 512;

/// Bytes of answers that may wait with them.
const SINK_BYTES: usize = 256 << 20;

/// Takes every outcome, on a thread of its own. After an error it is not called again.
pub type Sink = Box<dyn FnMut(&[Outcome]) -> io::Result<()> + Send>;

/// A run that is over.
#[derive(Debug)]
pub struct Attacked {
    /// What was recorded.
    pub run: Run,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// Why outcomes are missing from what the sink was given, if some are.
    pub lost: Option<String>,
}

/// Runs what was prepared. Each second goes to `each`, which may end the run with a reason; every
/// outcome goes to `sink` when there is one. The native result is written too.
///
/// # Errors
/// When it cannot be started, or a file cannot be written.
pub fn attack(
    args: &mut RunArgs,
    prepared: &Prepared,
    native: &Native,
    sink: Option<Sink>,
    console: &Console,
    mut each: impl FnMut(&Moment<'_>) -> Option<String>,
) -> Result<Attacked, Failure> {
    prepared.warn(args, descriptors::raise(), console);
    args.output.out = native.run_file();
    let mut watching = Watching::start(&args.watch, &args.judge.slo)?;
    let (outputs, _) = Outputs::create(&args.output, &prepared.plan)?;
    let (log, drain) = match sink {
        None => (None, None),
        Some(sink) => {
            let (sender, receiver) = log_channel(SINK_QUEUE, SINK_BYTES);
            (Some(sender), Some(spawn(sink, receiver).map_err(Failure::could_not)?))
        }
    };
    let signals = Signals::watch().map_err(Failure::signals)?;
    let job = Job {
        plan: &prepared.plan,
        wire: &prepared.wire,
        seed: args.load.seed,
        started_unix_ns: outputs.started_unix_ns,
        log,
    };
    let recorded =
        record(job, Some(&signals), &mut watching, outputs, |moment, _, _| each(&moment))?;
    let lost = drain.and_then(|drain| lost(drain, recorded.log_lost));
    for loss in &recorded.losses {
        console.warn(loss);
    }
    let summary = Summary::new(recorded.run, &[]);
    native.show(&summary, console)?;
    Ok(Attacked { run: summary.run, interrupted: signals.came(), lost })
}

fn spawn(mut sink: Sink, outcomes: Receiver<Batch>) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name("gake-sink".to_owned()).spawn(move || {
        let mut result = Ok(());
        // After an error it goes on taking, so that no worker waits.
        for batch in outcomes {
            if result.is_ok() {
                result = sink(&batch);
            }
        }
        result
    })
}

fn lost(drain: JoinHandle<io::Result<()>>, count: u64) -> Option<String> {
    match drain.join() {
        Ok(Ok(())) if count == 0 => None,
        Ok(Ok(())) => Some(format!("{count} results are missing: the output was too slow")),
        Ok(Err(error)) => Some(format!("the results are cut: {error}")),
        Err(_) => Some("the results are cut: their writer failed".to_owned()),
    }
}
