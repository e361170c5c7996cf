//! `gake run`: plan, fire, record, judge, show.

mod fleet;
mod live;
mod opening;
mod reconcile;
mod rows;
mod save;
mod show;
mod traces;
mod web;

pub use fleet::conclude;
pub use reconcile::Reconciliation;
pub use save::Saving;
pub use web::{Controls, Web};

use gake_fleet::Orphan;
use gake_run::sink::ExportSink;
use gake_run::{Prepared, Sink};
use gake_sinks::{Exporter, SinkKind};

use crate::cli::{AttachArgs, RunArgs, SinkArgs};
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::fleet::{FleetMaker, failure, settings};
use crate::personality::k6;
use crate::redaction::redactor;
use crate::spec;
use show::Show;

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
    if args.fleet.agents.is_none() {
        asked.key_log_from(std::env::var_os("SSLKEYLOGFILE"), console);
    }
    let agents = FleetMaker::of(&args.fleet)?;
    let descriptors = descriptors::raise();
    let lab = asked.start_demo()?;
    let redactor = redactor(&args.redaction, console)?;
    let loaded = asked.load()?;
    let mut prepared = asked.prepare_loaded(&loaded)?;
    prepared.redact(&redactor);
    if agents.is_some() {
        prepared.keep_to_one_table();
    }
    let read = asked.files(args.spec.spec.as_deref());
    files::distinct(args.output.files(), read.iter().map(std::path::PathBuf::as_path))?;
    let quiet = args.output.quiet;
    let has_agents = agents.is_some();
    let spans = traces::start(&args.trace, &args.output.sinks, has_agents, &mut prepared)?;
    let show = Show {
        output: &args.output,
        web: &args.web,
        history: &args.history,
        redactor: &redactor,
        console,
        spec: Some(&asked.spec),
    };
    let begin = || {
        if !quiet {
            let descriptors = agents.is_none().then_some(descriptors);
            spec::announce(&prepared, &asked.spec, descriptors, console);
        }
        let spec = loaded.inlined(&asked.spec);
        let fleet = fleet::assemble(agents.as_ref(), &spec, &prepared, quiet, console)?;
        let rows = args.judge.reconcile.as_deref();
        let rows = rows.map(|text| Reconciliation::begin(text, &asked.spec)).transpose()?;
        Ok((fleet, rows))
    };
    let exit = show.run(&prepared, spans, begin, &|error| asked.failure(error))?;
    if let Some(lab) = lab {
        lab.shutdown();
    }
    Ok(exit)
}

/// Goes on with a run whose coordinator died.
///
/// # Errors
/// Why there is no result.
pub fn attach(args: &AttachArgs, console: &Console) -> Result<Exit, Failure> {
    let (nats, token) = settings(&args.nats)?;
    let version = env!("CARGO_PKG_VERSION");
    let orphan = Orphan::find(&nats, &token, &args.run, version).map_err(failure)?;
    files::distinct(args.output.files(), std::iter::empty())?;
    if let Some(script) = orphan.script().map_err(failure)? {
        return k6::attach::attach(orphan, script, args, console);
    }
    let redactor = redactor(&args.redaction, console)?;
    let spec = orphan.spec().map_err(failure)?;
    let prepared = Prepared::new(&spec, spec::inputs());
    let mut prepared = prepared.map_err(|error| spec::failure(&error))?;
    prepared.redact(&redactor);
    prepared.keep_to_one_table();
    // What was read of the target before is lost, and the rest would stand at the wrong instants.
    prepared.watch.clear();
    let asked = prepared.objectives.len();
    prepared.objectives.retain(|objective| !objective.is_about_target());
    if prepared.objectives.len() < asked {
        console.warn(
            "`attach` does not go on with --watch: objectives about the target are not judged",
        );
    }
    let show = Show {
        output: &args.output,
        web: &args.web,
        history: &args.history,
        redactor: &redactor,
        console,
        spec: Some(&spec),
    };
    let begin = || {
        let fleet = orphan.adopt(&prepared).map_err(failure)?;
        if !args.output.quiet {
            console.note(&fleet.describe());
        }
        Ok((Some(fleet), None))
    };
    show.run(&prepared, Vec::new(), begin, &|error| spec::failure(&error))
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
