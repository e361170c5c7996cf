//! What gake adds to k6's own outputs: the live page, the history, sinks.

use gake_judge::Summary;
use gake_run::{Interrupt, PreparedRun, Sink};
use gake_session::options::{SaveArgs, SinkArgs, WebArgs};
use gake_session::run::{Controls, HistoryWriter, Web, destinations};
use gake_session::{Console, Exit, Failure};

/// gake's own outputs of a script's run.
#[derive(Debug)]
pub struct OwnOutputs {
    web: Web,
    history: Option<HistoryWriter>,
}

impl OwnOutputs {
    /// Starts what these flags ask for. Returns the sinks that the run feeds, too.
    ///
    /// # Errors
    /// When something cannot be used: a wrong name costs no run.
    pub fn start(
        (web, history, sinks): (&WebArgs, &SaveArgs, &SinkArgs),
        prepared: &PreparedRun,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<(Self, Vec<Box<dyn Sink>>), Failure> {
        let history = HistoryWriter::start(history)?;
        let mut sinks = destinations(sinks, console)?;
        if let Some(history) = &history {
            sinks.push(history.sink().map_err(Failure::could_not)?);
        }
        let controls = Controls { interrupt, rate: None };
        let web = Web::start(web, prepared, controls, Some(*console), console)?;
        sinks.extend(web.sink());
        Ok((Self { web, history }, sinks))
    }

    /// Makes the page the report, keeps the run and compares it. The exit code: `exit`, that of
    /// the run by itself, unless only the comparison is bad.
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
