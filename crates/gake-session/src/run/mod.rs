//! From a prepared run to its result: where figures go during the run, how it is displayed, its
//! exit code.

mod connection_progress;
mod destinations;
mod history_writer;
mod live;
mod reconcile;
mod rows;
mod spill;
mod traces;
mod trials;
mod unreachable;
mod web;
pub mod writes;

pub use crate::fleet::{EndedAgents, RunAgents, assemble};
pub use destinations::destinations;
pub use history_writer::HistoryWriter;
pub use reconcile::Reconciliation;
pub use spill::SinkDrain;
pub use traces::start as start_traces;
pub use trials::SessionTrials;
pub use web::{Controls, Web};

use gake_core::record::RunEnd;
use gake_core::spec::RunSpec;
use gake_judge::Summary;
use gake_run::sink::{LogSink, RunFileSink};
use gake_run::{RateControl, ResolvedRun, RunError, RunOptions, SecondUpdate, Sink, TargetWatcher};
use gake_text::redact::Redactor;

use crate::options::{OutputArgs, SaveArgs, WebArgs};
use crate::origin::{origin, spec_json};
use crate::{Console, Exit, Failure, Results, Signals, script};
use live::RunLive;

/// Where the figures of a run go, and how it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// What destinations of figures have not taken.
    pub drain: &'a SinkDrain,
    /// Formats and files of results, and destinations of figures.
    pub output: &'a OutputArgs,
    /// The live page.
    pub web: &'a WebArgs,
    /// Saving the run, and comparing it with a baseline.
    pub history: &'a SaveArgs,
    /// Hides secrets.
    pub redactor: &'a Redactor,
    /// The standard streams.
    pub console: &'a Console,
    /// The spec, for the run file.
    pub spec: Option<&'a RunSpec>,
    /// As [`RunOptions::probe`].
    pub probe: bool,
}

/// The agents of a run, if it has some, and the counter of rows before and after it.
pub type RunParticipants<'a> = (Option<RunAgents<'a>>, Option<Reconciliation>);

impl<'a> Session<'a> {
    /// Runs `prepared` and shows it; `spans` are sinks of sampled requests. `begin` is called once
    /// the files are created.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn run(
        self,
        prepared: &ResolvedRun,
        spans: Vec<Box<dyn Sink>>,
        begin: impl FnOnce() -> Result<RunParticipants<'a>, Failure>,
        failure: &dyn Fn(RunError) -> Failure,
    ) -> Result<Exit, Failure> {
        let Self { output, console, .. } = self;
        let quiet = output.quiet;
        let is_plan_seen = !quiet && console.live() && console.out_is_terminal();
        let results = Results::create(output.results(), output.no_color, console)?;
        let results = results.brief(quiet).with_plan(!is_plan_seen);
        let mut watching = TargetWatcher::of(prepared).map_err(failure)?;
        let history = HistoryWriter::start(self.history)?;
        let mut sinks = sinks(output, history.as_ref()).map_err(failure)?;
        sinks.extend(destinations(&output.sinks, self.drain.spill(), console)?);
        sinks.extend(spans);
        let (mut agents, reconciliation) = begin()?;
        let mut live = RunLive::new(output, console, &prepared.plan);
        let signals = Signals::watch_each(live.stopper(console)).map_err(Failure::signals)?;
        self.drain.obey(signals.interrupt());
        let log = (!quiet && !output.tui).then_some(*console);
        // Agents cannot change their rate during the run.
        let rate = agents.is_none() && RateControl::suits(&prepared.plan);
        let rate = rate.then(RateControl::default);
        let controls = Controls { interrupt: signals.interrupt(), rate: rate.as_ref() };
        let web = Web::start(self.web, prepared, controls, log, console)?;
        sinks.extend(web.sink());
        live.open(console, prepared, signals.interrupt())?;
        let mut origin = origin(&prepared.objectives, self.redactor);
        origin.specs.extend(self.spec.and_then(|spec| spec_json(spec, self.redactor)));
        if let Some(agents) = &mut agents {
            agents.follow(live.agents_reporter(console), signals.interrupt());
        }
        let options = RunOptions {
            sinks,
            rate: rate.as_ref(),
            interrupt: Some(signals.interrupt()),
            watching: Some(&mut watching),
            probe: self.probe && agents.is_none(),
            origin,
            ..RunOptions::default()
        };
        let show = &mut |update: &SecondUpdate<'_>| {
            live.show(console, update, prepared);
            unreachable::reason(&prepared.plan, update)
        };
        let recorded = match &mut agents {
            Some(agents) => agents.run(prepared, options, show),
            None => prepared.run_with(options, show),
        };
        let ended = agents.and_then(RunAgents::finish);
        live.clear();
        let recorded = recorded.map_err(failure)?;
        for loss in &recorded.losses {
            console.warn(&loss.text);
        }
        let mut summary = Summary::new(recorded.run, &prepared.objectives);
        if let Some(reconciliation) = reconciliation {
            match prepared.scripts.is_empty() {
                true => reconciliation.end(&mut summary),
                false => {
                    let found = writes::judge(&reconciliation, &summary.run.tally.series);
                    summary.verdict.objectives.push(found);
                }
            }
        }
        let outcome = script::outcome(&prepared.scripts, &recorded.scripts, &mut summary);
        let shown = results.show(&summary, console, &|_| Ok(()));
        // Signals while the page is still open do not concern the run.
        let is_interrupted =
            signals.came() || ended.as_ref().is_some_and(EndedAgents::is_interrupted);
        let exit = outcome.report(exit(&summary, is_interrupted, console), console);
        // The printed text already has a line about each agent.
        let says_nothing = quiet || output.is_text_printed();
        let exit = ended.as_ref().map_or(exit, |ended| {
            ended.teardown_note(prepared).into_iter().for_each(|note| console.warn(note));
            ended.conclude((prepared, &summary.run.agents), says_nothing, exit, console)
        });
        web.finish(&summary);
        let exit = match history {
            Some(history) => history.finish(&summary, exit, output.is_text_printed(), console)?,
            None => exit,
        };
        shown?;
        if let Some(ended) = &ended {
            ended.forget();
        }
        Ok(exit)
    }
}

/// Files that are written during the run, created now so that a bad path costs nothing.
fn sinks(
    args: &OutputArgs,
    history: Option<&HistoryWriter>,
) -> Result<Vec<Box<dyn Sink>>, RunError> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let Some(history) = history {
        sinks.push(history.sink()?);
    }
    if let Some(path) = &args.out {
        sinks.push(Box::new(RunFileSink::create(path)?));
    }
    if let Some(path) = &args.log {
        sinks.push(Box::new(LogSink::create(path)?));
    }
    Ok(sinks)
}

/// The exit of a run with a summary. An interrupt goes before objectives, which were judged on part
/// of the run.
fn exit(summary: &Summary, interrupted: bool, console: &Console) -> Exit {
    let Summary { run, verdict } = summary;
    if let RunEnd::Aborted(why) = &run.ending {
        // Without a success only an objective ends a run as missed; a wrong port does not.
        let is_missed = verdict.objectives.iter().any(|one| one.text == *why);
        if is_missed || verdict.nothing_ok.is_none() {
            return Exit::ObjectiveFailed;
        }
    }
    if interrupted {
        return Exit::Interrupted;
    }
    console.conclude(verdict)
}
