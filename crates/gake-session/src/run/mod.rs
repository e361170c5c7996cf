//! From a prepared run to its result: where figures go meanwhile, what is shown of it, its exit code.

mod destinations;
mod live;
mod opening;
mod reconcile;
mod rows;
mod save;
mod traces;
mod trials;
mod web;
pub mod writes;

pub use crate::fleet::{EndedAgents, RunAgents, assemble};
pub use destinations::destinations;
pub use reconcile::Reconciliation;
pub use save::Saving;
pub use traces::start as start_traces;
pub use trials::SessionTrials;
pub use web::{Controls, Web};

use gake_core::record::RunEnd;
use gake_core::spec::RunSpec;
use gake_judge::Summary;
use gake_run::sink::{LogSink, RunFileSink};
use gake_run::{Beside, Moment, Prepared, RateControl, RunError, Sink, Watching};
use gake_text::redact::Redactor;

use crate::options::{OutputArgs, SaveArgs, WebArgs};
use crate::origin::{kept, origin};
use crate::{Console, Exit, Failure, Results, Signals, script};
use live::RunLive;

/// Where the figures of a run go, and how it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// The results, and where figures go.
    pub output: &'a OutputArgs,
    /// The live page.
    pub web: &'a WebArgs,
    /// Whether the run is kept, and what it is compared with.
    pub history: &'a SaveArgs,
    /// Hides secrets.
    pub redactor: &'a Redactor,
    /// The standard streams.
    pub console: &'a Console,
    /// What is run, for the file that keeps it.
    pub spec: Option<&'a RunSpec>,
}

/// The agents of a run, when it is not this process that does it, and what is counted before and
/// after it.
pub type Begun<'a> = (Option<RunAgents<'a>>, Option<Reconciliation>);

impl<'a> Session<'a> {
    /// Runs `prepared`, whose spans go to `spans`, and shows it. `begin` does what must be done once the files are there: it
    /// gives the agents, when others do the run, and what is counted before and after it.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn run(
        self,
        prepared: &Prepared,
        spans: Vec<Box<dyn Sink>>,
        begin: impl FnOnce() -> Result<Begun<'a>, Failure>,
        failure: &dyn Fn(RunError) -> Failure,
    ) -> Result<Exit, Failure> {
        let Self { output, console, .. } = self;
        let quiet = output.quiet;
        let is_plan_seen = !quiet && console.live() && console.out_is_terminal();
        let results = Results::create(output.results(), output.no_color, console)?;
        let results = results.brief(quiet).with_plan_told(is_plan_seen);
        let mut watching = Watching::of(prepared).map_err(failure)?;
        let saving = Saving::start(self.history)?;
        let mut sinks = sinks(output, saving.as_ref()).map_err(failure)?;
        sinks.extend(destinations(&output.sinks, console)?);
        sinks.extend(spans);
        let (mut agents, reconciliation) = begin()?;
        let mut live = RunLive::new(output, console, &prepared.plan);
        let signals = Signals::telling(live.stopper(console)).map_err(Failure::signals)?;
        let told = (!quiet && !output.tui).then_some(*console);
        // Agents know no other rate than the plan's.
        let rate = agents.is_none() && RateControl::suits(&prepared.plan);
        let rate = rate.then(RateControl::default);
        let controls = Controls { interrupt: signals.interrupt(), rate: rate.as_ref() };
        let web = Web::start(self.web, prepared, controls, told, console)?;
        sinks.extend(web.sink());
        live.open(console, prepared, signals.interrupt())?;
        let mut origin = origin(&prepared.objectives, self.redactor);
        origin.specs.extend(self.spec.and_then(|spec| kept(spec, self.redactor)));
        if let Some(agents) = &mut agents {
            agents.follow(live.agents_reporter(console), signals.interrupt());
        }
        let beside = Beside {
            sinks,
            rate: rate.as_ref(),
            interrupt: Some(signals.interrupt()),
            watching: Some(&mut watching),
            origin,
            ..Beside::default()
        };
        let show = |moment: &Moment<'_>| {
            live.show(console, moment, prepared);
            None
        };
        let recorded = match &mut agents {
            Some(agents) => agents.run(prepared, beside, show),
            None => prepared.run_beside(beside, show),
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
        // Signals that come while the page is still open do not concern the run.
        let is_interrupted =
            signals.came() || ended.as_ref().is_some_and(EndedAgents::is_interrupted);
        let exit = outcome.report(exit(&summary, is_interrupted, console), console);
        // The text has a line about each agent.
        let says_nothing = quiet || output.is_text_printed();
        let exit = ended.as_ref().map_or(exit, |ended| {
            ended.teardown_note(prepared).into_iter().for_each(|note| console.warn(note));
            ended.conclude((prepared, &summary.run.agents), says_nothing, exit, console)
        });
        web.finish(&summary);
        let exit = match saving {
            Some(saving) => saving.finish(&summary, exit, output.is_text_printed(), console)?,
            None => exit,
        };
        shown?;
        if let Some(ended) = &ended {
            ended.forget();
        }
        Ok(exit)
    }
}

/// The files written while the run goes on. They are created before it, so that a bad path costs
/// nothing.
fn sinks(args: &OutputArgs, saving: Option<&Saving>) -> Result<Vec<Box<dyn Sink>>, RunError> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let Some(saving) = saving {
        sinks.push(saving.sink()?);
    }
    if let Some(path) = &args.out {
        sinks.push(Box::new(RunFileSink::create(path)?));
    }
    if let Some(path) = &args.log {
        sinks.push(Box::new(LogSink::create(path)?));
    }
    Ok(sinks)
}

/// The exit code of a run with a summary. An interrupt wins, since the figures are of a part.
fn exit(summary: &Summary, interrupted: bool, console: &Console) -> Exit {
    if let RunEnd::Aborted(_) = summary.run.ending {
        return Exit::ObjectiveFailed;
    }
    if interrupted {
        return Exit::Interrupted;
    }
    Exit::of(&summary.verdict, console)
}
