//! What the experiments share: servers, runs, steps that are told as they end.

use std::cell::RefCell;
use std::time::Duration;

use gake_judge::Summary;
use gake_judge::stats::per_second;
use gake_report::experiment::{Expectation, ExperimentReport, ExperimentStep, line};
use gake_run::spec::{Load, RunSpec, ScenarioSpec};
use gake_run::{Beside, Inputs, Interrupt, Moment, Prepared, unix_now};
use gake_text::redact::{Names, Redactor};

use super::Experiment;
use super::room::{Ends, Fits, Room};
use super::server::Server;
use crate::cli::ExperimentArgs;
use crate::users::UserStore;
use gake_session::Console;
use gake_session::Failure;
use gake_session::Signals;
use gake_session::StatusLine;
use gake_session::descriptors;
use gake_session::fleet::FleetMaker;
use gake_session::origin::origin;
use gake_session::redaction::usual;

/// Connections of a lab that are not users': the sampler's, and a margin.
const OTHER_CONNECTIONS: u64 = 100;

/// Why an experiment ended before its last step.
#[derive(Debug)]
pub enum Stopped {
    /// A signal.
    Interrupted,
    /// It cannot go on.
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Where an experiment runs.
#[derive(Debug)]
pub struct Bench<'a> {
    args: &'a ExperimentArgs,
    console: &'a Console,
    redactor: Redactor,
    signals: Signals,
    /// Makes the agents of each load, when others have it.
    agents: Option<FleetMaker>,
    bar: Option<StatusLine>,
    room: Room,
    /// Names of the steps that were asked for.
    asked: RefCell<Vec<String>>,
    /// Whether the names are collected and nothing is run.
    only_names: bool,
    report: ExperimentReport,
}

impl<'a> Bench<'a> {
    /// A place for an experiment, whose load `agents` have if they are given.
    ///
    /// # Errors
    /// When signals cannot be watched.
    pub fn new(
        args: &'a ExperimentArgs,
        experiment: &Experiment,
        agents: Option<FleetMaker>,
        console: &'a Console,
    ) -> Result<Self, Failure> {
        let redactor = usual(Names::default())?;
        let target = args
            .target
            .as_deref()
            .map_or_else(|| "the built-in lab".to_owned(), |url| redactor.text(url).into_owned());
        let store = args.db.as_ref().map(|arg| arg.store()).transpose()?;
        let target = store.map_or(target, |store| format!("the built-in lab on {store}"));
        let signals = Signals::at_once().map_err(Failure::signals)?;
        let agents = agents.map(|agents| agents.interrupted_by(signals.interrupt()));
        let ends = match (&agents, &args.target) {
            (Some(agents), _) => Ends::Agents(agents.agents() as u64),
            (None, Some(_)) => Ends::One,
            (None, None) => Ends::Both,
        };
        Ok(Self {
            args,
            console,
            redactor,
            signals,
            agents,
            bar: if args.output.quiet { None } else { console.moving(None) },
            room: Room::here(ends, descriptors::raise()),
            asked: RefCell::default(),
            only_names: false,
            report: ExperimentReport {
                name: experiment.name,
                about: experiment.about,
                target,
                started_unix_ns: unix_now(),
                quick: args.quick,
                notes: Vec::new(),
                is_complete: true,
                steps: Vec::new(),
            },
        })
    }

    /// Whether the step of this name is asked for, and to be run now.
    pub fn wants(&self, name: &str) -> bool {
        let is_asked = self.is_asked(name);
        if is_asked {
            self.asked.borrow_mut().push(name.to_owned());
        }
        is_asked && !self.only_names
    }

    fn is_asked(&self, name: &str) -> bool {
        self.args.only.as_deref().is_none_or(|part| name.contains(part))
    }

    /// Says that the steps of these names, as far as they are asked for, are left out, and why.
    pub fn leave_out(&mut self, names: &[String], why: &str) {
        let asked = names.iter().filter(|name| self.is_asked(name));
        let asked: Vec<_> = asked.map(|name| format!("\"{name}\"")).collect();
        if !asked.is_empty() && !self.only_names {
            self.note(format!("left out: {}; {why}", asked.join(", ")));
        }
    }

    /// Whether times and numbers are scaled down.
    pub fn quick(&self) -> bool {
        self.args.quick
    }

    /// The shorter time when it is to be quick.
    pub fn seconds(&self, full: f64, quick: f64) -> Duration {
        Duration::from_secs_f64(if self.args.quick { quick } else { full })
    }

    /// As many of `asked` connections as there can be at once, and what allows no more.
    pub fn fits(&self, asked: u64) -> Fits {
        self.room.fits(asked)
    }

    /// Whether a step of this name is asked for and there can be a connection for each of its users;
    /// says so if there cannot.
    pub fn takes(&mut self, name: &str, users: u64) -> bool {
        if !self.wants(name) {
            return false;
        }
        let fits = self.fits(users);
        let does_fit = fits.connections >= users;
        if !does_fit {
            self.note(format!("\"{name}\" is left out: {}", fits.why));
        }
        does_fit
    }

    /// The lab's flag for this number of connections: it cannot know by itself that they need more
    /// than one descriptor table.
    pub fn room_for(&self, connections: u64) -> String {
        match self.room.needs_tables(connections) {
            true => format!("--max-connections {}", connections + OTHER_CONNECTIONS),
            false => String::new(),
        }
    }

    /// Ends what waits between two runs.
    pub fn interrupt(&self) -> Interrupt {
        self.signals.interrupt().clone()
    }

    /// Whether the user's own server is loaded.
    pub fn is_own(&self) -> bool {
        self.args.target.is_some()
    }

    /// The server to load: a new lab with these flags, or the user's own.
    ///
    /// # Errors
    /// When the lab does not start.
    pub fn server(&self, flags: &str) -> Result<Server, Stopped> {
        if self.only_names {
            return Err(Stopped::Interrupted);
        }
        Ok(match &self.args.target {
            Some(url) => {
                let watched = self.args.watch.iter().map(|source| source.0.clone()).collect();
                Server::own(url, watched)
            }
            None => Server::lab(flags)?,
        })
    }

    /// The real database that is asked for, as the user wrote it, and without who asks.
    ///
    /// # Errors
    /// When it is not a database, or is a model.
    pub fn database(&self) -> Result<Option<(String, UserStore)>, Failure> {
        let Some(arg) = &self.args.db else { return Ok(None) };
        match arg.store()? {
            UserStore::Model(_) => {
                let told = "--db: the model has the settings of each step; leave --db out";
                Err(Failure::usage(told))
            }
            store => Ok(Some((arg.0.clone(), store))),
        }
    }

    /// Says what is left out, and why.
    pub fn note(&mut self, text: String) {
        self.tell(&format!("note: {text}"));
        self.report.notes.push(text);
    }

    /// Says that a step that was asked for could not be run; the experiment goes on.
    pub fn missing(&mut self, name: &str, why: &Failure) {
        self.report.is_complete = false;
        self.note(format!("\"{name}\" is missing: {why}"));
    }

    /// Says that the experiment cannot go on, and which steps are missing.
    pub fn broke_off(&mut self, experiment: &Experiment, why: &Failure) {
        self.report.is_complete = false;
        let missing = self.missing_steps(experiment);
        let names: Vec<_> = missing.iter().map(|name| format!("\"{name}\"")).collect();
        let missing = match names.as_slice() {
            [] => String::new(),
            names => format!("; missing: {}", names.join(", ")),
        };
        self.report.notes.push(format!("the experiment broke off: {why}{missing}"));
    }

    /// The steps from the one that was asked for last, those that have ended aside. The experiment
    /// names them when it is run without running a load.
    fn missing_steps(&mut self, experiment: &Experiment) -> Vec<String> {
        let last = self.asked.take().pop();
        self.only_names = true;
        // A step that does not ask whether it is wanted ends it, which is no failure.
        let _ = (experiment.run)(self);
        let mut names = self.asked.take();
        let from = names.iter().position(|name| Some(name) == last.as_ref()).unwrap_or(0);
        names.drain(..from);
        let mut missing: Vec<String> = Vec::new();
        for name in names {
            let is_told = missing.contains(&name);
            if !is_told && !self.report.steps.iter().any(|step| step.name == name) {
                missing.push(name);
            }
        }
        missing
    }

    /// Runs a load to its end and judges it.
    ///
    /// # Errors
    /// When it cannot be run, or a signal came.
    pub fn fire(&mut self, spec: &RunSpec) -> Result<Summary, Stopped> {
        if self.only_names {
            return Err(Stopped::Interrupted);
        }
        let failure = |error| Stopped::Failed(gake_session::spec_error::failure(&error));
        let mut prepared = Prepared::new(spec, Inputs::default()).map_err(failure)?;
        prepared.redact(&self.redactor);
        if self.agents.is_some() {
            prepared.keep_to_one_table();
        }
        let beside = Beside {
            interrupt: Some(self.signals.interrupt()),
            origin: origin(&[], &self.redactor),
            ..Beside::default()
        };
        let bar = &self.bar;
        let each = |moment: &Moment<'_>| -> Option<String> {
            if let Some(bar) = bar {
                let point = &moment.second.point;
                bar.say(&format!(
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
            Some(agents) => agents.run(spec, &prepared, beside, each),
            None => prepared.run_beside(beside, each),
        };
        if self.signals.came() {
            return Err(Stopped::Interrupted);
        }
        let recorded = recorded.map_err(failure)?;
        Ok(Summary::new(recorded.run, &prepared.objectives))
    }

    /// Adds a step and tells it.
    pub fn step(
        &mut self,
        name: String,
        server: &Server,
        summary: Summary,
        expectations: Vec<Expectation>,
    ) {
        self.step_of(name, server, summary, None, expectations);
    }

    /// The same of one scenario of the run.
    pub fn step_of(
        &mut self,
        name: String,
        server: &Server,
        summary: Summary,
        subject: Option<usize>,
        mut expectations: Vec<Expectation>,
    ) {
        if !server.is_known() {
            expectations.clear();
        }
        let command = server.command().to_owned();
        let step = ExperimentStep { name, server: command, summary, subject, expectations };
        self.tell(&line(&step));
        self.report.steps.push(step);
    }

    /// Ends it.
    pub fn finish(mut self, interrupted: bool) -> ExperimentReport {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        if interrupted {
            self.report.is_complete = false;
            self.report.notes.push("interrupted: these are the steps so far".to_owned());
        }
        self.report
    }

    fn tell(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.above(text),
            None if self.args.output.quiet => {}
            None => self.console.note(text),
        }
    }
}

/// A load on what `server` answers under `path`, its own figures sampled.
pub fn load_on(server: &Server, path: &str, load: Load) -> RunSpec {
    let mut spec = RunSpec::new(ScenarioSpec::new(server.source(path), load));
    server.watch(&mut spec);
    spec
}

/// Users who each wait for their answer, for a time.
pub fn closed(server: &Server, path: &str, users: usize, duration: Duration) -> RunSpec {
    let mut spec = load_on(server, path, Load::closed(users));
    spec.scenarios[0].duration = Some(duration);
    spec
}

/// Answers that were ok, a second.
pub fn goodput(summary: &Summary) -> f64 {
    per_second(summary.run.tally.counts.ok as f64, summary.run.completing)
}

/// Gives every request and connection of a run at most this long.
pub fn limited(mut spec: RunSpec, limit: Duration) -> RunSpec {
    (spec.connection.connect_timeout, spec.connection.timeout) = (limit, limit);
    for scenario in &mut spec.scenarios {
        scenario.graceful_stop = limit;
    }
    spec
}
