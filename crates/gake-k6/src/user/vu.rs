//! The state of a user (k6's VU) that the modules of its script share.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of what a context keeps: unsafe to implement"
)]

use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use cookie_store::CookieStore;
use gake_core::clock::{Clock, Nanos};
use gake_core::metric::Tags;
use gake_js::errors::go_error;
use gake_script::user::{Tasks, WaitError, throw_wait_error, wait, wait_long};
use gake_wire::Client;
use rquickjs::{Ctx, JsLifetime};

use super::clock::UserClock;
use super::pending::PendingRecords;
use super::requests::RequestCache;
use super::series_index::{SeriesIndex, TagSet, TagSource};
use super::timers::Timers;
use crate::bodies::UserBodies;
use crate::metrics::{BuiltinMetric, MetricNumber};
use crate::scenario::ScenarioFacts;
use crate::test::Test;

/// The shortest pause, in nanoseconds, for which a user releases unused pages of its stack:
/// touching them again takes some microseconds.
const LONG_PAUSE: Nanos = 50_000_000;

/// The stage of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VuStage {
    /// Loading the script.
    Init,
    /// Running the script's `setup`.
    Setup,
    /// Running iterations.
    Iteration,
    /// Running the script's `teardown`.
    Teardown,
    /// Running the script's `handleSummary`.
    Summary,
}

/// A resource that is closed at the end of the function that opened it, such as a session.
pub trait OpenResource {
    /// Closes it and records its last samples; does nothing when already closed.
    fn end(&self);
}

/// The state of a user.
pub struct Vu {
    /// State of all users.
    pub test: Arc<Test>,
    /// The series of its worker.
    pub series_index: Rc<SeriesIndex>,
    /// The prepared requests of its worker.
    pub requests: Rc<RequestCache>,
    /// The run's clock.
    pub clock: UserClock,
    /// Its scenario.
    pub scenario: Rc<ScenarioFacts>,
    /// `__VU`: its number in this process.
    pub number: u64,
    /// Default headers of requests.
    pub headers: Rc<Vec<(String, String)>>,
    /// Its number in the whole test, over all processes.
    pub number_in_test: u64,
    /// Its connections; none before the run.
    pub client: RefCell<Option<Client<UserClock>>>,
    /// Template of its gRPC connections; none before the run.
    pub grpc: RefCell<Option<Client<UserClock>>>,
    /// Its stage.
    pub stage: Cell<VuStage>,
    /// `__ITER`.
    pub iteration: Cell<u64>,
    /// The number of its iteration among the user's own in the scenario.
    pub own_iteration: Cell<u64>,
    /// The number of its iteration among all of the scenario.
    pub scenario_iteration: Cell<u64>,
    /// The number of its iteration among the scenario's in this process.
    pub instance_iteration: Cell<u64>,
    /// When its scenario began.
    pub scenario_start: Cell<Nanos>,
    /// The path of its group, as `::outer::inner`.
    pub group: RefCell<Rc<str>>,
    /// Tags of all its samples (`exec.vu.tags`).
    pub tags: RefCell<Vec<(String, String)>>,
    /// Metadata of all its samples (`exec.vu.metrics.metadata`).
    pub metadata: RefCell<Vec<(String, String)>>,
    /// Its cookies: a new jar each iteration, unless they are kept; a script may hold an old one.
    pub jar: RefCell<Rc<RefCell<CookieStore>>>,
    pub(crate) bodies: Rc<UserBodies>,
    /// Its default expectation of statuses.
    pub expected: RefCell<Rc<StatusExpectation>>,
    /// Whether it ended the test itself: its iteration counts.
    pub aborts: Cell<bool>,
    /// Its exchanges and samples that are not yet recorded.
    pub pending: PendingRecords,
    /// Bytes sent and received since the last [`Vu::record_traffic`].
    traffic: Cell<(u64, u64)>,
    /// Its tasks concurrent with the script.
    pub tasks: Tasks,
    pub(super) timers: Timers,
    open: RefCell<Vec<Weak<dyn OpenResource>>>,
    /// State that modules of an extension share.
    shared: RefCell<BTreeMap<&'static str, Rc<dyn Any>>>,
}

/// The statuses that a script expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusExpectation {
    /// Inclusive ranges.
    Ranges(Vec<(u16, u16)>),
    /// No expectation: the requests have no sample in `http_req_failed`.
    Nothing,
}

impl Default for StatusExpectation {
    fn default() -> Self {
        Self::Ranges(vec![(200, 399)])
    }
}

impl StatusExpectation {
    /// Whether a status is expected; `None` without an expectation.
    #[must_use]
    pub fn judge(&self, status: u16) -> Option<bool> {
        match self {
            Self::Ranges(ranges) => {
                Some(ranges.iter().any(|(from, to)| (*from..=*to).contains(&status)))
            }
            Self::Nothing => None,
        }
    }
}

/// The arguments of [`Vu::new`].
#[derive(Debug, Clone)]
pub struct VuContext {
    /// State of all users.
    pub test: Arc<Test>,
    /// The series of its worker.
    pub series_index: Rc<SeriesIndex>,
    /// The prepared requests of its worker.
    pub requests: Rc<RequestCache>,
    /// The run's clock.
    pub clock: UserClock,
    /// Its scenario.
    pub scenario: Rc<ScenarioFacts>,
    /// `__VU`: its number in this process.
    pub number: u64,
    /// Its number in the whole test, over all processes.
    pub number_in_test: u64,
}

/// The user data of a context: its user.
struct VuUserData(Rc<Vu>);

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for VuUserData {
    type Changed<'to> = Self;
}

impl Vu {
    /// The user of a context.
    ///
    /// # Errors
    /// If it has none.
    pub fn of(ctx: &Ctx<'_>) -> rquickjs::Result<Rc<Self>> {
        let known = ctx.userdata::<VuUserData>().map(|kept| Rc::clone(&kept.0));
        known.ok_or(rquickjs::Error::Unknown)
    }

    pub(crate) fn store_in(self: &Rc<Self>, ctx: &Ctx<'_>) {
        // Fails only if the data is borrowed; it does not exist yet.
        let _ = ctx.store_userdata(VuUserData(Rc::clone(self)));
    }

    /// A user that is about to load its script.
    #[must_use]
    pub fn new(parts: VuContext) -> Rc<Self> {
        let VuContext { test, series_index, requests, clock, scenario, number, number_in_test } =
            parts;
        // An empty `User-Agent` is not sent.
        let headers = vec![("User-Agent".to_owned(), test.settings().user_agent.clone())];
        let tags = test.settings().tags.iter().chain(&scenario.tags).cloned().collect();
        let bodies = UserBodies::new(&test.bodies, test.settings().bodies);
        Rc::new(Self {
            test,
            series_index,
            requests,
            clock,
            scenario,
            number,
            headers: Rc::new(headers),
            number_in_test,
            client: RefCell::default(),
            grpc: RefCell::default(),
            stage: Cell::new(VuStage::Init),
            iteration: Cell::new(0),
            own_iteration: Cell::new(0),
            scenario_iteration: Cell::new(0),
            instance_iteration: Cell::new(0),
            scenario_start: Cell::new(0),
            group: RefCell::new("".into()),
            tags: RefCell::new(tags),
            metadata: RefCell::default(),
            jar: RefCell::default(),
            bodies,
            expected: RefCell::default(),
            aborts: Cell::new(false),
            pending: PendingRecords::default(),
            traffic: Cell::default(),
            tasks: Tasks::default(),
            timers: Timers::default(),
            open: RefCell::default(),
            shared: RefCell::default(),
        })
    }

    /// Suspends the script until a future is ready.
    ///
    /// # Errors
    /// When the iteration is interrupted; scripts cannot catch it.
    pub fn wait<T>(&self, ctx: &Ctx<'_>, future: impl Future<Output = T>) -> rquickjs::Result<T> {
        wait(future).map_err(|why| throw_wait_error(ctx, why))
    }

    /// Suspends the script until this instant.
    ///
    /// # Errors
    /// When the iteration is interrupted; scripts cannot catch it.
    pub fn pause(&self, ctx: &Ctx<'_>, until: Nanos) -> rquickjs::Result<()> {
        let pause = self.clock.sleep_until(until);
        let paused = match until.saturating_sub(self.now()) {
            long if long >= LONG_PAUSE => wait_long(pause),
            _ => wait(pause),
        };
        paused.map_err(|why| throw_wait_error(ctx, why))
    }

    /// Refuses another task in the background if there are too many.
    ///
    /// # Errors
    /// As an exception of the script.
    pub fn room_for_task(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        match self.tasks.is_full() {
            true => Err(go_error(ctx, "too many timers, sockets and requests are pending")),
            false => Ok(()),
        }
    }

    /// Refuses `what` in init code.
    ///
    /// # Errors
    /// While the script is loaded.
    pub fn not_in_init(&self, ctx: &Ctx<'_>, what: &str) -> rquickjs::Result<()> {
        if self.stage.get() == VuStage::Init {
            return Err(go_error(ctx, &format!("{what} in the init context is not supported")));
        }
        Ok(())
    }

    /// Ends the iteration with an error that scripts cannot catch.
    #[must_use]
    pub fn end(&self, ctx: &Ctx<'_>) -> rquickjs::Error {
        throw_wait_error(ctx, WaitError::Ended)
    }

    /// The state of this name that modules of an extension share, made on first use.
    pub fn shared<T: Default + 'static>(&self, name: &'static str) -> Rc<T> {
        let mut shared = self.shared.borrow_mut();
        let known = shared.entry(name).or_insert_with(|| Rc::new(T::default()));
        // A name has one type.
        Rc::clone(known).downcast().unwrap_or_default()
    }

    /// Registers a resource to be closed at the end of the current function.
    pub fn register_open(&self, resource: Weak<dyn OpenResource>) {
        let mut open = self.open.borrow_mut();
        if open.len() == open.capacity() {
            open.retain(|resource| resource.strong_count() > 0);
        }
        open.push(resource);
    }

    /// Closes all registered resources.
    pub fn close_open(&self) {
        self.open.take().iter().filter_map(Weak::upgrade).for_each(|resource| resource.end());
    }

    /// Records a sample of a built-in metric.
    pub fn record(&self, metric: BuiltinMetric, set: &Rc<TagSet>, value: f64) {
        self.sample(metric.number(), set, value);
    }

    /// Counts bytes sent and received, for [`Vu::record_traffic`].
    pub fn count_traffic(&self, sent: u64, received: u64) {
        let (before, then) = self.traffic.get();
        self.traffic.set((before.saturating_add(sent), then.saturating_add(received)));
    }

    /// Records the counted bytes as one sample each: k6 writes one an iteration, even of 0 bytes,
    /// and databases keep only one sample of equal time and tags.
    pub fn record_traffic(&self) {
        let (sent, received) = self.traffic.take();
        let set = self.series_index.tag_set(self);
        self.record(BuiltinMetric::DataSent, &set, sent as f64);
        self.record(BuiltinMetric::DataReceived, &set, received as f64);
    }

    /// Records a sample of a script's metric under its own tags.
    pub fn record_tagged(&self, metric: MetricNumber, tags: &[(String, String)], value: f64) {
        let set = self.series_index.tag_set(&SampleTags { vu: self, tags });
        self.sample(metric, &set, value);
    }

    fn sample(&self, metric: MetricNumber, set: &Rc<TagSet>, value: f64) {
        // Only single samples have metadata.
        let metadata = self.test.tap.get().and_then(|_| self.metadata_now());
        self.pending.sample(metric, set, metadata, value);
    }

    /// The metadata of a sample; `None` if empty.
    fn metadata_now(&self) -> Option<Tags> {
        let system = [("vu", self.number), ("iter", self.iteration.get())].into_iter();
        let system = system.filter(|(name, _)| self.test.has_system_tag(name));
        let system = system.map(|(name, number)| (name.to_owned(), number.to_string()));
        let all: Vec<_> = system.chain(self.metadata.borrow().iter().cloned()).collect();
        (!all.is_empty()).then(|| Tags::new(all))
    }

    /// The progress of its scenario from 0 to 1: by iterations if their number is known, else time.
    #[must_use]
    pub fn progress(&self) -> f64 {
        if let Some(iterations) = self.scenario.iterations {
            let done = self.scenario.progress.done();
            return (done as f64 / iterations.max(1) as f64).min(1.0);
        }
        let length = self.scenario.length;
        if length == 0 {
            return 0.0;
        }
        let elapsed = self.now().saturating_sub(self.scenario_start.get());
        (elapsed as f64 / length as f64).min(1.0)
    }

    /// The value of a tag, as scripts see it.
    #[must_use]
    pub fn own_tag(&self, name: &str) -> Option<String> {
        self.tag(name).map(Cow::into_owned)
    }

    /// The names of its tags, as scripts see them.
    #[must_use]
    pub fn tag_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.tags.borrow().iter().map(|(name, _)| name.clone()).collect();
        names.extend(["scenario", "group"].map(str::to_owned));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The time of the run's clock.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }
}

impl TagSource for Vu {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        match key {
            // Setup and teardown have none but the run's own.
            "scenario" if !self.scenario.name.is_empty() => {
                Some(self.scenario.name.as_str().into())
            }
            "group" => {
                let is_tag = self.test.has_system_tag(key);
                is_tag.then(|| self.group.borrow().to_string().into())
            }
            _ => {
                let tags = self.tags.borrow();
                let found = tags.iter().rev().find(|(known, _)| known == key)?;
                Some(found.1.clone().into())
            }
        }
    }

    fn keys(&self) -> Vec<String> {
        let system = ["scenario", "group"].into_iter().filter(|tag| self.test.has_system_tag(tag));
        let own = self.tags.borrow();
        system.map(str::to_owned).chain(own.iter().map(|(name, _)| name.clone())).collect()
    }
}

/// The tags of a sample, which override the user's.
pub struct SampleTags<'a> {
    /// The user.
    pub vu: &'a Vu,
    /// The sample's own.
    pub tags: &'a [(String, String)],
}

impl TagSource for SampleTags<'_> {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        let own = self.tags.iter().rev().find(|(known, _)| known == key);
        own.map_or_else(|| self.vu.tag(key), |(_, value)| Some(value.as_str().into()))
    }

    fn keys(&self) -> Vec<String> {
        let own = self.tags.iter().map(|(name, _)| name.clone());
        self.vu.keys().into_iter().chain(own).collect()
    }
}

impl std::fmt::Debug for Vu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vu").field("number", &self.number).finish_non_exhaustive()
    }
}
