//! Runs trials: a plan and a wire for each, and what was seen.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{OPEN_CONNECTIONS, Stage};
use gake_core::record::{FailedBodies, MACHINE, Run};
use gake_core::schedule::Process;
use gake_core::spec::{RunSpec, ScenarioSpec};
use gake_judge::overload::{self, OverloadStep};
use gake_judge::search::{
    Dimension, Observation, Observer, Purpose, Trial, TrialLoad, TrialSecond,
};
use gake_judge::{Cause, Causes, Clause};
use gake_run::sink::RunFileSink;
use gake_run::{Beside, Moment, Prepared, Recorded, RunError, Sink, Watching};
use gake_text::redact::Redactor;
use gake_wire::Wire;

use super::backlog::Backlog;
use super::reach;
use super::target::{Ready, Target};
use crate::cli::{Arrivals, FindArgs, WatchedSource};
use gake_session::Failure;
use gake_session::Signals;
use gake_session::fleet::FleetMaker;
use gake_session::origin::origin;

/// How long the answers in flight may take at the end of a trial.
const DRAIN: Duration = Duration::from_secs(10);
/// Requests a second beside connections that are held open.
const LIGHT: f64 = 20.0;
/// Connections for a rate: this multiple of what the objective's latency puts in flight.
const CONNECTIONS_TIMES: f64 = 3.0;
/// An objective without a latency allows responses this many times as long as without load.
const UNLOADED_TIMES: f64 = 2.0;
/// Users of a script for a low rate: each takes memory and time to make.
const SCRIPT_USERS: usize = 50;

/// How the connections of a trial are made: shared or a user's own, how many, how many requests at
/// once on each, and how many idle.
type Connections = (bool, usize, usize, usize);

/// Runs trials, one after the other.
#[derive(Debug)]
pub struct Trials<'a> {
    args: &'a FindArgs,
    /// What every trial has in common.
    spec: &'a RunSpec,
    target: &'a Target,
    redactor: &'a Redactor,
    signals: &'a Signals,
    /// Makes the agents of each trial, when others do it.
    agents: Option<&'a FleetMaker>,
    dimension: Dimension,
    process: Process,
    /// Connections that a trial can have at once.
    most: usize,
    /// The latency that must be kept, in seconds.
    limit: f64,
    /// The response time without load, in seconds; 0 while it is not known.
    unloaded: f64,
    /// The wires of the last trial.
    ready: Option<(Connections, Vec<Arc<Wire>>)>,
    watching: Watching,
    /// The last trial's run, and its load.
    last: Option<(Run, f64)>,
    /// Runs fired so far.
    fired: u64,
    /// What limited the target where it was at its limit.
    causes: Causes,
    /// What was lost of the steps' files.
    losses: Vec<String>,
    /// Bodies of failed answers of all steps, when they are asked for.
    bodies: FailedBodies,
}

impl<'a> Trials<'a> {
    /// Trials of a target, each with `most` connections at once at most.
    ///
    /// # Errors
    /// When the wire cannot be prepared.
    pub fn new(
        args: &'a FindArgs,
        spec: &'a RunSpec,
        target: &'a Target,
        redactor: &'a Redactor,
        most: usize,
        signals: &'a Signals,
        agents: Option<&'a FleetMaker>,
    ) -> Result<Self, Failure> {
        let process = match args.search.arrivals {
            Arrivals::Uniform => Process::Uniform,
            Arrivals::Poisson => Process::Poisson,
        };
        let dimension = args.search.dimension.into();
        let mut trials = Self {
            args,
            spec,
            target,
            redactor,
            signals,
            agents,
            dimension,
            process,
            most,
            limit: 0.0,
            unloaded: 0.0,
            ready: None,
            watching: Watching::default(),
            last: None,
            fired: 0,
            causes: Causes::default(),
            losses: Vec::new(),
            bodies: FailedBodies::default(),
        };
        // Bad names and certificates show before anything is sent.
        let first = trials.first()?;
        trials.watching = watching(args, &first.prepared)?;
        Ok(trials)
    }

    /// Makes room for what these objectives allow to be in flight.
    pub fn limit(&mut self, clauses: &[Clause]) {
        let limit = clauses.iter().filter_map(Clause::limit).max().unwrap_or(0);
        self.limit = limit as f64 / 1e9;
    }

    /// Makes room for a target that takes `unloaded` seconds for a request without load.
    pub fn learn(&mut self, unloaded: f64) {
        self.unloaded = unloaded;
    }

    /// Whether anything listens at the target.
    ///
    /// # Errors
    /// When it refuses connections.
    pub fn reach(&mut self) -> Result<(), Failure> {
        let Ready { prepared, .. } = self.first()?;
        prepared.wires.iter().try_for_each(|wire| reach::check(wire, self.target.name()))
    }

    /// A run like those to come, which is not run.
    fn first(&mut self) -> Result<Ready, Failure> {
        self.prepare(&Trial {
            number: 0,
            purpose: Purpose::Ladder,
            load: TrialLoad::Rate(1.0),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(1),
            seed: 0,
            enough: Vec::new(),
        })
    }

    /// How arrivals are spread.
    pub fn arrivals(&self) -> Process {
        self.process
    }

    /// Whether a signal has come.
    pub fn interrupted(&self) -> bool {
        self.signals.came()
    }

    /// Runs a trial and says what the clauses saw. Each second is shown to `each`.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn run(
        &mut self,
        trial: &Trial,
        clauses: &[Clause],
        mut each: impl FnMut(&gake_engine::JoinedSecond) + Send,
    ) -> Result<Observation, Failure> {
        let prepared = self.prepare(trial)?;
        let mut observer = Observer::new(clauses, &prepared.prepared.plan.labels);
        let warmup = trial.warmup.as_secs_f64();
        let mut backlog = Backlog::new(trial.load, self.limit, self.unloaded);
        let run = self.fire_prepared(trial, &prepared, |moment| {
            let second = moment.second;
            observer.second(&prepared.judged(&second.tally));
            // A level belongs to the second before it was read.
            if second.second as f64 > warmup {
                for reading in moment.readings.iter().filter(|reading| reading.source != MACHINE) {
                    observer.level(&reading.name, reading.value);
                }
            }
            each(second);
            let is_lost = trial.purpose != Purpose::Ladder && backlog.grows(second);
            (is_lost || trial.is_settled(&observer.bad())).then(|| "settled".to_owned())
        })?;
        let seen = observer.finish(&prepared.judged_run(&run));
        self.last = Some((run, trial.load.level()));
        Ok(seen)
    }

    /// Runs a trial without objectives, and gives what a search judges of it.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn alone(&mut self, trial: &Trial) -> Result<Run, Failure> {
        let ready = self.prepare(trial)?;
        let run = self.fire_prepared(trial, &ready, |_| None)?;
        Ok(ready.judged_run(&run).into_owned())
    }

    /// Runs up and down the steps without a pause, and gives what each second saw. Ends early when
    /// the target no longer answers.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn climb(
        &mut self,
        steps: &[OverloadStep],
        clauses: &[Clause],
    ) -> Result<Vec<TrialSecond>, Failure> {
        let top = steps.iter().map(|step| step.level).fold(0.0, f64::max);
        let length: u64 = steps.iter().map(|step| step.seconds).sum();
        let trial = Trial {
            number: 0,
            purpose: Purpose::Map,
            load: TrialLoad::Rate(top),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(length),
            seed: self.args.search.seed,
            enough: Vec::new(),
        };
        let stage = |s: &OverloadStep| Stage::step(s.level, Duration::from_secs(s.seconds));
        let stages = steps.iter().map(stage).collect();
        let load = Load::Open { stages, process: self.process };
        let mut spec = self.trial_spec(&trial);
        spec.scenarios[0].load = load;
        let prepared = self.prepare_spec(&trial, &spec)?;
        let mut observer = Observer::new(clauses, &prepared.prepared.plan.labels);
        let run = self.fire_prepared(&trial, &prepared, |moment| {
            observer.second(&prepared.judged(&moment.second.tally));
            overload::is_gone(observer.seconds()).then(|| "the target does not answer".to_owned())
        })?;
        self.causes.add(&run, top);
        Ok(observer.seconds().to_vec())
    }

    /// The last trial had the target at its limit: by what?
    pub fn blame(&mut self) {
        if let Some((run, load)) = self.last.take() {
            self.causes.add(&run, load);
        }
    }

    /// What was lost of the steps' files, a sentence each.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Bodies of failed answers of all steps.
    pub fn bodies(&mut self) -> FailedBodies {
        std::mem::take(&mut self.bodies)
    }

    /// What limited the target, and in how many runs it was looked for.
    pub fn causes(&mut self) -> (Vec<Cause>, u64) {
        let causes = std::mem::take(&mut self.causes);
        let runs = causes.runs;
        (causes.told(), runs)
    }

    fn fire_prepared(
        &mut self,
        trial: &Trial,
        prepared: &Ready,
        mut each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Run, Failure> {
        let sinks = self.step_sinks(trial)?;
        self.fired += 1;
        let mut recorded = self.record(prepared, sinks, &mut each);
        if let Err(RunError::Sink(lost)) = &recorded
            && self.fired > 1
        {
            self.losses.push(lost.clone());
            recorded = self.record(prepared, Vec::new(), &mut each);
        }
        let recorded = recorded.map_err(|error| gake_session::spec_error::failure(&error))?;
        self.losses.extend(recorded.losses.into_iter().map(|loss| loss.text));
        self.bodies.merge(&recorded.run.bodies);
        Ok(recorded.run)
    }

    fn record(
        &mut self,
        prepared: &Ready,
        sinks: Vec<Box<dyn Sink>>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        let beside = Beside {
            sinks,
            interrupt: Some(self.signals.interrupt()),
            watching: Some(&mut self.watching),
            origin: origin(&self.args.search.slo, self.redactor),
            ..Beside::default()
        };
        prepared.record(self.target, self.agents, beside, each)
    }

    /// The files of the next step. What cannot be written before anything is sent is an error;
    /// later it costs the file, and not the search.
    fn step_sinks(&mut self, trial: &Trial) -> Result<Vec<Box<dyn Sink>>, Failure> {
        let create = |path: &PathBuf| {
            RunFileSink::create(path).map_err(|error| gake_session::spec_error::failure(&error))
        };
        let sink = self.step_file(trial).and_then(|path| path.as_ref().map(create).transpose());
        match sink {
            Err(failure) if self.fired > 0 => {
                self.losses.push(failure.to_string());
                Ok(Vec::new())
            }
            sink => Ok(sink?.into_iter().map(|sink| Box::new(sink) as Box<dyn Sink>).collect()),
        }
    }

    /// The run file of the next step, when steps are kept: its number, purpose and load.
    fn step_file(&self, trial: &Trial) -> Result<Option<PathBuf>, Failure> {
        let Some(folder) = &self.args.output.out else { return Ok(None) };
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::could_not(format!("{} cannot be made: {error}", folder.display()))
        })?;
        let load = match trial.load {
            TrialLoad::Rate(rate) => format!("{rate:.0}-per-s"),
            TrialLoad::Users(n) => format!("{n}-users"),
            TrialLoad::Connections(n) => format!("{n}-connections"),
        };
        let name = format!("{:03}-{}-{load}.hlog", self.fired, trial.purpose.name());
        Ok(Some(folder.join(name)))
    }

    fn prepare(&mut self, trial: &Trial) -> Result<Ready, Failure> {
        let spec = self.trial_spec(trial);
        self.prepare_spec(trial, &spec)
    }

    /// What a trial asks for.
    fn trial_spec(&self, trial: &Trial) -> RunSpec {
        let (rate, connections, idle) = match trial.load {
            TrialLoad::Rate(rate) => (Some(rate), self.connections_for(rate), 0),
            TrialLoad::Users(_) if self.dimension == Dimension::Streams => {
                (None, self.args.search.connections.unwrap_or(1).min(self.most), 0)
            }
            TrialLoad::Users(users) => (None, users, 0),
            TrialLoad::Connections(idle) => (Some(LIGHT), OPEN_CONNECTIONS, idle),
        };
        let load = match rate {
            Some(rate) => Load::Open {
                stages: vec![Stage::step(rate, trial.duration)],
                process: self.process,
            },
            None => Load::closed(trial.load.level() as usize),
        };
        let max_in_flight = load.users().unwrap_or(connections);
        let mut spec = self.spec.clone();
        spec.seed = trial.seed;
        spec.warmup = trial.warmup;
        spec.threads = self.args.search.threads;
        spec.connection.idle_connections = idle;
        spec.connection.keepalive &= !self.dimension.connects_each();
        for scenario in &mut spec.scenarios {
            *scenario = ScenarioSpec {
                load: load.clone(),
                duration: rate.is_none().then_some(trial.duration),
                connections,
                max_in_flight,
                graceful_stop: DRAIN.max(Duration::from_secs_f64(2.0 * self.unloaded.min(60.0))),
                ..scenario.clone()
            };
        }
        spec
    }

    /// The run of a trial, over the wires of the last one when their connections are made in the
    /// same way.
    fn prepare_spec(&mut self, trial: &Trial, spec: &RunSpec) -> Result<Ready, Failure> {
        let pooled = !matches!(trial.load, TrialLoad::Users(_));
        let connections = spec.scenarios.iter().map(|scenario| scenario.connections).sum();
        let streams = spec.scenarios.iter().map(|one| one.streams(&spec.connection)).sum();
        let key = (pooled, connections, streams, spec.connection.idle_connections);
        let wires = match &self.ready {
            Some((known, wires)) if *known == key => Some(wires.as_slice()),
            _ => None,
        };
        let mut ready = self.target.prepare(spec, wires)?;
        ready.prepared.redact(self.redactor);
        self.ready = Some((key, ready.prepared.wires.clone()));
        Ok(ready)
    }

    /// Enough connections that the bound on them is not what an objective meets.
    fn connections_for(&self, rate: f64) -> usize {
        let longest = self.limit.max(UNLOADED_TIMES * self.unloaded);
        let needed = (CONNECTIONS_TIMES * rate * longest).ceil() as usize;
        let least = if self.target.is_script() { SCRIPT_USERS } else { OPEN_CONNECTIONS };
        let connections = self.args.search.connections.unwrap_or(least.max(needed));
        connections.min(self.most)
    }
}

fn watching(args: &FindArgs, prepared: &Prepared) -> Result<Watching, Failure> {
    let about_target = args.search.slo.iter().find(|objective| objective.is_about_target());
    if let (Some(objective), []) = (about_target, args.watch.as_slice()) {
        return Err(Failure::usage(format!(
            "{objective} is about the target itself: add --watch port:8080, pid:1234, \
             prometheus:URL or actuator:URL"
        )));
    }
    let sources = args.watch.iter().map(WatchedSource::source).collect::<Result<Vec<_>, _>>()?;
    Watching::of_any(&sources, prepared).map_err(|error| gake_session::spec_error::failure(&error))
}
