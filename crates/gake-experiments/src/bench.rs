//! Runs loads on this machine or its agents, and shows steps as they end.

use gake_judge::Summary;
use gake_report::experiment::{Expectation, ExperimentReport, ExperimentStep, line};
use gake_run::spec::RunSpec;
use gake_run::{Inputs, Interrupt, ResolvedRun, RunOptions, SecondUpdate, unix_now};
use gake_session::fleet::FleetMaker;
use gake_session::origin::origin;
use gake_session::redaction::redactor_for;
use gake_session::{Console, Failure, Signals, StatusLine, spec_error};
use gake_text::redact::{Redactor, SecretNames};

use crate::definition::Experiment;
use crate::settings::ExperimentSettings;

/// Why an experiment ended before its last step.
#[derive(Debug)]
pub enum StepError {
    /// A signal.
    Interrupted,
    /// An error.
    Failed(Failure),
}

impl From<Failure> for StepError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A mistake in the experiment's file.
impl From<String> for StepError {
    fn from(mistake: String) -> Self {
        Self::Failed(Failure::could_not(mistake))
    }
}

/// Runs loads and collects their results.
#[derive(Debug)]
pub struct Bench<'a> {
    settings: &'a ExperimentSettings,
    console: &'a Console,
    redactor: Redactor,
    signals: Signals,
    /// Creates the agents of each load, if agents run it.
    agents: Option<FleetMaker>,
    bar: Option<StatusLine>,
    /// The report so far.
    pub report: ExperimentReport,
}

impl<'a> Bench<'a> {
    /// A bench for an experiment; `agents` run its load if they are given.
    pub fn new(
        definition: &Experiment,
        settings: &'a ExperimentSettings,
        agents: Option<FleetMaker>,
        console: &'a Console,
    ) -> Result<Self, Failure> {
        let redactor = redactor_for(SecretNames::default())?;
        let target = match (&settings.target, &settings.database) {
            (Some(url), _) => redactor.text(url).into_inner(),
            (None, Some((_, store))) => format!("the built-in lab on {store}"),
            (None, None) => "the built-in lab".to_owned(),
        };
        let signals = Signals::at_once().map_err(Failure::signals)?;
        let agents = agents.map(|agents| agents.interrupted_by(signals.interrupt()));
        Ok(Self {
            settings,
            console,
            redactor,
            signals,
            agents,
            bar: if settings.quiet { None } else { console.status_line(None) },
            report: ExperimentReport {
                name: definition.name.clone(),
                about: definition.about.clone(),
                target,
                started_unix_ns: unix_now(),
                quick: settings.quick,
                notes: Vec::new(),
                is_complete: true,
                steps: Vec::new(),
            },
        })
    }

    /// Interrupts waits between two runs.
    pub fn interrupt(&self) -> Interrupt {
        self.signals.interrupt().clone()
    }

    /// Runs a load to its end and judges it.
    pub fn fire(&mut self, spec: &RunSpec) -> Result<Summary, StepError> {
        let failure = |error| StepError::Failed(spec_error::failure(&error));
        let mut prepared = ResolvedRun::new(spec, Inputs::default()).map_err(failure)?;
        prepared.redact(&self.redactor);
        if self.agents.is_some() {
            prepared.keep_to_one_table();
        }
        let options = RunOptions {
            interrupt: Some(self.signals.interrupt()),
            origin: origin(&[], &self.redactor),
            ..RunOptions::default()
        };
        let bar = &self.bar;
        let each = &mut |update: &SecondUpdate<'_>| -> Option<String> {
            if let Some(bar) = bar {
                let point = &update.second.point;
                bar.set_message(&format!(
                    "second {}: {} ok, {:.0} in flight, {} connections",
                    point.second + 1,
                    point.counts.ok,
                    point.in_flight,
                    point.open
                ));
            }
            None
        };
        let recorded = match &self.agents {
            Some(agents) => agents.run(spec, &prepared, options, each),
            None => prepared.run_with(options, each),
        };
        if self.signals.came() {
            return Err(StepError::Interrupted);
        }
        Ok(Summary::new(recorded.map_err(failure)?.run, &prepared.objectives))
    }

    /// Adds a step and shows it.
    pub fn add(
        &mut self,
        name: String,
        server: String,
        summary: Summary,
        subject: Option<usize>,
        expectations: Vec<Expectation>,
    ) {
        let step = ExperimentStep { name, server, summary, subject, expectations };
        self.show(&line(&step));
        self.report.steps.push(step);
    }

    /// Adds a note and shows it.
    pub fn note(&mut self, text: String) {
        self.show(&format!("note: {text}"));
        self.report.notes.push(text);
    }

    fn show(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.above(text),
            None if self.settings.quiet => {}
            None => self.console.note(text),
        }
    }

    /// Returns the report and removes the progress line.
    pub fn finish(mut self) -> ExperimentReport {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        self.report
    }
}
