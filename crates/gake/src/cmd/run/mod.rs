//! `gake run`: plan, fire, record, judge, show.

mod fleet;
mod live;
mod reconcile;
mod rows;
mod save;
mod web;

pub use save::Saving;
pub use web::Web;

use gake_core::record::Ending;
use gake_judge::Summary;
use gake_run::sink::{ExportSink, LogSink, RunFileSink};
use gake_run::{Beside, Moment, RunError, Sink, Watching};
use gake_sinks::{Exporter, SinkKind};

use super::show::Results;
use crate::cli::{OutputArgs, RunArgs, SinkArgs};
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::fleet::FleetMaker;
use crate::origin::origin;
use crate::redaction::redactor;
use crate::signals::Signals;
use crate::spec;
use live::Live;
use reconcile::Reconciliation;

/// Runs a load test, or prints its spec.
///
/// # Errors
/// Why there is no result.
pub fn run(args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let mut asked = spec::of_run(args)?;
    if let Some(format) = args.spec.print_spec {
        console.result(&asked.print(format)?)?;
        return Ok(Exit::Done);
    }
    let agents = FleetMaker::of(&args.fleet)?;
    let descriptors = descriptors::raise();
    let lab = asked.start_demo()?;
    let redactor = redactor(&args.redaction, console)?;
    let loaded = asked.load()?;
    let mut prepared = asked.prepare_loaded(&loaded)?;
    prepared.redact(&redactor);
    let read = asked.files(args.spec.spec.as_deref());
    files::distinct(args.output.files(), read.iter().map(std::path::PathBuf::as_path))?;
    let quiet = args.output.quiet;
    let is_plan_seen = !quiet && console.live() && console.out_is_terminal();
    let results = Results::create(args.output.results(), args.output.no_color, console)?;
    let results = results.brief(quiet).with_plan_told(is_plan_seen);
    let failure = |error| asked.failure(error);
    let mut watching = Watching::of(&prepared).map_err(failure)?;
    let saving = Saving::start(&args.history)?;
    let mut sinks = sinks(&args.output, saving.as_ref()).map_err(failure)?;
    sinks.extend(destinations(&args.output.sinks, console)?);
    if !quiet {
        let descriptors = agents.is_none().then_some(descriptors);
        spec::announce(&prepared, &asked.spec, descriptors, console);
    }
    let spec = loaded.inlined(&asked.spec);
    let mut fleet = fleet::assemble(agents.as_ref(), &spec, &prepared, quiet, console)?;
    let reconciliation = Reconciliation::begin(args.judge.reconcile.as_deref())?;
    let mut live = Live::new(args, console, &prepared.plan);
    let signals = Signals::telling(live.stopper(console)).map_err(Failure::signals)?;
    let told = (!quiet && !args.output.tui).then_some(*console);
    let web = Web::start(&args.web, &prepared, signals.interrupt(), told, console)?;
    sinks.extend(web.sink());
    live.open(console, &prepared, signals.interrupt())?;
    let beside = Beside {
        sinks,
        users: None,
        interrupt: Some(signals.interrupt()),
        watching: Some(&mut watching),
        origin: origin(&prepared.objectives, &redactor),
    };
    let show = |moment: &Moment<'_>| {
        live.show(console, moment, &prepared);
        None
    };
    let recorded = match &mut fleet {
        Some(fleet) => prepared.run_elsewhere(fleet, beside, show),
        None => prepared.run_beside(beside, show),
    };
    live.clear();
    let recorded = recorded.map_err(failure)?;
    if let Some(lab) = lab {
        lab.shutdown();
    }
    for loss in &recorded.losses {
        console.warn(&loss.text);
    }
    let mut summary = Summary::new(recorded.run, &prepared.objectives);
    if let Some(reconciliation) = reconciliation {
        reconciliation.end(&mut summary);
    }
    let shown = results.show(&summary, console, &|_| Ok(()));
    // Signals that come while the page is still open do not concern the run.
    let exit = exit(&summary, signals.came(), console);
    let exit = fleet.map_or(exit, |fleet| fleet::conclude(&fleet, quiet, exit, console));
    web.finish(&summary);
    let exit = match saving {
        Some(saving) => saving.finish(&summary, exit, args.output.is_text_printed(), console)?,
        None => exit,
    };
    shown?;
    Ok(exit)
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

/// The destinations of figures. One that does not answer is said before anything is sent.
///
/// # Errors
/// When one cannot be used, or does not answer and must.
pub fn destinations(args: &SinkArgs, console: &Console) -> Result<Vec<Box<dyn Sink>>, Failure> {
    if args.sink_required && args.sink.is_empty() && args.annotate.is_empty() {
        return Err(Failure::usage("--sink-required needs --sink or --annotate"));
    }
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    let sinks_of = args.sink.iter().map(|address| ("--sink", address));
    let annotated = args.annotate.iter().map(|address| ("--annotate", address));
    for (flag, address) in sinks_of.chain(annotated) {
        let address = address.clone().or_token(token);
        let mut exporter = Exporter::new(&address)
            .map_err(|why| Failure::could_not(format!("{flag} {address}: {why}")))?;
        if let Err(why) = exporter.check() {
            let what = format!("{flag} {address}: {why}");
            if args.sink_required {
                return Err(Failure::could_not(what));
            }
            console.warn(&format!("{what}; the run goes on, and it is tried again"));
        }
        sinks.push(Box::new(ExportSink::new(exporter)));
    }
    Ok(sinks)
}

/// A destination's token, which has no place on a command line.
fn token(kind: SinkKind) -> Option<String> {
    let name = match kind {
        SinkKind::InfluxDb => "INFLUX_TOKEN",
        SinkKind::Grafana => "GRAFANA_TOKEN",
        _ => "GAKE_SINK_TOKEN",
    };
    std::env::var(name).ok().filter(|token| !token.is_empty())
}

/// The exit code of a run with a summary. An interrupt wins, since the figures are of a part.
fn exit(summary: &Summary, interrupted: bool, console: &Console) -> Exit {
    if let Ending::Aborted(_) = summary.run.ending {
        return Exit::ObjectiveFailed;
    }
    if interrupted {
        return Exit::Interrupted;
    }
    Exit::of(&summary.verdict, console)
}
