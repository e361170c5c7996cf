//! Runs of k6 scripts.
//!
//! A script is loaded once for its options ([`LoadedScript`]). Then `setup` runs, the engine fires
//! the users' iterations, and `teardown` runs. All samples become one run.

mod archive;
#[cfg_attr(not(feature = "browser"), path = "without_browser.rs")]
mod browser;
mod configured;
mod expand;
#[cfg_attr(not(feature = "extensions"), path = "without_extensions.rs")]
mod extensions;
mod imports;
mod levels;
mod lifecycle;
mod mixed;
mod module_fetch;
mod module_lock;
mod network;
mod prepared;
mod remote_users;
pub(crate) mod scenario;
mod scenario_users;
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
use gake_core::schedule::{NumberPattern, Slice};
use gake_core::spec::{HttpVersion, RequestSource, RunSpec, STREAMS, ScenarioSpec};
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

use crate::{ResolvedRun, RunError, connection};
pub use archive::load_archive;
pub use configured::{ConfiguredScript, ScriptRefusal, ScriptSettings};
pub use expand::expand;
pub use gake_k6::test::{LogLevel, LogLine, ScriptLog};
pub use gake_k6::within;
pub use module_fetch::fetcher;
pub use module_lock::ModuleLock;
pub use prepared::{PreparedScript, ScriptEnd};
pub use remote_users::{RemoteUsers, SetupResult};
pub use scenario_users::LostSlices;
use scenario_users::ScenarioUsers;
pub use slice::ScriptSlice;
pub use source::{STDIN, UnloadedScript};
use stage::StageUser;

/// Tags by which sub-metrics are selected, besides the summary's.
type TagKeys = Arc<[String]>;

/// Errors of a script's run.
#[derive(Debug, thiserror::Error)]
pub enum ScriptRunError {
    /// The script cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// `setup` or `teardown` threw, or `handleSummary` did.
    #[error("{exception}")]
    Thrown {
        /// The stage of the test.
        stage: VuStage,
        /// The exception.
        exception: Exception,
    },
    /// `setup`, `teardown` or `handleSummary` returned a promise that was rejected.
    #[error("{0}")]
    Rejected(Exception),
    /// The return value of `setup` cannot be converted to JSON.
    #[error("error marshaling setup() data to JSON: json: unsupported {0}")]
    SetupData(String),
    /// `setup`, `teardown` or `handleSummary` timed out.
    #[error("{function}() execution timed out after {:.0} seconds", limit.as_secs_f64())]
    Late {
        /// The stage of the test.
        stage: VuStage,
        /// The function.
        function: &'static str,
        /// Its time limit.
        limit: Duration,
    },
    /// The script does not export a function that a scenario calls.
    #[error("function '{0}' not found in exports")]
    NoFunction(String),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl ScriptRunError {
    /// The error as k6 writes it: exceptions include their stack.
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

/// A loaded script. Clones are the same script.
#[derive(Debug, Clone)]
pub struct LoadedScript {
    /// The state that users share.
    pub test: Arc<Test>,
    /// The exported `options`, as JSON.
    pub options: Option<String>,
    /// The built-in metrics of k6 and its own.
    pub metrics: Vec<Arc<Definition>>,
    functions: Vec<String>,
    /// Opened once for all runs.
    key_log: Arc<OnceLock<Option<Arc<TlsKeyLog>>>>,
    /// That of its run, for what `handleSummary` sends.
    network: Arc<OnceLock<(Arc<Network>, TagKeys)>>,
}

/// The settings of a script's run.
#[derive(Debug, Clone)]
pub struct ScriptRun {
    /// The scenarios, and the connection settings.
    pub spec: RunSpec,
    /// The names of the scenarios' executors, by scenario.
    pub executors: Vec<String>,
    /// The user numbers of an execution segment, if it is one.
    pub segment_users: Option<NumberPattern>,
    /// The version of HTTP, unless the connection settings ask for HTTP/3.
    pub http: HttpVersion,
    /// Tags by which sub-metrics are selected.
    pub keys: Vec<String>,
    /// TLS settings.
    pub tls: ScriptTls,
    /// The minimum duration of an iteration.
    pub least_iteration: Duration,
    /// The time limit of `setup`; `None` skips it.
    pub setup: Option<Duration>,
    /// The time limit of `teardown`; `None` skips it.
    pub teardown: Option<Duration>,
}

/// TLS settings of a script.
#[derive(Debug, Clone, Default)]
pub struct ScriptTls {
    /// The only TLS version; any if `None`.
    pub version: Option<TlsVersion>,
    /// Cipher suites of TLS 1.2 by their IANA names; all if `None`.
    pub suites: Option<Vec<String>>,
    /// Certificates for servers that ask for one.
    pub identities: Vec<TlsIdentity>,
}

impl ScriptTls {
    /// Checks that the certificates can be used.
    ///
    /// # Errors
    /// The problem of the first one that cannot.
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
    /// Loads the script at the absolute `path` among `files`, whose users have the settings `early`
    /// until its options are known. Its log is redacted by them.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn load(
        path: &Path,
        files: ScriptFiles,
        early: UserSettings,
        secrets: Secrets,
        log: ScriptLog,
    ) -> Result<Self, ScriptRunError> {
        let test = Arc::new(Test::new(path, files, early, log));
        test.extensions.set(extensions::EXTENSIONS.iter().chain(browser::BROWSER));
        // Cannot fail: set once, before any code of the script runs.
        let _ = test.secrets.set(secrets);
        let user = StageUser::load(&test, None)?;
        let options = user.user.options()?;
        let metrics = user.user.vu.series_index.metrics();
        let functions = user.user.functions();
        let (key_log, network) = Default::default();
        Ok(Self { test, options, metrics, functions, key_log, network })
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

    /// Prepares a run of the script. User settings must have been set.
    ///
    /// # Errors
    /// When an objective or a network setting is not valid.
    pub fn prepare(&self, run: &ScriptRun) -> Result<ResolvedRun, RunError> {
        let target = self.test.main.clone();
        let targets = vec![target; run.spec.scenarios.len()];
        let mut prepared =
            ResolvedRun::of_works(&run.spec, &targets, &[], &registry(&self.metrics))?;
        let scenarios = (0..run.spec.scenarios.len()).collect();
        prepared.scripts = vec![PreparedScript {
            script: self.clone(),
            run: run.clone(),
            thresholds: None,
            scenarios,
        }];
        // Scripts take more CPU than plain requests.
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

    /// The loads of the users of `slice`, by scenario; `lanes` are the numbers of users by
    /// scenario.
    fn loads(
        &self,
        run: &ScriptRun,
        lanes: &[usize],
        (network, keys): (&Arc<Network>, &TagKeys),
        (data, slice): (Option<&str>, Slice),
    ) -> Vec<ScriptLoad> {
        let data: Option<Arc<str>> = data.map(Arc::from);
        let segment_users = run.segment_users.clone().map(Arc::new);
        let (mut users_before, mut users_before_here) = (0, 0);
        let scenarios = run.spec.scenarios.iter().zip(lanes).enumerate();
        let loads = scenarios.map(|(number, (scenario, &lanes))| {
            let executor = run.executors.get(number).cloned().unwrap_or_default();
            // The process may have no users of this scenario.
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
            users_before_here += process.map_or(0, |process| process.count(lanes)) as u64;
            load
        });
        loads.collect()
    }
}

fn users_by_scenario(run: &ScriptRun, loads: &[ScriptLoad]) -> Arc<[ScenarioUsers]> {
    run.spec.scenarios.iter().zip(loads).map(|(spec, load)| ScenarioUsers::of(spec, load)).collect()
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

/// The network of all users: connects to any permitted origin, and follows no redirects, which
/// scripts handle.
fn network(
    run: &ScriptRun,
    key_log: Option<Arc<TlsKeyLog>>,
    permit: Option<Arc<ConnectionPermit>>,
) -> Result<Network, RunError> {
    let spec = &run.spec;
    let resolver = connection::resolver(spec)?;
    let streams = spec.connection.streams.unwrap_or(STREAMS);
    let protocol = match spec.connection.http {
        version @ (HttpVersion::Http3 | HttpVersion::Auto3) => connection::protocol(version),
        _ => connection::protocol(run.http),
    };
    if protocol == Protocol::Http3 && resolver.proxy.is_some() {
        return Err(RunError::cannot("a proxy does not carry UDP, which HTTP/3 needs"));
    }
    let settings = ClientSettings {
        max_redirects: 0,
        protocol,
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
