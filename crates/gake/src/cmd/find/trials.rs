//! Runs trials: a plan and a wire for each, and what was seen.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gake_core::plan::{Load as PlanLoad, Overflow, Plan, Stage};
use gake_core::record::{Reading, Run, Watched};
use gake_core::schedule::Process;
use gake_judge::overload::{self, Stair};
use gake_judge::search::{Dimension, Load, Observation, Observer, Purpose, Second, Trial};
use gake_judge::{Cause, Causes, Clause};
use gake_wire::Wire;

use crate::cli::{Arrivals, FindArgs};
use crate::exit::Failure;
use crate::load::{
    Job, Moment, OPEN_CONNECTIONS, Outputs, Target, Watching, connection_settings, record,
    threads_for,
};
use crate::signals::Signals;

/// How long the answers in flight may take at the end of a trial.
const DRAIN: Duration = Duration::from_secs(10);
/// Requests a second beside connections that are held open.
const LIGHT: f64 = 20.0;
/// Connections for a rate: so many times what the objective's latency makes be in flight.
const CONNECTIONS_TIMES: f64 = 3.0;
/// Descriptors that are not connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// The wire that a kind of trial needs.
#[derive(Debug)]
struct Ready {
    pooled: bool,
    connections: usize,
    idle: usize,
    wire: Arc<Wire>,
}

/// Runs trials, one after the other.
#[derive(Debug)]
pub struct Trials<'a> {
    args: &'a FindArgs,
    target: &'a Target,
    signals: &'a Signals,
    dimension: Dimension,
    process: Process,
    /// Connections that the process can have.
    most: usize,
    /// The latency that must be kept, in seconds.
    limit: f64,
    ready: Option<Ready>,
    watching: Watching,
    /// The last trial's run, and its load.
    last: Option<(Run, f64)>,
    /// Runs fired so far.
    fired: u64,
    /// What limited the target where it was at its limit.
    causes: Causes,
    /// What was lost of the steps' files.
    losses: Vec<String>,
}

impl<'a> Trials<'a> {
    /// Trials of a target.
    ///
    /// # Errors
    /// When the wire cannot be prepared.
    pub fn new(
        args: &'a FindArgs,
        target: &'a Target,
        descriptors: u64,
        signals: &'a Signals,
    ) -> Result<Self, Failure> {
        let process = match args.search.arrivals {
            Arrivals::Uniform => Process::Uniform,
            Arrivals::Poisson => Process::Poisson,
        };
        let most = descriptors.saturating_sub(OTHER_DESCRIPTORS).max(1);
        let dimension = args.search.dimension.into();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut trials = Self {
            args,
            target,
            signals,
            dimension,
            process,
            most,
            limit: 0.0,
            ready: None,
            watching: Watching::start(&args.watch, &args.search.slo)?,
            last: None,
            fired: 0,
            causes: Causes::default(),
            losses: Vec::new(),
        };
        // Bad names and certificates show before anything is sent.
        trials.wire(true, OPEN_CONNECTIONS, 0)?;
        Ok(trials)
    }

    /// Makes room for what these objectives allow to be in flight.
    pub fn limit(&mut self, clauses: &[Clause]) {
        let limit = clauses.iter().filter_map(Clause::limit).max().unwrap_or(0);
        self.limit = limit as f64 / 1e9;
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
        mut each: impl FnMut(&gake_engine::Second),
    ) -> Result<Observation, Failure> {
        let (plan, wire) = self.prepare(trial)?;
        let mut observer = Observer::new(clauses, &plan.labels);
        let warmup = trial.warmup.as_secs_f64();
        let run = self.fire_prepared(trial, &plan, &wire, |moment, readings| {
            observer.second(&moment.second.tally);
            // A level belongs to the second before it was read.
            for reading in readings.iter().filter(|_| moment.second.second as f64 > warmup) {
                observer.level(&reading.name, reading.value);
            }
            each(moment.second);
            trial.is_settled(&observer.bad()).then(|| "settled".to_owned())
        })?;
        let seen = observer.finish(&run);
        self.last = Some((run, trial.load.level()));
        Ok(seen)
    }

    /// Runs a trial; `each` may end it with a reason.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn fire(
        &mut self,
        trial: &Trial,
        mut each: impl FnMut(Moment<'_>) -> Option<String>,
    ) -> Result<Run, Failure> {
        let (plan, wire) = self.prepare(trial)?;
        self.fire_prepared(trial, &plan, &wire, |moment, _| each(moment))
    }

    /// Runs up and down the stairs without a pause, and gives what each second saw. Ends early when
    /// the target no longer answers.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn climb(&mut self, stairs: &[Stair], clauses: &[Clause]) -> Result<Vec<Second>, Failure> {
        let top = stairs.iter().map(|stair| stair.level).fold(0.0, f64::max);
        let length: u64 = stairs.iter().map(|stair| stair.seconds).sum();
        let trial = Trial {
            number: 0,
            purpose: Purpose::Map,
            load: Load::Rate(top),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(length),
            seed: self.args.search.seed,
            enough: Vec::new(),
        };
        let (plan, wire) = self.prepare(&trial)?;
        let stage = |s: &Stair| Stage::step(s.level, Duration::from_secs(s.seconds));
        let stages = stairs.iter().map(stage).collect();
        let load = PlanLoad::Open { stages, process: self.process };
        let plan = Arc::new(Plan { load, ..(*plan).clone() });
        let mut observer = Observer::new(clauses, &plan.labels);
        let run = self.fire_prepared(&trial, &plan, &wire, |moment, _| {
            observer.second(&moment.second.tally);
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

    /// What limited the target, and in how many runs it was looked for.
    pub fn causes(&mut self) -> (Vec<Cause>, u64) {
        let causes = std::mem::take(&mut self.causes);
        let runs = causes.runs;
        (causes.told(), runs)
    }

    fn fire_prepared(
        &mut self,
        trial: &Trial,
        plan: &Arc<Plan>,
        wire: &Arc<Wire>,
        mut each: impl FnMut(Moment<'_>, &[Reading]) -> Option<String>,
    ) -> Result<Run, Failure> {
        let outputs = self.step_outputs(trial, plan)?;
        self.fired += 1;
        let started_unix_ns = outputs.started_unix_ns;
        let job = Job { plan, wire, seed: trial.seed, started_unix_ns, log: None };
        let each = |moment: Moment<'_>, readings: &[Reading], _: &Watched| each(moment, readings);
        let recorded = record(job, Some(self.signals), &mut self.watching, outputs, each)?;
        self.losses.extend(recorded.losses);
        Ok(recorded.run)
    }

    /// The files of the next step. What cannot be written before anything is sent is an error;
    /// later it costs the file, and not the search.
    fn step_outputs(&mut self, trial: &Trial, plan: &Plan) -> Result<Outputs, Failure> {
        let outputs =
            self.step_file(trial).and_then(|path| Outputs::run_file(path.as_deref(), plan));
        match outputs {
            Err(failure) if self.fired > 0 => {
                self.losses.push(failure.to_string());
                Outputs::run_file(None, plan)
            }
            outputs => outputs,
        }
    }

    /// The run file of the next step, when steps are kept: its number, purpose and load.
    fn step_file(&self, trial: &Trial) -> Result<Option<PathBuf>, Failure> {
        let Some(folder) = &self.args.output.out else { return Ok(None) };
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::could_not(format!("{} cannot be made: {error}", folder.display()))
        })?;
        let load = match trial.load {
            Load::Rate(rate) => format!("{rate:.0}-per-s"),
            Load::Users(n) => format!("{n}-users"),
            Load::Connections(n) => format!("{n}-connections"),
        };
        let name = format!("{:03}-{}-{load}.hlog", self.fired, trial.purpose.name());
        Ok(Some(folder.join(name)))
    }

    fn prepare(&mut self, trial: &Trial) -> Result<(Arc<Plan>, Arc<Wire>), Failure> {
        let (rate, connections, idle) = match trial.load {
            Load::Rate(rate) => (Some(rate), self.connections_for(rate), 0),
            Load::Users(users) => (None, users, 0),
            Load::Connections(idle) => (Some(LIGHT), OPEN_CONNECTIONS, idle),
        };
        let wire = self.wire(rate.is_some(), connections, idle)?;
        let load = match rate {
            Some(rate) => PlanLoad::Open {
                stages: vec![Stage::step(rate, trial.duration)],
                process: self.process,
            },
            None => PlanLoad::Closed { think: Duration::ZERO },
        };
        let peak = rate.unwrap_or(f64::INFINITY);
        let plan = Plan {
            target: self.target.name().to_owned(),
            load,
            duration: rate.is_none().then_some(trial.duration),
            requests: None,
            warmup: trial.warmup,
            connections,
            max_in_flight: connections,
            overflow: Overflow::Wait,
            connect_rate: self.args.connection.connect_rate,
            idle_connections: idle,
            keepalive: wire.settings.keepalive,
            timeouts: wire.settings.timeouts,
            drain: DRAIN,
            threads: threads_for(self.args.search.threads, peak, connections),
            spin: false,
            expect: self.args.request.expect.clone(),
            labels: wire.labels.clone(),
        };
        Ok((Arc::new(plan), wire))
    }

    /// Enough connections that the bound on them is not what an objective meets.
    fn connections_for(&self, rate: f64) -> usize {
        let needed = (CONNECTIONS_TIMES * rate * self.limit).ceil() as usize;
        let connections = self.args.search.connections.unwrap_or(OPEN_CONNECTIONS.max(needed));
        connections.min(self.most)
    }

    /// The wire for so many connections; the last one again when it fits.
    fn wire(
        &mut self,
        pooled: bool,
        connections: usize,
        idle: usize,
    ) -> Result<Arc<Wire>, Failure> {
        if let Some(ready) = &self.ready
            && (ready.pooled, ready.connections, ready.idle) == (pooled, connections, idle)
        {
            return Ok(Arc::clone(&ready.wire));
        }
        let mut settings = connection_settings(&self.args.connection, pooled, connections)?;
        settings.idle_connections = idle;
        settings.keepalive &= self.dimension != Dimension::ConnectRate;
        let wire = Arc::new(self.target.wire(settings)?);
        self.ready = Some(Ready { pooled, connections, idle, wire: Arc::clone(&wire) });
        Ok(wire)
    }
}
