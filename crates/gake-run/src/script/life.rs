//! The life of a run's scripts around the engine's run: `setup`, the users' iterations, `teardown`.

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
use gake_wire::{HttpFactory, Network};

use super::crew::{self, Crew};
use super::elsewhere::{Followed, RemoteUsers, SetUp};
use super::levels::{Levels, RunPhase, UserTicker};
use super::mixed::MixedFactory;
use super::prepared::{ONE_SCRIPT, PreparedScript, ScriptEnd};
use super::{Keys, ScriptRunError, crews, network};
use crate::{Beside, Interrupt, Moment, Prepared, Recorded, RunError};

/// Users in other processes, and what `setup` gave in the process that began the run, if that was
/// another one.
pub type RemoteScript<'a> = (&'a mut dyn RemoteUsers, Option<SetUp>);

impl Prepared {
    /// As [`Prepared::run_beside`], with the users of the run's script in other processes. `setup`
    /// and `teardown` run here; with what an earlier process set up, `teardown` alone, unless that
    /// process had the whole run.
    ///
    /// # Errors
    /// When the run cannot be made, or it fires more than one script.
    pub fn run_users_elsewhere(
        &self,
        remote: RemoteScript<'_>,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        if self.scripts.len() != 1 || !self.wires.is_empty() {
            return Err(RunError::cannot(ONE_SCRIPT));
        }
        self.run_scripts(Some(remote), beside, each)
    }

    /// Runs it to its end, from the first `setup` to the last `teardown`.
    pub(crate) fn run_scripts(
        &self,
        remote: Option<RemoteScript<'_>>,
        beside: Beside<'_>,
        mut each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        let own = Interrupt::default();
        let interrupt = beside.interrupt.unwrap_or(&own).clone();
        // As in k6: a threshold that aborts the test does not wait for iterations.
        let beside = Beside { interrupt: Some(&interrupt), aborts_at_once: true, ..beside };
        let (remote, mut earlier) =
            remote.map_or((None, None), |(users, earlier)| (Some(users), earlier));
        let is_resumed = earlier.is_some();
        let phase = Arc::new(RunPhase::default());
        let ticker = self.user_ticker(&phase, &interrupt);
        let lives = self.scripts.iter().map(|of| Life::begin(of, earlier.take(), &interrupt));
        let mut lives = lives.collect::<Result<Vec<_>, _>>()?;
        // As in k6: after a setup that failed or was interrupted nothing runs, teardown neither.
        let is_set_up = lives.iter().all(Life::is_set_up);
        // Users that run already must be told to end.
        let is_void = !is_set_up || interrupt.came() && !is_resumed;
        // Where nothing runs no other process is needed.
        let remote = remote.filter(|_| !is_void);
        let control = beside.users.cloned().unwrap_or_default();
        let lost = remote.as_ref().map(|remote| remote.lost());
        for life in &mut lives {
            life.make(self, is_void);
            // Set once: a script runs once.
            let active = crew::active(&life.crews, control.clone(), lost.clone());
            if life.of.script.test.active_users.set(active).is_err() {
                return Err(RunError::cannot("a script runs once: prepare the run again"));
            }
            let stopper = interrupt.clone();
            life.of.script.test.on_abort(move || stopper.stop(Stop::Now));
        }
        if is_void {
            interrupt.stop(Stop::Now);
        }
        let followed = remote.is_some().then(|| lives.first().map(Life::followed)).flatten();
        let each = |moment: &Moment<'_>| {
            if let Some(followed) = &followed {
                followed.follow(moment);
            }
            if followed.is_some() {
                // Before what changes with the second.
                let at = (moment.second.second * SECOND).saturating_sub(1);
                phase.followed.store(at, Relaxed);
            }
            let seen = ticker.as_ref().map(UserTicker::so_far).unwrap_or_default();
            let moment = Moment { levels: &seen, ..*moment };
            let wish = each(&moment).or_else(|| lives.iter().find_map(|one| one.crossed(&moment)));
            if wish.is_some() {
                phase.is_ended.store(true, Relaxed);
            }
            wish
        };
        let mut needs_teardown = is_set_up;
        let recorded = match remote {
            Some(remote) => {
                let first = lives.first().map(|life| &life.set_up);
                let ready = remote.assemble(first.unwrap_or(&SetUp::default()));
                let run = ready.and_then(|workers| self.run_elsewhere(workers, beside, each));
                let is_known = run.is_ok() || !is_resumed;
                needs_teardown &= is_known && remote.needs_teardown();
                // None of them sends anything while `teardown` runs.
                run.inspect_err(|_| remote.give_up())
            }
            None => self.run_users(&lives, &phase, beside, each),
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
                // The run's error is what is returned.
                life.of.script.test.log(LogLevel::Error, &error.to_string(), &[]);
            }
            ends.push((teardown, aside));
        }
        let mut recorded = recorded?;
        if let Some(followed) = &followed {
            followed.end(&recorded.run);
        }
        let seen = ticker.map(UserTicker::finish).unwrap_or_default();
        for (life, (teardown, aside)) in lives.into_iter().zip(ends) {
            let is_whole = is_set_up && !phase.is_ended.load(Relaxed) && !interrupt.came();
            recorded.scripts.push(life.end(is_whole, teardown, &mut recorded.run));
            recorded.run.tally.merge(&aside);
        }
        recorded.run.tally.series.merge(&seen);
        Ok(recorded)
    }

    /// What counts the users of all scripts.
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
        let start = || UserTicker::start(levels, tests, Arc::clone(phase), interrupt.clone());
        Some(gake_engine::beside(&self.plan, start))
    }

    /// Runs the users in this process.
    fn run_users(
        &self,
        lives: &[Life<'_>],
        phase: &Arc<RunPhase>,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
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
            return self.run_works(make, beside, each);
        }
        let (wires, tracer) = (self.wires.clone(), self.tracer.clone());
        // Wires are those of the other scenarios, in order.
        let wire_of = |at: usize| loads[..at].iter().filter(|load| load.is_none()).count();
        let wire_numbers: Vec<usize> = (0..loads.len()).map(wire_of).collect();
        let make = move |context: WorkerContext| match &loads[context.scenario] {
            Some(load) => {
                phase.clock.get_or_init(|| context.clock.clone());
                let factory = ScriptFactory::new(load.clone(), context.slice, context.clock);
                MixedFactory::Script(Box::new(factory))
            }
            None => {
                let wire = Arc::clone(&wires[wire_numbers[context.scenario]]);
                let factory = HttpFactory::new(wire, context.slice, context.clock);
                MixedFactory::Http(factory.traced(tracer.clone()))
            }
        };
        self.run_works(make, beside, each)
    }
}

/// One script while it runs.
struct Life<'a> {
    of: &'a PreparedScript,
    network: Arc<Network>,
    keys: Keys,
    set_up: SetUp,
    /// Whether `setup` returned, unless it failed.
    setup: Result<bool, ScriptRunError>,
    loads: Vec<ScriptLoad>,
    crews: Arc<[Crew]>,
}

impl<'a> Life<'a> {
    /// Sets the script up, unless an earlier process did.
    fn begin(
        of: &'a PreparedScript,
        earlier: Option<SetUp>,
        interrupt: &Interrupt,
    ) -> Result<Self, RunError> {
        let PreparedScript { script, run, .. } = of;
        let network = Arc::new(network(run, script.key_log(run)?, None)?);
        let keys: Keys = run.keys.clone().into();
        let (set_up, setup) = match earlier {
            Some(earlier) => (earlier, Ok(true)),
            None => script.set_up(run, (&network, &keys), interrupt),
        };
        let (loads, crews) = (Vec::new(), Arc::default());
        Ok(Self { of, network, keys, set_up, setup, loads, crews })
    }

    fn is_set_up(&self) -> bool {
        matches!(self.setup, Ok(true)) && self.of.script.test.aborted().is_none()
    }

    /// Makes what its users are made with; of a run that is void none is made.
    fn make(&mut self, prepared: &Prepared, is_void: bool) {
        let PreparedScript { script, run, scenarios, .. } = self.of;
        let plans = prepared.plan.scenarios();
        let lanes: Vec<usize> = scenarios.iter().map(|number| plans[*number].lanes()).collect();
        let data = (self.set_up.data.as_deref(), Slice::WHOLE);
        self.loads = script.loads(run, &lanes, (&self.network, &self.keys), data);
        self.loads.iter_mut().for_each(|load| load.is_void = is_void);
        self.crews = crews(run, &self.loads);
        let shown = self.loads.iter().map(|load| (load.scenario.clone(), load.start));
        script.test.show_scenarios(shown.collect());
    }

    fn followed(&self) -> Followed<'_> {
        Followed { test: &self.of.script.test, crews: &self.crews }
    }

    /// The thresholds that end the run, if one does.
    fn crossed(&self, moment: &Moment<'_>) -> Option<String> {
        let thresholds = self.of.thresholds.as_ref()?;
        let second = moment.second.second;
        if !second.is_multiple_of(INTERVAL.as_secs()) {
            return None;
        }
        let series = [&moment.so_far.tally().series, moment.levels];
        let results = thresholds.judge(&series, Duration::from_nanos(second * SECOND), false);
        results.aborts.then(|| results.message().unwrap_or_default())
    }

    /// Calls `teardown`, which records in `aside`.
    fn tear_down(&self, aside: &mut Tally, interrupt: &Interrupt) -> Result<(), ScriptRunError> {
        let PreparedScript { script, run, .. } = self.of;
        let is_cut = || interrupt.is_urgent();
        let data = self.set_up.data.as_deref();
        script.teardown(run, (&self.network, &self.keys), data, aside, is_cut)
    }

    /// Adds what no user recorded to the run.
    fn end(self, is_whole: bool, teardown: Result<(), ScriptRunError>, run: &mut Run) -> ScriptEnd {
        self.warn_of_dropped(run);
        // What `setup` recorded came first, and series are shown as they came.
        let of_load = std::mem::take(&mut run.tally.series);
        run.tally.merge(&self.set_up.recorded);
        run.tally.series.merge(&of_load);
        // As in k6 nothing was left undone where the run was ended from outside.
        let left: &[Crew] = if is_whole { &self.crews } else { &[] };
        self.add_dropped(left, &mut run.tally);
        ScriptEnd { setup_data: self.set_up.data, setup: self.setup.map(drop), teardown }
    }

    /// Adds the iterations that `crews` left undone, and those of a lost agent.
    fn add_dropped(&self, crews: &[Crew], tally: &mut Tally) {
        let PreparedScript { script, run, .. } = self.of;
        let series_index = SeriesIndex::new(self.keys.iter().map(String::as_str), false);
        if script.test.aborted().is_none() {
            for (crew, scenario) in crews.iter().zip(&run.spec.scenarios) {
                let name = Some(scenario.name.as_str());
                add_dropped(&script.test, &series_index, name, (crew.left(), 1), tally);
            }
        }
        add_dropped(&script.test, &series_index, None, (tally.counts.lost, 1), tally);
    }

    /// Names the scenarios whose users were all busy when an iteration was due.
    fn warn_of_dropped(&self, recorded: &Run) {
        let PreparedScript { script, run, scenarios, .. } = self.of;
        let tally = |number: &usize| match recorded.scenarios.get(*number) {
            Some(scenario) => &scenario.tally,
            None => &recorded.tally,
        };
        let tallies = scenarios.iter().map(tally);
        for ((spec, executor), tally) in run.spec.scenarios.iter().zip(&run.executors).zip(tallies)
        {
            // Those of a lost agent say nothing about users.
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
