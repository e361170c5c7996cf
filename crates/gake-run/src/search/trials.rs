//! Runs trials and returns what was observed.

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::Stage;
use gake_core::record::{FailedBodies, MACHINE, Run};
use gake_engine::JoinedSecond;
use gake_judge::overload::{self, OverloadStep};
use gake_judge::search::{Observation, Observer, Purpose, Trial, TrialLoad, TrialSecond};
use gake_judge::usl::PoolFit;
use gake_judge::{Cause, Causes, Clause, Objective};
use gake_wire::PreparedRequests;

use super::backlog::Backlog;
use super::iterations::{judged, judged_run};
use super::options::CapacityOptions;
use super::runner::{PreparedTrial, TrialRunner};
use super::trial_spec::ConnectionNeeds;
use super::{reach, trial_spec};
use crate::script::PreparedScript;
use crate::spec::RunSpec;
use crate::{EachSecond, Inputs, LoadedRequests, ResolvedRun, RunError, Scripts, TargetWatcher};

/// The connection settings of a trial that decide whether wires can be reused: whether users share
/// connections, number of connections, streams, idle connections.
type WireKey = (bool, usize, usize, usize);

/// Runs the trials of a search.
pub struct Trials<'a> {
    /// The requests and objectives of every trial.
    spec: &'a RunSpec,
    pub(super) options: &'a CapacityOptions,
    runner: &'a mut dyn TrialRunner,
    loaded: LoadedRequests,
    /// Reloads scripts, each of which runs once.
    scripts: Option<&'a dyn Scripts>,
    /// Whether the loaded scripts have run.
    has_run: bool,
    needs: ConnectionNeeds,
    /// The wires of the last trial.
    wires: Option<(WireKey, Vec<Arc<PreparedRequests>>)>,
    watching: TargetWatcher,
    objectives: Vec<Objective>,
    /// The run of the last trial, and its load.
    last: Option<(Run, f64)>,
    /// Causes of limits that the target reached.
    causes: Causes,
    /// Bodies of failed responses of all trials, if requested.
    bodies: FailedBodies,
}

impl std::fmt::Debug for Trials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trials").field("spec", self.spec).finish_non_exhaustive()
    }
}

impl<'a> Trials<'a> {
    /// Reads the requests of `spec`. Names are resolved and sources are opened, so that errors show
    /// before anything is sent.
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
            needs: ConnectionNeeds { has_scripts, ..ConnectionNeeds::default() },
            wires: None,
            watching: TargetWatcher::default(),
            objectives: Vec::new(),
            last: None,
            causes: Causes::default(),
            bodies: FailedBodies::default(),
        };
        let first = trials.first()?;
        trials.watching = TargetWatcher::of_any(&first.watch, &first)?;
        trials.objectives = first.objectives;
        Ok(trials)
    }

    /// The requests of every trial.
    #[must_use]
    pub fn loaded(&self) -> &LoadedRequests {
        &self.loaded
    }

    /// The objectives of the spec.
    pub(super) fn objectives(&self) -> Vec<Objective> {
        self.objectives.clone()
    }

    /// Sets the latency that determines the number of connections.
    pub(super) fn set_latency_limit(&mut self, clauses: &[Clause]) {
        let limit = clauses.iter().filter_map(Clause::limit).max().unwrap_or(0);
        self.needs.limit = limit as f64 / 1e9;
    }

    /// Sets the response time without load, in seconds.
    pub(super) fn set_unloaded(&mut self, unloaded: f64) {
        self.needs.unloaded = unloaded;
    }

    /// Checks that the target accepts connections.
    pub(super) fn reach(&mut self) -> Result<(), RunError> {
        let first = self.first()?;
        first.wires.iter().try_for_each(|wire| reach::check(wire, self.loaded.name()))
    }

    /// Prepares a trial for its settings, without running it.
    fn first(&mut self) -> Result<ResolvedRun, RunError> {
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

    /// Whether the search was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        self.options.interrupt.came()
    }

    /// Runs a trial and returns its figures for `clauses`. `each` sees each second.
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
        let mut backlog = Backlog::new(trial.load, self.needs.limit, self.needs.unloaded);
        let run = self.fire(trial, &spec, &prepared, &mut |update| {
            let second = update.second;
            observer.second(&judged(&prepared.plan, &second.tally));
            // A reading describes the second before it.
            if second.second as f64 > warmup {
                for reading in update.readings.iter().filter(|reading| reading.source != MACHINE) {
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

    /// Runs a trial without objectives, and returns the figures that a search judges.
    pub(super) fn unjudged(&mut self, trial: &Trial) -> Result<Run, RunError> {
        let spec = self.spec_of(trial);
        let prepared = self.prepare(trial, &spec)?;
        let run = self.fire(trial, &spec, &prepared, &mut |_| None)?;
        Ok(judged_run(&run).into_owned())
    }

    /// Runs the steps without a pause, and returns the figures of each second. Ends early if the
    /// target stops responding.
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
        let run = self.fire(&trial, &spec, &prepared, &mut |update| {
            observer.second(&judged(&prepared.plan, &update.second.tally));
            overload::is_gone(observer.seconds()).then(|| "the target does not respond".to_owned())
        })?;
        self.causes.add(&run, top);
        Ok(observer.seconds().to_vec())
    }

    /// Records what limited the target in the last trial.
    pub(super) fn record_cause(&mut self) {
        if let Some((run, load)) = self.last.take() {
            self.causes.add(&run, load);
        }
    }

    /// The causes of limits, and the number of runs that were examined.
    pub(super) fn causes(&mut self, pool: Option<PoolFit>) -> (Vec<Cause>, u64) {
        let causes = std::mem::take(&mut self.causes);
        let runs = causes.runs;
        (causes.sorted(pool), runs)
    }

    /// Bodies of failed responses of all trials.
    pub(super) fn bodies(&mut self) -> FailedBodies {
        std::mem::take(&mut self.bodies)
    }

    fn spec_of(&self, trial: &Trial) -> RunSpec {
        trial_spec::of(trial, self.spec, self.options, self.needs)
    }

    /// Prepares the run of a trial, reusing the wires of the last one if the connection settings
    /// are the same.
    fn prepare(&mut self, trial: &Trial, spec: &RunSpec) -> Result<ResolvedRun, RunError> {
        if std::mem::take(&mut self.has_run) && self.needs.has_scripts {
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
        prepared.scripts.iter_mut().for_each(PreparedScript::disable_thresholds);
        self.wires = Some((key, prepared.wires.clone()));
        Ok(prepared)
    }

    fn fire(
        &mut self,
        trial: &Trial,
        spec: &RunSpec,
        prepared: &ResolvedRun,
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
