//! A run of the engine on behalf of another tool.

use std::io;
use std::time::Duration;

use gake_core::record::{Fault, Outcome, Run};
use gake_core::spec::RunSpec;
#[cfg(feature = "lua")]
use gake_core::work::Factory;
#[cfg(feature = "lua")]
use gake_engine::WorkerContext;
use gake_judge::Summary;
use gake_run::sink::OutcomeSink;
use gake_run::{EachSecond, Inputs, RecordedRun, ResolvedRun, RunError, RunOptions, Sink};
use gake_session::origin::origin;
use gake_session::redaction::redactor_for;
use gake_session::{Console, Failure, Signals, announce, descriptors, recording};
use gake_text::redact::SecretNames;

use crate::NativeResult;

/// The time-out of requests for tools that have none: longer than any run.
pub const NEVER: Duration = Duration::from_secs(30 * 86_400);

/// As [`NEVER`], for tools with possibly longer time-outs.
pub const YEAR: Duration = Duration::from_secs(366 * 86_400);

/// The most threads: each is a system thread.
pub const THREADS_MAX: u64 = 1_024;

/// Handles every outcome on a separate thread. It is not called again after an error.
pub type OutcomeHandler = Box<dyn FnMut(&[Outcome]) -> io::Result<()> + Send>;

/// A prepared run, gake's own result of it, and the streams.
#[derive(Debug)]
pub struct ToolRun<'a> {
    spec: RunSpec,
    /// The resolved spec.
    pub prepared: ResolvedRun,
    native: &'a NativeResult,
    console: &'a Console,
}

/// A run that is over.
#[derive(Debug)]
pub struct ToolResult {
    /// The recorded run.
    pub run: Run,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// Why the handler did not receive some outcomes, if so.
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

    /// Prepares the run of a tool's spec with these requests or recordings.
    pub fn with_inputs(
        spec: RunSpec,
        inputs: Inputs<'_>,
        native: &'a NativeResult,
        console: &'a Console,
    ) -> Result<Self, Failure> {
        // The number of descriptor tables depends on their size.
        descriptors::raise();
        let prepared = ResolvedRun::new(&spec, inputs)?;
        Ok(Self { spec, prepared, native, console })
    }

    /// Runs it. `each` receives each second, and may end the run with a reason; `handler`, if there
    /// is one, receives every outcome. Also writes the native result.
    pub fn run(
        &self,
        handler: Option<OutcomeHandler>,
        each: &mut EachSecond<'_>,
    ) -> Result<ToolResult, Failure> {
        self.run_by(handler, |prepared, options| prepared.run_with(options, each))
    }

    /// As [`ToolRun::run`], with the tool's own works.
    #[cfg(feature = "lua")]
    pub fn run_works<F: Factory + 'static>(
        &self,
        make: impl Fn(WorkerContext) -> F + Send + Sync + 'static,
        each: &mut EachSecond<'_>,
    ) -> Result<ToolResult, Failure> {
        self.run_by(None, |prepared, options| prepared.run_works(make, options, each))
    }

    fn run_by(
        &self,
        handler: Option<OutcomeHandler>,
        run: impl FnOnce(&ResolvedRun, RunOptions<'_>) -> Result<RecordedRun, RunError>,
    ) -> Result<ToolResult, Failure> {
        announce::warn(&self.prepared, &self.spec, descriptors::raise(), self.console);
        // The tool's own sink is the first, so that its losses can be distinguished from others'.
        let is_handled = handler.is_some();
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        sinks.extend(handler.map(|handler| Box::new(OutcomeSink::new(handler)) as Box<dyn Sink>));
        sinks.extend(self.native.sink()?);
        let signals = Signals::watch().map_err(Failure::signals)?;
        // The tool's output is its own; the run file contains no secrets.
        let redactor = redactor_for(SecretNames::default())?;
        let mut prepared = self.prepared.clone();
        prepared.redact(&redactor);
        let options = RunOptions {
            sinks,
            interrupt: Some(signals.interrupt()),
            origin: origin(&[], &redactor),
            ..RunOptions::default()
        };
        let recorded = run(&prepared, options)?;
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

/// Responses whose status satisfies a condition.
pub fn responses(run: &Run, which: impl Fn(u16) -> bool) -> u64 {
    run.tally.statuses().iter().filter(|(status, _)| which(*status)).map(|(_, count)| count).sum()
}
