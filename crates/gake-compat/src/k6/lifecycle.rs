//! A k6 run from its command line to its exit code.

use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::SECOND;
use gake_k6::options::vus_needed;
use gake_k6::test::{LogLevel, Test};
use gake_k6::version::K6Version;
use gake_k6::work::stack_text;
use gake_run::script::{ConfiguredScript, ScriptRunError};
use gake_run::{RunOptions, SecondUpdate};
use gake_session::fleet::FleetMaker;
use gake_session::options::{EmbeddedArgs, SpecFormat};
use gake_session::origin::origin;
use gake_session::redaction::redactor_for;
use gake_session::run::{EndedAgents, Reconciliation, RunAgents};
use gake_session::{Console, Exit, Failure, Signals, descriptors};
use gake_text::redact::SecretNames;

use super::api::{self, Api, DEFAULT_ADDRESS};
use super::ending::finish;
use super::exit::{code, exit_of, report};
use super::flags::RunFlags;
use super::native_outputs::NativeOutputs;
use super::out::Outputs;
use super::prepared_test::{PreparedTest, load_with_log, prepare};
use super::progress::{self, ProgressLines};
use super::{ANY, agents};
use crate::NativeResult as Native;

/// Thresholds are judged this often, in seconds.
const THRESHOLDS_EVERY: u64 = 2;

/// The note while the process stays for `--linger`.
const LINGERS: &str = "The test is done; because of --linger gake waits for Ctrl+C.";

/// `k6 run`.
///
/// # Errors
/// When a file or stream of gake's own cannot be used.
pub fn run(
    flags: &RunFlags,
    own: &EmbeddedArgs,
    native: &Native,
    console: &Console,
) -> Result<Exit, Failure> {
    let maker = FleetMaker::of(&own.fleet)?.map(FleetMaker::of_scripts);
    descriptors::raise();
    let mut ready = match prepare(flags, maker.is_some(), console) {
        Ok(ready) => ready,
        Err(refusal) => return Ok(refusal.report(console)),
    };
    let execution = maker.as_ref().map(|maker| format!("{} agents", maker.agents()));
    let redactor = redactor_for(SecretNames::default())?;
    ready.prepared.redact(&redactor);
    let execution = execution.as_deref().unwrap_or("local");
    progress::head(flags, &ready.loaded.options, execution, &redactor, console)?;
    let signals = Signals::for_script().map_err(Failure::signals)?;
    let maker = maker.map(|maker| maker.interrupted_by(signals.interrupt()));
    let interrupt = signals.interrupt();
    let own = (&own.web, &own.history, &own.sinks);
    let (own, mut sinks) = NativeOutputs::start(own, &ready.prepared, interrupt, console)?;
    sinks.extend(native.sink()?);
    let is_paused = ready.loaded.options.paused == Some(true);
    let outputs = ready.outputs.take();
    outputs.iter().for_each(|outputs| outputs.drain.obey(interrupt));
    let api = Api::new(Arc::clone(&ready.loaded.script.test), interrupt.clone(), is_paused);
    let _server = match serve(&api, flags, is_paused) {
        Ok(server) => server,
        Err(why) => {
            console.error(&why);
            return Ok(ANY);
        }
    };
    api.await_resumption();
    if is_paused && interrupt.came() {
        Outputs::close(outputs, console);
        return Ok(if api.has_stopped() { code::STOPPED } else { code::INTERRUPTED });
    }
    let options = RunOptions {
        sinks,
        interrupt: Some(interrupt),
        users: Some(api.users()),
        origin: origin(&[], &redactor),
        ..RunOptions::default()
    };
    let rows = flags.reconcile.as_deref();
    ready.rows =
        rows.map(|text| Reconciliation::begin(text, &ready.loaded.run.spec)).transpose()?;
    let agents = match ready.agents(maker.as_ref(), flags, console) {
        Ok(agents) => agents,
        Err(why) => {
            console.failure(&why);
            return Ok(if signals.came() { code::INTERRUPTED } else { ANY });
        }
    };
    let context = RunContext { flags, native, console, api: &api, signals: &signals };
    let exit = context.run(&ready, agents, outputs, options, own)?;
    if flags.linger {
        if !flags.quiet && !signals.came() {
            console.note(LINGERS);
        }
        api.linger();
    }
    Ok(exit)
}

/// The environment of a run while it is in progress.
pub(super) struct RunContext<'a> {
    pub(super) flags: &'a RunFlags,
    pub(super) native: &'a Native,
    pub(super) console: &'a Console,
    pub(super) api: &'a Api,
    pub(super) signals: &'a Signals,
}

impl RunContext<'_> {
    /// Runs it to its end, on agents if there are any, and shows the result.
    ///
    /// # Errors
    /// When a file or stream of gake's own cannot be used.
    pub(super) fn run(
        &self,
        ready: &PreparedTest,
        mut agents: Option<RunAgents<'_>>,
        outputs: Option<Outputs>,
        options: RunOptions<'_>,
        own: NativeOutputs,
    ) -> Result<Exit, Failure> {
        let Self { flags, native, console, api, signals } = *self;
        let summary = ready.summary_context(flags, console);
        let mut is_tainted = false;
        let each = &mut |update: &SecondUpdate<'_>| {
            let second = update.second.second;
            let elapsed = ready.loaded.script.test.duration(Duration::from_nanos(second * SECOND));
            let series = [&update.so_far.tally().series, update.levels];
            let judge = || summary.thresholds.judge(&series, elapsed, false);
            let is_judged =
                !summary.thresholds.is_empty() && second.is_multiple_of(THRESHOLDS_EVERY);
            let results = is_judged.then(judge);
            is_tainted = results.as_ref().map_or(is_tainted, |results| results.message().is_some());
            api.second(second, is_tainted, || {
                let mut all = update.so_far.tally().series.clone();
                all.merge(update.levels);
                let data = summary.data(&all, elapsed, &judge(), None).for_script();
                serde_json::from_str(&data).unwrap_or_default()
            });
            results
                .filter(|results| results.aborts)
                .map(|results| results.message().unwrap_or_default())
        };
        let PreparedTest { loaded: ConfiguredScript { script, run, .. }, prepared, .. } = ready;
        let users = vus_needed(&run.spec.scenarios) as u64;
        let line = progress::line(flags, &script.test, users, console);
        let mut lines = ProgressLines::start(flags, &ready.loaded.options, &script.test, console);
        if let Some(agents) = &mut agents {
            let events = agents::events(flags, &script.test);
            agents.follow(events, signals.interrupt());
        }
        let recorded = match &mut agents {
            Some(agents) => agents.run(prepared, options, each),
            None => prepared.run_with(options, each),
        };
        let ended = agents.and_then(RunAgents::finish);
        if let Some(line) = line {
            line.clear();
        }
        lines.end();
        api.end();
        Outputs::close(outputs, console);
        // The process that took the run over shows the result.
        if let Some(why) = ended.as_ref().and_then(|ended| ended.fleet.left()) {
            console.error(&format!("this process shows no result: {why}"));
            return Ok(Exit::CouldNot);
        }
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(error) => return Ok(self.failed(&script.test, &ScriptRunError::Run(error))),
        };
        let is_ended = ended.as_ref().is_some_and(EndedAgents::is_interrupted);
        let how = (signals.came() || is_ended, api.has_stopped());
        let (exit, summary) = finish(ready, flags, recorded, how, native, console)?;
        self.log_signal(&script.test);
        let exit = ended.as_ref().map_or(exit, |ended| {
            if let Some(note) = ended.teardown_note(prepared) {
                script.test.log(LogLevel::Warning, note, &[]);
            }
            ended.conclude((prepared, &summary.run.agents), flags.quiet, exit, console)
        });
        let exit = own.finish(&summary, exit, console)?;
        if let Some(ended) = &ended {
            ended.fleet.forget();
        }
        Ok(exit)
    }

    /// Logs why there is no result; the exit code.
    fn failed(&self, test: &Test, error: &ScriptRunError) -> Exit {
        let unloaded = test.unloaded.get();
        let hint = unloaded.map_or_else(String::new, |(number, _)| {
            format!("error while initializing VU #{number}")
        });
        if let Some(abort) = test.aborted() {
            test.log(LogLevel::Error, &abort.reason, &[("hint", &hint)]);
            return code::ABORTED;
        }
        let exit = match unloaded {
            Some((_, Some(exception))) => {
                let hint = format!("{hint} (script exception)");
                let fields = [("hint", hint.as_str()), ("source", "stacktrace")];
                test.log(LogLevel::Error, &stack_text(exception), &fields);
                code::EXCEPTION
            }
            _ => {
                report(test, error);
                exit_of(error)
            }
        };
        self.log_signal(test);
        if self.signals.came() { code::INTERRUPTED } else { exit }
    }

    /// Logs that a signal ended the test.
    fn log_signal(&self, test: &Test) {
        if let Some(name) = self.signals.first() {
            let why = format!("test run was aborted because k6 received a '{name}' signal");
            test.log(LogLevel::Error, &why, &[]);
        }
    }
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
    match load_with_log(flags, console) {
        Ok((loaded, _)) => console.result(&format.text(&loaded.run.spec)?)?,
        Err(refusal) => return Ok(refusal.report(console)),
    }
    Ok(Exit::Done)
}

/// Serves the API at the address from the flags, or, as k6 1.x, at the default one. If the default
/// address is in use, the run has no API.
fn serve(
    api: &Arc<Api>,
    flags: &RunFlags,
    is_paused: bool,
) -> Result<Option<gake_listen::Server>, String> {
    let requested = flags.address.as_deref();
    let address = requested.unwrap_or(match flags.settings.version {
        K6Version::One => DEFAULT_ADDRESS,
        K6Version::Two => "",
    });
    let Some(address) = Some(address).filter(|address| !address.is_empty()) else {
        return match is_paused {
            true => {
                Err("a paused run needs --address HOST:PORT, through which it is resumed"
                    .to_owned())
            }
            false => Ok(None),
        };
    };
    match api::start(api, address, requested.is_some() || is_paused) {
        Ok(server) => Ok(Some(server)),
        Err(error) if requested.is_some() || is_paused => {
            Err(format!("--address {address}: cannot listen there: {error}"))
        }
        Err(_) => Ok(None),
    }
}
