//! The shadow proxy of an experiment, with its ledger and comparison.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gake_report::experiment::Expectation;
use gake_session::Failure;
use gake_shadow::compare::judge::{FieldVerdict, Pace, ShadowReport, Terms, judge};
use gake_shadow::compare::{ComparisonRules, file};
use gake_text::units::count;
use serde_json::Value;

use crate::expectations::expectation;
use crate::server::{self, ExperimentServer};

/// How long copies may be in flight after the load.
const PATIENCE: Duration = Duration::from_secs(10);
/// The polling interval of the ledger.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The discard port, on which no HTTP server listens.
const NOWHERE: &str = "http://127.0.0.1:9";
const PRODUCTION: &str = "production";
const SANDBOX: &str = "sandbox";
const SECOND: &str = "second";

/// A proxy between the load and its backends: production, a sandbox, and optionally a second
/// instance of production for noise.
#[derive(Debug)]
pub struct ShadowSetup {
    /// The loaded server.
    pub server: ExperimentServer,
    /// Production, without the proxy.
    pub production: ExperimentServer,
    _others: Vec<ExperimentServer>,
    /// The address of its ledger.
    admin: String,
    folder: PrivateFolder,
    /// The comparison's report, when the proxy has ended.
    report: Option<ShadowReport>,
}

/// The flags of a proxy and its backends.
#[derive(Debug)]
pub struct ProxyFlags {
    pub production: String,
    pub sandbox: String,
    /// The name of the sandbox's user; `""` starts no sandbox.
    pub user: String,
    /// Whether there is a second instance of production.
    pub has_second: bool,
    pub proxy: String,
}

/// A private folder that is removed on drop; a second Ctrl-C leaves it behind.
#[derive(Debug)]
struct PrivateFolder(PathBuf);

impl ShadowSetup {
    /// Starts the backends, and a proxy between them and the load.
    pub fn start(flags: &ProxyFlags) -> Result<Self, Failure> {
        let production = backend(&flags.production, "Ada")?;
        let second = flags.has_second.then(|| backend(&flags.production, "Ada")).transpose()?;
        let is_there = !flags.user.is_empty();
        let sandbox = is_there.then(|| backend(&flags.sandbox, &flags.user)).transpose()?;
        let folder = PrivateFolder::create()?;
        let comparison = folder.comparison().display().to_string();
        let master = format!("{PRODUCTION}={}", production.url);
        let shadow = sandbox.as_ref().map_or(NOWHERE, |sandbox| &sandbox.url);
        let shadow = format!("{SANDBOX}={shadow}");
        let noise = second.as_ref().map(|second| format!("{SECOND}={}", second.url));
        let mut args = vec!["--admin", "127.0.0.1:0", "--diff-out", &comparison];
        args.extend(["--master", &master, "--shadow", &shadow]);
        args.extend(noise.iter().flat_map(|noise| ["--noise", noise]));
        let shown = if second.is_some() { " --noise second=URL" } else { "" };
        let command = format!(
            "{}, behind gake shadow --master production=URL --shadow sandbox=URL{shown} {}",
            production.command, flags.proxy
        );
        let mut server = ExperimentServer::proxy(&flags.proxy, &args, command)?;
        let line = server.logged("http://")?;
        let admin = line.trim_start_matches("http://").split(',').next().unwrap_or_default();
        let admin = admin.trim().to_owned();
        let _others = [second, sandbox].into_iter().flatten().collect();
        Ok(Self { server, production, _others, admin, folder, report: None })
    }

    /// Stops it when no copy is in flight; returns the ledger: the outcomes at the sandbox, by
    /// category.
    pub fn end(&mut self) -> Result<Value, Failure> {
        let ledger = self.settled_ledger()?;
        self.server.end()?;
        let path = self.folder.comparison();
        let comparisons = file::read(&path)
            .map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
        let found = comparisons.iter().find(|one| one.shadow == SANDBOX);
        let found = found
            .ok_or_else(|| Failure::could_not("the proxy compared nothing with the sandbox"))?;
        self.report = Some(judge(found, &ComparisonRules::default(), Terms::default()));
        Ok(ledger)
    }

    /// The sandbox's ledger when no copy is in flight, or after [`PATIENCE`].
    fn settled_ledger(&self) -> Result<Value, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            let page = server::get(&self.admin, "/ledger")?;
            let ledgers: Vec<Value> = serde_json::from_str(&page)
                .map_err(|error| Failure::could_not(format!("the proxy's ledger: {error}")))?;
            let is_settled = ledgers.iter().all(|ledger| ledger["in_flight"] == 0);
            if is_settled || Instant::now() >= until {
                let found = ledgers.into_iter().find(|ledger| ledger["name"] == SANDBOX);
                return Ok(found.unwrap_or_default());
            }
            sleep(LOOK_EVERY);
        }
    }

    /// The fields in which the comparison proves a difference, and whether the shadow is slower.
    pub fn found(&self, fields: &[String], slower: bool, theory: String) -> Expectation {
        let report = self.report.as_ref();
        let real = report.into_iter().flat_map(|report| report.of(FieldVerdict::Real));
        let mut real: Vec<_> = real.map(|real| real.path.clone()).collect();
        let paced = report.and_then(|report| report.with_pace(Pace::Slower).next());
        let met = real == fields && paced.is_some() == slower;
        if let Some(endpoint) = paced {
            let ratio = endpoint.latency.ratio.as_ref().map_or(f64::NAN, |ratio| ratio.middle);
            real.push(format!("{ratio:.1} times slower"));
        }
        let seen = if real.is_empty() { "nothing".to_owned() } else { real.join(", ") };
        let seen = format!(
            "{seen} in {} pairs of responses",
            count(report.map_or(0, |report| report.exchanges))
        );
        expectation("found", theory, seen, met)
    }
}

/// A users service with one user, whose mail address identifies the instance.
fn backend(flags: &str, user: &str) -> Result<ExperimentServer, Failure> {
    let server = ExperimentServer::lab(flags)?;
    let mail = server.address();
    server.post("/users", &format!("{{\"name\":\"{user}\",\"mail\":\"me@{mail}\"}}"))?;
    Ok(server)
}

impl PrivateFolder {
    fn create() -> Result<Self, Failure> {
        let unique = rand::random::<u64>();
        let path = std::env::temp_dir().join(format!("gake-experiment-{unique:016x}"));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    fn comparison(&self) -> PathBuf {
        self.0.join("comparison.json")
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What cannot be removed stays in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
