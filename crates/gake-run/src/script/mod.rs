//! A run of a k6 script: its life cycle around the engine's run.
//!
//! The script is loaded once to see its options ([`LoadedScript`]). Then `setup` runs, the engine
//! fires the users' iterations, `teardown` runs, and all they recorded is one run.

mod crew;
mod elsewhere;
mod levels;
mod remote;
mod slice;
mod stage;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gake_core::clock::{SECOND, nanos};
use gake_core::metric::Definition;
use gake_core::record::{Run, Tally};
use gake_core::schedule::{NumberStripes, Slice};
use gake_core::spec::{FieldPath, HttpVersion, RequestSource, RunSpec, STREAMS, ScenarioSpec};
use gake_engine::{Stop, WorkerContext};
use gake_k6::Exception;
use gake_k6::files::ScriptFiles;
use gake_k6::metrics::registry;
use gake_k6::of_no_user::add_dropped;
use gake_k6::secrets::Secrets;
use gake_k6::test::{Test, UserSettings};
use gake_k6::user::book::Book;
use gake_k6::user::script_user::LoadError;
use gake_k6::user::vu::{ScenarioFacts, VuStage};
use gake_k6::work::{ScriptFactory, ScriptLoad};
use gake_wire::{ConnectionPermit, Network, Protocol, Settings, TlsKeyLog, TlsOptions};
pub use gake_wire::{TlsIdentity, TlsVersion, tls12_suites};

use crate::{Beside, Interrupt, Moment, Prepared, Recorded, RunError, connection};
use crew::Crew;
pub use crew::LostParts;
use elsewhere::Followed;
pub use elsewhere::{RemoteUsers, SetUp};
pub use gake_k6::test::{LogLevel, LogLine, ScriptLog};
pub use gake_k6::within;
use levels::Levels;
pub use remote::fetcher;
pub use slice::{ScriptArchives, ScriptSlice};
use stage::StageUser;

/// Tags that sub-metrics may select by, besides those that the summary needs.
type Keys = Arc<[String]>;

/// Why a script's run has no result.
#[derive(Debug, thiserror::Error)]
pub enum ScriptRunError {
    /// The script cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// `setup` or `teardown` threw, or `handleSummary` did.
    #[error("{exception}")]
    Thrown {
        /// The stage.
        stage: VuStage,
        /// What it threw.
        exception: Exception,
    },
    /// `setup`, `teardown` or `handleSummary` returned a promise that was rejected.
    #[error("{0}")]
    Rejected(Exception),
    /// `setup` returned what cannot be written as JSON.
    #[error("error marshaling setup() data to JSON: json: unsupported {0}")]
    SetupData(String),
    /// `setup`, `teardown` or `handleSummary` took too long.
    #[error("{function}() execution timed out after {} seconds", limit.as_secs_f64())]
    Late {
        /// The stage.
        stage: VuStage,
        /// Its name.
        function: &'static str,
        /// Its time limit.
        limit: Duration,
    },
    /// The script does not have a function that a scenario calls.
    #[error("function '{0}' not found in exports")]
    NoFunction(String),
    /// The run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A script that has been loaded once.
#[derive(Debug)]
pub struct LoadedScript {
    /// What its users share.
    pub test: Arc<Test>,
    /// What it exports as `options`, as JSON.
    pub options: Option<String>,
    /// The metrics of k6 and those that it makes itself.
    pub metrics: Vec<Arc<Definition>>,
    functions: Vec<String>,
    /// Made once, whatever number of runs writes to it.
    key_log: OnceLock<Option<Arc<TlsKeyLog>>>,
}

/// The settings of a script's run.
#[derive(Debug, Clone)]
pub struct ScriptRun {
    /// The scenarios, and how connections are made.
    pub spec: RunSpec,
    /// The names of the scenarios' executors, by scenario.
    pub executors: Vec<String>,
    /// Which users of a larger test these are, if it is part of one.
    pub segment_users: Option<NumberStripes>,
    /// Tags by which sub-metrics are selected.
    pub keys: Vec<String>,
    /// How TLS is spoken.
    pub tls: ScriptTls,
    /// The minimum duration of an iteration.
    pub least_iteration: Duration,
    /// The time limit of `setup`; `None` skips it.
    pub setup: Option<Duration>,
    /// The time limit of `teardown`; `None` skips it.
    pub teardown: Option<Duration>,
}

/// How a script's connections speak TLS.
#[derive(Debug, Clone, Default)]
pub struct ScriptTls {
    /// The only version; both if `None`.
    pub version: Option<TlsVersion>,
    /// The cipher suites of TLS 1.2, as IANA names them; all if `None`.
    pub suites: Option<Vec<String>>,
    /// Certificates for servers that ask for one.
    pub identities: Vec<TlsIdentity>,
}

impl ScriptTls {
    /// Checks that its certificates can be used.
    ///
    /// # Errors
    /// What is wrong with the first that cannot.
    pub fn check(&self) -> Result<(), RunError> {
        if self.identities.is_empty() {
            return Ok(());
        }
        let identities = self.identities.clone();
        let tls = TlsOptions { identities, insecure: true, ..TlsOptions::default() };
        tls.config(Protocol::Negotiated).map(drop).map_err(RunError::cannot)
    }
}

/// What a script's run recorded.
#[derive(Debug)]
pub struct ScriptRecorded {
    /// The run, `setup` and `teardown` included.
    pub recorded: Recorded,
    /// What `setup` returned, as JSON; `None` when it did not return.
    pub setup_data: Option<String>,
    /// Why `setup` failed, if it did; nothing ran then, nor after one that was cut.
    pub setup: Result<(), ScriptRunError>,
    /// Why `teardown` did not complete, if it did not.
    pub teardown: Result<(), ScriptRunError>,
}

impl LoadedScript {
    /// Loads the script at the absolute `path` among `files`.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn load(
        path: &Path,
        files: ScriptFiles,
        environment: Vec<(String, String)>,
        secrets: Secrets,
        log: ScriptLog,
    ) -> Result<Self, ScriptRunError> {
        let early = UserSettings { environment, ..UserSettings::default() };
        let test = Arc::new(Test::new(path, files, early, log));
        // Set once, before any code of the script runs.
        let _ = test.secrets.set(secrets);
        let user = StageUser::load(&test, None)?;
        let options = user.user.options().map_err(LoadError::Thrown)?;
        let metrics = user.user.vu.book.metrics();
        let functions = user.user.functions();
        Ok(Self { test, options, metrics, functions, key_log: OnceLock::new() })
    }

    /// Whether it exports a function of this name.
    #[must_use]
    pub fn has(&self, function: &str) -> bool {
        self.functions.iter().any(|name| name == function)
    }

    /// Whether it exports any function.
    #[must_use]
    pub fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// A run of it that is ready to start. Users' settings must be set by now.
    ///
    /// # Errors
    /// When an objective or a network setting is not valid.
    pub fn prepare(&self, run: &ScriptRun) -> Result<Prepared, RunError> {
        if matches!(run.spec.connection.http, HttpVersion::Http3 | HttpVersion::Auto3) {
            let path = FieldPath::root().key("connection").key("http");
            return Err(RunError::spec(path, "scripts speak HTTP/2 and HTTP/1.1"));
        }
        let target = self.test.main.clone();
        let targets = vec![target; run.spec.scenarios.len()];
        let mut prepared = Prepared::of_works(&run.spec, &targets, &[], &registry(&self.metrics))?;
        // A script's users think in between, and take more of a core than plain requests do.
        if run.spec.threads.is_none() {
            prepared.spread_over_cores();
        }
        Ok(prepared)
    }

    fn key_log(&self, run: &ScriptRun) -> Result<Option<Arc<TlsKeyLog>>, RunError> {
        if let Some(log) = self.key_log.get() {
            return Ok(log.clone());
        }
        let log = connection::key_log(&run.spec.tls)?;
        Ok(self.key_log.get_or_init(|| log).clone())
    }

    /// Runs it to its end; `each` sees every second and may end it.
    ///
    /// # Errors
    /// When the run cannot be made. What `teardown` threw is in the result.
    pub fn run(
        &self,
        run: &ScriptRun,
        prepared: &Prepared,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<ScriptRecorded, ScriptRunError> {
        self.run_with(run, prepared, (None, None), beside, each)
    }

    /// As [`run`](Self::run), with users in other processes. `setup` and `teardown` run here.
    ///
    /// # Errors
    /// Likewise.
    pub fn run_elsewhere(
        &self,
        run: &ScriptRun,
        prepared: &Prepared,
        users: &mut dyn RemoteUsers,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<ScriptRecorded, ScriptRunError> {
        self.run_with(run, prepared, (Some(users), None), beside, each)
    }

    /// Goes on with a run whose users are in other processes, and which another process set up.
    /// `teardown` runs here, unless that process had the whole run.
    ///
    /// # Errors
    /// Likewise. `teardown` does not run then.
    pub fn go_on_elsewhere(
        &self,
        run: &ScriptRun,
        prepared: &Prepared,
        (users, earlier): (&mut dyn RemoteUsers, SetUp),
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<ScriptRecorded, ScriptRunError> {
        self.run_with(run, prepared, (Some(users), Some(earlier)), beside, each)
    }

    fn run_with(
        &self,
        run: &ScriptRun,
        prepared: &Prepared,
        (remote, earlier): (Option<&mut dyn RemoteUsers>, Option<SetUp>),
        beside: Beside<'_>,
        mut each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<ScriptRecorded, ScriptRunError> {
        let network = Arc::new(network(run, self.key_log(run)?, None)?);
        let keys: Keys = run.keys.clone().into();
        let own = Interrupt::default();
        let interrupt = beside.interrupt.unwrap_or(&own).clone();
        // As in k6: a threshold that aborts the test does not wait for iterations.
        let beside = Beside { interrupt: Some(&interrupt), aborts_at_once: true, ..beside };
        let is_resumed = earlier.is_some();
        let (set_up, setup) = match earlier {
            Some(earlier) => (earlier, Ok(true)),
            None => self.set_up(run, (&network, &keys), &interrupt),
        };
        // As in k6: after a setup that failed or was interrupted nothing runs, teardown neither.
        let is_set_up = matches!(setup, Ok(true)) && self.test.aborted().is_none();
        // Users that run already must be told to end.
        let is_void = !is_set_up || interrupt.came() && !is_resumed;
        // Where nothing runs no other process is needed.
        let remote = remote.filter(|_| !is_void);
        let mut loads =
            self.loads(run, prepared, (&network, &keys), (set_up.data.as_deref(), Slice::WHOLE));
        loads.iter_mut().for_each(|load| load.is_void = is_void);
        let crews = crews(run, &loads);
        let control = beside.users.cloned().unwrap_or_default();
        let lost = remote.as_ref().map(|remote| remote.lost());
        // Set once: a script runs once.
        let _ = self.test.active_users.set(crew::active(&crews, control, lost));
        let stopper = interrupt.clone();
        self.test.on_abort(move || stopper.stop(Stop::Now));
        if is_void {
            interrupt.stop(Stop::Now);
        }
        let book = Book::new(keys.iter().map(String::as_str), false);
        let mut levels = Levels::new(&self.test, &book, &self.metrics);
        let mut is_ending = false;
        let followed = remote.is_some().then(|| Followed { test: &self.test, crews: &crews });
        let each = |moment: &Moment<'_>| {
            if let Some(followed) = &followed {
                followed.follow(moment);
            }
            if self.test.aborted().is_none() && !is_void && !is_ending {
                // Before what changes with the second.
                let at = (moment.second.second * SECOND).saturating_sub(1);
                levels.see(&self.test, at, crews.iter().all(|crew| crew.is_over(at)));
            }
            let wish = each(&Moment { levels: levels.seen(), ..*moment });
            is_ending |= wish.is_some();
            wish
        };
        let mut needs_teardown = is_set_up;
        let recorded = match remote {
            Some(remote) => {
                let ready = remote.assemble(&set_up);
                let run = ready.and_then(|workers| prepared.run_elsewhere(workers, beside, each));
                let is_known = run.is_ok() || !is_resumed;
                needs_teardown &= is_known && remote.needs_teardown();
                // None of them sends anything while `teardown` runs.
                run.inspect_err(|_| remote.give_up())
            }
            None => {
                let make = move |context: WorkerContext| {
                    let load = loads[context.scenario].clone();
                    ScriptFactory::new(load, context.slice, context.clock)
                };
                prepared.run_works(make, beside, each)
            }
        };
        let SetUp { data: setup_data, recorded: mut aside } = set_up;
        let is_cut = || interrupt.is_urgent();
        let teardown = match needs_teardown {
            true => {
                self.teardown(run, (&network, &keys), setup_data.as_deref(), &mut aside, is_cut)
            }
            false => Ok(()),
        };
        if let (Err(_), Err(error)) = (&recorded, &teardown) {
            // The run's error is what is returned.
            self.test.log(LogLevel::Error, &error.to_string(), &[]);
        }
        let mut recorded = recorded?;
        if let Some(followed) = &followed {
            followed.end(&recorded.run);
        }
        self.warn_of_dropped(run, &recorded.run);
        let tally = &mut recorded.run.tally;
        tally.merge(&aside);
        tally.series.merge(levels.seen());
        let left: &[Crew] = if is_set_up { &crews } else { &[] };
        self.add_dropped(run, &book, left, tally);
        Ok(ScriptRecorded { recorded, setup_data, setup: setup.map(drop), teardown })
    }

    /// Adds the iterations that `crews` left undone, and those that no user's process knew of.
    fn add_dropped(&self, run: &ScriptRun, book: &Book, crews: &[Crew], tally: &mut Tally) {
        if self.test.aborted().is_none() {
            for (crew, scenario) in crews.iter().zip(&run.spec.scenarios) {
                let name = Some(scenario.name.as_str());
                add_dropped(&self.test, book, name, (crew.left(), 1), tally);
            }
        }
        // Those of a lost agent.
        add_dropped(&self.test, book, None, (tally.counts.lost, 1), tally);
    }

    /// Names the scenarios whose users were all busy when an iteration was due.
    fn warn_of_dropped(&self, run: &ScriptRun, recorded: &Run) {
        let parts: Vec<&Tally> = match recorded.scenarios.is_empty() {
            true => vec![&recorded.tally],
            false => recorded.scenarios.iter().map(|scenario| &scenario.tally).collect(),
        };
        for ((spec, executor), tally) in run.spec.scenarios.iter().zip(&run.executors).zip(parts) {
            // Those of a lost agent say nothing about users.
            if tally.counts.dropped > tally.counts.lost {
                let message = format!(
                    "Insufficient VUs, reached {} active VUs and cannot initialize more",
                    spec.max_in_flight
                );
                let fields = [("executor", executor.as_str()), ("scenario", spec.name.as_str())];
                self.test.log(LogLevel::Warning, &message, &fields);
            }
        }
    }

    /// What the users of `slice` of the run are made with, for each scenario.
    fn loads(
        &self,
        run: &ScriptRun,
        prepared: &Prepared,
        (network, keys): (&Arc<Network>, &Keys),
        (data, slice): (Option<&str>, Slice),
    ) -> Vec<ScriptLoad> {
        let data: Option<Arc<str>> = data.map(Arc::from);
        let segment_users = run.segment_users.clone().map(Arc::new);
        let (mut users_before, mut users_before_here) = (0, 0);
        let scenarios = run.spec.scenarios.iter().zip(prepared.plan.scenarios()).enumerate();
        let loads = scenarios.map(|(number, (scenario, plan))| {
            let executor = run.executors.get(number).cloned().unwrap_or_default();
            let lanes = plan.lanes();
            // A process without a part in it makes no users of it.
            let process = slice.among(lanes);
            let load = ScriptLoad {
                test: Arc::clone(&self.test),
                network: Arc::clone(network),
                scenario: facts(scenario, executor),
                start: nanos(scenario.start),
                users_before,
                users_before_here,
                process: process.unwrap_or(slice),
                data: data.clone(),
                keys: Arc::clone(keys),
                least: nanos(run.least_iteration),
                progress: Arc::default(),
                stripes: scenario.stripes.clone().map(Arc::new),
                users_in_whole: segment_users.clone(),
                is_void: false,
            };
            users_before += lanes as u64;
            users_before_here += process.map_or(0, |process| process.part(lanes)) as u64;
            load
        });
        loads.collect()
    }
}

/// The users of each scenario.
fn crews(run: &ScriptRun, loads: &[ScriptLoad]) -> Arc<[Crew]> {
    run.spec.scenarios.iter().zip(loads).map(|(spec, load)| Crew::of(spec, load)).collect()
}

fn facts(scenario: &ScenarioSpec, executor: String) -> ScenarioFacts {
    let (function, environment) = match &scenario.source {
        RequestSource::Script(script) => (script.function.clone(), script.environment.clone()),
        _ => (None, Vec::new()),
    };
    ScenarioFacts {
        name: scenario.name.clone(),
        executor,
        function: function.unwrap_or_else(|| "default".to_owned()),
        length: scenario.duration.map_or(0, nanos),
        environment,
        tags: scenario.tags.clone(),
    }
}

/// The network of all users: any origin, as far as the permit goes, and no redirect of its own.
fn network(
    run: &ScriptRun,
    key_log: Option<Arc<TlsKeyLog>>,
    permit: Option<Arc<ConnectionPermit>>,
) -> Result<Network, RunError> {
    let spec = &run.spec;
    let resolver = connection::resolver(spec)?;
    let streams = spec.connection.streams.unwrap_or(STREAMS);
    let settings = Settings {
        max_redirects: 0,
        protocol: Protocol::Negotiated,
        permit,
        ..connection::settings(&spec.connection, false, (usize::MAX, streams))?
    };
    let common = connection::tls(&spec.tls)?;
    let tls = TlsOptions {
        version: run.tls.version.or(common.version),
        suites: run.tls.suites.clone(),
        identities: run.tls.identities.clone(),
        key_log,
        ..common
    };
    let network = Network::new(&resolver, &tls, settings);
    network.and_then(Network::to_any_origin).map_err(RunError::cannot)
}
