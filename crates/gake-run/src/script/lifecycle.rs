//! The life cycle of a run's scripts: `setup`, the users' iterations, `teardown`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use gake_core::clock::SECOND;
use gake_core::record::{Run, Tally};
use gake_core::schedule::Slice;
use gake_engine::{Stop, WorkerContext};
use gake_k6::test::LogLevel;
use gake_k6::threshold::INTERVAL;
use gake_k6::unattributed_samples::add_dropped;
use gake_k6::user::series_index::SeriesIndex;
use gake_k6::work::{ScriptFactory, ScriptLoad};
use gake_wire::Network;

use super::levels::{Levels, RunPhase, UserTicker};
use super::mixed::ScenarioWorks;
use super::prepared::{PreparedScript, ScriptEnd};
use super::remote_users::{RemoteProgress, RemoteUsers, SetupResult};
use super::scenario_users::{self, ScenarioUsers};
use super::{ScriptRunError, TagKeys, network, users_by_scenario};
use crate::{EachSecond, Interrupt, RecordedRun, ResolvedRun, RunError, RunOptions, SecondUpdate};

/// Users in other processes. If another process began the run: the result of its `setup`.
pub type RemoteScript<'a> = (&'a mut dyn RemoteUsers, Option<SetupResult>);

impl ResolvedRun {
    /// As [`ResolvedRun::run_with`], with the users of the run's scripts, and its other scenarios,
    /// in other processes. `setup` and `teardown` run here. With the result of an earlier `setup`,
    /// which only a run with one script has, only `teardown` runs, unless that process had already
    /// completed the run.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn run_remote_users(
        &self,
        remote: RemoteScript<'_>,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        self.run_scripts(Some(remote), options, each)
    }

    /// Runs from the first `setup` to the last `teardown`.
    pub(crate) fn run_scripts(
        &self,
        remote: Option<RemoteScript<'_>>,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let own = Interrupt::default();
        let interrupt = options.interrupt.unwrap_or(&own).clone();
        // As in k6, a threshold that aborts the test does not wait for iterations.
        let options = RunOptions { interrupt: Some(&interrupt), aborts_at_once: true, ..options };
        let (remote, mut earlier) =
            remote.map_or((None, None), |(users, earlier)| (Some(users), earlier));
        let is_resumed = earlier.is_some();
        let phase = Arc::new(RunPhase::default());
        // The seconds of k6's figures begin here.
        gake_wire::seed_random();
        let ticker = self.user_ticker(&phase, &interrupt);
        if remote.is_none() {
            self.scripts.iter().for_each(|of| of.script.write_init_lines(&of.run));
        }
        let lives =
            self.scripts.iter().map(|of| ScriptLifecycle::begin(of, earlier.take(), &interrupt));
        let mut lives = lives.collect::<Result<Vec<_>, _>>()?;
        // As in k6, a `setup` that failed or was interrupted ends the test without `teardown`.
        let is_set_up = lives.iter().all(ScriptLifecycle::is_set_up);
        // Resumed users are already running, and must be stopped.
        let is_void = !is_set_up || interrupt.came() && !is_resumed;
        // A void run needs no other process.
        let remote = remote.filter(|_| !is_void);
        let control = options.users.cloned().unwrap_or_default();
        let lost = remote.as_ref().map(|remote| remote.lost());
        for life in &mut lives {
            life.make(self, is_void);
            // Fails on a second run.
            let active =
                scenario_users::active(&life.scenario_users, control.clone(), lost.clone());
            if life.of.script.test.active_users.set(active).is_err() {
                return Err(RunError::cannot("a script runs once: prepare the run again"));
            }
            let stopper = interrupt.clone();
            life.of.script.test.on_abort(move || stopper.stop(Stop::Now));
        }
        if is_void {
            interrupt.stop(Stop::Now);
        }
        let followed = if remote.is_some() { lives.as_slice() } else { &[] };
        let remote_progress: Vec<_> =
            followed.iter().map(ScriptLifecycle::remote_progress).collect();
        let each = &mut |update: &SecondUpdate<'_>| {
            remote_progress.iter().for_each(|one| one.follow(update));
            if !remote_progress.is_empty() {
                // Before the second's changes.
                let at = (update.second.second * SECOND).saturating_sub(1);
                phase.followed.store(at, Relaxed);
            }
            let seen = ticker.as_ref().map(UserTicker::so_far).unwrap_or_default();
            let update = SecondUpdate { levels: &seen, ..*update };
            let wish = each(&update).or_else(|| lives.iter().find_map(|one| one.crossed(&update)));
            if wish.is_some() {
                phase.is_ended.store(true, Relaxed);
            }
            wish
        };
        let mut needs_teardown = is_set_up;
        let recorded = match remote {
            Some(remote) => {
                let set_up: Vec<_> = lives.iter().map(|life| life.set_up.clone()).collect();
                let ready = remote.assemble(&set_up);
                let run = ready.and_then(|workers| self.run_remote(workers, options, each));
                let is_known = run.is_ok() || !is_resumed;
                needs_teardown &= is_known && remote.needs_teardown();
                // No user may send anything during `teardown`.
                run.inspect_err(|_| remote.give_up())
            }
            None => self.run_users(&lives, &phase, options, each),
        };
        phase.is_over.store(true, Relaxed);
        let mut ends = Vec::new();
        for life in &lives {
            let mut aside = Tally::default();
            let teardown = match needs_teardown {
                true => life.tear_down(&mut aside, &interrupt),
                false => Ok(()),
            };
            if let (Err(_), Err(error)) = (&recorded, &teardown) {
                // The error of the run is returned, so this one is only logged.
                life.of.script.test.log(LogLevel::Error, &error.to_string(), &[]);
            }
            ends.push((teardown, aside));
        }
        let mut recorded = recorded?;
        remote_progress.iter().for_each(|one| one.end(&recorded.run));
        let seen = ticker.map(UserTicker::finish).unwrap_or_default();
        for (life, (teardown, aside)) in lives.into_iter().zip(ends) {
            let is_whole = is_set_up && !phase.is_ended.load(Relaxed) && !interrupt.came();
            recorded.scripts.push(life.end(is_whole, teardown, &mut recorded.run));
            recorded.run.tally.merge(&aside);
        }
        recorded.run.tally.series.merge(&seen);
        Ok(recorded)
    }

    /// Starts the thread that counts the users of all scripts.
    fn user_ticker(&self, phase: &Arc<RunPhase>, interrupt: &Interrupt) -> Option<UserTicker> {
        let first = self.scripts.first()?;
        let series_index = SeriesIndex::new(first.run.keys.iter().map(String::as_str), false);
        let levels = Levels::new(&first.script.test, &series_index, &first.script.metrics);
        let tests = self.scripts.iter().map(|of| Arc::clone(&of.script.test)).collect();
        let plans = self.plan.scenarios();
        for of in &self.scripts {
            let users: usize = of.scenarios.iter().map(|number| plans[*number].lanes()).sum();
            of.script.test.start(users as u64);
        }
        let in_background = gake_engine::belongs_in_background(&self.plan);
        let (phase, interrupt) = (Arc::clone(phase), interrupt.clone());
        Some(UserTicker::start(levels, tests, phase, interrupt, in_background))
    }

    /// Runs the users in this process.
    fn run_users(
        &self,
        lives: &[ScriptLifecycle<'_>],
        phase: &Arc<RunPhase>,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let mut loads: Vec<Option<ScriptLoad>> = Vec::new();
        loads.resize_with(self.plan.scenarios().len(), || None);
        for life in lives {
            for (number, load) in life.of.scenarios.iter().zip(&life.loads) {
                loads[*number] = Some(load.clone());
            }
        }
        let phase = Arc::clone(phase);
        if self.wires.is_empty() {
            let loads: Vec<ScriptLoad> = loads.into_iter().flatten().collect();
            let make = move |context: WorkerContext| {
                phase.clock.get_or_init(|| context.clock.clone());
                let load = loads[context.scenario].clone();
                ScriptFactory::new(load, context.slice, context.clock)
            };
            return self.run_works(make, options, each);
        }
        let works = ScenarioWorks::of(self, loads);
        let make = move |context: WorkerContext| {
            phase.clock.get_or_init(|| context.clock.clone());
            works.make(context)
        };
        self.run_works(make, options, each)
    }
}

struct ScriptLifecycle<'a> {
    of: &'a PreparedScript,
    network: Arc<Network>,
    keys: TagKeys,
    set_up: SetupResult,
    /// Whether `setup` returned; false if it was interrupted.
    setup: Result<bool, ScriptRunError>,
    loads: Vec<ScriptLoad>,
    scenario_users: Arc<[ScenarioUsers]>,
}

impl<'a> ScriptLifecycle<'a> {
    /// Runs `setup`, unless an earlier process did.
    fn begin(
        of: &'a PreparedScript,
        earlier: Option<SetupResult>,
        interrupt: &Interrupt,
    ) -> Result<Self, RunError> {
        let PreparedScript { script, run, .. } = of;
        let network = Arc::new(network(run, script.key_log(run)?, None)?);
        let keys: TagKeys = run.keys.clone().into();
        // A script runs once.
        let _ = script.network.set((Arc::clone(&network), Arc::clone(&keys)));
        let (set_up, setup) = match earlier {
            Some(earlier) => (earlier, Ok(true)),
            None => script.set_up(run, (&network, &keys), interrupt),
        };
        let (loads, scenario_users) = (Vec::new(), Arc::default());
        Ok(Self { of, network, keys, set_up, setup, loads, scenario_users })
    }

    fn is_set_up(&self) -> bool {
        matches!(self.setup, Ok(true)) && self.of.script.test.aborted().is_none()
    }

    /// Prepares the loads of its users; a void run creates no users.
    fn make(&mut self, prepared: &ResolvedRun, is_void: bool) {
        let PreparedScript { script, run, scenarios, .. } = self.of;
        let plans = prepared.plan.scenarios();
        let lanes: Vec<usize> = scenarios.iter().map(|number| plans[*number].lanes()).collect();
        let data = (self.set_up.data.as_deref(), Slice::WHOLE);
        self.loads = script.loads(run, &lanes, (&self.network, &self.keys), data);
        self.loads.iter_mut().for_each(|load| load.is_void = is_void);
        self.scenario_users = users_by_scenario(run, &self.loads);
        let shown = self.loads.iter().map(|load| (load.scenario.clone(), load.start));
        script.test.show_scenarios(shown.collect());
    }

    fn remote_progress(&self) -> RemoteProgress<'_> {
        let PreparedScript { script, scenarios, .. } = self.of;
        RemoteProgress { test: &script.test, scenario_users: &self.scenario_users, scenarios }
    }

    /// The tallies of its scenarios; a run with one scenario has only the whole.
    fn tallies<'t>(&'t self, run: &'t Run) -> impl Iterator<Item = &'t Tally> {
        let tally = |number: &usize| match run.scenarios.get(*number) {
            Some(scenario) => &scenario.tally,
            None => &run.tally,
        };
        self.of.scenarios.iter().map(tally)
    }

    /// The thresholds that abort the run, if one does.
    fn crossed(&self, update: &SecondUpdate<'_>) -> Option<String> {
        let thresholds = self.of.thresholds.as_ref()?;
        let second = update.second.second;
        if !second.is_multiple_of(INTERVAL.as_secs()) {
            return None;
        }
        let series = [&update.so_far.tally().series, update.levels];
        let results = thresholds.judge(&series, Duration::from_nanos(second * SECOND), false);
        results.aborts.then(|| results.message().unwrap_or_default())
    }

    /// Calls `teardown`, which records into `aside`.
    fn tear_down(&self, aside: &mut Tally, interrupt: &Interrupt) -> Result<(), ScriptRunError> {
        let PreparedScript { script, run, .. } = self.of;
        let is_cut = || interrupt.is_urgent();
        let data = self.set_up.data.as_deref();
        script.teardown(run, (&self.network, &self.keys), data, aside, is_cut)
    }

    /// Completes the run with samples that no user recorded.
    fn end(self, is_whole: bool, teardown: Result<(), ScriptRunError>, run: &mut Run) -> ScriptEnd {
        self.warn_of_dropped(run);
        let lost = self.tallies(run).map(|tally| tally.counts.lost).sum();
        // Samples of `setup` come first, and series are shown in order.
        let of_load = std::mem::take(&mut run.tally.series);
        run.tally.merge(&self.set_up.recorded);
        run.tally.series.merge(&of_load);
        // As in k6, an interrupted run has no dropped iterations.
        let left: &[ScenarioUsers] = if is_whole { &self.scenario_users } else { &[] };
        self.add_dropped(left, lost, &mut run.tally);
        ScriptEnd { setup_data: self.set_up.data, setup: self.setup.map(drop), teardown }
    }

    /// Adds iterations that never started, or were lost with an agent, as dropped.
    fn add_dropped(&self, scenario_users: &[ScenarioUsers], lost: u64, tally: &mut Tally) {
        let PreparedScript { script, run, .. } = self.of;
        let series_index = SeriesIndex::new(self.keys.iter().map(String::as_str), false);
        if script.test.aborted().is_none() {
            for (users, scenario) in scenario_users.iter().zip(&run.spec.scenarios) {
                let name = Some(scenario.name.as_str());
                add_dropped(&script.test, &series_index, name, (users.left(), 1), tally);
            }
        }
        add_dropped(&script.test, &series_index, None, (lost, 1), tally);
    }

    /// Warns of scenarios whose users were all busy when an iteration was due.
    fn warn_of_dropped(&self, recorded: &Run) {
        if self.loads.iter().any(|load| load.is_void) {
            return;
        }
        let PreparedScript { script, run, .. } = self.of;
        let scenarios = run.spec.scenarios.iter().zip(&run.executors);
        for ((spec, executor), tally) in scenarios.zip(self.tallies(recorded)) {
            // Iterations of a lost agent were not dropped for lack of users.
            if tally.counts.dropped > tally.counts.lost {
                let message = format!(
                    "Insufficient VUs, reached {} active VUs and cannot initialize more",
                    spec.max_in_flight
                );
                let fields = [("executor", executor.as_str()), ("scenario", spec.name.as_str())];
                script.test.log(LogLevel::Warning, &message, &fields);
            }
        }
    }
}
