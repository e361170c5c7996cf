//! A run of the engine on behalf of another tool.

use std::io;

use gake_core::record::{Outcome, Run};
use gake_core::spec::RunSpec;
use gake_judge::Summary;
use gake_run::sink::{OutcomeSink, RunFileSink};
use gake_run::{Beside, Moment, Prepared, RunError, Sink};
use gake_text::redact::Names;

use super::native::Native;
use gake_session::Console;
use gake_session::Failure;
use gake_session::Signals;
use gake_session::descriptors;
use gake_session::origin::origin;
use gake_session::redaction::usual;

/// Takes every outcome, on a thread of its own. After an error it is not called again.
pub type TakeOutcomes = Box<dyn FnMut(&[Outcome]) -> io::Result<()> + Send>;

/// A run that is over.
#[derive(Debug)]
pub struct Attacked {
    /// What was recorded.
    pub run: Run,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// Why outcomes are missing from what was taken, if some are.
    pub lost: Option<String>,
}

/// Prepares the run of a tool's spec.
///
/// # Errors
/// When something cannot be read or resolved.
pub fn prepare(spec: &RunSpec) -> Result<Prepared, Failure> {
    // How many descriptor tables it needs depends on their size.
    descriptors::raise();
    Prepared::new(spec, gake_session::recording::inputs())
        .map_err(|error| gake_session::spec_error::failure(&error))
}

/// Runs what was prepared of `spec`. Each second goes to `each`, which may end the run with a
/// reason; every outcome goes to `take` when somebody wants them. The native result is written too.
///
/// # Errors
/// When it cannot be started, or a file cannot be written.
pub fn attack(
    spec: &RunSpec,
    prepared: &Prepared,
    native: &Native,
    take: Option<TakeOutcomes>,
    console: &Console,
    mut each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
) -> Result<Attacked, Failure> {
    gake_session::announce::warn(prepared, spec, descriptors::raise(), console);
    let failure = |error: RunError| gake_session::spec_error::failure(&error);
    // What the tool shows comes first, so that its losses are told apart.
    let takes = take.is_some();
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    sinks.extend(take.map(|take| Box::new(OutcomeSink::new(take)) as Box<dyn Sink>));
    if let Some(path) = native.run_file() {
        sinks.push(Box::new(RunFileSink::create(&path).map_err(failure)?));
    }
    let signals = Signals::watch().map_err(Failure::signals)?;
    // The tool prints what it prints; the run file keeps no secrets.
    let redactor = usual(Names::default())?;
    let mut prepared = prepared.clone();
    prepared.redact(&redactor);
    let beside = Beside {
        sinks,
        interrupt: Some(signals.interrupt()),
        origin: origin(&[], &redactor),
        ..Beside::default()
    };
    let recorded = prepared.run_beside(beside, |moment| each(moment)).map_err(failure)?;
    let (shown, written): (Vec<_>, Vec<_>) =
        recorded.losses.into_iter().partition(|loss| takes && loss.sink == 0);
    for loss in written {
        console.warn(&loss.text);
    }
    let lost = shown.into_iter().next().map(|loss| loss.text);
    let summary = Summary::new(recorded.run, &[]);
    native.show(&summary, console)?;
    Ok(Attacked { run: summary.run, interrupted: signals.came(), lost })
}
