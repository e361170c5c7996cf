//! Iterations of scripted users, as the engine's work.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use gake_core::activity::{self, NativeCall};
use gake_core::clock::{Clock, Nanos};
use gake_core::metric::Tags;
use gake_core::record::Tally;
use gake_core::schedule::{NumberPattern, Slice};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_script::Exception;
use gake_script::user::{Stacks, yield_once};
use gake_wire::{Client, Network};

use crate::metrics::BuiltinMetric;
use crate::modules::NO_BROWSER;
use crate::scenario::{ScenarioFacts, ScenarioProgress};
use crate::test::{LogLevel, Test};
use crate::unattributed_samples::add_dropped;
use crate::user::clock::UserClock;
use crate::user::lingering::linger;
use crate::user::requests::RequestCache;
use crate::user::script_user::{CallEnd, LoadError, ScriptUser};
use crate::user::series_index::SeriesIndex;
use crate::user::vu::VuContext;

/// Users loaded between two yields to other tasks of the thread.
const USERS_PER_YIELD: usize = 8;

/// The users of one worker in one scenario: the input of [`ScriptFactory`].
#[derive(Debug, Clone)]
pub struct ScriptLoad {
    /// The test that all users share.
    pub test: Arc<Test>,
    /// The network through which requests reach their origins.
    pub network: Arc<Network>,
    /// The scenario.
    pub scenario: ScenarioFacts,
    /// From the start of the run to the start of the scenario.
    pub start: Nanos,
    /// Users of the preceding scenarios: the first user's number is one more.
    pub users_before: u64,
    /// The same of this process.
    pub users_before_here: u64,
    /// This process's slice of the scenario's users.
    pub process: Slice,
    /// The return value of `setup` as JSON.
    pub data: Option<Arc<str>>,
    /// Tags by which series are distinguished, in addition to the summary's.
    pub keys: Arc<[String]>,
    /// The minimum duration of an iteration.
    pub least: Nanos,
    /// The numbers of these iterations in the whole scenario, in an execution segment.
    pub stripes: Option<Arc<NumberPattern>>,
    /// The numbers of these users in the whole test, in an execution segment.
    pub users_in_whole: Option<Arc<NumberPattern>>,
    /// Whether `setup` failed: no user is loaded and nothing runs.
    pub is_void: bool,
}

/// The number of a user or iteration in the whole test, from 0.
fn in_whole(stripes: Option<&NumberPattern>, number: u64) -> u64 {
    stripes.map_or(number, |stripes| stripes.number(number))
}

/// Loads the users of one worker for one scenario.
pub struct ScriptFactory {
    load: ScriptLoad,
    scenario: Rc<ScenarioFacts>,
    slice: Slice,
    clock: UserClock,
    client: Client<UserClock>,
    /// HTTP/2 only.
    grpc: Client<UserClock>,
    series_index: Rc<SeriesIndex>,
    requests: Rc<RequestCache>,
    stacks: Rc<Stacks>,
    /// Loaded users that no lane has taken yet.
    ready: RefCell<VecDeque<ScriptUser>>,
}

impl ScriptFactory {
    /// The factory of the worker with `slice` of the scenario.
    #[must_use]
    pub fn new(load: ScriptLoad, slice: Slice, clock: impl Clock + 'static) -> Self {
        let clock = UserClock::new(clock);
        let client = Client::new(Arc::clone(&load.network), slice, clock.clone());
        let http2 = Arc::new(load.network.of_http2());
        let grpc = Client::new(http2, slice, clock.clone());
        let wants_all = load.test.tap.get().is_some();
        let series_index =
            Rc::new(SeriesIndex::new(load.keys.iter().map(String::as_str), wants_all));
        let scenario = Rc::new(load.scenario.clone());
        Self {
            load,
            scenario,
            slice,
            clock,
            client,
            grpc,
            series_index,
            requests: Rc::default(),
            stacks: Stacks::new(),
            ready: RefCell::default(),
        }
    }

    fn user(&self, lane: usize) -> Result<ScriptUser, String> {
        let before = self.slice.number(lane);
        let here = self.load.users_before + before as u64;
        let number_in_test = in_whole(self.load.users_in_whole.as_deref(), here) + 1;
        let number = self.load.users_before_here + self.load.process.own(before) as u64 + 1;
        let parts = VuContext {
            test: Arc::clone(&self.load.test),
            series_index: Rc::clone(&self.series_index),
            requests: Rc::clone(&self.requests),
            clock: self.clock.clone(),
            scenario: Rc::clone(&self.scenario),
            number,
            number_in_test,
        };
        let user = ScriptUser::load(&self.stacks, parts);
        let mut user = user.map_err(|error| {
            let text = format!("user {number_in_test} could not be loaded: {error}");
            let thrown = match error {
                LoadError::Thrown(exception) => Some(exception),
                _ => None,
            };
            self.load.test.unloaded.get_or_init(|| (number_in_test, thrown));
            text
        })?;
        if let Some(data) = &self.load.data {
            user.give_data(data);
        }
        user.profile();
        user.vu.scenario_start.set(self.load.start);
        user.vu.test.counters.count_ready();
        *user.vu.client.borrow_mut() = Some(self.client.with_own_connections());
        *user.vu.grpc.borrow_mut() = Some(self.grpc.clone());
        Ok(user)
    }

    /// Adds dropped iterations that are not yet in their metric.
    fn record_dropped(&self, tally: &mut Tally) {
        if self.load.is_void {
            // As in k6, nothing was due.
            return;
        }
        let number = BuiltinMetric::DroppedIterations.number();
        let Some(metric) = self.series_index.definition(number) else { return };
        let recorded: u64 = tally
            .series
            .select(&metric.name, &Tags::default())
            .map(|(_, value)| value.samples())
            .sum();
        let fresh = tally.counts.dropped.saturating_sub(recorded);
        let scenario = Some(self.scenario.name.as_str());
        add_dropped(&self.load.test, &self.series_index, scenario, (fresh, fresh), tally);
    }
}

impl Factory for ScriptFactory {
    type Work = ScriptWork;

    async fn prepare(&self, lanes: usize) -> Result<(), String> {
        if self.load.is_void {
            return Ok(());
        }
        for lane in 0..lanes {
            let user = self.user(lane)?;
            self.ready.borrow_mut().push_back(user);
            if lane % USERS_PER_YIELD == 0 {
                yield_once().await;
            }
        }
        Ok(())
    }

    /// Scripts index data by the number of the iteration. With a seed, each user must repeat its
    /// own iterations instead.
    fn wants_order(&self) -> bool {
        self.load.test.settings().seed.is_none()
    }

    fn work(&self, _lane: usize) -> ScriptWork {
        let user = self.ready.borrow_mut().pop_front();
        if let Some(user) = &user {
            user.vu.test.counters.join();
        }
        ScriptWork {
            user,
            iterations: 0,
            is_alone: self.load.process == Slice::WHOLE,
            progress: Arc::clone(&self.scenario.progress),
            stripes: self.load.stripes.clone(),
            least: self.load.least,
            is_fired: false,
            ended: None,
            clock: self.clock.clone(),
        }
    }

    fn observe(&self, tally: &mut Tally) -> Gauges {
        self.record_dropped(tally);
        let http = self.client.observe(&mut tally.counts);
        http.plus(self.grpc.observe(&mut tally.counts))
    }
}

/// One user's iterations.
#[derive(Debug)]
pub struct ScriptWork {
    /// `None` only if the engine asks for more lanes than it announced.
    user: Option<ScriptUser>,
    iterations: u64,
    /// Whether no other process runs the scenario.
    is_alone: bool,
    progress: Arc<ScenarioProgress>,
    stripes: Option<Arc<NumberPattern>>,
    least: Nanos,
    is_fired: bool,
    /// The end of its last iteration, until it is reported to the engine.
    ended: Option<IterationEnd>,
    clock: UserClock,
}

impl Drop for ScriptWork {
    fn drop(&mut self) {
        let Some(user) = &self.user else { return };
        if let Some(client) = user.vu.client.take() {
            linger(&user.vu.test, client);
        }
        user.vu.test.counters.leave();
    }
}

impl Work for ScriptWork {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let Self { user, iterations, is_alone, progress, stripes, least, is_fired, ended, clock } =
            self;
        *ended = None;
        let Some(user) = user else { return Err(Exhausted) };
        let vu = Rc::clone(&user.vu);
        if vu.test.aborted().is_some() {
            // The engine stops a moment later.
            return Err(Exhausted);
        }
        let number = iteration.arrival.number;
        vu.scenario_iteration.set(in_whole(stripes.as_deref(), number));
        vu.own_iteration.set(*iterations);
        *is_fired = true;
        vu.test.set_load_began(vu.scenario_start.get());
        vu.test.counters.begin();
        progress.running.fetch_add(1, Relaxed);
        let before = progress.begun.fetch_add(1, Relaxed);
        // With several processes, the number may have come from one that is lost.
        let here = if *is_alone { number } else { before };
        vu.instance_iteration.set(here);
        let mut polls = 0_u32;
        let mut inside = NativeCall::default();
        let end = {
            let mut call = pin!(user.iterate(&vu.scenario.function, *iterations));
            poll_fn(|cx| {
                polls += 1;
                activity::resume(vu.number, inside);
                let polled = call.as_mut().poll(cx);
                inside = activity::suspend();
                vu.pending.flush(&vu.test, &vu.series_index, iteration);
                polled
            })
            .await
        };
        *is_fired = false;
        *iterations += 1;
        vu.test.counters.end(end == CallEnd::Ended && !vu.aborts.get());
        progress.running.fetch_sub(1, Relaxed);
        let now = clock.now();
        progress.last_end.store(now, Relaxed);
        let how = match end {
            CallEnd::Returned(_) | CallEnd::NoData(_) => IterationEnd::finished(now),
            CallEnd::Ended if vu.aborts.get() => IterationEnd::finished(now),
            CallEnd::Ended => IterationEnd::interrupted(now),
            CallEnd::Thrown(exception) => {
                log_thrown(&vu.test, &vu.scenario, &exception, false);
                IterationEnd::finished(now)
            }
            CallEnd::Rejected(exception) => {
                log_thrown(&vu.test, &vu.scenario, &exception, true);
                IterationEnd::finished(now)
            }
        };
        *ended = Some(how);
        if polls == 1 {
            // It never waited, and the next may not either: yield, or others starve.
            yield_once().await;
        }
        let earliest = iteration.fired.saturating_add(*least);
        if *least > 0 && earliest > now && vu.test.aborted().is_none() {
            clock.sleep_until(earliest).await;
            return Ok(IterationEnd { at: clock.now(), ..how });
        }
        Ok(how)
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        if let Some(user) = &self.user {
            if std::mem::take(&mut self.is_fired) {
                user.vu.test.counters.end(true);
                self.progress.running.fetch_sub(1, Relaxed);
                self.iterations += 1;
                user.vu.record_traffic();
            }
            user.vu.pending.flush(&user.vu.test, &user.vu.series_index, iteration);
        }
        // A completed iteration that was not reported yet.
        self.ended.take().unwrap_or_else(|| IterationEnd::interrupted(self.clock.now()))
    }
}

/// k6's prefix of an error that rejected a promise.
pub const REJECTED: &str = "Uncaught (in promise) ";

/// Logs the exception of an iteration, or of its rejected promise, as k6 does.
pub fn log_thrown(test: &Test, scenario: &ScenarioFacts, exception: &Exception, is_rejected: bool) {
    let mut fields = Vec::new();
    if !scenario.name.is_empty() {
        fields.push(("executor", scenario.executor.as_str()));
        fields.push(("scenario", scenario.name.as_str()));
    }
    if is_rejected {
        let mut text = format!("{REJECTED}{}", stack_text(exception));
        // Errors of the browser have no stack.
        let browses = || test.settings().browser.scenarios.contains(&scenario.name);
        if exception.message == NO_BROWSER || (exception.stack.is_empty() && browses()) {
            fields.insert(fields.len().min(1), ("module", "browser"));
            text.truncate(text.trim_end().len());
        }
        test.log(LogLevel::Error, &text, &fields);
        return;
    }
    fields.extend([("hint", "script exception"), ("source", "stacktrace")]);
    // As in k6.
    fields.sort_unstable();
    test.log(LogLevel::Error, &stack_text(exception), &fields);
}

/// An exception with its stack, as k6 writes it.
#[must_use]
pub fn stack_text(exception: &Exception) -> String {
    let mut text = exception.message.clone();
    for frame in exception.stack.lines() {
        text += &format!("\n\t{}", frame.trim());
    }
    if exception.is_error || !exception.stack.is_empty() {
        text.push('\n');
    }
    text
}
