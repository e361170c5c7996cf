//! The trials of a search: run here or on agents, each with a run file if they are saved.

use std::path::{Path, PathBuf};

use gake_judge::search::{Trial, TrialLoad};
use gake_run::search::{PreparedTrial, TrialRunner};
use gake_run::sink::RunFileSink;
use gake_run::{EachSecond, RecordedRun, RunError, RunOptions, Sink, TargetWatcher};
use gake_text::redact::Redactor;

use crate::fleet::FleetMaker;
use crate::origin::origin;

/// Runs the trials of a search.
#[derive(Debug)]
pub struct SessionTrials<'a> {
    /// Folder of the run files, if they are saved.
    folder: Option<&'a Path>,
    /// Assembles the agents of each trial, if it runs on agents.
    agents: Option<&'a FleetMaker>,
    redactor: &'a Redactor,
    /// Trials begun so far.
    begun: u64,
    losses: Vec<String>,
}

impl<'a> SessionTrials<'a> {
    /// Trials on `agents`, if given, with run files in `folder`.
    #[must_use]
    pub fn new(
        folder: Option<&'a Path>,
        agents: Option<&'a FleetMaker>,
        redactor: &'a Redactor,
    ) -> Self {
        Self { folder, agents, redactor, begun: 0, losses: Vec::new() }
    }

    /// Losses of the run files, a sentence each.
    #[must_use]
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// The sinks of the next trial. A file that cannot be created fails the search only before the
    /// first trial.
    fn sinks(&mut self, trial: &Trial) -> Result<Vec<Box<dyn Sink>>, RunError> {
        let path = self.file(trial);
        let sink = path.and_then(|path| path.map(|path| RunFileSink::create(&path)).transpose());
        match sink {
            Err(error) if self.begun > 0 => {
                self.losses.push(error.to_string());
                Ok(Vec::new())
            }
            sink => Ok(sink?.into_iter().map(|sink| Box::new(sink) as Box<dyn Sink>).collect()),
        }
    }

    /// The run file of the next trial: number, purpose and load.
    fn file(&self, trial: &Trial) -> Result<Option<PathBuf>, RunError> {
        let Some(folder) = self.folder else { return Ok(None) };
        gake_files::create_folder(folder).map_err(|error| {
            RunError::cannot(format!("{} cannot be created: {error}", folder.display()))
        })?;
        let load = match trial.load {
            TrialLoad::Rate(rate) => format!("{rate:.0}-per-s"),
            TrialLoad::Users(n) => format!("{n}-users"),
            TrialLoad::Connections(n) => format!("{n}-connections"),
        };
        let name = format!("{:03}-{}-{load}.hlog", self.begun, trial.purpose.name());
        Ok(Some(folder.join(name)))
    }

    fn record(
        &self,
        of: PreparedTrial<'_>,
        sinks: Vec<Box<dyn Sink>>,
        watching: &mut TargetWatcher,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let options = RunOptions {
            sinks,
            interrupt: Some(of.interrupt),
            watching: Some(watching),
            origin: origin(&of.prepared.objectives, self.redactor),
            ..RunOptions::default()
        };
        match self.agents {
            Some(agents) => agents.run_trial(of, options, each),
            None => of.prepared.run_with(options, each),
        }
    }
}

impl TrialRunner for SessionTrials<'_> {
    fn run(
        &mut self,
        of: PreparedTrial<'_>,
        watching: &mut TargetWatcher,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let sinks = self.sinks(of.trial)?;
        self.begun += 1;
        let mut recorded = self.record(of, sinks, watching, each);
        if let Err(RunError::Sink(lost)) = &recorded
            && self.begun > 1
        {
            self.losses.push(lost.clone());
            recorded = self.record(of, Vec::new(), watching, each);
        }
        let mut recorded = recorded?;
        self.losses.extend(recorded.losses.drain(..).map(|loss| loss.text));
        Ok(recorded)
    }
}
