//! Runs trials: the load of each over what the spec sends, and what was observed.

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::Stage;
use gake_core::record::{FailedBodies, MACHINE, Run};
use gake_engine::JoinedSecond;
use gake_judge::overload::{self, OverloadStep};
use gake_judge::search::{Observation, Observer, Purpose, Trial, TrialLoad, TrialSecond};
use gake_judge::{Cause, Causes, Clause, Objective};
use gake_wire::PreparedRequests;

use super::backlog::Backlog;
use super::iterations::{judged, judged_run};
use super::options::CapacityOptions;
use super::runner::{EachSecond, PreparedTrial, TrialRunner};
use super::trial_spec::Room;
use super::{reach, trial_spec};
use crate::script::PreparedScript;
use crate::spec::RunSpec;
use crate::{Inputs, LoadedRequests, Prepared, RunError, Scripts, Watching};

/// How the connections of a trial are made: shared or a user's own, how many, how many requests at
/// once on each, and how many idle.
type Connections = (bool, usize, usize, usize);

/// The trials of a search, one after the other.
pub struct Trials<'a> {
    /// What every trial sends, and under which objectives.
    spec: &'a RunSpec,
    pub(super) options: &'a CapacityOptions,
    runner: &'a mut dyn TrialRunner,
    loaded: LoadedRequests,
    /// Loads scripts again, each of which runs once.
    scripts: Option<&'a dyn Scripts>,
    /// Whether the scripts that are loaded have run.
    has_run: bool,
    room: Room,
    /// The wires of the last trial.
    wires: Option<(Connections, Vec<Arc<PreparedRequests>>)>,
    watching: Watching,
    objectives: Vec<Objective>,
    /// The last trial's run, and its load.
    last: Option<(Run, f64)>,
    /// What limited the target where it was at its limit.
    causes: Causes,
    /// Bodies of failed responses of all trials, when they are asked for.
    bodies: FailedBodies,
}

impl std::fmt::Debug for Trials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trials").field("spec", self.spec).finish_non_exhaustive()
    }
}

impl<'a> Trials<'a> {
    /// Reads what `spec` sends in every trial. Names are resolved and sources are opened, so that
    /// what is wrong with them shows before anything is sent.
    ///
    /// # Errors
    /// When the spec is not valid, or something cannot be read or resolved.
    pub fn new(
        spec: &'a RunSpec,
        options: &'a CapacityOptions,
        inputs: Inputs<'a>,
        runner: &'a mut dyn TrialRunner,
    ) -> Result<Self, RunError> {
        let scripts = inputs.scripts;
        let mut loaded = LoadedRequests::read(spec, inputs)?;
        loaded.redact(&options.redactor);
        let has_scripts = loaded.scripts().next().is_some();
        let mut trials = Self {
            spec,
            options,
            runner,
            loaded,
            scripts,
            has_run: false,
            room: Room { has_scripts, ..Room::default() },
            wires: None,
            watching: Watching::default(),
            objectives: Vec::new(),
            last: None,
            causes: Causes::default(),
            bodies: FailedBodies::default(),
        };
        let first = trials.first()?;
        trials.watching = Watching::of_any(&first.watch, &first)?;
        trials.objectives = first.objectives;
        Ok(trials)
    }

    /// What every trial sends.
    #[must_use]
    pub fn loaded(&self) -> &LoadedRequests {
        &self.loaded
    }

    /// The objectives that the spec names.
    pub(super) fn objectives(&self) -> Vec<Objective> {
        self.objectives.clone()
    }

    /// Makes room for the requests in flight that these objectives allow.
    pub(super) fn make_room_for(&mut self, clauses: &[Clause]) {
        let limit = clauses.iter().filter_map(Clause::limit).max().unwrap_or(0);
        self.room.limit = limit as f64 / 1e9;
    }

    /// Makes room for a target that takes `unloaded` seconds for a request without load.
    pub(super) fn learn(&mut self, unloaded: f64) {
        self.room.unloaded = unloaded;
    }

    /// Checks that something listens at the target.
    pub(super) fn reach(&mut self) -> Result<(), RunError> {
        let first = self.first()?;
        first.wires.iter().try_for_each(|wire| reach::check(wire, self.loaded.name()))
    }

    /// A run like those to come, which is not run.
    fn first(&mut self) -> Result<Prepared, RunError> {
        let trial = Trial {
            number: 0,
            purpose: Purpose::Ladder,
            load: TrialLoad::Rate(1.0),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(1),
            seed: 0,
            enough: Vec::new(),
        };
        let spec = self.spec_of(&trial);
        self.prepare(&trial, &spec)
    }

    /// Whether the search is to end early.
    pub(super) fn is_interrupted(&self) -> bool {
        self.options.interrupt.came()
    }

    /// Runs a trial, and returns its figures for `clauses`. Each second goes to `each`, too.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn observe(
        &mut self,
        trial: &Trial,
        clauses: &[Clause],
        mut each: impl FnMut(&JoinedSecond) + Send,
    ) -> Result<Observation, RunError> {
        let spec = self.spec_of(trial);
        let prepared = self.prepare(trial, &spec)?;
        let mut observer = Observer::new(clauses, &prepared.plan.labels);
        let warmup = trial.warmup.as_secs_f64();
        let mut backlog = Backlog::new(trial.load, self.room.limit, self.room.unloaded);
        let run = self.fire(trial, &spec, &prepared, &mut |moment| {
            let second = moment.second;
            observer.second(&judged(&prepared.plan, &second.tally));
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
        let seen = observer.finish(&judged_run(&run));
        self.last = Some((run, trial.load.level()));
        Ok(seen)
    }

    /// Runs a trial without objectives, and returns what a search judges of it.
    pub(super) fn unjudged(&mut self, trial: &Trial) -> Result<Run, RunError> {
        let spec = self.spec_of(trial);
        let prepared = self.prepare(trial, &spec)?;
        let run = self.fire(trial, &spec, &prepared, &mut |_| None)?;
        Ok(judged_run(&run).into_owned())
    }

    /// Runs up and down the steps without a pause, and returns the figures of each second. Ends
    /// early when the target no longer responds.
    pub(super) fn climb(
        &mut self,
        steps: &[OverloadStep],
        clauses: &[Clause],
    ) -> Result<Vec<TrialSecond>, RunError> {
        let top = steps.iter().map(|step| step.level).fold(0.0, f64::max);
        let length: u64 = steps.iter().map(|step| step.seconds).sum();
        let trial = Trial {
            number: 0,
            purpose: Purpose::Map,
            load: TrialLoad::Rate(top),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(length),
            seed: self.options.search.seed,
            enough: Vec::new(),
        };
        let stage = |s: &OverloadStep| Stage::step(s.level, Duration::from_secs(s.seconds));
        let stages = steps.iter().map(stage).collect();
        let mut spec = self.spec_of(&trial);
        spec.scenarios[0].load = Load::Open { stages, process: self.options.arrivals };
        let prepared = self.prepare(&trial, &spec)?;
        let mut observer = Observer::new(clauses, &prepared.plan.labels);
        let run = self.fire(&trial, &spec, &prepared, &mut |moment| {
            observer.second(&judged(&prepared.plan, &moment.second.tally));
            overload::is_gone(observer.seconds()).then(|| "the target does not answer".to_owned())
        })?;
        self.causes.add(&run, top);
        Ok(observer.seconds().to_vec())
    }

    /// Notes what limited the target in the last trial, which had it at its limit.
    pub(super) fn blame(&mut self) {
        if let Some((run, load)) = self.last.take() {
            self.causes.add(&run, load);
        }
    }

    /// What limited the target, and in how many runs it was looked for.
    pub(super) fn causes(&mut self) -> (Vec<Cause>, u64) {
        let causes = std::mem::take(&mut self.causes);
        let runs = causes.runs;
        (causes.told(), runs)
    }

    /// Bodies of failed responses of all trials.
    pub(super) fn bodies(&mut self) -> FailedBodies {
        std::mem::take(&mut self.bodies)
    }

    fn spec_of(&self, trial: &Trial) -> RunSpec {
        trial_spec::of(trial, self.spec, self.options, self.room)
    }

    /// The run of a trial, over the wires of the last one when their connections are made in the
    /// same way.
    fn prepare(&mut self, trial: &Trial, spec: &RunSpec) -> Result<Prepared, RunError> {
        if std::mem::take(&mut self.has_run) && self.room.has_scripts {
            self.loaded.load_scripts_again(spec, self.scripts)?;
        }
        let pooled = !matches!(trial.load, TrialLoad::Users(_));
        let connections = spec.scenarios.iter().map(|scenario| scenario.connections).sum();
        let streams = spec.scenarios.iter().map(|one| one.streams(&spec.connection)).sum();
        let key = (pooled, connections, streams, spec.connection.idle_connections);
        let mut prepared = match &self.wires {
            Some((known, wires)) if *known == key => {
                self.loaded.prepare_over(spec, wires.clone())?
            }
            _ => self.loaded.prepare(spec)?,
        };
        prepared.redact(&self.options.redactor);
        // Thresholds that abort a test do not abort a search.
        prepared.scripts.iter_mut().for_each(PreparedScript::leave_out_thresholds);
        self.wires = Some((key, prepared.wires.clone()));
        Ok(prepared)
    }

    fn fire(
        &mut self,
        trial: &Trial,
        spec: &RunSpec,
        prepared: &Prepared,
        each: &mut EachSecond<'_>,
    ) -> Result<Run, RunError> {
        self.has_run = true;
        let loaded = &self.loaded;
        let of =
            PreparedTrial { trial, spec, loaded, prepared, interrupt: &self.options.interrupt };
        let recorded = self.runner.run(of, &mut self.watching, each)?;
        for (script, end) in prepared.scripts.iter().zip(&recorded.scripts) {
            script.failure(end).map_or(Ok(()), |why| Err(RunError::Cannot(why)))?;
        }
        self.bodies.merge(&recorded.run.bodies);
        Ok(recorded.run)
    }
}
