//! `gake run`: plan, fire, record, judge, show.

use gake_fleet::Orphan;
use gake_run::Prepared;
use gake_session::fleet::{FleetMaker, failure, settings};
use gake_session::redaction::redactor;
use gake_session::run::{Reconciliation, Session, assemble, start_traces};
use gake_session::{Console, Exit, Failure, descriptors, files};

use crate::cli::{AttachArgs, RunArgs};
use crate::personality::k6;
use crate::spec;

/// Runs a load test, or prints its spec.
///
/// # Errors
/// Why there is no result.
pub fn run(args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let mut asked = spec::of_run(args, console)?;
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
    let spans = start_traces(&args.trace, &args.output.sinks, has_agents, &mut prepared)?;
    let show = Session {
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
            gake_session::announce::announce(&prepared, &asked.spec, descriptors, console);
        }
        let spec = loaded.inlined(&asked.spec);
        let fleet = assemble(agents.as_ref(), &spec, &prepared, quiet, console)?;
        let rows = args.judge.reconcile.as_deref();
        let rows = rows.map(|text| Reconciliation::begin(text, &asked.spec)).transpose()?;
        Ok((fleet, rows))
    };
    let exit = show.run(&prepared, spans, begin, &|error| asked.failure(error))?;
    asked.note_repeats(console);
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
    let prepared = Prepared::new(&spec, gake_session::recording::inputs());
    let mut prepared = prepared.map_err(|error| gake_session::spec_error::failure(&error))?;
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
    let show = Session {
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
    show.run(&prepared, Vec::new(), begin, &|error| gake_session::spec_error::failure(&error))
}
