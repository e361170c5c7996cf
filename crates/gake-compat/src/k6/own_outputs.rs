//! What gake adds to k6's own outputs: the live page, the history, sinks.

use gake_judge::Summary;
use gake_run::{Interrupt, PreparedRun, Sink};
use gake_session::options::{SaveArgs, SinkArgs, WebArgs};
use gake_session::run::{Controls, Saving, Web, destinations};
use gake_session::{Console, Exit, Failure};

/// gake's own outputs of a script's run.
#[derive(Debug)]
pub struct OwnOutputs {
    web: Web,
    saving: Option<Saving>,
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
        let saving = Saving::start(history)?;
        let mut sinks = destinations(sinks, console)?;
        if let Some(saving) = &saving {
            sinks.push(saving.sink().map_err(Failure::could_not)?);
        }
        let controls = Controls { interrupt, rate: None };
        let web = Web::start(web, prepared, controls, Some(*console), console)?;
        sinks.extend(web.sink());
        Ok((Self { web, saving }, sinks))
    }

    /// Makes the page the report, keeps the run and compares it. The exit code: `exit`, that of
    /// the run by itself, unless only the comparison is bad.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn finish(self, summary: &Summary, exit: Exit, console: &Console) -> Result<Exit, Failure> {
        self.web.finish(summary);
        match self.saving {
            Some(saving) => saving.finish(summary, exit, true, console),
            None => Ok(exit),
        }
    }
}
