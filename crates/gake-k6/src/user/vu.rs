//! One user, as the modules of its script know it.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of what a context keeps: unsafe to implement"
)]

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use cookie_store::CookieStore;
use gake_core::clock::{Clock, Nanos};
use gake_core::metric::Tags;
use gake_script::user::{Cut, Tasks, cut, wait, wait_long};
use gake_wire::Client;
use rquickjs::{Ctx, JsLifetime};

use super::book::{Book, TagSet, TagSource};
use super::clock::UserClock;
use super::notes::Notes;
use super::requests::RequestCache;
use super::timers::Timers;
use crate::bodies::UserBodies;
use crate::errors::go_error;
use crate::metrics::{Builtin, MetricNumber};
use crate::scenario::ScenarioFacts;
use crate::test::Test;

/// The shortest pause, in nanoseconds, in which a user gives back what it does not need of its
/// stack. Touching it again takes some microseconds.
const LONG_PAUSE: Nanos = 50_000_000;

/// What a user is doing.
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

/// What a call of the script's function opens and holds, such as a session.
pub trait Held {
    /// Ends it and notes its last samples; does nothing once it is over.
    fn end(&self);
}

/// The state of a user.
pub struct Vu {
    /// What it shares with all users.
    pub test: Arc<Test>,
    /// The series of its worker.
    pub book: Rc<Book>,
    /// The requests that its worker has prepared.
    pub requests: Rc<RequestCache>,
    /// The run's clock.
    pub clock: UserClock,
    /// Its scenario.
    pub scenario: Rc<ScenarioFacts>,
    /// `__VU`: its number in this process.
    pub number: u64,
    /// The headers of a request that names none.
    pub headers: Rc<Vec<(String, String)>>,
    /// Its number in the whole test, on however many machines.
    pub number_in_test: u64,
    /// Its connections; none before the run.
    pub client: RefCell<Option<Client<UserClock>>>,
    /// What its connections of gRPC are made of; none before the run.
    pub grpc: RefCell<Option<Client<UserClock>>>,
    /// What it is doing.
    pub stage: Cell<VuStage>,
    /// `__ITER`.
    pub iteration: Cell<u64>,
    /// The number of its iteration among its own in the scenario.
    pub own_iteration: Cell<u64>,
    /// The number of its iteration among all in the scenario.
    pub scenario_iteration: Cell<u64>,
    /// The number of its iteration among those of this process in the scenario.
    pub instance_iteration: Cell<u64>,
    /// When its scenario began.
    pub scenario_start: Cell<Nanos>,
    /// The path of its group, as `::outer::inner`.
    pub group: RefCell<Rc<str>>,
    /// Its own tags, by `exec.vu.tags`.
    pub tags: RefCell<Vec<(String, String)>>,
    /// What it says of its samples besides, by `exec.vu.metrics.metadata`.
    pub metadata: RefCell<Vec<(String, String)>>,
    /// Its cookies: a new jar each iteration, unless they are kept; a script may hold an old one.
    pub jar: RefCell<Rc<RefCell<CookieStore>>>,
    /// The bodies of responses that it holds.
    pub(crate) bodies: Rc<UserBodies>,
    /// Its default for which responses are expected.
    pub expected: RefCell<Rc<Expected>>,
    /// Whether it ended the test itself: its iteration counts.
    pub aborts: Cell<bool>,
    /// Its activity that is not yet recorded.
    pub notes: Notes,
    /// Bytes that the current call of its script has sent and received so far.
    traffic: Cell<(u64, u64)>,
    /// Its tasks besides the script.
    pub tasks: Tasks,
    /// Its timers.
    pub(super) timers: Timers,
    /// What is open, and ends with the call of the script's function.
    held: RefCell<Vec<Weak<dyn Held>>>,
}

/// Which statuses are expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Those of these ranges.
    Ranges(Vec<(u16, u16)>),
    /// No expectation: such requests count in no rate.
    Nothing,
}

impl Default for Expected {
    fn default() -> Self {
        Self::Ranges(vec![(200, 399)])
    }
}

impl Expected {
    /// Whether a status is expected, where anything is.
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

/// The parts of a user.
#[derive(Debug, Clone)]
pub struct VuParts {
    /// What it shares with all users.
    pub test: Arc<Test>,
    /// The series of its worker.
    pub book: Rc<Book>,
    /// The requests that its worker has prepared.
    pub requests: Rc<RequestCache>,
    /// The run's clock.
    pub clock: UserClock,
    /// Its scenario.
    pub scenario: Rc<ScenarioFacts>,
    /// `__VU`: its number in this process.
    pub number: u64,
    /// Its number in the whole test, on however many machines.
    pub number_in_test: u64,
}

/// What a context keeps of its user.
struct OfContext(Rc<Vu>);

// SAFETY: it holds nothing of a script.
unsafe impl<'js> JsLifetime<'js> for OfContext {
    type Changed<'to> = Self;
}

impl Vu {
    /// The user whose context this is.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn of(ctx: &Ctx<'_>) -> rquickjs::Result<Rc<Self>> {
        let known = ctx.userdata::<OfContext>().map(|kept| Rc::clone(&kept.0));
        known.ok_or(rquickjs::Error::Unknown)
    }

    /// Makes the user known to the context that it gets.
    pub(crate) fn keep_in(self: &Rc<Self>, ctx: &Ctx<'_>) {
        // It fails only while somebody reads it, which nobody can yet.
        let _ = ctx.store_userdata(OfContext(Rc::clone(self)));
    }

    /// A user that is about to load its script.
    #[must_use]
    pub fn new(parts: VuParts) -> Rc<Self> {
        let VuParts { test, book, requests, clock, scenario, number, number_in_test } = parts;
        // An empty one is not sent.
        let headers = vec![("User-Agent".to_owned(), test.settings().user_agent.clone())];
        let tags = test.settings().tags.iter().chain(&scenario.tags).cloned().collect();
        let bodies = UserBodies::new(&test.bodies, test.settings().bodies);
        Rc::new(Self {
            test,
            book,
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
            notes: Notes::default(),
            traffic: Cell::default(),
            tasks: Tasks::default(),
            timers: Timers::default(),
            held: RefCell::default(),
        })
    }

    /// Waits for a future on behalf of its script.
    ///
    /// # Errors
    /// When the iteration has to end; scripts cannot catch that.
    pub fn wait<T>(&self, ctx: &Ctx<'_>, future: impl Future<Output = T>) -> rquickjs::Result<T> {
        wait(future).map_err(|why| cut(ctx, why))
    }

    /// Pauses its script until this instant.
    ///
    /// # Errors
    /// When the iteration has to end; scripts cannot catch that.
    pub fn pause(&self, ctx: &Ctx<'_>, until: Nanos) -> rquickjs::Result<()> {
        let pause = self.clock.sleep_until(until);
        let paused = match until.saturating_sub(self.now()) {
            long if long >= LONG_PAUSE => wait_long(pause),
            _ => wait(pause),
        };
        paused.map_err(|why| cut(ctx, why))
    }

    /// Refuses `what` while the script is loaded.
    ///
    /// # Errors
    /// Then.
    pub fn not_in_init(&self, ctx: &Ctx<'_>, what: &str) -> rquickjs::Result<()> {
        if self.stage.get() == VuStage::Init {
            return Err(go_error(ctx, &format!("{what} in the init context is not supported")));
        }
        Ok(())
    }

    /// Ends the iteration with an error that scripts cannot catch.
    #[must_use]
    pub fn end(&self, ctx: &Ctx<'_>) -> rquickjs::Error {
        cut(ctx, Cut::Ended)
    }

    /// Ends `held` when the call of the script's function is over.
    pub fn hold(&self, held: Weak<dyn Held>) {
        let mut all = self.held.borrow_mut();
        if all.len() == all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(held);
    }

    /// Ends everything that is held.
    pub fn end_held(&self) {
        for held in self.held.take() {
            if let Some(held) = held.upgrade() {
                held.end();
            }
        }
    }

    /// Notes a sample of a metric of k6's own under these tags.
    pub fn note(&self, metric: Builtin, set: &Rc<TagSet>, value: f64) {
        self.sample(metric.number(), set, value);
    }

    /// Counts bytes that were sent and received, for [`Vu::note_traffic`].
    pub fn count_traffic(&self, sent: u64, received: u64) {
        let (before, then) = self.traffic.get();
        self.traffic.set((before.saturating_add(sent), then.saturating_add(received)));
    }

    /// Notes the bytes counted since the last time, as one sample each: k6 has one per iteration,
    /// also of none, and a database keeps only one of those with equal times and tags.
    pub fn note_traffic(&self) {
        let (sent, received) = self.traffic.take();
        let set = self.book.set(self);
        self.note(Builtin::DataSent, &set, sent as f64);
        self.note(Builtin::DataReceived, &set, received as f64);
    }

    /// Notes a sample of a script's metric under its own tags.
    pub fn note_tagged(&self, metric: MetricNumber, tags: &[(String, String)], value: f64) {
        let set = self.book.set(&Tagged { vu: self, tags });
        self.sample(metric, &set, value);
    }

    fn sample(&self, metric: MetricNumber, set: &Rc<TagSet>, value: f64) {
        // Who takes samples one by one takes the metadata too.
        let metadata = self.test.tap.get().and_then(|_| self.metadata_now());
        self.notes.sample(metric, set, metadata, value);
    }

    /// What is said of a sample of this moment besides its tags; `None` when it is nothing.
    fn metadata_now(&self) -> Option<Tags> {
        let system = [("vu", self.number), ("iter", self.iteration.get())].into_iter();
        let system = system.filter(|(name, _)| self.test.has_system_tag(name));
        let system = system.map(|(name, number)| (name.to_owned(), number.to_string()));
        let all: Vec<_> = system.chain(self.metadata.borrow().iter().cloned()).collect();
        (!all.is_empty()).then(|| Tags::new(all))
    }

    /// The share of its scenario's iterations that are done, or of its time that is over, from 0 to
    /// 1.
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
        let over = self.now().saturating_sub(self.scenario_start.get());
        (over as f64 / length as f64).min(1.0)
    }

    /// The value of a tag that its script sees.
    #[must_use]
    pub fn own_tag(&self, name: &str) -> Option<String> {
        self.tag(name).map(Cow::into_owned)
    }

    /// The names of the tags that its script sees.
    #[must_use]
    pub fn tag_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.tags.borrow().iter().map(|(name, _)| name.clone()).collect();
        names.extend(["scenario", "group"].map(str::to_owned));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }
}

impl TagSource for Vu {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        match key {
            "scenario" => {
                let name = &self.scenario.name;
                (!name.is_empty()).then(|| name.as_str().into())
            }
            "group" => Some(self.group.borrow().to_string().into()),
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

/// The tags of a sample, and below them those of the user.
pub struct Tagged<'a> {
    /// The user.
    pub vu: &'a Vu,
    /// The sample's own.
    pub tags: &'a [(String, String)],
}

impl TagSource for Tagged<'_> {
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
