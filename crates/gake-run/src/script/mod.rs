//! A run of a k6 script: its life cycle around the engine's run.
//!
//! The script is loaded once to see its options ([`LoadedScript`]). Then `setup` runs, the engine
//! fires the users' iterations, `teardown` runs, and all they recorded is one run.

mod archive;
mod configured;
mod crew;
mod elsewhere;
mod expand;
mod levels;
mod life;
mod mixed;
mod network;
mod prepared;
mod remote;
pub(crate) mod scenario;
mod settings;
mod slice;
mod source;
mod stage;
mod tls;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::nanos;
use gake_core::metric::Definition;
use gake_core::schedule::{NumberStripes, Slice};
use gake_core::spec::{FieldPath, HttpVersion, RequestSource, RunSpec, STREAMS, ScenarioSpec};
use gake_k6::Exception;
use gake_k6::files::ScriptFiles;
use gake_k6::metrics::registry;
use gake_k6::scenario::ScenarioFacts;
use gake_k6::secrets::Secrets;
use gake_k6::test::{Test, UserSettings};
use gake_k6::user::script_user::LoadError;
use gake_k6::user::vu::VuStage;
use gake_k6::work::{REJECTED, ScriptLoad, stack_text};
use gake_wire::{ClientSettings, ConnectionPermit, Network, Protocol, TlsKeyLog, TlsOptions};
pub use gake_wire::{TlsIdentity, TlsVersion, tls12_suites};

use crate::{Prepared, RunError, connection};
pub use archive::load_archive;
pub use configured::{ConfiguredScript, ScriptRefusal, ScriptSettings};
use crew::Crew;
pub use crew::LostParts;
pub use elsewhere::{RemoteUsers, SetUp};
pub use expand::expand;
pub use gake_k6::test::{LogLevel, LogLine, ScriptLog};
pub use gake_k6::within;
pub use prepared::{ONE_SCRIPT, PreparedScript, ScriptEnd};
pub use remote::fetcher;
pub use slice::ScriptSlice;
pub use source::{STDIN, ScriptSource};
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
    #[error("{function}() execution timed out after {:.0} seconds", limit.as_secs_f64())]
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

impl ScriptRunError {
    /// The error as k6 writes it: what a script threw has its stack.
    #[must_use]
    pub fn with_stack(&self) -> String {
        match self {
            Self::Load(LoadError::Thrown(exception) | LoadError::Syntax(exception))
            | Self::Thrown { exception, .. } => stack_text(exception),
            Self::Load(LoadError::Rejected(exception)) | Self::Rejected(exception) => {
                format!("{REJECTED}{}", stack_text(exception))
            }
            other => other.to_string(),
        }
    }
}

/// A script that has been loaded once; its clones are the same script.
#[derive(Debug, Clone)]
pub struct LoadedScript {
    /// What its users share.
    pub test: Arc<Test>,
    /// What it exports as `options`, as JSON.
    pub options: Option<String>,
    /// The metrics of k6 and those that it makes itself.
    pub metrics: Vec<Arc<Definition>>,
    functions: Vec<String>,
    /// Made once, whatever number of runs writes to it.
    key_log: Arc<OnceLock<Option<Arc<TlsKeyLog>>>>,
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
        Ok(Self { test, options, metrics, functions, key_log: Arc::default() })
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
        let scenarios = (0..run.spec.scenarios.len()).collect();
        prepared.scripts = vec![PreparedScript {
            script: self.clone(),
            run: run.clone(),
            thresholds: None,
            scenarios,
        }];
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

    /// What the users of `slice` of the run are made with, for each scenario, which have these
    /// numbers of lanes.
    fn loads(
        &self,
        run: &ScriptRun,
        lanes: &[usize],
        (network, keys): (&Arc<Network>, &Keys),
        (data, slice): (Option<&str>, Slice),
    ) -> Vec<ScriptLoad> {
        let data: Option<Arc<str>> = data.map(Arc::from);
        let segment_users = run.segment_users.clone().map(Arc::new);
        let (mut users_before, mut users_before_here) = (0, 0);
        let scenarios = run.spec.scenarios.iter().zip(lanes).enumerate();
        let loads = scenarios.map(|(number, (scenario, &lanes))| {
            let executor = run.executors.get(number).cloned().unwrap_or_default();
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
        length: scenario.load.length().or(scenario.duration).map_or(0, nanos),
        iterations: match scenario.load {
            Load::Shared { iterations, .. } => Some(iterations),
            Load::PerUser { users, iterations } => Some(iterations.saturating_mul(users as u64)),
            _ => None,
        },
        progress: Arc::default(),
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
    let settings = ClientSettings {
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
