//! A run of the engine on behalf of another tool.

use std::io;
use std::time::Duration;

use gake_core::record::{Fault, Outcome, Run};
use gake_core::spec::RunSpec;
use gake_judge::Summary;
use gake_run::sink::OutcomeSink;
use gake_run::{Beside, Inputs, Moment, Prepared, Sink};
use gake_session::origin::origin;
use gake_session::redaction::usual;
use gake_session::{Console, Failure, Signals, announce, descriptors, recording};
use gake_text::redact::SecretNames;

use crate::NativeResult;

/// A time-out of requests for tools that have none: longer than any run.
pub const NEVER: Duration = Duration::from_secs(30 * 86_400);

/// The same for tools whose time-outs may be longer.
pub const YEAR: Duration = Duration::from_secs(366 * 86_400);

/// Threads at most: each is one of the system's.
pub const THREADS_MAX: u64 = 1_024;

/// Handles every outcome, on a thread of its own. After an error it is not called again.
pub type OutcomeHandler = Box<dyn FnMut(&[Outcome]) -> io::Result<()> + Send>;

/// A prepared run, gake's own result of it, and the streams.
#[derive(Debug)]
pub struct ToolRun<'a> {
    spec: RunSpec,
    /// The resolved spec.
    pub prepared: Prepared,
    native: &'a NativeResult,
    console: &'a Console,
}

/// A run that is over.
#[derive(Debug)]
pub struct ToolResult {
    /// What was recorded.
    pub run: Run,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// Why some outcomes did not reach the handler, if so.
    pub lost: Option<String>,
}

impl<'a> ToolRun<'a> {
    /// Prepares the run of a tool's spec.
    ///
    /// # Errors
    /// When something cannot be read or resolved.
    pub fn prepare(
        spec: RunSpec,
        native: &'a NativeResult,
        console: &'a Console,
    ) -> Result<Self, Failure> {
        Self::with_inputs(spec, recording::inputs(), native, console)
    }

    /// Prepares the run of a tool's spec, whose requests or recordings are given.
    ///
    /// # Errors
    /// As [`ToolRun::prepare`].
    pub fn with_inputs(
        spec: RunSpec,
        inputs: Inputs<'_>,
        native: &'a NativeResult,
        console: &'a Console,
    ) -> Result<Self, Failure> {
        // The number of descriptor tables depends on their size.
        descriptors::raise();
        let prepared = Prepared::new(&spec, inputs)?;
        Ok(Self { spec, prepared, native, console })
    }

    /// Runs it. Each second goes to `each`, which may end the run with a reason; every outcome goes
    /// to `handler`, if there is one. The native result is written too.
    ///
    /// # Errors
    /// When it cannot be started, or a file cannot be written.
    pub fn run(
        &self,
        handler: Option<OutcomeHandler>,
        mut each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<ToolResult, Failure> {
        announce::warn(&self.prepared, &self.spec, descriptors::raise(), self.console);
        // The tool's own sink is the first, so that its losses are known from the others'.
        let is_handled = handler.is_some();
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        sinks.extend(handler.map(|handler| Box::new(OutcomeSink::new(handler)) as Box<dyn Sink>));
        sinks.extend(self.native.sink()?);
        let signals = Signals::watch().map_err(Failure::signals)?;
        // The tool prints what it prints; the run file keeps no secrets.
        let redactor = usual(SecretNames::default())?;
        let mut prepared = self.prepared.clone();
        prepared.redact(&redactor);
        let beside = Beside {
            sinks,
            interrupt: Some(signals.interrupt()),
            origin: origin(&[], &redactor),
            ..Beside::default()
        };
        let recorded = prepared.run_beside(beside, |moment| each(moment))?;
        let mut lost = None;
        for loss in recorded.losses {
            if is_handled && loss.sink == 0 {
                lost.get_or_insert(loss.text);
            } else {
                self.console.warn(&loss.text);
            }
        }
        let summary = Summary::new(recorded.run, &[]);
        self.native.show(&summary, self.console)?;
        Ok(ToolResult { run: summary.run, interrupted: signals.came(), lost })
    }
}

impl ToolResult {
    /// Warns when outcomes are missing from what the tool shows.
    pub fn warn_of_loss(&self, console: &Console) {
        if let Some(lost) = &self.lost {
            console.warn(lost);
        }
    }

    /// Responses, whatever their status.
    pub fn responses(&self) -> u64 {
        responses(&self.run, |_| true)
    }
}

/// Whether a request failed before it had a connection, TLS included.
pub fn is_connect_fault(fault: Fault) -> bool {
    fault.is_before_connection() || matches!(fault, Fault::Tls(_))
}

/// Responses with a status of a kind.
pub fn responses(run: &Run, which: impl Fn(u16) -> bool) -> u64 {
    run.tally.statuses().iter().filter(|(status, _)| which(*status)).map(|(_, count)| count).sum()
}
