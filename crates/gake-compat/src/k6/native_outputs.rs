//! The outputs that gake adds to k6's: the live page, the history, sinks.

use gake_judge::Summary;
use gake_run::{Interrupt, ResolvedRun, Sink};
use gake_session::options::{SaveArgs, SinkArgs, WebArgs};
use gake_session::run::{Controls, HistoryWriter, SinkDrain, Web, destinations};
use gake_session::{Console, Exit, Failure};

/// gake's own outputs of a script's run.
#[derive(Debug)]
pub struct NativeOutputs {
    web: Web,
    history: Option<HistoryWriter>,
}

impl NativeOutputs {
    /// Starts the outputs that these flags request. Returns the additional sinks of the run.
    ///
    /// # Errors
    /// When an output is not usable, so that a wrong name is reported before the run.
    pub fn start(
        (web, history, sinks): (&WebArgs, &SaveArgs, &SinkArgs),
        prepared: &ResolvedRun,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<(Self, Vec<Box<dyn Sink>>), Failure> {
        let history = HistoryWriter::start(history)?;
        let drain = SinkDrain::new(sinks.sink_spill, None, console);
        drain.obey(interrupt);
        let mut sinks = destinations(sinks, drain.spill(), console)?;
        if let Some(history) = &history {
            sinks.push(history.sink().map_err(Failure::could_not)?);
        }
        let controls = Controls { interrupt, rate: None };
        let web = Web::start(web, prepared, controls, Some(*console), console)?;
        sinks.extend(web.sink());
        Ok((Self { web, history }, sinks))
    }

    /// Replaces the page by the report, stores the run in the history and compares it. The exit
    /// code is `exit`, the code of the run itself, unless only the comparison failed.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn finish(self, summary: &Summary, exit: Exit, console: &Console) -> Result<Exit, Failure> {
        self.web.finish(summary);
        match self.history {
            Some(history) => history.finish(summary, exit, true, console),
            None => Ok(exit),
        }
    }
}
