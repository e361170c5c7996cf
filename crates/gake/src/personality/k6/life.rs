//! A k6 run from its command line to its exit code.

use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::SECOND;
use gake_fleet::{Fleet, StoppedBy};
use gake_k6::metrics::registry;
use gake_k6::options::{Options, vus_needed};
use gake_k6::test::{LogLevel, LogLine, ScriptLog, Test};
use gake_k6::threshold::Thresholds;
use gake_k6::user::script_user::LoadError;
use gake_k6::user::vu::VuStage;
use gake_run::script::{ConfiguredScript, LoadedScript, ScriptRun, ScriptRunError, SetUp};
use gake_run::sink::RunFileSink;
use gake_run::{Beside, Moment, Prepared};
use gake_text::redact::Names;

use super::ANY;
use super::agents;
use super::api::{self, Api, DEFAULT_ADDRESS};
use super::attach::Showing;
use super::beside::{BesideArgs, OwnOutputs};
use super::ending::{Shown, finish};
use super::flags::RunFlags;
use super::load::{NOT_INITIALIZED, Refused, load};
use super::out::{self, OutSettings, Outputs};
use super::progress::{self, ProgressLines};
use crate::cli::SpecFormat;
use crate::spec;
use gake_compat::NativeResult as Native;
use gake_session::Console;
use gake_session::Signals;
use gake_session::descriptors;
use gake_session::fleet::{AgentScript, FleetMaker, ScriptAgents, TORN_DOWN};
use gake_session::origin::origin;
use gake_session::redaction::usual;
use gake_session::run::{Reconciliation, conclude};
use gake_session::script::log;
use gake_session::{Exit, Failure};

/// Thresholds are judged this often, in seconds.
const THRESHOLDS_EVERY: u64 = 2;

/// What k6 advises where `setup` took too long.
const SETUP_HINT: &str = "You can increase the time limit via the setupTimeout option";

/// What k6 advises where `teardown` took too long.
const TEARDOWN_HINT: &str = "You can increase the time limit via the teardownTimeout option";

/// What is said while the process stays for `--linger`.
const LINGERS: &str = "The test is done; because of --linger gake waits for Ctrl+C.";

/// k6's exit codes.
pub(super) mod code {
    use gake_session::Exit;

    pub const THRESHOLDS: Exit = Exit::Tool(99);
    pub const SETUP_LATE: Exit = Exit::Tool(100);
    pub const TEARDOWN_LATE: Exit = Exit::Tool(101);
    pub const LATE: Exit = Exit::Tool(102);
    pub const STOPPED: Exit = Exit::Tool(103);
    pub const INVALID: Exit = Exit::Tool(104);
    pub const INTERRUPTED: Exit = Exit::Tool(105);
    pub const EXCEPTION: Exit = Exit::Tool(107);
    pub const ABORTED: Exit = Exit::Tool(108);
    pub const FAILED: Exit = Exit::Tool(110);
}

/// Everything that is known before the run.
pub(super) struct Ready {
    pub(super) script: LoadedScript,
    pub(super) options: Options,
    pub(super) thresholds: Arc<Thresholds>,
    pub(super) run: ScriptRun,
    pub(super) prepared: Prepared,
    outputs: Option<Outputs>,
    /// The options as they were given.
    given: Options,
    /// What its users see as `__ENV`.
    environment: Vec<(String, String)>,
    /// The rows before the run, when they are compared.
    pub(super) rows: Option<Reconciliation>,
}

/// `k6 run`.
///
/// # Errors
/// When a file or stream of gake's own cannot be used.
pub fn run(
    flags: &RunFlags,
    own: &BesideArgs,
    native: &Native,
    console: &Console,
) -> Result<Exit, Failure> {
    let maker = FleetMaker::of(&own.fleet)?.map(FleetMaker::of_scripts);
    descriptors::raise();
    let mut ready = match ready(flags, maker.is_some(), console) {
        Ok(ready) => ready,
        Err(refused) => return Ok(refused.tell(console)),
    };
    let execution = maker.as_ref().map(|maker| format!("{} agents", maker.agents()));
    let redactor = usual(Names::default())?;
    ready.prepared.redact(&redactor);
    let execution = execution.as_deref().unwrap_or("local");
    progress::head(flags, &ready.options, execution, &redactor, console)?;
    let signals = Signals::for_script().map_err(Failure::signals)?;
    let maker = maker.map(|maker| maker.interrupted_by(signals.interrupt()));
    let (own, mut sinks) = own.start(&ready.prepared, signals.interrupt(), console)?;
    if let Some(path) = native.run_file() {
        sinks.push(Box::new(RunFileSink::create(&path).map_err(Failure::could_not)?));
    }
    let interrupt = signals.interrupt();
    let is_paused = ready.options.paused == Some(true);
    let outputs = ready.outputs.take();
    let api = Api::new(Arc::clone(&ready.script.test), interrupt.clone(), is_paused);
    if let Err(why) = serve(&api, flags, is_paused) {
        console.error(&why);
        return Ok(ANY);
    }
    api.await_resumption();
    if is_paused && interrupt.came() {
        for wrong in outputs.map(Outputs::finish).unwrap_or_default() {
            console.warn(&wrong);
        }
        return Ok(if api.has_stopped() { code::STOPPED } else { code::INTERRUPTED });
    }
    let beside = Beside {
        sinks,
        interrupt: Some(interrupt),
        users: Some(api.users()),
        origin: origin(&[], &redactor),
        ..Beside::default()
    };
    let rows = flags.reconcile.as_deref();
    ready.rows = rows.map(|text| Reconciliation::begin(text, &ready.run.spec)).transpose()?;
    let agents = match ready.agents(maker.as_ref(), flags, console) {
        Ok(agents) => agents,
        Err(why) => {
            console.error(&why);
            return Ok(if signals.came() { code::INTERRUPTED } else { ANY });
        }
    };
    let following = Following { flags, native, console, api: &api, signals: &signals };
    let exit = following.run(&ready, (agents, None), outputs, beside, own)?;
    if flags.linger {
        if !flags.quiet && !signals.came() {
            console.note(LINGERS);
        }
        api.linger();
    }
    Ok(exit)
}

/// What a run is followed with.
pub(super) struct Following<'a> {
    pub(super) flags: &'a RunFlags,
    pub(super) native: &'a Native,
    pub(super) console: &'a Console,
    pub(super) api: &'a Api,
    pub(super) signals: &'a Signals,
}

impl Following<'_> {
    /// Runs it to its end, on agents if there are some, and shows how it went. `earlier` is what
    /// `setup` gave in another process, whose run goes on here.
    ///
    /// # Errors
    /// When a file or stream of gake's own cannot be used.
    pub(super) fn run(
        &self,
        ready: &Ready,
        (mut agents, earlier): (Option<ScriptAgents<'_>>, Option<SetUp>),
        outputs: Option<Outputs>,
        beside: Beside<'_>,
        own: OwnOutputs,
    ) -> Result<Exit, Failure> {
        let Self { flags, native, console, api, signals } = *self;
        let shown = ready.shown(flags, console);
        let mut is_tainted = false;
        let each = |moment: &Moment<'_>| {
            let second = moment.second.second;
            let elapsed = ready.script.test.duration(Duration::from_nanos(second * SECOND));
            let series = [&moment.so_far.tally().series, moment.levels];
            let judge = || shown.thresholds.judge(&series, elapsed, false);
            let is_judged = !shown.thresholds.is_empty() && second.is_multiple_of(THRESHOLDS_EVERY);
            let results = is_judged.then(judge);
            is_tainted = results.as_ref().map_or(is_tainted, |results| results.message().is_some());
            api.second(second, is_tainted, || {
                let mut all = moment.so_far.tally().series.clone();
                all.merge(moment.levels);
                let data = shown.data(&all, elapsed, &judge(), None).for_script();
                serde_json::from_str(&data).unwrap_or_default()
            });
            results
                .filter(|results| results.aborts)
                .map(|results| results.message().unwrap_or_default())
        };
        let is_resumed = earlier.is_some();
        let (script, run, prepared) = (&ready.script, &ready.run, &ready.prepared);
        let users = vus_needed(&run.spec.scenarios) as u64;
        let line = progress::line(flags, &script.test, users, console);
        let mut lines = ProgressLines::start(flags, &ready.options, &script.test, console);
        if let Some(agents) = &mut agents {
            let events = agents::events(flags, &script.test);
            agents.follow(events, signals.interrupt());
        }
        let recorded = match &mut agents {
            Some(agents) => prepared.run_users_elsewhere((agents, earlier), beside, each),
            None => prepared.run_beside(beside, each),
        }
        .map_err(ScriptRunError::Run);
        let fleet = agents.and_then(ScriptAgents::finish);
        if let Some(line) = line {
            line.clear();
        }
        lines.end();
        api.end();
        for wrong in outputs.map(Outputs::finish).unwrap_or_default() {
            console.warn(&wrong);
        }
        // The result is that of whoever goes on.
        if let Some(why) = fleet.as_ref().and_then(Fleet::left) {
            console.error(&format!("this process shows no result: {why}"));
            return Ok(Exit::CouldNot);
        }
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(error) => {
                if let Some(abort) = script.test.aborted() {
                    let fields = [("hint", "error while initializing a VU")];
                    script.test.log(LogLevel::Error, &abort.reason, &fields);
                    return Ok(code::ABORTED);
                }
                say(&script.test, &error);
                self.say_signal(&script.test);
                return Ok(if signals.came() { code::INTERRUPTED } else { exit_of(&error) });
            }
        };
        let stopped_by = fleet.as_ref().and_then(Fleet::stopped_by);
        let is_interrupted = signals.came() || stopped_by == Some(StoppedBy::Interrupt);
        let how = (is_interrupted, api.has_stopped());
        let (exit, summary) = finish(ready, flags, recorded, how, native, console)?;
        self.say_signal(&script.test);
        let Some(fleet) = fleet else { return own.finish(&summary, exit, console) };
        if fleet.was_over() && run.teardown.is_some() && script.has("teardown") {
            script.test.log(LogLevel::Warning, TORN_DOWN, &[]);
        }
        // A run that nobody told to stop and that stopped before had its own reasons.
        let has_own_reason = [code::THRESHOLDS, code::ABORTED].contains(&exit);
        let is_own_end = is_resumed && stopped_by.is_none() && has_own_reason;
        let exit = match is_own_end && fleet.is_stopped() {
            true => exit,
            false => conclude((&fleet, &summary.run.agents), flags.quiet, exit, console),
        };
        let exit = own.finish(&summary, exit, console)?;
        fleet.forget();
        Ok(exit)
    }

    /// Says in the log that a signal ended the test.
    fn say_signal(&self, test: &Test) {
        if let Some(name) = self.signals.first() {
            let why = format!("test run was aborted because gake received a '{name}' signal");
            test.log(LogLevel::Error, &why, &[]);
        }
    }
}

/// Reads everything that says what is to be run.
fn ready(flags: &RunFlags, has_agents: bool, console: &Console) -> Result<Ready, Refused> {
    let (loaded, log) = loaded(flags, console)?;
    if let Some(why) = agents::cannot(flags, &loaded.options).filter(|_| has_agents) {
        return Err(Refused { why, exit: ANY, log: Some(log) });
    }
    Ready::new(loaded, flags, &log, console)
}

/// Prints the spec that the options of a script become.
///
/// # Errors
/// When it cannot be printed.
pub fn print_spec(
    flags: &RunFlags,
    format: SpecFormat,
    console: &Console,
) -> Result<Exit, Failure> {
    match loaded(flags, console) {
        Ok((loaded, _)) => console.result(&spec::printed(&loaded.run.spec, format)?)?,
        Err(refused) => return Ok(refused.tell(console)),
    }
    Ok(Exit::Done)
}

/// The script and its log.
fn loaded(flags: &RunFlags, console: &Console) -> Result<(ConfiguredScript, ScriptLog), Refused> {
    let log = log::log(console, flags.log_output.as_deref(), flags.log_format, flags.verbose)
        .map_err(|why| Refused { why, exit: ANY, log: None })?;
    let log = match flags.options.console_output.as_deref() {
        None | Some("") => log,
        Some(path) => log::with_console_file(Arc::clone(&log), path, flags.log_format)
            .map_err(|why| Refused { why, exit: ANY, log: Some(log) })?,
    };
    Ok((load(flags, Arc::clone(&log))?, log))
}

/// Serves the API where the flags say, if they say it. If the default address is
/// taken, the run goes on without the API.
fn serve(api: &Arc<Api>, flags: &RunFlags, is_paused: bool) -> Result<(), String> {
    let asked = flags.address.as_deref();
    let address = asked.unwrap_or(DEFAULT_ADDRESS);
    let Some(address) = Some(address).filter(|address| !address.is_empty()) else {
        return match is_paused {
            true => {
                Err("a paused run needs --address HOST:PORT, through which it is resumed"
                    .to_owned())
            }
            false => Ok(()),
        };
    };
    match api::start(api, address, asked.is_some() || is_paused) {
        Err(error) if asked.is_some() || is_paused => {
            Err(format!("--address {address}: cannot listen there: {error}"))
        }
        _ => Ok(()),
    }
}

impl Refused {
    /// Tells why, where that belongs; the exit code.
    pub(super) fn tell(self, console: &Console) -> Exit {
        let Self { why, exit, log } = self;
        match log {
            Some(log) => {
                let hint = ("hint", "script exception".to_owned());
                let is_hinted = exit == code::EXCEPTION && !why.starts_with(NOT_INITIALIZED);
                let fields = if is_hinted { vec![hint] } else { Vec::new() };
                log(&LogLine { level: LogLevel::Error, message: why, fields });
            }
            None => console.error(&why),
        }
        exit
    }
}

impl Ready {
    /// What is ready when its script is loaded.
    ///
    /// # Errors
    /// When the run cannot be prepared, or an output not be started.
    pub(super) fn new(
        loaded: ConfiguredScript,
        flags: &RunFlags,
        log: &ScriptLog,
        console: &Console,
    ) -> Result<Self, Refused> {
        let ConfiguredScript { script, options, run, thresholds, given, environment, .. } = loaded;
        let outs = OutSettings::of(&gake_session::script::environment());
        let refused = |why: String| Refused { why, exit: ANY, log: Some(Arc::clone(log)) };
        let prepared = script.prepare(&run).map_err(|error| refused(error.to_string()))?;
        let outputs = out::start(&flags.out, &options, &outs, console).map_err(refused)?;
        if let Some(outputs) = &outputs {
            let _ = script.test.system_tags.set(options.system_tags.clone().unwrap_or_default());
            let _ = script.test.tap.set(Arc::clone(&outputs.tap));
        }
        let rows = None;
        Ok(Self { script, options, thresholds, run, prepared, outputs, given, environment, rows })
    }

    /// The agents that are to run it, if it is not this process.
    fn agents<'a>(
        &'a self,
        maker: Option<&'a FleetMaker>,
        flags: &'a RunFlags,
        console: &'a Console,
    ) -> Result<Option<ScriptAgents<'a>>, String> {
        let Some(maker) = maker else { return Ok(None) };
        let (given, environment) = (&self.given, self.environment.as_slice());
        let showing = Showing::of(flags).text();
        let script = AgentScript {
            showing,
            ..agents::agent_script(flags, &self.script, given, environment)
        };
        let agents = ScriptAgents::new(maker, &script, (&self.run, &self.prepared));
        let agents = agents.map_err(|error| error.to_string())?;
        agents.find().map_err(|error| error.to_string())?;
        Ok(Some(agents.described_on((!flags.quiet).then_some(console))))
    }

    pub(super) fn shown<'a>(&'a self, flags: &RunFlags, console: &'a Console) -> Shown<'a> {
        Shown {
            metrics: registry(&self.script.metrics),
            thresholds: &self.thresholds,
            options: &self.options,
            no_color: flags.no_color || asks_for_no_colour(),
            console,
        }
    }
}

/// Whether the environment wants no colours.
fn asks_for_no_colour() -> bool {
    let environment = gake_session::script::environment();
    let value = |name: &str| environment.iter().find(|one| one.0 == name);
    value("NO_COLOR").is_some() || value("K6_NO_COLOR").is_some_and(|one| !one.1.is_empty())
}

pub(super) fn say(test: &Test, error: &ScriptRunError) {
    let hint = match error {
        ScriptRunError::Load(LoadError::Rejected(_)) => None,
        ScriptRunError::Load(_) | ScriptRunError::Thrown { .. } => Some("script exception"),
        ScriptRunError::Late { stage: VuStage::Setup, .. } => Some(SETUP_HINT),
        ScriptRunError::Late { stage: VuStage::Teardown, .. } => Some(TEARDOWN_HINT),
        _ => None,
    };
    let fields: Vec<(&str, &str)> = hint.map(|hint| ("hint", hint)).into_iter().collect();
    test.log(LogLevel::Error, &error.with_stack(), &fields);
}

pub(super) fn exit_of(error: &ScriptRunError) -> Exit {
    match error {
        ScriptRunError::Load(LoadError::NoMemory(_) | LoadError::Rejected(_))
        | ScriptRunError::Run(_)
        | ScriptRunError::SetupData(_)
        | ScriptRunError::Rejected(_) => ANY,
        ScriptRunError::Load(LoadError::Aborted(_)) => code::ABORTED,
        ScriptRunError::Load(_) | ScriptRunError::Thrown { .. } => code::EXCEPTION,
        ScriptRunError::Late { stage: VuStage::Setup, .. } => code::SETUP_LATE,
        ScriptRunError::Late { stage: VuStage::Teardown, .. } => code::TEARDOWN_LATE,
        ScriptRunError::Late { .. } => code::LATE,
        ScriptRunError::NoFunction(_) => code::INVALID,
    }
}
